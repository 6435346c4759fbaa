//! Elements that a mask chooses: how many, their positions, or they themselves, in C order. The chosen ones of each part of
//! the mask are counted first; then each part is written where those before it end.

use super::lines::Lines;
use super::{Call, Kernels};
use crate::code::{Code, KernelMemory, Variant, Why, Writer, halving, is_wide, note};
use bh_bytecode::DType;
use bh_bytecode::c::type_name;

/// Elements of an item, in each part of the mask, and parts at most.
const EACH: i64 = 16;
const PARTS: i64 = 4096;
/// The parts' counts.
const COUNTS: KernelMemory = KernelMemory::Scratch(0);

/// The mask in parts.
struct Parts<'a, 'b, 'c> {
    call: &'a Call<'b, 'c>,
    mask: Lines,
    wide: bool,
    total: i64,
    /// Elements of a part, and parts.
    part: i64,
    parts: i64,
}

impl<'a, 'b, 'c> Parts<'a, 'b, 'c> {
    fn new(call: &'a Call<'b, 'c>) -> Option<Self> {
        let operands = call.batch.instrs[call.instr as usize].operands();
        let mask = Lines::new(call.batch, operands[1])?;
        let (total, group) = (mask.count() * mask.len, call.target.group as i64);
        let tiles = (total as u64).div_ceil((group * PARTS) as u64) as i64;
        let part = group * tiles.max(EACH);
        let parts = (total as u64).div_ceil(part as u64).max(1) as i64;
        Some(Parts { call, mask, wide: is_wide(call.batch, operands), total, part, parts })
    }

    fn writer(&self) -> Writer {
        Writer::new(Variant::Parameterised, self.wide)
    }

    /// Statements that find `line` and `at` of the element `u`.
    fn place(&self, writer: &mut Writer) -> String {
        let (index, len) = (writer.index(), writer.numbers.text(self.mask.len));
        format!("const {index} line = u / {len}, at = u % {len};\n")
    }

    /// The element of the mask, and what has to come before.
    fn chosen(&self, writer: &mut Writer) -> (String, String) {
        let place = self.place(writer);
        let begin = self.mask.begin(writer, "line", "mask");
        (place + &begin, self.mask.element(writer, "mask", "at", false))
    }

    /// Counts the chosen elements of each part.
    fn counts(&self) -> Code {
        let (mut writer, group) = (self.writer(), self.call.target.group);
        let (begin, chosen) = self.chosen(&mut writer);
        let counts = writer.buffer(COUNTS, DType::I64, true);
        let (index, part, total) = (writer.index(), writer.numbers.text(self.part), writer.numbers.text(self.total));
        let body = format!(
            "BH_LOCAL int all[{group}];\nconst int item = BH_ITEM;\nconst {index} first = ({index})BH_GROUP * {part};\n\
             const {index} end = min(({index})(first + {part}), ({index}){total});\nint found = 0;\n\
             for ({index} u = first + item; u < end; u += {group}) {{\n{begin}found += {chosen} != 0;\n}}\nall[item] = found;\n\
             BH_BARRIER;\n{}if (item < s) all[item] += all[item + s];\n\
             BH_BARRIER;\n}}\nif (item == 0) {counts}[BH_GROUP] = all[0];\n",
            halving(self.call.target, group)
        );
        writer.finish(self.call.target, self.parts as usize, group, &body)
    }

    /// One group replaces the counts by what comes before each part; `use_total` are statements with the sum `before` of all.
    fn places(&self, use_total: impl FnOnce(&mut Writer) -> String) -> Code {
        let (mut writer, group) = (self.writer(), self.call.target.group);
        let counts = writer.buffer(COUNTS, DType::I64, true);
        let parts = writer.numbers.text(self.parts);
        let last = use_total(&mut writer);
        let body = format!(
            "BH_LOCAL long all[{group}];\nconst int item = BH_ITEM;\nlong before = 0;\n\
             for (int tile = 0; tile < {parts}; tile += {group}) {{\nconst int at = tile + item;\n\
             const long own = at < {parts} ? {counts}[at] : 0;\nlong sum = own;\nall[item] = sum;\nBH_BARRIER;\n\
             for (int s = 1; s < {group}; s <<= 1) {{\nif (item >= s) sum += all[item - s];\nBH_BARRIER;\n\
             all[item] = sum;\nBH_BARRIER;\n}}\nif (at < {parts}) {counts}[at] = before + sum - own;\n\
             before += all[{}];\nBH_BARRIER;\n}}\nif (item == 0) {{\n{last}}}\n",
            group - 1
        );
        writer.finish(self.call.target, 1, group, &body)
    }
}

