//! Running folds: one item per row where rows are many, else groups that first fold their parts of a row.

use super::unroll::{halving, loop_directive, rolled};
use super::view::{Access, is_wide};
use super::{Code, KernelMemory, Target, Variant, Writer};
use bh_bytecode::BatchRef;
use bh_bytecode::c::{expression, neutral, type_name};

/// Rows of fewer elements are walked by one item.
const SHORT: i64 = 64;
/// This many rows keep a device busy with one item each.
const MANY: i64 = 8192;
/// The most parts of a row, and times that those of all rows fill the device.
const PARTS: u64 = 4096;
const TURNS: u64 = 4;
/// Neighbours that an item folds at a time, of elements of 8 bytes and where there is much local memory: all bring what neighbours in memory
/// are, and wait for each other once for a run.
const RUN: usize = 8;
/// Items of a group at most that fold a part of a row, and those that fold the parts.
const ITEMS: usize = 256;
const CARRIERS: usize = 1024;
/// The scratch memory of the parts' totals.
const TOTALS: KernelMemory = KernelMemory::Scratch(0);

/// The kernels of an accumulate instruction (index in the batch), and the bytes of the memory between them.
pub(crate) fn accumulate(
    batch: &BatchRef<'_>,
    instr: u32,
    target: &Target,
    variant: Variant,
) -> (Vec<Code>, Vec<usize>) {
    let instr = &batch.instrs[instr as usize];
    let wide = is_wide(batch, instr.operands());
    let (output, input) = (Access::new(batch, instr.operands()[0]), Access::new(batch, instr.operands()[1]));
    let axis = instr.param.trailing_zeros() as usize;
    let shape = output.shape();
    let along = shape.get(axis).copied().unwrap_or(1);
    let total: i64 = shape.iter().product();
    if total == 0 {
        return (Vec::new(), Vec::new());
    }
    let rows = total / along;
    let scan = Scan { output, input, axis, along, rows, opcode: instr.opcode, target, variant, wide };
    if along <= SHORT || rows >= MANY {
        return (vec![scan.by_items()], Vec::new());
    }
    let parts = Parts::new(&scan);
    let bytes = (rows * parts.count) as usize * scan.output.dtype.size();
    if parts.count == 1 {
        return (vec![scan.parts(parts)], Vec::new());
    }
    (vec![scan.totals(parts), scan.carries(parts), scan.parts(parts)], vec![bytes])
}

/// How rows are cut.
#[derive(Clone, Copy)]
struct Parts {
    /// Parts of a row, and elements of one: some tiles.
    count: i64,
    chunk: i64,
    /// Items of a group, and neighbours of a tile that each folds.
    group: usize,
    run: usize,
}

impl Parts {
    fn new(scan: &Scan<'_>) -> Parts {
        let few = scan.output.dtype.size() > 8 || scan.target.halves() < 2;
        let (run, group) = (if few { RUN / 2 } else { RUN }, scan.target.group.min(ITEMS));
        let tile = (group * run) as u64;
        let tiles = (scan.along as u64).div_ceil(tile);
        let wanted = (TURNS * scan.target.groups as u64 / scan.rows as u64).clamp(1, PARTS);
        let each = tiles.div_ceil(wanted);
        Parts { count: tiles.div_ceil(each) as i64, chunk: (each * tile) as i64, group, run }
    }
}

struct Scan<'a> {
    output: Access<'a>,
    input: Access<'a>,
    axis: usize,
    along: i64,
    rows: i64,
    opcode: bh_bytecode::Opcode,
    target: &'a Target,
    variant: Variant,
    wide: bool,
}

