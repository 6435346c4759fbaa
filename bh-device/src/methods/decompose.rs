//! Eigenvalues of Hermitian matrices and singular values, which a library of the device's maker computes. Kernels bring the matrix to
//! memory between kernels, in columns, take the results from there, and note failures.

use super::library::{is_finite, zero};
use super::lines::Lines;
use super::{Call, Kernels};
use crate::code::{Code, KernelMemory, Variant, Why, Writer, note};
use crate::driver::{Factors, Task};
use bh_bytecode::DType;
use bh_bytecode::c::type_name;

/// The matrix, the library's number, its work space, the values, and both matrices of singular vectors.
const WORK: KernelMemory = KernelMemory::Scratch(0);
const STATUS: KernelMemory = KernelMemory::Scratch(1);
const ROOM: KernelMemory = KernelMemory::Scratch(2);
const VALUES: KernelMemory = KernelMemory::Scratch(3);
const LEFT: KernelMemory = KernelMemory::Scratch(4);
const RIGHT: KernelMemory = KernelMemory::Scratch(5);

/// Kernels around the task.
struct Around<'a, 'b, 'c> {
    call: &'a Call<'b, 'c>,
    dtype: DType,
    codes: Vec<Code>,
}

/// A matrix in columns between kernels: its memory, how far a column is from the next, and whether it is the transpose.
#[derive(Clone, Copy)]
struct Place {
    memory: KernelMemory,
    rows: i64,
    turned: bool,
}

/// Eigenvalues, and eigenvectors if they are asked for.
pub(super) fn eigh(call: &Call<'_, '_>) -> Option<Kernels> {
    let (task, room) = call.task()?;
    let record = &call.batch.instrs[call.instr as usize];
    let (operands, outputs) = (record.operands(), usize::from(record.outputs));
    let matrix = Lines::new(call.batch, operands[outputs])?;
    let (n, dtype) = (matrix.len, matrix.dtype);
    let mut all = Around { call, dtype, codes: Vec::new() };
    let work = Place { memory: WORK, rows: n, turned: false };
    all.bring(&matrix, [n, n], work);
    all.codes.push(Code::of_library(task, vec![WORK, STATUS, ROOM, VALUES]));
    all.leave_values(&Lines::new(call.batch, operands[0])?);
    if outputs > 1 {
        all.leave(&Lines::new(call.batch, operands[1])?, [n, n], work);
    }
    all.refuse(&matrix, [n, n], "row >= column && ");
    let bytes = |elements: i64, dtype: DType| elements as usize * dtype.size();
    Some((all.codes, vec![bytes(n * n, dtype), size_of::<i32>(), room, bytes(n, dtype.real_part())]))
}

/// Singular values, and singular vectors if they are asked for. Of a wide matrix, the transpose is decomposed.
pub(super) fn svd(call: &Call<'_, '_>) -> Option<Kernels> {
    let (task, room) = call.task()?;
    let Task::Factors { rows: long, columns: short, of: Factors::Singular { left }, .. } = task else { return None };
    let record = &call.batch.instrs[call.instr as usize];
    let (operands, outputs) = (record.operands(), usize::from(record.outputs));
    let lines = |at: usize| Lines::new(call.batch, operands[at]);
    let matrix = lines(outputs)?;
    let (dtype, columns) = (matrix.dtype, matrix.len);
    let rows = long + short - columns;
    let turned = columns > rows;
    let mut all = Around { call, dtype, codes: Vec::new() };
    all.bring(&matrix, [rows, columns], Place { memory: WORK, rows: long, turned });
    all.codes.push(Code::of_library(task, vec![WORK, STATUS, ROOM, VALUES, LEFT, RIGHT]));
    all.leave_values(&lines(usize::from(outputs > 1))?);
    if outputs > 1 {
        // With a = uᵀ of the transpose's, the factors change places.
        let tall = Place { memory: LEFT, rows: long, turned };
        let small = Place { memory: RIGHT, rows: short, turned };
        let (first, last) = if turned { (small, tall) } else { (tall, small) };
        let (u, v) = (lines(0)?, lines(2)?);
        let (wide, down) = if turned { (short, left) } else { (left, short) };
        all.leave(&u, [rows, wide], first);
        all.leave(&v, [down, columns], last);
    }
    all.refuse(&matrix, [rows, columns], "");
    let bytes = |elements: i64, dtype: DType| elements as usize * dtype.size();
    let right = if left > 0 { short * short } else { 0 };
    let scratch = vec![
        bytes(long * short, dtype),
        size_of::<i32>(),
        room,
        bytes(short, dtype.real_part()),
        bytes(long * left, dtype),
        bytes(right, dtype),
    ];
    Some((all.codes, scratch))
}

