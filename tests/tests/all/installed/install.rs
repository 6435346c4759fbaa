//! Projects outside of the repository that use an installation, found through CMake and pkg-config, also after it was
//! moved.

use super::support::{Scratch, attempt, command, compile, copy_tree, pkg_config, prefix, run};
use std::path::{Path, PathBuf};

/// Adds 1 to 0, 1, …, 9 and prints the sum.
const PROGRAM: &str = r#"
#include <bh.h>
#include <stdio.h>

int main(void) {
    bh_array *a, *b, *total;
    const char *stack;
    int64_t sum;
    if (bh_arange(&a, NULL, BH_TYPE_I64, 0, 10, 1) || bh_add_new(&b, a, bh_i64(1)) ||
        bh_add_reduce_new(&total, b, BH_ALL_AXES) || bh_scalar_i64(&sum, total) || bh_stack_name(&stack, NULL)) {
        fprintf(stderr, "%s\n", bh_error_message());
        return 1;
    }
    printf("%lld on %s\n", (long long)sum, stack);
    bh_free(a), bh_free(b), bh_free(total);
    return 0;
}
"#;

const PRINTED: &str = "55 on cpu\n";

const CMAKE: &str = r#"
cmake_minimum_required(VERSION 3.16)
project(outside C CXX)
find_package(bh 0.1 REQUIRED)
add_executable(outside outside.c)
target_link_libraries(outside PRIVATE bh::bh)
add_executable(outside-cpp outside.cpp)
target_link_libraries(outside-cpp PRIVATE bh::bh)
"#;

/// Builds a project with CMake against an installation and runs its programs.
pub fn check_cmake(prefix: &Path) {
    let project = Scratch::new("cmake");
    project.write("CMakeLists.txt", CMAKE);
    project.write("outside.c", PROGRAM);
    project.write("outside.cpp", PROGRAM);
    let mut configure = command("cmake");
    configure.args(["-B", "build", "."]).arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
    run(configure.current_dir(project.path()));
    run(command("cmake").args(["--build", "build"]).current_dir(project.path()));
    for program in ["build/outside", "build/outside-cpp"] {
        assert_eq!(run(&mut command(project.path().join(program))), PRINTED);
    }
}

#[test]
fn a_cmake_project() {
    check_cmake(&prefix());
}

#[test]
fn cmake_refuses_other_versions() {
    let project = Scratch::new("cmake-version");
    project.write("CMakeLists.txt", &CMAKE.replace("bh 0.1", "bh 7.0"));
    let mut configure = command("cmake");
    configure.args(["-B", "build", "."]).arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display()));
    let (ended, _, errors) = attempt(configure.current_dir(project.path()));
    assert!(!ended && errors.contains("7.0"), "{errors}");
}

#[test]
fn a_pkg_config_project() {
    let project = Scratch::new("pkg-config");
    let program = compile(&prefix(), &project.write("outside.c", PROGRAM));
    assert_eq!(run(&mut command(program)), PRINTED);
    let version = pkg_config(&prefix(), &["--modversion"]);
    assert_eq!(version, [env!("CARGO_PKG_VERSION")]);
}

#[test]
fn an_installation_can_be_moved() {
    let elsewhere = Scratch::new("moved");
    let moved = elsewhere.path().join("bh here");
    copy_tree(&prefix(), &moved);
    let project = Scratch::new("against-moved");
    let source = project.write("outside.c", PROGRAM);
    // pkg-config cannot express the space that a moved prefix may have; compilers accept it.
    let program = project.path().join("outside");
    let mut compiler = command("cc");
    compiler.arg("-I").arg(moved.join("include")).arg(&source).arg("-o").arg(&program);
    compiler.arg(moved.join("lib/libbh_bridge_c.so")).arg(format!("-Wl,-rpath,{}", moved.join("lib").display()));
    run(&mut compiler);
    assert_eq!(run(&mut command(&program)), PRINTED);
    check_cmake(&moved);

    // Everything must be found in the new place, as if the original were gone.
    let info = run(command(moved.join("bin/bh")).args(["info", "--json"]));
    let original = prefix().display().to_string();
    assert!(!info.contains(&format!("{original}/")), "{info}");
    let config = info.lines().find(|line| line.contains("\"config\":")).unwrap_or_default();
    assert!(config.contains(&moved.display().to_string()) && config.contains("share/bh/config.toml"), "{info}");
}

#[test]
fn the_library_is_found_by_its_versioned_name() {
    let library = prefix().join("lib/libbh_bridge_c.so");
    let dynamic = run(command("readelf").arg("-d").arg(&library));
    let soname = concat!("libbh_bridge_c.so.", env!("CARGO_PKG_VERSION_MAJOR"));
    assert!(dynamic.contains(&format!("[{soname}]")), "{dynamic}");
    // Threads and handlers of the library would outlive it.
    assert!(dynamic.contains("NODELETE"), "{dynamic}");
    let full = std::fs::canonicalize(prefix().join("lib").join(soname)).unwrap();
    let full_name = PathBuf::from(concat!("libbh_bridge_c.so.", env!("CARGO_PKG_VERSION")));
    assert_eq!(full.file_name(), Some(full_name.as_os_str()));
}

#[test]
fn the_manual_and_the_program_know_the_same_commands() {
    let manual = std::fs::read_to_string(prefix().join("share/man/man1/bh.1")).unwrap().replace('\\', "");
    let help = run(command(prefix().join("bin/bh")).arg("--help"));
    let commands = help.split_once("Commands:").unwrap().1.split("\n\n").next().unwrap();
    let names: Vec<&str> = commands.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"check-engine"), "{help}");
    for name in names.iter().filter(|name| **name != "help") {
        assert!(manual.contains(&format!("\n.B {name}\n")), "the manual page has no section on 'bh {name}'");
    }
}

/// Libraries of every system with glibc.
const SYSTEM: [&str; 5] = ["libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "libdl.so.2"];

/// Users need no LLVM, no C++ library and nothing else of the building machine. A library for an MPI needs that MPI.
#[test]
fn libraries_need_what_every_system_has() {
    let directory = prefix().join("lib/bh");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.extend([prefix().join("lib/libbh_bridge_c.so"), prefix().join("bin/bh")]);
    assert!(files.len() >= 8, "{files:?}");
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let own: &[&str] = match name.as_str() {
            "libbh_cluster_openmpi.so" => &["libmpi.so.40"],
            "libbh_cluster_mpich.so" => &["libmpich.so.12"],
            _ => &[],
        };
        let dynamic = run(command("readelf").arg("-d").arg(&file));
        let needed = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
        let needed = needed.filter_map(|line| line.split_once('[')?.1.split(']').next());
        for library in needed {
            assert!(SYSTEM.contains(&library) || own.contains(&library), "{name} needs {library}");
        }
    }
}
