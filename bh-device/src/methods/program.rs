//! Scalar programs: an item for each element, which goes its own way and ends when its element is done.

use super::lines::Lines;
use crate::code::{Code, KernelMemory, NOTE, Target, Variant, Why, Writer, is_wide, note};
use bh_bytecode::c::has_expression;
use bh_bytecode::{BatchRef, DType, Operand};
use bh_kernel::{BufferRef, ConstantRef};
use bh_scalar::kernel::{Around, variable, variable_type};
use bh_scalar::{Load, Program, Table};

/// Can a device run a program, with or without double precision?
pub(super) fn is_for(program: &Program, f64: bool) -> bool {
    let double = |dtype: &DType| *dtype == DType::F64 || dtype.is_complex();
    program.operations().all(|compute| has_expression(compute.opcode)) && (f64 || !program.registers.iter().any(double))
}

/// Are a call's operands of the program's types, tables of its dimensions, the others of one shape or constants, and is nothing
/// written that is read?
pub(super) fn takes(batch: &BatchRef<'_>, instr: u32, program: &Program) -> bool {
    let operands = batch.instrs[instr as usize].operands();
    if operands.len() != program.inputs + program.outputs + program.tables.len() {
        return false;
    }
    let (outputs, inputs) = operands.split_at(program.outputs);
    let (own, tables) = inputs.split_at(program.inputs);
    let types = program.output_types().iter().chain(program.input_types()).copied();
    let types = types.chain(program.tables.iter().map(|table| table.dtype));
    if !operands.iter().zip(types).all(|(&operand, dtype)| batch.dtype(operand) == Some(dtype)) {
        return false;
    }
    let shape = |operand: &Operand| operand.as_view().map(|view| batch.shape(view));
    let first = shape(&outputs[0]);
    let base = |operand: &Operand| operand.as_view().map(|view| batch.views[view as usize].base);
    let apart = |at: usize| inputs.iter().chain(&outputs[at + 1..]).all(|other| base(other) != base(&outputs[at]));
    first.is_some()
        && outputs.iter().all(|output| shape(output) == first)
        && own.iter().all(|input| input.as_constant().is_some() || shape(input) == first)
        && tables.iter().zip(&program.tables).all(|(view, table)| shape(view).is_some_and(|it| it.len() == table.rank))
        && (0..outputs.len()).all(apart)
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
    let (outputs, inputs) = operands.split_at(program.outputs);
    let (own, tables) = inputs.split_at(program.inputs);
    let lines = |operand: &Operand| Lines::new(batch, *operand);
    let outputs: Vec<Lines> = outputs.iter().map(lines).collect::<Option<_>>()?;
    let (total, len) = (outputs[0].count() * outputs[0].len, outputs[0].len);
    if total == 0 {
        return None;
    }
    let mut writer = Writer::new(variant, is_wide(batch, operands));
    let (index, all, row) = (writer.index(), writer.numbers.text(total), writer.numbers.text(len));
    let [given_up, late] = late(&mut writer, instr, program);
    let mut body = format!(
        "const {index} u = BH_INDEX;\nif (u >= {all}) return;\n{given_up}const {index} line = u / {row}, at = u % {row};\n"
    );
    for (register, (operand, &dtype)) in own.iter().zip(program.input_types()).enumerate() {
        let element = match operand.as_constant() {
            Some(constant) => writer.constant(dtype, ConstantRef::Batch(constant)),
            None => {
                let input = lines(operand)?;
                body += &input.begin(&mut writer, "line", &format!("i{register}"));
                input.element(&mut writer, &format!("i{register}"), "at", false)
            }
        };
        body += &format!("{} {} = {element};\n", variable_type(dtype), variable(register));
    }
    let tables: Option<Vec<Known>> =
        tables.iter().zip(&program.tables).map(|(&view, table)| Known::new(batch, view, table)).collect();
    let tables = tables?;
    let load = &mut |load: &Load, target: &str, subscripts: &[String]| {
        tables[usize::from(load.table)].element(&mut writer, (instr, program), load, target, subscripts)
    };
    body += &program.kernel_text(&mut Around { load, late });
    for (at, output) in outputs.iter().enumerate() {
        body += &output.begin(&mut writer, "line", &format!("o{at}"));
        let element = output.element(&mut writer, &format!("o{at}"), "at", true);
        body += &format!("{element} = {};\n", variable(program.inputs + at));
    }
    let groups = (total as u64).div_ceil(target.group as u64) as usize;
    Some(writer.finish(target, groups, target.group, &body))
}

/// Statements that end an element if one was noted whose loops have too many turns, and those that note such; nothing for
/// programs without loops.
fn late(writer: &mut Writer, instr: u32, program: &Program) -> [String; 2] {
    if !program.has_loops() {
        return [String::new(), String::new()];
    }
    let text = format!("{}: a loop does not seem to end for some elements", program.name);
    let failure = writer.failure(instr, Why::Method(text));
    let notes = writer.buffer(KernelMemory::Failures, DType::I32, true);
    let gives_up = format!("if (*(volatile BH_GLOBAL int *)({notes} + {}) != 0) return;\n", failure * NOTE);
    let noted = note("true", &notes, failure, "turns");
    [gives_up, noted + "return;\n"]
}

/// A table of a call.
struct Known {
    place: KernelMemory,
    dtype: DType,
    start: i64,
    shape: Vec<i64>,
    stride: Vec<i64>,
}

impl Known {
    fn new(batch: &BatchRef<'_>, operand: Operand, table: &Table) -> Option<Known> {
        let view = operand.as_view()?;
        let record = &batch.views[view as usize];
        let (shape, stride) = (batch.shape(view).to_vec(), batch.stride(view).to_vec());
        Some(Known {
            place: KernelMemory::Of(BufferRef::Base(record.base)),
            dtype: table.dtype,
            start: record.start,
            shape,
            stride,
        })
    }

    /// Statements that give a variable an element; items whose element is not there note it and end.
    fn element(
        &self,
        writer: &mut Writer,
        (instr, program): (u32, &Program),
        load: &Load,
        target: &str,
        subscripts: &[String],
    ) -> String {
        let (index, mut text, mut terms) = (writer.index(), "{\n".to_owned(), Vec::new());
        for (dimension, ((subscript, &extent), &stride)) in
            subscripts.iter().zip(&self.shape).zip(&self.stride).enumerate()
        {
            let why = program.out_of_range(load.table, dimension, "{}", extent);
            let failure = writer.failure(instr, Why::Method(why));
            let notes = writer.buffer(KernelMemory::Failures, DType::I32, true);
            let (name, extent) = (format!("s{dimension}"), writer.numbers.text(extent));
            text += &format!("const long {name} = {subscript} < 0 ? {subscript} + {extent} : {subscript};\n");
            text += &format!(
                "if ((ulong){name} >= (ulong){extent}) {{\n{}return;\n}}\n",
                note("true", &notes, failure, subscript)
            );
            terms.push((stride, format!("({index}){name}")));
        }
        let buffer = writer.buffer(self.place, self.dtype, false);
        text + &format!("{target} = {buffer}[{}];\n}}\n", writer.numbers.address(self.start, &terms))
    }
}
