//! Sorting along the last axis by merging, or by selecting where few elements are read, and searching in sorted lines. Elements become
//! unsigned numbers in the order of their values, NaN last; merging keeps the order of equal ones.

use super::lines::Lines;
use super::select::select;
use super::{Call, Kernels};
use crate::code::{Code, KernelMemory, Variant, Writer, is_wide};
use bh_bytecode::DType;
use bh_bytecode::c::type_name;

/// Elements that an item has in registers.
const EACH: i64 = 8;
/// Items of a group at most, so that its elements and their positions fit local memory.
const ITEMS: usize = 256;

/// How elements are compared.
#[derive(Clone, Copy)]
pub(super) struct Rank {
    dtype: DType,
    /// Are zeros of both signs equal, and all that is no number?
    equals: bool,
}

impl Rank {
    /// The order of the values of a type, in which no two are equal.
    pub(super) fn of_values(dtype: DType) -> Rank {
        Rank { dtype, equals: false }
    }

    /// The type of the numbers that stand for elements, as an element's type.
    pub(super) fn key(self) -> DType {
        if self.dtype.size() == 8 { DType::U64 } else { DType::U32 }
    }

    pub(super) fn bits(self) -> u32 {
        8 * self.key().size() as u32
    }

    /// The sign bit, and numbers without meaning of each sign, of a floating-point type.
    fn float(self) -> Option<(String, String)> {
        match self.dtype {
            DType::F32 => Some(("0x80000000U".into(), "0x007fffffU".into())),
            DType::F64 => Some(("0x8000000000000000UL".into(), "0x000fffffffffffffUL".into())),
            _ => None,
        }
    }

    /// Statements that make `key` of an element.
    pub(super) fn rank(self, element: &str) -> String {
        let (name, bits) = (type_name(self.key()), self.bits());
        let Some((sign, nans)) = self.float() else {
            let sign =
                if self.dtype.is_signed_int() { format!(" ^ (({name})1 << {})", bits - 1) } else { String::new() };
            let wide = if self.dtype.is_signed_int() && bits == 32 { "(int)" } else { "" };
            return format!("const {name} key = ({name}){wide}{element}{sign};\n");
        };
        let convert = if bits == 64 { "ulong" } else { "uint" };
        let mut text = format!("{name} key = BH_AS({convert}, {element});\n");
        if self.equals {
            text += &format!(
                "const int nan = ({name})(key << 1) > ({name})(~{nans} << 1);\nif (({name})(key << 1) == 0) key = 0;\n"
            );
        }
        // Negative numbers in reverse order, from minus infinity on; what is no number comes to the end.
        text += &format!("key = (key & {sign}) ? ~key : key | {sign};\nkey -= {nans};\n");
        text + &match self.equals {
            true => format!("if (nan) key = ~({name})0;\n"),
            false => self.swap(&nans),
        }
    }

    /// Statements that exchange the numbers without meaning of both signs: the negative ones come before the others.
    fn swap(self, nans: &str) -> String {
        let name = type_name(self.key());
        format!(
            "if (key >= ({name})0 - {nans}) key -= {nans}; else if (key >= ({name})0 - 2 * {nans}) key += {nans};\n"
        )
    }

    /// Statements that find the element of `key`, and its expression.
    pub(super) fn element(self) -> (String, String) {
        let (name, bits, own) = (type_name(self.key()), self.bits(), type_name(self.dtype));
        let Some((sign, nans)) = self.float() else {
            let sign =
                if self.dtype.is_signed_int() { format!(" ^ (({name})1 << {})", bits - 1) } else { String::new() };
            return (String::new(), format!("({own})(key{sign})"));
        };
        let convert = if bits == 64 { "double" } else { "float" };
        let text = format!("{}key += {nans};\nkey = (key & {sign}) ? key ^ {sign} : ~key;\n", self.swap(&nans));
        (text, format!("BH_AS({convert}, key)"))
    }
}

/// A sort under construction.
struct Sort<'a, 'b, 'c> {
    call: &'a Call<'b, 'c>,
    rank: Rank,
    /// Are positions the results?
    positions: bool,
    wide: bool,
    group: i64,
    count: i64,
    len: i64,
}

