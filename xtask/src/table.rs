//! Tables of results in the pages: the commands that run the tests write their rows.

use crate::command::{Failure, Outcome, line, root};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// A table of a page: its first line, and how many cells of a row say which row it is.
pub struct Table {
    pub page: &'static str,
    pub header: &'static str,
    pub keys: usize,
}

impl Table {
    /// Writes rows into the page, in place of those with the same first cells; the others stay.
    pub fn write(&self, rows: &[Vec<String>]) -> Outcome {
        let file = root().join(self.page);
        let text = std::fs::read_to_string(&file)?;
        let changed = self.with(&text, rows);
        let changed = changed.ok_or_else(|| Failure(format!("{} has no table '{}'", self.page, self.header)))?;
        std::fs::write(file, changed).map_err(Failure::from)
    }

    fn with(&self, text: &str, rows: &[Vec<String>]) -> Option<String> {
        let (before, rest) = text.split_once(&format!("{}\n", self.header))?;
        let (rule, rest) = rest.split_once('\n')?;
        let length = rest.split_inclusive('\n').take_while(|line| line.starts_with('|')).map(str::len).sum();
        let (old, after) = rest.split_at_checked(length)?;
        let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        let mut all: Vec<Vec<String>> = old.lines().map(cells).collect();
        for row in rows {
            match all.iter_mut().find(|known| known.get(..self.keys) == row.get(..self.keys)) {
                Some(known) => known.clone_from(row),
                None => all.push(row.clone()),
            }
        }
        let lines: String = all.iter().map(|row| format!("| {} |\n", row.join(" | "))).collect();
        Some(format!("{before}{}\n{rule}\n{lines}{after}", self.header))
    }
}

/// How many tests passed, failed and were skipped.
pub type Counts = [usize; 3];

/// The counts of the last line in which pytest or nextest counts tests.
pub fn counts(text: &str) -> Option<Counts> {
    text.lines().rev().map(counts_of_line).find(|counts| counts[..2] != [0, 0])
}

fn counts_of_line(line: &str) -> Counts {
    let trimmed = line.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let words: Vec<&str> = trimmed.collect();
    let count = |names: &[&str]| {
        let pairs = words.windows(2).filter(|pair| names.contains(&pair[1]));
        pairs.filter_map(|pair| pair[0].parse::<usize>().ok()).sum()
    };
    [count(&["passed"]), count(&["failed", "error", "errors"]), count(&["skipped"])]
}

/// Runs a program of tests, shows what it says, and returns whether it succeeded and its counts.
pub fn run_tests(command: &mut Command) -> Outcome<(bool, Option<Counts>)> {
    eprintln!("+ {}", line(command));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    // nextest counts in its errors, pytest in its output.
    let reader = std::thread::spawn(move || stderr.map(|stream| show(BufReader::new(stream))).unwrap_or_default());
    let said = stdout.map(|stream| show(BufReader::new(stream))).unwrap_or_default();
    let said = [said, reader.join().unwrap_or_default()].concat();
    Ok((child.wait()?.success(), counts(&said)))
}

/// Prints lines as they come, and returns them.
fn show(stream: impl BufRead) -> String {
    let mut all = String::new();
    for line in stream.lines().map_while(Result::ok) {
        println!("{line}");
        all.push_str(&line);
        all.push('\n');
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{Table, counts};

    #[test]
    fn rows_replace_those_of_the_same_name_and_leave_the_rest_of_the_page() {
        let table = Table { page: "", header: "| suite | passed |", keys: 1 };
        let page = "Text.\n\n| suite | passed |\n|---|---|\n| a | 1 |\n| b | 2 |\n\nMore.\n";
        let rows = [vec!["b".to_owned(), "3".to_owned()], vec!["c".to_owned(), "4".to_owned()]];
        let expected = "Text.\n\n| suite | passed |\n|---|---|\n| a | 1 |\n| b | 3 |\n| c | 4 |\n\nMore.\n";
        assert_eq!(table.with(page, &rows).as_deref(), Some(expected));
        assert_eq!(table.with("Text.\n", &rows), None);
    }

    #[test]
    fn both_runners_are_understood() {
        let pytest = "....\n1974 passed, 14 skipped, 3 warnings in 61.10s (0:01:01)\n";
        assert_eq!(counts(pytest), Some([1974, 0, 14]));
        assert_eq!(counts("=== 2 failed, 5 passed, 1 error in 3s ===\n"), Some([5, 3, 0]));
        let nextest = "     Summary [   3.3s] 39 tests run: 38 passed (1 slow), 1 failed, 2 skipped\n        FAIL a b\nerror: test run failed\n";
        assert_eq!(counts(nextest), Some([38, 1, 2]));
        assert_eq!(counts("error: no such crate\n"), None);
    }
}
