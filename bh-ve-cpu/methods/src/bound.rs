//! The most work memory that a method asks for, from the types and shapes of its operands.

use bh_bytecode::methods::Form;

/// Bytes of the largest element.
const ELEMENT: usize = 16;
/// The squares of its longest side that a matrix method keeps, in factors, vectors and what the library works in.
const SQUARES: usize = 12;
/// Beside these, the elements that it keeps for each row, and in all.
const PER_ROW: usize = 512;
const FIXED: usize = 1 << 16;

/// Bytes that the shipped method `name` takes at most with this number of threads.
pub(crate) fn work_bytes(name: &str, inputs: &[Form<'_>], threads: usize) -> usize {
    let sides = || {
        let own = |form: &Form<'_>| form.shape[form.shape.len().saturating_sub(2)..].to_vec();
        inputs.iter().flat_map(own).map(|side| side.max(0) as usize)
    };
    let elements = || inputs.iter().map(|form| product(form.shape)).fold(0, usize::saturating_add);
    let line = || inputs.first().and_then(|form| form.shape.last()).map_or(0, |&side| side.max(0) as usize);
    let needed = match name {
        "solve" | "lu" | "lu_panel" | "cholesky" => {
            elements().saturating_add(sides().max().unwrap_or(0)).saturating_add(FIXED)
        }
        "qr" | "eigh" | "eig" | "svd" => {
            let side = sides().max().unwrap_or(0);
            let squares = side.saturating_mul(side).saturating_mul(SQUARES);
            // Each thread may have a matrix of a stack.
            let matrices = if inputs.iter().any(|form| form.shape.len() > 2) { threads.max(1) } else { 1 };
            squares.saturating_add(side.saturating_mul(PER_ROW)).saturating_add(FIXED).saturating_mul(matrices)
        }
        "fft" | "ifft" | "rfft" => line().saturating_mul(threads.saturating_mul(2).max(4)).saturating_add(1),
        // A line of the output has at most twice as many elements.
        "irfft" => line().saturating_mul(threads.saturating_mul(4).max(8)).saturating_add(1),
        "sort" => line().saturating_mul(threads).saturating_add(threads),
        // With each element its position, of half an element.
        "argsort" => line().saturating_mul(threads.saturating_mul(2)).saturating_add(threads),
        "count_nonzero" | "flatnonzero" | "compress" => elements() / 64 + 2,
        _ => 0,
    };
    needed.saturating_mul(ELEMENT)
}

fn product(shape: &[i64]) -> usize {
    shape.iter().fold(1, |product, &side| product.saturating_mul(side.max(0) as usize))
}
