//! Where a transformed program is recorded: a recorder, or a batch under construction.

use bh_bytecode::view::ViewError;
use bh_bytecode::{Base, BatchRef, Constant, DType, Instr, Opcode, View};
use bh_core::abi::status;
use bh_core::{Error, Result};

/// Receives the operations of a transformed program, one after the other.
///
/// Inputs of operations on arrays may overlap the output: they are read before it is written. Inputs of elementwise operations
/// are broadcast to the output.
pub(crate) trait Emit {
    /// A flat array of one type, which ends with its last copy.
    type Base: Clone;

    /// The values of one on disk, which end with their last copy.
    type Stored: Clone;

    /// Are they one array?
    fn same(a: &Self::Base, b: &Self::Base) -> bool;

    /// A new array of undefined elements.
    fn base(&mut self, dtype: DType, len: i64) -> Result<Self::Base>;

    /// Writes the values of an array to the disk. `of`: a base like its own.
    fn store(&mut self, array: &Self::Base, of: &Base) -> Result<Self::Stored>;

    /// A new array with values from the disk.
    fn load(&mut self, stored: &Self::Stored, of: &Base) -> Result<Self::Base>;

    /// An operation of the opcode table. `param`: as [`bh_bytecode::Instr::param`].
    fn operate(
        &mut self,
        opcode: Opcode,
        param: u16,
        out: &Place<Self::Base>,
        inputs: &[Value<Self::Base>],
    ) -> Result<()>;

    /// RANGE, or RANDOM with a key: each element is made from the number that a view of the output's shape has there.
    fn generate(
        &mut self,
        opcode: Opcode,
        out: &Place<Self::Base>,
        numbers: &View,
        key: Option<Constant>,
    ) -> Result<()>;

    /// The numbers 0, `step`, 2·`step`, … in C order, into integers.
    fn range(&mut self, out: &Place<Self::Base>, step: i64) -> Result<()> {
        let order = contiguous(out.shape())?;
        let stride: Vec<i64> = order.stride().iter().map(|stride| stride * step).collect();
        self.generate(Opcode::Range, out, &view(0, out.shape(), &stride)?, None)
    }

    /// A new array in C order.
    fn fresh(&mut self, dtype: DType, shape: &[i64]) -> Result<Place<Self::Base>> {
        let view = contiguous(shape)?;
        Ok(Place { base: self.base(dtype, view.len())?, dtype, view })
    }

    /// The result of an elementwise operation.
    fn of(
        &mut self,
        opcode: Opcode,
        param: u16,
        inputs: &[Value<Self::Base>],
        dtype: DType,
        shape: &[i64],
    ) -> Result<Value<Self::Base>> {
        let out = self.fresh(dtype, shape)?;
        self.operate(opcode, param, &out, inputs)?;
        Ok(out.into())
    }

    /// A call of an extension method.
    fn call(&mut self, method: &str, outs: &[&Place<Self::Base>], inputs: &[Value<Self::Base>]) -> Result<()>;

    /// An instruction as it was recorded, on other arrays: one for each output, and the inputs' by the places of their bases.
    fn repeat(
        &mut self,
        tables: &BatchRef<'_>,
        instr: &Instr,
        outputs: &[Self::Base],
        inputs: &[(u32, Self::Base)],
    ) -> Result<()>;

    /// Lets what was recorded run, so that what it has no use for ends.
    fn flush(&mut self) -> Result<()>;

    /// Says which place in the user's program the operations that follow belong to: file and line.
    fn locate(&mut self, origin: Option<(&str, u32)>);
}

/// A view of an array.
#[derive(Clone)]
pub(crate) struct Place<B> {
    pub(crate) base: B,
    pub(crate) dtype: DType,
    pub(crate) view: View,
}

/// An input of an operation.
#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "most inputs are arrays")]
pub(crate) enum Value<B> {
    /// An array.
    Place(Place<B>),
    /// A number.
    Number(Constant),
}

