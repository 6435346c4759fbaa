//! Rows that make a result each: lanes begin as neutral elements, and when a row has ended they are joined, those of several
//! rows side by side.

use crate::arithmetic::Operation;
use crate::builder::{Builder, Value};
use crate::kernel::Kernel;
use crate::memory::{load_vector, store_vector};
use crate::plan::combiner;
use bh_bytecode::{DType, Opcode};
use bh_jit_abi::{Folds, JOINED, LANES, RESULTS_AT, Request};
use bh_kernel::Step;
use inkwell::IntPredicate as Int;

/// Rows that are joined side by side, and the lanes that each has left then.
const EIGHT: u16 = JOINED as u16;

fn makes_results(request: &Request) -> bool {
    request.folds == Folds::Results
}

/// Reads the neutral elements of each fold.
pub(crate) fn load_neutral<'c>(b: &Builder<'c>, request: &Request, accumulators: &[Value<'c>]) -> Vec<Value<'c>> {
    if !makes_results(request) {
        return Vec::new();
    }
    let dtypes = request.steps.iter().filter_map(|step| match *step {
        Step::Reduce { slot, .. } => Some(request.slots[usize::from(slot)].dtype),
        _ => None,
    });
    dtypes.zip(accumulators).map(|(dtype, &lanes)| load_vector(b, dtype, lanes, 0, EIGHT)).collect()
}

/// The first lanes of the vectors that are joined.
fn parts() -> impl Iterator<Item = u16> {
    (0..LANES as u16).step_by(JOINED)
}

/// Makes the lanes neutral.
pub(crate) fn begin_result<'c>(b: &Builder<'c>, kernel: &mut Kernel<'c>) {
    if !makes_results(kernel.request) {
        return;
    }
    let mut carried = Vec::new();
    for (at, (_, dtype)) in kernel.folds().into_iter().enumerate() {
        if kernel.plan.vectors.carries {
            let each = kernel.plan.vectors.loops[0];
            let vector = load_vector(b, dtype, kernel.parameters.folds[at], 0, each.width);
            carried.extend((0..each.unroll).map(|_| vector));
        } else {
            for lane in parts() {
                store_vector(b, dtype, kernel.rows.accumulator(at, 0), lane, kernel.parameters.neutral[at]);
            }
        }
    }
    kernel.carried = carried;
}

/// Joins the lanes of the row that has ended until [`EIGHT`] are left, and then those of the last rows if these are as
/// many or the rows end here.
pub(crate) fn end_result<'c>(b: &Builder<'c>, kernel: &mut Kernel<'c>, end: Value<'c>) -> Result<(), String> {
    if !makes_results(kernel.request) {
        return Ok(());
    }
    let (folds, row) = (kernel.folds(), kernel.rows.number);
    let number = b.and(row, b.index(i64::from(EIGHT) - 1));
    let behind = b.mul(number, b.index(EIGHT.into()));
    let place = b.add(behind, b.index(2 * LANES as i64));
    for (at, &(opcode, dtype)) in folds.iter().enumerate() {
        let lanes = join_lanes(b, kernel, at, (opcode, dtype))?;
        let to = b.element(kernel.parameters.folds[at], dtype, place);
        store_vector(b, dtype, to, 0, lanes);
    }
    let is_eighth = b.compare(Int::EQ, number, b.index(i64::from(EIGHT) - 1));
    let is_last = b.compare(Int::EQ, b.add(row, b.index(1)), end);
    let joins = b.or(is_eighth, is_last);
    let [join, joined] = b.blocks(["join", "joined"]);
    b.branch(joins, (join, joined));
    b.begin(join);
    let place = b.add(b.sub(row, number), b.index(RESULTS_AT as i64));
    for (at, &(opcode, dtype)) in folds.iter().enumerate() {
        let results = join_rows(b, kernel, at, (opcode, dtype))?;
        let to = b.element(kernel.parameters.folds[at], dtype, place);
        store_vector(b, dtype, to, 0, results);
    }
    b.jump(joined);
    b.begin(joined);
    Ok(())
}

