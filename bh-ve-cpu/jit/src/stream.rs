//! Writing past the caches within a loop.
//!
//! Such stores want whole, aligned vectors, but rows begin anywhere, and where lanes are folded a loop cannot begin
//! somewhere else. So each aligned vector of memory is put together from two neighbouring vectors of the loop: the end
//! of the one before and the begin of the current one. A row's first and last elements are written as usual, as their
//! cache lines belong to others as well.
//!
//! Where several arrays are written so and lie alike, which is known when the kernel is called, their rows begin at the same
//! place of a line. Then the loop begins with a part of a vector instead, and its vectors are written as they are.

use crate::kernel::{At, Kernel};
use crate::loops::LINE;
use crate::schedule::Loop;
use crate::writer::{Value, lanes, memory, packed};
use bh_bytecode::DType;

/// Bits of the processor's vectors.
const REGISTER: usize = 512;

/// What a loop writes to one row of a slot.
pub(crate) struct Stream {
    slot: usize,
    row: u16,
    dtype: DType,
    /// The numbers of a register, each of so many bits, and the registers of what the loop makes at once.
    width: u16,
    bits: usize,
    registers: u16,
    /// The type of a register.
    kind: String,
    /// The aligned address at or before the row's begin.
    line: Value,
    /// Which numbers of two registers make an aligned one.
    order: Value,
    /// The numbers of an aligned register that the one before fills.
    early: Value,
    /// The register before.
    before: Value,
}

/// An aligned register to be written to an address: of a stream, and its number in what the loop makes at once.
struct Line {
    stream: usize,
    register: u16,
    value: Value,
    address: Value,
}

/// Bits of the numbers that elements of a type are moved as, if they can go past the caches within loops.
pub(crate) fn unit(dtype: DType) -> Option<usize> {
    matches!(dtype.size(), 4 | 8 | 16).then_some(dtype.size().min(8) * 8)
}

