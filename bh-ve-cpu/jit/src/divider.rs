//! What a kernel makes without the processor's divider: quotients that share divisors, and square roots. The divider works
//! while other instructions run, so that multiplications pay only as long as it would be the last to end.

use bh_bytecode::{DType, Opcode};
use bh_fuser::lower::{Arg, Step};
use bh_jit_abi::{Divider, Level, Request};

/// What vectors of eight lanes cost.
#[derive(Clone, Copy)]
struct Costs {
    /// Cycles in which the divider does nothing else, for quotients and for roots.
    quotient: usize,
    root: usize,
    /// Instructions that begin in a cycle.
    per_cycle: usize,
    /// Instructions of a root that is made of multiplications, which wait for each other.
    made_root: usize,
}

impl Costs {
    /// Those of processors with such a divider.
    fn of(divider: Divider) -> Costs {
        match divider {
            Divider::Slow => Costs { quotient: 16, root: 24, per_cycle: 2, made_root: 16 },
            Divider::Fast => Costs { quotient: 10, root: 18, per_cycle: 2, made_root: 40 },
        }
    }
}

/// Instructions of a reciprocal, and of each quotient made with it.
const RECIPROCAL_INSTRUCTIONS: usize = 13;
const QUOTIENT_INSTRUCTIONS: usize = 15;

/// What is made by multiplications.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Multiplied {
    /// The quotients, dividend and divisor, that are made with the divisor's reciprocal.
    quotients: Vec<(Arg, Arg)>,
    /// Square roots, all of them.
    roots: bool,
}

impl Multiplied {
    /// Chooses for a kernel of so many instructions.
    pub(crate) fn choose(request: &Request, instructions: usize) -> Multiplied {
        let mut chosen = Multiplied::default();
        if request.level != Level::Avx512 {
            return chosen;
        }
        let mut divisors: Vec<(Arg, usize)> = Vec::new();
        for divisor in request.steps.iter().filter_map(quotient).map(|(_, divisor)| divisor) {
            match divisors.iter_mut().find(|(known, _)| *known == divisor) {
                Some((_, count)) => *count += 1,
                None => divisors.push((divisor, 1)),
            }
        }
        let mut quotients: usize = divisors.iter().map(|(_, count)| count).sum();
        let mut roots = request.steps.iter().filter(|step| is_root(step)).count();
        let mut others = instructions;
        let costs = Costs::of(request.divider);
        let cycles = |quotients: usize, roots: usize, others: usize| {
            (quotients * costs.quotient + roots * costs.root).max(others / costs.per_cycle)
        };
        let with = others + roots * costs.made_root;
        if cycles(quotients, 0, with) < cycles(quotients, roots, others) {
            (roots, others, chosen.roots) = (0, with, true);
        }
        if request.fast_math {
            // Quotients need not be exact, and LLVM knows what to do.
            return chosen;
        }
        // Those that save most come first; of one divisor so many that the divider is busy with the others meanwhile.
        divisors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (divisor, count) in divisors.into_iter().filter(|(_, count)| *count > 1) {
            let with = |made: usize| others + RECIPROCAL_INSTRUCTIONS + made * QUOTIENT_INSTRUCTIONS;
            let time = |made: usize| cycles(quotients - made, roots, with(made));
            // Beside slow dividers, those that are left would make vectors narrow.
            let least = if request.divider == Divider::Slow { count } else { 1 };
            let best = (least..=count).min_by_key(|&made| time(made)).unwrap_or(count);
            if time(best) < cycles(quotients, roots, others) {
                let of_divisor = request.steps.iter().filter_map(quotient).filter(|(_, by)| *by == divisor);
                chosen.quotients.extend(of_divisor.take(best));
                (quotients, others) = (quotients - best, with(best));
            }
        }
        chosen
    }

    /// Is the step a quotient that is made with a reciprocal?
    pub(crate) fn has_quotient(&self, step: &Step) -> bool {
        quotient(step).is_some_and(|quotient| self.quotients.contains(&quotient))
    }

