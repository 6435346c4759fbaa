//! Tangents of a program without rules: each operation is run on its inputs moved a little to both sides.

use bh_bytecode::interp::{Interpreter, Memory};
use bh_bytecode::{Base, Batch, DType, Opcode};
use std::collections::HashMap;

/// Numbers of a base: one for each real element, two for each complex one.
pub(super) type Numbers = Vec<f64>;

/// The numbers of a base of 64-bit floats or of complex numbers of these.
pub(super) fn numbers(bytes: &[u8]) -> Numbers {
    bytes.chunks_exact(8).map(|word| f64::from_ne_bytes(word.try_into().expect("8 bytes"))).collect()
}

pub(super) fn bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

pub(super) fn is_smooth(dtype: DType) -> bool {
    matches!(dtype, DType::F64 | DType::C128)
}

pub(super) fn width(dtype: DType) -> usize {
    if dtype.is_complex() { 2 } else { 1 }
}

/// A program that runs with its tangents.
pub(super) struct Oracle {
    pub(super) memory: Memory,
    /// The tangents of bases by their identities; zero where there are none.
    pub(super) tangents: HashMap<u64, Numbers>,
}

/// Where tangents cannot be told: a value is not finite or so large that its rounding exceeds a step, or the operation jumps or bends.
#[derive(Debug)]
pub(super) struct Rough;

impl Oracle {
    /// Runs all operations of a batch. `is_constant`: the output counts as constant.
    pub(super) fn run(&mut self, batch: &Batch, is_constant: impl Fn(usize) -> bool) -> Result<(), Rough> {
        for at in 0..batch.instrs.len() {
            self.step(batch, at, is_constant(at))?;
        }
        Ok(())
    }

    fn bases(batch: &Batch, at: usize) -> Vec<Base> {
        let tables = batch.as_ref();
        let views = batch.instrs[at].operands().iter().filter_map(|operand| operand.as_view());
        views.filter_map(|view| tables.base_of(view).copied()).filter(|base| is_smooth(base.dtype())).collect()
    }

    /// The numbers of a base after the operation, with inputs moved along their tangents.
    fn moved(&self, batch: &Batch, at: usize, out: &Base, by: f64) -> Numbers {
        let mut memory = Memory::new();
        let tables = batch.as_ref();
        let views = batch.instrs[at].operands().iter().filter_map(|operand| operand.as_view());
        for base in views.filter_map(|view| tables.base_of(view)) {
            let Some(data) = self.memory.get(base.id) else { continue };
            let mut data = data.to_vec();
            if let Some(tangent) = self.tangents.get(&base.id) {
                let moved: Numbers = numbers(&data).iter().zip(tangent).map(|(x, t)| x + by * t).collect();
                data = bytes(&moved);
            }
            memory.insert(base.id, data);
        }
        let mut interpreter = Interpreter { memory: &mut memory, extensions: None, magnitudes: None };
        interpreter.execute_instr(&tables, at).expect("random programs are right");
        memory.get(out.id).map(numbers).unwrap_or_default()
    }

    fn step(&mut self, batch: &Batch, at: usize, is_constant: bool) -> Result<(), Rough> {
        let tables = batch.as_ref();
        let out = batch.instrs[at].outputs().first().and_then(|out| tables.base_of(out.as_view()?)).copied();
        let out = out.filter(|base| is_smooth(base.dtype()));
        let mut tangent = Numbers::new();
        if let Some(out) = &out {
            let inputs = Oracle::bases(batch, at);
            let largest = inputs.iter().filter_map(|base| self.tangents.get(&base.id)).flatten();
            let scale = largest.fold(1e-300f64, |most, t| most.max(t.abs()));
            let slope = |h: f64| -> Numbers {
                let sides = [1.0, -1.0, 2.0, -2.0].map(|side| self.moved(batch, at, out, side * h / scale));
                let [a, b, c, d] = &sides;
                let four = |i: usize| (8.0 * (a[i] - b[i]) - (c[i] - d[i])) / (12.0 * h) * scale;
                (0..a.len()).map(four).collect()
            };
            let (coarse, fine) = (slope(1e-4), slope(3e-5));
            let size = fine.iter().fold(scale, |most, t| most.max(t.abs()));
            let is_sure = |(a, b): (&f64, &f64)| a.is_finite() && b.is_finite() && (a - b).abs() <= 1e-6 * size;
            let largest = self.moved(batch, at, out, 0.0).iter().fold(0.0f64, |most, x| most.max(x.abs()));
            let is_rounded = scale > 1e-300 && largest > 1e6 * (size / scale).min(1e6);
            if is_rounded || scale > 1e200 || size > 1e12 || !coarse.iter().zip(&fine).all(is_sure) {
                return Err(Rough);
            }
            tangent = fine;
        }
        let mut interpreter = Interpreter { memory: &mut self.memory, extensions: None, magnitudes: None };
        interpreter.execute_instr(&tables, at).map_err(|_| Rough)?;
        if let Some(out) = out {
            if is_constant || constant_between_jumps(batch.instrs[at].opcode) {
                self.set_constant(batch, at, &mut tangent, &out);
            }
            self.tangents.insert(out.id, tangent);
            if numbers(self.memory.get(out.id).unwrap_or(&[])).iter().any(|value| !value.is_finite()) {
                return Err(Rough);
            }
        }
        Ok(())
    }

    /// Keeps the tangents of a base but for the elements that the operation writes.
    fn set_constant(&self, batch: &Batch, at: usize, tangent: &mut Numbers, out: &Base) {
        let (tables, width) = (batch.as_ref(), width(out.dtype()));
        let old = self.tangents.get(&out.id);
        for (at, t) in tangent.iter_mut().enumerate() {
            *t = old.map_or(0.0, |old| old[at]);
        }
        let view = batch.instrs[at].outputs()[0].as_view().expect("outputs are views");
        let record = &batch.views[view as usize];
        for offset in bh_bytecode::interp::offsets(record.start, tables.shape(view), tables.stride(view)) {
            tangent[offset as usize * width..][..width].fill(0.0);
        }
    }
}

fn constant_between_jumps(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::FloorDivide | Opcode::Sign | Opcode::Ceil | Opcode::Trunc | Opcode::Floor | Opcode::Rint)
}
