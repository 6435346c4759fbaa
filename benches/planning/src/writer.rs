//! Writes batches as a bridge does, with equal views interned.

use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, View, base_flags};
use std::collections::HashMap;

/// An array: a base and the view of it.
#[derive(Clone, Copy)]
pub struct Array {
    base: u32,
    view: View,
}

/// One axis of a part of an array.
#[derive(Clone, Copy)]
pub enum Axis {
    /// One index; the axis vanishes.
    At(i64),
    /// A range.
    From(i64, i64),
    /// All of it.
    All,
}

/// A batch under construction.
#[derive(Default)]
pub struct Writer {
    batch: Batch,
    known: HashMap<(u32, Vec<i64>), u32>,
}

impl Writer {
    /// Instructions so far.
    pub fn len(&self) -> usize {
        self.batch.instrs.len()
    }

    /// The finished batch.
    pub fn finish(self) -> Batch {
        self.batch
    }

    fn array(&mut self, shape: &[i64], flags: u32) -> Array {
        let view = View::contiguous(shape).expect("shapes of families are legal");
        let base = Base::new(self.batch.bases.len() as u64 + 1, DType::F64, view.len());
        Array { base: self.batch.push_base(Base { flags, ..base }), view }
    }

    /// An array from before the batch that outlives it.
    pub fn old(&mut self, shape: &[i64]) -> Array {
        self.array(shape, base_flags::LIVE_OUT)
    }

    /// An array that the batch makes and that outlives it.
    pub fn kept(&mut self, shape: &[i64]) -> Array {
        self.array(shape, base_flags::BORN | base_flags::LIVE_OUT)
    }

    /// A temporary, to be dropped with [`Writer::drop`].
    pub fn temporary(&mut self, shape: &[i64]) -> Array {
        self.array(shape, base_flags::BORN | base_flags::DIES)
    }

    fn operand(&mut self, array: Array) -> Operand {
        let view = array.view.canonical();
        let mut key = vec![view.start()];
        key.extend_from_slice(view.shape());
        key.extend_from_slice(view.stride());
        let known = self.known.entry((array.base, key));
        Operand::view(*known.or_insert_with(|| self.batch.push_view(array.base, &view)))
    }

    /// A constant.
    pub fn constant(&mut self, value: f64) -> Operand {
        Operand::constant(self.batch.push_constant(Constant::from_value(value)))
    }

    fn push(&mut self, opcode: Opcode, param: u16, operands: &[Operand]) {
        let mut instr = Instr::new(opcode, operands);
        instr.param = param;
        self.batch.push_instr(instr);
    }

    /// `out = a ∘ b`; `a` and `b` are broadcast.
    pub fn binary(&mut self, opcode: Opcode, out: Array, a: Array, b: Array) {
        let shape = out.view.shape().to_vec();
        let operands = [self.operand(out), self.operand(a.broadcast(&shape)), self.operand(b.broadcast(&shape))];
        self.push(opcode, 0, &operands);
    }

    /// `out = a ∘ constant`.
    pub fn with_constant(&mut self, opcode: Opcode, out: Array, a: Array, value: f64) {
        let shape = out.view.shape().to_vec();
        let operands = [self.operand(out), self.operand(a.broadcast(&shape)), self.constant(value)];
        self.push(opcode, 0, &operands);
    }

    /// `out = f(a)`.
    pub fn unary(&mut self, opcode: Opcode, out: Array, a: Array) {
        let shape = out.view.shape().to_vec();
        let operands = [self.operand(out), self.operand(a.broadcast(&shape))];
        self.push(opcode, 0, &operands);
    }

    /// Sums over some axes.
    pub fn sum(&mut self, out: Array, a: Array, axes: u16) {
        let operands = [self.operand(out), self.operand(a)];
        self.push(Opcode::AddReduce, axes, &operands);
    }

    /// Drops an array.
    pub fn drop(&mut self, array: Array) {
        let operand = [self.operand(array)];
        self.push(Opcode::Discard, 0, &operand);
    }

    /// `out -= a · b` by a temporary.
    pub fn subtract_product(&mut self, out: Array, a: Array, b: Array) {
        let product = self.temporary(out.view.shape());
        self.binary(Opcode::Multiply, product, a, b);
        self.binary(Opcode::Subtract, out, out, product);
        self.drop(product);
    }

    /// `out = Σ a · b` over all axes by a temporary.
    pub fn dot(&mut self, out: Array, a: Array, b: Array) {
        let product = self.temporary(a.view.shape());
        self.binary(Opcode::Multiply, product, a, b);
        self.sum(out, product, (1 << a.view.rank()) - 1);
        self.drop(product);
    }
}

impl Array {
    /// A part of the array, axis by axis.
    pub fn part(self, axes: &[Axis]) -> Array {
        let mut view = self.view;
        let mut dim = 0;
        for axis in axes {
            match *axis {
                Axis::At(index) => view = view.index(dim, index).expect("indices of families are legal"),
                Axis::From(begin, end) => {
                    view = view.slice(dim, Some(begin), Some(end), 1).expect("ranges of families are legal");
                    dim += 1;
                }
                Axis::All => dim += 1,
            }
        }
        Array { view, ..self }
    }

    /// A new axis of one element.
    pub fn new_axis(self, dim: usize) -> Array {
        Array { view: self.view.new_axis(dim).expect("ranks of families are legal"), ..self }
    }

    /// The array repeated to a shape.
    pub fn broadcast(self, shape: &[i64]) -> Array {
        Array { view: self.view.broadcast_to(shape).expect("shapes of families agree"), ..self }
    }
}
