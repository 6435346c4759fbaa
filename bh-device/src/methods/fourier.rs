//! Discrete Fourier transforms along the last axis: passes of Stockham's algorithm, each of which does transforms of some
//! elements in local memory. Lengths with large prime factors are convolutions of lengths without (Bluestein). A library
//! may transform lines.

pub(super) mod real;
mod registers;

use super::lines::Lines;
use super::{Call, Kernels};
use crate::code::{Code, KernelMemory, Variant, Writer, is_wide};
use crate::driver::{Direction, Task};
use bh_bytecode::DType;
use bh_bytecode::c::type_name;
use registers::Registers;
use std::fmt::Write;

/// Prime factors that transforms have code for.
const PRIMES: [i64; 6] = [2, 3, 5, 7, 11, 13];
/// Bytes of the elements of a group, of which it has two copies.
const LOCAL: i64 = 16 << 10;
/// Elements of a line that a pass of several transforms together.
const RADIX: i64 = 320;
/// Items of a group at most: each transforms some elements in registers.
const ITEMS: usize = 128;
/// Longer tables of roots are products of two short ones.
const TABLE: i64 = 4096;
/// Where the roots of unity are, or the work space of a library.
const ROOTS: KernelMemory = KernelMemory::Scratch(0);

/// The kernels of a transform, and the bytes of the memory between them.
pub(super) fn transform(call: &Call<'_, '_>, inverse: bool) -> Option<Kernels> {
    let operands = call.batch.instrs[call.instr as usize].operands();
    let (to, from) = (Lines::new(call.batch, operands[0])?, Lines::new(call.batch, operands[1])?);
    let mut plan = Plan::new(call, to.dtype, to.len * to.count());
    let out = Out { conjugate: inverse, scale: if inverse { 1.0 / to.len as f64 } else { 1.0 } };
    let direction = if inverse { Direction::Inverse } else { Direction::Forward };
    let is_complex = from.dtype == to.dtype;
    match is_complex.then(|| call.transforms(direction, to.len, [&to, &from])).flatten() {
        Some(task) => {
            plan.library(task, &to, &from);
            if inverse {
                plan.scale(&to, out.scale);
            }
        }
        None => plan.transform(&from, &to, out),
    }
    Some(plan.finish())
}

/// The prime factors of a length, the largest first; none if one is too large.
fn factors(n: i64) -> Option<Vec<i64>> {
    let (mut left, mut found) = (n, Vec::new());
    for prime in PRIMES.into_iter().rev() {
        while left % prime == 0 && left > 1 {
            found.push(prime);
            left /= prime;
        }
    }
    (left == 1).then_some(found)
}

/// The lengths of the transforms of each pass: one if a line fits local memory, else such that each fits several times.
fn radices(n: i64, single: i64) -> Vec<i64> {
    let found = factors(n).unwrap_or_default();
    if n <= single {
        return vec![n];
    }
    for count in 2.. {
        let mut passes = vec![1; count];
        for factor in &found {
            let least = passes.iter_mut().min_by_key(|product| **product);
            least.into_iter().for_each(|product| *product *= factor);
        }
        if passes.iter().all(|&product| product <= RADIX) {
            return passes;
        }
    }
    unreachable!("with as many passes as factors each has one")
}

/// The steps of a transform in local memory: factors whose transforms are made in registers.
fn steps(mut n: i64) -> Vec<i64> {
    let mut found = Vec::new();
    for radix in [8, 4, 2, 3, 5, 7, 11, 13] {
        // Two fours are less than an eight and a two.
        while n % radix == 0 && n > 1 && !(radix == 8 && n == 16) {
            found.push(radix);
            n /= radix;
        }
    }
    found
}

/// The least length without large factors from `least` on: a power of two, or a little more than one.
fn padded(least: i64) -> i64 {
    let of = |odd: i64| {
        odd * (least.div_euclid(odd) + i64::from(least % odd != 0)).max(1).unsigned_abs().next_power_of_two() as i64
    };
    [1, 3, 5, 9, 15].into_iter().map(of).min().unwrap_or(least)
}

/// The last step on the results of a transform.
#[derive(Clone, Copy)]
struct Out {
    conjugate: bool,
    scale: f64,
}

const PLAIN: Out = Out { conjugate: false, scale: 1.0 };

/// A table of the roots exp(-2πi·j·step/of), for j from 0 to `len`.
struct Table {
    of: i64,
    step: i64,
    len: i64,
    first: i64,
}

