//! Products of matrices of f64 by the matrix units of NVIDIA's ninth generation: 32 items together multiply 16 × 4 and 4 × 8
//! elements, of which each holds some in registers.

use super::item::Own;
use super::tiles::Tile;
use super::{Placement, Target};
use bh_bytecode::DType;

/// Elements by which lines of tiles are longer, so that what items read together is in different banks.
pub(super) const PAD: usize = 4;
/// Rows and columns that 32 items compute, 64 results each.
const ROWS: usize = 64;
const COLUMNS: usize = 32;

/// Do these tiles suit the units?
pub(super) fn fit(dtype: DType, tile: &Tile, target: &Target) -> bool {
    let parts = tile.rows() / ROWS * (tile.columns() / COLUMNS);
    let whole = tile.rows().is_multiple_of(ROWS) && tile.columns().is_multiple_of(COLUMNS);
    let fits = whole && tile.items() == 32 * parts && target.halves() == 2;
    fits && dtype == DType::F64 && target.placements.has(Placement::Units)
}

/// An item's share: tiles are stored term by term, `half_a` and `half_b` elements each, lines of `rows` and `columns`.
pub(super) fn own(tile: &Tile, [half_a, half_b]: [usize; 2], [rows, columns]: [usize; 2]) -> Own {
    let (down, across, wide, depth) = (ROWS / 16, COLUMNS / 8, tile.columns() / COLUMNS, tile.depth);
    let unroll = "#pragma unroll\n";
    Own {
        place: format!(
            "lane = item % 32, x = item / 32 % {wide} * {COLUMNS}, y = item / 32 / {wide} * {ROWS}, term_of = lane % 4, line_of = lane / 4"
        ),
        sums: format!(
            "bh_f64 sum[{down}][{across}][4];\n{unroll}for (int i = 0; i < {down}; i++)\n{unroll}for (int j = 0; j < {across}; j++)\n\
             {unroll}for (int q = 0; q < 4; q++) sum[i][j][q] = 0;\n"
        ),
        add: format!(
            "{unroll}for (int d = 0; d < {depth}; d += 4) {{\nbh_f64 a[{down}][2], b[{across}];\n\
             {unroll}for (int i = 0; i < {down}; i++)\n{unroll}for (int h = 0; h < 2; h++) \
             a[i][h] = all_a[tile * {half_a} + (d + term_of) * {rows} + y + i * 16 + h * 8 + line_of];\n\
             {unroll}for (int j = 0; j < {across}; j++) b[j] = all_b[tile * {half_b} + (d + term_of) * {columns} + x + j * 8 + line_of];\n\
             {unroll}for (int i = 0; i < {down}; i++)\n{unroll}for (int j = 0; j < {across}; j++)\n\
             asm volatile(\"mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {{%0,%1,%2,%3}},{{%4,%5}},{{%6}},{{%0,%1,%2,%3}};\" : \
             \"+d\"(sum[i][j][0]), \"+d\"(sum[i][j][1]), \"+d\"(sum[i][j][2]), \"+d\"(sum[i][j][3]) : \
             \"d\"(a[i][0]), \"d\"(a[i][1]), \"d\"(b[j]));\n}}\n"
        ),
        count: 4 * across,
        rows: format!("{unroll}for (int i = 0; i < {down}; i++) {{\n"),
        row: format!(
            "{unroll}for (int j = 0; j < {across}; j++)\n{unroll}for (int q = 0; q < 4; q++) {{\nconst int at = 4 * j + q;\n\
             const bh_f64 value = sum[i][j][q];\n\
             const long row = first_row + y + i * 16 + q / 2 * 8 + line_of, column = first_column + x + j * 8 + term_of * 2 + q % 2;\n"
        ),
    }
}
