//! LU and Cholesky factors and systems of equations of many little matrices: each group has one of them in local memory, or
//! in memory of its own if that is too little. Calls for the matrices of a stack come as one kernel.

use super::{Call, Kernels};
use crate::code::{KernelMemory, NOTE, Target, Variant, Why, Writer};
use bh_bytecode::c::type_name;
use bh_bytecode::{BatchRef, DType, Operand};
use bh_kernel::BufferRef;

/// Bytes of local memory for a matrix, where there is much and where there is little.
const LOCAL: [usize; 2] = [40 << 10, 24 << 10];
/// Items of a group at most, and columns that it works on at a time at least.
const ITEMS: usize = 256;
const COLUMNS: usize = 4;

/// A matrix or vector of each call, in elements: the first one's start, and how far the next one's is.
struct Operands {
    dtype: DType,
    place: KernelMemory,
    start: i64,
    step: i64,
    row: i64,
    column: i64,
    columns: i64,
}

impl Operands {
    fn new(batch: &BatchRef<'_>, first: Operand, second: Operand) -> Option<Operands> {
        let (view, next) = (first.as_view()?, second.as_view()?);
        let record = &batch.views[view as usize];
        let (row, column, columns) = match (batch.shape(view), batch.stride(view)) {
            (&[_, columns], &[row, column]) => (row, column, columns),
            (&[_], &[row]) => (row, 0, 1),
            _ => return None,
        };
        let place = KernelMemory::Of(BufferRef::Base(record.base));
        let step = batch.views[next as usize].start - record.start;
        Some(Operands { dtype: batch.dtype(first)?, place, start: record.start, step, row, column, columns })
    }

    /// The element of the matrix with the number `m`.
    fn element(&self, writer: &mut Writer, row: &str, column: &str, writes: bool) -> String {
        let buffer = writer.buffer(self.place, self.dtype, writes);
        let terms = [(self.step, "m"), (self.row, row), (self.column, column)];
        let terms: Vec<(i64, String)> = terms.map(|(stride, name)| (stride, name.to_owned())).into();
        format!("{buffer}[{}]", writer.numbers.address(self.start, &terms))
    }
}

/// A kernel under construction: of matrices of `n` rows and `columns` columns, with those of right sides, at `w`.
struct Little<'a> {
    name: &'a str,
    writer: Writer,
    body: String,
}

