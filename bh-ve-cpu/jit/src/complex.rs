//! Complex numbers in the code of a kernel.
//!
//! In memory real and imaginary parts alternate. In registers a vector has all real parts and then all imaginary ones, as
//! one value: sums are one instruction, and what mixes the parts takes the halves, which are whole registers.

use crate::body::either;
use crate::kernel::{At, Kernel};
use crate::math;
use crate::operations::{Operation, powers};
use crate::writer::{Value, Writer, lanes, memory, packed, suffix, vector};
use bh_bytecode::{DType, Opcode};
use bh_fuser::lower::Step;
use std::fmt::Display;

/// The type of one element outside of vectors.
pub(crate) fn single(dtype: DType) -> String {
    if dtype.is_complex() { packed(dtype, 1) } else { memory(dtype).to_owned() }
}

/// One element in all lanes.
pub(crate) fn broadcast(writer: &mut Writer, dtype: DType, width: u16, one: impl Display) -> Value {
    if !dtype.is_complex() {
        return writer.broadcast(crate::writer::element(dtype), width, one);
    }
    let kind = single(dtype);
    let order = lanes((0..2 * width).map(|lane| lane / width));
    writer.value(format_args!("shufflevector {kind} {one}, {kind} poison, {order}"))
}

/// From the order in memory to that in registers.
pub(crate) fn unpack(writer: &mut Writer, dtype: DType, width: u16, value: Value) -> Value {
    let order = (0..2 * width).map(|lane| lane % width * 2 + lane / width);
    reorder(writer, dtype, width, value, order)
}

/// From the order in registers to that in memory.
pub(crate) fn pack(writer: &mut Writer, dtype: DType, width: u16, value: Value) -> Value {
    let order = (0..2 * width).map(|lane| lane % 2 * width + lane / 2);
    reorder(writer, dtype, width, value, order)
}

fn reorder(writer: &mut Writer, dtype: DType, width: u16, value: Value, order: impl Iterator<Item = u16>) -> Value {
    let (kind, order) = (vector(dtype, width), lanes(order));
    writer.value(format_args!("shufflevector {kind} {value}, {kind} poison, {order}"))
}

/// The mask of elements as one of the parts in memory.
pub(crate) fn mask_of_parts(writer: &mut Writer, width: u16, mask: Value) -> Value {
    let order = lanes((0..2 * width).map(|lane| lane / 2));
    writer.value(format_args!("shufflevector <{width} x i1> {mask}, <{width} x i1> poison, {order}"))
}

/// The real and the imaginary parts.
pub(crate) fn split(writer: &mut Writer, dtype: DType, width: u16, value: Value) -> [Value; 2] {
    let kind = vector(dtype, width);
    [0, width].map(|first| {
        let order = lanes(first..first + width);
        writer.value(format_args!("shufflevector {kind} {value}, {kind} poison, {order}"))
    })
}

/// Real and imaginary parts as one value.
pub(crate) fn join(writer: &mut Writer, dtype: DType, width: u16, [re, im]: [Value; 2]) -> Value {
    concatenate(writer, vector(dtype.real_part(), width), 2 * width, [re, im])
}

/// Two vectors of a type as one of so many lanes.
fn concatenate(writer: &mut Writer, kind: impl Display, total: u16, [a, b]: [Value; 2]) -> Value {
    let order = lanes(0..total);
    writer.value(format_args!("shufflevector {kind} {a}, {kind} {b}, {order}"))
}

/// Elements, each a pair of parts, as a vector in the order of memory. Their number is a power of two.
pub(crate) fn gather(writer: &mut Writer, dtype: DType, mut elements: Vec<Value>) -> Value {
    let mut width = 1;
    while elements.len() > 1 {
        let kind = packed(dtype, width);
        elements = elements.chunks(2).map(|pair| concatenate(writer, &kind, 4 * width, [pair[0], pair[1]])).collect();
        width *= 2;
    }
    elements[0]
}

/// Roughly how many instructions an operation of complex numbers is, for vectors of their parts.
pub(crate) fn instructions(opcode: Opcode, param: u16, dtype: DType) -> usize {
    match opcode {
        Opcode::Real | Opcode::Imag => 0,
        Opcode::Multiply => 6,
        Opcode::Powi => 6 * usize::from(param).div_ceil(2),
        Opcode::Divide => 25,
        Opcode::Absolute if dtype == DType::C64 => 20,
        Opcode::Absolute => 10,
        _ => 2,
    }
}

