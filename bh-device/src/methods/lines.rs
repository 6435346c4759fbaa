//! The lines of a view along its last axis, and where kernels of methods read and write.

use crate::code::{KernelMemory, Writer, loaded};
use crate::driver::LinePlace;
use bh_bytecode::{BatchRef, DType, Operand};
use bh_kernel::BufferRef;

/// The lines of a view along its last axis, or of dense memory between kernels.
#[derive(Clone)]
pub(super) struct Lines {
    pub(super) dtype: DType,
    pub(super) memory: KernelMemory,
    start: i64,
    /// Of the other axes, those that can be one joined.
    shape: Vec<i64>,
    stride: Vec<i64>,
    /// Elements of a line, and how far they are apart.
    pub(super) len: i64,
    step: i64,
    /// Is each element two real numbers of the memory, its parts? Then the steps are those of real numbers.
    pairs: bool,
}

impl Lines {
    /// The lines of a view; of one without dimensions, its element.
    pub(super) fn new(batch: &BatchRef<'_>, operand: Operand) -> Option<Lines> {
        let view = operand.as_view()?;
        let record = &batch.views[view as usize];
        let (shape, stride) = (batch.shape(view), batch.stride(view));
        let ((len, outer), (step, outer_stride)) = match (shape.split_last(), stride.split_last()) {
            (Some((len, outer)), Some((step, stride))) => ((*len, outer), (*step, stride)),
            _ => ((1, shape), (1, stride)),
        };
        let (mut joined, mut strides): (Vec<i64>, Vec<i64>) = Default::default();
        for (&extent, &stride) in outer.iter().zip(outer_stride).filter(|(extent, _)| **extent != 1) {
            match (joined.last_mut(), strides.last_mut()) {
                (Some(last), Some(step)) if *step == stride * extent => (*last, *step) = (*last * extent, stride),
                _ => (joined.push(extent), strides.push(stride)).0,
            }
        }
        let (place, dtype) = (KernelMemory::Of(BufferRef::Base(record.base)), batch.dtype(operand)?);
        Some(Lines {
            dtype,
            memory: place,
            start: record.start,
            shape: joined,
            stride: strides,
            len,
            step,
            pairs: false,
        })
    }

    /// The elements of the one line as lines of one element each; none if there are several lines.
    pub(super) fn turned(self) -> Option<Lines> {
        let (len, step) = (self.len, self.step);
        self.shape.is_empty().then(|| Lines { shape: vec![len], stride: vec![step], len: 1, step: 1, ..self })
    }

    /// Dense lines between kernels.
    pub(super) fn between(place: KernelMemory, dtype: DType, count: i64, len: i64) -> Lines {
        Lines { dtype, memory: place, start: 0, shape: vec![count], stride: vec![len], len, step: 1, pairs: false }
    }

    /// Lines of real numbers as lines of half as many complex numbers, whose parts are neighbours.
    pub(super) fn pairs(self) -> Lines {
        let dtype = if self.dtype == DType::F32 { DType::C64 } else { DType::C128 };
        Lines { dtype, len: self.len / 2, pairs: true, ..self }
    }

    /// How many lines there are.
    pub(super) fn count(&self) -> i64 {
        self.shape.iter().product()
    }

    /// Where the lines lie, if they are at equal distances and all steps are positive.
    pub(super) fn place(&self) -> Option<LinePlace> {
        let next = match self.stride[..] {
            [] => self.len * self.step,
            [next] => next,
            _ => return None,
        };
        (self.step > 0 && next > 0).then_some(LinePlace { first: self.start, step: self.step, next })
    }

    /// The position in its line of the element at this place of the memory; none if lines are not at equal distances, or lie within each
    /// other.
    pub(super) fn position(&self, offset: i64) -> Option<i64> {
        let LinePlace { first, step, next } = self.place()?;
        let at = offset - first;
        match self.len * step <= next || self.count() == 1 {
            true => Some(at % next / step),
            false => (next * self.count() <= step).then_some(at / step),
        }
    }

    /// Are neighbouring lines closer together than neighbours of a line?
    pub(super) fn is_across(&self) -> bool {
        self.shape.last().is_some_and(|extent| *extent > 1)
            && self.len > 1
            && self.stride.last().is_some_and(|stride| stride.abs() < self.step.abs())
    }

    /// Statements that find where the line with the number `line` begins, as `name`.
    pub(super) fn begin(&self, writer: &mut Writer, line: &str, name: &str) -> String {
        let index = writer.index();
        let names: Vec<String> = (0..self.shape.len()).map(|dim| format!("{name}_{dim}")).collect();
        let terms: Vec<(i64, String)> = self.stride.iter().copied().zip(names.iter().cloned()).collect();
        let text = writer.numbers.split(index, line, &self.shape, &names);
        text + &format!("const {index} {name} = {};\n", writer.numbers.address(self.start, &terms))
    }

    /// The element `at` of the line that begins at `name`; pairs can only be read so.
    pub(super) fn element(&self, writer: &mut Writer, name: &str, at: &str, writes: bool) -> String {
        if self.pairs {
            let [re, im] = self.parts(writer, name, at, false);
            return format!("bh_make_{}({re}, {im})", self.dtype);
        }
        let element = self.number(writer, name, at, writes);
        if writes { element } else { loaded(self.dtype, element) }
    }

    /// A statement that writes the element `at` of the line that begins at `name`; `value` is the name of a variable.
    pub(super) fn store(&self, writer: &mut Writer, name: &str, at: &str, value: &str) -> String {
        if !self.pairs {
            return format!("{} = {value};\n", self.number(writer, name, at, true));
        }
        let [re, im] = self.parts(writer, name, at, true);
        format!("{re} = {value}.re;\n{im} = {value}.im;\n")
    }

    /// The two numbers of an element of pairs.
    fn parts(&self, writer: &mut Writer, name: &str, at: &str, writes: bool) -> [String; 2] {
        [0, 1].map(|part| self.number(writer, name, &format!("2 * ({at}) + {part}"), writes))
    }

    /// The number `at` of the line that begins at `name`, in memory.
    fn number(&self, writer: &mut Writer, name: &str, at: &str, writes: bool) -> String {
        let dtype = if self.pairs { self.dtype.real_part() } else { self.dtype };
        let buffer = writer.buffer(self.memory, dtype, writes);
        match self.step {
            1 => format!("{buffer}[{name} + ({at})]"),
            step => format!("{buffer}[{name} + {} * ({at})]", writer.numbers.text(step)),
        }
    }
}