impl Little<'_> {
    fn add(&mut self, text: &str) {
        self.body += text;
        self.body += "\n";
    }

    /// Statements for each element of some columns, which has the names `r` and `c`.
    fn each(&mut self, rows: &str, columns: &str, text: &str) {
        self.add(&format!("for ({columns}) for ({rows}) {{\n{text}}}\nFENCE;"));
    }

    /// Notes a failure of the call if this holds for a `value` of the diagonal.
    fn refuse(&mut self, condition: &str) {
        let notes = self.writer.buffer(KernelMemory::Failures, DType::I32, true);
        let name = self.name;
        self.add(&format!(
            "for (int r = item; r < n; r += G) {{\nconst {name} value = w[r * ld + r];\n\
             if ({condition} && BH_COMPARE_EXCHANGE({notes} + m * {NOTE}, 0, 1) == 0) {{ {notes}[m * {NOTE} + 1] = r; {notes}[m * {NOTE} + 2] = 0; }}\n}}"
        ));
    }

    /// LU factors with exchanges of rows, as those of larger matrices are chosen; right sides follow.
    fn factor(&mut self, ordered: bool) {
        let name = self.name;
        let order = if ordered {
            "if (item == 0) { const int held = order[j]; order[j] = order[p]; order[p] = held; }\n"
        } else {
            ""
        };
        self.add(&format!(
            "for (int j = 0; j < n; j++) {{\n{name} most = -1;\nint at = j;\n\
             for (int r = j + item; r < n; r += G) {{\nconst {name} size = fabs(w[j * ld + r]);\nif (size > most) {{ most = size; at = r; }}\n}}\n\
             sizes[item] = most;\nrows[item] = at;\nBH_BARRIER;\n\
             for (int s = G / 2; s > 0; s >>= 1) {{\nif (item < s) {{\nconst {name} size = sizes[item + s];\nconst int r = rows[item + s];\n\
             if (size > sizes[item] || (size == sizes[item] && r < rows[item])) {{ sizes[item] = size; rows[item] = r; }}\n}}\n\
             BH_BARRIER;\n}}\n\
             const {name} diagonal = w[j * ld + j];\nconst int p = diagonal != diagonal ? j : rows[0];\nFENCE;\n\
             for (int c = item; c < columns; c += G) {{\nconst {name} held = w[c * ld + j];\nw[c * ld + j] = w[c * ld + p];\nw[c * ld + p] = held;\n}}\n\
             {order}FENCE;\nconst {name} top = w[j * ld + j];\n\
             if (top != 0) for (int r = j + 1 + item; r < n; r += G) w[j * ld + r] /= top;\nFENCE;"
        ));
        let text = "if (top != 0) w[c * ld + r] -= w[j * ld + r] * w[c * ld + j];\n";
        self.each("int r = j + 1 + x; r < n; r += R", "int c = j + 1 + y; c < columns; c += C", text);
        self.add("}");
    }

    /// The right sides become the solutions of the upper triangle, each by one item.
    fn substitute(&mut self) {
        let name = self.name;
        self.add(&format!(
            "for (int c = n + item; c < columns; c += G) {{\n{name} x;\nfor (int j = n - 1; j >= 0; j--) {{\n\
             x = w[c * ld + j] / w[j * ld + j];\nw[c * ld + j] = x;\nfor (int r = 0; r < j; r++) w[c * ld + r] -= w[j * ld + r] * x;\n}}\n}}\nFENCE;"
        ));
    }

    /// The lower triangular factor, in place.
    fn root(&mut self) {
        self.add(
            "for (int j = 0; j < n; j++) {\nif (item == 0) w[j * ld + j] = w[j * ld + j] > 0 ? sqrt(w[j * ld + j]) : NAN;\nFENCE;\n\
             for (int r = j + 1 + item; r < n; r += G) w[j * ld + r] /= w[j * ld + j];\nFENCE;",
        );
        let text = "if (r >= c) w[c * ld + r] -= w[j * ld + r] * w[j * ld + c];\n";
        self.each("int r = j + 1 + x; r < n; r += R", "int c = j + 1 + y; c < n; c += C", text);
        self.add("}");
    }
}

