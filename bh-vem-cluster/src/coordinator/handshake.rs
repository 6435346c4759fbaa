//! The handshake: before processes work together they compare version, program, settings and stack. Rank 0's text goes
//! down the tree of processes, differences come back up, so each rank talks to a few others only.

use crate::transport::remote::ENDED;
use crate::transport::tree::{broadcast, collect, tree_parent};
use crate::transport::{Class, Port};
use bh_core::error::Result;

/// The program line of a server, which matches any program of rank 0.
const ANY: &str = "program: bh serve";

/// The text that processes compare, line by line: version, program, settings and first stack.
pub fn handshake(settings: &str, description: &str) -> String {
    let line = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let words: Vec<String> =
        line.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    format!("bh {}\nprogram: {}\n{}\n{description}", env!("CARGO_PKG_VERSION"), program(&words), settings)
}

/// The program of a command line: its name, and the file, module or text that an interpreter runs.
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

/// The first difference between the texts of rank 0 and another rank.
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

/// The difference found on the lowest rank among this one and those below it in the tree.
pub fn first_difference(port: &mut Port, mine: Option<String>) -> Result<Option<String>> {
    collect(port, mine, |all, said| {
        let said = String::from_utf8_lossy(said).into_owned();
        Ok(all.or(Some(said).filter(|said| !said.is_empty())))
    })
}

/// The result of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All ranks agree.
    Agreed,
    /// Some rank differs; rank 0 has the error.
    Differs,
    /// Rank 0 has ended without a context.
    Ended,
}

/// The other ranks' side: compares rank 0's text with its own, or reports its own error.
pub fn answer(port: &mut Port, mine: &Result<String>) -> Result<Outcome> {
    let me = port.hosted().start;
    let above = tree_parent(me);
    let theirs = match port.receive(me, above) {
        Err(error) if error.text == ENDED => return Ok(Outcome::Ended),
        other => other?,
    };
    broadcast(port, &theirs)?;
    let own = match mine {
        Ok(mine) => difference(&String::from_utf8_lossy(&theirs), mine, me),
        Err(error) => Some(format!("rank {me}: {}", error.text)),
    };
    let said = first_difference(port, own)?;
    port.send(Class::Control, me, above, said.unwrap_or_default().into_bytes())?;
    let word = port.receive(me, above)?;
    broadcast(port, &word)?;
    Ok(if word == [1] { Outcome::Agreed } else { Outcome::Differs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named() {
        let here = handshake("small_bytes 16", "[stacks]\na = 1");
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
    fn programs_are_identified_by_name() {
        let of = |line: &str| program(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of("/a/heat 3 4"), "heat");
        assert_eq!(of("./bh serve --stack x"), "bh serve");
        assert_eq!(of("/usr/bin/python3 -u /x/heat.py 5"), "python heat.py");
        assert_eq!(of("python -m heat 5"), "python heat");
        assert_eq!(of("python"), "python");
    }
}
