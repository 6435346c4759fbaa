//! Rows that make a result each: lanes begin as neutral elements, and when a row has ended they are joined, those of several
//! rows side by side.

use crate::kernel::Kernel;
use crate::operations::Operation;
use crate::plan::combiner;
use crate::writer::{Value, lanes, memory, vector};
use bh_bytecode::{DType, Opcode};
use bh_jit_abi::{Folds, JOINED, LANES, RESULTS_AT};

/// Rows that are joined side by side, and the lanes that each has left then.
const EIGHT: u16 = JOINED as u16;

impl Kernel<'_> {
    fn makes_results(&self) -> bool {
        self.request.folds == Folds::Results
    }

    /// Reads the neutral elements of each fold.
    pub(crate) fn load_neutral(&mut self) {
        if self.makes_results() {
            let folds = self.folds().into_iter().enumerate();
            self.neutral =
                folds.map(|(at, (_, dtype, _))| self.load_vector(dtype, &format!("%b{at}"), 0, EIGHT)).collect();
        }
    }

    /// Makes the lanes neutral.
    pub(crate) fn begin_result(&mut self) -> Result<(), String> {
        if !self.makes_results() {
            return Ok(());
        }
        self.carried.clear();
        for (at, (_, dtype, _)) in self.folds().into_iter().enumerate() {
            if self.plan.carries {
                let each = self.plan.loops[0];
                let vector = self.load_vector(dtype, &format!("%b{at}"), 0, each.width);
                self.carried.extend((0..each.unroll).map(|_| vector));
            } else {
                for lane in (0..LANES as u16).step_by(JOINED) {
                    let (lanes, neutral) = (self.accumulator(at, 0), self.neutral[at]);
                    self.store_vector(dtype, &lanes, lane, EIGHT, neutral);
                }
            }
        }
        Ok(())
    }

    /// Joins the lanes of the row that has ended until [`EIGHT`] are left, and then those of the last rows if these are as
    /// many or the rows end here.
    pub(crate) fn end_result(&mut self, end: &str) -> Result<(), String> {
        if !self.makes_results() {
            return Ok(());
        }
        let folds = self.folds();
        let number = self.writer.value(format_args!("and i64 %{}.at, {}", self.rows.name, EIGHT - 1));
        let behind = self.writer.value(format_args!("mul i64 {number}, {EIGHT}"));
        let place = self.writer.value(format_args!("add i64 {behind}, {}", 2 * LANES));
        let carried = std::mem::take(&mut self.carried);
        for (at, &(opcode, dtype, _)) in folds.iter().enumerate() {
            let (mut vectors, mut width) = if self.plan.carries {
                let each = self.plan.loops[0];
                let count = usize::from(each.unroll);
                (carried[at * count..][..count].to_vec(), each.width)
            } else {
                let lanes = self.accumulator(at, 0);
                let parts = (0..LANES as u16).step_by(JOINED);
                (parts.map(|lane| self.load_vector(dtype, &lanes, lane, EIGHT)).collect(), EIGHT)
            };
            while vectors.len() > 1 {
                let upper = vectors.split_off(vectors.len() / 2);
                for (lower, upper) in vectors.iter_mut().zip(upper) {
                    *lower = self.combine(opcode, dtype, width, [*lower, upper])?;
                }
            }
            while width > EIGHT {
                width /= 2;
                let both = [vectors[0]; 2];
                let [lower, upper] = [0, width].map(|from| self.shuffle(dtype, 2 * width, both, from..from + width));
                vectors[0] = self.combine(opcode, dtype, width, [lower, upper])?;
            }
            let to = self.element_address(at, dtype, place);
            self.store_vector(dtype, &to, 0, EIGHT, vectors[0]);
        }
        let is_eighth = self.writer.value(format_args!("icmp eq i64 {number}, {}", EIGHT - 1));
        let next = self.writer.value(format_args!("add i64 %{}.at, 1", self.rows.name));
        let is_last = self.writer.value(format_args!("icmp eq i64 {next}, {end}"));
        let joins = self.writer.value(format_args!("or i1 {is_eighth}, {is_last}"));
        let (join, joined) = (self.writer.label("join"), self.writer.label("joined"));
        self.writer.line(format_args!("br i1 {joins}, label %{join}, label %{joined}"));
        self.writer.begin(&join);
        let first = self.writer.value(format_args!("sub i64 %{}.at, {number}", self.rows.name));
        let place = self.writer.value(format_args!("add i64 {first}, {RESULTS_AT}"));
        for (at, &(opcode, dtype, _)) in folds.iter().enumerate() {
            let results = self.join_rows(at, opcode, dtype)?;
            let to = self.element_address(at, dtype, place);
            self.store_vector(dtype, &to, 0, EIGHT, results);
        }
        self.writer.line(format_args!("br label %{joined}"));
        self.writer.begin(&joined);
        Ok(())
    }

    /// Joins the lanes that rows have left: of two vectors with lanes of some rows each, the lower and the upper halves of
    /// all these make one vector each.
    fn join_rows(&mut self, fold: usize, opcode: Opcode, dtype: DType) -> Result<Value, String> {
        let base = format!("%b{fold}");
        let parts = (0..EIGHT).map(|row| (2 * LANES) as u16 + row * EIGHT);
        let mut vectors: Vec<Value> = parts.map(|from| self.load_vector(dtype, &base, from, EIGHT)).collect();
        let mut half = EIGHT / 2;
        while half > 0 {
            let halves = |from: u16| (0..EIGHT).map(move |lane| lane / half * 2 * half + lane % half + from);
            let mut joined = Vec::with_capacity(vectors.len() / 2);
            for pair in vectors.chunks_exact(2) {
                let pair = [pair[0], pair[1]];
                let [lower, upper] = [0, half].map(|from| self.shuffle(dtype, EIGHT, pair, halves(from)));
                joined.push(self.combine(opcode, dtype, EIGHT, [lower, upper])?);
            }
            (vectors, half) = (joined, half / 2);
        }
        Ok(vectors[0])
    }

    /// These lanes of two vectors of `width`.
    fn shuffle(&mut self, dtype: DType, width: u16, [a, b]: [Value; 2], order: impl Iterator<Item = u16>) -> Value {
        let (kind, order) = (vector(dtype, width), lanes(order));
        self.writer.value(format_args!("shufflevector {kind} {a}, {kind} {b}, {order}"))
    }

    fn combine(&mut self, opcode: Opcode, dtype: DType, width: u16, [a, b]: [Value; 2]) -> Result<Value, String> {
        let (level, opcode) = (self.request.level, combiner(opcode)?);
        let operation = Operation { opcode, param: 0, input: dtype, output: dtype, level, fast_math: false, width };
        operation.write(&mut self.writer, [a, b, b]).ok_or_else(|| format!("joining with {opcode} of {dtype}"))
    }

    /// The address of an element of a fold's accumulators.
    fn element_address(&mut self, fold: usize, dtype: DType, place: Value) -> String {
        let kind = memory(dtype);
        self.writer.value(format_args!("getelementptr {kind}, ptr %b{fold}, i64 {place}")).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_fuser::lower::{Arg, SlotMode, Step};
    use bh_jit_abi::{Divider, Level, Request};

    /// The sum of a / a: with a slow divider, vectors of four lanes.
    fn kernel(level: Level, divider: Divider) -> Request {
        let divide = Step::Compute {
            opcode: Opcode::Divide,
            param: 0,
            input: DType::F64,
            output: DType::F64,
            args: [Arg::Value(0); 3],
            count: 2,
        };
        let fold = Step::Reduce { opcode: Opcode::AddReduce, slot: 1, arg: Arg::Value(1) };
        let modes = [SlotMode::Read, SlotMode::Result];
        let request = crate::request(level, &modes, vec![Step::Load { slot: 0 }, divide, fold]);
        Request { folds: Folds::Results, divider, ..request }
    }

    #[test]
    fn lanes_of_vectors_of_all_widths_are_joined() {
        for level in [Level::Avx2, Level::Avx512] {
            for divider in [Divider::Slow, Divider::Fast] {
                let assembly = crate::assembly(&kernel(level, divider)).unwrap();
                assert!(assembly.contains("vdivpd"), "{assembly}");
            }
        }
    }
}