impl Kernel<'_> {
    /// Are there loops for what is written past the caches and lies alike?
    pub(crate) fn has_streams_alike(&self) -> bool {
        !self.plan.alike.is_empty()
    }

    /// Finds out, once for all rows, if that lies alike: as far from the begin of a line in the first row, and with rows as far
    /// from each other.
    pub(crate) fn compare_streams(&mut self) {
        let Some((first, others)) = self.plan.alike.split_first() else { return };
        let begin = self.writer.value(format_args!("ptrtoint ptr %q{first} to i64"));
        // Parts of elements must not lie in two lines either.
        let part = self.request.slots[usize::from(*first)].dtype.size() - 1;
        let place = self.writer.value(format_args!("or i64 {begin}, %o{first}"));
        let mut all = self.writer.value(format_args!("and i64 {place}, {part}"));
        for other in others {
            let address = self.writer.value(format_args!("ptrtoint ptr %q{other} to i64"));
            let apart = self.writer.value(format_args!("xor i64 {address}, {begin}"));
            let rows_apart = self.writer.value(format_args!("xor i64 %o{other}, %o{first}"));
            for apart in [apart, rows_apart] {
                all = self.writer.value(format_args!("or i64 {all}, {apart}"));
            }
        }
        let inside = self.writer.value(format_args!("and i64 {all}, {}", LINE - 1));
        self.writer.line(format_args!("%alike = icmp eq i64 {inside}, 0"));
    }

    /// Prepares what a loop writes past the caches: a loop over whole vectors from the row's begin on.
    pub(crate) fn begin_streams(&mut self, each: Loop, from: &str) {
        self.streams.clear();
        if each.masked || each.width == 1 || from != "0" {
            return;
        }
        for slot in 0..self.request.slots.len() {
            let dtype = self.request.slots[slot].dtype;
            let Some(bits) = unit(dtype).filter(|_| self.plan.streams[slot]) else { continue };
            let all = usize::from(each.width) * dtype.size() * 8;
            let (registers, width) = (all.div_ceil(REGISTER) as u16, (all.min(REGISTER) / bits) as u16);
            let bytes = usize::from(width) * bits / 8;
            let numbers: Vec<String> = (0..width).map(|lane| format!("i{bits} {lane}")).collect();
            let (kind, numbers) = (format!("<{width} x i{bits}>"), numbers.join(", "));
            for row in 0..self.rows.count {
                let begin = self.position(slot, row.into());
                let address = self.writer.value(format_args!("ptrtoint ptr {begin} to i64"));
                let past = self.writer.value(format_args!("and i64 {address}, {}", bytes - 1));
                let back = self.writer.value(format_args!("sub i64 0, {past}"));
                let line = self.writer.value(format_args!("getelementptr i8, ptr {begin}, i64 {back}"));
                let past = self.writer.value(format_args!("lshr i64 {past}, {}", (bits / 8).ilog2()));
                let past = self.writer.value(format_args!("trunc i64 {past} to i32"));
                let past = if bits == 64 { self.writer.value(format_args!("zext i32 {past} to i64")) } else { past };
                let past = self.writer.broadcast(&format!("i{bits}"), width, past);
                let early = self.writer.value(format_args!("icmp ugt {kind} {past}, <{numbers}>"));
                let order = self.writer.value(format_args!("sub {kind} <{numbers}>, {past}"));
                let all = self.writer.splat(&format!("i{bits}"), width, 2 * width - 1);
                let ahead = self.writer.splat(&format!("i{bits}"), width, width);
                let order = self.writer.value(format_args!("add {kind} {order}, {ahead}"));
                let order = self.writer.value(format_args!("and {kind} {order}, {all}"));
                let kind = kind.clone();
                let before = order;
                self.streams.push(Stream {
                    slot,
                    row,
                    dtype,
                    width,
                    bits,
                    registers,
                    kind,
                    line,
                    order,
                    early,
                    before,
                });
            }
        }
    }

    /// Takes the vectors before at the begin of the loop's body; returns their names for [`Kernel::continue_streams`].
    pub(crate) fn enter_streams(&mut self, enter: &str, latch: &str) -> Vec<String> {
        let mut names = Vec::with_capacity(self.streams.len());
        for stream in &mut self.streams {
            let name = format!("%before.{latch}.{}.{}", stream.slot, stream.row);
            let phi = format!("phi {} [ zeroinitializer, %{enter} ], [ {name}, %{latch} ]", stream.kind);
            stream.before = self.writer.value(phi);
            names.push(name);
        }
        names
    }

    /// Hands the last vectors on to the next iteration.
    pub(crate) fn continue_streams(&mut self, names: &[String]) {
        for (stream, name) in self.streams.iter().zip(names) {
            self.writer.line(format_args!("{name} = freeze {} {}", stream.kind, stream.before));
        }
    }

    /// The number of the stream that writes a slot in a row.
    pub(crate) fn stream(&self, slot: usize, row: u16) -> Option<usize> {
        self.streams.iter().position(|stream| stream.slot == slot && stream.row == row)
    }

    /// Writes a vector of each of some streams.
    pub(crate) fn write_streams(&mut self, values: &[(usize, Value)], at: &At) {
        if values.is_empty() {
            return;
        }
        let mut lines = Vec::with_capacity(values.len());
        for &(stream, value) in values {
            let Stream { dtype, width, bits, .. } = self.streams[stream];
            for (register, current) in (0..).zip(self.registers(stream, value, at.width)) {
                let value = self.joined(stream, current);
                self.streams[stream].before = current;
                let begin = usize::from(at.offset) * dtype.size() * 8 / bits;
                let address = self.line_address(stream, &at.element, begin + usize::from(register * width));
                lines.push(Line { stream, register, value, address });
            }
        }
        if at.offset > 0 {
            return lines.iter().for_each(|line| self.write_line(line));
        }
        // The row's first elements.
        let (begins, others): (Vec<Line>, Vec<Line>) = lines.into_iter().partition(|line| line.register == 0);
        let (first, rest, join) = (self.writer.label("first"), self.writer.label("rest"), self.writer.label("written"));
        let is_first = self.writer.value(format_args!("icmp eq i64 {}, 0", at.element));
        self.writer.line(format_args!("br i1 {is_first}, label %{first}, label %{rest}, !prof !0"));
        self.writer.begin(&first);
        for line in &begins {
            let Stream { early, width, .. } = self.streams[line.stream];
            let all = self.writer.splat("i1", width, "true");
            let late = self.writer.value(format_args!("xor <{width} x i1> {early}, {all}"));
            self.write_part(line, late);
        }
        self.writer.line(format_args!("br label %{join}"));
        self.writer.begin(&rest);
        begins.iter().for_each(|line| self.write_line(line));
        self.writer.line(format_args!("br label %{join}"));
        self.writer.begin(&join);
        others.iter().for_each(|line| self.write_line(line));
    }

    /// The registers of a vector of so many elements, as they lie in memory.
    fn registers(&mut self, stream: usize, value: Value, elements: u16) -> Vec<Value> {
        let Stream { dtype, width, bits, registers, .. } = self.streams[stream];
        let value = self.pack(dtype, value, elements);
        let (from, to) = (packed(dtype, elements), format!("<{} x i{bits}>", width * registers));
        let value = self.writer.value(format_args!("bitcast {from} {value} to {to}"));
        if registers == 1 {
            return vec![value];
        }
        let register = |register| {
            let order = lanes(register * width..(register + 1) * width);
            self.writer.value(format_args!("shufflevector {to} {value}, {to} poison, {order}"))
        };
        (0..registers).map(register).collect()
    }

    /// Writes what is left of the last vectors, after a loop that ends at element `end`.
    pub(crate) fn end_streams(&mut self, end: &str) {
        for stream in 0..self.streams.len() {
            let (early, before) = (self.streams[stream].early, self.streams[stream].before);
            let value = self.joined(stream, before);
            let address = self.line_address(stream, end, 0);
            self.write_part(&Line { stream, register: 0, value, address }, early);
        }
        self.streams.clear();
    }

    /// The aligned register that ends in `current`.
    fn joined(&mut self, stream: usize, current: Value) -> Value {
        let Stream { ref kind, order, before, width, bits, .. } = self.streams[stream];
        let form = if bits == 64 { "q" } else { "d" };
        let name = format!("llvm.x86.avx512.vpermi2var.{form}.{}", usize::from(width) * bits);
        let kind = kind.clone();
        self.writer.intrinsic(&name, &kind, &[(&kind, &before), (&kind, &order), (&kind, &current)])
    }

    /// The aligned address that belongs to an element, and so many numbers further on.
    fn line_address(&mut self, stream: usize, element: &str, numbers: usize) -> Value {
        let Stream { line, bits, dtype, .. } = self.streams[stream];
        let kind = memory(dtype);
        let address = self.writer.value(format_args!("getelementptr {kind}, ptr {line}, i64 {element}"));
        match numbers {
            0 => address,
            numbers => self.writer.value(format_args!("getelementptr i{bits}, ptr {address}, i64 {numbers}")),
        }
    }

    fn write_line(&mut self, line: &Line) {
        let Stream { ref kind, width, bits, .. } = self.streams[line.stream];
        let align = usize::from(width) * bits / 8;
        let (value, address) = (line.value, line.address);
        self.writer.line(format_args!("store {kind} {value}, ptr {address}, align {align}, !nontemporal !1"));
    }

    fn write_part(&mut self, line: &Line, mask: Value) {
        let Stream { ref kind, width, bits, .. } = self.streams[line.stream];
        self.writer.intrinsic_line(
            &format!("llvm.masked.store.v{width}i{bits}.p0"),
            &[
                (kind, &line.value),
                ("ptr", &line.address),
                ("i32", &format_args!("{}", bits / 8)),
                (&format!("<{width} x i1>"), &mask),
            ],
        );
    }
}
