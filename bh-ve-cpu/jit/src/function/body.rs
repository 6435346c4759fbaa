//! The steps of a kernel for one vector of each row.

use crate::arithmetic::{Operation, from_number, random};
use crate::builder::{Builder, Element, Kind, Value};
use crate::kernel::{At, Kernel};
use crate::plan::{Form, OutputIn, combiner, is_root};
use crate::{complex, division, mathematics, memory, non_temporal, reduction};
use bh_jit_abi::Folds;
use bh_kernel::{Arg, Step};

/// A store or a fold of the last segment: the row's place, the number of the fold, the step and the value.
type End<'a, 'c> = (&'a At<'c>, usize, Step, Value<'c>);

/// The steps of a segment for one vector of each row.
pub(super) fn vectors<'c>(b: &Builder<'c>, kernel: &mut Kernel<'c>, at: &At<'c>) -> Result<(), String> {
    let rows = kernel.rows.count;
    kernel.vector.values.clear();
    kernel.vector.values.resize(usize::from(rows), vec![None; kernel.plan.made.len()]);
    kernel.vector.loads.clear();
    memory::prefetch(b, kernel, at);
    let rows: Vec<At> = (0..rows).map(|row| At { row, ..*at }).collect();
    values(b, kernel, &rows)?;
    let ends = ends(b, kernel, &rows)?;
    let mut streamed = Vec::new();
    // Rows that fold into the same elements read and write these once.
    let mut columns: Vec<(Operation, Vec<Value>)> = Vec::new();
    for (at, fold, step, value) in ends {
        match step {
            Step::Store { slot, .. } => match non_temporal::stream(kernel, slot.into(), at.row) {
                Some(stream) => streamed.push((stream, value)),
                None => memory::store(b, kernel, slot.into(), value, at),
            },
            Step::Reduce { opcode, slot, .. } => {
                let dtype = kernel.request.slots[usize::from(slot)].dtype;
                let operation = Operation::exact(combiner(opcode)?, dtype, kernel.request.level);
                if kernel.request.folds != Folds::Columns {
                    reduction::fold(b, kernel, fold, operation, &[value], at)?;
                } else if let Some((_, values)) = columns.get_mut(fold) {
                    values.push(value);
                } else {
                    columns.push((operation, vec![value]));
                }
            }
            _ => {}
        }
    }
    for (fold, (operation, values)) in columns.into_iter().enumerate() {
        reduction::fold(b, kernel, fold, operation, &values, &rows[0])?;
    }
    non_temporal::write_streams(b, kernel, &streamed, at);
    Ok(())
}

/// Makes the values of a segment for one vector of each row: step by step, so that the rows' chains of operations run
/// side by side.
fn values<'c>(b: &Builder<'c>, kernel: &mut Kernel<'c>, rows: &[At<'c>]) -> Result<(), String> {
    let plan = kernel.plan;
    for number in 0..plan.made.len() as u16 {
        let step = plan.made[usize::from(number)];
        let buffer = plan.value_buffers[usize::from(number)];
        for at in rows {
            let wanted = if plan.is_repeatable(kernel.request, number) {
                // Made where it is used; if a call uses it, in the segment before the call.
                buffer.is_some() && at.segment == 0
            } else {
                plan.segment[step] == at.segment && !matches!(plan.forms[step], Form::Called(_))
            };
            if !wanted {
                continue;
            }
            let made = value(b, kernel, number, at)?;
            if let Some(buffer) = buffer {
                let dtype = kernel.request.steps[step].output_in(kernel.request);
                memory::store_buffer(b, kernel, (buffer, dtype), made, at);
            }
        }
    }
    Ok(())
}

/// The stores and folds of the last segment. All reads come before the writes.
fn ends<'a, 'c>(b: &Builder<'c>, kernel: &mut Kernel<'c>, rows: &'a [At<'c>]) -> Result<Vec<End<'a, 'c>>, String> {
    let mut ends = Vec::new();
    for at in rows.iter().filter(|at| at.segment + 1 == kernel.plan.segments) {
        let mut folds = 0;
        for step in &kernel.request.steps {
            if let Step::Store { arg, .. } | Step::Reduce { arg, .. } = *step {
                ends.push((at, folds, *step, argument(b, kernel, arg, at)?));
                folds += usize::from(matches!(step, Step::Reduce { .. }));
            }
        }
    }
    Ok(ends)
}

