//! `cargo xtask materials [--out FILE]`: all that the wheel's libraries are made of, as one bill of materials in CycloneDX's form.
//!
//! `cargo cyclonedx` writes a bill for each crate. A component is loaded and never linked, so the bill of the native module alone would
//! name nothing of the engines. LLVM and the libraries that it needs are archives of C++, which no bill of a crate names.

use crate::command::{Failure, Outcome, cargo, option, output, root, run, target};
use crate::{artifacts, packages, python};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program that writes the bills, and its version where it has to be installed.
const TOOL: (&str, &str) = ("cargo-cyclonedx", "0.5.9");

/// The connection to MPI, a workspace of its own.
const CONNECTION: &str = "bh-vem-cluster/mpi";

/// The archives of `bh-ve-cpu/jit/build.rs`: the name, and the command that says the version.
const ARCHIVES: &[(&str, &[&str])] = &[
    ("llvm", &["llvm-config-19", "--version"]),
    ("zlib", &["pkg-config", "--modversion", "zlib"]),
    ("zstd", &["pkg-config", "--modversion", "libzstd"]),
    ("libstdc++", &["c++", "-dumpfullversion"]),
];

/// The name of the tool's files, which it completes by `.json`, and that of the wheel.
const NAME: &str = "bh.cdx";
const WHEEL: &str = "bh-array";

/// Runs the command line.
pub fn run_bill(arguments: &[String]) -> Outcome {
    packages::ensure_llvm();
    packages::ensure(&[("pkg-config", "pkg-config")])?;
    ensure_tool()?;
    let mut all = bills(&root(), &[artifacts::libraries(), python::WHEEL.to_vec()].concat())?;
    all.extend(bills(&root().join(CONNECTION), &[])?);
    let mut bill = merge(all);
    for (name, line) in ARCHIVES {
        let archive = archive(name, line)?;
        bill["components"].as_array_mut().into_iter().for_each(|components| components.push(archive.clone()));
    }
    let out = option(arguments, "--out")?.map_or_else(|| target().join("materials/bh.cdx.json"), PathBuf::from);
    out.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(&out, format!("{bill:#}\n"))?;
    println!("{}: {} components", out.display(), bill["components"].as_array().map_or(0, Vec::len));
    Ok(())
}

fn ensure_tool() -> Outcome {
    let mut there = cargo();
    let there = there.args(["cyclonedx", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if there.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    run(cargo().args(["install", "--locked", "--version", TOOL.1, TOOL.0]))
}

/// The bills of these crates of a workspace; of all if none is named. The tool writes each beside the crate's manifest; none stays there.
fn bills(workspace: &Path, crates: &[&str]) -> Outcome<Vec<Value>> {
    let mut tool = cargo();
    tool.args(["cyclonedx", "--format", "json", "--spec-version", "1.5", "--override-filename", NAME]);
    run(tool.current_dir(workspace))?;
    let metadata = output(cargo().args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(workspace))?;
    let mut found = Vec::new();
    for package in parse(&metadata)?["packages"].as_array().into_iter().flatten() {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let file = Path::new(manifest).with_file_name(format!("{NAME}.json"));
        let text = fs::read_to_string(&file)?;
        fs::remove_file(&file)?;
        if crates.is_empty() || package["name"].as_str().is_some_and(|name| crates.contains(&name)) {
            found.push(parse(&text)?);
        }
    }
    Ok(found)
}

fn parse(text: &str) -> Outcome<Value> {
    serde_json::from_str(text).map_err(|error| Failure(error.to_string()))
}

/// One bill of the wheel: each crate once, those that the bills are of among them, and what each depends on.
fn merge(bills: Vec<Value>) -> Value {
    let (mut components, mut dependencies) = (BTreeMap::new(), BTreeMap::new());
    for mut bill in bills {
        let own = std::iter::once(bill["metadata"]["component"].take());
        let others = bill["components"].as_array().cloned().unwrap_or_default();
        components.extend(own.chain(others).map(|each| (each["bom-ref"].to_string(), each)));
        let edges = bill["dependencies"].as_array().cloned().unwrap_or_default();
        dependencies.extend(edges.into_iter().map(|each| (each["ref"].to_string(), each)));
    }
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "library", "name": WHEEL, "version": env!("CARGO_PKG_VERSION"),
            "purl": format!("pkg:pypi/{WHEEL}@{}", env!("CARGO_PKG_VERSION"))}},
        "components": components.into_values().collect::<Vec<_>>(),
        "dependencies": dependencies.into_values().collect::<Vec<_>>(),
    })
}

/// The entry of a library in C++ whose version a command prints.
fn archive(name: &str, line: &[&str]) -> Outcome<Value> {
    let version = output(Command::new(line[0]).args(&line[1..]))?;
    let version = version.trim();
    Ok(json!({"type": "library", "name": name, "version": version, "bom-ref": format!("pkg:generic/{name}@{version}"),
        "purl": format!("pkg:generic/{name}@{version}")}))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn a_merged_bill_names_each_crate_once_and_those_that_the_bills_are_of() {
        let crates = |names: &[&str]| names.iter().map(|name| json!({"bom-ref": name})).collect::<Vec<_>>();
        let bill = |own: &str, others: &[&str]| {
            json!({"metadata": {"component": {"bom-ref": own}}, "components": crates(others),
                "dependencies": [{"ref": own, "dependsOn": others}]})
        };
        let merged = super::merge(vec![bill("engine", &["core", "faer"]), bill("bridge", &["core"])]);
        assert_eq!(merged["components"], json!(crates(&["bridge", "core", "engine", "faer"])));
        assert_eq!(merged["dependencies"][0], json!({"ref": "bridge", "dependsOn": ["core"]}));
        assert_eq!(merged["metadata"]["component"]["name"], "bh-array");
    }
}
