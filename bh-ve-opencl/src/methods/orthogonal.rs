//! Factors of real matrices into orthonormal columns and a triangle: Householder's reflections, a block of columns at a time.
//! A group makes the reflections of a block, and what they do together is done to each other column by one group. The matrix
//! lies in columns in memory between kernels; below its diagonal it holds the reflections.

use super::lines::Lines;
use super::{Call, Kernels};
use crate::code::{Code, Place, Variant, Writer};
use bh_bytecode::DType;
use bh_bytecode::c::type_name;

/// Columns of a block.
const BLOCK: i64 = 16;
/// Items that work on one column at most.
const ITEMS: usize = 128;

/// The matrix, the triangles that join the reflections of each block, and the orthonormal columns.
const WORK: Place = Place::Scratch(0);
const JOINED: Place = Place::Scratch(1);
const ORTHONORMAL: Place = Place::Scratch(2);

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
    let blocks: Vec<i64> = (0..rows.min(columns)).step_by(BLOCK as usize).collect();
    for &first in &blocks {
        let width = all.width(first);
        all.reflect(first, width);
        all.apply(WORK, first, width, (first + width, columns), true);
    }
    all.unit(wide);
    for &first in blocks.iter().rev() {
        // Columns before it are those of the unit matrix still, on whose rows nothing is done.
        all.apply(ORTHONORMAL, first, all.width(first), (first, wide), false);
    }
    all.copy(&q, ORTHONORMAL, wide, true, |element, own| format!("{element} = {own};\n"));
    all.copy(&r, WORK, columns, true, |element, work| format!("{element} = row > column ? 0 : {work};\n"));
    let bytes = |elements: i64| elements as usize * dtype.size();
    let joined = blocks.len() as i64 * BLOCK * BLOCK;
    Some((all.codes, vec![bytes(rows * columns), bytes(joined), bytes(rows * wide)]))
}

