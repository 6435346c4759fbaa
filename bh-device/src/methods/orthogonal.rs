//! Factors of matrices into orthonormal columns and a triangle: Householder's reflections, a block of columns at a time, or a library.
//! A group makes the reflections of a block, and what they do together is done to the other columns, some by each group. The matrix
//! lies in columns in memory between kernels; below its diagonal it holds the reflections.

use super::library::zero;
use super::lines::Lines;
use super::panel::{Panel, shared};
use super::{Call, Kernels};
use crate::code::{Code, KernelMemory, Variant, Writer, halving, loop_directive};
use bh_bytecode::DType;
use bh_bytecode::c::type_name;

/// Columns of a block.
const BLOCK: i64 = 16;
/// Items of a group at most, and columns that they work on together.
const ITEMS: usize = 256;
const SHARED: i64 = 4;
/// Bytes of local memory for what a group sums.
const LOCAL: usize = 32 << 10;

/// The matrix, the triangles that join the reflections of each block, and the orthonormal columns.
const WORK: KernelMemory = KernelMemory::Scratch(0);
const JOINED: KernelMemory = KernelMemory::Scratch(1);
const ORTHONORMAL: KernelMemory = KernelMemory::Scratch(2);
/// A library's number, and its work space. Its data about reflections is in [`JOINED`].
const STATUS: KernelMemory = KernelMemory::Scratch(3);
const ROOM: KernelMemory = KernelMemory::Scratch(4);

/// Factors under construction.
struct Factors<'a, 'b, 'c> {
    call: &'a Call<'b, 'c>,
    dtype: DType,
    rows: i64,
    columns: i64,
    codes: Vec<Code>,
}

/// The orthonormal columns and the triangle.
pub(super) fn qr(call: &Call<'_, '_>) -> Option<Kernels> {
    let operands = call.batch.instrs[call.instr as usize].operands();
    let lines = |at: usize| Lines::new(call.batch, operands[at]);
    let (q, r, matrix) = (lines(0)?, lines(1)?, lines(2)?);
    let (rows, columns) = (matrix.count(), matrix.len);
    let (dtype, wide) = (matrix.dtype, q.len);
    let mut all = Factors { call, dtype, rows, columns, codes: Vec::new() };
    all.copy(&matrix, WORK, columns, false, |element, work| format!("{work} = {element};\n"));
    let bytes = |elements: i64| elements as usize * dtype.size();
    let mut scratch = vec![bytes(rows * columns), 0, bytes(rows * wide)];
    if let Some((task, room)) = call.task() {
        all.codes.push(Code::of_library(task, vec![WORK, STATUS, ROOM, JOINED, ORTHONORMAL]));
        scratch[1] = bytes(rows.min(columns));
        scratch.extend([size_of::<i32>(), room]);
    } else {
        scratch[1] = bytes(all.reflections(wide) * BLOCK * BLOCK);
    }
    all.copy(&q, ORTHONORMAL, wide, true, |element, own| format!("{element} = {own};\n"));
    let zero = zero(dtype);
    all.copy(&r, WORK, columns, true, |element, work| format!("{element} = row > column ? {zero} : {work};\n"));
    Some((all.codes, scratch))
}