    /// Are any quotients made with reciprocals?
    pub(crate) fn has_quotients(&self) -> bool {
        !self.quotients.is_empty()
    }

    /// Are the square roots made by multiplications?
    pub(crate) fn has_roots(&self) -> bool {
        self.roots
    }
}

/// What a step divides by what, if it makes a quotient of 64-bit floats.
fn quotient(step: &Step) -> Option<(Arg, Arg)> {
    match step {
        Step::Compute { opcode: Opcode::Divide, input: DType::F64, output: DType::F64, args, .. } => {
            Some((args[0], args[1]))
        }
        _ => None,
    }
}

/// Is it a square root of 64-bit floats?
pub(crate) fn is_root(step: &Step) -> bool {
    matches!(step, Step::Compute { opcode: Opcode::Sqrt, input: DType::F64, .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_fuser::lower::SlotMode;

    /// The kernel of a / b, and of that by b again or of b / a.
    fn kernel(shared: bool) -> Request {
        let divide = |args: [u16; 2]| Step::Compute {
            opcode: Opcode::Divide,
            param: 0,
            input: DType::F64,
            output: DType::F64,
            args: [Arg::Value(args[0]), Arg::Value(args[1]), Arg::Value(args[1])],
            count: 2,
        };
        let modes = [SlotMode::Read, SlotMode::Read, SlotMode::Write, SlotMode::Write];
        let steps = vec![
            Step::Load { slot: 0 },
            Step::Load { slot: 1 },
            divide([0, 1]),
            divide(if shared { [2, 1] } else { [1, 0] }),
            Step::Store { slot: 2, arg: Arg::Value(2) },
            Step::Store { slot: 3, arg: Arg::Value(3) },
        ];
        crate::request(Level::Avx512, &modes, steps)
    }

    #[test]
    fn shared_divisors_have_reciprocals() {
        assert!(crate::text(&kernel(true)).unwrap().contains("rcp14"));
        assert!(!crate::text(&kernel(false)).unwrap().contains("rcp14"));
    }

    #[test]
    fn reciprocals_give_way_to_other_instructions() {
        let request = kernel(true);
        let shared = Multiplied {
            quotients: vec![(Arg::Value(0), Arg::Value(1)), (Arg::Value(2), Arg::Value(1))],
            roots: false,
        };
        assert_eq!(Multiplied::choose(&request, 10), shared);
        assert_eq!(Multiplied::choose(&request, 100), Multiplied::default());
        let fast = Request { divider: Divider::Fast, ..kernel(true) };
        let one = Multiplied { quotients: vec![(Arg::Value(0), Arg::Value(1))], roots: false };
        assert_eq!(Multiplied::choose(&fast, 10), one);
        assert_eq!(Multiplied::choose(&fast, 20), Multiplied::default());
        assert_eq!(Multiplied::choose(&Request { fast_math: true, ..request }, 10), Multiplied::default());
    }

    #[test]
    fn roots_leave_the_divider_to_quotients() {
        let mut request = kernel(false);
        request.steps[3] = Step::Compute {
            opcode: Opcode::Sqrt,
            param: 0,
            input: DType::F64,
            output: DType::F64,
            args: [Arg::Value(2); 3],
            count: 1,
        };
        let roots =
            |divider, instructions| Multiplied::choose(&Request { divider, ..request.clone() }, instructions).roots;
        assert!(roots(Divider::Slow, 10) && !roots(Divider::Slow, 100));
        assert!(roots(Divider::Fast, 1) && !roots(Divider::Fast, 20));
        assert!(Multiplied::choose(&Request { fast_math: true, ..request.clone() }, 10).roots);
        let text = crate::text(&request).unwrap();
        assert!(text.contains("rsqrt14") && text.contains("fdiv <8 x double>"), "{text}");
    }
}