impl Kernel<'_> {
    /// The modulus that a step makes of numbers with `f64` parts: the root of the sum of squares, unless that has left the
    /// range in any lane.
    pub(crate) fn modulus(&mut self, step: &Step, x: Value, at: &At) -> Option<Value> {
        if !matches!(step, Step::Compute { opcode: Opcode::Absolute, input: DType::C128, .. }) {
            return None;
        }
        let (writer, level, width) = (&mut self.writer, self.request.level, at.width);
        let parts = split(writer, DType::C128, width, x);
        let [square, special] = math::square_of_modulus(writer, level, width, parts);
        let kind = vector(DType::F64, width);
        let name = format!("llvm.sqrt.{}", suffix(DType::F64, width));
        let root = |writer: &mut Writer| writer.intrinsic(&name, &kind, &[(&kind, &square)]);
        let all = |writer: &mut Writer| math::modulus_of_all(writer, level, width, parts, square);
        Some(either(writer, &kind, special, at, root, all))
    }
}

impl Operation {
    /// The instructions of an operation that has complex numbers among its operands or makes them, in the order of
    /// the scalar functions; `None` if there are none.
    pub(crate) fn complex(&self, writer: &mut Writer, [a, b, c]: [Value; 3]) -> Option<Value> {
        let part = self.input.real_part();
        let parts = Operation { input: part, output: part, ..*self };
        let halves = |writer: &mut Writer, value: Value| split(writer, self.input, self.width, value);
        let whole = |writer: &mut Writer, halves: [Value; 2]| join(writer, self.input, self.width, halves);
        Some(match self.opcode {
            Opcode::Copy => return self.convert(writer, a),
            Opcode::Where => {
                let (b, c) = (halves(writer, b), halves(writer, c));
                let chosen = [0, 1].map(|half| parts.select(writer, a, b[half], c[half]));
                whole(writer, chosen)
            }
            Opcode::Add => self.plain(writer, &self.flagged("fadd"), a, b),
            Opcode::Subtract => self.plain(writer, &self.flagged("fsub"), a, b),
            Opcode::Multiply => {
                let product = [halves(writer, a), halves(writer, b)];
                let product = parts.product(writer, product);
                whole(writer, product)
            }
            Opcode::Powi => {
                return powers(self.param, a, |a, b| {
                    let product = [halves(writer, a), halves(writer, b)];
                    let product = parts.product(writer, product);
                    whole(writer, product)
                });
            }
            Opcode::Divide => {
                let quotient = [halves(writer, a), halves(writer, b)];
                let quotient = parts.quotient(writer, quotient);
                whole(writer, quotient)
            }
            Opcode::Conj => {
                let [re, im] = halves(writer, a);
                let im = writer.value(format_args!("fneg {} {im}", parts.kind(part)));
                whole(writer, [re, im])
            }
            Opcode::Real => halves(writer, a)[0],
            Opcode::Imag => halves(writer, a)[1],
            Opcode::Absolute => {
                let halves = halves(writer, a);
                parts.modulus(writer, halves)
            }
            Opcode::Equal | Opcode::NotEqual => {
                let (predicate, name) = if self.opcode == Opcode::Equal { ("oeq", "and") } else { ("une", "or") };
                let (a, b) = (halves(writer, a), halves(writer, b));
                let [re, im] = [0, 1].map(|half| parts.compare(writer, predicate, a[half], b[half]));
                writer.value(format_args!("{name} {} {re}, {im}", self.kind(DType::Bool)))
            }
            Opcode::Isnan | Opcode::Isinf | Opcode::Isfinite => {
                let any = Value::Register(0);
                let [re, im] = halves(writer, a);
                let (re, im) = (parts.write(writer, [re, any, any])?, parts.write(writer, [im, any, any])?);
                let name = if self.opcode == Opcode::Isfinite { "and" } else { "or" };
                writer.value(format_args!("{name} {} {re}, {im}", self.kind(DType::Bool)))
            }
            _ => return None,
        })
    }

    /// A conversion to complex numbers, from such or from real ones.
    fn convert(&self, writer: &mut Writer, a: Value) -> Option<Value> {
        if self.input == self.output {
            return Some(a);
        }
        let part = self.output.real_part();
        let parts = Operation { input: self.input.real_part(), output: part, ..*self };
        let none = Value::Register(0);
        let halves = if self.input.is_complex() {
            let [re, im] = split(writer, self.input, self.width, a);
            [parts.write(writer, [re, none, none])?, parts.write(writer, [im, none, none])?]
        } else {
            let re = parts.write(writer, [a, none, none])?;
            [re, Operation { input: part, ..parts }.splat(writer, 0.0)]
        };
        Some(join(writer, self.output, self.width, halves))
    }

