//! Scatters. Of values for one element the last in C order wins: each item claims its element with its number, the highest
//! number stays, and its owner writes. Sums of whole numbers of 32 or 64 bits are the same in any order: items add at once, in the memory
//! of their group first if there are few elements. Other sums are made in C order: indices are sorted with their numbers, and one item adds
//! all that belong to an element, so that results are the same to the last bit in every run.

use super::unroll::rolled;
use super::view::{Access, indices, is_wide};
use super::{Code, KernelMemory, Target, Variant, Writer};
use bh_bytecode::c::{expression, type_name};
use bh_bytecode::{BatchRef, DType, Opcode};

/// Numbers of elements and values fit 32 bits, with one to spare for no element.
const MOST: i64 = (1 << 31) - 2;
/// Bits that a step of the sort looks at.
const DIGIT: u32 = 4;
/// Items of the sort, each with a run of neighbours.
const SORTERS: i64 = 4096;

/// Bytes of local memory for sums, where there is much and where there is little; and the fewest indices for each element with which
/// groups have sums of their own.
const LOCAL: [usize; 2] = [32 << 10, 16 << 10];
const SHARE: i64 = 4;
/// Items of such a group at most, unless groups have more.
const COUNTERS: usize = 1024;

/// Memory between the kernels of a scatter.
const OWNERS: KernelMemory = KernelMemory::Scratch(0);
const KEYS: [KernelMemory; 2] = [KernelMemory::Scratch(0), KernelMemory::Scratch(1)];
const NUMBERS: [KernelMemory; 2] = [KernelMemory::Scratch(2), KernelMemory::Scratch(3)];
const COUNTS: KernelMemory = KernelMemory::Scratch(4);
/// Copies of operands that lie in the base that is written.
const COPIES: u16 = 5;

/// Which part of all elements the output of a scatter is: from this number on, of this many. Indices count all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) first: i64,
    pub(crate) whole: i64,
}

/// The kernels of a scatter instruction (index in the batch), and the bytes of the memory between them. `None` if the
/// device cannot do it.
pub(crate) fn scatter(
    batch: &BatchRef<'_>,
    instr: u32,
    target: &Target,
    variant: Variant,
) -> Option<(Vec<Code>, Vec<usize>)> {
    scatter_range(batch, instr, target, variant, None)
}

/// As [`scatter`], where the output may be a part of what the indices count.
pub(crate) fn scatter_range<'a>(
    batch: &BatchRef<'a>,
    instr: u32,
    target: &Target,
    variant: Variant,
    range: Option<Range>,
) -> Option<(Vec<Code>, Vec<usize>)> {
    let record = &batch.instrs[instr as usize];
    let mut operands = record.operands().iter().map(|&operand| Access::new(batch, operand));
    let (output, value, index) = (operands.next()?, operands.next()?, operands.next()?);
    let mask = operands.next();
    let elements: i64 = output.shape().iter().product();
    // Constants are the same everywhere.
    let shape =
        [Some(&value), Some(&index), mask.as_ref()].into_iter().flatten().find(|it| it.base().is_some())?.shape();
    let count: i64 = shape.iter().product();
    if elements > MOST || count > MOST {
        return None;
    }
    if count == 0 {
        return Some((Vec::new(), Vec::new()));
    }
    let wide = is_wide(batch, record.operands());
    let mut copies = Vec::new();
    let mut apart = |operand: Access<'a>| {
        if operand.base() != output.base() {
            return (operand, 0);
        }
        let (dtype, place) = (operand.dtype, KernelMemory::Scratch(COPIES + copies.len() as u16));
        let mut writer = Writer::new(variant, wide);
        let (index, end) = (writer.index(), writer.numbers.text(count));
        let (split, names) = indices(&mut writer, operand.shape(), "t", "i");
        let source = operand.element(&mut writer, &names, false);
        let copy = writer.buffer(place, dtype, true);
        let body =
            format!("for ({index} t = BH_INDEX; t < {end}; t += BH_INDICES) {{\n{split}{copy}[t] = {source};\n}}\n");
        let groups = (count as u64).div_ceil(target.group as u64).min(1 << 22) as usize;
        copies.push(writer.finish(target, groups, target.group, &body));
        (operand.copied(place), count as usize * dtype.size())
    };
    let ((value, value_bytes), (index, index_bytes)) = (apart(value), apart(index));
    let (mask, mask_bytes) = mask.map(apart).map_or((None, 0), |(mask, bytes)| (Some(mask), bytes));
    let scatter = Scatter { output, value, index, mask, shape, elements, range, count, instr, target, variant, wide };
    let (codes, mut scratch) = match record.opcode {
        Opcode::ScatterAdd if scatter.is_counted() => (vec![scatter.counts()], Vec::new()),
        Opcode::ScatterAdd => scatter.sums(),
        _ => scatter.last(),
    };
    scratch.resize(COPIES as usize, 0);
    scratch.extend([value_bytes, index_bytes, mask_bytes].into_iter().filter(|bytes| *bytes > 0));
    copies.extend(codes);
    Some((copies, scratch))
}