impl Factors<'_, '_, '_> {
    fn width(&self, first: i64) -> i64 {
        BLOCK.min(self.rows.min(self.columns) - first)
    }

    fn writer(&self) -> Writer {
        Writer::new(Variant::Parameterised, true)
    }

    /// A kernel that joins elements of a view, of this many columns, with those of memory between kernels at the same place.
    fn copy(&mut self, lines: &Lines, place: Place, columns: i64, writes: bool, text: impl Fn(&str, &str) -> String) {
        let (total, rows, group) = (lines.count() * columns, self.rows, self.call.target.group);
        let mut writer = self.writer();
        let own = writer.buffer(place, self.dtype, !writes);
        let begin = lines.begin(&mut writer, "row", "line");
        let element = lines.element(&mut writer, "line", "column", writes);
        let [end, columns, rows] = [total, columns, rows].map(|number| writer.numbers.text(number));
        let body = text(&element, &format!("{own}[column * {rows} + row]"));
        let body = format!(
            "const long u = get_global_id(0);\nif (u < {end}) {{\nconst long row = u / {columns}, column = u % {columns};\n{begin}{body}}}\n"
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
        let body = format!("const long u = get_global_id(0);\nif (u < {end}) {own}[u] = u / {rows} == u % {rows};\n");
        let groups = total.unsigned_abs().div_ceil(group as u64) as usize;
        self.codes.push(writer.finish(self.call.target, groups, group, &body));
    }

    /// One group makes the reflections of a block of columns, and the triangle that joins them. For each column some items
    /// share all others: they sum its products with the reflection.
    fn reflect(&mut self, first: i64, width: i64) {
        let (mut writer, name) = (self.writer(), type_name(self.dtype));
        let group = self.call.target.largest;
        let (work, joined) = (writer.buffer(WORK, self.dtype, true), writer.buffer(JOINED, self.dtype, true));
        let share = (group / BLOCK as usize).max(1);
        let together = |join: &str| {
            format!(
                "sums[item] = sum;\nbarrier(CLK_LOCAL_MEM_FENCE);\nfor (int s = {group} / 2; s > 0; s >>= 1) {{\n\
                 if (item < s) sums[item] = {join};\nbarrier(CLK_LOCAL_MEM_FENCE);\n}}\n"
            )
        };
        let (most, all) = (together("fmax(sums[item], sums[item + s])"), together("sums[item] + sums[item + s]"));
        let [rows, at, width, place] =
            [self.rows, first, width, first * BLOCK].map(|number| writer.numbers.text(number));
        let body = format!(
            "__local {name} sums[{group}], top[{BLOCK}], joined[{BLOCK}][{BLOCK}];\nconst int item = get_local_id(0), own = item / {share}, lane = item % {share};\n\
             const long height = {rows} - {at};\n__global {name} *a = {work} + {at} * {rows} + {at};\n\
             for (int j = 0; j < {width}; j++) {{\n__global {name} *v = a + j * {rows};\n\
             {name} sum = 0;\nfor (long r = j + item; r < height; r += {group}) sum = fmax(sum, fabs(v[r]));\n{most}\
             // Squares of large numbers would be no numbers any more.\n\
             const {name} size = sums[0], unit = size > 0 && size < INFINITY ? size : 1;\nbarrier(CLK_LOCAL_MEM_FENCE);\nsum = 0;\n\
             for (long r = j + 1 + item; r < height; r += {group}) {{\nconst {name} part = v[r] / unit;\nsum += part * part;\n}}\n{all}\
             const {name} below = sums[0], alpha = v[j], part = alpha / unit;\nbarrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n\
             const {name} beta = below == 0 ? alpha : -copysign(unit * sqrt(part * part + below), alpha);\n\
             const {name} tau = below == 0 ? 0 : (beta - alpha) / beta;\n\
             if (below != 0) for (long r = j + 1 + item; r < height; r += {group}) v[r] /= alpha - beta;\nif (item == 0) v[j] = beta;\n\
             barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n\
             for (int c0 = 0; c0 < {width}; c0 += {group} / {share}) {{\nconst int c = c0 + own;\n__global {name} *other = a + c * {rows};\n\
             sum = 0;\nif (c < {width} && c != j) {{\nfor (long r = j + 1 + lane; r < height; r += {share}) sum += v[r] * other[r];\n\
             if (lane == 0) sum += other[j];\n}}\nsums[item] = sum;\nbarrier(CLK_LOCAL_MEM_FENCE);\n\
             for (int s = {share} / 2; s > 0; s >>= 1) {{\nif (lane < s) sums[item] += sums[item + s];\nbarrier(CLK_LOCAL_MEM_FENCE);\n}}\n\
             sum = sums[own * {share}];\nif (c < j && lane == 0) top[c] = sum;\nbarrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n\
             if (c > j && c < {width}) {{\nfor (long r = j + 1 + lane; r < height; r += {share}) other[r] -= tau * sum * v[r];\n\
             if (lane == 0) other[j] -= tau * sum;\n}}\n}}\nbarrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n\
             for (int i = item; i < {BLOCK}; i += {group}) {{\nsum = 0;\nfor (int l = i; l < j; l++) sum += joined[i][l] * top[l];\n\
             joined[i][j] = i < j ? -tau * sum : i == j ? tau : 0;\n}}\nbarrier(CLK_LOCAL_MEM_FENCE);\n}}\n\
             for (int e = item; e < {BLOCK} * {BLOCK}; e += {group}) \
             {joined}[{place} + e] = e % {BLOCK} < {width} && e / {BLOCK} < {width} ? joined[e / {BLOCK}][e % {BLOCK}] : 0;\n"
        );
        self.codes.push(writer.finish(self.call.target, 1, group, &body));
    }

    /// Does the reflections of a block to columns of a matrix, each by one group: in their order (`forward`), or in the other.
    fn apply(&mut self, place: Place, first: i64, width: i64, (begin, end): (i64, i64), forward: bool) {
        if begin >= end {
            return;
        }
        let groups = (end - begin) as usize;
        let (mut writer, name) = (self.writer(), type_name(self.dtype));
        let group = self.call.target.group.min(ITEMS);
        let (target, joined) = (writer.buffer(place, self.dtype, true), writer.buffer(JOINED, self.dtype, false));
        let work = if place == WORK { target.clone() } else { writer.buffer(WORK, self.dtype, false) };
        let [rows, at, width, begin, from] =
            [self.rows, first, width, begin, first * BLOCK].map(|number| writer.numbers.text(number));
        let triangle = if forward { format!("l * {BLOCK} + item") } else { format!("item * {BLOCK} + l") };
        let element = format!("const {name} v = r < j || j >= {width} ? 0 : r == j ? 1 : a[j * {rows} + r];\n");
        let body = format!(
            "__local {name} sums[{BLOCK}][{group}], joined[{BLOCK}];\nconst int item = get_local_id(0);\nconst long height = {rows} - {at};\n\
             __global const {name} *a = {work} + {at} * {rows} + {at};\n\
             __global {name} *x = {target} + ({begin} + (long)get_group_id(0)) * {rows} + {at};\n{name} own[{BLOCK}];\n\
             #pragma unroll\nfor (int j = 0; j < {BLOCK}; j++) own[j] = 0;\n\
             for (long r = item; r < height; r += {group}) {{\nconst {name} value = x[r];\n\
             #pragma unroll\nfor (int j = 0; j < {BLOCK}; j++) {{\n{element}own[j] += v * value;\n}}\n}}\n\
             #pragma unroll\nfor (int j = 0; j < {BLOCK}; j++) sums[j][item] = own[j];\nbarrier(CLK_LOCAL_MEM_FENCE);\n\
             for (int s = {group} / 2; s > 0; s >>= 1) {{\nif (item < s) {{\n#pragma unroll\nfor (int j = 0; j < {BLOCK}; j++) sums[j][item] += sums[j][item + s];\n}}\n\
             barrier(CLK_LOCAL_MEM_FENCE);\n}}\n\
             for (int i = item; i < {BLOCK}; i += {group}) {{\n{name} sum = 0;\nfor (int l = 0; l < {BLOCK}; l++) sum += {joined}[{from} + {triangle}] * sums[l][0];\n\
             joined[i] = sum;\n}}\nbarrier(CLK_LOCAL_MEM_FENCE);\n\
             for (long r = item; r < height; r += {group}) {{\n{name} value = x[r];\n\
             #pragma unroll\nfor (int j = 0; j < {BLOCK}; j++) {{\n{element}value -= v * joined[j];\n}}\nx[r] = value;\n}}\n",
            triangle = triangle.replace("item", "i")
        );
        self.codes.push(writer.finish(self.call.target, groups, group, &body));
    }
}
