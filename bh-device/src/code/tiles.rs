//! The kernel of products of matrices: tiles of both factors go through local memory, and each item keeps a square of results in
//! registers. The terms of a result are added one after the other, whatever the tiles are.

use super::item::{DEPTH, Own};
use super::product::{Product, count};
use super::unroll::loop_directive;
use super::{Code, KernelMemory, Placement, Target, Variant, Writer, loaded, units};
use bh_bytecode::c::{expression, neutral, type_name};
use bh_bytecode::walk::Walk;
use bh_bytecode::{DType, Opcode};

/// Items of a group at most, as each needs many registers, and those that hide the latency of their work at least.
const MOST_ITEMS: usize = 256;
const FEW_ITEMS: usize = 64;
/// Rows and columns of a tile at least, and of one that is made smaller so that all of the device has work.
const LEAST: usize = 8;
const FILLING: usize = 32;
/// Elements that an item brings at a time at least, where tiles are small, and the bytes of local memory up to which there are more.
const BROUGHT: usize = 16;
const LOCAL: usize = 24 << 10;
/// Products of an item at most in one iteration of the loop over terms.
const PRODUCTS: usize = 128;
/// Items that run together: down and across a tile.
const WARP: (usize, usize) = (4, 8);
/// Indices of kernels with numbers of 32 bits are smaller.
const NARROW: u64 = 1 << 30;

/// The use of a product.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Into {
    /// A matrix is it; sums of pieces of the inner loop, if it has several, lie in this memory, those of a result one after the
    /// other.
    Own { pieces: KernelMemory },
    /// It is taken from a matrix.
    Less,
    /// Likewise; what is above the diagonal is not wanted.
    LessBelow,
}

/// The shape of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    /// Items down and across.
    down: usize,
    across: usize,
    /// Results of an item: a square of this many.
    side: usize,
    /// Terms that are in local memory at a time.
    pub(super) depth: usize,
}

/// Results of an item at most: a square of this many.
fn side(dtype: DType) -> usize {
    match dtype {
        DType::C128 => 2,
        DType::C64 | DType::I64 | DType::U64 => 4,
        _ => 8,
    }
}

impl Tile {
    /// The largest tile.
    fn largest(dtype: DType, target: &Target) -> Tile {
        let group = target.group.min(MOST_ITEMS);
        let across = 1usize << group.ilog2().div_ceil(2);
        Tile { down: group / across, across, side: side(dtype).min(target.square), depth: DEPTH }
    }

    /// One that suits a product: it is not much larger than the result, and there are tiles for all of the device.
    fn of(product: &Product, target: &Target) -> Tile {
        let whole = Tile::largest(product.dtype, target);
        let [m, n] = [&product.loops.rows, &product.loops.columns].map(|walk| count(walk) as usize);
        let (mut rows, mut columns) =
            (whole.rows().min(m.next_power_of_two().max(LEAST)), whole.columns().min(n.next_power_of_two().max(LEAST)));
        let units = (target.items() / 2048).max(1) as usize;
        let wanted = if units::fit(product.dtype, &whole, target) { units / 2 } else { 2 * units };
        let others = (count(&product.loops.stack) * product.pieces) as usize;
        while m.div_ceil(rows) * n.div_ceil(columns) * others < wanted && rows.max(columns) > FILLING {
            if rows >= columns { rows /= 2 } else { columns /= 2 }
        }
        if (rows, columns) == (whole.rows(), whole.columns()) {
            return whole;
        }
        let (most, mut side) = (whole.items(), whole.side.min(rows).min(columns));
        let items = |side: usize| rows / side * (columns / side);
        while side > 1 && items(side) < FEW_ITEMS && items(side / 2) <= most {
            side /= 2;
        }
        let mut depth = DEPTH;
        let bytes = |depth: usize| target.halves() * depth * (rows + columns + 2) * product.dtype.size();
        while (rows + columns) * depth < BROUGHT * items(side) && bytes(2 * depth) <= LOCAL {
            depth *= 2;
        }
        Tile { down: rows / side, across: columns / side, side, depth }
    }

    pub(super) fn rows(&self) -> usize {
        self.down * self.side
    }

    pub(super) fn columns(&self) -> usize {
        self.across * self.side
    }

    pub(super) fn items(&self) -> usize {
        self.down * self.across
    }
}

/// `sum + left * right`.
fn add_product(dtype: DType, sum: &str, left: &str, right: &str) -> String {
    if matches!(dtype, DType::F32 | DType::F64) {
        return format!("fma({left}, {right}, {sum})");
    }
    let product = expression(Opcode::MultiplyReduce, 0, dtype, dtype, &[left, right]);
    expression(Opcode::AddReduce, 0, dtype, dtype, &[sum, &product])
}

