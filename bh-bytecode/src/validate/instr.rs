//! Checks of one instruction against its row of the opcode table.

use super::Fault;
use crate::batch::{BatchRef, Instr, MAX_OPERANDS, NO_BASE, Operand, ViewRec};
use crate::dtype::{DType, TypeSet};
use crate::opcode::{Info, Kind, Opcode, Signature};
use crate::order::{AxisOrder, FIXED};
use crate::view::{Overlap, is_contiguous, overlap};

/// Checks an instruction. `discarded` remembers from call to call which bases were discarded.
pub(super) fn check(batch: &BatchRef, instr: &Instr, discarded: &mut [bool]) -> Result<(), Fault> {
    check_form(batch, instr)?;
    let info = instr.opcode.info();
    for (at, &operand) in instr.operands().iter().enumerate() {
        check_operand(batch, operand, discarded).map_err(|message| (Some(at), message))?;
    }
    match info.kind {
        Kind::System => check_system(batch, instr, discarded),
        Kind::Extension => {
            check_order(batch, instr)?;
            check_outputs(batch, instr)?;
            check_overlap(batch, instr, info.kind)
        }
        _ => {
            check_types(batch, instr, info)?;
            check_param(batch, instr)?;
            check_order(batch, instr)?;
            check_outputs(batch, instr)?;
            check_shapes(batch, instr, info)?;
            check_overlap(batch, instr, info.kind)
        }
    }
}

/// Opcode, counts and unused places.
fn check_form(batch: &BatchRef, instr: &Instr) -> Result<(), Fault> {
    let whole = |message: String| Err((None, message));
    let opcode = instr.opcode;
    if Opcode::from_code(opcode.0).is_none() {
        return whole(format!("there is no opcode {}", opcode.0));
    }
    let (count, outputs) = (instr.count as usize, instr.outputs as usize);
    if count > MAX_OPERANDS || outputs > count {
        return whole(format!("{count} operands with {outputs} outputs are not possible"));
    }
    if instr.operands[count..].iter().any(|&operand| operand != Operand::NONE) {
        return whole(format!("there are operands beyond the {count} in use"));
    }
    if instr.origin as usize > batch.origins.len() {
        return whole(format!("origin {} does not exist; there are {}", instr.origin, batch.origins.len()));
    }
    if opcode.is_extension() {
        if batch.extension_name(opcode).is_none() {
            return whole(format!("extension method {} has no name in the batch", opcode.0));
        }
        return check_attributes(batch, instr).map_err(|message| (None, message));
    }
    if instr.attributes != 0 {
        return whole(format!("{opcode} has no attributes, but they begin at {}", instr.attributes));
    }
    let info = opcode.info();
    let (legal_outputs, legal_count) = match info.kind {
        Kind::System => (0, usize::from(opcode != Opcode::Nop)),
        _ => (1, 1 + info.inputs as usize),
    };
    if (outputs, count) != (legal_outputs, legal_count) {
        return whole(format!(
            "{legal_count} operands with {legal_outputs} outputs are needed, but there are {count} with {outputs}"
        ));
    }
    Ok(())
}

/// Do the attributes of an extension method lie in their table, each name once?
fn check_attributes(batch: &BatchRef, instr: &Instr) -> Result<(), String> {
    let attributes = batch.attributes(instr);
    let (first, count) = (instr.attributes, instr.param);
    if attributes.len() != usize::from(count) {
        return Err(format!(
            "attributes {first} and {count} in all lie outside the table of {}",
            batch.attributes.len()
        ));
    }
    let names: Vec<&str> = attributes.iter().filter_map(|attribute| batch.attribute_name(attribute)).collect();
    match (0..names.len()).find(|&at| names[at].is_empty() || names[..at].contains(&names[at])) {
        Some(at) if names[at].is_empty() => Err("an attribute has no name".into()),
        Some(at) => Err(format!("attribute '{}' is there twice", names[at])),
        None => Ok(()),
    }
}

/// Is the operand in its table, and has its base not been discarded?
fn check_operand(batch: &BatchRef, operand: Operand, discarded: &[bool]) -> Result<(), String> {
    if let Some(constant) = operand.as_constant() {
        return match batch.constants.get(constant as usize) {
            Some(_) => Ok(()),
            None => Err(format!("constant {constant} does not exist; there are {}", batch.constants.len())),
        };
    }
    let Some(index) = operand.as_view() else {
        return Err("it is missing".into());
    };
    let Some(view) = batch.views.get(index as usize) else {
        return Err(format!("view {index} does not exist; there are {}", batch.views.len()));
    };
    if discarded.get(view.base as usize) == Some(&true) {
        return Err(format!("base {} was discarded before", view.base));
    }
    Ok(())
}

