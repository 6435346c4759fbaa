//! LU and Cholesky factors and systems of equations of the matrices of a stack, in one kernel. An item has the smallest matrices in
//! registers; of others, a group has one in local memory, or in memory of its own if that is too little. All go the same steps.

use super::{Call, Kernels, parts};
use crate::code::{KernelMemory, Target, Variant, Why, Writer, halving, is_wide, loop_directive, note};
use bh_bytecode::c::type_name;
use bh_bytecode::walk::{Loop, Walk};
use bh_bytecode::{BatchRef, DType, Operand};
use bh_kernel::BufferRef;

/// Bytes of local memory for a matrix, where there is much and where there is little.
const LOCAL: [usize; 2] = [40 << 10, 24 << 10];
/// Bytes of a matrix, with its right sides, that one item keeps in registers.
const OWN: usize = 768;
/// Items of a group at most, and columns that it works on at a time at least.
const ITEMS: usize = 256;
const COLUMNS: usize = 4;
/// Operands of a call at most.
const OPERANDS: usize = 3;
/// Groups of a kernel at most.
const MOST_GROUPS: usize = 1 << 22;

/// A stack of matrices or vectors, in elements.
struct Operands {
    dtype: DType,
    place: KernelMemory,
    start: i64,
    /// From one to the next, for each loop over the stack.
    steps: Vec<i64>,
    row: i64,
    column: i64,
    columns: i64,
}

/// The loops over a stack of this many axes; the steps are those of the operands.
fn loops(batch: &BatchRef<'_>, operands: &[Operand], axes: usize) -> Option<Walk<OPERANDS>> {
    let views = operands.iter().map(|operand| operand.as_view()).collect::<Option<Vec<u32>>>()?;
    let axis = |axis: usize| {
        let mut steps = [0; OPERANDS];
        steps.iter_mut().zip(&views).for_each(|(step, view)| *step = batch.stride(*view)[axis] as isize);
        Loop { extent: batch.shape(views[0])[axis], steps }
    };
    (views.len() <= OPERANDS).then(|| Walk::merged((0..axes).map(axis)))
}

impl Operands {
    /// An operand of a call for a stack of this many axes.
    fn new(batch: &BatchRef<'_>, operand: Operand, axes: usize, steps: Vec<i64>) -> Option<Operands> {
        let view = operand.as_view()?;
        let record = &batch.views[view as usize];
        let (row, column, columns) = match (&batch.shape(view)[axes..], &batch.stride(view)[axes..]) {
            (&[_, columns], &[row, column]) => (row, column, columns),
            (&[_], &[row]) => (row, 0, 1),
            _ => return None,
        };
        let place = KernelMemory::Of(BufferRef::Base(record.base));
        Some(Operands { dtype: batch.dtype(operand)?, place, start: record.start, steps, row, column, columns })
    }

    /// The element of the matrix whose indices in the stack are `m0`, `m1` and so on.
    fn element(&self, writer: &mut Writer, row: &str, column: &str, writes: bool) -> String {
        let buffer = writer.buffer(self.place, self.dtype, writes);
        let stack = self.steps.iter().enumerate().map(|(at, step)| (*step, format!("m{at}")));
        let own = [(self.row, row), (self.column, column)].map(|(stride, name)| (stride, name.to_owned()));
        let terms: Vec<(i64, String)> = stack.chain(own).collect();
        format!("{buffer}[{}]", writer.numbers.address(self.start, &terms))
    }
}

/// A kernel under construction: of matrices of `n` rows and `columns` columns, with those of right sides, at `w`.
struct Little<'a> {
    name: &'a str,
    writer: Writer,
    body: String,
    /// Does one item have a matrix?
    alone: bool,
    /// The line before loops.
    unroll: &'static str,
    /// The beginning of a loop in which the items of a matrix fold halves.
    halving: String,
}