impl Product {
    /// Do indices need 64 bits?
    fn is_wide(&self) -> bool {
        let loops = [&self.loops.stack, &self.loops.rows, &self.loops.inner, &self.loops.columns];
        let reach = |operand: usize| {
            let steps = loops.iter().flat_map(|walk| walk.loops());
            let far = steps.map(|each| (each.steps[operand].unsigned_abs() as u64).saturating_mul(each.extent as u64));
            far.fold(self.places[operand].1.unsigned_abs(), u64::saturating_add)
        };
        let counts = loops.map(|walk| count(walk) as u64).into_iter();
        counts.chain((0..3).map(reach)).chain([self.elements() as u64]).any(|far| far >= NARROW)
    }

    /// Statements that take indices of loops apart, and the steps of an operand with the names of all their indices.
    fn terms(&self, writer: &mut Writer, operand: usize, sides: [(&Walk<3>, &str); 2]) -> (String, Vec<(i64, String)>) {
        let mut text = String::new();
        let stack = self.loops.stack.loops().iter().enumerate();
        let mut terms: Vec<(i64, String)> =
            stack.map(|(at, each)| (each.steps[operand] as i64, format!("s{at}"))).collect();
        for (walk, name) in sides {
            let names = match walk.loops() {
                [_] => vec![name.to_owned()],
                loops => {
                    let names: Vec<String> = (0..loops.len()).map(|at| format!("{name}_{at}")).collect();
                    let extents: Vec<i64> = loops.iter().map(|each| each.extent).collect();
                    let index = writer.index();
                    text += &writer.numbers.split(index, name, &extents, &names);
                    names
                }
            };
            terms.extend(walk.loops().iter().map(|each| each.steps[operand] as i64).zip(names));
        }
        (text, terms)
    }

    /// Statements before an element of an operand, and the element, at these indices of loops.
    fn element(
        &self,
        writer: &mut Writer,
        operand: usize,
        sides: [(&Walk<3>, &str); 2],
        writes: bool,
    ) -> (String, String) {
        let (place, start) = self.places[operand];
        let (text, terms) = self.terms(writer, operand, sides);
        let buffer = writer.buffer(place, self.dtype, writes);
        let element = format!("{buffer}[{}]", writer.numbers.address(start, &terms));
        (text, if writes { element } else { loaded(self.dtype, element) })
    }

    /// Do the terms of a factor lie closer together than its lines?
    fn is_by_terms(&self, factor: usize) -> bool {
        let lines = if factor == 1 { &self.loops.rows } else { &self.loops.columns };
        let step = |walk: &Walk<3>| walk.loops().last().map_or(0, |each| each.steps[factor].unsigned_abs());
        match factor {
            1 => step(&self.loops.inner) <= step(lines),
            _ => step(&self.loops.inner) < step(lines),
        }
    }
}

