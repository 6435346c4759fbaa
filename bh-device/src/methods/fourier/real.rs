//! Discrete Fourier transforms of real numbers along the last axis, and back. Those of an even number of elements are transforms of half as
//! many complex numbers, whose parts are neighbours (Cooley, Lewis and Welch 1970); the others are transforms of complex numbers.

use super::{Out, PLAIN, Plan, number};
use crate::driver::Direction;
use crate::methods::lines::Lines;
use crate::methods::{Call, Kernels};
use bh_bytecode::c::type_name;

/// The kernels for the first half of the transform of real numbers.
pub(in crate::methods) fn forward(call: &Call<'_, '_>) -> Option<Kernels> {
    let operands = call.batch.instrs[call.instr as usize].operands();
    let (to, from) = (Lines::new(call.batch, operands[0])?, Lines::new(call.batch, operands[1])?);
    let (len, count) = (from.len, from.count());
    let mut plan = Plan::new(call, to.dtype, len * count);
    if let Some(task) = call.transforms(Direction::FromReal, len, [&to, &from]) {
        plan.library(task, &to, &from);
    } else if len % 2 == 0 {
        let pairs = plan.memory(count, len / 2);
        plan.transform(&from.pairs(), &pairs, PLAIN);
        plan.unfold(&pairs, &to, len);
    } else {
        let whole = plan.memory(count, len);
        plan.transform(&from, &whole, PLAIN);
        plan.copy(&whole, &to, "");
    }
    Some(plan.finish())
}

/// The kernels for real numbers from the first half of their transform.
pub(in crate::methods) fn inverse(call: &Call<'_, '_>) -> Option<Kernels> {
    let operands = call.batch.instrs[call.instr as usize].operands();
    let (to, from) = (Lines::new(call.batch, operands[0])?, Lines::new(call.batch, operands[1])?);
    let (len, count) = (to.len, to.count());
    let mut plan = Plan::new(call, from.dtype, len * count);
    let out = Out { conjugate: true, scale: 1.0 / len as f64 };
    // A library overwrites the halves.
    let halves = plan.memory(count, from.len);
    if let Some(task) = call.transforms(Direction::ToReal, len, [&to, &halves]) {
        plan.halves(&from, &halves, (len, out.scale));
        plan.library(task, &to, &halves);
        return Some(plan.finish());
    }
    plan.scratch.truncate(1);
    if len % 2 == 0 {
        let pairs = plan.memory(count, len / 2);
        plan.fold(&from, &pairs, len);
        plan.transform(&pairs, &to.pairs(), out);
    } else {
        let (whole, made) = (plan.memory(count, len), plan.memory(count, len));
        plan.complete(&from, &whole);
        plan.transform(&whole, &made, out);
        plan.copy(&made, &to, ".re");
    }
    Some(plan.finish())
}