/// The kernels of a sort, or those that find the positions of elements in it.
pub(super) fn sort(call: &Call<'_, '_>, positions: bool) -> Option<Kernels> {
    let operands = call.batch.instrs[call.instr as usize].operands();
    let (to, from) = (Lines::new(call.batch, operands[0])?, Lines::new(call.batch, operands[1])?);
    if from.len > i64::from(i32::MAX) {
        return None;
    }
    if !positions && let Some(kernels) = select(call, &to, &from) {
        return Some(kernels);
    }
    let wide = is_wide(call.batch, operands);
    let group = call.target.group.min(ITEMS) as i64;
    let rank = Rank { equals: positions, ..Rank::of_values(from.dtype) };
    let (count, len) = (from.count(), from.len);
    let sort = Sort { call, rank, positions, wide, group, count, len };
    let block = group * EACH;
    let mut widths = Vec::new();
    let mut width = block;
    while width < len {
        widths.push(width);
        width *= 2;
    }
    let keys = (count * len) as usize * rank.key().size();
    let places = if positions { (count * len) as usize * 4 } else { 4 };
    let scratch: Vec<usize> = (0..widths.len().min(2)).flat_map(|_| [keys, places]).collect();
    let mut codes = vec![sort.blocks(&from, widths.is_empty().then_some(&to))];
    for (at, &width) in widths.iter().enumerate() {
        codes.push(sort.merge(width, at % 2, (at + 1 == widths.len()).then_some(&to)));
    }
    Some((codes, scratch))
}

/// Can elements of this type be sorted on the device?
pub(super) fn sorts(dtype: DType) -> bool {
    !dtype.is_complex()
}

