//! How suites ended, and the names of the tests that failed, read from the reports that test runners write.

use crate::command::{Failure, Outcome};
use std::path::PathBuf;

/// The suites so far.
#[derive(Default)]
pub struct Outcomes {
    suites: usize,
    failures: Vec<String>,
}

impl Outcomes {
    /// Adds a suite with the reports (JUnit's form) of its tests.
    pub fn add(&mut self, title: &str, result: Outcome, reports: &[PathBuf]) {
        self.suites += 1;
        let Err(Failure(reason)) = result else { return };
        let failed: Vec<String> = reports
            .iter()
            .filter_map(|report| std::fs::read_to_string(report).ok())
            .flat_map(|report| failed_tests(&report))
            .collect();
        self.failures.push(format!("{title}: {reason}"));
        self.failures.extend(failed.into_iter().map(|test| format!("    {test}")));
    }

    /// Lists what failed.
    pub fn end(self) -> Outcome {
        if self.failures.is_empty() {
            println!("all {} suites passed", self.suites);
            return Ok(());
        }
        Err(Failure(format!("failed:\n{}", self.failures.join("\n"))))
    }
}

/// The names of the failed tests in a report of JUnit's form.
fn failed_tests(report: &str) -> Vec<String> {
    let cases = report.split("<testcase ").skip(1);
    let failed = cases.filter(|case| {
        let own = case.split("</testcase>").next().unwrap_or_default();
        own.contains("<failure") || own.contains("<error")
    });
    let attribute = |case: &str, name: &str| {
        let rest = case.split_once(&format!("{name}=\""))?.1;
        Some(rest.split_once('"')?.0.to_owned())
    };
    failed
        .map(|case| {
            let [class, name] = ["classname", "name"].map(|key| attribute(&format!(" {case}"), &format!(" {key}")));
            format!("{} {}", class.unwrap_or_default(), name.unwrap_or_default())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<testsuite name="s"><testcase name="good" classname="a"></testcase>
        <testcase name="bad" classname="bh-core" time="1"><failure type="x">text</failure></testcase>
        <testcase classname="tests.test_x" name="worse[1]"><error message="m"/></testcase>
        <testcase classname="tests.test_x" name="short" time="0.1" /></testsuite>"#;

    #[test]
    fn names_of_failed_tests_are_read_from_a_report() {
        assert_eq!(failed_tests(REPORT), ["bh-core bad", "tests.test_x worse[1]"]);
    }

    #[test]
    fn a_suite_that_failed_is_an_error_at_the_end() {
        let mut outcomes = Outcomes::default();
        outcomes.add("first", Err(Failure("it ended".into())), &[]);
        outcomes.add("second", Ok(()), &[]);
        assert_eq!(outcomes.end().unwrap_err().0, "failed:\nfirst: it ended");
    }
}
