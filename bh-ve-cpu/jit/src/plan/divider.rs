//! Chooses quotients and square roots that are computed without the processor's divider: square roots, and quotients by divisors
//! that are constant along a row. The divider works while other instructions run, so multiplications pay only while it would be the
//! last to end.

use bh_bytecode::{DType, Opcode};
use bh_jit_abi::{Divider, Level, Request, Stride};
use bh_kernel::{Arg, SlotMode, Step};

/// Costs of operations on vectors of 64 bytes.
#[derive(Clone, Copy)]
struct Costs {
    /// Cycles in which the divider does nothing else, for quotients, those of `f32`, and roots.
    quotient: usize,
    single: usize,
    root: usize,
    /// Instructions that begin in a cycle.
    per_cycle: usize,
    /// Instructions of a root that is made of multiplications, which wait for each other.
    made_root: usize,
    /// Instructions of a quotient whose divisor stays the same along a row.
    invariant: usize,
}

impl Costs {
    /// Those of processors with such a divider; `None` if nobody knows them.
    fn of(divider: Divider) -> Option<Costs> {
        match divider {
            Divider::Slow => {
                Some(Costs { quotient: 16, single: 10, root: 24, per_cycle: 2, made_root: 16, invariant: 7 })
            }
            Divider::Fast => {
                Some(Costs { quotient: 10, single: 7, root: 18, per_cycle: 2, made_root: 40, invariant: 11 })
            }
            Divider::Wide => {
                Some(Costs { quotient: 10, single: 6, root: 18, per_cycle: 2, made_root: 16, invariant: 7 })
            }
            Divider::Unknown => None,
        }
    }
}

/// The quotients and roots that are computed by multiplications.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Multiplied {
    /// The quotients, dividend and divisor, whose divisor stays the same along a row.
    invariant: Vec<(Arg, Arg)>,
    /// Square roots, all of them.
    roots: bool,
}

/// A divisor of a kernel's quotients.
struct Divisor {
    arg: Arg,
    dtype: DType,
    /// Does it stay the same along a row?
    is_invariant: bool,
    dividends: Vec<Arg>,
}

impl Multiplied {
    /// Chooses for a kernel of `instructions` instructions.
    pub(crate) fn choose(request: &Request, instructions: usize) -> Multiplied {
        let divisors = divisors(request);
        let costs = Costs::of(request.divider).filter(|_| request.level == Level::Avx512);
        if let Some(costs) = costs {
            let ways = [false, true].map(|roots| Multiplied::beside(request, costs, instructions, &divisors, roots));
            let best = ways.into_iter().min_by_key(|(cycles, _)| *cycles);
            best.map(|(_, chosen)| chosen).unwrap_or_default()
        } else if request.fast_math {
            Multiplied {
                invariant: all(divisors.iter().filter(|divisor| divisor.is_invariant)),
                ..Multiplied::default()
            }
        } else {
            Multiplied::default()
        }
    }

    /// Chooses quotients if all roots are made of multiplications, or none; also gives the cycles.
    fn beside(
        request: &Request,
        costs: Costs,
        instructions: usize,
        divisors: &[Divisor],
        roots: bool,
    ) -> (usize, Multiplied) {
        let cycles = |divider: usize, others: usize| divider.max(others / costs.per_cycle);
        let cost = |divisor: &Divisor| if divisor.dtype == DType::F32 { costs.single } else { costs.quotient };
        let mut divider: usize = divisors.iter().map(|divisor| divisor.dividends.len() * cost(divisor)).sum();
        let mut others = instructions;
        let number = request.steps.iter().filter(|step| is_root(step)).count();
        if roots {
            others += number * costs.made_root;
        } else {
            divider += number * costs.root;
        }
        let mut chosen = Multiplied { roots: roots && number > 0, ..Multiplied::default() };
        // Those that save most come first.
        let mut divisors: Vec<&Divisor> = divisors.iter().filter(|divisor| divisor.is_invariant).collect();
        divisors.sort_by_key(|divisor| std::cmp::Reverse(divisor.dividends.len()));
        for divisor in divisors {
            let (count, cost) = (divisor.dividends.len(), cost(divisor));
            if request.fast_math {
                // They need not be exact: one product each.
                chosen.invariant.extend(all([divisor]));
                divider -= count * cost;
                continue;
            }
            // The number of quotients by one divisor that keeps the other units busy while the divider computes the rest.
            let with = |made: usize| others + made * costs.invariant;
            let time = |made: usize| cycles(divider - made * cost, with(made));
            let best = (1..=count).min_by_key(|&made| time(made)).unwrap_or(count);
            if time(best) < cycles(divider, others) {
                chosen.invariant.extend(all([divisor]).into_iter().take(best));
                (divider, others) = (divider - best * cost, with(best));
            }
        }
        (cycles(divider, others), chosen)
    }

    /// Is the step a quotient that is made by multiplications?
    pub(crate) fn has_quotient(&self, step: &Step) -> bool {
        quotient(step).is_some_and(|(_, quotient)| self.invariant.contains(&quotient))
    }

    /// Are quotients by this, which stays the same along a row, made by multiplications?
    pub(crate) fn divides_by(&self, divisor: Arg) -> bool {
        self.invariant.iter().any(|(_, by)| *by == divisor)
    }

    /// The same for the elements of a slot.
    pub(crate) fn divides_by_slot(&self, request: &Request, slot: u16) -> bool {
        let mut values = makers(request).zip(0..);
        values.any(|(step, value)| *step == Step::Load { slot } && self.divides_by(Arg::Value(value)))
    }

    /// Are the square roots made by multiplications?
    pub(crate) fn has_roots(&self) -> bool {
        self.roots
    }
}