struct Scatter<'a> {
    output: Access<'a>,
    value: Access<'a>,
    index: Access<'a>,
    mask: Option<Access<'a>>,
    /// The extents of value, index and mask.
    shape: &'a [i64],
    elements: i64,
    range: Option<Range>,
    count: i64,
    instr: u32,
    target: &'a Target,
    variant: Variant,
    wide: bool,
}

impl Scatter<'_> {
    fn writer(&self) -> Writer {
        Writer::new(self.variant, self.wide)
    }

    fn finish(&self, writer: Writer, items: i64, body: &str) -> Code {
        let groups = (items as u64).div_ceil(self.target.group as u64).clamp(1, 1 << 22) as usize;
        writer.finish(self.target, groups, self.target.group, body)
    }

    /// A loop over all indices, whose body comes after the place in `place` and whether there is one in `valid`.
    fn each(&self, writer: &mut Writer, notes: bool, body: &str) -> String {
        let index = writer.index();
        let count = writer.numbers.text(self.count);
        let (split, names) = indices(writer, self.shape, "t", "i");
        let source = self.index.element(writer, &names, false);
        let whole = self.range.map_or(self.elements, |range| range.whole);
        let elements = writer.numbers.text(whole);
        let mut text = format!("for ({index} t = BH_INDEX; t < {count}; t += BH_INDICES) {{\n{split}");
        let wanted = self.mask.as_ref().map(|mask| mask.element(writer, &names, false));
        text += &format!("const int wanted = {};\n", wanted.map_or("1".into(), |mask| format!("{mask} != 0")));
        text += &format!("const long given = (long){source};\nlong place = given;\n");
        if self.index.dtype == DType::I64 {
            text += &format!("if (place < 0) place += {elements};\n");
        }
        text += &format!("const int inside = (ulong)place < (ulong){elements}");
        match self.range {
            None => text += ", valid = wanted && inside;\n",
            Some(range) => {
                let (first, own) = (writer.numbers.text(range.first), writer.numbers.text(self.elements));
                text += &format!(";\nplace -= {first};\n");
                text += &format!("const int valid = wanted && inside && (ulong)place < (ulong){own};\n");
            }
        }
        if notes {
            let failure = writer.failure(self.instr, super::Why::Index(self.index.dtype == DType::I64, whole));
            let notes = writer.buffer(KernelMemory::Failures, DType::I32, true);
            text += &super::note("wanted && !inside", &notes, failure, "given");
        }
        text + body + "}\n"
    }

    /// The element of the output with the C-order number `place`, after the statements that find it.
    fn target(&self, writer: &mut Writer, place: &str) -> (String, String) {
        let (split, names) = indices(writer, self.output.shape(), place, "o");
        (split, self.output.element(writer, &names, true))
    }

    fn value(&self, writer: &mut Writer, number: &str, prefix: &str) -> (String, String) {
        let (split, names) = indices(writer, self.shape, number, prefix);
        (split, self.value.element(writer, &names, false))
    }

    fn last(&self) -> (Vec<Code>, Vec<usize>) {
        let mut clear = self.writer();
        let (index, elements) = (clear.index(), clear.numbers.text(self.elements));
        let owners = clear.buffer(OWNERS, DType::I32, true);
        let body = format!("for ({index} t = BH_INDEX; t < {elements}; t += BH_INDICES) {owners}[t] = -1;\n");
        let clear = self.finish(clear, self.elements, &body);
        let mut claim = self.writer();
        let owners = claim.buffer(OWNERS, DType::I32, true);
        let body = self.each(&mut claim, true, &format!("if (valid) BH_ATOMIC_MAX({owners} + place, (int)t);\n"));
        let claim = self.finish(claim, self.count, &body);
        let mut write = self.writer();
        let owners = write.buffer(OWNERS, DType::I32, false);
        let (split, element) = self.target(&mut write, "place");
        let (value_split, value) = self.value(&mut write, "t", "v");
        let store =
            format!("if (valid && {owners}[place] == (int)t) {{\n{split}{value_split}{element} = {value};\n}}\n");
        let body = self.each(&mut write, false, &store);
        let write = self.finish(write, self.count, &body);
        (vec![clear, claim, write], vec![self.elements as usize * 4])
    }

    /// Are elements whole numbers in words of 32 bits, which items can add to at once?
    fn is_counted(&self) -> bool {
        matches!(self.output.dtype, DType::I32 | DType::U32 | DType::I64 | DType::U64)
    }

    /// One kernel that adds whole numbers in any order.
    fn counts(&self) -> Code {
        let (mut writer, dtype) = (self.writer(), self.output.dtype);
        // Large groups have fewer sums to add to the result's.
        let group = self.target.largest.clamp(self.target.group, COUNTERS.max(self.target.group));
        let (index, name, words) = (writer.index(), type_name(dtype), dtype.size() / 4);
        let (split, element) = self.target(&mut writer, "place");
        let (value_split, value) = self.value(&mut writer, "t", "v");
        let to_device = format!("{split}BH_GLOBAL uint *to = (BH_GLOBAL uint *)&{element};\n{}", add_words(words));
        // Elements that a power of two has room for, so that few texts serve all.
        let room = (self.elements as u64).next_power_of_two() as usize;
        let shares =
            room * dtype.size() <= LOCAL[usize::from(self.target.halves() < 2)] && self.count / SHARE >= self.elements;
        if !shares {
            let add = format!("if (valid) {{\n{value_split}const {name} value = {value};\n{to_device}}}\n");
            let body = self.each(&mut writer, true, &add);
            return self.finish(writer, self.count, &body);
        }
        let elements = writer.numbers.text(self.elements);
        let words_text = if words == 1 { elements.clone() } else { format!("{words} * {elements}") };
        let add = format!(
            "if (valid) {{\n{value_split}const {name} value = {value};\nBH_TO_LOCAL uint *to = own + {words} * place;\n{}}}\n",
            add_words(words)
        );
        let all = self.each(&mut writer, true, &add);
        let sum = match words {
            1 => "own[place]".to_owned(),
            _ => "own[2 * place] | (ulong)own[2 * place + 1] << 32".to_owned(),
        };
        let rolled = rolled(self.target);
        let body = format!(
            "BH_LOCAL uint own[{}];\n{rolled}for ({index} at = BH_ITEM; at < {words_text}; at += {group}) own[at] = 0;\n\
             BH_BARRIER;\n{all}BH_BARRIER;\n{rolled}for ({index} place = BH_ITEM; place < {elements}; place += {group}) {{\n\
             const {name} value = ({name})({sum});\nif (value != 0) {{\n{to_device}}}\n}}\n",
            room * words
        );
        let filling = (self.target.groups * self.target.group).div_ceil(group) as i64;
        let most = (self.count / self.elements.max(1)).clamp(1, filling) as usize;
        let groups = (self.count as u64).div_ceil(group as u64) as usize;
        writer.finish(self.target, groups.min(most), group, &body)
    }

    fn sums(&self) -> (Vec<Code>, Vec<usize>) {
        let mut keys = self.writer();
        let (key, number) = (keys.buffer(KEYS[0], DType::U32, true), keys.buffer(NUMBERS[0], DType::U32, true));
        // Elements of another part come last; without parts, only failures do.
        let none = if self.range.is_some() { keys.numbers.text(self.elements) } else { "0".into() };
        let body =
            self.each(&mut keys, true, &format!("{key}[t] = valid ? (uint)place : {none};\n{number}[t] = (uint)t;\n"));
        let mut codes = vec![self.finish(keys, self.count, &body)];
        let largest = if self.range.is_some() { self.elements } else { self.elements - 1 };
        let bits = 64 - largest.max(0).leading_zeros();
        let steps = bits.div_ceil(DIGIT);
        for step in 0..steps {
            codes.extend(self.sort(step));
        }
        codes.push(self.add(steps as usize % 2));
        let run = self.count as usize * 4;
        (codes, vec![run, run, run, run, (self.sorters() << DIGIT) as usize * 4])
    }

    fn sorters(&self) -> i64 {
        SORTERS.min(self.count)
    }

    /// One stable step of the sort: count the digits of each run, find where each goes, move.
    fn sort(&self, step: u32) -> [Code; 3] {
        let (from, to) = (step as usize % 2, 1 - step as usize % 2);
        let (sorters, chunk) = (self.sorters(), (self.count as u64).div_ceil(self.sorters() as u64) as i64);
        let digits = 1 << DIGIT;
        let head = |writer: &mut Writer| {
            let index = writer.index();
            let (sorters, chunk, count) =
                (writer.numbers.text(sorters), writer.numbers.text(chunk), writer.numbers.text(self.count));
            format!(
                "for ({index} s = BH_INDEX; s < {sorters}; s += BH_INDICES) {{\n\
                 const {index} first = s * {chunk}, end = min(({index})(first + {chunk}), ({index}){count});\n"
            )
        };
        // The digit that is looked at is a number too, so that all steps share their texts.
        let digit = |writer: &mut Writer| {
            let shift = writer.numbers.text(i64::from(step * DIGIT));
            let key = writer.buffer(KEYS[from], DType::U32, false);
            (format!("{key}[at] >> {shift} & {}", digits - 1), key)
        };
        let mut count = self.writer();
        let (loops, index) = (head(&mut count), count.index());
        let (of, _) = digit(&mut count);
        let (counts, sorters_text) = (count.buffer(COUNTS, DType::U32, true), count.numbers.text(sorters));
        let body = format!(
            "{loops}uint seen[{digits}] = {{0}};\nfor ({index} at = first; at < end; at++) seen[{of}]++;\n\
             for (int d = 0; d < {digits}; d++) {counts}[d * {sorters_text} + s] = seen[d];\n}}\n"
        );
        let count = self.finish(count, sorters, &body);
        let mut place = self.writer();
        let counts = place.buffer(COUNTS, DType::U32, true);
        let (group, total) = (self.target.group, place.numbers.text(sorters * digits));
        let index = place.index();
        let body = format!(
            "BH_LOCAL uint all[{group}];\nconst int item = BH_ITEM;\nuint before = 0;\n\
             for ({index} tile = 0; tile < {total}; tile += {group}) {{\nconst {index} at = tile + item;\n\
             const uint own = at < {total} ? {counts}[at] : 0;\nuint sum = own;\nall[item] = sum;\n\
             BH_BARRIER;\n{}for (int s = 1; s < {group}; s <<= 1) {{\n\
             if (item >= s) sum += all[item - s];\nBH_BARRIER;\nall[item] = sum;\n\
             BH_BARRIER;\n}}\nif (at < {total}) {counts}[at] = before + sum - own;\n\
             before += all[{}];\nBH_BARRIER;\n}}\n",
            rolled(self.target),
            group - 1
        );
        let place = place.finish(self.target, 1, group, &body);
        let mut shift = self.writer();
        let (loops, index) = (head(&mut shift), shift.index());
        let (of, key) = digit(&mut shift);
        let (number, counts) =
            (shift.buffer(NUMBERS[from], DType::U32, false), shift.buffer(COUNTS, DType::U32, false));
        let (new_key, new_number) =
            (shift.buffer(KEYS[to], DType::U32, true), shift.buffer(NUMBERS[to], DType::U32, true));
        let sorters_text = shift.numbers.text(sorters);
        let body = format!(
            "{loops}uint next[{digits}];\nfor (int d = 0; d < {digits}; d++) next[d] = {counts}[d * {sorters_text} + s];\n\
             for ({index} at = first; at < end; at++) {{\nconst uint to = next[{of}]++;\n{new_key}[to] = {key}[at];\n\
             {new_number}[to] = {number}[at];\n}}\n}}\n"
        );
        [count, place, self.finish(shift, sorters, &body)]
    }

    /// Each run of equal keys is added by one item.
    fn add(&self, at: usize) -> Code {
        let mut writer = self.writer();
        let (index, dtype) = (writer.index(), self.output.dtype);
        let count = writer.numbers.text(self.count);
        let (key, number) = (writer.buffer(KEYS[at], DType::U32, false), writer.buffer(NUMBERS[at], DType::U32, false));
        let (split, element) = self.target(&mut writer, "place");
        let (value_split, value) = self.value(&mut writer, "n", "v");
        let sum = expression(Opcode::Add, 0, dtype, dtype, &["sum", &value]);
        let name = type_name(dtype);
        let skip = match self.range {
            Some(_) => format!("place == (uint){} || ", writer.numbers.text(self.elements)),
            None => String::new(),
        };
        let body = format!(
            "for ({index} t = BH_INDEX; t < {count}; t += BH_INDICES) {{\nconst uint place = {key}[t];\n\
             if ({skip}t > 0 && {key}[t - 1] == place) continue;\n{split}{name} sum = {element};\n\
             for ({index} q = t; q < {count} && {key}[q] == place; q++) {{\nconst {index} n = {number}[q];\n\
             {value_split}sum = {sum};\n}}\n{element} = sum;\n}}\n"
        );
        self.finish(writer, self.count, &body)
    }
}

/// Statements that add `value` at once to the number of this many words of 32 bits at `to`, the lower word first. Each time that the
/// lower word wraps, one addition sees it and carries, so that the sum is right when all have been made.
fn add_words(words: usize) -> &'static str {
    match words {
        1 => "BH_ATOMIC_ADD(to, (uint)value);\n",
        _ => {
            "const uint low = (uint)value;\nuint high = (uint)((ulong)value >> 32);\n\
             if (low != 0 && (uint)(BH_ATOMIC_ADD(to, low) + low) < low) high++;\n\
             if (high != 0) BH_ATOMIC_ADD(to + 1, high);\n"
        }
    }
}