fn argument<'c>(b: &Builder<'c>, kernel: &mut Kernel<'c>, arg: Arg, at: &At<'c>) -> Result<Value<'c>, String> {
    match arg {
        Arg::Constant(constant) => Ok(kernel.constant(constant, at)),
        Arg::Value(number) => value(b, kernel, number, at),
    }
}

/// A value of the current vector: already known, read from a buffer, or computed by its step.
fn value<'c>(b: &Builder<'c>, kernel: &mut Kernel<'c>, number: u16, at: &At<'c>) -> Result<Value<'c>, String> {
    let (row, plan) = (usize::from(at.row), kernel.plan);
    if let Some(known) = kernel.vector.values[row][usize::from(number)] {
        return Ok(known);
    }
    let index = plan.made[usize::from(number)];
    let step = &kernel.request.steps[index];
    let made_before = plan.segment[index] < at.segment && !plan.is_repeatable(kernel.request, number);
    let made = match plan.value_buffers[usize::from(number)] {
        Some(buffer) if made_before => memory::load_buffer(b, kernel, (buffer, step.output_in(kernel.request)), at),
        _ => make(b, kernel, index, step, at)?,
    };
    kernel.vector.values[row][usize::from(number)] = Some(made);
    Ok(made)
}

/// Builds the value of a step.
fn make<'c>(
    b: &Builder<'c>,
    kernel: &mut Kernel<'c>,
    index: usize,
    step: &Step,
    at: &At<'c>,
) -> Result<Value<'c>, String> {
    match *step {
        Step::Load { slot } => Ok(memory::load(b, kernel, slot, at)),
        Step::Range { slot, output } => {
            Ok(from_number(b, kernel.request.level, memory::numbers(b, kernel, slot, at), output))
        }
        Step::Random { slot, key: Arg::Constant(key), output } => {
            let number = memory::numbers(b, kernel, slot, at);
            let address = b.byte(kernel.parameters.table, b.index(i64::from(key) * 16));
            let key = b.extend(b.load(Kind::I32, address, 4), Element::I64);
            Ok(random(b, number, b.broadcast(key, at.width), output))
        }
        Step::Compute { args, count, .. } => {
            let mut operands = [None; 3];
            for (operand, arg) in operands.iter_mut().zip(&args[..usize::from(count)]) {
                *operand = Some(argument(b, kernel, *arg, at)?);
            }
            let first = operands[0].ok_or("an operation without operands")?;
            compute(b, kernel, (index, step), operands.map(|operand| operand.unwrap_or(first)), at)
        }
        _ => Err("a step without code".into()),
    }
}

/// Builds the value of a step from its operands.
fn compute<'c>(
    b: &Builder<'c>,
    kernel: &mut Kernel<'c>,
    (index, step): (usize, &Step),
    operands: [Value<'c>; 3],
    at: &At<'c>,
) -> Result<Value<'c>, String> {
    let &Step::Compute { opcode, param, input, output, .. } = step else { return Err("no operation".into()) };
    let (level, fast_math) = (kernel.request.level, kernel.request.fast_math);
    let multiplied = &kernel.plan.vectors.multiplied;
    let [x, y, _] = operands;
    let quotient = || {
        let divisors = kernel.parameters.divisors.iter().chain(&kernel.rows.divisors).copied();
        let has_one = multiplied.has_quotient(step);
        has_one.then(|| division::invariant_quotient(b, input, [x, y], divisors, at.mask)).flatten()
    };
    let root = || {
        let has_one = multiplied.has_roots() && is_root(step);
        has_one.then(|| mathematics::root(b, level, x, at.mask)).flatten()
    };
    let special = quotient().or_else(root).or_else(|| complex::modulus(b, level, step, x, at.mask));
    if let Some(made) = special {
        return Ok(made);
    }
    match kernel.plan.forms[index] {
        Form::Inlined(function) => {
            let around = mathematics::Around { scratch: kernel.parameters.scratch, width: at.width, mask: at.mask };
            let function = kernel.parameters.functions[usize::from(function)];
            mathematics::ordinary(b, level, (opcode, input), operands, function, around)
        }
        _ => Operation { opcode, param, input, output, level, fast_math }
            .emit(b, operands)
            .ok_or_else(|| format!("{opcode} of {input}")),
    }
}
