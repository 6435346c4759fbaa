//! LU and Cholesky factors of real matrices, and systems of equations: a block of columns at a time, whose group is one, and
//! products of matrices for all that comes after. The matrix lies in columns in memory between kernels.

use super::lines::Lines;
use super::{Call, Kernels};
use crate::code::{Code, Matrix, Place, Variant, Why, Writer, note, tiles};
use bh_bytecode::DType;
use bh_bytecode::c::type_name;

/// Columns of a block.
const BLOCK: i64 = 16;
/// Columns of a block of a Cholesky factor, and rows that are solved for together.
const WIDE: i64 = 32;

/// The matrix with the right sides beside it, the row of each pivot, and the order of the rows.
const WORK: Place = Place::Scratch(0);
const PIVOTS: Place = Place::Scratch(1);
const ORDER: Place = Place::Scratch(2);

/// Factors under construction.
struct Factors<'a, 'b, 'c> {
    call: &'a Call<'b, 'c>,
    dtype: DType,
    n: i64,
    /// Columns, with those of the right sides.
    columns: i64,
    codes: Vec<Code>,
}

/// LU factors with the order of rows.
pub(super) fn lu(call: &Call<'_, '_>) -> Option<Kernels> {
    let outputs = usize::from(call.batch.instrs[call.instr as usize].outputs);
    let operands = call.batch.instrs[call.instr as usize].operands();
    let mut all = Factors::new(call, Lines::new(call.batch, operands[outputs])?, None);
    all.factor();
    all.leave(&Lines::new(call.batch, operands[0])?, 0, "value");
    if outputs > 1 {
        let to = Lines::new(call.batch, operands[1])?;
        all.each(all.n, |writer, _| {
            let order = writer.buffer(ORDER, DType::I64, false);
            let (begin, target) = (to.begin(writer, "0", "to"), to.element(writer, "to", "u", true));
            format!("{begin}{target} = {order}[u];\n")
        });
    }
    Some(all.finish())
}

/// The solution of a system for one right side or several.
pub(super) fn solve(call: &Call<'_, '_>) -> Option<Kernels> {
    let operands = call.batch.instrs[call.instr as usize].operands();
    let lines = |at: usize| Lines::new(call.batch, operands[at]);
    let one = call.batch.shape(operands[2].as_view()?).len() == 1;
    let side = |lines: Lines| if one { lines.turned() } else { Some(lines) };
    let (to, sides) = (side(lines(0)?)?, side(lines(2)?)?);
    let mut all = Factors::new(call, lines(1)?, Some(sides));
    all.factor();
    all.refuse("solve: the matrix is singular", "value == 0");
    all.substitute();
    all.leave(&to, all.n, "value");
    Some(all.finish())
}

/// The lower triangular factor of a symmetric matrix.
pub(super) fn cholesky(call: &Call<'_, '_>) -> Option<Kernels> {
    let operands = call.batch.instrs[call.instr as usize].operands();
    let mut all = Factors::new(call, Lines::new(call.batch, operands[1])?, None);
    for first in (0..all.n).step_by(WIDE as usize) {
        let width = WIDE.min(all.n - first);
        all.root(first, width);
        let after = first + width;
        if after < all.n {
            all.below(first, width);
            let left = all.part((after, all.n), (first, after));
            let right = Matrix {
                rows: left.columns,
                columns: left.rows,
                row_stride: left.column_stride,
                column_stride: 1,
                ..left
            };
            all.product(left, right, all.part((after, all.n), (after, all.n)));
        }
    }
    all.refuse("cholesky: the matrix is not positive definite", "!(value > 0)");
    all.leave(&Lines::new(call.batch, operands[0])?, 0, "column > row ? 0 : value");
    Some(all.finish())
}