impl Little<'_> {
    fn add(&mut self, text: &str) {
        self.body += text;
        self.body += "\n";
    }

    /// A size that is a number of the kernel, or stands in its text where loops are unrolled.
    fn size(&mut self, size: i64) -> String {
        if self.alone { size.to_string() } else { self.writer.numbers.text(size) }
    }

    /// Statements for each element of some columns, which has the names `r` and `c`.
    fn each(&mut self, rows: &str, columns: &str, text: &str) {
        let unroll = self.unroll;
        self.add(&format!("{unroll}for ({columns})\n{unroll}for ({rows}) {{\n{text}}}\nFENCE;"));
    }

    /// Notes a failure of the call if this holds for a `value` of the diagonal.
    fn refuse(&mut self, condition: &str) {
        let notes = self.writer.buffer(KernelMemory::Failures, DType::I32, true);
        let (name, unroll, noted) = (self.name, self.unroll, note(&format!("({condition})"), &notes, 0, "r"));
        self.add(&format!(
            "{unroll}for (int r = item; r < n; r += G) {{\nconst {name} value = w[r * ld + r];\n{noted}}}"
        ));
    }

    /// Statements that find the row of the largest element of column `j` from the diagonal on, as `p`: the first of equal ones, and
    /// the diagonal's if that is NaN. Rows `j` and `p` change places then, with their numbers in `order` if that is `ordered`.
    fn pivot(&mut self, ordered: bool) {
        let (name, unroll) = (self.name, self.unroll);
        let exchange = |with: &str| {
            if ordered {
                format!("const int held = order[j]; order[j] = order[{with}]; order[{with}] = held;\n")
            } else {
                String::new()
            }
        };
        if self.alone {
            let order = exchange("r");
            return self.add(&format!(
                "{name} most = fabs(w[j * ld + j]);\nint p = j;\n\
                 {unroll}for (int r = j + 1; r < n; r++) {{\nconst {name} size = fabs(w[j * ld + r]);\nif (size > most) {{ most = size; p = r; }}\n}}\n\
                 {unroll}for (int r = j + 1; r < n; r++) if (p == r) {{\n\
                 {unroll}for (int c = 0; c < columns; c++) {{\nconst {name} moved = w[c * ld + j];\nw[c * ld + j] = w[c * ld + r];\nw[c * ld + r] = moved;\n}}\n{order}}}"
            ));
        }
        let (order, halving) = (exchange("p"), &self.halving);
        self.add(&format!(
            "{name} most = -1;\nint at = j;\n\
             for (int r = j + item; r < n; r += G) {{\nconst {name} size = fabs(w[j * ld + r]);\nif (size > most) {{ most = size; at = r; }}\n}}\n\
             sizes[item] = most;\nrows[item] = at;\nBH_BARRIER;\n\
             {halving}if (item < s) {{\nconst {name} size = sizes[item + s];\nconst int r = rows[item + s];\n\
             if (size > sizes[item] || (size == sizes[item] && r < rows[item])) {{ sizes[item] = size; rows[item] = r; }}\n}}\n\
             BH_BARRIER;\n}}\n\
             const {name} diagonal = w[j * ld + j];\nconst int p = diagonal != diagonal ? j : rows[0];\nFENCE;\n\
             for (int c = item; c < columns; c += G) {{\nconst {name} moved = w[c * ld + j];\nw[c * ld + j] = w[c * ld + p];\nw[c * ld + p] = moved;\n}}\n\
             if (item == 0) {{\n{order}}}\nFENCE;"
        ));
    }

    /// LU factors with exchanges of rows, as those of larger matrices are chosen; right sides follow.
    fn factor(&mut self, ordered: bool) {
        let (name, unroll) = (self.name, self.unroll);
        self.add(&format!("{unroll}for (int j = 0; j < n; j++) {{"));
        self.pivot(ordered);
        self.add(&format!(
            "const {name} top = w[j * ld + j];\n\
             if (top != 0) {{\n{unroll}for (int r = j + 1 + item; r < n; r += G) w[j * ld + r] /= top;\n}}\nFENCE;"
        ));
        let text = "if (top != 0) w[c * ld + r] -= w[j * ld + r] * w[c * ld + j];\n";
        self.each("int r = j + 1 + x; r < n; r += R", "int c = j + 1 + y; c < columns; c += C", text);
        self.add("}");
    }

    /// The right sides become the solutions of the upper triangle, each by one item.
    fn substitute(&mut self) {
        let (name, unroll) = (self.name, self.unroll);
        self.add(&format!(
            "{unroll}for (int c = n + item; c < columns; c += G) {{\n{unroll}for (int j = n - 1; j >= 0; j--) {{\n\
             const {name} x = w[c * ld + j] / w[j * ld + j];\nw[c * ld + j] = x;\n\
             {unroll}for (int r = 0; r < j; r++) w[c * ld + r] -= w[j * ld + r] * x;\n}}\n}}\nFENCE;"
        ));
    }

    /// The lower triangular factor, in place.
    fn root(&mut self) {
        let unroll = self.unroll;
        self.add(&format!(
            "{unroll}for (int j = 0; j < n; j++) {{\nif (item == 0) w[j * ld + j] = w[j * ld + j] > 0 ? sqrt(w[j * ld + j]) : NAN;\nFENCE;\n\
             {unroll}for (int r = j + 1 + item; r < n; r += G) w[j * ld + r] /= w[j * ld + j];\nFENCE;"
        ));
        let text = "if (r >= c) w[c * ld + r] -= w[j * ld + r] * w[j * ld + c];\n";
        self.each("int r = j + 1 + x; r < n; r += R", "int c = j + 1 + y; c < n; c += C", text);
        self.add("}");
    }

    /// Opens the loop over the matrices of a stack, each of which one item has in registers.
    fn open_own(&mut self, count: &str, n: i64, columns: i64) {
        let (name, index) = (self.name, self.writer.index());
        self.add(&format!(
            "enum {{ G = 1, R = 1, C = 1, item = 0, x = 0, y = 0, n = {n}, columns = {columns}, ld = {n} }};\n#define FENCE\n\
             for ({index} m = BH_INDEX; m < {count}; m += BH_INDICES) {{\n{name} w[{}];\nint order[{n}];",
            n * columns
        ));
    }

    /// Likewise, each of which a group has. Returns the bytes of memory between kernels.
    fn open_shared(&mut self, count: i64, n: i64, columns: i64, target: &Target, dtype: DType) -> Vec<usize> {
        let (name, index, group) = (self.name, self.writer.index(), items(target, n));
        let odd = n | 1;
        let local = (odd * columns) as usize * dtype.size() + group * 16 + n as usize * 4
            <= LOCAL[usize::from(target.halves() < 2)];
        let down = (n.max(1) as u64).next_power_of_two().min((group / COLUMNS).max(1) as u64);
        self.add(&format!("enum {{ G = {group}, R = {down}, C = {} }};", group as u64 / down));
        self.add(&format!("BH_LOCAL {name} sizes[G];\nBH_LOCAL int rows[G];"));
        if local {
            self.add(&format!(
                "BH_LOCAL {name} w[{}];\nBH_LOCAL int order[{n}];\n#define FENCE BH_BARRIER",
                odd * columns
            ));
        } else {
            self.add("#define FENCE BH_BARRIER_ALL");
        }
        let sizes = [count, n, columns, if local { odd } else { n }];
        let [count_text, rows, wide, ld] = sizes.map(|number| self.writer.numbers.text(number));
        self.add(&format!(
            "const int item = BH_ITEM, x = item % R, y = item / R, n = {rows}, columns = {wide}, ld = {ld};\n\
             for ({index} m = BH_GROUP; m < {count_text}; m += BH_GROUPS) {{"
        ));
        if local {
            return Vec::new();
        }
        let work = self.writer.buffer(KernelMemory::Scratch(0), dtype, true);
        let order = self.writer.buffer(KernelMemory::Scratch(1), DType::I32, true);
        self.add(&format!(
            "BH_GLOBAL {name} *w = {work} + (ulong)m * n * columns;\nBH_GLOBAL int *order = {order} + (ulong)m * n;"
        ));
        vec![(count * n * columns) as usize * dtype.size(), (count * n) as usize * 4]
    }
}

