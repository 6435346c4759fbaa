//! Sorts of which only some elements are read, as the median or another quantile: these elements alone, found digit by digit from the
//! most significant one on (selection by radix). The elements of a line that agree with the digits found so far are counted by their next
//! digit; the counts say which digit comes next. The other elements of the sorted array stay undefined, as nobody reads them.

use super::lines::Lines;
use super::order::Rank;
use super::{Call, Kernels};
use crate::code::{Code, KernelMemory, Placement, Variant, Writer, is_wide};
use bh_bytecode::c::type_name;
use bh_bytecode::{BatchRef, DType, Kind, Opcode, Operand, base_flags};
use std::collections::BTreeSet;

/// Elements of a line at least: shorter ones are in order after a few kernels.
const LEAST: i64 = 1 << 14;
/// Elements that are found at most, and the elements that views of the batch read at most.
const FOUND: usize = 8;
const READ: i64 = 1 << 16;
/// Digits, and their bits.
const DIGITS: i64 = 1 << BITS;
const BITS: u32 = 8;
/// Items of a group at most.
const ITEMS: usize = 256;
/// Elements that an item counts at least, if there are enough.
const EACH: i64 = 16;
/// The counts of digits, the digits found, and the places of the elements among those that agree with them.
const COUNTS: KernelMemory = KernelMemory::Scratch(0);
const KEYS: KernelMemory = KernelMemory::Scratch(1);
const PLACES: KernelMemory = KernelMemory::Scratch(2);

/// The kernels that find the elements of a sort which the batch reads; none if it may read others, or many.
pub(super) fn select(call: &Call<'_, '_>, to: &Lines, from: &Lines) -> Option<Kernels> {
    if !call.target.placements.has(Placement::Select) || from.len < LEAST || from.len > i64::from(i32::MAX) {
        return None;
    }
    let output = call.batch.instrs[call.instr as usize].operands()[0].as_view()?;
    let positions = positions(call.batch, call.instr, output, to)?;
    let wide = is_wide(call.batch, call.batch.instrs[call.instr as usize].operands());
    let rank = Rank::of_values(from.dtype);
    let (count, group) = (to.count(), call.target.group.min(ITEMS) as i64);
    let room = (from.len as u64).div_ceil((group * EACH) as u64) as i64;
    let shares = (2 * call.target.groups as i64 / count).clamp(1, room);
    let select = Select { call, to, from, rank, positions, wide, group, count, shares };
    let passes = rank.bits() / BITS;
    let mut codes = vec![select.begin()];
    for pass in 0..passes {
        codes.extend([select.count(rank.bits() - BITS * (pass + 1)), select.choose(pass + 1 == passes)]);
    }
    let all = (count * select.positions.len() as i64) as usize;
    Some((codes, vec![all * DIGITS as usize * 4, all * rank.key().size(), all * 4]))
}

/// The positions in lines of the sorted array that the batch reads of its base, which the array covers, nothing else writes and nobody reads
/// later; none if they are many.
fn positions(batch: &BatchRef<'_>, instr: u32, output: u32, to: &Lines) -> Option<Vec<i64>> {
    let number = batch.views[output as usize].base;
    let base = batch.base_of(output)?;
    let renamed = batch.renames.iter().any(|rename| rename.base == number || rename.alias == number);
    let covers = batch.views[output as usize].len == base.len;
    if base.has(base_flags::LIVE_OUT) || base.has(base_flags::PINNED) || !covers || renamed {
        return None;
    }
    let of_base = |operand: &Operand| operand.as_view().filter(|&view| batch.views[view as usize].base == number);
    let (mut found, mut read) = (BTreeSet::new(), 0);
    for (at, record) in (0..).zip(batch.instrs) {
        let drops = matches!(record.opcode, Opcode::Free | Opcode::Discard);
        if at == instr || drops {
            continue;
        }
        if record.opcode.kind() == Kind::System && record.operands().iter().any(|operand| of_base(operand).is_some())
            || record.outputs().iter().any(|operand| of_base(operand).is_some())
        {
            return None;
        }
        for view in record.inputs().iter().filter_map(of_base) {
            read += offsets(batch, view, READ - read, &mut |offset| Some(found.insert(to.position(offset)?)))?;
        }
    }
    (!found.is_empty() && found.len() <= FOUND).then(|| found.into_iter().collect())
}