impl Place {
    /// The element at `row` and `column` of the matrix, or of what it is the transpose of.
    fn element(self, writer: &mut Writer, dtype: DType, writes: bool) -> String {
        let buffer = writer.buffer(self.memory, dtype, writes);
        let rows = writer.numbers.text(self.rows);
        let (row, column) = if self.turned { ("column", "row") } else { ("row", "column") };
        format!("{buffer}[{column} * {rows} + {row}]")
    }
}

impl Around<'_, '_, '_> {
    /// A kernel with an item for each element, whose `row` and `column` the body knows.
    fn each(&mut self, [rows, columns]: [i64; 2], body: impl FnOnce(&mut Writer) -> String) {
        let total = rows * columns;
        if total == 0 {
            return;
        }
        let (mut writer, group) = (Writer::new(Variant::Parameterised, true), self.call.target.group);
        let body = body(&mut writer);
        let [end, columns] = [total, columns].map(|number| writer.numbers.text(number));
        let text = format!(
            "const long u = BH_INDEX;\nif (u < {end}) {{\nconst long row = u / {columns}, column = u % {columns};\n{body}}}\n"
        );
        let groups = total.unsigned_abs().div_ceil(group as u64) as usize;
        self.codes.push(writer.finish(self.call.target, groups, group, &text));
    }

    /// Brings a matrix to memory between kernels, zeros in place of what is not finite, with which iterations may not end.
    fn bring(&mut self, matrix: &Lines, extents: [i64; 2], to: Place) {
        let (dtype, name) = (self.dtype, type_name(self.dtype));
        self.each(extents, |writer| {
            let (begin, value) = (matrix.begin(writer, "row", "from"), matrix.element(writer, "from", "column", false));
            let target = to.element(writer, dtype, true);
            format!(
                "{begin}const {name} value = {value};\n{target} = {} ? value : {};\n",
                is_finite(dtype),
                zero(dtype)
            )
        });
    }

    /// Leaves a matrix in a view.
    fn leave(&mut self, to: &Lines, extents: [i64; 2], from: Place) {
        let dtype = self.dtype;
        self.each(extents, |writer| {
            let (begin, target) = (to.begin(writer, "row", "to"), to.element(writer, "to", "column", true));
            format!("{begin}{target} = {};\n", from.element(writer, dtype, false))
        });
    }

    /// Leaves the values in a vector.
    fn leave_values(&mut self, to: &Lines) {
        self.each([1, to.len], |writer| {
            let values = writer.buffer(VALUES, to.dtype, false);
            let (begin, target) = (to.begin(writer, "0", "to"), to.element(writer, "to", "column", true));
            format!("{begin}{target} = {values}[column];\n")
        });
    }

    /// Notes elements that are not finite (those that a condition begins with), and iterations that have not converged.
    fn refuse(&mut self, matrix: &Lines, extents: [i64; 2], wanted: &str) {
        let (dtype, name, instr, method) = (self.dtype, type_name(self.dtype), self.call.instr, self.call.shipped.name);
        self.each(extents, |writer| {
            let why = ["the matrix has elements that are infinite or not a number", "the iterations do not converge"]
                .map(|text| writer.failure(instr, Why::Method(format!("{method}: {text}"))));
            let notes = writer.buffer(KernelMemory::Failures, DType::I32, true);
            let number = writer.buffer(STATUS, DType::I32, false);
            let (begin, value) = (matrix.begin(writer, "row", "from"), matrix.element(writer, "from", "column", false));
            format!(
                "{begin}const {name} value = {value};\n{}{}",
                note(&format!("{wanted}!({})", is_finite(dtype)), &notes, why[0], "0"),
                note(&format!("row == 0 && column == 0 && {number}[0] != 0"), &notes, why[1], "0")
            )
        });
    }
}
