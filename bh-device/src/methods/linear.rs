//! LU and Cholesky factors, and systems of equations: of real matrices by blocks of columns, whose factors one group makes,
//! triangles that are solved for all that lies beside or below a block, and products of matrices for the rest; or by a library. The
//! matrix lies in columns in memory between kernels.

use super::library::{is_zero, zero};
use super::lines::Lines;
use super::panel::{Panel, shared};
use super::{Call, Kernels};
use crate::code::{
    Code, Into, KernelMemory, Matrix, Product, Target, Variant, Why, Writer, loop_directive, note, tiles,
};
use bh_bytecode::DType;
use bh_bytecode::c::type_name;

/// Columns of a block, where there is much local memory and where there is little.
const BLOCK: [i64; 2] = [64, 32];
/// Columns at least whose factors one group makes at a time, without the products of the rest.
const PANEL: i64 = 16;
/// Lines that a group solves a triangle for, and its items at most.
const LINES: usize = 16;
const ITEMS: usize = 256;
/// Items at most that make the factor of a block.
const ROOT: usize = 512;

/// The matrix with the right sides beside it, the row of each pivot, and the order of the rows.
const WORK: KernelMemory = KernelMemory::Scratch(0);
const PIVOTS: KernelMemory = KernelMemory::Scratch(1);
const ORDER: KernelMemory = KernelMemory::Scratch(2);
/// A library's number and the flags of the triangles, as [`crate::driver::Factors::Lu`] says, and the work space.
const STATUS: KernelMemory = KernelMemory::Scratch(3);
const ROOM: KernelMemory = KernelMemory::Scratch(4);

/// Factors under construction.
struct Factors<'a, 'b, 'c> {
    call: &'a Call<'b, 'c>,
    dtype: DType,
    n: i64,
    /// Columns, with those of the right sides.
    columns: i64,
    /// Columns of a block.
    block: i64,
    codes: Vec<Code>,
    /// Bytes of the work space of a library that makes them.
    room: Option<usize>,
}

/// The columns, rows or right sides that a triangle on the diagonal is solved for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// The lower one, whose diagonal is 1: other columns, of those in this range, which follow the exchanges of its rows first, as the order of
    /// rows does if it has not yet; those before it do no more.
    Right { begin: i64, end: i64, order: bool },
    /// The lower one: the rows below it.
    Below,
    /// The upper one: the right sides.
    Sides,
}