impl Scan<'_> {
    fn writer(&self) -> Writer {
        Writer::new(self.variant, self.wide)
    }

    fn type_name(&self) -> &'static str {
        type_name(self.output.dtype)
    }

    fn combine(&self, left: &str, right: &str) -> String {
        expression(self.opcode, 0, self.output.dtype, self.output.dtype, &[left, right])
    }

    fn neutral(&self) -> String {
        neutral(self.opcode, self.output.dtype)
    }

    /// Statements that find the indices of row `row`; the one along the axis is `at`.
    fn row(&self, writer: &mut Writer) -> (String, Vec<String>) {
        let shape = self.output.shape();
        let others = |dim: &usize| *dim != self.axis;
        let extents: Vec<i64> = (0..shape.len()).filter(others).map(|dim| shape[dim]).collect();
        let names: Vec<String> = (0..shape.len()).filter(others).map(|dim| format!("i{dim}")).collect();
        let index = writer.index();
        let text = writer.numbers.split(index, "row", &extents, &names);
        let mut all = names;
        all.insert(self.axis.min(all.len()), "at".into());
        (text, all)
    }

    fn by_items(&self) -> Code {
        let mut writer = self.writer();
        let index = writer.index();
        let (rows, along) = (writer.numbers.text(self.rows), writer.numbers.text(self.along));
        let (row, names) = self.row(&mut writer);
        let (source, result) =
            (self.input.element(&mut writer, &names, false), self.output.element(&mut writer, &names, true));
        let body = format!(
            "for ({index} row = BH_INDEX; row < {rows}; row += BH_INDICES) {{\n{row}{} sum = {};\n\
             for ({index} at = 0; at < {along}; at++) {{\nconst {0} value = {source};\nsum = {};\n{result} = sum;\n}}\n}}\n",
            self.type_name(),
            self.neutral(),
            self.combine("sum", "value"),
        );
        let groups = (self.rows as u64).div_ceil(self.target.group as u64).min(1 << 22) as usize;
        writer.finish(self.target, groups, self.target.group, &body)
    }

    /// The beginning of a kernel whose groups take parts of rows.
    fn part(&self, writer: &mut Writer, Parts { count, chunk, .. }: Parts) -> String {
        let index = writer.index();
        let (parts, along, chunk) =
            (writer.numbers.text(count), writer.numbers.text(self.along), writer.numbers.text(chunk));
        format!(
            "const int item = BH_ITEM;\nconst {index} row = BH_GROUP / {parts};\n\
             const {index} first = BH_GROUP % {parts} * {chunk};\n\
             const {index} end = min(({index})(first + {chunk}), ({index}){along});\n"
        )
    }

    /// Statements after which `all` has, for each item of a group, the fold of the `sum` of this item and of those before it.
    fn running(&self, group: usize) -> String {
        format!(
            "all[item] = sum;\nBH_BARRIER;\n{}for (int s = 1; s < {group}; s <<= 1) {{\nif (item >= s) sum = {};\nBH_BARRIER;\n\
             all[item] = sum;\nBH_BARRIER;\n}}\n",
            rolled(self.target),
            self.combine("all[item - s]", "sum"),
        )
    }

    /// The fold of each part. Neighbours fold neighbours.
    fn totals(&self, parts: Parts) -> Code {
        let mut writer = self.writer();
        let (index, group, name) = (writer.index(), parts.group, self.type_name());
        let head = self.part(&mut writer, parts);
        let (row, names) = self.row(&mut writer);
        let source = self.input.element(&mut writer, &names, false);
        let totals = writer.buffer(TOTALS, self.output.dtype, true);
        let unroll = if self.target.is_processor() { "" } else { "#pragma unroll 8\n" };
        let body = format!(
            "BH_LOCAL {name} all[{group}];\n{head}{row}{name} sum = {};\n{unroll}\
             for ({index} at = first + item; at < end; at += {group}) {{\nconst {name} value = {source};\nsum = {};\n}}\n\
             all[item] = sum;\nBH_BARRIER;\n{}\
             if (item < s) all[item] = {};\nBH_BARRIER;\n}}\n\
             if (item == 0) {totals}[BH_GROUP] = all[0];\n",
            self.neutral(),
            self.combine("sum", "value"),
            halving(self.target, group),
            self.combine("all[item]", "all[item + s]"),
        );
        writer.finish(self.target, (self.rows * parts.count) as usize, group, &body)
    }

    /// The fold of all earlier parts, which replaces the total of each part: a group for a row.
    fn carries(&self, parts: Parts) -> Code {
        let mut writer = self.writer();
        let (index, name, group) = (writer.index(), self.type_name(), self.target.largest.min(CARRIERS));
        let (rows, parts) = (writer.numbers.text(self.rows), writer.numbers.text(parts.count));
        let totals = writer.buffer(TOTALS, self.output.dtype, true);
        let body = format!(
            "BH_LOCAL {name} all[{group}];\nconst int item = BH_ITEM;\n\
             for ({index} row = BH_GROUP; row < {rows}; row += BH_GROUPS) {{\n{name} before = {neutral};\n\
             for ({index} tile = 0; tile < {parts}; tile += {group}) {{\nconst {index} part = tile + item;\n\
             {name} sum = {neutral};\nif (part < {parts}) sum = {totals}[row * {parts} + part];\n{running}\
             {name} own = before;\nif (item > 0) own = {};\nif (part < {parts}) {totals}[row * {parts} + part] = own;\n\
             before = {};\nBH_BARRIER;\n}}\n}}\n",
            self.combine("before", "all[item - 1]"),
            self.combine("before", &format!("all[{}]", group - 1)),
            neutral = self.neutral(),
            running = self.running(group),
        );
        writer.finish(self.target, self.rows as usize, group, &body)
    }

    /// The results, tile by tile: neighbours bring neighbours to local memory, where each item folds a run, and a group folds the runs.
    fn parts(&self, parts: Parts) -> Code {
        let mut writer = self.writer();
        let (index, group, name, run) = (writer.index(), parts.group, self.type_name(), parts.run);
        let head = self.part(&mut writer, parts);
        let (row, names) = self.row(&mut writer);
        let (source, result) =
            (self.input.element(&mut writer, &names, false), self.output.element(&mut writer, &names, true));
        let before = match parts.count {
            1 => self.neutral(),
            _ => format!("{}[BH_GROUP]", writer.buffer(TOTALS, self.output.dtype, false)),
        };
        // Runs are an element apart, so that items are in different banks.
        let unroll = loop_directive(self.target, run);
        let each = |text: &str| {
            format!(
                "{unroll}for (int q = 0; q < {run}; q++) {{\nconst int e = item + q * {group}, place = e + e / {run};\n\
                 const {index} at = tile + e;\n{text}}}\n"
            )
        };
        let bring = each(&format!(
            "{name} value = {};\nif (at < end) value = {source};\nkept[place] = value;\n",
            self.neutral()
        ));
        let leave = each(&format!("if (at < end) {result} = kept[place];\n"));
        let body = format!(
            "BH_LOCAL {name} kept[{}], all[{group}];\n{head}{row}BH_TO_LOCAL {name} *own = kept + item * {};\n{name} before = {before};\n\
             for ({index} tile = first; tile < end; tile += {}) {{\n{bring}BH_BARRIER;\n{name} sum = own[0];\n\
             {unroll}for (int q = 1; q < {run}; q++) {{\nsum = {};\nown[q] = sum;\n}}\n{}\
             {name} base = before;\nif (item > 0) base = {};\n{unroll}for (int q = 0; q < {run}; q++) own[q] = {};\n\
             before = {};\nBH_BARRIER;\n{leave}BH_BARRIER;\n}}\n",
            group * (run + 1),
            run + 1,
            group * run,
            self.combine("sum", "own[q]"),
            self.running(group),
            self.combine("before", "all[item - 1]"),
            self.combine("base", "own[q]"),
            self.combine("before", &format!("all[{}]", group - 1)),
        );
        writer.finish(self.target, (self.rows * parts.count) as usize, group, &body)
    }
}