impl Plan<'_, '_, '_> {
    /// Copies the first `to.len` elements of each line, or the part `part` of each number.
    fn copy(&mut self, from: &Lines, to: &Lines, part: &str) {
        self.each(to.count(), to.len, |writer| {
            let (from_begin, to_begin) = (from.begin(writer, "line", "from"), to.begin(writer, "line", "to"));
            let (source, target) = (from.element(writer, "from", "at", false), to.element(writer, "to", "at", true));
            format!("{from_begin}{to_begin}{target} = {source}{part};\n")
        });
    }

    /// Makes the first halves of transforms of `len` real numbers of the transforms of their pairs.
    fn unfold(&mut self, from: &Lines, to: &Lines, len: i64) {
        let (dtype, half) = (self.dtype, number(self.dtype, 0.5));
        let (name, part) = (type_name(dtype), type_name(dtype.real_part()));
        let roots = self.roots(len);
        self.each(from.count(), len / 4 + 1, |writer| {
            let (from_begin, to_begin) = (from.begin(writer, "line", "from"), to.begin(writer, "line", "to"));
            let [own, other] = ["at", "other"].map(|at| from.element(writer, "from", at, false));
            let [first, second] = ["at", "partner"].map(|at| to.element(writer, "to", at, true));
            let (index, root, half_len) = (writer.index(), roots.at(writer, "at"), len / 2);
            format!(
                "const {index} partner = {half_len} - at, other = at > 0 ? partner : 0;\n{from_begin}{to_begin}\
                 const {name} a = {own}, b = {other};\n\
                 const {name} turned = bh_mul_{dtype}(bh_make_{dtype}((a.re - b.re) * {half}, (a.im + b.im) * {half}), {root});\n\
                 const {part} re = (a.re + b.re) * {half}, im = (a.im - b.im) * {half};\n\
                 {first} = bh_make_{dtype}(re + turned.im, im - turned.re);\n\
                 {second} = bh_make_{dtype}(re - turned.im, -(im + turned.re));\n"
            )
        });
    }

    /// Makes the transforms of pairs of the first halves of transforms of `len` real numbers, times `len`.
    fn fold(&mut self, from: &Lines, to: &Lines, len: i64) {
        let dtype = self.dtype;
        let (name, part) = (type_name(dtype), type_name(dtype.real_part()));
        let roots = self.roots(len);
        self.each(from.count(), len / 4 + 1, |writer| {
            let (from_begin, to_begin) = (from.begin(writer, "line", "from"), to.begin(writer, "line", "to"));
            let [own, other] = ["at", "partner"].map(|at| from.element(writer, "from", at, false));
            let [first, second] = ["at", "partner"].map(|at| to.element(writer, "to", at, true));
            let (index, root, half_len) = (writer.index(), roots.at(writer, "at"), len / 2);
            format!(
                "const {index} partner = {half_len} - at;\n{from_begin}{to_begin}{name} a = {own}, b = {other};\n\
                 if (at == 0) a.im = b.im = 0;\n\
                 const {name} turned = bh_mul_{dtype}(bh_make_{dtype}(a.re - b.re, a.im + b.im), bh_conj_{dtype}({root}));\n\
                 const {part} re = a.re + b.re, im = a.im - b.im;\n\
                 {first} = bh_make_{dtype}(re - turned.im, im + turned.re);\n\
                 if (at > 0) {second} = bh_make_{dtype}(re + turned.im, turned.re - im);\n"
            )
        });
    }

    /// Makes whole transforms of first halves.
    fn complete(&mut self, from: &Lines, to: &Lines) {
        let (dtype, len, half) = (self.dtype, to.len, from.len);
        let name = type_name(dtype);
        self.each(from.count(), len, |writer| {
            let (from_begin, to_begin) = (from.begin(writer, "line", "from"), to.begin(writer, "line", "to"));
            let (source, store) = (from.element(writer, "from", "own", false), to.store(writer, "to", "at", "value"));
            let index = writer.index();
            format!(
                "const {index} own = at < {half} ? at : {len} - at;\n{from_begin}{to_begin}{name} value = {source};\n\
                 if (at == 0) value.im = 0;\nif (at >= {half}) value = bh_conj_{dtype}(value);\n{store}"
            )
        });
    }

    /// Multiplies first halves of transforms of `len` real numbers by a number. Elements without a partner in the other half become real.
    fn halves(&mut self, from: &Lines, to: &Lines, (len, by): (i64, f64)) {
        let (name, by) = (type_name(self.dtype), number(self.dtype, by));
        self.each(from.count(), from.len, |writer| {
            let (from_begin, to_begin) = (from.begin(writer, "line", "from"), to.begin(writer, "line", "to"));
            let (source, store) = (from.element(writer, "from", "at", false), to.store(writer, "to", "at", "value"));
            format!(
                "{from_begin}{to_begin}{name} value = {source};\nvalue.re *= {by};\n\
                 value.im = at == 0 || 2 * at == {len} ? 0 : value.im * {by};\n{store}"
            )
        });
    }
}