/// The kernel of calls of one method, each for one matrix: `calls` are instructions whose operands are equally far apart.
pub(super) fn stack(call: &Call<'_, '_>, calls: &[u32], method: &str) -> Option<Kernels> {
    let (batch, target) = (call.batch, call.target);
    let [first, second] = [calls[0], calls[1]].map(|instr| &batch.instrs[instr as usize]);
    let operands = first.operands().iter().zip(second.operands());
    let all = operands.map(|(&a, &b)| Operands::new(batch, a, b)).collect::<Option<Vec<Operands>>>()?;
    let outputs = usize::from(first.outputs);
    let (matrix, side) = (&all[outputs], all.get(outputs + 1));
    let n = matrix.columns;
    let columns = n + side.map_or(0, |side| side.columns);
    let group = items(target, n);
    let odd = n | 1;
    let local = (odd * columns) as usize * matrix.dtype.size() + group * 16 + n as usize * 4
        <= LOCAL[usize::from(target.halves < 2)];
    let mut all_bytes = Vec::new();
    let mut little = Little {
        name: type_name(matrix.dtype),
        writer: Writer::new(Variant::Parameterised, true),
        body: String::new(),
    };
    let name = little.name;
    let down = (n.max(1) as u64).next_power_of_two().min((group / COLUMNS).max(1) as u64);
    let (count, rows, ld) = (calls.len(), n, if local { odd } else { n });
    little.add(&format!("enum {{ G = {group}, R = {down}, C = {} }};", group as u64 / down));
    little.add(&format!("BH_LOCAL {name} sizes[G];\nBH_LOCAL int rows[G];"));
    if local {
        little
            .add(&format!("BH_LOCAL {name} w[{}];\nBH_LOCAL int order[{n}];\n#define FENCE BH_BARRIER", odd * columns));
    } else {
        all_bytes = vec![count * (n * columns) as usize * matrix.dtype.size(), count * n as usize * 4];
        little.add("#define FENCE BH_BARRIER_ALL");
    }
    let [count, rows, wide, ld] = [count as i64, rows, columns, ld].map(|number| little.writer.numbers.text(number));
    little.add(&format!(
        "const int item = BH_ITEM, x = item % R, y = item / R, n = {rows}, columns = {wide}, ld = {ld};\n\
         for (long m = BH_GROUP; m < {count}; m += BH_GROUPS) {{"
    ));
    if !local {
        let work = little.writer.buffer(KernelMemory::Scratch(0), matrix.dtype, true);
        let order = little.writer.buffer(KernelMemory::Scratch(1), DType::I32, true);
        little
            .add(&format!("BH_GLOBAL {name} *w = {work} + m * n * columns;\nBH_GLOBAL int *order = {order} + m * n;"));
    }
    bring(&mut little, matrix, side);
    match method {
        "cholesky" => {
            little.root();
            little.refuse("!(value > 0)");
        }
        "solve" => {
            little.factor(false);
            little.refuse("value == 0");
            little.add("FENCE;");
            little.substitute();
        }
        _ => little.factor(true),
    }
    leave(&mut little, &all[..outputs], side.is_some(), method == "cholesky");
    little.add("FENCE;\n}\n#undef FENCE");
    let why = match method {
        "cholesky" => "cholesky: the matrix is not positive definite",
        _ => "solve: the matrix is singular",
    };
    if method != "lu" {
        for &instr in calls {
            little.writer.failure(instr, Why::Method(why.into()));
        }
    }
    let Little { writer, body, .. } = little;
    Some((vec![writer.finish(target, calls.len(), group, &body)], all_bytes))
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
        let wide = little.writer.numbers.text(wide);
        let place = if operand.column.abs() < operand.row.abs() {
            format!("c = e % {wide}, r = e / {wide}")
        } else {
            String::from("r = e % n, c = e / n")
        };
        little.body += &format!(
            "for (int e = item; e < n * {wide}; e += G) {{\nconst int {place};\nw[({first}c) * ld + r] = {element};\n}}\n"
        );
    };
    copy(matrix, "", matrix.columns);
    side.into_iter().for_each(|side| copy(side, "n + ", side.columns));
    little.add("for (int r = item; r < n; r += G) order[r] = r;\nFENCE;");
}

/// Writes the results: the matrix or the right sides, and the order of rows.
fn leave(little: &mut Little<'_>, outputs: &[Operands], sides: bool, lower: bool) {
    let to = &outputs[0];
    let element = to.element(&mut little.writer, "r", "c", true);
    let wide = little.writer.numbers.text(to.columns);
    let place = if to.column.abs() < to.row.abs() {
        format!("c = e % {wide}, r = e / {wide}")
    } else {
        String::from("r = e % n, c = e / n")
    };
    let first = if sides { "n + " } else { "" };
    let value = format!("w[({first}c) * ld + r]");
    let value = if lower { format!("c > r ? 0 : {value}") } else { value };
    little.add(&format!("for (int e = item; e < n * {wide}; e += G) {{\nconst int {place};\n{element} = {value};\n}}"));
    if let Some(order) = outputs.get(1) {
        let element = order.element(&mut little.writer, "r", "0", true);
        little.add(&format!("for (int r = item; r < n; r += G) {element} = order[r];"));
    }
}