/// Gives each element that a view reads to `each`, repeated ones once, and says how many there are; none if there are more than `most`, or
/// `each` gives none.
fn offsets(batch: &BatchRef<'_>, view: u32, most: i64, each: &mut dyn FnMut(i64) -> Option<bool>) -> Option<i64> {
    let loops: Vec<(i64, i64)> = batch.shape(view).iter().copied().zip(batch.stride(view).iter().copied()).collect();
    if loops.iter().any(|(extent, _)| *extent == 0) {
        return Some(0);
    }
    let loops: Vec<(i64, i64)> = loops.into_iter().filter(|(extent, stride)| *extent > 1 && *stride != 0).collect();
    let total = loops.iter().try_fold(1i64, |total, (extent, _)| total.checked_mul(*extent))?;
    if total > most {
        return None;
    }
    for number in 0..total {
        let (mut rest, mut offset) = (number, batch.views[view as usize].start);
        for (extent, stride) in loops.iter().rev() {
            offset += rest % extent * stride;
            rest /= extent;
        }
        each(offset)?;
    }
    Some(total)
}

/// A selection under construction.
struct Select<'a, 'b, 'c> {
    call: &'a Call<'b, 'c>,
    to: &'a Lines,
    from: &'a Lines,
    rank: Rank,
    positions: Vec<i64>,
    wide: bool,
    group: i64,
    /// Lines, and the groups that share one.
    count: i64,
    shares: i64,
}

