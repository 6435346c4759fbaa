//! `cargo xtask install --prefix DIR`: a relocatable tree with libraries, components, headers, configuration and the
//! programs `bh` and `minimatlab`.

use crate::command::{Failure, Outcome, cargo, option, output, root, target};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The component libraries, by crate; each becomes `lib/bh/lib<crate with underscores>.so`.
const COMPONENTS: &[&str] = &["bh-filter", "bh-vem-cluster", "bh-fuser", "bh-vem-node", "bh-ve-cpu", "bh-ve-opencl"];

/// The libraries of `lib/bh`, by crate: the components, and what they load if it is there.
pub fn libraries() -> Vec<&'static str> {
    let compiler = crate::packages::has_llvm().then_some(crate::packages::COMPILER);
    COMPONENTS.iter().copied().chain(compiler).collect()
}

/// The programs of `bin`.
const PROGRAMS: [&str; 2] = ["bh", "minimatlab"];

/// `major` of the shared library's name, and the full version.
const SONAME_MAJOR: &str = "0";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs the command line `install --prefix DIR`.
pub fn run(arguments: &[String]) -> Outcome {
    let prefix = option(arguments, "--prefix")?.ok_or_else(|| Failure("install needs --prefix DIR".into()))?;
    install(Path::new(prefix), "release")?;
    println!("installed bh {VERSION} into {prefix}");
    Ok(())
}

/// Builds all that is installed, with these libraries, under a cargo profile and returns the directory of the results.
pub fn build(profile: &str, libraries: &[&str]) -> Outcome<PathBuf> {
    build_crates(profile, &[&["bh-bridge-c", "bh-cli", "bh-minimatlab"], libraries].concat())
}

/// Builds these crates and no others under a cargo profile and returns the directory of the results.
pub fn build_crates(profile: &str, crates: &[&str]) -> Outcome<PathBuf> {
    let mut command = cargo();
    command.args(["build", "--profile", profile]).args(crates.iter().flat_map(|name| ["-p", name]));
    crate::command::run(&mut command)?;
    Ok(target().join(profile))
}

/// Builds and installs into `prefix`.
pub fn install(prefix: &Path, profile: &str) -> Outcome {
    let built = build(profile, &libraries())?;
    crate::cluster::build_into(&prefix.join("lib/bh"))?;
    place(&built, prefix, &libraries())
}

/// Installs what lies in the directory `built`, with these libraries and the programs, into `prefix`.
pub fn place(built: &Path, prefix: &Path, libraries: &[&str]) -> Outcome {
    for directory in ["share/man/man1", "bin"] {
        fs::create_dir_all(prefix.join(directory))?;
    }
    for program in PROGRAMS {
        copy(&built.join(program), &prefix.join("bin").join(program))?;
    }
    strip(&prefix.join("bin"))?;
    copy(&root().join("docs/bh.1"), &prefix.join("share/man/man1/bh.1"))?;
    place_libraries(built, prefix, libraries)
}

/// As `place`, without the programs.
pub fn place_libraries(built: &Path, prefix: &Path, libraries: &[&str]) -> Outcome {
    for directory in ["lib/bh", "lib/pkgconfig", "lib/cmake/bh", "include", "share/bh"] {
        fs::create_dir_all(prefix.join(directory))?;
    }
    let library = format!("libbh_bridge_c.so.{VERSION}");
    copy(&built.join("libbh_bridge_c.so"), &prefix.join("lib").join(&library))?;
    link(&library, &prefix.join(format!("lib/libbh_bridge_c.so.{SONAME_MAJOR}")))?;
    link(&library, &prefix.join("lib/libbh_bridge_c.so"))?;
    for component in libraries {
        let name = format!("lib{}.so", component.replace('-', "_"));
        copy(&built.join(&name), &prefix.join("lib/bh").join(&name))?;
    }
    strip(&prefix.join("lib"))?;
    copy_tree(&root().join("bh-bridge-c/include"), &prefix.join("include"))?;
    copy(&root().join("config/default.toml"), &prefix.join("share/bh/config.toml"))?;
    fs::write(prefix.join("lib/pkgconfig/bh.pc"), pkg_config())?;
    fs::write(prefix.join("lib/cmake/bh/bhConfig.cmake"), CMAKE_CONFIG)?;
    fs::write(prefix.join("lib/cmake/bh/bhConfigVersion.cmake"), cmake_version())?;
    crate::kit::install(prefix)
}

/// Replaces `to`, so that a running program keeps the old file.
pub fn copy(from: &Path, to: &Path) -> Outcome {
    let _ = fs::remove_file(to);
    fs::copy(from, to).map_err(|error| Failure(format!("copying {} to {}: {error}", from.display(), to.display())))?;
    Ok(())
}

fn link(name: &str, at: &Path) -> Outcome {
    let _ = fs::remove_file(at);
    symlink(name, at).map_err(|error| Failure(format!("linking {}: {error}", at.display())))
}

/// Copies a directory with all it holds.
pub fn copy_tree(from: &Path, to: &Path) -> Outcome {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let destination = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &destination)?;
        } else {
            copy(&entry.path(), &destination)?;
        }
    }
    Ok(())
}

/// Takes what debuggers need out of all programs and libraries; it stays in the target directory. Names of functions are kept,
/// which traces and checkers of memory read.
pub fn strip(folder: &Path) -> Outcome {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            strip(&path)?;
        } else if entry.file_type()?.is_file() && fs::read(&path)?.starts_with(b"\x7fELF") {
            output(Command::new("strip").arg("--strip-debug").arg(&path))?;
        }
    }
    Ok(())
}

fn pkg_config() -> String {
    format!(
        "prefix=${{pcfiledir}}/../..\n\
         libdir=${{prefix}}/lib\n\
         includedir=${{prefix}}/include\n\
         rustdir=${{prefix}}/share/bh/rust\n\n\
         Name: bh\n\
         Description: Lazy, fused array programs on every core, GPU or cluster\n\
         Version: {VERSION}\n\
         Libs: -L${{libdir}} -lbh_bridge_c\n\
         Cflags: -I${{includedir}}\n"
    )
}

const CMAKE_CONFIG: &str = "\
# find_package(bh) gives the imported target bh::bh.
get_filename_component(_bh_prefix \"${CMAKE_CURRENT_LIST_DIR}/../../..\" ABSOLUTE)
if(NOT TARGET bh::bh)
  add_library(bh::bh SHARED IMPORTED)
  set_target_properties(bh::bh PROPERTIES
    IMPORTED_LOCATION \"${_bh_prefix}/lib/libbh_bridge_c.so\"
    INTERFACE_INCLUDE_DIRECTORIES \"${_bh_prefix}/include\")
endif()
unset(_bh_prefix)
";

fn cmake_version() -> String {
    format!(
        "set(PACKAGE_VERSION \"{VERSION}\")\n\
         if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)\n  set(PACKAGE_VERSION_COMPATIBLE FALSE)\n\
         else()\n  set(PACKAGE_VERSION_COMPATIBLE TRUE)\n  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)\n    \
         set(PACKAGE_VERSION_EXACT TRUE)\n  endif()\nendif()\n"
    )
}