impl Factors<'_, '_, '_> {
    /// Makes the triangle in place and this many orthonormal columns; the number of blocks.
    fn reflections(&mut self, wide: i64) -> i64 {
        let panel = Panel::new(self.call.target, self.rows, BLOCK, self.dtype.size());
        let blocks: Vec<i64> = (0..self.rows.min(self.columns)).step_by(BLOCK as usize).collect();
        for &first in &blocks {
            let width = self.width(first);
            self.reflect(&panel, first, width);
            self.join(first, width);
            self.apply(WORK, first, width, (first + width, self.columns), true);
        }
        self.unit(wide);
        for &first in blocks.iter().rev() {
            // Columns before it are those of the unit matrix still, on whose rows nothing is done.
            self.apply(ORTHONORMAL, first, self.width(first), (first, wide), false);
        }
        blocks.len() as i64
    }

    fn width(&self, first: i64) -> i64 {
        BLOCK.min(self.rows.min(self.columns) - first)
    }

    /// Items of a group for other columns than those of a block.
    fn group(&self) -> usize {
        self.call.target.group.min(ITEMS / (3 - self.call.target.halves()))
    }

    fn writer(&self) -> Writer {
        Writer::new(Variant::Parameterised, true)
    }

    /// A kernel that joins elements of a view, of this many columns, with those of memory between kernels at the same place.
    fn copy(
        &mut self,
        lines: &Lines,
        place: KernelMemory,
        columns: i64,
        writes: bool,
        text: impl Fn(&str, &str) -> String,
    ) {
        let (total, rows, group) = (lines.count() * columns, self.rows, self.call.target.group);
        let mut writer = self.writer();
        let own = writer.buffer(place, self.dtype, !writes);
        let begin = lines.begin(&mut writer, "row", "line");
        let element = lines.element(&mut writer, "line", "column", writes);
        let [end, columns, rows] = [total, columns, rows].map(|number| writer.numbers.text(number));
        let body = text(&element, &format!("{own}[column * {rows} + row]"));
        let body = format!(
            "const long u = BH_INDEX;\nif (u < {end}) {{\nconst long row = u / {columns}, column = u % {columns};\n{begin}{body}}}\n"
        );
        let groups = total.unsigned_abs().div_ceil(group as u64) as usize;
        self.codes.push(writer.finish(self.call.target, groups, group, &body));
    }

    /// The orthonormal columns begin as those of a unit matrix.
    fn unit(&mut self, wide: i64) {
        let (total, group) = (self.rows * wide, self.call.target.group);
        let mut writer = self.writer();
        let own = writer.buffer(ORTHONORMAL, self.dtype, true);
        let [end, rows] = [total, self.rows].map(|number| writer.numbers.text(number));
        let body = format!("const long u = BH_INDEX;\nif (u < {end}) {own}[u] = u / {rows} == u % {rows};\n");
        let groups = total.unsigned_abs().div_ceil(group as u64) as usize;
        self.codes.push(writer.finish(self.call.target, groups, group, &body));
    }

    /// One group makes the reflections of a block of columns: some at a time, to which it first does those before them.
    fn reflect(&mut self, panel: &Panel, first: i64, width: i64) {
        let (mut writer, name) = (self.writer(), type_name(self.dtype));
        let (work, joined) = (writer.buffer(WORK, self.dtype, true), writer.buffer(JOINED, self.dtype, true));
        let (group, columns) = (panel.group, panel.columns);
        let unroll = loop_directive(self.call.target, columns as usize);
        let together =
            (LOCAL / (3 - self.call.target.halves()) / (group * self.dtype.size())).clamp(1, columns as usize) as i64;
        let [n, first, width, place] =
            [self.rows, first, width, first * BLOCK].map(|number| writer.numbers.text(number));
        let own = |c: &str| panel.element(c);
        // `sum` gets the sums of all columns' products with the reflection.
        let sums = |read: &str, product: &str| -> String {
            let batch = |from: i64| {
                let count = together.min(columns - from);
                let each = |text: &str| format!("{unroll}for (int l = 0; l < {count}; l++) {text};\n");
                let add = format!("if (c >= {from} && c < {from} + {count}) parts[c - {from}] += {product};\n");
                let each_column = panel.each_column("c", &add);
                format!(
                    "{{\n{name} parts[{count}];\n{}{}{}}}\n{}{}BH_BARRIER;\n",
                    each("parts[l] = 0"),
                    if read.is_empty() {
                        panel.each_row(&each_column)
                    } else {
                        panel.each_row_with(name, read, &each_column)
                    },
                    each("sums[l][item] = parts[l]"),
                    panel.join(count as usize, "a += b;\n"),
                    shared(group, count, &format!("sum[{from} + e] = sums[e][0];\n")),
                )
            };
            (0..columns).step_by(together as usize).map(batch).collect()
        };
        let earlier = format!(
            "for (int k = 0; k < s; k++) {{\n{}{}}}\n",
            sums("k", &format!("(r > first + k ? value : r == first + k ? 1 : 0) * {}", own("c"))),
            panel.each_row_with(
                name,
                "k",
                &format!(
                    "const {name} v = r > first + k ? value : r == first + k ? 1 : 0;\n{}",
                    panel.each_column("c", &format!("{} -= tau[k] * sum[c] * v;\n", own("c")))
                )
            )
        );
        let each = format!(
            "const int at = first + s + j;\nsums[0][item] = 0;\n{largest}{most}\
             // Squares of large numbers would be no numbers any more.\n\
             const {name} size = sums[0][0], unit = size > 0 && size < INFINITY ? size : 1;\nBH_BARRIER;\n\
             sums[0][item] = 0;\n{squares}{all}\
             const {name} below = sums[0][0], alpha = corner, part = alpha / unit;\nBH_BARRIER;\n\
             const {name} beta = below == 0 ? alpha : -copysign(unit * sqrt(part * part + below), alpha);\n\
             const {name} scale = below == 0 ? 0 : (beta - alpha) / beta;\nif (item == 0 && s + j < width) tau[s + j] = scale;\n\
             if (below != 0) {{\n{divide}}}\n{sums}{take}",
            largest = panel.each_row(&format!(
                "if (r >= at) sums[0][item] = fmax(sums[0][item], fabs({0}));\nif (r == at) corner = {0};\n",
                own("j")
            )),
            most = panel.join(1, "a = fmax(a, b);\n"),
            squares = panel.each_row(&format!(
                "if (r > at) {{\nconst {name} part = {} / unit;\nsums[0][item] += part * part;\n}}\n",
                own("j")
            )),
            all = panel.join(1, "a += b;\n"),
            divide = panel.each_row(&format!("if (r > at) {} /= alpha - beta;\n", own("j"))),
            sums = sums("", &format!("c > j && r >= at ? (r == at ? 1 : {}) * {} : 0", own("j"), own("c"))),
            take = panel.each_row(&format!(
                "if (r >= at) {{\nconst {name} v = r == at ? 1 : {};\n{}if (r == at) {0} = beta;\n}}\n",
                own("j"),
                panel.each_column("c", &format!("if (c > j) {} -= scale * sum[c] * v;\n", own("c")))
            )),
        );
        let body = format!(
            "#define JOINED {name}\nBH_LOCAL {name} sums[{together}][{group}], sum[{columns}], tau[{BLOCK}], corner;\n\
             const int item = BH_ITEM, n = {n}, first = {first}, width = {width};\n\
             BH_GLOBAL {name} *m = {work} + (long)first * n;\n{declare}\
             for (int s = 0; s < width; s += {columns}) {{\n{bring}{earlier}{each}{leave}\
             BH_BARRIER_ALL;\n}}\n\
             {keep}#undef JOINED\n",
            keep = shared(group, BLOCK, &format!("if (e < width) {joined}[{place} + e * {BLOCK} + e] = tau[e];\n")),
            declare = panel.declare(name),
            bring = panel.copy(false),
            earlier = if columns < BLOCK { earlier.as_str() } else { "" },
            each = panel.each_column("j", &each),
            leave = panel.copy(true),
        );
        self.codes.push(writer.finish(self.call.target, 1, group, &body));
    }

    /// The triangle that joins the reflections of a block: their products with each other by a group each, then it by one.
    fn join(&mut self, first: i64, width: i64) {
        let (mut writer, name) = (self.writer(), type_name(self.dtype));
        let group = self.group();
        let halving = halving(self.call.target, group);
        let (work, joined) = (writer.buffer(WORK, self.dtype, false), writer.buffer(JOINED, self.dtype, true));
        let [n, first_of, wide, place] =
            [self.rows, first, width, first * BLOCK].map(|number| writer.numbers.text(number));
        let body = format!(
            "BH_LOCAL {name} sums[{group}];\nconst int item = BH_ITEM, i = BH_GROUP / {BLOCK}, j = BH_GROUP % {BLOCK};\n\
             const long n = {n}, first = {first_of}, end = i < j && j < {wide} ? n : 0;\nBH_GLOBAL const {name} *m = {work} + first * n;\n{name} sum = 0;\n\
             for (long r = first + j + item; r < end; r += {group}) sum += m[i * n + r] * (r == first + j ? 1 : m[j * n + r]);\n\
             sums[item] = sum;\nBH_BARRIER;\n{halving}\
             if (item < s) sums[item] += sums[item + s];\nBH_BARRIER;\n}}\n\
             if (item == 0 && i < j) {joined}[{place} + i * {BLOCK} + j] = sums[0];\n"
        );
        let all = (width * BLOCK) as usize;
        self.codes.push(writer.finish(self.call.target, all, group, &body));
        let mut writer = self.writer();
        let joined = writer.buffer(JOINED, self.dtype, true);
        let [width, place] = [width, first * BLOCK].map(|number| writer.numbers.text(number));
        let group = self.call.target.group.min(BLOCK as usize);
        let body = format!(
            "BH_LOCAL {name} all[{BLOCK}][{BLOCK}], done[{BLOCK}][{BLOCK}];\nconst int item = BH_ITEM, width = {width};\n\
             for (int e = item; e < {BLOCK} * {BLOCK}; e += {group}) {{\nconst int i = e / {BLOCK}, j = e % {BLOCK};\n\
             all[i][j] = i <= j && j < width ? {joined}[{place} + e] : 0;\ndone[i][j] = 0;\n}}\n\
             for (int j = 0; j < width; j++) {{\nBH_BARRIER;\nconst {name} tau = all[j][j];\n\
             {column}}}\nBH_BARRIER;\n\
             for (int e = item; e < {BLOCK} * {BLOCK}; e += {group}) {joined}[{place} + e] = done[e / {BLOCK}][e % {BLOCK}];\n",
            column = shared(
                group,
                BLOCK,
                &format!(
                    "if (e <= j) {{\n{name} sum = 0;\nfor (int l = e; l < j; l++) sum += done[e][l] * all[l][j];\n\
                     done[e][j] = e < j ? -tau * sum : tau;\n}}\n"
                )
            )
        );
        self.codes.push(writer.finish(self.call.target, 1, group, &body));
    }

    /// Does the reflections of a block to columns of a matrix, some by each group: in their order (`forward`), or in the other.
    fn apply(&mut self, place: KernelMemory, first: i64, width: i64, (begin, end): (i64, i64), forward: bool) {
        if begin >= end {
            return;
        }
        let (mut writer, name) = (self.writer(), type_name(self.dtype));
        let (group, unroll) = (self.group(), loop_directive(self.call.target, BLOCK as usize));
        let (target, joined) = (writer.buffer(place, self.dtype, true), writer.buffer(JOINED, self.dtype, false));
        let work = if place == WORK { target.clone() } else { writer.buffer(WORK, self.dtype, false) };
        let groups = (end - begin).unsigned_abs().div_ceil(SHARED as u64) as usize;
        let [n, at, width, begin, end, from] =
            [self.rows, first, width, begin, end, first * BLOCK].map(|number| writer.numbers.text(number));
        let triangle = if forward { format!("l * {BLOCK} + i") } else { format!("i * {BLOCK} + l") };
        let columns = |text: &str| format!("{unroll}for (int c = 0; c < {SHARED}; c++) {{\n{text}}}\n");
        let reflections = |text: &str| {
            format!(
                "{unroll}for (int j = 0; j < {BLOCK}; j++) {{\nconst {name} v = r < j || j >= width ? 0 : r == j ? 1 : below[j];\n{text}}}\n"
            )
        };
        let (lanes, half) = ((group / BLOCK as usize).max(1), group / 2);
        let sum = format!(
            "{unroll}for (int j = 0; j < {BLOCK}; j++) sums[j][item] = own[j][c];\nBH_BARRIER;\n\
             for (int s = {half}; s >= {lanes}; s >>= 1) {{\nfor (int e = item; e < {BLOCK} * s; e += {group}) \
             sums[e / s][e % s] += sums[e / s][e % s + s];\nBH_BARRIER;\n}}\n\
             {}BH_BARRIER;\n",
            shared(
                group,
                BLOCK,
                &format!(
                    "{name} sum = 0;\nfor (int k = 0; k < {lanes}; k++) sum += sums[e][k];\nproducts[c][e] = sum;\n"
                )
            )
        );
        let body = format!(
            "BH_LOCAL {name} sums[{BLOCK}][{group}], products[{SHARED}][{BLOCK}], joined[{SHARED}][{BLOCK}];\n\
             const int item = BH_ITEM, width = {width};\nconst long n = {n}, height = n - {at}, first = {begin} + (long)BH_GROUP * {SHARED};\n\
             BH_GLOBAL const {name} *a = {work} + {at} * n + {at};\nBH_GLOBAL {name} *x = {target} + first * n + {at};\n\
             const int many = min((long){SHARED}, {end} - first);\n{name} own[{BLOCK}][{SHARED}];\n\
             {unroll}for (int j = 0; j < {BLOCK}; j++)\n{clear}\
             for (long r = item; r < height; r += {group}) {{\n{name} value[{SHARED}], below[{BLOCK}];\n{read}{bring}{add}}}\n{sums}\
             {turn}BH_BARRIER;\n\
             for (long r = item; r < height; r += {group}) {{\n{name} value[{SHARED}], below[{BLOCK}];\n{read}{bring}{take}{leave}}}\n",
            clear = columns("own[j][c] = 0;\n"),
            turn = shared(
                group,
                SHARED * BLOCK,
                &format!(
                    "const int c = e / {BLOCK}, i = e % {BLOCK};\n{name} sum = 0;\n\
                     for (int l = 0; l < {BLOCK}; l++) sum += {joined}[{from} + {triangle}] * products[c][l];\njoined[c][i] = sum;\n"
                )
            ),
            // All of a row, so that no read waits for another.
            read = format!("{unroll}for (int j = 0; j < {BLOCK}; j++) below[j] = a[min(j, width - 1) * n + r];\n"),
            bring = columns("value[c] = x[min(c, many - 1) * n + r];\n"),
            add = reflections(&columns("own[j][c] += v * value[c];\n")),
            sums = columns(&sum),
            take = reflections(&columns("value[c] -= v * joined[c][j];\n")),
            leave = columns("if (c < many) x[c * n + r] = value[c];\n"),
        );
        self.codes.push(writer.finish(self.call.target, groups, group, &body));
    }
}
