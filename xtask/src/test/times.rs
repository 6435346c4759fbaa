//! How long the tests of each crate, and of each file of Python's, take: read from the reports of a whole run, written as the
//! table of `docs/tests.md`.

use super::outcome::{Case, cases};
use crate::command::{Outcome, target};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Writes the table of a run into `target/tests.md`.
pub fn write(reports: &[String]) -> Outcome {
    let path = written();
    std::fs::write(&path, table(reports))?;
    println!("times of all tests: {}", path.display());
    Ok(())
}

fn written() -> PathBuf {
    target().join("tests.md")
}

/// A row for each crate and each file, slowest first: its name for `cargo xtask test`, its tests, and their seconds together.
fn table(reports: &[String]) -> String {
    let mut rows: BTreeMap<String, (usize, f64)> = BTreeMap::new();
    for case in reports.iter().flat_map(|report| cases(report)) {
        let row = rows.entry(owner(&case)).or_default();
        *row = (row.0 + 1, row.1 + case.seconds);
    }
    let mut rows: Vec<(String, (usize, f64))> = rows.into_iter().collect();
    rows.sort_by(|(_, one), (_, other)| other.1.total_cmp(&one.1));
    let mut table = String::from("| `cargo xtask test` | tests | seconds |\n|---|---|---|\n");
    for (name, (tests, seconds)) in rows {
        let _ = writeln!(table, "| `{name}` | {tests} | {seconds:.0} |");
    }
    table
}

/// The crate or the file of a test: nextest names `crate::program`, pytest `folder.file.Class`.
fn owner(case: &Case) -> String {
    let of_python = case.class.split('.').find(|part| part.starts_with("test_"));
    of_python.or(case.class.split("::").next()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::root;
    use crate::test::choice::{Choice, owners};
    use std::collections::BTreeSet;

    #[test]
    fn tests_are_counted_by_crate_and_file() {
        let reports = [
            r#"<testcase name="a" classname="bh-core" time="1.5"/><testcase name="b" classname="bh-core::all" time="2.25"/>"#,
            r#"<testcase name="c" classname="bh-bridge-numpy.tests.test_x.TestX" time="9"/>"#,
        ];
        let expected =
            "| `cargo xtask test` | tests | seconds |\n|---|---|---|\n| `test_x` | 1 | 9 |\n| `bh-core` | 2 | 4 |\n";
        assert_eq!(table(&reports.map(str::to_owned)), expected);
    }

    fn page() -> String {
        std::fs::read_to_string(root().join("docs/tests.md")).unwrap()
    }

    #[test]
    fn the_page_names_tests_that_are_there_for_each_folder() {
        let page = page();
        let (folders, _) = page.split_once("| tests | seconds |").unwrap();
        let rows: Vec<Vec<&str>> = folders.lines().map(|line| line.split('|').collect()).collect();
        let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<String>>();
        let rows = rows.iter().filter(|row| row.len() == 5 && row[1].contains('`'));
        let (mut folders, mut names) = (Vec::new(), Vec::new());
        for row in rows {
            folders.extend(quoted(row[1]));
            names.extend([row[2], row[3]].into_iter().flat_map(quoted).filter(|name| !name.starts_with("cargo ")));
        }
        assert!(folders.len() > 15);
        folders.iter().for_each(|folder| assert!(root().join(folder).is_dir(), "{folder}"));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Choice::named(&names).unwrap();
    }

    #[test]
    fn the_page_names_all_crates_and_files_with_tests() {
        let page = page();
        let (_, times) = page.split_once("| tests | seconds |\n").unwrap();
        let (times, _) = times.split_once("\n\n").unwrap();
        let rows = times.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | ")).map(|(name, _)| name);
        let named: BTreeSet<&str> = rows.collect();
        let there = owners().unwrap();
        assert_eq!(named, there.iter().map(String::as_str).collect(), "cargo xtask test writes the table anew");
    }
}