    /// The product, of the parts' type.
    fn product(&self, writer: &mut Writer, [[a_re, a_im], [b_re, b_im]]: [[Value; 2]; 2]) -> [Value; 2] {
        let (first, second) = (self.multiply(writer, a_re, b_re), self.multiply(writer, a_im, b_im));
        let re = self.plain(writer, &self.flagged("fsub"), first, second);
        let (first, second) = (self.multiply(writer, a_re, b_im), self.multiply(writer, a_im, b_re));
        let im = self.plain(writer, &self.flagged("fadd"), first, second);
        [re, im]
    }

    /// The quotient by Smith's method: with the divisor's larger part first, both cases are one formula but for a sign.
    fn quotient(&self, writer: &mut Writer, [[a_re, a_im], [b_re, b_im]]: [[Value; 2]; 2]) -> [Value; 2] {
        let (add, subtract, divide) = (self.flagged("fadd"), self.flagged("fsub"), self.flagged("fdiv"));
        let (re_size, im_size) = (self.intrinsic(writer, "fabs", b_re), self.intrinsic(writer, "fabs", b_im));
        let mostly_real = self.compare(writer, "oge", re_size, im_size);
        let larger = self.select(writer, mostly_real, b_re, b_im);
        let smaller = self.select(writer, mostly_real, b_im, b_re);
        let first = self.select(writer, mostly_real, a_re, a_im);
        let second = self.select(writer, mostly_real, a_im, a_re);
        let ratio = self.plain(writer, &divide, smaller, larger);
        let rest = self.multiply(writer, smaller, ratio);
        let sum = self.plain(writer, &add, larger, rest);
        let one = self.splat(writer, 1.0);
        let scale = self.plain(writer, &divide, one, sum);
        let second_part = self.multiply(writer, second, ratio);
        let re = self.plain(writer, &add, first, second_part);
        let first_part = self.multiply(writer, first, ratio);
        let (real, imaginary) =
            (self.plain(writer, &subtract, second, first_part), self.plain(writer, &subtract, first_part, second));
        let im = self.select(writer, mostly_real, real, imaginary);
        // By zero the parts are divided one by one: as if multiplied by infinity.
        let (zero, infinity) = (self.splat(writer, 0.0), self.splat(writer, f64::INFINITY));
        let (re_zero, im_zero) = (self.compare(writer, "oeq", b_re, zero), self.compare(writer, "oeq", b_im, zero));
        let by_zero = writer.value(format_args!("and {} {re_zero}, {im_zero}", self.kind(DType::Bool)));
        let scale = self.select(writer, by_zero, infinity, scale);
        [(a_re, re), (a_im, im)].map(|(dividend, sum)| {
            let dividend = self.select(writer, by_zero, dividend, sum);
            self.multiply(writer, dividend, scale)
        })
    }

    /// The modulus of numbers with these parts.
    fn modulus(&self, writer: &mut Writer, [re, im]: [Value; 2]) -> Value {
        if self.input == DType::F64 {
            let [square, _] = math::square_of_modulus(writer, self.level, self.width, [re, im]);
            return math::modulus_of_all(writer, self.level, self.width, [re, im], square);
        }
        // The squares are exact in the wider type, and an infinite part wins over NaN.
        let wide = Operation { input: DType::F64, output: DType::F64, ..*self };
        let (narrow_kind, kind) = (self.kind(DType::F32), wide.kind(DType::F64));
        let squares = [re, im].map(|part| {
            let part = writer.value(format_args!("fpext {narrow_kind} {part} to {kind}"));
            wide.plain(writer, "fmul", part, part)
        });
        let sum = wide.plain(writer, "fadd", squares[0], squares[1]);
        let root = wide.intrinsic(writer, "sqrt", sum);
        let root = writer.value(format_args!("fptrunc {kind} {root} to {narrow_kind}"));
        let infinity = self.splat(writer, f64::INFINITY);
        let infinite = [re, im].map(|part| {
            let size = self.intrinsic(writer, "fabs", part);
            self.compare(writer, "oeq", size, infinity)
        });
        let infinite = writer.value(format_args!("or {} {}, {}", self.kind(DType::Bool), infinite[0], infinite[1]));
        self.select(writer, infinite, infinity, root)
    }
}
