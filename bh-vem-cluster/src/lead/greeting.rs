//! What all processes must agree on before they work together. Rank 0's greeting goes down the tree of commands, and what
//! differs comes back up, so that no rank hears of more than a few others.

use crate::transport::remote::ENDED;
use crate::transport::tree::{collect, leader, spread};
use crate::transport::{Class, Port};
use bh_core::error::Result;

/// In the place of a program that serves, whatever rank 0's is.
const ANY: &str = "program: bh serve";

/// What a process greets the others with, line by line: the version, the program, the settings and the first stack.
pub fn greeting(settings: &str, description: &str) -> String {
    let line = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let words: Vec<String> =
        line.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    format!("bh {}\nprogram: {}\n{}\n{description}", env!("CARGO_PKG_VERSION"), program(&words), settings)
}

/// The program of a command line: its name, and that of the file, the module or the text that an interpreter runs.
fn program(words: &[String]) -> String {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let mut words = words.iter();
    let first = name(words.next().map_or("", String::as_str));
    let mut rest = words.skip_while(|word| word.starts_with('-') && !["-m", "-c"].contains(&word.as_str()));
    match rest.next().map(String::as_str) {
        Some("serve") if first == "bh" => "bh serve".to_owned(),
        Some("-m" | "-c") if first.starts_with("python") => {
            let text = rest.next().map_or("", String::as_str);
            format!("python {}", text.lines().next().unwrap_or_default())
        }
        Some(file) if first.starts_with("python") => format!("python {}", name(file)),
        _ => first,
    }
}

/// How the greeting of rank 0 and that of another rank differ, if they do.
pub fn difference(first: &str, other: &str, rank: usize) -> Option<String> {
    let (mut first, mut other) = (first.lines(), other.lines());
    loop {
        let (left, right) = (first.next(), other.next());
        if left.is_none() && right.is_none() {
            return None;
        }
        if left != right && right != Some(ANY) {
            let shown = |line: Option<&str>| line.map_or("nothing more".to_owned(), |line| format!("'{line}'"));
            return Some(format!("the ranks differ: rank 0 has {}, rank {rank} has {}", shown(left), shown(right)));
        }
    }
}

/// What is wrong with the lowest of this rank and those below it in the tree, if something is.
pub fn verdict(port: &mut Port, mine: Option<String>) -> Result<Option<String>> {
    collect(port, mine, |all, said| {
        let said = String::from_utf8_lossy(said).into_owned();
        Ok(all.or(Some(said).filter(|said| !said.is_empty())))
    })
}

/// What came of a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// All ranks are alike.
    Alike,
    /// They are not: rank 0 has the error.
    Unlike,
    /// Rank 0 has ended without a context.
    Ended,
}

/// Another rank's side: compares rank 0's greeting with its own, or tells of what is wrong with itself.
pub fn answer(port: &mut Port, mine: &Result<String>) -> Result<Met> {
    let me = port.hosted().start;
    let above = leader(me);
    let theirs = match port.receive(me, above) {
        Err(error) if error.text == ENDED => return Ok(Met::Ended),
        other => other?,
    };
    spread(port, &theirs)?;
    let own = match mine {
        Ok(mine) => difference(&String::from_utf8_lossy(&theirs), mine, me),
        Err(error) => Some(format!("rank {me}: {}", error.text)),
    };
    let said = verdict(port, own)?;
    port.send(Class::Control, me, above, said.unwrap_or_default().into_bytes())?;
    let word = port.receive(me, above)?;
    spread(port, &word)?;
    Ok(if word == [1] { Met::Alike } else { Met::Unlike })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named() {
        let here = greeting("small_bytes 16", "[stacks]\na = 1");
        assert_eq!(difference(&here, &here, 1), None);
        let version = env!("CARGO_PKG_VERSION");
        let other = here.replace(version, "9.9");
        let said = difference(&here, &other, 3).unwrap();
        assert_eq!(said, format!("the ranks differ: rank 0 has 'bh {version}', rank 3 has 'bh 9.9'"));
        let said = difference(&here, &format!("{here}\nb = 2"), 1).unwrap();
        assert_eq!(said, "the ranks differ: rank 0 has nothing more, rank 1 has 'b = 2'");
        let two = |program: &str| format!("bh 1\nprogram: {program}\nx");
        assert_eq!(difference(&two("a"), &two("bh serve"), 1), None);
        assert!(difference(&two("a"), &two("b"), 1).is_some());
    }

    #[test]
    fn programs_are_told_by_their_names() {
        let of = |line: &str| program(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of("/a/heat 3 4"), "heat");
        assert_eq!(of("./bh serve --stack x"), "bh serve");
        assert_eq!(of("/usr/bin/python3 -u /x/heat.py 5"), "python heat.py");
        assert_eq!(of("python -m heat 5"), "python heat");
        assert_eq!(of("python"), "python");
    }
}