/// Where the tables have the roots of one length.
#[derive(Clone, Copy)]
struct Roots {
    dtype: DType,
    first: i64,
    /// The number of roots in the first table and where the second one begins, if roots are products of two.
    coarse: Option<(i64, i64)>,
}

impl Roots {
    /// An expression of the root with the number `at`.
    fn at(self, writer: &mut Writer, at: &str) -> String {
        let (roots, first) = (writer.buffer(ROOTS, self.dtype, false), self.first);
        match self.coarse {
            None => format!("{roots}[{first} + {at}]"),
            Some((fine, coarse)) => format!(
                "bh_mul_{}({roots}[{first} + ({at}) % {fine}], {roots}[{coarse} + ({at}) / {fine}])",
                self.dtype
            ),
        }
    }
}

/// The transforms of one element each of this many of a line, which a pass makes.
struct Pass {
    radix: i64,
    /// Elements of a line, and the product of the radices of the passes before.
    n: i64,
    done: i64,
    conjugate: bool,
    out: Out,
}

/// Kernels under construction.
struct Plan<'a, 'b, 'c> {
    call: &'a Call<'b, 'c>,
    dtype: DType,
    wide: bool,
    codes: Vec<Code>,
    scratch: Vec<usize>,
    tables: Vec<Table>,
}

