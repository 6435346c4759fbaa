//! Matrix products spelled as multiply, broadcast and sum: `sum(a[:, :, new] * b[new, :, :], axis=1)` and its
//! permutations become the extension method `matmul`.
//!
//! *Proof.* The sum instruction alone changes, to a method that computes the same sums of the same products. The product
//! array must be a temporary that only the sum reads and that is unchanged when it does, and both factors must be
//! unchanged since it was computed. Integers (wrapping) give the same bits in any order; floats and complex numbers are
//! summed in another order, so they are rewritten under `reassociate` only. Small products are left to the fused kernel.

use super::Options;
use crate::analysis::{Uses, base_of, output, output_type};
use crate::losses::Losses;
use bh_bytecode::{Batch, Instr, Opcode, Operand, View};

/// Below this number of multiplications the fused kernel is at least as fast as a call.
const LEAST_WORK: i64 = 32 * 32 * 32;

/// Runs the pass.
pub fn run(batch: &mut Batch, options: &Options) -> usize {
    let Some(opcode) = options.matmul else { return 0 };
    let mut changed = 0;
    let (mut uses, mut losses) = (None, None);
    for index in 0..batch.instrs.len() as u32 {
        if batch.instrs[index as usize].opcode != Opcode::AddReduce {
            continue;
        }
        let known = uses.get_or_insert_with(|| Uses::of(batch));
        let Some((out, a, b)) = product(batch, known, options, index) else { continue };
        let operands = [out, a, b].map(|(base, view)| Operand::view(batch.intern_view(base, &view)));
        if !losses.get_or_insert_with(|| Losses::of(batch)).keeps(batch, index, &operands[1..]) {
            continue;
        }
        let origin = batch.instrs[index as usize].origin;
        let mut instr = Instr::new(opcode, &operands);
        instr.origin = origin;
        batch.instrs[index as usize] = instr;
        changed += 1;
        uses = None;
    }
    if changed > 0 && batch.as_ref().extension_name(opcode).is_none() {
        let (name, name_len) = batch.push_string("matmul");
        batch.extensions.push(bh_bytecode::Extension { opcode, reserved: 0, name, name_len });
    }
    changed
}

type Matrix = (u32, View);

/// The result and the two factors, as matrices, of the sum of products at `index`.
fn product(batch: &Batch, uses: &Uses, options: &Options, index: u32) -> Option<(Matrix, Matrix, Matrix)> {
    let sum = batch.instrs[index as usize];
    let dtype = output_type(batch, &sum)?;
    let between = sum.operands[1].as_view()?;
    if batch.views[between as usize].rank != 3
        || sum.param.count_ones() != 1
        || !(dtype.is_int() || options.reassociate && (dtype.is_float() || dtype.is_complex()))
        || batch.views[between as usize].len < LEAST_WORK
    {
        return None;
    }
    let product_index = uses.definition(batch, between, index)?;
    let product = batch.instrs[product_index as usize];
    let (left, right) = (product.operands[1].as_view()?, product.operands[2].as_view()?);
    let out = output(&sum)?;
    let out_base = base_of(batch, Operand::view(out))?;
    let holds = product.opcode == Opcode::Multiply
        && uses.is_read_only_by(batch, between, index)
        && [left, right].iter().all(|&view| {
            !uses.changed(batch, view, product_index, index) && batch.views[view as usize].base != out_base
        });
    if !holds {
        return None;
    }
    let summed = sum.param.trailing_zeros() as usize;
    let [rows, columns] = match summed {
        0 => [1, 2],
        1 => [0, 2],
        _ => [0, 1],
    };
    let view = |view: u32| batch.as_ref().view(view);
    let spans = |view: &View, dim: usize| view.shape()[dim] == 1 || view.stride()[dim] != 0;
    let (a, b) = (view(left), view(right));
    // One factor must be constant along the columns, the other along the rows.
    let (a, a_id, b, b_id) = if a.stride()[columns] == 0 && b.stride()[rows] == 0 {
        (a, left, b, right)
    } else if b.stride()[columns] == 0 && a.stride()[rows] == 0 {
        (b, right, a, left)
    } else {
        return None;
    };
    if !(spans(&a, rows) && spans(&a, summed) && spans(&b, summed) && spans(&b, columns)) {
        return None;
    }
    let matrix = |view: &View, first: usize, second: usize| {
        let (shape, stride) = (view.shape(), view.stride());
        View::new(view.start(), &[shape[first], shape[second]], &[stride[first], stride[second]]).ok()
    };
    let base = |view: u32| batch.views[view as usize].base;
    Some(((out_base, view(out)), (base(a_id), matrix(&a, rows, summed)?), (base(b_id), matrix(&b, summed, columns)?)))
}
