//! How suites ended, and the names of the tests that failed, read from the reports that test runners write.

use crate::command::{Failure, Outcome};
use std::path::PathBuf;

/// The suites so far.
#[derive(Default)]
pub struct Outcomes {
    suites: usize,
    failures: Vec<String>,
    reports: Vec<String>,
}

impl Outcomes {
    /// Adds a suite with the reports (JUnit's form) of its tests.
    pub fn add(&mut self, title: &str, result: Outcome, reports: &[PathBuf]) {
        self.suites += 1;
        let reports: Vec<String> = reports.iter().filter_map(|report| std::fs::read_to_string(report).ok()).collect();
        if let Err(Failure(reason)) = result {
            let failed = reports.iter().flat_map(|report| failed_tests(report));
            self.failures.push(format!("{title}: {reason}"));
            self.failures.extend(failed.map(|test| format!("    {test}")));
        }
        self.reports.extend(reports);
    }

    /// The reports so far.
    pub fn reports(&self) -> &[String] {
        &self.reports
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

/// A test of a report.
pub struct Case {
    pub class: String,
    pub name: String,
    pub seconds: f64,
    pub failed: bool,
}

/// The tests in a report of JUnit's form.
pub fn cases(report: &str) -> impl Iterator<Item = Case> {
    let attribute = |case: &str, name: &str| {
        let rest = case.split('>').next()?.split_once(&format!(" {name}=\""))?.1;
        Some(rest.split_once('"')?.0.to_owned())
    };
    report.split("<testcase").skip(1).map(move |case| {
        let own = case.split("</testcase>").next().unwrap_or_default();
        Case {
            class: attribute(case, "classname").unwrap_or_default(),
            name: attribute(case, "name").unwrap_or_default(),
            seconds: attribute(case, "time").and_then(|time| time.parse().ok()).unwrap_or_default(),
            failed: own.contains("<failure") || own.contains("<error"),
        }
    })
}

/// The names of the failed tests in a report.
fn failed_tests(report: &str) -> Vec<String> {
    cases(report).filter(|case| case.failed).map(|case| format!("{} {}", case.class, case.name)).collect()
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
