//! Failed instructions, as ranks report them to each other.

use bh_core::error::Error;

/// An instruction that failed on a rank.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The program's instruction, if known.
    pub instr: Option<u32>,
    /// The cause.
    pub error: Error,
    /// Further instructions that failed. Only siblings report several, so messages do not carry them.
    pub also: Vec<u32>,
}

impl Failure {
    /// The failure of one instruction.
    pub fn new(instr: Option<u32>, error: Error) -> Failure {
        Failure { instr, error, also: Vec::new() }
    }

    /// Is this one of the instructions that failed?
    pub fn concerns(&self, instr: u32) -> bool {
        self.instr == Some(instr) || self.also.contains(&instr)
    }
}

/// The failure of the earlier instruction, extended by the other's instructions. A failure without an instruction comes
/// last.
pub fn first_of(one: Option<Failure>, other: Option<Failure>) -> Option<Failure> {
    let place = |failure: &Failure| failure.instr.unwrap_or(u32::MAX);
    match (one, other) {
        (Some(one), Some(other)) => {
            let (mut first, second) = if place(&other) < place(&one) { (other, one) } else { (one, other) };
            first.also.extend(second.instr.into_iter().chain(second.also));
            Some(first)
        }
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_core::abi::status;

    #[test]
    fn the_failure_of_the_earliest_instruction_counts_on_the_lowest_rank() {
        let failure = |text: &str, instr| Failure::new(instr, Error::new(status::EXECUTION, text));
        let first = |ranks: Vec<Option<Failure>>| {
            ranks.into_iter().reduce(first_of).flatten().map_or(String::new(), |failure| failure.error.text)
        };
        assert_eq!(first(vec![None, None, None]), "");
        assert_eq!(first(vec![None, Some(failure("a", Some(3))), None]), "a");
        let both = [Some(failure("a", Some(3))), Some(failure("b", Some(2)))];
        assert_eq!(first(both.to_vec()), "b");
        let [a, b] = both.clone();
        assert!(
            first_of(a, b).is_some_and(|failure| failure.concerns(3) && failure.concerns(2) && !failure.concerns(1))
        );
        assert_eq!(first(vec![both[0].clone(), Some(failure("c", Some(3)))]), "a");
        assert_eq!(first(vec![Some(failure("d", None)), None, both[0].clone()]), "a");
    }
}