/// The kernel of a call for a stack of matrices; those of any other call are what `other` makes.
pub(super) fn or(call: &Call<'_, '_>, method: &str, other: fn(&Call<'_, '_>) -> Option<Kernels>) -> Option<Kernels> {
    match parts(call.batch, call.instr).0.len() {
        0 => other(call),
        axes => stack(call, method, axes),
    }
}

/// The kernel of a call for a stack of this many axes.
fn stack(call: &Call<'_, '_>, method: &str, axes: usize) -> Option<Kernels> {
    let (batch, target) = (call.batch, call.target);
    let instr = &batch.instrs[call.instr as usize];
    let walk = loops(batch, instr.operands(), axes)?;
    let steps = |at: usize| walk.loops().iter().map(|each| each.steps[at] as i64).collect();
    let operands = instr.operands().iter().enumerate();
    let all = operands.map(|(at, &operand)| Operands::new(batch, operand, axes, steps(at)));
    let all = all.collect::<Option<Vec<Operands>>>()?;
    let extents: Vec<i64> = walk.loops().iter().map(|each| each.extent).collect();
    let (outputs, count) = (usize::from(instr.outputs), extents.iter().product::<i64>());
    let (matrix, side) = (&all[outputs], all.get(outputs + 1));
    let (n, dtype) = (matrix.columns, matrix.dtype);
    let columns = n + side.map_or(0, |side| side.columns);
    if count == 0 || n == 0 || columns == 0 {
        return Some(Kernels::default());
    }
    let alone = (n * columns) as usize * dtype.size() <= OWN;
    let mut little = Little {
        name: type_name(dtype),
        writer: Writer::new(Variant::Parameterised, is_wide(batch, instr.operands())),
        body: String::new(),
        alone,
        unroll: if alone { loop_directive(target, n as usize) } else { "" },
        halving: halving(target, items(target, n)),
    };
    let (group, groups, scratch) = if alone {
        let count_text = little.writer.numbers.text(count);
        little.open_own(&count_text, n, columns);
        (target.group.min(ITEMS), (count as u64).div_ceil(target.group.min(ITEMS) as u64) as usize, Vec::new())
    } else {
        let scratch = little.open_shared(count, n, columns, target, dtype);
        (items(target, n), count as usize, scratch)
    };
    let (index, names) = (little.writer.index(), (0..extents.len()).map(|at| format!("m{at}")).collect::<Vec<_>>());
    little.body += &little.writer.numbers.split(index, "m", &extents, &names);
    bring(&mut little, matrix, side);
    let why = match method {
        "cholesky" => {
            little.root();
            little.refuse("!(value > 0)");
            Some("cholesky: the matrix is not positive definite")
        }
        "solve" => {
            little.factor(false);
            little.refuse("value == 0");
            little.add("FENCE;");
            little.substitute();
            Some("solve: the matrix is singular")
        }
        _ => {
            little.factor(true);
            None
        }
    };
    leave(&mut little, &all[..outputs], side.is_some(), method == "cholesky");
    little.add("FENCE;\n}\n#undef FENCE");
    if let Some(why) = why {
        little.writer.failure(call.instr, Why::Method(why.into()));
    }
    let Little { writer, body, .. } = little;
    Some((vec![writer.finish(target, groups.min(MOST_GROUPS), group, &body)], scratch))
}