/// The steps that make values, in their order.
fn makers(request: &Request) -> impl Iterator<Item = &Step> {
    request.steps.iter().filter(|step| !matches!(step, Step::Store { .. } | Step::Reduce { .. }))
}

/// The divisors of quotients of floats.
fn divisors(request: &Request) -> Vec<Divisor> {
    let makers: Vec<&Step> = makers(request).collect();
    let is_invariant = |arg: Arg| match arg {
        Arg::Constant(_) => true,
        Arg::Value(value) => match *makers[usize::from(value)] {
            Step::Load { slot } => {
                let form = &request.slots[usize::from(slot)];
                let long = request.fast_math || !request.short;
                long && form.mode == SlotMode::Read && form.stride == Stride::Zero
            }
            _ => false,
        },
    };
    let mut divisors: Vec<Divisor> = Vec::new();
    for (dtype, (dividend, arg)) in makers.iter().filter_map(|step| quotient(step)) {
        match divisors.iter_mut().find(|known| (known.arg, known.dtype) == (arg, dtype)) {
            Some(known) => known.dividends.push(dividend),
            None => divisors.push(Divisor { arg, dtype, is_invariant: is_invariant(arg), dividends: vec![dividend] }),
        }
    }
    divisors
}

/// All quotients by these.
fn all<'a>(divisors: impl IntoIterator<Item = &'a Divisor>) -> Vec<(Arg, Arg)> {
    let quotients = |divisor: &'a Divisor| divisor.dividends.iter().map(|dividend| (*dividend, divisor.arg));
    divisors.into_iter().flat_map(quotients).collect()
}

/// The float type of a step that is a quotient, its dividend and its divisor.
fn quotient(step: &Step) -> Option<(DType, (Arg, Arg))> {
    match *step {
        Step::Compute { opcode: Opcode::Divide, input: dtype @ (DType::F32 | DType::F64), args, .. } => {
            Some((dtype, (args[0], args[1])))
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
    use bh_kernel::SlotMode;

    /// The kernel of a / b, and of b divided by that.
    fn kernel() -> Request {
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
            divide([1, 0]),
            Step::Store { slot: 2, arg: Arg::Value(2) },
            Step::Store { slot: 3, arg: Arg::Value(3) },
        ];
        crate::request(Level::Avx512, &modes, steps)
    }

    #[test]
    fn roots_leave_the_divider_to_quotients() {
        let mut request = kernel();
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
        assert!(roots(Divider::Wide, 10) && !roots(Divider::Wide, 100));
        assert!(!roots(Divider::Unknown, 10));
        assert!(Multiplied::choose(&Request { fast_math: true, ..request.clone() }, 10).roots);
        let text = crate::text(&request).unwrap();
        assert!(text.contains("rsqrt14") && text.contains("fdiv <8 x double>"), "{text}");
    }
    /// The kernel of a / b and a / 3, of 32-bit floats or not, where b stays the same along a row.
    fn invariant(level: Level, dtype: DType) -> Request {
        let mut request = kernel();
        request.level = level;
        for slot in &mut request.slots {
            slot.dtype = dtype;
        }
        request.slots[1].stride = Stride::Zero;
        request.constants = vec![dtype];
        for (step, divisor) in [(2, Arg::Value(1)), (3, Arg::Constant(0))] {
            request.steps[step] = Step::Compute {
                opcode: Opcode::Divide,
                param: 0,
                input: dtype,
                output: dtype,
                args: [Arg::Value(0), divisor, divisor],
                count: 2,
            };
        }
        request
    }

    #[test]
    fn invariant_divisors_cost_nothing_in_the_loop() {
        let by = |request: &Request, instructions| {
            let chosen = Multiplied::choose(request, instructions);
            let (row, constant) = (chosen.divides_by_slot(request, 1), chosen.divides_by(Arg::Constant(0)));
            (row, constant)
        };
        // A fast divider makes one of them meanwhile.
        for (divider, both) in [(Divider::Slow, true), (Divider::Fast, false)] {
            for dtype in [DType::F32, DType::F64] {
                let request = Request { divider, ..invariant(Level::Avx512, dtype) };
                assert_eq!(by(&request, 5), (true, both), "{divider:?}, {dtype}");
                assert_eq!(by(&request, 100), (false, false));
                assert_eq!(by(&Request { fast_math: true, ..request.clone() }, 100), (true, true));
                let narrow = Request { level: Level::Avx2, ..request };
                assert_eq!(by(&narrow, 5), (false, false));
                assert_eq!(by(&Request { fast_math: true, ..narrow }, 5), (true, true));
            }
        }
        assert_eq!(by(&invariant(Level::Avx512, DType::F64), 30), (true, false));
        let short = Request { short: true, ..invariant(Level::Avx512, DType::F64) };
        assert_eq!(by(&short, 5), (false, true));
        assert_eq!(by(&Request { fast_math: true, ..short }, 5), (true, true));
    }

    #[test]
    fn loops_divide_by_nothing_invariant() {
        for level in [Level::Avx2, Level::Avx512] {
            for (dtype, fast_math) in [(DType::F32, true), (DType::F64, true), (DType::F64, false)] {
                let text = crate::text(&Request { fast_math, ..invariant(level, dtype) }).unwrap();
                let lines: Vec<&str> = text.lines().collect();
                // Two dividends are tried before the loop.
                let divides = |pair: &&[&str]| pair[1].contains(" fdiv ") && pair[1].contains(" x ");
                let divisions = lines.windows(2).filter(divides).filter(|pair| !pair[1].contains("<2 x "));
                let in_loops = divisions.filter(|pair| !pair[0].starts_with("slow")).count();
                let divides = level == Level::Avx2 && !fast_math;
                assert_eq!(in_loops > 0, divides, "{level:?}, {dtype}, {fast_math}: {text}");
            }
        }
    }
}
