//! Products of matrices and vectors: tiles of both factors go through local memory, each item keeps a square of results in
//! registers. A product with a vector is a reduction like any other.

use super::item::{DEPTH, Own};
use super::view::is_wide;
use super::{Code, KernelMemory, Placement, Target, Variant, Writer, loaded, stage, units};
use bh_bytecode::c::{expression, type_name};
use bh_bytecode::contraction::Loops;
use bh_bytecode::walk::Loop;
use bh_bytecode::{BatchRef, DType, Instr, Opcode, Operand};
use bh_kernel::{Arg, BufferRef, Dim, Kernel, Lowered, Parameters, Slot, SlotMode, Special, Stage, Step, StrideClass};

/// Items of a group at most: each needs many registers.
const MOST_ITEMS: usize = 256;

/// A factor or the product as a matrix.
#[derive(Clone, Copy)]
pub(crate) struct Matrix {
    pub(crate) dtype: DType,
    pub(crate) place: KernelMemory,
    pub(crate) start: i64,
    pub(crate) rows: i64,
    pub(crate) columns: i64,
    pub(crate) row_stride: i64,
    pub(crate) column_stride: i64,
}

impl Matrix {
    /// A view as a matrix; a vector is a row or a column. None of a constant or of other ranks.
    fn new(batch: &BatchRef<'_>, operand: Operand, vector_is_row: bool) -> Option<Matrix> {
        let view = operand.as_view()?;
        let record = &batch.views[view as usize];
        let (rows, columns, row_stride, column_stride) = match (batch.shape(view), batch.stride(view)) {
            (&[rows, columns], &[row, column]) => (rows, columns, row, column),
            (&[len], &[stride]) if vector_is_row => (1, len, 0, stride),
            (&[len], &[stride]) => (len, 1, stride, 0),
            _ => return None,
        };
        let (place, start) = (KernelMemory::Of(BufferRef::Base(record.base)), record.start);
        Some(Matrix { dtype: batch.dtype(operand)?, place, start, rows, columns, row_stride, column_stride })
    }

    /// The element at these indices.
    fn element(&self, writer: &mut Writer, row: &str, column: &str, writes: bool) -> String {
        let buffer = writer.buffer(self.place, self.dtype, writes);
        let stride = |stride, extent| if extent == 1 { 0 } else { stride };
        let terms = [(stride(self.row_stride, self.rows), row), (stride(self.column_stride, self.columns), column)];
        let terms: Vec<(i64, String)> = terms.map(|(stride, name)| (stride, name.to_owned())).into();
        let element = format!("{buffer}[{}]", writer.numbers.address(self.start, &terms));
        if writes { element } else { loaded(self.dtype, element) }
    }

    /// The buffer of a view.
    fn buffer(&self) -> BufferRef {
        match self.place {
            KernelMemory::Of(buffer) => buffer,
            KernelMemory::Scratch(_) | KernelMemory::Failures => BufferRef::None,
        }
    }

    /// Do neighbours of a row lie closer together than those of a column?
    fn is_by_rows(&self) -> bool {
        self.column_stride.abs() <= self.row_stride.abs()
    }
}

/// The factors and the product of an instruction. None if it is not for the device: constants, other ranks, a stack, a product
/// that lies in the memory of a factor.
fn matrices(batch: &BatchRef<'_>, instr: u32) -> Option<[Matrix; 3]> {
    let record = &batch.instrs[instr as usize];
    let &[out, left, right] = record.operands() else { return None };
    if record.opcode == Opcode::Contract {
        return contraction(batch, record);
    }
    let vector = left.as_view().is_some_and(|view| batch.shape(view).len() == 1);
    let (left, right) = (Matrix::new(batch, left, true)?, Matrix::new(batch, right, false)?);
    let out = Matrix::new(batch, out, vector)?;
    let fits = left.rows == out.rows && right.columns == out.columns && left.columns == right.rows;
    let alike = left.dtype == out.dtype && right.dtype == out.dtype;
    (fits && alike && out.place != left.place && out.place != right.place).then_some([left, right, out])
}