/// The kernel of a product.
pub(crate) fn tiles(product: &Product, into: Into, target: &Target, variant: Variant) -> Code {
    let wanted = if into == Into::LessBelow { " && terms > 0" } else { "" };
    let dtype = product.dtype;
    // Parts of one matrix, whose sizes vary, share one kernel.
    let tile = match into {
        Into::Own { .. } => Tile::of(product, target),
        Into::Less | Into::LessBelow => Tile::largest(dtype, target),
    };
    let (name, group, rows, columns, depth) = (type_name(dtype), tile.items(), tile.rows(), tile.columns(), tile.depth);
    // Sides of tiles are few iterations.
    let unroll = loop_directive(target, 1);
    // More copies make no faster code, and would take the compiler half of its time.
    let terms = match target.is_processor() {
        true => unroll.to_owned(),
        false => format!("#pragma unroll {}\n", (PRODUCTS / (tile.side * tile.side)).clamp(1, 4)),
    };
    let zero = neutral(Opcode::AddReduce, dtype);
    let units = units::fit(dtype, &tile, target);
    let mut writer = Writer::new(variant, product.is_wide());
    let index = writer.index();
    let loops = &product.loops;
    let [m, n, k] = [&loops.rows, &loops.columns, &loops.inner].map(|walk| writer.numbers.text(count(walk)));
    let (place, groups) = placed(&mut writer, product, [rows, columns], &k);
    // Tiles that nobody wants have no terms.
    let limit = match into {
        Into::LessBelow => format!("first_column < first_row + {rows} ? end_term : 0"),
        _ => "end_term".into(),
    };
    // A tile of a factor: how its elements are numbered, so that neighbours in memory are read together.
    let part = |by_terms: bool, lines: usize| match by_terms {
        true => (format!("e / {depth}"), format!("e % {depth}")),
        false => (format!("e % {lines}"), format!("e / {lines}")),
    };
    let (left_line, left_term) = part(product.is_by_terms(1), rows);
    let (right_line, right_term) = part(product.is_by_terms(2), columns);
    let per_item = |lines: usize| (lines * depth).div_ceil(group);
    let (of_left, of_right) = (per_item(rows), per_item(columns));
    let left_element = product.element(&mut writer, 1, [(&loops.rows, "line"), (&loops.inner, "term")], false);
    let right_element = product.element(&mut writer, 2, [(&loops.inner, "term"), (&loops.columns, "line")], false);
    let (out_split, out_element) = match into {
        Into::Own { pieces } if product.pieces > 1 => {
            let (buffer, pieces) = (writer.buffer(pieces, dtype, true), writer.numbers.text(product.pieces));
            (String::new(), format!("{buffer}[((matrix * {m} + row) * {n} + column) * {pieces} + piece]"))
        }
        _ => product.element(&mut writer, 0, [(&loops.rows, "row"), (&loops.columns, "column")], true),
    };
    // Two tiles take turns: one is filled while the other is read, with one barrier for each. Rows are one element longer
    // than they need to be, so that writes go to different banks.
    let pad = if units { units::PAD } else { usize::from(target.placements.has(Placement::Padding)) };
    let (pad_rows, pad_columns) = (rows + pad, columns + pad);
    let (half_a, half_b) = (depth * pad_rows, depth * pad_columns);
    let fetch = |count: usize, all: usize, at: [&str; 4], (split, element): &(String, String), to: &str| {
        let ([line, term, first, end], unroll) = (at, loop_directive(target, count));
        format!(
            "{unroll}for (int q = 0; q < {count}; q++) {{\nconst int e = item + q * {group};\n\
             const {index} line = {first} + {line}, term = t + {term};\n\
             {to}[q] = {zero};\nif (e < {all} && line < {end} && term < terms) {{\n{split}{to}[q] = {element};\n}}\n}}\n"
        )
    };
    let keep = |count: usize, all: usize, line: &str, term: &str, pad: usize, from: &str, to: &str| {
        let unroll = loop_directive(target, count);
        format!(
            "{unroll}for (int q = 0; q < {count}; q++) {{\nconst int e = item + q * {group};\n\
             if (e < {all}) {to}[tile * {} + ({term}) * {pad} + {line}] = {from}[q];\n}}\n",
            depth * pad
        )
    };
    let fetch_left = fetch(of_left, rows * depth, [&left_line, &left_term, "first_row", &m], &left_element, "next_a");
    let fetch_right =
        fetch(of_right, columns * depth, [&right_line, &right_term, "first_column", &n], &right_element, "next_b");
    let keep_left = keep(of_left, rows * depth, &left_line, &left_term, pad_rows, "next_a", "all_a");
    let keep_right = keep(of_right, columns * depth, &right_line, &right_term, pad_columns, "next_b", "all_b");
    let turn = if target.halves() == 2 { "tile ^= 1;\n" } else { "BH_BARRIER;\n" };
    let own = match units {
        true => units::own(&tile, [half_a, half_b], [pad_rows, pad_columns]),
        false => square(dtype, &tile, [half_a, half_b], [pad_rows, pad_columns], [unroll, &terms, index]),
    };
    let Own { place: own_place, sums, add, rows: each_row, row: each, count } = own;
    // The matrix that the product is taken from is read a row at a time, as no read may come before a write.
    let (before, from) = match into {
        Into::Own { .. } => (String::new(), ""),
        _ => (
            format!(
                "{name} old[{count}];\n{each}old[at] = row < {m} && column < {n}{wanted} ? {out_element} : 0;\n}}\n"
            ),
            "old[at] - ",
        ),
    };
    let body = format!(
        "BH_LOCAL {name} all_a[{}];\nBH_LOCAL {name} all_b[{}];\n\
         const int item = BH_ITEM, {own_place};\n{place}\
         const {index} terms = {limit};\n\
         {name} next_a[{of_left}], next_b[{of_right}];\n{sums}\
         {index} t = first_term;\nint tile = 0;\n\
         for (;;) {{\nif (t < terms) {{\n{fetch_left}{fetch_right}}}\n\
         if (t > first_term) {{\n{add}{turn}}}\n\
         if (t >= terms) break;\n{keep_left}{keep_right}BH_BARRIER;\nt += {depth};\n}}\n\
         {each_row}{before}{each}if (row < {m} && column < {n}{wanted}) {{\n{out_split}{out_element} = {from}value;\n}}\n}}\n}}\n",
        target.halves() * half_a,
        target.halves() * half_b,
    );
    writer.finish(target, groups, group, &body)
}

