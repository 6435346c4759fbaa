//! Random valid programs from a seed, their oracle, and a shrinker that minimises failing ones. For the test suites of
//! every component and stack.

mod generate;
mod shrink;
mod sprinkle;
mod views;

pub use generate::program;
pub use shrink::shrink;
pub use sprinkle::sprinkled;

use crate::batch::Batch;
use crate::compare::{Tolerance, compare, may_differ, tolerance};

use crate::dtype::{DType, TypeSet};
use crate::dump::Dump;
use crate::interp::{InterpError, Interpreter, Magnitudes, Memory};
use crate::opcode::{Kind, Opcode};

/// The tolerance of an elementwise opcode on inputs of a type.
pub type Bounds = fn(Opcode, DType) -> Tolerance;

/// The limits of random programs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The most instructions, about; programs have one or more.
    pub max_instrs: usize,
    /// The most elements of a view.
    pub max_elements: i64,
    /// The highest rank.
    pub max_rank: usize,
    /// The element types.
    pub types: TypeSet,
    /// Operations whose right results may differ. Nothing reads such a result, so that it can be compared within the
    /// tolerance of one operation.
    pub allow_inexact: bool,
    /// NaN, infinities, extreme integers, negative zero, and any byte for true among the data.
    pub allow_specials: bool,
    /// Views without elements.
    pub allow_empty: bool,
    /// Gather and scatter.
    pub allow_index: bool,
    /// FREE and DISCARD.
    pub allow_drops: bool,
    /// Operations on floats and complex numbers ask for the same bits on all engines: folds have fixed trees, and functions
    /// [`SAME_BITS`](crate::opcode::SAME_BITS).
    pub same_bits: bool,
}

impl Default for Options {
    /// Small programs with everything in them.
    fn default() -> Options {
        Options {
            max_instrs: 30,
            max_elements: 200,
            max_rank: 16,
            types: TypeSet::ALL,
            allow_inexact: true,
            allow_specials: true,
            allow_empty: true,
            allow_index: true,
            allow_drops: true,
            same_bits: false,
        }
    }
}

/// A batch and the data that its bases have before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The batch.
    pub batch: Batch,
    /// The initial contents; bases that are not in it are born in the batch and overwritten as a whole before use.
    pub memory: Memory,
}

/// The expected results of a program.
#[derive(Clone, Debug)]
pub struct Oracle {
    /// The contents of all bases that have data after the batch.
    pub memory: Memory,
    /// The magnitudes of sums and products.
    pub magnitudes: Magnitudes,
}

impl Program {
    /// The program as a dump file, for a bug report.
    pub fn dump(&self) -> Vec<u8> {
        crate::dump::write(&Dump::new(self.batch.clone(), &self.memory))
    }

    /// Runs the program on the reference interpreter.
    pub fn oracle(&self) -> Result<Oracle, InterpError> {
        let mut memory = self.memory.clone();
        let mut magnitudes = Magnitudes::new();
        Interpreter { memory: &mut memory, extensions: None, magnitudes: Some(&mut magnitudes) }
            .execute(&self.batch.as_ref())?;
        Ok(Oracle { memory, magnitudes })
    }
}

impl Oracle {
    /// Compares contents with the oracle's, base by base, and describes the first base that differs. A base which one
    /// inexact operation wrote as a whole is compared within that operation's tolerance, any other bit by bit.
    pub fn check(&self, batch: &Batch, actual: &Memory) -> Result<(), String> {
        self.check_within(batch, actual, tolerance)
    }

    /// [`Oracle::check`] with other tolerances of elementwise operations.
    pub fn check_within(&self, batch: &Batch, actual: &Memory, bounds: Bounds) -> Result<(), String> {
        for (index, base) in batch.bases.iter().enumerate() {
            let Some(expected) = self.memory.get(base.id) else { continue };
            // A base that was never written has zeros.
            let zeros = vec![0; if actual.get(base.id).is_some() { 0 } else { expected.len() }];
            let actual = actual.get(base.id).unwrap_or(&zeros);
            let (tolerance, writers) = self.tolerance(batch, index as u32, bounds);
            compare(base.dtype(), expected, actual, &tolerance).map_err(|difference| {
                format!("base {index} (identity {}), written by instructions {writers:?}: {difference}", base.id)
            })?;
        }
        Ok(())
    }

