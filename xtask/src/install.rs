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
    crate::cluster::build_into(&prefix.join("lib/bh"), None)?;
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
    for directory in ["lib/bh", "include", "share/bh"] {
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
    place_descriptions(prefix, "lib")?;
    crate::kit::install(prefix)
}

/// Completes a Python package for C and C++: the program `bh`, the library with its headers, and the files that pkg-config and CMake
/// read. Program and library lie beside the components, where they find them, because a wheel holds no links.
pub fn place_in_package(built: &Path, package: &Path) -> Outcome {
    fs::create_dir_all(package)?;
    copy(&built.join("bh"), &package.join("bh"))?;
    copy(&built.join("libbh_bridge_c.so"), &package.join(format!("libbh_bridge_c.so.{SONAME_MAJOR}")))?;
    copy_tree(&root().join("bh-bridge-c/include"), &package.join("include"))?;
    place_descriptions(package, ".")
}

/// Writes what pkg-config and CMake read below `prefix`. The library is in its folder `libraries`.
fn place_descriptions(prefix: &Path, libraries: &str) -> Outcome {
    for directory in ["lib/pkgconfig", "lib/cmake/bh"] {
        fs::create_dir_all(prefix.join(directory))?;
    }
    fs::write(prefix.join("lib/pkgconfig/bh.pc"), pkg_config(libraries))?;
    fs::write(prefix.join("lib/cmake/bh/bhConfig.cmake"), cmake_config(libraries))?;
    fs::write(prefix.join("lib/cmake/bh/bhConfigVersion.cmake"), cmake_version()).map_err(Failure::from)
}

fn link(name: &str, at: &Path) -> Outcome {
    let _ = fs::remove_file(at);
    symlink(name, at).map_err(|error| Failure(format!("linking {}: {error}", at.display())))
}

fn pkg_config(libraries: &str) -> String {
    format!(
        "prefix=${{pcfiledir}}/../..\n\
         libdir=${{prefix}}/{libraries}\n\
         includedir=${{prefix}}/include\n\n\
         Name: bh\n\
         Description: Lazy, fused array programs on every core, GPU or cluster\n\
         Version: {VERSION}\n\
         Libs: -L${{libdir}} -l:libbh_bridge_c.so.{SONAME_MAJOR}\n\
         Cflags: -I${{includedir}}\n"
    )
}

/// `find_package(bh)` gives the imported target `bh::bh`.
fn cmake_config(libraries: &str) -> String {
    format!(
        "get_filename_component(_bh_prefix \"${{CMAKE_CURRENT_LIST_DIR}}/../../..\" ABSOLUTE)\n\
         if(NOT TARGET bh::bh)\n  \
           add_library(bh::bh SHARED IMPORTED)\n  \
           set_target_properties(bh::bh PROPERTIES\n    \
             IMPORTED_LOCATION \"${{_bh_prefix}}/{libraries}/libbh_bridge_c.so.{SONAME_MAJOR}\"\n    \
             INTERFACE_INCLUDE_DIRECTORIES \"${{_bh_prefix}}/include\")\n\
         endif()\n\
         unset(_bh_prefix)\n"
    )
}

fn cmake_version() -> String {
    format!(
        "set(PACKAGE_VERSION \"{VERSION}\")\n\
         if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)\n  set(PACKAGE_VERSION_COMPATIBLE FALSE)\n\
         else()\n  set(PACKAGE_VERSION_COMPATIBLE TRUE)\n  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)\n    \
         set(PACKAGE_VERSION_EXACT TRUE)\n  endif()\nendif()\n"
    )
}