impl<B> From<Place<B>> for Value<B> {
    fn from(place: Place<B>) -> Value<B> {
        Value::Place(place)
    }
}

impl<B> Value<B> {
    /// The array, of operations whose operands are no numbers.
    pub(crate) fn into_place(self) -> Result<Place<B>> {
        match self {
            Value::Place(place) => Ok(place),
            Value::Number(_) => Err(Error::new(status::ARGUMENT, "a number stands where the operation takes an array")),
        }
    }
}

/// A number of a type.
pub(crate) fn number<B>(value: f64, dtype: DType) -> Value<B> {
    Value::Number(Constant::from_value(value).cast(dtype))
}

/// An error of views that the transform itself makes.
pub(crate) fn view_error(error: ViewError) -> Error {
    Error::new(status::SHAPE, format!("an operation made for a derivative or vmap: {}", error.0))
}

/// The view with these strides.
pub(crate) fn view(start: i64, shape: &[i64], stride: &[i64]) -> Result<View> {
    View::new(start, shape, stride).map(View::canonical).map_err(view_error)
}

/// The contiguous view of a shape.
pub(crate) fn contiguous(shape: &[i64]) -> Result<View> {
    View::contiguous(shape).map(View::canonical).map_err(view_error)
}

impl<B: Clone> Place<B> {
    pub(crate) fn shape(&self) -> &[i64] {
        self.view.shape()
    }

    /// Another view of the same array.
    pub(crate) fn with(&self, view: View) -> Place<B> {
        Place { base: self.base.clone(), dtype: self.dtype, view }
    }

    /// A result of a fold over the axes of a mask, repeated along them: a view of this shape.
    pub(crate) fn repeated(&self, axes: u16, shape: &[i64]) -> Result<Place<B>> {
        let mut own = self.view.stride().iter();
        let stride: Vec<i64> = (0..shape.len())
            .map(|axis| if axes >> axis & 1 == 1 { 0 } else { own.next().copied().unwrap_or(0) })
            .collect();
        Ok(self.with(view(self.view.start(), shape, &stride)?))
    }

    /// The view backwards along one axis.
    pub(crate) fn backward(&self, axis: usize) -> Result<Place<B>> {
        self.view.reverse(axis).map(|view| self.with(view.canonical())).map_err(view_error)
    }

    /// Matrices with their axes, the last two, exchanged.
    pub(crate) fn transposed(&self) -> Result<Place<B>> {
        let rank = self.view.rank();
        let mut axes: Vec<usize> = (0..rank).collect();
        axes.swap(rank - 2, rank - 1);
        self.view.transpose(&axes).map(|view| self.with(view.canonical())).map_err(view_error)
    }

    /// The diagonals of matrices.
    pub(crate) fn diagonal(&self) -> Result<Place<B>> {
        let rank = self.view.rank();
        self.view.diagonal(0, rank - 2, rank - 1).map(|view| self.with(view.canonical())).map_err(view_error)
    }

    /// Columns of matrices, from one on to before another.
    pub(crate) fn columns(&self, first: i64, end: i64) -> Result<Place<B>> {
        let last = self.view.rank() - 1;
        self.view.slice(last, Some(first), Some(end), 1).map(|view| self.with(view.canonical())).map_err(view_error)
    }

    /// Rows and columns of matrices.
    pub(crate) fn extents(&self) -> [i64; 2] {
        let shape = self.shape();
        [shape[shape.len() - 2], shape[shape.len() - 1]]
    }

    /// Vectors as matrices of one column.
    pub(crate) fn as_columns(&self) -> Result<Place<B>> {
        self.new_axis(self.view.rank())
    }

    /// Vectors as matrices of one row.
    pub(crate) fn as_rows(&self) -> Result<Place<B>> {
        self.new_axis(self.view.rank() - 1)
    }

    /// The view with a new axis of one element at a place.
    pub(crate) fn new_axis(&self, at: usize) -> Result<Place<B>> {
        self.view.new_axis(at).map(|view| self.with(view.canonical())).map_err(view_error)
    }
}