impl<'a, 'b, 'c> Plan<'a, 'b, 'c> {
    /// A plan for this many elements of a complex type in all lines.
    fn new(call: &'a Call<'b, 'c>, dtype: DType, elements: i64) -> Plan<'a, 'b, 'c> {
        let operands = call.batch.instrs[call.instr as usize].operands();
        let wide = is_wide(call.batch, operands) || elements > 1 << 28;
        Plan { call, dtype, wide, codes: Vec::new(), scratch: vec![0], tables: Vec::new() }
    }

    /// Gives the lines to a library, which asks for the bytes of its work space.
    fn library(&mut self, (task, room): (Task, usize), to: &Lines, from: &Lines) {
        self.codes.push(Code::of_library(task, vec![to.memory, from.memory, ROOTS]));
        self.scratch[0] = room;
    }

    /// The transforms of all lines, or of their conjugates if the results are.
    fn transform(&mut self, from: &Lines, to: &Lines, out: Out) {
        match factors(to.len) {
            Some(_) => self.passes(from, to, out.conjugate, out),
            None => self.convolution(from, to, out.conjugate, out.scale),
        }
    }

    fn single(&self) -> i64 {
        LOCAL / self.dtype.size() as i64 / if self.call.target.halves() < 2 { 2 } else { 1 }
    }

    /// Dense lines in memory between kernels.
    fn memory(&mut self, count: i64, len: i64) -> Lines {
        self.scratch.push((count * len) as usize * self.dtype.size());
        Lines::between(KernelMemory::Scratch(self.scratch.len() as u16 - 1), self.dtype, count, len)
    }

    /// The first element of a table of roots.
    fn table(&mut self, of: i64, step: i64, len: i64) -> i64 {
        if let Some(known) = self.tables.iter().find(|known| (known.of, known.step, known.len) == (of, step, len)) {
            return known.first;
        }
        let first = self.tables.last().map_or(0, |last| last.first + last.len);
        self.tables.push(Table { of, step, len, first });
        first
    }

    /// The roots of this many.
    fn roots(&mut self, of: i64) -> Roots {
        let dtype = self.dtype;
        if of <= TABLE {
            return Roots { dtype, first: self.table(of, 1, of), coarse: None };
        }
        let fine = 1 << (63 - (of as u64).leading_zeros()).div_ceil(2);
        let (first, coarse) = (self.table(of, 1, fine), self.table(of, fine, of / fine + 1));
        Roots { dtype, first, coarse: Some((fine, coarse)) }
    }

    /// An expression of the root with the number `at` of this many.
    fn root(&mut self, writer: &mut Writer, of: i64, at: &str) -> String {
        self.roots(of).at(writer, at)
    }

    /// The transforms of all lines, pass by pass; `conjugate`: of the conjugates of what is read.
    fn passes(&mut self, from: &Lines, to: &Lines, conjugate: bool, out: Out) {
        let (n, count) = (to.len, to.count());
        let radices = radices(n, self.single());
        let between: Vec<Lines> = (0..(radices.len() - 1).min(2)).map(|_| self.memory(count, n)).collect();
        let mut done = 1;
        for (at, &radix) in radices.iter().enumerate() {
            let (first, last) = (at == 0, at + 1 == radices.len());
            let source = if first { from } else { &between[(at + 1) % 2] };
            let target = if last { to } else { &between[at % 2] };
            let pass = Pass { radix, n, done, conjugate: conjugate && first, out: if last { out } else { PLAIN } };
            self.pass(&pass, source, target);
            done *= radix;
        }
    }

    /// One pass: groups take some transforms each to local memory.
    fn pass(&mut self, pass: &Pass, from: &Lines, to: &Lines) {
        let (radix, n, count) = (pass.radix, pass.n, to.count());
        let (per, total) = (n / radix, n / radix * count);
        let together = (self.single() / radix).clamp(1, total.max(1));
        let mut writer = Writer::new(Variant::Parameterised, self.wide);
        let (index, name, group) = (writer.index(), type_name(self.dtype), self.call.target.group.min(ITEMS));
        let all = together * radix;
        let lines = writer.numbers.text(count);
        // Neighbouring transforms are of neighbouring lines if those are neighbours in memory.
        let (first, last) = (pass.done == 1, pass.done * radix == n);
        let across = (first && from.is_across()) || (last && to.is_across());
        let place = |of: &str| match across {
            true => format!("const {index} line = {of} % {lines}, t = {of} / {lines};\n"),
            false => format!("const {index} line = {of} / {per}, t = {of} % {per};\n"),
        };
        let by_transforms = format!("const int c = e % {together}, j = e / {together};\n");
        let by_elements = format!("const int c = e / {radix}, j = e % {radix};\n");
        let reads = if per > 1 || from.is_across() { &by_transforms } else { &by_elements };
        let near = if last { per > 1 || to.is_across() } else { pass.done >= together.min(4) };
        let writes = if near { &by_transforms } else { &by_elements };
        let mut body = format!(
            "BH_LOCAL {name} m0[{all}], m1[{all}];\nconst int item = BH_ITEM;\n\
             const {index} first = ({index})BH_GROUP * {together};\n"
        );
        let end = writer.numbers.text(total);
        let (begin, value) = (
            from.begin(&mut writer, "line", "from"),
            from.element(&mut writer, "from", &format!("t + ({index}){per} * j"), false),
        );
        let value = if from.dtype.is_complex() { value } else { format!("bh_make_{}({value}, 0)", self.dtype) };
        let value = if pass.conjugate { format!("bh_conj_{}({value})", self.dtype) } else { value };
        write!(
            body,
            "for (int e = item; e < {all}; e += {group}) {{\n{reads}const {index} u = first + c;\n\
             {name} value = bh_make_{}(0, 0);\nif (u < {end}) {{\n{}{begin}value = {value};\n}}\nm0[j * {together} + c] = value;\n}}\n\
             BH_BARRIER;\n",
            self.dtype,
            place("u")
        )
        .unwrap_or_default();
        let steps = steps(radix);
        let mut done = 1;
        for (number, &step) in steps.iter().enumerate() {
            let text = self.step(&mut writer, (radix, done, step), together, (number % 2, 1 - number % 2), group);
            body += &text;
            done *= step;
        }
        let found = steps.len() % 2;
        let mut value = format!("m{found}[j * {together} + c]");
        if !last {
            let root = self.root(&mut writer, n, &format!("p * j * {}", pass.done));
            value = format!("bh_mul_{}({value}, {root})", self.dtype);
        }
        if pass.out.conjugate {
            value = format!("bh_conj_{}({value})", self.dtype);
        }
        let scale = match pass.out.scale {
            1.0 => String::new(),
            scale => {
                let scale = number(self.dtype, scale);
                format!("value.re *= {scale};\nvalue.im *= {scale};\n")
            }
        };
        let begin = to.begin(&mut writer, "line", "to");
        let store = to.store(&mut writer, "to", "at", "value");
        let done = pass.done;
        write!(
            body,
            "for (int e = item; e < {all}; e += {group}) {{\n{writes}const {index} u = first + c;\nif (u < {end}) {{\n{}\
             const {index} q = t % {done}, p = t / {done}, at = q + {done} * ({radix} * p + j);\n{begin}\
             {name} value = {value};\n{scale}{store}}}\n}}\n",
            place("u")
        )
        .unwrap_or_default();
        let groups = (total as u64).div_ceil(together as u64) as usize;
        self.codes.push(writer.finish(self.call.target, groups, group, &body));
    }

    /// A step of the transforms in local memory: `radix` elements, of which `done` are the product of the steps before.
    fn step(
        &mut self,
        writer: &mut Writer,
        (radix, done, step): (i64, i64, i64),
        together: i64,
        (from, to): (usize, usize),
        group: usize,
    ) -> String {
        let (others, left) = (radix / step, radix / done / step);
        let mut text = format!(
            "for (int w = item; w < {}; w += {group}) {{\nconst int c = w % {together}, i = w / {together};\n\
             const int q = i % {done}, p = i / {done};\n",
            together * others
        );
        let mut values = Vec::new();
        for j in 0..step {
            writeln!(text, "const {} x{j} = m{from}[(i + {}) * {together} + c];", type_name(self.dtype), others * j)
                .unwrap_or_default();
            values.push((format!("x{j}.re"), format!("x{j}.im")));
        }
        let results = Registers { text: &mut text, dtype: self.dtype, count: 0 }.transform(&values);
        for (k, (re, im)) in results.into_iter().enumerate() {
            let value = format!("bh_make_{}({re}, {im})", self.dtype);
            let value = match left > 1 && k > 0 {
                true => {
                    let root = self.root(writer, radix, &format!("p * {}", k as i64 * done));
                    format!("bh_mul_{}({value}, {root})", self.dtype)
                }
                false => value,
            };
            writeln!(text, "m{to}[(q + {done} * ({step} * p + {k})) * {together} + c] = {value};").unwrap_or_default();
        }
        text + "}\nBH_BARRIER;\n"
    }

    /// A transform as a convolution with a chirp, of a length without large factors.
    fn convolution(&mut self, from: &Lines, to: &Lines, conjugate: bool, scale: f64) {
        let (n, count) = (to.len, to.count());
        let m = padded(2 * n - 1);
        let (chirp, filter) = (self.memory(1, m), self.memory(1, m));
        let (padded, spectrum) = (self.memory(count, m), self.memory(count, m));
        let (name, dtype) = (type_name(self.dtype), self.dtype);
        // exp(sign·πi·j²/n): squares modulo 2n are exact.
        let angle = |sign: &str| {
            let wide = self.call.wide();
            format!(
                "const ulong square = (ulong)j * (ulong)j % {}UL;\nconst {wide} turn = ({wide})square / ({wide}){n};\n\
                 const {name} chirp = bh_make_{dtype}(cospi(turn), {sign}sinpi(turn));\n",
                2 * n
            )
        };
        // The filter, which is symmetric.
        self.each(1, m, |writer| {
            let begin = chirp.begin(writer, "line", "to");
            let target = chirp.element(writer, "to", "at", true);
            let index = writer.index();
            format!(
                "const {index} j = at < {n} ? at : at > {} ? {m} - at : 0;\n{}{begin}\
                 {target} = j == 0 && at > 0 ? bh_make_{dtype}(0, 0) : chirp;\n",
                m - n,
                angle("")
            )
        });
        self.passes(&chirp, &filter, false, PLAIN);
        self.each(count, m, |writer| {
            let (from_begin, to_begin) = (from.begin(writer, "line", "from"), padded.begin(writer, "line", "to"));
            let (source, target) = (from.element(writer, "from", "j", false), padded.element(writer, "to", "at", true));
            let source = if from.dtype.is_complex() { source } else { format!("bh_make_{dtype}({source}, 0)") };
            let source = if conjugate { format!("bh_conj_{dtype}({source})") } else { source };
            let index = writer.index();
            format!(
                "const {index} j = min(({index})at, ({index}){});\n{}{from_begin}{to_begin}\
                 {name} value = bh_make_{dtype}(0, 0);\nif (at < {n}) value = bh_mul_{dtype}({source}, chirp);\n{target} = value;\n",
                n - 1,
                angle("-")
            )
        });
        self.passes(&padded, &spectrum, false, PLAIN);
        // The inverse transform is the conjugate of the transform of the conjugate.
        self.each(count, m, |writer| {
            let (begin, one) = (spectrum.begin(writer, "line", "own"), filter.begin(writer, "0", "one"));
            let (value, other) =
                (spectrum.element(writer, "own", "at", true), filter.element(writer, "one", "at", false));
            format!("{begin}{one}{value} = bh_conj_{dtype}(bh_mul_{dtype}({value}, {other}));\n")
        });
        self.passes(&spectrum, &padded, false, PLAIN);
        let scale = number(dtype, scale / m as f64);
        self.each(count, n, |writer| {
            let (from_begin, to_begin) = (padded.begin(writer, "line", "from"), to.begin(writer, "line", "to"));
            let (source, store) = (padded.element(writer, "from", "at", false), to.store(writer, "to", "at", "result"));
            let sign = if conjugate { "-" } else { "" };
            let index = writer.index();
            format!(
                "const {index} j = at;\n{}{from_begin}{to_begin}\
                 const {name} value = bh_mul_{dtype}(bh_conj_{dtype}({source}), chirp);\n\
                 const {name} result = bh_make_{dtype}(value.re * {scale}, {sign}value.im * {scale});\n{store}",
                angle("-")
            )
        });
    }

    /// Multiplies lines by a number.
    fn scale(&mut self, lines: &Lines, by: f64) {
        let by = number(self.dtype, by);
        self.each(lines.count(), lines.len, |writer| {
            let begin = lines.begin(writer, "line", "own");
            let element = lines.element(writer, "own", "at", true);
            format!("{begin}{element}.re *= {by};\n{element}.im *= {by};\n")
        });
    }

    /// A kernel for each element `at` of each `line`.
    fn each(&mut self, count: i64, len: i64, body: impl FnOnce(&mut Writer) -> String) {
        let target = self.call.target;
        let mut writer = Writer::new(Variant::Parameterised, self.wide);
        let (index, body) = (writer.index(), body(&mut writer));
        let (end, len_text) = (writer.numbers.text(count * len), writer.numbers.text(len));
        let text = format!(
            "const {index} u = BH_INDEX;\nif (u < {end}) {{\nconst {index} line = u / {len_text}, at = u % {len_text};\n{body}}}\n"
        );
        let groups = (count * len).unsigned_abs().div_ceil(target.group as u64) as usize;
        self.codes.push(writer.finish(target, groups, target.group, &text));
    }

    /// All kernels, that of the tables first.
    fn finish(mut self) -> Kernels {
        let total = self.tables.last().map_or(0, |last| last.first + last.len);
        if total == 0 {
            // No kernel has them.
            return (self.codes, self.scratch);
        }
        self.scratch[0] = total as usize * self.dtype.size();
        let mut writer = Writer::new(Variant::Parameterised, true);
        let roots = writer.buffer(ROOTS, self.dtype, true);
        let mut body = String::from("const long u = BH_INDEX;\nlong j = 0, of = 1;\n");
        for table in &self.tables {
            let Table { of, step, len, first } = table;
            writeln!(body, "if (u >= {first} && u < {}) {{ j = (u - {first}) * {step}; of = {of}; }}", first + len)
                .unwrap_or_default();
        }
        let wide = self.call.wide();
        write!(
            body,
            "const {wide} turn = ({wide})(2 * j) / ({wide})of;\nif (u < {total}) {roots}[u] = bh_make_{}(cospi(turn), -sinpi(turn));\n",
            self.dtype
        )
        .unwrap_or_default();
        let group = self.call.target.group;
        let code = writer.finish(self.call.target, (total as usize).div_ceil(group), group, &body);
        self.codes.insert(0, code);
        (self.codes, self.scratch)
    }
}

/// A number in the text.
fn number(dtype: DType, value: f64) -> String {
    if dtype == DType::C128 { format!("{value:e}") } else { format!("{value:e}f") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_parted_into_passes_and_steps() {
        assert_eq!(radices(1000, 1024), [1000]);
        assert_eq!(radices(1 << 24, 1024), [256, 256, 256]);
        for n in [1 << 11, 10_000_000, 3 * 5 * 7 * 11 * 13, 1 << 30] {
            let passes = radices(n, 1024);
            assert_eq!(passes.iter().product::<i64>(), n);
            assert!(passes.iter().all(|&radix| radix <= RADIX && steps(radix).iter().product::<i64>() == radix));
        }
        assert_eq!(factors(2 * 17), None);
        assert_eq!(steps(256), [8, 8, 4]);
        assert_eq!([padded(1), padded(33), padded(2 * 509 - 1)], [1, 36, 1024]);
    }
}