/// Items of a group for a matrix of this many rows.
fn items(target: &Target, n: i64) -> usize {
    let useful = (n.max(1) as u64).next_power_of_two().max(8) as usize * COLUMNS;
    target.group.min(ITEMS).min(useful)
}

/// Brings the matrix, and the right sides beside it, to columns of memory. Neighbouring items read neighbours.
fn bring(little: &mut Little<'_>, matrix: &Operands, side: Option<&Operands>) {
    let mut copy = |operand: &Operands, first: &str, wide: i64| {
        let element = operand.element(&mut little.writer, "r", "c", false);
        let wide = little.size(wide);
        let place = if operand.column.abs() < operand.row.abs() {
            format!("c = e % {wide}, r = e / {wide}")
        } else {
            String::from("r = e % n, c = e / n")
        };
        let unroll = little.unroll;
        little.body += &format!(
            "{unroll}for (int e = item; e < n * {wide}; e += G) {{\nconst int {place};\nw[({first}c) * ld + r] = {element};\n}}\n"
        );
    };
    copy(matrix, "", matrix.columns);
    side.into_iter().for_each(|side| copy(side, "n + ", side.columns));
    let unroll = little.unroll;
    little.add(&format!("{unroll}for (int r = item; r < n; r += G) order[r] = r;\nFENCE;"));
}

/// Writes the results: the matrix or the right sides, and the order of rows.
fn leave(little: &mut Little<'_>, outputs: &[Operands], sides: bool, lower: bool) {
    let to = &outputs[0];
    let element = to.element(&mut little.writer, "r", "c", true);
    let (wide, unroll) = (little.size(to.columns), little.unroll);
    let place = if to.column.abs() < to.row.abs() {
        format!("c = e % {wide}, r = e / {wide}")
    } else {
        String::from("r = e % n, c = e / n")
    };
    let first = if sides { "n + " } else { "" };
    let value = format!("w[({first}c) * ld + r]");
    let value = if lower { format!("c > r ? 0 : {value}") } else { value };
    little.add(&format!(
        "{unroll}for (int e = item; e < n * {wide}; e += G) {{\nconst int {place};\n{element} = {value};\n}}"
    ));
    if let Some(order) = outputs.get(1) {
        let element = order.element(&mut little.writer, "r", "0", true);
        little.add(&format!("{unroll}for (int r = item; r < n; r += G) {element} = order[r];"));
    }
}
