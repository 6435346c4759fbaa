//! Small programs for tests of faults: a batch with data, source lines, and numbered arrays.

use bh_bytecode::batch::Origin;
use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, View};
use bh_core::error::Result;
use bh_core::stack::Stack;
use std::sync::atomic::Ordering;

/// Length of the arrays of a [`Script`].
pub const LEN: i64 = 24;

/// A batch over f64 vectors. Operations are recorded at `program.c`, line 1 and so on.
pub struct Script {
    batch: Batch,
    /// The arrays, by number.
    pub bases: Vec<Base>,
}

impl Script {
    /// A script over `arrays` arrays with ids that are new in the stack.
    pub fn new(stack: &Stack, arrays: u64) -> Script {
        let first = stack.services().base_ids().fetch_add(arrays, Ordering::Relaxed);
        let base = |id| Base { row_hint: 1, ..Base::new(id, DType::F64, LEN) };
        let mut script = Script { batch: Batch::default(), bases: (first..first + arrays).map(base).collect() };
        script.clear();
        script
    }

    /// Starts a new batch over the same arrays.
    pub fn clear(&mut self) -> &mut Script {
        self.batch = Batch::default();
        self.batch.push_string("program.c");
        for base in &self.bases {
            let index = self.batch.push_base(*base);
            let whole = View::contiguous(&[LEN]).unwrap_or_default();
            self.batch.push_view(index, &whole);
        }
        self
    }

    /// Appends an operation on whole arrays.
    pub fn op(&mut self, opcode: Opcode, arrays: &[u32]) -> &mut Script {
        let operands: Vec<Operand> = arrays.iter().map(|&array| Operand::view(array)).collect();
        self.push(Instr::new(opcode, &operands))
    }

    /// Appends the assignment of a number to an array.
    pub fn fill(&mut self, array: u32, value: f64) -> &mut Script {
        let constant = self.batch.push_constant(Constant::from_value(value));
        self.push(Instr::new(Opcode::Copy, &[Operand::view(array), Operand::constant(constant)]))
    }

    /// Appends an operation on constants, with array `out` as output.
    pub fn constants(&mut self, opcode: Opcode, out: u32, inputs: &[Constant]) -> &mut Script {
        let mut operands = vec![Operand::view(out)];
        operands.extend(inputs.iter().map(|&input| Operand::constant(self.batch.push_constant(input))));
        self.push(Instr::new(opcode, &operands))
    }

    fn push(&mut self, mut instr: Instr) -> &mut Script {
        self.batch.origins.push(Origin { file: 0, file_len: 9, line: self.batch.instrs.len() as u32 + 1 });
        instr.origin = self.batch.origins.len() as u32;
        self.batch.push_instr(instr);
        self
    }

    /// The batch, for changes by hand.
    pub fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    /// Runs the batch and waits for it.
    pub fn run(&self, stack: &mut Stack) -> Result<()> {
        let ticket = stack.execute(&self.batch.as_ref(), &[])?;
        stack.wait(ticket)
    }

    /// The values of an array.
    pub fn values(&self, stack: &mut Stack, array: usize) -> Result<Vec<f64>> {
        let bytes = crate::run::read(stack, &self.bases[array])?;
        Ok(bytes.chunks_exact(8).map(|chunk| f64::from_ne_bytes(chunk.try_into().unwrap_or_default())).collect())
    }

    /// Drops all arrays.
    pub fn discard(&mut self, stack: &mut Stack) -> Result<()> {
        self.clear();
        for array in 0..self.bases.len() as u32 {
            self.op(Opcode::Discard, &[array]);
        }
        self.run(stack)
    }
}