/// The view of an operand, if it is one.
fn view_of<'a>(batch: &BatchRef<'a>, operand: Operand) -> Option<&'a ViewRec> {
    batch.views.get(operand.as_view()? as usize)
}

fn check_system(batch: &BatchRef, instr: &Instr, discarded: &mut [bool]) -> Result<(), Fault> {
    if instr.param != 0 || instr.order != 0 {
        return Err((None, format!("its parameter is {} and its order {} instead of 0", instr.param, instr.order)));
    }
    let Some(&operand) = instr.operands().first() else {
        return Ok(());
    };
    match view_of(batch, operand) {
        Some(view) if view.base != NO_BASE => {
            if instr.opcode == Opcode::Discard {
                discarded[view.base as usize] = true;
            }
            Ok(())
        }
        _ => Err((Some(0), "a view of a base is needed".into())),
    }
}

/// The input that an opcode requires.
enum Wanted {
    /// A view of a base or a constant.
    Data,
    /// A view of a base.
    Array,
    /// An index view.
    Index,
    /// An integer constant.
    Key,
}

/// The input that an opcode requires at this position.
fn wanted(info: &Info, input: usize) -> Wanted {
    match (info.signature, input) {
        (Signature::Index | Signature::Random, 0) => Wanted::Index,
        (Signature::Random, _) => Wanted::Key,
        (Signature::Reduce | Signature::Masked | Signature::Product | Signature::Gather, _) => Wanted::Array,
        (Signature::Scatter | Signature::ScatterMask, 1..) => Wanted::Array,
        _ if info.kind == Kind::Accumulate => Wanted::Array,
        _ => Wanted::Data,
    }
}

fn check_types(batch: &BatchRef, instr: &Instr, info: &Info) -> Result<(), Fault> {
    let mut types = [DType::Bool; MAX_OPERANDS];
    let mut count = 0;
    for (input, &operand) in instr.inputs().iter().enumerate() {
        let fault = |message: &str| Err((Some(input + 1), message.to_string()));
        let dtype = batch.dtype(operand);
        let constant = operand.as_constant().is_some();
        match (wanted(info, input), dtype) {
            (Wanted::Index, None) => continue,
            (Wanted::Index, Some(_)) => return fault("an index view is needed"),
            (Wanted::Key, Some(dtype)) if constant && TypeSet::INT.contains(dtype) => continue,
            (Wanted::Key, _) => return fault("an integer constant is needed"),
            (Wanted::Array, _) if constant => return fault("a view is needed, not a constant"),
            (_, None) => return fault("it is an index view, which has no data"),
            (_, Some(dtype)) => {
                types[count] = dtype;
                count += 1;
            }
        }
    }
    let Some(output) = instr.operands().first().and_then(|&operand| batch.dtype(operand)) else {
        return Err((Some(0), "it is an index view, which has no data".into()));
    };
    let inputs = &types[..count];
    if instr.opcode.check_types(output, inputs) {
        return Ok(());
    }
    let names: Vec<&str> = inputs.iter().map(|dtype| dtype.name()).collect();
    Err((None, format!("the types {output} ← {} are not legal", names.join(", "))))
}

fn check_param(batch: &BatchRef, instr: &Instr) -> Result<(), Fault> {
    let param = instr.param;
    let kind = instr.opcode.kind();
    if matches!(kind, Kind::Reduction | Kind::Accumulate) {
        let rank = view_of(batch, instr.operands[1]).map_or(0, |view| view.rank);
        if (param as u32) >> rank != 0 {
            return Err((None, format!("the axes {param:#b} are not all below rank {rank}")));
        }
        if kind == Kind::Accumulate && param.count_ones() != 1 {
            return Err((None, format!("the axes {param:#b} are not exactly one")));
        }
        if param == 0 && rank > 0 {
            return Err((None, "no axes are given".into()));
        }
    } else if !instr.opcode.takes_param(param) {
        return Err((
            None,
            match instr.opcode {
                Opcode::Powi => format!("the exponent {param} is not from 2 to 5"),
                Opcode::Copy => format!("its parameter is {param} instead of 0, 1 or 2"),
                opcode if opcode.has_variants() => format!("its parameter is {param} instead of 0 or 1"),
                _ => format!("its parameter is {param} instead of 0"),
            },
        ));
    }
    Ok(())
}

