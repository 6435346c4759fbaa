//! Scalar programs: an item for each element, which goes its own way and ends when its element is done.

use super::lines::Lines;
use crate::code::{Code, Target, Variant, Writer, is_wide};
use bh_bytecode::c::{has_expression, type_name};
use bh_bytecode::{BatchRef, DType};
use bh_scalar::Program;
use bh_scalar::opencl::variable;

/// Can a device run a program, with or without double precision?
pub(super) fn is_for(program: &Program, f64: bool) -> bool {
    let double = |dtype: &DType| *dtype == DType::F64 || dtype.is_complex();
    program.operations().all(|compute| has_expression(compute.opcode)) && (f64 || !program.registers.iter().any(double))
}

/// Are a call's operands views of the program's types and of one shape, and is nothing written that is read?
pub(super) fn takes(batch: &BatchRef<'_>, instr: u32, program: &Program) -> bool {
    let operands = batch.instrs[instr as usize].operands();
    let Some(views) = operands.iter().map(|operand| operand.as_view()).collect::<Option<Vec<u32>>>() else {
        return false;
    };
    if views.len() != program.inputs + program.outputs {
        return false;
    }
    let (outputs, inputs) = views.split_at(program.outputs);
    let types = program.output_types().iter().chain(program.input_types());
    let fits = views.iter().zip(types).all(|(&view, dtype)| {
        let base = batch.base_of(view);
        base.is_some_and(|base| base.dtype() == *dtype) && batch.shape(view) == batch.shape(views[0])
    });
    let base = |view: u32| batch.views[view as usize].base;
    let apart = |at: usize| inputs.iter().chain(&outputs[at + 1..]).all(|&other| base(other) != base(outputs[at]));
    fits && (0..outputs.len()).all(apart)
}

/// The kernel of a call that the device takes; none if there are no elements.
pub(super) fn kernel(
    batch: &BatchRef<'_>,
    instr: u32,
    program: &Program,
    target: &Target,
    variant: Variant,
) -> Option<Code> {
    let operands = batch.instrs[instr as usize].operands();
    let lines: Vec<Lines> = operands.iter().map(|&operand| Lines::new(batch, operand)).collect::<Option<_>>()?;
    let (outputs, inputs) = lines.split_at(program.outputs);
    let (total, len) = (outputs[0].count() * outputs[0].len, outputs[0].len);
    if total == 0 {
        return None;
    }
    let mut writer = Writer::new(variant, is_wide(batch, operands));
    let (index, all, row) = (writer.index(), writer.numbers.text(total), writer.numbers.text(len));
    let mut body = format!(
        "const {index} u = get_global_id(0);\nif (u >= {all}) return;\nconst {index} line = u / {row}, at = u % {row};\n"
    );
    for (register, input) in inputs.iter().enumerate() {
        body += &input.begin(&mut writer, "line", &format!("i{register}"));
        let element = input.element(&mut writer, &format!("i{register}"), "at", false);
        body += &format!("{} {} = {element};\n", type_name(input.dtype), variable(register));
    }
    body += &program.opencl();
    for (at, output) in outputs.iter().enumerate() {
        body += &output.begin(&mut writer, "line", &format!("o{at}"));
        let element = output.element(&mut writer, &format!("o{at}"), "at", true);
        body += &format!("{element} = {};\n", variable(program.inputs + at));
    }
    let groups = (total as u64).div_ceil(target.group as u64) as usize;
    Some(writer.finish(target, groups, target.group, &body))
}