/// LU factors with the order of rows.
pub(super) fn lu(call: &Call<'_, '_>) -> Option<Kernels> {
    let outputs = usize::from(call.batch.instrs[call.instr as usize].outputs);
    let operands = call.batch.instrs[call.instr as usize].operands();
    let mut all = Factors::new(call, Lines::new(call.batch, operands[outputs])?, None);
    let by_library = all.by_library(&[PIVOTS]);
    if !by_library {
        all.factor();
    }
    all.leave(&Lines::new(call.batch, operands[0])?, 0, "value");
    if outputs > 1 {
        let to = Lines::new(call.batch, operands[1])?;
        if by_library {
            all.leave_order(&to);
            return Some(all.finish());
        }
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
    let by_library = all.by_library(&[PIVOTS]);
    if !by_library {
        all.factor();
    }
    all.refuse("solve: the matrix is singular", is_zero(all.dtype));
    if !by_library {
        all.substitute();
    }
    all.leave(&to, all.n, "value");
    Some(all.finish())
}

/// The lower triangular factor of a symmetric matrix.
pub(super) fn cholesky(call: &Call<'_, '_>) -> Option<Kernels> {
    let operands = call.batch.instrs[call.instr as usize].operands();
    let mut all = Factors::new(call, Lines::new(call.batch, operands[1])?, None);
    if !all.by_library(&[]) {
        all.lower();
    }
    let is_no_root = if all.dtype.is_complex() { "!(value.re > 0)" } else { "!(value > 0)" };
    all.refuse("cholesky: the matrix is not positive definite", is_no_root);
    let value = format!("column > row ? {} : value", zero(all.dtype));
    all.leave(&Lines::new(call.batch, operands[0])?, 0, &value);
    Some(all.finish())
}

impl<'a, 'b, 'c> Factors<'a, 'b, 'c> {
    /// Brings a matrix and right sides to the memory between kernels.
    fn new(call: &'a Call<'b, 'c>, matrix: Lines, sides: Option<Lines>) -> Factors<'a, 'b, 'c> {
        let (dtype, n) = (matrix.dtype, matrix.len);
        let columns = n + sides.as_ref().map_or(0, |sides| sides.len);
        let block = BLOCK[usize::from(call.target.halves() < 2)];
        let mut all = Factors { call, dtype, n, columns, block, codes: Vec::new(), room: None };
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
                "const {index} row = u % {n}, column = u / {n};\n{} value;\nif (column < {n}) {{\n{own}}} else {{\n{beside}}}\n\
                 {work}[u] = value;\nif (column == 0) {order}[row] = row;\n",
                type_name(dtype)
            )
        });
        all
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
        let text = format!("const {index} u = BH_INDEX;\nif (u < {end}) {{\n{body}}}\n");
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
    fn product(&mut self, left: Matrix, right: Matrix, from: Matrix, into: Into) {
        if from.rows > 0 && from.columns > 0 {
            let product = Product::of_matrices([&left, &right, &from]);
            self.codes.push(tiles(&product, into, self.call.target, Variant::Parameterised));
        }
    }

    /// Has a library make the factors, and the solutions; false if none does. `more`: what the task has besides the usual memory.
    fn by_library(&mut self, more: &[KernelMemory]) -> bool {
        let Some((task, room)) = self.call.task() else { return false };
        self.room = Some(room);
        if self.columns > self.n {
            self.look_for_triangles();
        }
        self.codes.push(Code::of_library(task, [&[WORK, STATUS, ROOM], more].concat()));
        true
    }

    /// Notes whether elements above and below the diagonal differ from zero: systems with a triangle need no factors.
    fn look_for_triangles(&mut self) {
        let (mut writer, group) = (self.writer(), self.call.target.group);
        let numbers = writer.buffer(STATUS, DType::I32, true);
        let text = format!("if (BH_ITEM == 0) {numbers}[0] = {numbers}[1] = {numbers}[2] = 0;\n");
        self.codes.push(writer.finish(self.call.target, 1, group, &text));
        let (mut writer, total) = (self.writer(), self.n * self.n);
        let (work, numbers) = (writer.buffer(WORK, self.dtype, false), writer.buffer(STATUS, DType::I32, true));
        let [n, end] = [self.n, total].map(|number| writer.numbers.text(number));
        let is_zero = is_zero(self.dtype);
        let text = format!(
            "BH_LOCAL int found[2];\nif (BH_ITEM == 0) found[0] = found[1] = 0;\nBH_BARRIER;\n\
             for (long u = BH_INDEX; u < {end}; u += BH_INDICES) {{\nconst long row = u % {n}, column = u / {n};\n\
             const {} value = {work}[u];\nif (row != column && !({is_zero})) found[row > column] = 1;\n}}\nBH_BARRIER;\n\
             if (BH_ITEM == 0) {{\nif (found[0]) {numbers}[1] = 1;\nif (found[1]) {numbers}[2] = 1;\n}}\n",
            type_name(self.dtype)
        );
        let groups = total.unsigned_abs().div_ceil(group as u64).min(self.call.target.groups as u64) as usize;
        self.codes.push(writer.finish(self.call.target, groups, group, &text));
    }

    /// The lower triangular factor in place.
    fn lower(&mut self) {
        for first in (0..self.n).step_by(self.block as usize) {
            let after = (first + self.block).min(self.n);
            self.root(first, after - first);
            self.triangle((first, after), Beside::Below);
            let left = self.part((after, self.n), (first, after));
            let (rows, columns) = (left.columns, left.rows);
            let right = Matrix { rows, columns, row_stride: left.column_stride, column_stride: 1, ..left };
            self.product(left, right, self.part((after, self.n), (after, self.n)), Into::LessBelow);
        }
    }

    /// LU factors in place, the largest element of a column its pivot.
    fn factor(&mut self) {
        let panel = Panel::new(self.call.target, self.n, PANEL, self.dtype.size());
        let width = panel.width(PANEL, self.block);
        for first in (0..self.n).step_by(self.block as usize) {
            let after = (first + self.block).min(self.n);
            for from in (first..after).step_by(width as usize) {
                let to = (from + width).min(after);
                self.panel(&panel, from, to - from, width);
                if (from, to) != (first, after) {
                    self.follow((from, to), (first, after), false);
                }
            }
            self.follow((first, after), (0, self.columns), true);
        }
    }

    /// Columns `begin..end` follow the exchanges of those of a panel among them; those after it are solved for, and the product
    /// is taken from what is below.
    fn follow(&mut self, (from, to): (i64, i64), (begin, end): (i64, i64), order: bool) {
        self.triangle((from, to), Beside::Right { begin, end, order });
        let (lower, upper) = (self.part((to, self.n), (from, to)), self.part((from, to), (to, end)));
        self.product(lower, upper, self.part((to, self.n), (to, end)), Into::Less);
    }

    /// The factors of some columns, at most `most`, by one group: some at a time, from which it first takes what those before
    /// them make of them. Exchanges of rows are done to all of the panel.
    fn panel(&mut self, panel: &Panel, first: i64, width: i64, most: i64) {
        let (mut writer, name) = (self.writer(), type_name(self.dtype));
        let (group, columns) = (panel.group, panel.columns);
        let work = writer.buffer(WORK, self.dtype, true);
        let pivots = writer.buffer(PIVOTS, DType::I64, true);
        let [n, first, width] = [self.n, first, width].map(|number| writer.numbers.text(number));
        let own = |c: &str| panel.element(c);
        let all = |text: &str| panel.each_column("c", text);
        // Bits of positive numbers are in their order, and are compared sooner.
        let bits = if self.dtype == DType::F32 { "uint" } else { "ulong" };
        let candidate = |c: &str| {
            format!(
                "const {bits} size = isnan({0}) ? (r == at ? ~({bits})0 : 0) : BH_AS({bits}, fabs({0})) + 1;\n\
                 if (size > most.size) {{ most.size = size; most.row = r; }}\n",
                own(c)
            )
        };
        let earlier = format!(
            "for (int k0 = 0; k0 < s; k0 += {columns}) {{\n\
             {bring}{keep}BH_BARRIER;\n{solve}BH_BARRIER;\n{take}{solved}BH_BARRIER;\n}}\n",
            bring = shared(
                group,
                columns * columns,
                &format!(
                    "lower[e / {columns}][e % {columns}] = m[(long)(k0 + e / {columns}) * n + first + k0 + e % {columns}];\n"
                )
            ),
            solve = shared(
                group,
                columns,
                &format!(
                    "for (int k = 1; k < {columns}; k++) {{\n{name} value = top[k][e];\n\
                     for (int i = 0; i < k; i++) value -= lower[i][k] * top[i][e];\ntop[k][e] = value;\n}}\n"
                )
            ),
            keep = panel.each_row(&format!(
                "if (r >= first + k0 && r < first + k0 + {columns}) {{\n{}}}\n",
                all(&format!("top[r - first - k0][c] = {};\n", own("c")))
            )),
            take = panel.each_column(
                "k",
                &panel.each_row_with(
                    name,
                    "k0 + k",
                    &format!(
                        "if (r >= first + k0 + {columns}) {{\n{}}}\n",
                        all(&format!("{} -= value * top[k][c];\n", own("c")))
                    )
                )
            ),
            solved = panel.each_row(&format!(
                "if (r >= first + k0 && r < first + k0 + {columns}) {{\n{}}}\n",
                all(&format!("{} = top[r - first - k0][c];\n", own("c")))
            )),
        );
        let each = format!(
            "const int at = first + s + j;\nFound most = {{0, at}};\n{look}sums[0][item] = most;\n{join}\
             if (item == 0) {{\npivot[j] = sums[0][0].row;\nif (s + j < width) {pivots}[at] = pivot[j];\n}}\n\
             BH_BARRIER;\nconst int with = pivot[j];\n{keep}BH_BARRIER;\n\
             if (with != at) {{\n{exchange}}}\nconst {name} above = held[1][j];\nif (above != 0) {{\nconst {name} inverse = 1 / above;\nconst bool multiplies = isfinite(inverse);\n{take}}}\n",
            look = panel.each_row(&format!("if (r >= at) {{\n{}}}\n", candidate("j"))),
            join = panel.join(1, "if (b.size > a.size || (b.size == a.size && b.row < a.row)) a = b;\n"),
            keep = panel.if_own("at", &all(&format!("held[0][c] = {};\n", own("c"))))
                + &panel.if_own("with", &all(&format!("held[1][c] = {};\n", own("c")))),
            exchange = panel.if_own("at", &all(&format!("{} = held[1][c];\n", own("c"))))
                + &panel.if_own("with", &all(&format!("{} = held[0][c];\n", own("c")))),
            take = panel.each_row(&format!(
                "if (r > at) {{\nconst {name} factor = multiplies ? {0} * inverse : {0} / above;\n{0} = factor;\n{1}}}\n",
                own("j"),
                all(&format!("if (c > j) {} -= factor * held[1][c];\n", own("c")))
            )),
        );
        let parts = most > columns;
        let moves = exchanges(columns, group, "first + s", "pivot", "width - s")
            + &moved(
                (columns, most),
                group,
                (self.call.target, name),
                &format!("c < width && (c < s || c >= s + {columns})"),
                "m + (long)c * n",
            );
        let body = format!(
            "typedef struct {{ {bits} size; int row; }} Found;\n#define JOINED Found\n\
             BH_LOCAL Found sums[1][{group}];\nBH_LOCAL {name} held[2][{columns}], lower[{columns}][{columns}], top[{columns}][{columns}];\n\
             BH_LOCAL int pivot[{columns}], from[2 * {columns}], to[2 * {columns}];\nconst int item = BH_ITEM, n = {n}, first = {first}, width = {width};\n\
             BH_GLOBAL {name} *m = {work} + (long)first * n;\n{declare}\
             for (int s = 0; s < width; s += {columns}) {{\n{bring}{earlier}{each}{leave}\
             BH_BARRIER_ALL;\n{moves}}}\n#undef JOINED\n",
            declare = panel.declare(name),
            bring = panel.copy(false),
            earlier = if parts { earlier.as_str() } else { "" },
            each = panel.each_column("j", &each),
            leave = panel.copy(true),
            moves = if parts { moves.as_str() } else { "" },
        );
        self.codes.push(writer.finish(self.call.target, 1, group, &body));
    }
    /// Solves the triangle of the columns `first..after` on the diagonal for lines beside it, some by each group: each item has
    /// some elements of a line in registers, and all get each solved one from its owner.
    fn triangle(&mut self, (first, after): (i64, i64), beside: Beside) {
        let (begin, lines) = match beside {
            Beside::Right { begin, end, .. } => (begin, end - begin - (after - first)),
            Beside::Below => (after, self.n - after),
            Beside::Sides => (self.n, self.columns - self.n),
        };
        let keeps_order = matches!(beside, Beside::Right { order: true, .. });
        if lines == 0 && !keeps_order {
            return;
        }
        let (mut writer, name, block) = (self.writer(), type_name(self.dtype), self.block);
        let group = self.call.target.group.min(ITEMS);
        let wide = LINES.min(group);
        let down = group / wide;
        let own = block as usize / down;
        let unroll = loop_directive(self.call.target, own);
        let work = writer.buffer(WORK, self.dtype, true);
        let follow = match beside {
            Beside::Right { .. } => self.follow_exchanges(&mut writer, &work, keeps_order, (group, wide)),
            _ => Default::default(),
        };
        let count = lines;
        let [n, first, width, begin, lines] =
            [self.n, first, after - first, begin, lines].map(|number| writer.numbers.text(number));
        // Neighbouring items read neighbours.
        let (place, element) = match beside {
            Beside::Below => (format!("c = item % {wide}, r = item / {wide}"), "work[(first + i) * n + line]"),
            _ => (format!("c = item / {down}, r = item % {down}"), "work[line * n + first + i]"),
        };
        let element = element.replace("work", &work);
        let (line, wanted) = match beside {
            Beside::Right { .. } => ("LINE(u)", "u < lines && line > first"),
            _ => ("begin + u", "u < lines"),
        };
        let (rest, j) = if beside == Beside::Sides { ("i < j", "width - 1 - step") } else { ("i > j", "step") };
        let is_unit = matches!(beside, Beside::Right { .. });
        let divided = if is_unit {
            ""
        } else {
            "own[q] = isfinite(inverse[j]) ? own[q] * inverse[j] : own[q] / triangle[j][j];\n"
        };
        let inverses = if is_unit { String::new() } else { shared(group, block, "inverse[e] = 1 / triangle[e][e];\n") };
        let each = |text: &str| {
            format!("{unroll}for (int q = 0; q < {own}; q++) {{\nconst int i = r + q * {down};\n{text}}}\n")
        };
        let body = format!(
            "BH_LOCAL {name} triangle[{block}][{block} + 1], solved[2][{wide}], inverse[{block}];\n{locals}const int item = BH_ITEM, width = {width};\n\
             const long n = {n}, first = {first}, begin = {begin}, lines = {lines}, u0 = (long)BH_GROUP * {wide};\n\
             for (int e = item; e < {block} * {block}; e += {group}) triangle[e / {block}][e % {block}] = \
             e / {block} < width && e % {block} < width ? {work}[(first + e / {block}) * n + first + e % {block}] : 0;\n\
             {follow}const int {place};\nconst long u = u0 + c, line = {line};\nconst bool wanted = {wanted};\n{name} own[{own}];\n\
             {bring}BH_BARRIER;\n{inverses}BH_BARRIER;\nfor (int step = 0; step < width; step++) {{\nconst int j = {j};\n{solve}\
             BH_BARRIER;\nconst {name} value = solved[step & 1][c];\n{take}}}\n{leave}",
            locals = follow.0,
            follow = follow.1,
            bring = each(&format!("own[q] = wanted && i < width ? {element} : 0;\n")),
            solve = each(&format!("if (i == j) {{\n{divided}solved[step & 1][c] = own[q];\n}}\n")),
            take = each(&format!("if ({rest}) own[q] -= triangle[j][i] * value;\n")),
            leave = each(&format!("if (wanted && i < width) {element} = own[q];\n")),
        );
        let groups = (count as u64).div_ceil(wide as u64).max(1) as usize;
        self.codes.push(writer.finish(self.call.target, groups, group, &body));
    }

    /// Declarations and statements with which lines beside a block follow the exchanges of its rows, and the order of rows, too.
    fn follow_exchanges(
        &self,
        writer: &mut Writer,
        work: &str,
        keeps_order: bool,
        (group, wide): (usize, usize),
    ) -> (String, String) {
        let (name, block) = (type_name(self.dtype), self.block);
        let pivots = writer.buffer(PIVOTS, DType::I64, false);
        let mut locals = format!("BH_LOCAL int other[{block}], from[2 * {block}], to[2 * {block}];\n");
        let (mut keep, mut change) = (String::new(), String::new());
        if keeps_order {
            let order = writer.buffer(ORDER, DType::I64, true);
            let each = |text: &str| shared(group, 2 * block, &format!("if (u0 == 0 && from[e] >= 0) {text}\n"));
            locals += &format!("BH_LOCAL long kept[2 * {block}];\n");
            keep = each(&format!("kept[e] = {order}[from[e]];"));
            change = each(&format!("{order}[to[e]] = kept[e];"));
        }
        let text = format!(
            "#define LINE(u) (begin + (u) < first ? begin + (u) : begin + (u) + width)\n\
             {}BH_BARRIER;\n{}{keep}{}{change}",
            shared(group, block, &format!("if (e < width) other[e] = {pivots}[first + e];\n")),
            exchanges(block, group, "first", "other", "width"),
            moved(
                (block, wide as i64),
                group,
                (self.call.target, name),
                "u0 + c < lines",
                &format!("{work} + LINE(u0 + c) * n")
            ),
        );
        (locals, text)
    }
    /// Leaves the order of rows that a library's exchanges make: an item for each row follows it through all of them.
    fn leave_order(&mut self, to: &Lines) {
        self.each(self.n, |writer, _| {
            let pivots = writer.buffer(PIVOTS, DType::I64, false);
            let n = writer.numbers.text(to.len);
            let (begin, target) = (to.begin(writer, "0", "to"), to.element(writer, "to", "at", true));
            format!(
                "long at = u;\nfor (long k = 0; k < {n}; k++) {{\nconst long with = {pivots}[k] - 1;\n\
                 at = at == k ? with : at == with ? k : at;\n}}\n{begin}{target} = u;\n"
            )
        });
    }

    /// Fails if `condition` holds for a `value` of the diagonal, or a library says so.
    fn refuse(&mut self, text: &str, condition: &str) {
        let (instr, n, name) = (self.call.instr, self.n, type_name(self.dtype));
        let by_library = self.room.is_some();
        self.each(n, |writer, work| {
            let failure = writer.failure(instr, Why::Method(text.into()));
            let notes = writer.buffer(KernelMemory::Failures, DType::I32, true);
            let number = by_library.then(|| format!("{}[0] != 0 || ", writer.buffer(STATUS, DType::I32, false)));
            let condition = format!("({}{condition})", number.unwrap_or_default());
            let n = writer.numbers.text(n);
            format!("const {name} value = {work}[u * {n} + u];\n{}", note(&condition, &notes, failure, "u"))
        });
    }

    /// The right sides become the solutions of the upper triangle, from below.
    fn substitute(&mut self) {
        if self.columns == self.n {
            return;
        }
        for number in (0..self.n.unsigned_abs().div_ceil(self.block as u64) as i64).rev() {
            let first = number * self.block;
            let after = (first + self.block).min(self.n);
            self.triangle((first, after), Beside::Sides);
            let (left, right) =
                (self.part((0, first), (first, after)), self.part((first, after), (self.n, self.columns)));
            self.product(left, right, self.part((0, first), (self.n, self.columns)), Into::Less);
        }
    }

    /// The Cholesky factor of a block on the diagonal, by one group.
    fn root(&mut self, first: i64, width: i64) {
        let (mut writer, name, block) = (self.writer(), type_name(self.dtype), self.block);
        let work = writer.buffer(WORK, self.dtype, true);
        let group = self.call.target.largest.min(ROOT);
        let down = group.min(block as usize);
        let (across, rows) = ((group / down) as i64, block as usize / down);
        let own = block / across.min(block);
        let [each_row, each_column] = [rows, own as usize].map(|turns| loop_directive(self.call.target, turns));
        let [n, first, width] = [self.n, first, width].map(|number| writer.numbers.text(number));
        let each = |text: &str| {
            format!(
                "{each_row}for (int p = 0; p < {rows}; p++)\n{each_column}for (int q = 0; q < {own}; q++) {{\n\
                 const int r = x + p * {down}, c = y + q * {across};\n{text}}}\n"
            )
        };
        let take = format!(
            "{each_row}for (int p = 0; p < {rows}; p++) {{\nconst {name} factor = now[x + p * {down}] / square;\n\
             {each_column}for (int q = 0; q < {own}; q++) {{\nconst int c = y + q * {across};\n\
             if (c > j) own[p][q] -= factor * now[c];\n}}\n}}\n"
        );
        let body = format!(
            "BH_LOCAL {name} column[2][{block}], squares[{block}];\nconst int item = BH_ITEM, x = item % {down}, y = item / {down}, width = {width};\n\
             const long n = {n}, first = {first};\nBH_GLOBAL {name} *a = {work} + first * n + first;\n{name} own[{rows}][{own}];\n\
             {bring}for (int j = 0; j < width; j++) {{\n{keep}BH_BARRIER;\n\
             BH_TO_LOCAL const {name} *now = column[j & 1];\nconst {name} square = now[j];\n{take}}}\nBH_BARRIER;\n{leave}",
            bring = each("own[p][q] = r < width && c <= r ? a[c * n + r] : 0;\n"),
            keep = each("if (c == j) {\ncolumn[j & 1][r] = own[p][q];\nif (r == j) squares[j] = own[p][q];\n}\n"),
            leave = each(&format!(
                "if (r < width && c <= r) {{\nconst {name} root = squares[c] > 0 ? sqrt(squares[c]) : NAN;\n\
                 a[c * n + r] = r == c ? root : own[p][q] / root;\n}}\n"
            )),
        );
        self.codes.push(writer.finish(self.call.target, 1, group, &body));
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
        let own = [n * self.columns as usize * self.dtype.size(), n * 8, n * 8];
        let of_library = self.room.map(|room| [3 * size_of::<i32>(), room]);
        (self.codes, own.into_iter().chain(of_library.into_iter().flatten()).collect())
    }
}