/// Only folds have an order: a code for the rank of the input, in which folded axes alone are walked backward, and of running folds
/// that of C order in a fixed tree.
fn check_order(batch: &BatchRef, instr: &Instr) -> Result<(), Fault> {
    let order = instr.order;
    if order == 0 {
        return Ok(());
    }
    match instr.opcode.kind() {
        Kind::Reduction => {}
        Kind::Accumulate if order == FIXED => return Ok(()),
        _ => return Err((None, format!("its order is {order}, but only reductions have one"))),
    }
    let rank = view_of(batch, instr.operands[1]).map_or(0, |view| view.rank);
    match AxisOrder::decode(order, rank as usize) {
        None => Err((None, format!("the order {order} is none of rank {rank}"))),
        Some(axes) if axes.backward() & !instr.param != 0 => {
            Err((None, format!("the order {order} walks kept axes backward, {:#b}", axes.backward() & !instr.param)))
        }
        Some(_) => Ok(()),
    }
}

/// Outputs are injective views of bases.
fn check_outputs(batch: &BatchRef, instr: &Instr) -> Result<(), Fault> {
    for (at, operand) in instr.outputs().iter().enumerate() {
        let index = match operand.as_view() {
            Some(index) if batch.base_of(index).is_some() => index,
            _ => return Err((Some(at), "an output must be a view of a base".into())),
        };
        // The quick test spares most outputs the full one.
        if !is_contiguous(batch.shape(index), batch.stride(index)) && !batch.view(index).is_injective() {
            let (shape, stride) = (batch.shape(index), batch.stride(index));
            let text = format!("an output of shape {shape:?} with strides {stride:?} may hit one element twice");
            return Err((Some(at), text));
        }
    }
    Ok(())
}

fn check_shapes(batch: &BatchRef, instr: &Instr, info: &Info) -> Result<(), Fault> {
    let shape = |at: usize| instr.operands[at].as_view().map(|index| batch.shape(index));
    let output = shape(0).unwrap_or(&[]);
    let same = |at: usize, wanted: &[i64], whose: &str| match shape(at) {
        Some(found) if found != wanted => {
            Err((Some(at), format!("its shape {found:?} differs from {whose}, {wanted:?}")))
        }
        _ => Ok(()),
    };
    match info.signature {
        Signature::Reduce | Signature::Masked | Signature::Product => {
            let input = shape(1).unwrap_or(&[]);
            let kept = (0..input.len()).filter(|axis| instr.param >> axis & 1 == 0).map(|axis| input[axis]);
            if !kept.clone().eq(output.iter().copied()) {
                let kept: Vec<i64> = kept.collect();
                return Err((Some(0), format!("its shape {output:?} differs from the axes kept, {kept:?}")));
            }
            if info.inputs > 1 { same(2, input, "the folded view's") } else { Ok(()) }
        }
        Signature::Gather => same(2, output, "the output's"),
        Signature::Scatter | Signature::ScatterMask => {
            let index = shape(2).unwrap_or(&[]);
            same(1, index, "the index's")?;
            if info.inputs > 2 { same(3, index, "the index's") } else { Ok(()) }
        }
        _ => (1..instr.count as usize).try_for_each(|at| same(at, output, "the output's")),
    }
}

/// No output overlaps another operand, but for identical views where an element is read before it is written.
fn check_overlap(batch: &BatchRef, instr: &Instr, kind: Kind) -> Result<(), Fault> {
    let operands = instr.operands();
    for (at, &output) in instr.outputs().iter().enumerate() {
        let (Some(out), Some(out_record)) = (output.as_view(), view_of(batch, output)) else { continue };
        for (other_at, &other) in operands.iter().enumerate().skip(at + 1) {
            let Some(record) = view_of(batch, other) else { continue };
            if record.base != out_record.base || record.base == NO_BASE {
                continue;
            }
            let is_input = other_at >= instr.outputs as usize;
            let relation = if out == other.0 && out_record.len > 0 {
                Overlap::Identical
            } else {
                overlap(&batch.view(out), &batch.view(other.0))
            };
            match relation {
                Overlap::Disjoint => {}
                Overlap::Identical if out_record.len == 0 || (kind.works_in_place() && is_input) => {}
                Overlap::Identical => {
                    return Err((
                        Some(other_at),
                        format!("it is the view of output {at}, which must be another array"),
                    ));
                }
                Overlap::Overlapping => {
                    return Err((Some(other_at), format!("it overlaps output {at} without being the same view")));
                }
            }
        }
    }
    Ok(())
}