/// The factors and the product of a contraction, if it is one of two matrices.
fn contraction(batch: &BatchRef<'_>, instr: &Instr) -> Option<[Matrix; 3]> {
    let [rows, inner, columns] = Loops::of(batch, instr).matrices()?;
    let matrix = |operand: usize, [down, across]: [Loop<3>; 2]| {
        let (view, dtype) = (instr.operands[operand].as_view()?, batch.dtype(instr.operands[operand])?);
        let record = &batch.views[view as usize];
        let (place, start) = (KernelMemory::Of(BufferRef::Base(record.base)), record.start);
        let [row_stride, column_stride] = [down, across].map(|side| side.steps[operand] as i64);
        Some(Matrix { dtype, place, start, rows: down.extent, columns: across.extent, row_stride, column_stride })
    };
    let [out, left, right] = [matrix(0, [rows, columns])?, matrix(1, [rows, inner])?, matrix(2, [inner, columns])?];
    (out.place != left.place && out.place != right.place).then_some([left, right, out])
}

/// The work of a block, with products that the device has no kernel of their own for as loops.
pub(crate) fn lowered(batch: &BatchRef<'_>, block: u32) -> Lowered {
    match bh_kernel::lower(batch, block) {
        Lowered::Special(Special::Product(instr)) if !is_product(batch, instr) => {
            bh_kernel::lower_product(batch, block, instr)
        }
        lowered => lowered,
    }
}

/// Can the device do a product (index of the instruction in the batch)?
pub(crate) fn is_product(batch: &BatchRef<'_>, instr: u32) -> bool {
    matrices(batch, instr).is_some()
}

/// The kernels of a product that [`is_product`]; `scratch` gets the bytes of memory between them.
pub(crate) fn product(
    batch: &BatchRef<'_>,
    instr: u32,
    target: &Target,
    variant: Variant,
    scratch: &mut Vec<usize>,
) -> Vec<Code> {
    let Some([left, right, out]) = matrices(batch, instr) else { return Vec::new() };
    if out.rows == 0 || out.columns == 0 {
        return Vec::new();
    }
    let wide = is_wide(batch, batch.instrs[instr as usize].operands());
    let few = left.columns == 0 || out.rows == 1 || out.columns == 1;
    match few {
        true => stage::stage(&fold(&left, &right, &out), target, variant, scratch),
        false => vec![tiles([&left, &right, &out], Into::Own, target, variant, wide)],
    }
}

/// The product as a reduction: rows, columns, terms, with the terms inside if neighbours of the left factor are terms.
fn fold(left: &Matrix, right: &Matrix, out: &Matrix) -> Stage {
    let dtype = out.dtype;
    // Of the two factors the matrix decides.
    let inner = if out.rows == 1 { !right.is_by_rows() } else { left.is_by_rows() };
    let dims = [
        (Dim::Kept, out.rows, [left.row_stride, 0, out.row_stride]),
        (Dim::Kept, out.columns, [0, right.column_stride, out.column_stride]),
        (Dim::Reduced, left.columns, [left.column_stride, right.row_stride, 0]),
    ];
    let order = if inner { [0, 1, 2] } else { [2, 0, 1] };
    let slot = |mode, same_as| Slot { dtype, mode, inner: StrideClass::Other, same_as };
    let kernel = Kernel {
        dims: order.map(|at| dims[at].0).to_vec(),
        slots: vec![slot(SlotMode::Read, 0), slot(SlotMode::Read, 1), slot(SlotMode::Result, 2)],
        constants: Vec::new(),
        steps: vec![
            Step::Load { slot: 0 },
            Step::Load { slot: 1 },
            Step::Compute {
                opcode: Opcode::MultiplyReduce,
                param: 0,
                input: dtype,
                output: dtype,
                args: [Arg::Value(0), Arg::Value(1), Arg::Value(0)],
                count: 2,
            },
            Step::Reduce { opcode: Opcode::AddReduce, slot: 2, arg: Arg::Value(2) },
        ],
    };
    let parameters = Parameters {
        extents: order.map(|at| dims[at].1).to_vec(),
        buffers: [left, right, out].map(Matrix::buffer).to_vec(),
        starts: [left, right, out].map(|matrix| matrix.start).to_vec(),
        strides: (0..3).flat_map(|matrix| order.map(|at| dims[at].2[matrix])).collect(),
        instrs: vec![0; 4],
        ..Parameters::default()
    };
    Stage { kernel, parameters }
}