impl<'a, 'b, 'c> Factors<'a, 'b, 'c> {
    /// Brings a matrix and right sides to the memory between kernels.
    fn new(call: &'a Call<'b, 'c>, matrix: Lines, sides: Option<Lines>) -> Factors<'a, 'b, 'c> {
        let (dtype, n) = (matrix.dtype, matrix.len);
        let columns = n + sides.as_ref().map_or(0, |sides| sides.len);
        let mut all = Factors { call, dtype, n, columns, codes: Vec::new() };
        all.each(n * columns, |writer, work| {
            let order = writer.buffer(ORDER, DType::I64, true);
            let (index, n) = (writer.index(), writer.numbers.text(n));
            let mut copy = |lines: &Lines, column: &str| {
                let begin = lines.begin(writer, "row", "from");
                let element = lines.element(writer, "from", column, false);
                format!("{begin}value = {element};\n")
            };
            let own = copy(&matrix, "column");
            let beside = sides.as_ref().map_or(String::new(), |sides| copy(sides, &format!("column - {n}")));
            format!(
                "const {index} row = u % {n}, column = u / {n};\n{} value = 0;\nif (column < {n}) {{\n{own}}} else {{\n{beside}}}\n\
                 {work}[u] = value;\nif (column == 0) {order}[row] = row;\n",
                type_name(dtype)
            )
        });
        all
    }

    fn wide(&self) -> bool {
        self.n * self.columns > 1 << 29
    }

    fn writer(&self) -> Writer {
        Writer::new(Variant::Parameterised, true)
    }

    /// A kernel with an item `u` for each of this many, whose body gets the name of the matrix.
    fn each(&mut self, total: i64, body: impl FnOnce(&mut Writer, &str) -> String) {
        if total == 0 {
            return;
        }
        let (mut writer, group) = (self.writer(), self.call.target.group);
        let work = writer.buffer(WORK, self.dtype, true);
        let (index, end) = (writer.index(), writer.numbers.text(total));
        let body = body(&mut writer, &work);
        let text = format!("const {index} u = get_global_id(0);\nif (u < {end}) {{\n{body}}}\n");
        let groups = total.unsigned_abs().div_ceil(group as u64) as usize;
        self.codes.push(writer.finish(self.call.target, groups, group, &text));
    }

    /// A part of the matrix.
    fn part(&self, rows: (i64, i64), columns: (i64, i64)) -> Matrix {
        Matrix {
            dtype: self.dtype,
            place: WORK,
            start: rows.0 + columns.0 * self.n,
            rows: rows.1 - rows.0,
            columns: columns.1 - columns.0,
            row_stride: 1,
            column_stride: self.n,
        }
    }

    /// Takes a product from a part of the matrix.
    fn product(&mut self, left: Matrix, right: Matrix, from: Matrix) {
        if from.rows > 0 && from.columns > 0 {
            let wide = self.wide();
            self.codes.push(tiles([&left, &right, &from], true, self.call.target, Variant::Parameterised, wide));
        }
    }

    /// LU factors in place, the largest element of a column its pivot.
    fn factor(&mut self) {
        for first in (0..self.n).step_by(BLOCK as usize) {
            let after = (first + BLOCK).min(self.n);
            self.panel(first, after - first);
            self.follow(first, after - first);
            let (lower, upper) =
                (self.part((after, self.n), (first, after)), self.part((first, after), (after, self.columns)));
            self.product(lower, upper, self.part((after, self.n), (after, self.columns)));
        }
    }

    /// The factors of a block of columns, by one group.
    fn panel(&mut self, first: i64, width: i64) {
        let (mut writer, name) = (self.writer(), type_name(self.dtype));
        // Few rows are no work for many items.
        let useful = (self.n as u64).next_power_of_two().max(64) as usize;
        let group = self.call.target.largest.min(useful);
        let work = writer.buffer(WORK, self.dtype, true);
        let pivots = writer.buffer(PIVOTS, DType::I64, true);
        let [n, first, width] = [self.n, first, width].map(|number| writer.numbers.text(number));
        let body = format!(
            "__local {name} sizes[{group}], row[{BLOCK}];\n__local long rows[{group}];\nconst int item = get_local_id(0);\n\
             {name} most = -1;\nlong at = {first};\n\
             for (long r = {first} + item; r < {n}; r += {group}) {{\nconst {name} size = fabs({work}[{first} * {n} + r]);\n\
             if (size > most) {{ most = size; at = r; }}\n}}\n\
             for (int j = 0; j < {width}; j++) {{\nconst long own = {first} + j;\nsizes[item] = most;\nrows[item] = at;\n\
             barrier(CLK_LOCAL_MEM_FENCE);\nfor (int s = {half}; s > 0; s >>= 1) {{\nif (item < s) {{\n\
             const {name} size = sizes[item + s];\nconst long r = rows[item + s];\n\
             if (size > sizes[item] || (size == sizes[item] && r < rows[item])) {{ sizes[item] = size; rows[item] = r; }}\n}}\n\
             barrier(CLK_LOCAL_MEM_FENCE);\n}}\n\
             const {name} diagonal = {work}[own * {n} + own];\nconst long pivot = diagonal != diagonal ? own : rows[0];\n\
             if (item == 0) {pivots}[own] = pivot;\nbarrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n\
             for (int c = item; c < {width}; c += {group}) {{\nconst long place = ({first} + c) * {n};\n\
             const {name} held = {work}[place + pivot];\n{work}[place + pivot] = {work}[place + own];\n{work}[place + own] = held;\n\
             row[c] = held;\n}}\nbarrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n\
             const {name} top = row[j];\nmost = -1;\nat = own + 1;\n\
             for (long r = own + 1 + item; r < {n}; r += {group}) {{\n{name} factor = {work}[own * {n} + r];\n\
             if (top != 0) {{ factor /= top; {work}[own * {n} + r] = factor; }}\n\
             for (int c = j + 1; c < {width}; c++) {{\nconst long place = ({first} + c) * {n} + r;\n\
             {name} value = {work}[place];\nif (top != 0) {{ value -= factor * row[c]; {work}[place] = value; }}\n\
             if (c == j + 1 && fabs(value) > most) {{ most = fabs(value); at = r; }}\n}}\n}}\n\
             barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n}}\n",
            half = group / 2
        );
        self.codes.push(writer.finish(self.call.target, 1, group, &body));
    }

    /// The other columns follow the exchanges of a block, and those to the right of it are solved for its rows.
    fn follow(&mut self, first: i64, width: i64) {
        let others = self.columns - width;
        let (dtype, group) = (self.dtype, self.call.target.group);
        let (n, own_group) = (self.n, group);
        self.each_group(others.max(1), |writer, work| {
            let pivots = writer.buffer(PIVOTS, DType::I64, false);
            let order = writer.buffer(ORDER, DType::I64, true);
            let [n, first, width, others] = [n, first, width, others].map(|number| writer.numbers.text(number));
            let name = type_name(dtype);
            format!(
                "__local {name} lower[{BLOCK}][{BLOCK} + 1];\n__local long other[{BLOCK}];\n\
                 for (int e = item; e < {width} * {width}; e += {own_group}) lower[e % {width}][e / {width}] = \
                 {work}[({first} + e / {width}) * {n} + {first} + e % {width}];\n\
                 for (int e = item; e < {width}; e += {own_group}) other[e] = {pivots}[{first} + e];\n\
                 barrier(CLK_LOCAL_MEM_FENCE);\n\
                 if (u == 0) for (int j = 0; j < {width}; j++) {{\nconst long held = {order}[{first} + j];\n\
                 {order}[{first} + j] = {order}[other[j]];\n{order}[other[j]] = held;\n}}\n\
                 if (u < {others}) {{\nconst long column = (u < {first} ? u : u + {width}) * {n};\n{name} x[{BLOCK}];\n\
                 for (int j = 0; j < {width}; j++) {{\nconst long at = column + other[j];\nconst {name} held = {work}[at];\n\
                 {work}[at] = {work}[column + {first} + j];\n{work}[column + {first} + j] = held;\n}}\n\
                 if (u >= {first}) {{\n#pragma unroll\nfor (int j = 0; j < {BLOCK}; j++) if (j < {width}) {{\n\
                 {name} value = {work}[column + {first} + j];\n#pragma unroll\nfor (int i = 0; i < {BLOCK}; i++) if (i < j) value -= lower[j][i] * x[i];\n\
                 x[j] = value;\n{work}[column + {first} + j] = value;\n}}\n}}\n}}\n"
            )
        });
    }

    /// A kernel with groups of items, of which each has the number `u`, at least this many.
    fn each_group(&mut self, total: i64, body: impl FnOnce(&mut Writer, &str) -> String) {
        let (mut writer, group) = (self.writer(), self.call.target.group);
        let work = writer.buffer(WORK, self.dtype, true);
        let body = body(&mut writer, &work);
        let text = format!("const long u = get_global_id(0);\nconst int item = get_local_id(0);\n{body}");
        let groups = total.unsigned_abs().div_ceil(group as u64) as usize;
        self.codes.push(writer.finish(self.call.target, groups, group, &text));
    }

    /// Fails if `condition` holds for a `value` of the diagonal.
    fn refuse(&mut self, text: &str, condition: &str) {
        let (instr, n, name) = (self.call.instr, self.n, type_name(self.dtype));
        self.each(n, |writer, work| {
            let failure = writer.failure(instr, Why::Method(text.into()));
            let notes = writer.buffer(Place::Failures, DType::I32, true);
            let n = writer.numbers.text(n);
            format!("const {name} value = {work}[u * {n} + u];\n{}", note(condition, &notes, failure, "u"))
        });
    }

    /// The right sides become the solutions of the upper triangle, from below.
    fn substitute(&mut self) {
        let mut after = if self.columns > self.n { self.n } else { 0 };
        while after > 0 {
            let first = (after - 1) / WIDE * WIDE;
            let width = after - first;
            let (mut writer, name) = (self.writer(), type_name(self.dtype));
            let work = writer.buffer(WORK, self.dtype, true);
            let group = WIDE as usize;
            let sides = self.columns - self.n;
            let [n, at, rows] = [self.n, first, width].map(|number| writer.numbers.text(number));
            let body = format!(
                "__local {name} upper[{WIDE}][{WIDE} + 1], x[{WIDE}];\nconst int item = get_local_id(0);\n\
                 const long side = ({n} + (long)get_group_id(0)) * {n} + {at};\n\
                 for (int e = item; e < {rows} * {rows}; e += {group}) upper[e % {rows}][e / {rows}] = \
                 {work}[({at} + e / {rows}) * {n} + {at} + e % {rows}];\n\
                 {name} value = item < {rows} ? {work}[side + item] : 0;\n\
                 for (int j = {rows} - 1; j >= 0; j--) {{\nbarrier(CLK_LOCAL_MEM_FENCE);\n\
                 if (item == j) {{ value /= upper[j][j]; x[j] = value; }}\nbarrier(CLK_LOCAL_MEM_FENCE);\n\
                 if (item < j) value -= upper[item][j] * x[j];\n}}\nif (item < {rows}) {work}[side + item] = value;\n"
            );
            self.codes.push(writer.finish(self.call.target, sides as usize, group, &body));
            let (left, right) =
                (self.part((0, first), (first, after)), self.part((first, after), (self.n, self.columns)));
            self.product(left, right, self.part((0, first), (self.n, self.columns)));
            after = first;
        }
    }

    /// The Cholesky factor of a block on the diagonal, by one group.
    fn root(&mut self, first: i64, width: i64) {
        let (mut writer, name) = (self.writer(), type_name(self.dtype));
        let work = writer.buffer(WORK, self.dtype, true);
        let group = WIDE as usize;
        let [n, first, width] = [self.n, first, width].map(|number| writer.numbers.text(number));
        let body = format!(
            "__local {name} all[{WIDE}][{WIDE} + 1];\nconst int item = get_local_id(0);\n\
             for (int e = item; e < {width} * {width}; e += {group}) all[e % {width}][e / {width}] = \
             {work}[({first} + e / {width}) * {n} + {first} + e % {width}];\nbarrier(CLK_LOCAL_MEM_FENCE);\n\
             for (int j = 0; j < {width}; j++) {{\nif (item == 0) all[j][j] = all[j][j] > 0 ? sqrt(all[j][j]) : NAN;\n\
             barrier(CLK_LOCAL_MEM_FENCE);\nif (item > j && item < {width}) all[item][j] /= all[j][j];\nbarrier(CLK_LOCAL_MEM_FENCE);\n\
             if (item > j && item < {width}) for (int c = j + 1; c <= item; c++) all[item][c] -= all[item][j] * all[c][j];\n\
             barrier(CLK_LOCAL_MEM_FENCE);\n}}\n\
             for (int e = item; e < {width} * {width}; e += {group}) if (e % {width} >= e / {width}) \
             {work}[({first} + e / {width}) * {n} + {first} + e % {width}] = all[e % {width}][e / {width}];\n"
        );
        self.codes.push(writer.finish(self.call.target, 1, group, &body));
    }

    /// The rows below a block of the Cholesky factor.
    fn below(&mut self, first: i64, width: i64) {
        let (dtype, n, group) = (self.dtype, self.n, self.call.target.group);
        self.each_group(n - first - width, |writer, work| {
            let name = type_name(dtype);
            let [n, first, width] = [n, first, width].map(|number| writer.numbers.text(number));
            format!(
                "__local {name} upper[{WIDE}][{WIDE} + 1];\n\
                 for (int e = item; e < {width} * {width}; e += {group}) upper[e / {width}][e % {width}] = \
                 {work}[({first} + e / {width}) * {n} + {first} + e % {width}];\nbarrier(CLK_LOCAL_MEM_FENCE);\n\
                 const long row = {first} + {width} + u;\nif (row < {n}) {{\n{name} x[{WIDE}];\n\
                 #pragma unroll\nfor (int j = 0; j < {WIDE}; j++) if (j < {width}) {{\n{name} value = {work}[({first} + j) * {n} + row];\n\
                 #pragma unroll\nfor (int i = 0; i < {WIDE}; i++) if (i < j) value -= upper[i][j] * x[i];\n\
                 x[j] = value / upper[j][j];\n{work}[({first} + j) * {n} + row] = x[j];\n}}\n}}\n"
            )
        });
    }

    /// Copies columns from `first` on to a view; `value` is an expression of what is written.
    fn leave(&mut self, to: &Lines, first: i64, value: &str) {
        let (n, columns, name) = (self.n, to.len, type_name(self.dtype));
        self.each(n * columns, |writer, work| {
            let (begin, target) = (to.begin(writer, "row", "to"), to.element(writer, "to", "column", true));
            let [n, columns, first] = [n, columns, first].map(|number| writer.numbers.text(number));
            format!(
                "const long row = u / {columns}, column = u % {columns};\nconst {name} value = {work}[({first} + column) * {n} + row];\n\
                 {begin}{target} = {value};\n"
            )
        });
    }

    fn finish(self) -> Kernels {
        let n = self.n as usize;
        (self.codes, vec![n * self.columns as usize * self.dtype.size(), n * 8, n * 8])
    }
}
