//! The conformance suite: every opcode × legal type × memory layout on a stack, compared with the oracle.

use crate::cases::{self, Case};
use crate::{run, stacks};
use bh_bytecode::compare::{Tolerance, compare, may_differ};
use bh_bytecode::interp::{Memory, offsets};
use bh_bytecode::random::{Bounds, Oracle};
use bh_bytecode::{DType, Kind, Opcode};
use bh_core::abi::status;
use bh_core::error::Error;
use bh_core::stack::Stack;
use std::fmt;

/// The results.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Name of the stack.
    pub stack: String,
    /// Cases that ran.
    pub cases: usize,
    /// Cases whose operation no engine of the stack supports.
    pub unsupported: usize,
    /// Those of them that ask for the same bits on all engines, which another engine may have to compute.
    pub same_bits_unsupported: usize,
    /// Opcodes with at least one case.
    pub opcodes: usize,
    /// A line for each case that failed.
    pub failures: Vec<String>,
}

impl Summary {
    /// Did every case agree with the oracle?
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { stack, cases, unsupported, same_bits_unsupported: same_bits, opcodes, failures } = self;
        let verdict = if failures.is_empty() { "ok" } else { "FAILED" };
        write!(f, "{stack}: {verdict}, {cases} cases of {opcodes} opcodes, {} failed", failures.len())?;
        if *unsupported > 0 {
            write!(f, ", {unsupported} unsupported, {same_bits} of them with the same bits on all engines")?;
        }
        Ok(())
    }
}

/// Runs the suite on a stack, opcode by opcode; calls `report` with a line for each failure.
pub fn run(stack: &mut Stack, report: &mut dyn FnMut(&str)) -> Summary {
    run_opcodes(stack, Opcode::ALL, report)
}

/// Runs the suite's cases of some opcodes.
pub fn run_opcodes(stack: &mut Stack, opcodes: &[Opcode], report: &mut dyn FnMut(&str)) -> Summary {
    run_sample(stack, opcodes, 1, report)
}

/// Runs one of `step` cases of some opcodes, and at least one of each.
pub fn run_sample(stack: &mut Stack, opcodes: &[Opcode], step: usize, report: &mut dyn FnMut(&str)) -> Summary {
    let mut summary = Summary { stack: stack.name().to_owned(), ..Summary::default() };
    for &opcode in opcodes {
        let cases = cases::cases(opcode);
        summary.opcodes += usize::from(!cases.is_empty());
        for case in cases.iter().skip(opcode.0 as usize % step.min(cases.len().max(1))).step_by(step) {
            summary.cases += 1;
            match check(stack, case) {
                Ok(()) => {}
                Err(Problem::Unsupported) => {
                    summary.unsupported += 1;
                    summary.same_bits_unsupported += usize::from(case.instr().has_one_form());
                }
                Err(Problem::Wrong(text)) => {
                    let line = format!("{}: {text}", case.title);
                    report(&line);
                    summary.failures.push(line);
                }
            }
        }
    }
    summary
}

enum Problem {
    Unsupported,
    Wrong(String),
}

fn check(stack: &mut Stack, case: &Case) -> Result<(), Problem> {
    let oracle = case.program.oracle().map_err(|error| Problem::Wrong(format!("the oracle fails: {error}")))?;
    match run::run(stack, &case.program) {
        Ok(memory) => compare_case(case, &oracle, &memory, stacks::bounds(stack.name())).map_err(Problem::Wrong),
        Err(Error { status: status::UNSUPPORTED, .. }) => Err(Problem::Unsupported),
        Err(error) => Err(Problem::Wrong(error.to_string())),
    }
}

/// Compares the output's elements within the operation's tolerance, and everything else bit by bit.
fn compare_case(case: &Case, oracle: &Oracle, actual: &Memory, bounds: Bounds) -> Result<(), String> {
    let batch = case.program.batch.as_ref();
    let instr = case.instr();
    let view = instr.operands()[0].as_view().ok_or("the output is a constant")?;
    let target = batch.views[view as usize].base;
    for (index, base) in batch.bases.iter().enumerate() {
        let Some(expected) = oracle.memory.get(base.id) else { continue };
        let found = actual.get(base.id).ok_or_else(|| format!("base {index} has no data"))?;
        if index as u32 != target {
            let difference = |error| format!("input base {index} changed: {error}");
            compare(base.dtype(), expected, found, &Tolerance::Exact).map_err(difference)?;
            continue;
        }
        let places: Vec<i64> =
            offsets(batch.views[view as usize].start, batch.shape(view), batch.stride(view)).collect();
        let elements = |bytes: &[u8]| pick(bytes, base.dtype().size(), &places);
        let tolerance = tolerance_of(case, oracle, bounds);
        compare(base.dtype(), &elements(expected), &elements(found), &tolerance).map_err(|error| error.to_string())?;
        let around = |bytes: &[u8]| blank(bytes, base.dtype().size(), &places);
        let difference = |error| format!("outside of the output view, {error}");
        compare(base.dtype(), &around(expected), &around(found), &Tolerance::Exact).map_err(difference)?;
    }
    Ok(())
}

/// The tolerance of the operation's results.
pub(crate) fn tolerance_of(case: &Case, oracle: &Oracle, bounds: Bounds) -> Tolerance {
    let batch = case.program.batch.as_ref();
    let instr = case.instr();
    let input = instr.inputs().first().and_then(|&operand| batch.dtype(operand)).unwrap_or(DType::Bool);
    let fold = matches!(instr.opcode.kind(), Kind::Reduction | Kind::Accumulate);
    if !fold || !may_differ(instr.opcode, input) {
        return bounds(instr.opcode, input);
    }
    let shape = instr.inputs()[0].as_view().map_or(&[][..], |view| batch.shape(view));
    let count: i64 = (0..shape.len()).filter(|axis| instr.param >> axis & 1 == 1).map(|axis| shape[axis]).product();
    let products = instr.opcode.combiner() == Some(Opcode::Multiply);
    // Each complex product rounds four times.
    let factor = if (products || instr.opcode == Opcode::Contract) && input.is_complex() { 4 } else { 1 };
    let magnitudes = oracle.magnitudes.get(&0).cloned().unwrap_or_default();
    Tolerance::Sum { count: count as u64 * factor, magnitudes, product: products }
}

/// The elements at these places.
pub fn pick(bytes: &[u8], size: usize, places: &[i64]) -> Vec<u8> {
    places.iter().flat_map(|&place| &bytes[place as usize * size..][..size]).copied().collect()
}

/// All elements, with zeros at these places.
fn blank(bytes: &[u8], size: usize, places: &[i64]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for &place in places {
        bytes[place as usize * size..][..size].fill(0);
    }
    bytes
}