/// Statements that find what a group does: its tile, its matrix of the stack, its piece of the inner loop. And how many groups there
/// are.
fn placed(writer: &mut Writer, product: &Product, [rows, columns]: [usize; 2], k: &str) -> (String, usize) {
    let index = writer.index();
    let loops = &product.loops;
    let tiles = |walk: &Walk<3>, extent: usize| (count(walk) as u64).div_ceil(extent as u64) as i64;
    let (down, across) = (tiles(&loops.rows, rows), tiles(&loops.columns, columns));
    let across_text = writer.numbers.text(across);
    let mut text = format!("const {index} first_column = (BH_GROUP % {across_text}) * {columns};\n");
    let others = count(&loops.stack) * product.pieces;
    if loops.stack.loops().is_empty() && product.pieces == 1 {
        text += &format!(
            "const {index} first_row = (BH_GROUP / {across_text}) * {rows}, first_term = 0, end_term = {k};\n"
        );
        return (text, (down * across) as usize);
    }
    let down_text = writer.numbers.text(down);
    text += &format!(
        "const {index} first_row = (BH_GROUP / {across_text}) % {down_text} * {rows}, other = BH_GROUP / {across_text} / {down_text};\n"
    );
    if product.pieces > 1 {
        let pieces = writer.numbers.text(product.pieces);
        let each = writer.numbers.text((count(&loops.inner) as u64).div_ceil(product.pieces as u64) as i64);
        text += &format!(
            "const {index} piece = other % {pieces}, matrix = other / {pieces}, first_term = piece * {each};\n\
             const {index} end_term = min(({index})(first_term + {each}), ({index}){k});\n"
        );
    } else {
        text += &format!("const {index} matrix = other, first_term = 0, end_term = {k};\n");
    }
    let names: Vec<String> = (0..loops.stack.loops().len()).map(|at| format!("s{at}")).collect();
    let extents: Vec<i64> = loops.stack.loops().iter().map(|each| each.extent).collect();
    text += &writer.numbers.split(index, "matrix", &extents, &names);
    (text, (down * across * others) as usize)
}

/// The share of an item that keeps a square of results.
fn square(
    dtype: DType,
    tile: &Tile,
    [half_a, half_b]: [usize; 2],
    [pad_rows, pad_columns]: [usize; 2],
    [unroll, terms, index]: [&str; 3],
) -> Own {
    let (Tile { down, across, side, depth }, name) = (*tile, type_name(dtype));
    let zero = neutral(Opcode::AddReduce, dtype);
    let add = add_product(dtype, "sum[i][j]", "a[i]", "b[j]");
    // Items that run together cover a part of the tile that is nearly square, so that they read few elements.
    let place = match across.is_multiple_of(WARP.1) && down.is_multiple_of(WARP.0) {
        true => format!(
            "lane = item % {0}, warp = item / {0}, x = warp % {1} * {2} + lane % {2}, y = warp / {1} * {3} + lane / {2}",
            WARP.0 * WARP.1,
            across / WARP.1,
            WARP.1,
            WARP.0
        ),
        false => format!("x = item % {across}, y = item / {across}"),
    };
    Own {
        place,
        sums: format!(
            "{name} sum[{side}][{side}];\n{unroll}for (int i = 0; i < {side}; i++)\n{unroll}for (int j = 0; j < {side}; j++) \
             sum[i][j] = {zero};\n"
        ),
        add: format!(
            "{terms}for (int d = 0; d < {depth}; d++) {{\n{name} a[{side}], b[{side}];\n\
             {unroll}for (int i = 0; i < {side}; i++) a[i] = all_a[tile * {half_a} + d * {pad_rows} + y + i * {down}];\n\
             {unroll}for (int j = 0; j < {side}; j++) b[j] = all_b[tile * {half_b} + d * {pad_columns} + x + j * {across}];\n\
             {unroll}for (int i = 0; i < {side}; i++)\n{unroll}for (int j = 0; j < {side}; j++) \
             sum[i][j] = {add};\n}}\n"
        ),
        count: side,
        rows: format!("{unroll}for (int i = 0; i < {side}; i++) {{\n"),
        row: format!(
            "{unroll}for (int j = 0; j < {side}; j++) {{\nconst int at = j;\nconst {name} value = sum[i][j];\n\
             const {index} row = first_row + y + i * {down}, column = first_column + x + j * {across};\n"
        ),
    }
}