/// Statements that find where `count` exchanges of rows, of those from `first` on with those in `pivot`, bring each row: `from` and
/// `to` get it. From `limit` on there are none.
fn exchanges(count: i64, group: usize, first: &str, pivot: &str, limit: &str) -> String {
    let one = format!(
        "const int own = e % {count};\n\
         const int begin = own >= {limit} ? -1 : e < {count} ? (int)({first}) + own : {pivot}[own];\nint end = begin;\n\
         for (int k = 0; k < {count} && k < {limit}; k++) {{\nconst int one = (int)({first}) + k, two = {pivot}[k];\n\
         end = end == one ? two : end == two ? one : end;\n}}\nfrom[e] = begin;\nto[e] = end;\n"
    );
    shared(group, 2 * count, &one) + "BH_BARRIER;\n"
}

/// Statements that move elements of columns `c`, of which there are some, as `exchanges` found for `count` of them. `at`: where a
/// column lies, if `wanted`.
fn moved(
    (count, columns): (i64, i64),
    group: usize,
    (target, name): (&Target, &str),
    wanted: &str,
    at: &str,
) -> String {
    let each = (2 * count * columns).unsigned_abs().div_ceil(group as u64) as usize;
    let unroll = loop_directive(target, each);
    let one = |text: &str| {
        format!(
            "{unroll}for (int v = 0; v < {each}; v++) {{\nconst int k = (item + v * {group}) % (2 * {count}), c = (item + v * {group}) / (2 * {count});\n\
             if (c < {columns} && {wanted} && from[k] >= 0) {text}\n}}\nBH_BARRIER_ALL;\n"
        )
    };
    let (read, write) = (one(&format!("moved[v] = ({at})[from[k]];")), one(&format!("({at})[to[k]] = moved[v];")));
    format!("{{\n{name} moved[{each}];\n{read}{write}}}\n")
}
