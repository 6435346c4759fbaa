//! `cargo xtask install --prefix DIR`: a relocatable tree with libraries, components, headers, configuration and the
//! programs `bh` and `minimatlab`.

use crate::artifacts::{build, copy, copy_tree, libraries, strip};
use crate::command::{Failure, Outcome, option, root};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

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

fn link(name: &str, at: &Path) -> Outcome {
    let _ = fs::remove_file(at);
    symlink(name, at).map_err(|error| Failure(format!("linking {}: {error}", at.display())))
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
