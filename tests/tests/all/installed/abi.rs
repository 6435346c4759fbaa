//! The binary interface: exported symbols and the layout of every struct of the headers, compared with lists in
//! `bh-bridge-c/abi/`. `BH_UPDATE=1` rewrites the lists; changed lines then appear in the review.

use super::support::{Scratch, command, compile, prefix, root, run};
use std::fmt::Write as _;
use std::path::PathBuf;

fn list(name: &str) -> PathBuf {
    root().join("bh-bridge-c/abi").join(name)
}

/// Compares with a checked-in list line by line, or writes it.
fn check(name: &str, found: &str) {
    let file = list(name);
    if std::env::var_os("BH_UPDATE").is_some() {
        std::fs::write(&file, found).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&file).unwrap();
    let only = |left: &str, right: &str| -> Vec<String> {
        left.lines().filter(|line| !right.lines().any(|other| other == *line)).map(str::to_owned).collect()
    };
    assert!(
        expected == found,
        "the binary interface changed: gone {:?}, new {:?}; if that is meant, see the versions section of \
         docs/engines.md and run the test with BH_UPDATE=1",
        only(&expected, found),
        only(found, &expected),
    );
}

#[test]
fn the_exported_symbols() {
    let library = prefix().join("lib/libbh_bridge_c.so");
    let table = run(command("nm").args(["-D", "--defined-only"]).arg(library));
    let mut names: Vec<&str> = table.lines().filter_map(|line| line.split_whitespace().last()).collect();
    names.sort_unstable();
    for name in &names {
        assert!(name.starts_with("bh_"), "'{name}' is exported, but is no part of the interface");
    }
    check("symbols.txt", &(names.join("\n") + "\n"));
}

/// All functions declared in bh.h can be linked.
#[test]
fn every_function_of_the_header_is_exported() {
    let header = std::fs::read_to_string(prefix().join("include/bh.h")).unwrap();
    let symbols = std::fs::read_to_string(list("symbols.txt")).unwrap();
    let mut count = 0;
    for line in header.lines().filter(|line| !line.starts_with([' ', '/', '#', '}']) && !line.starts_with("typedef")) {
        let Some((before, _)) = line.split_once('(') else { continue };
        let name = before.rsplit([' ', '*']).next().unwrap_or_default();
        assert!(symbols.lines().any(|symbol| symbol == name), "'{name}' is declared but not exported");
        count += 1;
    }
    assert!(count > 200, "only {count} declarations were found");
}

/// Components only export their entry function.
#[test]
fn components_export_their_entry() {
    for name in ["filter", "fuser", "vem_node", "ve_cpu"] {
        let library = prefix().join(format!("lib/bh/libbh_{name}.so"));
        let table = run(command("nm").args(["-D", "--defined-only"]).arg(library));
        let names: Vec<&str> = table.lines().filter_map(|line| line.split_whitespace().last()).collect();
        assert!(names.contains(&format!("bh_{name}_component_entry").as_str()), "{names:?}");
        let strange: Vec<&&str> = names.iter().filter(|name| !name.ends_with("_component_entry")).collect();
        assert!(strange.is_empty(), "bh_{name} exports {strange:?}");
    }
}

/// A struct of a header: its name and its fields in order.
type Struct = (String, Vec<String>);

/// The structs that a header defines.
fn structs(header: &str) -> Vec<Struct> {
    let mut found: Vec<Struct> = Vec::new();
    let mut open = false;
    for line in header.lines() {
        let line = line.split("//").next().unwrap_or_default().trim_end();
        if let Some(name) = line.strip_prefix("typedef struct ").and_then(|rest| rest.strip_suffix(" {")) {
            found.push((name.to_owned(), Vec::new()));
            open = true;
        } else if line.starts_with('}') {
            open = false;
        } else if open && let Some((_, fields)) = found.last_mut() {
            let pointer = line.split_once("(*").and_then(|(_, rest)| rest.split_once(')')).map(|(name, _)| name);
            // Continued function arguments are indented further.
            let is_field = line.starts_with("    ") && !line.starts_with("     ");
            let plain = || line.strip_suffix(';')?.rsplit([' ', '*']).next()?.split('[').next();
            if let (true, Some(field)) = (is_field, pointer.or_else(plain)) {
                fields.push(field.to_owned());
            }
        }
    }
    found
}

/// A C program that prints size and offsets of every struct.
fn layout_program(structs: &[Struct]) -> String {
    let mut text = String::from("#include <bh.h>\n#include <stdio.h>\n\nint main(void) {\n");
    for (name, fields) in structs {
        let _ = writeln!(text, "    printf(\"{name} %zu\\n\", sizeof(struct {name}));");
        for field in fields {
            let _ = writeln!(
                text,
                "    printf(\"{name}.{field} at %zu, %zu\\n\", offsetof(struct {name}, {field}), \
                 sizeof(((struct {name} *)0)->{field}));"
            );
        }
    }
    text + "    printf(\"BH_ABI_VERSION %u\\n\", BH_ABI_VERSION);\n    return 0;\n}\n"
}

#[test]
fn the_layout_of_structs() {
    let mut all = Vec::new();
    for header in ["bh_component.h", "bh.h"] {
        all.extend(structs(&std::fs::read_to_string(prefix().join("include").join(header)).unwrap()));
    }
    assert!(all.len() > 20, "{all:?}");
    assert!(all.iter().all(|(name, fields)| !fields.is_empty() || panic!("no field of {name} was found")));
    let scratch = Scratch::new("layout");
    let program = compile(&prefix(), &scratch.write("layout.c", &layout_program(&all)));
    check("layout.txt", &run(&mut command(program)));
}
