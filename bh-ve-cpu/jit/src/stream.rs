//! Writing past the caches within a loop.
//!
//! Such stores want whole, aligned vectors, but rows begin anywhere, and where lanes are folded a loop cannot begin
//! somewhere else. So each aligned vector of memory is put together from two neighbouring vectors of the loop: the end
//! of the one before and the begin of the current one. A row's first and last elements are written as usual, as their
//! cache lines belong to others as well.

use crate::kernel::{At, Kernel};
use crate::schedule::Loop;
use crate::writer::{Value, memory};

/// What a loop writes to one row of a slot.
pub(crate) struct Stream {
    slot: usize,
    row: u16,
    /// The type of a vector of as many bits.
    kind: String,
    /// The aligned address at or before the row's begin.
    line: Value,
    /// Which elements of two vectors make an aligned one.
    order: Value,
    /// The lanes of an aligned vector that the vector before fills.
    early: Value,
    /// The vector before.
    before: Value,
    /// The elements of a vector, and their bits.
    width: u16,
    bits: usize,
}

impl Kernel<'_> {
    /// Prepares what a loop writes past the caches: a loop over whole vectors from the row's begin on.
    pub(crate) fn begin_streams(&mut self, each: Loop, from: &str) {
        self.streams.clear();
        if each.masked || each.width == 1 || from != "0" {
            return;
        }
        let width = each.width;
        for slot in 0..self.request.slots.len() {
            if !self.plan.streams[slot] {
                continue;
            }
            let size = self.request.slots[slot].dtype.size();
            let (bits, bytes) = (size * 8, size * usize::from(width));
            let lanes: Vec<String> = (0..width).map(|lane| format!("i{bits} {lane}")).collect();
            let (kind, lanes) = (format!("<{width} x i{bits}>"), lanes.join(", "));
            for row in 0..self.rows.count {
                let begin = self.position(slot, row.into());
                let address = self.writer.value(format_args!("ptrtoint ptr {begin} to i64"));
                let past = self.writer.value(format_args!("and i64 {address}, {}", bytes - 1));
                let back = self.writer.value(format_args!("sub i64 0, {past}"));
                let line = self.writer.value(format_args!("getelementptr i8, ptr {begin}, i64 {back}"));
                let past = self.writer.value(format_args!("lshr i64 {past}, {}", size.ilog2()));
                let past = self.writer.value(format_args!("trunc i64 {past} to i32"));
                let past = if bits == 64 { self.writer.value(format_args!("zext i32 {past} to i64")) } else { past };
                let past = self.writer.broadcast(&format!("i{bits}"), width, past);
                let early = self.writer.value(format_args!("icmp ugt {kind} {past}, <{lanes}>"));
                let order = self.writer.value(format_args!("sub {kind} <{lanes}>, {past}"));
                let all = self.writer.splat(&format!("i{bits}"), width, 2 * width - 1);
                let ahead = self.writer.splat(&format!("i{bits}"), width, width);
                let order = self.writer.value(format_args!("add {kind} {order}, {ahead}"));
                let order = self.writer.value(format_args!("and {kind} {order}, {all}"));
                let kind = kind.clone();
                self.streams.push(Stream { slot, row, kind, line, order, early, before: order, width, bits });
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
        for &(number, value) in values {
            let slot = self.streams[number].slot;
            let (kind, width) = (self.streams[number].kind.clone(), self.streams[number].width);
            let own = memory(self.request.slots[slot].dtype);
            let current = self.writer.value(format_args!("bitcast <{width} x {own}> {value} to {kind}"));
            let line = self.joined(number, current);
            self.streams[number].before = current;
            let address = self.line_address(number, &at.element, at.offset);
            lines.push((number, line, address));
        }
        if at.offset > 0 {
            return self.write_lines(&lines);
        }
        // The row's first elements.
        let (first, rest, join) = (self.writer.label("first"), self.writer.label("rest"), self.writer.label("written"));
        let is_first = self.writer.value(format_args!("icmp eq i64 {}, 0", at.element));
        self.writer.line(format_args!("br i1 {is_first}, label %{first}, label %{rest}, !prof !0"));
        self.writer.begin(&first);
        for &(number, line, address) in &lines {
            let Stream { early, width, .. } = self.streams[number];
            let all = self.writer.splat("i1", width, "true");
            let late = self.writer.value(format_args!("xor <{width} x i1> {early}, {all}"));
            self.write_part(number, line, address, late);
        }
        self.writer.line(format_args!("br label %{join}"));
        self.writer.begin(&rest);
        self.write_lines(&lines);
        self.writer.line(format_args!("br label %{join}"));
        self.writer.begin(&join);
    }

    /// Writes what is left of the last vectors, after a loop that ends at element `end`.
    pub(crate) fn end_streams(&mut self, end: &str) {
        for number in 0..self.streams.len() {
            let (early, before) = (self.streams[number].early, self.streams[number].before);
            let line = self.joined(number, before);
            let address = self.line_address(number, end, 0);
            self.write_part(number, line, address, early);
        }
        self.streams.clear();
    }

    /// The aligned vector that ends in `current`.
    fn joined(&mut self, number: usize, current: Value) -> Value {
        let Stream { ref kind, order, before, width, bits, .. } = self.streams[number];
        let form = if bits == 64 { "q" } else { "d" };
        let name = format!("llvm.x86.avx512.vpermi2var.{form}.{}", usize::from(width) * bits);
        let kind = kind.clone();
        self.writer.intrinsic(&name, &kind, &[(&kind, &before), (&kind, &order), (&kind, &current)])
    }

    fn line_address(&mut self, number: usize, element: &str, offset: u16) -> Value {
        let Stream { line, bits, .. } = self.streams[number];
        let address = self.writer.value(format_args!("getelementptr i{bits}, ptr {line}, i64 {element}"));
        match offset {
            0 => address,
            offset => self.writer.value(format_args!("getelementptr i{bits}, ptr {address}, i64 {offset}")),
        }
    }

    fn write_lines(&mut self, lines: &[(usize, Value, Value)]) {
        for &(number, line, address) in lines {
            let Stream { ref kind, width, bits, .. } = self.streams[number];
            let align = usize::from(width) * bits / 8;
            self.writer.line(format_args!("store {kind} {line}, ptr {address}, align {align}, !nontemporal !1"));
        }
    }

    fn write_part(&mut self, number: usize, line: Value, address: Value, mask: Value) {
        let Stream { ref kind, width, bits, .. } = self.streams[number];
        self.writer.intrinsic_line(
            &format!("llvm.masked.store.v{width}i{bits}.p0"),
            &[
                (kind, &line),
                ("ptr", &address),
                ("i32", &format_args!("{}", bits / 8)),
                (&format!("<{width} x i1>"), &mask),
            ],
        );
    }
}