impl Sort<'_, '_, '_> {
    fn writer(&self) -> Writer {
        Writer::new(Variant::Parameterised, self.wide)
    }

    fn key_name(&self) -> &'static str {
        type_name(self.rank.key())
    }

    /// The declarations of a group's elements in local memory and an item's in registers.
    fn memory(&self) -> String {
        let (name, all) = (self.key_name(), self.group * EACH);
        let places =
            if self.positions { format!("BH_LOCAL uint lp[{all}];\nuint rp[{EACH}];\n") } else { String::new() };
        format!("BH_LOCAL {name} lk[{all}];\n{name} rk[{EACH}];\n{places}const int item = BH_ITEM;\n")
    }

    /// A statement on keys, and its twin on positions: `$` is the letter of either.
    fn both(&self, text: &str) -> String {
        let twin = if self.positions { text.replace('$', "p") } else { String::new() };
        text.replace('$', "k") + &twin
    }

    /// Statements that write `key` (and `place`) of the line `line` at `at`: to the view, or to memory between kernels.
    fn store(&self, writer: &mut Writer, to: Option<&Lines>, number: usize) -> String {
        match to {
            Some(to) => {
                let begin = to.begin(writer, "line", "to");
                let target = to.element(writer, "to", "at", true);
                let (text, value) = self.rank.element();
                match self.positions {
                    true => format!("{begin}{target} = (long)place;\n"),
                    false => format!("{begin}{text}{target} = {value};\n"),
                }
            }
            None => {
                let (keys, places) = self.between(writer, number, true);
                let len = writer.numbers.text(self.len);
                let places = places.map_or(String::new(), |places| format!("{places}[line * {len} + at] = place;\n"));
                format!("{keys}[line * {len} + at] = key;\n{places}")
            }
        }
    }

    /// The memory of keys between kernels, and that of positions.
    fn between(&self, writer: &mut Writer, number: usize, writes: bool) -> (String, Option<String>) {
        let first = 2 * number as u16;
        let keys = writer.buffer(KernelMemory::Scratch(first), self.rank.key(), writes);
        let places = self.positions.then(|| writer.buffer(KernelMemory::Scratch(first + 1), DType::U32, writes));
        (keys, places)
    }

    /// Elements of local memory go to `store`: those of the group's `total`, whose index is `e`.
    fn out(&self, place: &str, store: &str) -> String {
        let name = self.key_name();
        let position = if self.positions { "const uint place = lp[e];\n" } else { "" };
        format!(
            "for (int e = item; e < {}; e += {}) {{\n{place}{name} key = lk[e];\n{position}{store}}}\n}}\n",
            self.group * EACH,
            self.group
        )
    }

    /// An item's part of a merge in local memory: `{a}` and `{b}` are where the sequences of `{la}` and `{lb}` elements begin,
    /// `diagonal` how many come before. The results are in registers.
    fn part(&self) -> String {
        let name = self.key_name();
        format!(
            "int low = max(0, diagonal - lb), high = min(diagonal, la);\nwhile (low < high) {{\nconst int middle = (low + high) / 2;\n\
             if (lk[a + middle] <= lk[b + diagonal - 1 - middle]) low = middle + 1; else high = middle;\n}}\n\
             int x = low, y = diagonal - low;\n#pragma unroll\nfor (int v = 0; v < {EACH}; v++) {{\n\
             const {name} left = x < la ? lk[a + x] : 0, right = y < lb ? lk[b + y] : 0;\n\
             const int first = y >= lb || (x < la && left <= right);\nrk[v] = first ? left : right;\n{}\
             x += first; y += !first;\n}}\n",
            if self.positions { "if (x < la || y < lb) rp[v] = first ? lp[a + x] : lp[b + y];\n" } else { "" }
        )
    }

    /// Blocks of lines, or some short lines, in order.
    fn blocks(&self, from: &Lines, to: Option<&Lines>) -> Code {
        let block = self.group * EACH;
        let segment = (self.len as u64).next_power_of_two().clamp(EACH as u64, block as u64) as i64;
        let per_line = (self.len as u64).div_ceil(segment as u64) as i64;
        let mut writer = self.writer();
        let (index, name) = (writer.index(), self.key_name());
        let (units, lines, len) =
            (writer.numbers.text(self.count * per_line), writer.numbers.text(per_line), writer.numbers.text(self.len));
        let place = format!(
            "const {index} u = ({index})BH_GROUP * {} + e / {segment}, line = u / {lines};\n\
             const {index} at = u % {lines} * {segment} + e % {segment};\nif (u < {units} && at < {len}) {{\n",
            block / segment
        );
        let (begin, element) =
            (from.begin(&mut writer, "line", "from"), from.element(&mut writer, "from", "at", false));
        let mut body = self.memory();
        let local = if self.positions { "lp[e] = (uint)at;\n" } else { "" };
        let nothing = if self.positions { "lp[e] = 0xffffffffU;\n" } else { "" };
        body += &format!(
            "for (int e = item; e < {block}; e += {}) {{\nlk[e] = ~({name})0;\n{nothing}{place}{begin}{}lk[e] = key;\n{local}}}\n}}\n\
             BH_BARRIER;\n",
            self.group,
            self.rank.rank(&element)
        );
        let mut swap = format!("const {name} held = rk[v]; rk[v] = rk[v + 1]; rk[v + 1] = held;\n");
        if self.positions {
            swap += "const uint place = rp[v]; rp[v] = rp[v + 1]; rp[v + 1] = place;\n";
        }
        body += &format!(
            "#pragma unroll\nfor (int v = 0; v < {EACH}; v++) {{ {} }}\n#pragma unroll\nfor (int turn = 0; turn < {EACH}; turn++) {{\n\
             #pragma unroll\nfor (int v = turn & 1; v + 1 < {EACH}; v += 2) {{\nif (rk[v + 1] < rk[v]) {{\n{swap}}}\n}}\n}}\n",
            self.both(&format!("r$[v] = l$[item * {EACH} + v]; ")),
        );
        let keep = format!(
            "BH_BARRIER;\n#pragma unroll\nfor (int v = 0; v < {EACH}; v++) {{ {} }}\nBH_BARRIER;\n",
            self.both(&format!("l$[item * {EACH} + v] = r$[v]; "))
        );
        body += &keep;
        body += &format!(
            "for (int width = {EACH}; width < {segment}; width *= 2) {{\nconst int a = item * {EACH} / (2 * width) * (2 * width);\n\
             const int b = a + width, la = width, lb = width, diagonal = item * {EACH} - a;\n{}{keep}}}\n",
            self.part()
        );
        let store = self.store(&mut writer, to, 0);
        body += &self.out(&place, &store);
        let groups = (self.count * per_line).unsigned_abs().div_ceil((block / segment) as u64) as usize;
        writer.finish(self.call.target, groups, self.group as usize, &body)
    }

    /// Pairs of sequences of `width` elements become one, from memory `number` to the other one or to the view.
    fn merge(&self, width: i64, number: usize, to: Option<&Lines>) -> Code {
        let block = self.group * EACH;
        let per_line = (self.len as u64).div_ceil(block as u64) as i64;
        let mut writer = self.writer();
        let index = writer.index();
        let (keys, places) = self.between(&mut writer, number, false);
        let (lines, len, width) =
            (writer.numbers.text(per_line), writer.numbers.text(self.len), writer.numbers.text(width));
        let load = |index: &str, from: &str| {
            let places = places.as_ref().map_or(String::new(), |places| format!("lp[{index}] = {places}[{from}];\n"));
            format!("lk[{index}] = {keys}[{from}];\n{places}")
        };
        let mut body = self.memory();
        body += &format!(
            "BH_LOCAL int cut[2];\nconst {index} line = BH_GROUP / {lines}, begin = BH_GROUP % {lines} * {block};\n\
             const {index} pair = begin / (2 * {width}) * (2 * {width}), one = line * {len} + pair, two = one + {width};\n\
             const int all_a = min(({index}){width}, ({index})({len} - pair));\n\
             const int all_b = max(({index})0, min(({index}){width}, ({index})({len} - pair - {width})));\n\
             const int before = begin - pair, after = min(before + {block}, all_a + all_b);\n\
             for (int which = item; which < 2; which += {}) {{\nconst int d = which == 0 ? before : after;\nint low = max(0, d - all_b), high = min(d, all_a);\n\
             while (low < high) {{\nconst int middle = (low + high) / 2;\n\
             if ({keys}[one + middle] <= {keys}[two + d - 1 - middle]) low = middle + 1; else high = middle;\n}}\n\
             cut[which] = low;\n}}\nBH_BARRIER;\n",
            self.group
        );
        body += &format!(
            "const int a = 0, la = cut[1] - cut[0], b = la, total = after - before, lb = total - la;\n\
             const {index} from_a = one + cut[0], from_b = two + before - cut[0] - la;\n\
             for (int e = item; e < total; e += {}) {{\nif (e < la) {{\n{}}} else {{\n{}}}\n}}\nBH_BARRIER;\n\
             const int diagonal = min(item * {EACH}, total);\n{}BH_BARRIER;\n\
             #pragma unroll\nfor (int v = 0; v < {EACH}; v++) {{ if (item * {EACH} + v < total) {{ {} }} }}\nBH_BARRIER;\n",
            self.group,
            load("e", "from_a + e"),
            load("e", "from_b + e"),
            self.part(),
            self.both(&format!("l$[item * {EACH} + v] = r$[v]; "))
        );
        let place = format!("const {index} at = begin + e;\nif (e < total) {{\n");
        let store = self.store(&mut writer, to, 1 - number);
        body += &self.out(&place, &store);
        writer.finish(self.call.target, (self.count * per_line) as usize, self.group as usize, &body)
    }
}

