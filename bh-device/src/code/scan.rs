//! Running folds: one item per row where rows are many, else groups that first fold their parts of a row.

use super::view::{Access, is_wide};
use super::{Code, KernelMemory, Target, Variant, Writer};
use bh_bytecode::BatchRef;
use bh_bytecode::c::{expression, neutral, type_name};

/// Rows of fewer elements are walked by one item.
const SHORT: i64 = 64;
/// This many rows keep a device busy with one item each.
const MANY: i64 = 8192;
/// The most parts of a row.
const PARTS: i64 = 1024;
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
    let group = target.group as i64;
    let parts = (target.groups as i64 / rows).min(along / (4 * group)).clamp(1, PARTS);
    let bytes = (rows * parts) as usize * scan.output.dtype.size();
    let mut codes = Vec::new();
    if parts > 1 {
        codes.push(scan.totals(parts));
        codes.push(scan.carries(parts));
    }
    codes.push(scan.parts(parts));
    (codes, if parts > 1 { vec![bytes] } else { Vec::new() })
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
    fn part(&self, writer: &mut Writer, parts: i64) -> String {
        let index = writer.index();
        let chunk = (self.along as u64).div_ceil(parts as u64) as i64;
        let (parts, along, chunk) =
            (writer.numbers.text(parts), writer.numbers.text(self.along), writer.numbers.text(chunk));
        format!(
            "const int item = BH_ITEM;\nconst {index} row = BH_GROUP / {parts};\n\
             const {index} first = BH_GROUP % {parts} * {chunk};\n\
             const {index} end = min(({index})(first + {chunk}), ({index}){along});\n"
        )
    }

    /// The fold of each part.
    fn totals(&self, parts: i64) -> Code {
        let mut writer = self.writer();
        let (index, group, name) = (writer.index(), self.target.group, self.type_name());
        let head = self.part(&mut writer, parts);
        let (row, names) = self.row(&mut writer);
        let source = self.input.element(&mut writer, &names, false);
        let totals = writer.buffer(TOTALS, self.output.dtype, true);
        // Each item folds a run of neighbours, so that the order of elements is kept.
        let body = format!(
            "BH_LOCAL {name} all[{group}];\n{head}{row}const {index} run = (end - first + {group} - 1) / {group};\n\
             const {index} from = first + item * run, to = min(({index})(from + run), end);\n{name} sum = {};\n\
             for ({index} at = from; at < to; at++) {{\nconst {name} value = {source};\nsum = {};\n}}\nall[item] = sum;\n\
             BH_BARRIER;\nfor (int s = 1; s < {group}; s <<= 1) {{\n\
             if (item % (2 * s) == 0) all[item] = {};\nBH_BARRIER;\n}}\n\
             if (item == 0) {totals}[BH_GROUP] = all[0];\n",
            self.neutral(),
            self.combine("sum", "value"),
            self.combine("all[item]", "all[item + s]"),
        );
        writer.finish(self.target, (self.rows * parts) as usize, group, &body)
    }

    /// What comes before each part, in the place of its total.
    fn carries(&self, parts: i64) -> Code {
        let mut writer = self.writer();
        let (index, name) = (writer.index(), self.type_name());
        let (rows, parts) = (writer.numbers.text(self.rows), writer.numbers.text(parts));
        let totals = writer.buffer(TOTALS, self.output.dtype, true);
        let body = format!(
            "for ({index} row = BH_INDEX; row < {rows}; row += BH_INDICES) {{\n{name} sum = {};\n\
             for ({index} part = 0; part < {parts}; part++) {{\nconst {name} total = {totals}[row * {parts} + part];\n\
             {totals}[row * {parts} + part] = sum;\nsum = {};\n}}\n}}\n",
            self.neutral(),
            self.combine("sum", "total"),
        );
        let groups = (self.rows as u64).div_ceil(self.target.group as u64).min(1 << 22) as usize;
        writer.finish(self.target, groups, self.target.group, &body)
    }

    /// The results, group by group of neighbours.
    fn parts(&self, parts: i64) -> Code {
        let mut writer = self.writer();
        let (index, group, name) = (writer.index(), self.target.group, self.type_name());
        let head = self.part(&mut writer, parts);
        let (row, names) = self.row(&mut writer);
        let (source, result) =
            (self.input.element(&mut writer, &names, false), self.output.element(&mut writer, &names, true));
        let before = if parts > 1 {
            format!("{}[BH_GROUP]", writer.buffer(TOTALS, self.output.dtype, false))
        } else {
            self.neutral()
        };
        let body = format!(
            "BH_LOCAL {name} all[{group}];\n{head}{row}{name} before = {before};\n\
             for ({index} tile = first; tile < end; tile += {group}) {{\nconst {index} at = tile + item;\n\
             {name} sum = {};\nif (at < end) sum = {source};\nall[item] = sum;\nBH_BARRIER;\n\
             for (int s = 1; s < {group}; s <<= 1) {{\nif (item >= s) sum = {};\nBH_BARRIER;\n\
             all[item] = sum;\nBH_BARRIER;\n}}\nif (at < end) {result} = {};\nbefore = {};\n\
             BH_BARRIER;\n}}\n",
            self.neutral(),
            self.combine("all[item - s]", "sum"),
            self.combine("before", "sum"),
            self.combine("before", &format!("all[{}]", group - 1)),
        );
        writer.finish(self.target, (self.rows * parts) as usize, group, &body)
    }
}