/// Joins the lanes of a row until [`EIGHT`] are left.
fn join_lanes<'c>(
    b: &Builder<'c>,
    kernel: &Kernel<'c>,
    fold: usize,
    (opcode, dtype): (Opcode, DType),
) -> Result<Value<'c>, String> {
    let mut vectors = if kernel.plan.vectors.carries {
        let count = usize::from(kernel.plan.vectors.loops[0].unroll);
        kernel.carried[fold * count..][..count].to_vec()
    } else {
        let lanes = kernel.rows.accumulator(fold, 0);
        parts().map(|lane| load_vector(b, dtype, lanes, lane, EIGHT)).collect()
    };
    while vectors.len() > 1 {
        let upper = vectors.split_off(vectors.len() / 2);
        for (lower, upper) in vectors.iter_mut().zip(upper) {
            *lower = combine(b, kernel, (opcode, dtype), [*lower, upper])?;
        }
    }
    let mut lanes = vectors[0];
    while lanes.lanes() > EIGHT {
        let half = lanes.lanes() / 2;
        let halves = [0, half].map(|from| b.shuffle_two(lanes, lanes, (from..from + half).map(Some)));
        lanes = combine(b, kernel, (opcode, dtype), halves)?;
    }
    Ok(lanes)
}

/// Joins the lanes that rows have left: of two vectors with lanes of some rows each, the lower and the upper halves of
/// all these make one vector each.
fn join_rows<'c>(
    b: &Builder<'c>,
    kernel: &Kernel<'c>,
    fold: usize,
    (opcode, dtype): (Opcode, DType),
) -> Result<Value<'c>, String> {
    let base = kernel.parameters.folds[fold];
    let parts = (0..EIGHT).map(|row| (2 * LANES) as u16 + row * EIGHT);
    let mut vectors: Vec<Value> = parts.map(|from| load_vector(b, dtype, base, from, EIGHT)).collect();
    let mut half = EIGHT / 2;
    while half > 0 {
        let halves = |from: u16| (0..EIGHT).map(move |lane| Some(lane / half * 2 * half + lane % half + from));
        let mut joined = Vec::with_capacity(vectors.len() / 2);
        for pair in vectors.chunks_exact(2) {
            let pair = [0, half].map(|from| b.shuffle_two(pair[0], pair[1], halves(from)));
            joined.push(combine(b, kernel, (opcode, dtype), pair)?);
        }
        (vectors, half) = (joined, half / 2);
    }
    Ok(vectors[0])
}

fn combine<'c>(
    b: &Builder<'c>,
    kernel: &Kernel<'c>,
    (opcode, dtype): (Opcode, DType),
    [x, y]: [Value<'c>; 2],
) -> Result<Value<'c>, String> {
    let opcode = combiner(opcode)?;
    let operation = Operation::exact(opcode, dtype, kernel.request.level);
    operation.emit(b, [x, y, y]).ok_or_else(|| format!("joining with {opcode} of {dtype}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_jit_abi::{Divider, Level};
    use bh_kernel::{Arg, SlotMode};

    /// The sum of a / a: with a slow divider, vectors of four lanes.
    fn kernel(level: Level, divider: Divider) -> Request {
        let divide = Step::Compute {
            opcode: Opcode::Divide,
            param: 0,
            input: DType::F64,
            output: DType::F64,
            args: [Arg::Value(0); 3],
            count: 2,
        };
        let fold = Step::Reduce { opcode: Opcode::AddReduce, slot: 1, arg: Arg::Value(1) };
        let modes = [SlotMode::Read, SlotMode::Result];
        let request = crate::request(level, &modes, vec![Step::Load { slot: 0 }, divide, fold]);
        Request { folds: Folds::Results, divider, ..request }
    }

    #[test]
    fn lanes_of_vectors_of_all_widths_are_joined() {
        for &level in crate::LEVELS {
            for divider in [Divider::Slow, Divider::Fast, Divider::Wide, Divider::Unknown] {
                let assembly = crate::assembly(&kernel(level, divider)).unwrap();
                assert!(assembly.contains("vdivpd") || assembly.contains("fdiv\tv"), "{assembly}");
            }
        }
    }
}
