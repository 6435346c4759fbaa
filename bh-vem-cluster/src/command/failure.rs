//! What ranks tell each other of instructions that failed.

use bh_core::error::Error;

/// An instruction that failed on a rank.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Which of the program, if that is known.
    pub instr: Option<u32>,
    /// Why.
    pub error: Error,
}

/// The failure of the earlier instruction; of one instruction, or of unknown ones, the first.
pub fn first_of(one: Option<Failure>, other: Option<Failure>) -> Option<Failure> {
    let place = |failure: &Failure| failure.instr.unwrap_or(u32::MAX);
    match (one, other) {
        (Some(one), Some(other)) => Some(if place(&other) < place(&one) { other } else { one }),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_core::abi::status;

    #[test]
    fn the_failure_of_the_earliest_instruction_counts_on_the_lowest_rank() {
        let failure = |text: &str, instr| Failure { instr, error: Error::new(status::EXECUTION, text) };
        let first = |ranks: Vec<Option<Failure>>| {
            ranks.into_iter().reduce(first_of).flatten().map_or(String::new(), |failure| failure.error.text)
        };
        assert_eq!(first(vec![None, None, None]), "");
        assert_eq!(first(vec![None, Some(failure("a", Some(3))), None]), "a");
        let both = [Some(failure("a", Some(3))), Some(failure("b", Some(2)))];
        assert_eq!(first(both.to_vec()), "b");
        assert_eq!(first(vec![both[0].clone(), Some(failure("c", Some(3)))]), "a");
        assert_eq!(first(vec![Some(failure("d", None)), None, both[0].clone()]), "a");
    }
}