/// Items that run together: down and across a tile.
const WARP: (usize, usize) = (4, 8);

/// Results of an item: a square of this many.
fn side(dtype: DType) -> usize {
    match dtype {
        DType::C128 => 2,
        DType::C64 | DType::I64 | DType::U64 => 4,
        _ => 8,
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

/// What becomes of a product.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Into {
    /// A matrix is it.
    Own,
    /// It is taken from a matrix.
    Less,
    /// Likewise; what is above the diagonal is not wanted.
    LessBelow,
}

/// The product of two matrices in a third one, or what that has less the product, tile by tile.
pub(crate) fn tiles(
    [left, right, out]: [&Matrix; 3],
    into: Into,
    target: &Target,
    variant: Variant,
    wide: bool,
) -> Code {
    let wanted = if into == Into::LessBelow { " && terms > 0" } else { "" };
    let dtype = out.dtype;
    let (name, side) = (type_name(dtype), side(dtype).min(target.square));
    // Where registers are few, unrolled loops are of no use.
    let unroll = if target.is_processor() { "#pragma unroll 1\n" } else { "#pragma unroll\n" };
    let group = target.group.min(MOST_ITEMS);
    // Items across and down a tile.
    let across = 1usize << group.ilog2().div_ceil(2);
    let down = group / across;
    let (rows, columns) = (down * side, across * side);
    let zero = bh_bytecode::c::neutral(Opcode::AddReduce, dtype);
    let units = units::fit(dtype, group, side, target);
    let mut writer = Writer::new(variant, wide);
    let index = writer.index();
    let [m, n, k] = [out.rows, out.columns, left.columns].map(|extent| writer.numbers.text(extent));
    // Tiles that nobody wants have no terms.
    let (terms, k) = match into {
        Into::LessBelow => {
            (format!("const {index} terms = first_column < first_row + {rows} ? {k} : 0;\n"), "terms".into())
        }
        _ => (String::new(), k),
    };
    let tiles_across = writer.numbers.text((out.columns as u64).div_ceil(columns as u64) as i64);
    // A tile of a factor: how its elements are numbered, so that neighbours in memory are read together.
    let part = |by_terms: bool, lines: usize| match by_terms {
        true => (format!("e / {DEPTH}"), format!("e % {DEPTH}")),
        false => (format!("e % {lines}"), format!("e / {lines}")),
    };
    let (left_line, left_term) = part(left.is_by_rows(), rows);
    let (right_line, right_term) = part(!right.is_by_rows(), columns);
    let per_item = |lines: usize| (lines * DEPTH).div_ceil(group);
    let (of_left, of_right) = (per_item(rows), per_item(columns));
    let left_element = left.element(&mut writer, "line", "term", false);
    let right_element = right.element(&mut writer, "term", "line", false);
    let out_element = out.element(&mut writer, "row", "column", true);
    // Two tiles take turns: one is filled while the other is read, with one barrier for each. Rows are one element longer
    // than they need to be, so that writes go to different banks.
    let pad = if units { units::PAD } else { usize::from(target.placements.has(Placement::Padding)) };
    let (pad_rows, pad_columns) = (rows + pad, columns + pad);
    let (half_a, half_b) = (DEPTH * pad_rows, DEPTH * pad_columns);
    let fetch = |count: usize, all: usize, line: &str, term: &str, first: &str, end: &str, element: &str, to: &str| {
        format!(
            "{unroll}for (int q = 0; q < {count}; q++) {{\nconst int e = item + q * {group};\n\
             const {index} line = {first} + {line}, term = t + {term};\n\
             {to}[q] = {zero};\nif (e < {all} && line < {end} && term < {k}) {to}[q] = {element};\n}}\n"
        )
    };
    let keep = |count: usize, all: usize, line: &str, term: &str, pad: usize, from: &str, to: &str| {
        format!(
            "{unroll}for (int q = 0; q < {count}; q++) {{\nconst int e = item + q * {group};\n\
             if (e < {all}) {to}[tile * {} + ({term}) * {pad} + {line}] = {from}[q];\n}}\n",
            DEPTH * pad
        )
    };
    let fetch_left = fetch(of_left, rows * DEPTH, &left_line, &left_term, "first_row", &m, &left_element, "next_a");
    let fetch_right =
        fetch(of_right, columns * DEPTH, &right_line, &right_term, "first_column", &n, &right_element, "next_b");
    let keep_left = keep(of_left, rows * DEPTH, &left_line, &left_term, pad_rows, "next_a", "all_a");
    let keep_right = keep(of_right, columns * DEPTH, &right_line, &right_term, pad_columns, "next_b", "all_b");
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
    let turn = if target.halves == 2 { "tile ^= 1;\n" } else { "BH_BARRIER;\n" };
    let add = add_product(dtype, "sum[i][j]", "a[i]", "b[j]");
    let own = match units {
        true => units::own(half_a, half_b, pad_rows, pad_columns),
        false => Own {
            place,
            sums: format!(
                "{name} sum[{side}][{side}];\n{unroll}for (int i = 0; i < {side}; i++)\n{unroll}for (int j = 0; j < {side}; j++) \
                 sum[i][j] = {zero};\n"
            ),
            add: format!(
                "{unroll}for (int d = 0; d < {DEPTH}; d++) {{\n{name} a[{side}], b[{side}];\n\
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
        },
    };
    let Own { place, sums, add, rows: each_row, row: each, count } = own;
    // What it is taken from is read a row at a time, as no read may come before a write.
    let (before, from) = match into {
        Into::Own => (String::new(), ""),
        _ => (
            format!(
                "{name} old[{count}];\n{each}old[at] = row < {m} && column < {n}{wanted} ? {out_element} : 0;\n}}\n"
            ),
            "old[at] - ",
        ),
    };
    let body = format!(
        "BH_LOCAL {name} all_a[{}];\nBH_LOCAL {name} all_b[{}];\n\
         const int item = BH_ITEM, {place};\n\
         const {index} first_row = (BH_GROUP / {tiles_across}) * {rows};\n\
         const {index} first_column = (BH_GROUP % {tiles_across}) * {columns};\n{terms}\
         {name} next_a[{of_left}], next_b[{of_right}];\n{sums}\
         {index} t = 0;\nint tile = 0;\n{fetch_left}{fetch_right}\
         for (; t < {k};) {{\n{keep_left}{keep_right}BH_BARRIER;\nt += {DEPTH};\n\
         if (t < {k}) {{\n{fetch_left}{fetch_right}}}\n{add}{turn}}}\n\
         {each_row}{before}{each}if (row < {m} && column < {n}{wanted}) {out_element} = {from}value;\n}}\n}}\n",
        target.halves * half_a,
        target.halves * half_b,
    );
    let down = (out.rows as u64).div_ceil(rows as u64);
    let groups = (out.columns as u64).div_ceil(columns as u64) * down;
    writer.finish(target, groups as usize, group, &body)
}