/// The number of chosen elements.
pub(super) fn count_nonzero(call: &Call<'_, '_>) -> Option<Kernels> {
    let parts = Parts::new(call)?;
    let to = Lines::new(call.batch, call.batch.instrs[call.instr as usize].operands()[0])?;
    let all = parts.places(|writer| {
        let (begin, target) = (to.begin(writer, "0", "to"), to.element(writer, "to", "0", true));
        format!("{begin}{target} = before;\n")
    });
    Some((vec![parts.counts(), all], vec![parts.parts as usize * 8]))
}

/// The chosen elements of the second input, or the positions of those of the mask if there is none.
pub(super) fn choose(call: &Call<'_, '_>) -> Option<Kernels> {
    let operands = call.batch.instrs[call.instr as usize].operands();
    let (parts, to) = (Parts::new(call)?, Lines::new(call.batch, operands[0])?);
    let source = operands.get(2).map(|&operand| Lines::new(call.batch, operand));
    let source = match source {
        Some(lines) => Some(lines?),
        None => None,
    };
    let (room, group) = (to.len, call.target.group);
    let name = if source.is_some() { "compress" } else { "flatnonzero" };
    let places = parts.places(|writer| {
        let text = format!("{name}: the mask chooses {{}} elements, but the output has {room}");
        let failure = writer.failure(call.instr, Why::Method(text));
        let notes = writer.buffer(KernelMemory::Failures, DType::I32, true);
        let room = writer.numbers.text(room);
        note(&format!("before != {room}"), &notes, failure, "before")
    });
    let mut writer = parts.writer();
    let (begin, chosen) = parts.chosen(&mut writer);
    let counts = writer.buffer(COUNTS, DType::I64, false);
    let (index, part, total) = (writer.index(), writer.numbers.text(parts.part), writer.numbers.text(parts.total));
    let (to_begin, target) = (to.begin(&mut writer, "0", "to"), to.element(&mut writer, "to", "goal", true));
    let (place, value) = match &source {
        Some(source) => {
            let begin = parts.place(&mut writer) + &source.begin(&mut writer, "line", "from");
            (begin, source.element(&mut writer, "from", "at", false))
        }
        None => (String::new(), "(long)u".to_owned()),
    };
    let room = writer.numbers.text(room);
    let own = type_name(to.dtype);
    let body = format!(
        "BH_LOCAL int all[{group}];\nconst int item = BH_ITEM;\nconst {index} first = ({index})BH_GROUP * {part};\n\
         const {index} end = min(({index})(first + {part}), ({index}){total});\nlong before = {counts}[BH_GROUP];\n{to_begin}\
         for ({index} tile = first; tile < end; tile += {group}) {{\nconst {index} u = tile + item;\nint own = 0;\n\
         if (u < end) {{\n{begin}own = {chosen} != 0;\n}}\nint sum = own;\nall[item] = sum;\nBH_BARRIER;\n\
         for (int s = 1; s < {group}; s <<= 1) {{\nif (item >= s) sum += all[item - s];\nBH_BARRIER;\n\
         all[item] = sum;\nBH_BARRIER;\n}}\nconst {index} goal = before + sum - 1;\n\
         if (own && goal < {room}) {{\n{place}const {own} value = {value};\n{target} = value;\n}}\nbefore += all[{}];\n\
         BH_BARRIER;\n}}\n",
        group - 1
    );
    let write = writer.finish(call.target, parts.parts as usize, group, &body);
    Some((vec![parts.counts(), places, write], vec![parts.parts as usize * 8]))
}