impl Select<'_, '_, '_> {
    fn writer(&self) -> Writer {
        Writer::new(Variant::Parameterised, self.wide)
    }

    fn key_name(&self) -> &'static str {
        type_name(self.rank.key())
    }

    fn found(&self) -> i64 {
        self.positions.len() as i64
    }

    /// Nothing is counted, and no digit found.
    fn begin(&self) -> Code {
        let mut writer = self.writer();
        let counts = writer.buffer(COUNTS, DType::U32, true);
        let (keys, places) = (writer.buffer(KEYS, self.rank.key(), true), writer.buffer(PLACES, DType::U32, true));
        let (found, all) = (self.found(), writer.numbers.text(self.count * self.found() * DIGITS));
        let position = |writer: &mut Writer, at: usize| writer.numbers.text(self.positions[at]);
        let last = position(&mut writer, self.positions.len() - 1);
        let place = (0..self.positions.len() - 1).rev().fold(last, |text, at| {
            let own = position(&mut writer, at);
            format!("(of == {at} ? {own} : {text})")
        });
        let body = format!(
            "const long u = BH_INDEX;\nif (u < {all}) {{\n{counts}[u] = 0;\nif (u % {DIGITS} == 0) {{\n\
             const int of = u / {DIGITS} % {found};\n{keys}[u / {DIGITS}] = 0;\n{places}[u / {DIGITS}] = (uint)({place});\n}}\n}}\n"
        );
        let group = self.call.target.group;
        let groups = (self.count * self.found() * DIGITS).unsigned_abs().div_ceil(group as u64) as usize;
        writer.finish(self.call.target, groups, group, &body)
    }

    /// The digits that are found, and the first element of the line that has the same, whose counts are its own, too.
    fn known(&self, writer: &mut Writer, writes: bool) -> String {
        let (keys, name, found) = (writer.buffer(KEYS, self.rank.key(), writes), self.key_name(), self.found());
        format!(
            "{name} known[{found}];\nint same[{found}];\n#pragma unroll\nfor (int f = 0; f < {found}; f++) {{\n\
             known[f] = {keys}[line * {found} + f];\nsame[f] = f;\n\
             for (int g = f - 1; g >= 0; g--) if (known[g] == known[f]) same[f] = g;\n}}\n"
        )
    }

    /// Counts the elements that agree with the digits found, by their next digit, which `shift` less significant bits follow: each group
    /// in local memory first. All passes have one text.
    fn count(&self, shift: u32) -> Code {
        let mut writer = self.writer();
        let (index, group, found) = (writer.index(), self.group, self.found());
        let counts = writer.buffer(COUNTS, DType::U32, true);
        let (shares, len) = (writer.numbers.text(self.shares), writer.numbers.text(self.from.len));
        let (begin, element) =
            (self.from.begin(&mut writer, "line", "from"), self.from.element(&mut writer, "from", "at", false));
        let (known, shift) = (self.known(&mut writer, false), writer.numbers.text(i64::from(shift)));
        let body = format!(
            "BH_LOCAL uint own[{all}];\nconst int item = BH_ITEM;\nconst {index} line = BH_GROUP / {shares};\n{known}\
             for (int e = item; e < {all}; e += {group}) own[e] = 0;\nBH_BARRIER;\n{begin}\
             for ({index} at = BH_GROUP % {shares} * {group} + item; at < {len}; at += {shares} * {group}) {{\n{rank}\
             const int digit = (int)(key >> {shift} & {last});\n#pragma unroll\nfor (int f = 0; f < {found}; f++) {{\n\
             if (same[f] == f && key >> {shift} >> {BITS} == known[f]) BH_ATOMIC_ADD(own + f * {DIGITS} + digit, 1U);\n}}\n}}\nBH_BARRIER;\n\
             for (int e = item; e < {all}; e += {group}) {{\n\
             if (own[e] > 0) BH_ATOMIC_ADD({counts} + line * {all} + e, own[e]);\n}}\n",
            all = found * DIGITS,
            last = DIGITS - 1,
            rank = self.rank.rank(&element)
        );
        writer.finish(self.call.target, (self.count * self.shares) as usize, group as usize, &body)
    }

    /// Finds the next digit of each element of a line by the counts, which begin anew; the last one writes the elements.
    fn choose(&self, last: bool) -> Code {
        let mut writer = self.writer();
        let (index, group, found, name) = (writer.index(), self.group, self.found(), self.key_name());
        let (counts, places) = (writer.buffer(COUNTS, DType::U32, true), writer.buffer(PLACES, DType::U32, true));
        let known = self.known(&mut writer, true);
        let keys = writer.buffer(KEYS, self.rank.key(), true);
        let each = DIGITS / group.min(DIGITS);
        let end = if last { self.store(&mut writer) } else { String::new() };
        let body = format!(
            "BH_LOCAL uint sums[{group}];\nconst int item = BH_ITEM;\nconst {index} line = BH_GROUP;\n{known}BH_BARRIER_ALL;\n\
             #pragma unroll\nfor (int f = 0; f < {found}; f++) {{\nconst uint wanted = {places}[line * {found} + f];\n\
             const {index} first = (line * {found} + same[f]) * {DIGITS} + item * {each};\nuint own = 0;\n\
             for (int d = 0; d < {each}; d++) own += {counts}[first + d];\nuint sum = own;\nsums[item] = sum;\nBH_BARRIER;\n\
             for (int s = 1; s < {group}; s <<= 1) {{\nif (item >= s) sum += sums[item - s];\nBH_BARRIER;\nsums[item] = sum;\nBH_BARRIER;\n}}\n\
             uint before = sum - own;\nif (before <= wanted && wanted < sum) {{\nint d = 0;\n\
             while (before + {counts}[first + d] <= wanted) before += {counts}[first + d++];\n\
             const {name} key = ({name})(known[f] << {BITS}) | ({name})(item * {each} + d);\n{keys}[line * {found} + f] = key;\n\
             {places}[line * {found} + f] = wanted - before;\n{end}}}\nBH_BARRIER_ALL;\n}}\n\
             for (int e = item; e < {all}; e += {group}) {counts}[line * {all} + e] = 0;\n",
            all = found * DIGITS
        );
        writer.finish(self.call.target, self.count as usize, group as usize, &body)
    }

    /// Statements that write the element of `key` with the number `f` of a line.
    fn store(&self, writer: &mut Writer) -> String {
        let name = self.key_name();
        let begin = self.to.begin(writer, "line", "to");
        let target = self.to.element(writer, "to", "at", true);
        let index = writer.index();
        let last = writer.numbers.text(self.positions[self.positions.len() - 1]);
        let at = (0..self.positions.len() - 1).rev().fold(last, |text, at| {
            let own = writer.numbers.text(self.positions[at]);
            format!("(f == {at} ? {own} : {text})")
        });
        let (text, value) = self.rank.element();
        format!(
            "const {index} at = {at};\n{begin}{name} whole = key;\n{{\n{name} key = whole;\n{text}{target} = {value};\n}}\n"
        )
    }
}