    /// The tolerance of a base, and the instructions that write it.
    fn tolerance(&self, batch: &Batch, base: u32, bounds: Bounds) -> (Tolerance, Vec<usize>) {
        let tables = batch.as_ref();
        let writes = |index: &usize| {
            batch.instrs[*index]
                .outputs()
                .iter()
                .any(|output| output.as_view().is_some_and(|view| batch.views[view as usize].base == base))
        };
        let writers: Vec<usize> = (0..batch.instrs.len()).filter(writes).collect();
        let &[writer] = writers.as_slice() else {
            return (Tolerance::Exact, writers);
        };
        let instr = &batch.instrs[writer];
        let input = instr.inputs().first().and_then(|&operand| tables.dtype(operand)).unwrap_or(DType::Bool);
        if !may_differ(instr.opcode, input) {
            return (Tolerance::Exact, writers);
        }
        if instr.opcode.kind() == Kind::Elementwise {
            return (bounds(instr.opcode, input), writers);
        }
        let shape = instr.inputs()[0].as_view().map_or(&[][..], |view| tables.shape(view));
        let folded = (0..shape.len()).filter(|axis| instr.param >> axis & 1 == 1).map(|axis| shape[axis]);
        let count = folded.product::<i64>() as u64;
        let products = matches!(instr.opcode, Opcode::MultiplyReduce | Opcode::MultiplyAccumulate);
        // Each complex product rounds four times.
        let factor = if (products || instr.opcode == Opcode::Contract) && input.is_complex() { 4 } else { 1 };
        let magnitudes = self.magnitudes.get(&writer).cloned().unwrap_or_default();
        (Tolerance::Sum { count: count * factor, magnitudes, product: products }, writers)
    }
}

/// A splitmix generator: random numbers that are the same everywhere.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator that starts from a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number from 0 to `end` - 1; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.bits() % end as u64) as usize }
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.bits() % (high - low + 1) as u64) as i64
    }

    /// True in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.bits() % 100 < percent
    }

    /// One of the items, if there are any.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Operand, base_flags};
    use crate::validate::validate;
    use std::collections::HashSet;

    #[test]
    fn programs_are_valid_and_reproducible() {
        let mut opcodes = HashSet::new();
        let mut ranks = HashSet::new();
        let mut reused = 0;
        for seed in 0..1500 {
            let program = program(seed, &Options::default());
            validate(&program.batch.as_ref()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let oracle = program.oracle().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            oracle.check(&program.batch, &oracle.memory).unwrap();
            opcodes.extend(program.batch.instrs.iter().map(|instr| instr.opcode));
            ranks.extend(program.batch.views.iter().map(|view| view.rank));
            reused += usize::from(writes_after_free(&program.batch));
        }
        assert_eq!(program(7, &Options::default()), program(7, &Options::default()));
        assert_ne!(program(7, &Options::default()), program(8, &Options::default()));
        let missing: Vec<_> = Opcode::ALL.iter().filter(|opcode| !opcodes.contains(opcode)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert!(ranks.contains(&0) && ranks.contains(&16), "{ranks:?}");
        assert!(reused > 50, "{reused}");
    }

    /// Does an instruction write a base that FREE has emptied?
    fn writes_after_free(batch: &Batch) -> bool {
        let base = |operand: &Operand| operand.as_view().map(|view| batch.views[view as usize].base);
        let mut freed = Vec::new();
        batch.instrs.iter().any(|instr| {
            let writes = instr.outputs().iter().filter_map(base).any(|base| freed.contains(&base));
            if instr.opcode == Opcode::Free {
                freed.extend(base(&instr.operands()[0]));
            }
            writes
        })
    }

    /// Garbage in bases that are born in a batch must not reach any result.
    #[test]
    fn nothing_is_read_before_it_is_written() {
        for seed in 0..300 {
            let mut program = program(seed, &Options::default());
            let expected = program.oracle().unwrap();
            for base in &program.batch.bases {
                if base.has(base_flags::BORN) {
                    assert_eq!(program.memory.get(base.id), None);
                    program.memory.insert(base.id, vec![0xa5; base.bytes() as usize]);
                }
            }
            let actual = program.oracle().unwrap();
            expected.check(&program.batch, &actual.memory).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
    }

    #[test]
    fn options_are_kept() {
        let options = Options {
            types: TypeSet(TypeSet::FLOAT.0 | TypeSet::BOOL.0),
            allow_inexact: false,
            allow_index: false,
            allow_drops: false,
            max_rank: 2,
            ..Options::default()
        };
        for seed in 0..200 {
            let program = program(seed, &options);
            let tables = program.batch.as_ref();
            assert!(program.batch.instrs.len() <= options.max_instrs + 6);
            assert!(program.batch.views.iter().all(|view| view.rank <= 2));
            assert!(program.batch.bases.iter().all(|base| options.types.contains(base.dtype())));
            for instr in &program.batch.instrs {
                assert!(!matches!(instr.opcode, Opcode::Gather | Opcode::Free | Opcode::Discard));
                let input = instr.inputs().first().and_then(|&operand| tables.dtype(operand));
                assert!(!may_differ(instr.opcode, input.unwrap_or(DType::Bool)), "seed {seed}: {}", instr.opcode);
            }
        }
    }

    #[test]
    fn shrinking_keeps_the_failure_and_little_else() {
        let fails = |program: &Program| program.batch.instrs.iter().any(|instr| instr.opcode == Opcode::AddReduce);
        let mut shrunk = 0;
        for seed in 0..200 {
            let program = program(seed, &Options::default());
            if fails(&program) {
                let small = shrink(&program, fails);
                validate(&small.batch.as_ref()).unwrap();
                small.oracle().unwrap();
                assert_eq!(small.batch.instrs.len(), 1, "seed {seed}");
                assert!(small.batch.bases.len() <= 2, "seed {seed}");
                shrunk += 1;
            }
        }
        assert!(shrunk > 5);
    }
}