/// The kernel of a search: the place of each value in the sorted line.
pub(super) fn search(call: &Call<'_, '_>, left: bool) -> Option<Kernels> {
    let operands = call.batch.instrs[call.instr as usize].operands();
    let [to, sorted, values] = [0, 1, 2].map(|at| Lines::new(call.batch, operands[at]));
    let (to, sorted, values) = (to?, sorted?, values?);
    let rank = Rank { dtype: sorted.dtype, equals: true };
    let mut writer = Writer::new(Variant::Parameterised, is_wide(call.batch, operands));
    let (index, name) = (writer.index(), type_name(rank.key()));
    let total = values.count() * values.len;
    if total == 0 {
        return None;
    }
    let (end, len, all) =
        (writer.numbers.text(total), writer.numbers.text(values.len), writer.numbers.text(sorted.len));
    let (from_begin, value) =
        (values.begin(&mut writer, "line", "from"), values.element(&mut writer, "from", "at", false));
    let (to_begin, target) = (to.begin(&mut writer, "line", "to"), to.element(&mut writer, "to", "at", true));
    let (begin, element) = (sorted.begin(&mut writer, "0", "own"), sorted.element(&mut writer, "own", "middle", false));
    let before = if left { "key < wanted" } else { "key <= wanted" };
    let body = format!(
        "const {index} u = BH_INDEX;\nif (u < {end}) {{\nconst {index} line = u / {len}, at = u % {len};\n\
         {from_begin}{to_begin}{begin}{name} wanted;\n{{\n{}wanted = key;\n}}\n{index} low = 0, high = {all};\n\
         while (low < high) {{\nconst {index} middle = low + (high - low) / 2;\n{}\
         if ({before}) low = middle + 1; else high = middle;\n}}\n{target} = low;\n}}\n",
        rank.rank(&value),
        rank.rank(&element)
    );
    let groups = total.unsigned_abs().div_ceil(call.target.group as u64) as usize;
    Some((vec![writer.finish(call.target, groups, call.target.group, &body)], Vec::new()))
}
