//! Random scalar programs: each stack agrees with the interpreter, in all layouts.

use bh_bytecode::interp::{Interpreter, Memory};
use bh_bytecode::random::Program;
use bh_bytecode::{Base, Batch, Constant, DType, Extension, Instr, Opcode, Operand, View, base_flags};
use bh_core::stack::Stack;
use bh_scalar::random::{EXTENT, Numbers, TYPES, reading};
use bh_scalar::{ScalarPrograms, Table};
use bh_tests::{run, stacks};
use std::io::Write;

/// Programs on each stack. `BH_TEST_PROGRAMS` sets their number.
const PROGRAMS: u64 = 60;
const STACKS: [&str; 11] = [
    "cpu",
    "cpu-linear",
    "cpu-plain",
    "direct",
    "shadow",
    "jit",
    "cluster-2",
    "cluster-3",
    "cluster-7",
    "opencl",
    "opencl-only",
];
const METHOD: Opcode = Opcode(Opcode::FIRST_EXTENSION);

/// A view of a shape on a new base, in one of several layouts, and the base's number of elements.
fn layout(numbers: &mut Numbers, shape: &[i64], writes: bool) -> (View, i64) {
    let (rows, columns) = (shape[0], shape[1]);
    let (start, stride) = match numbers.below(if writes { 4 } else { 6 }) {
        0 | 1 => (0, [columns, 1]),
        2 => (3, [1, rows]),
        3 => (1, [2 * columns + 1, 2]),
        4 => (0, [0, 1]),
        _ => (2, [0, 0]),
    };
    let len = start + (rows.max(1) - 1) * stride[0] + (columns.max(1) - 1) * stride[1] + 1;
    (View::new(start, shape, &stride).unwrap(), len)
}

/// A base of random numbers under a view.
fn data(
    batch: &mut Batch,
    memory: &mut Memory,
    numbers: &mut Numbers,
    dtype: DType,
    (view, len): (View, i64),
) -> Operand {
    let mut base = Base::new(batch.bases.len() as u64 + 1, dtype, len);
    base.flags = base_flags::LIVE_OUT;
    let elements = (0..len).map(|_| numbers.constant(dtype));
    let bytes = elements.flat_map(|constant| constant.bytes()[..dtype.size()].to_vec()).collect();
    memory.insert(base.id, bytes);
    let base = batch.push_base(base);
    Operand::view(batch.push_view(base, &view))
}

/// An array between two operations.
fn between(batch: &mut Batch, dtype: DType, shape: &[i64]) -> Operand {
    let mut base = Base::new(batch.bases.len() as u64 + 1, dtype, shape.iter().product());
    base.flags = base_flags::BORN | base_flags::DIES;
    let base = batch.push_base(base);
    Operand::view(batch.push_view(base, &View::contiguous(shape).unwrap()))
}

/// A batch that applies a random program, in some cases between elementwise operations, and its data.
fn case(seed: u64) -> (Program, String) {
    let mut numbers = Numbers::new(seed ^ 0x5ca1a);
    let pick = |numbers: &mut Numbers, most: usize| -> Vec<DType> {
        (0..1 + numbers.below(most)).map(|_| TYPES[numbers.below(TYPES.len())]).collect()
    };
    let (inputs, outputs) = (pick(&mut numbers, 3), pick(&mut numbers, 3));
    let table = |at: usize, numbers: &mut Numbers| Table {
        name: format!("table{at}"),
        dtype: TYPES[numbers.below(TYPES.len())],
        rank: 1 + numbers.below(2),
    };
    let tables: Vec<Table> = (0..numbers.below(3)).map(|at| table(at, &mut numbers)).collect();
    let text = reading(seed, &inputs, &outputs, &TYPES, tables.clone()).to_string();
    let shape = [1 + numbers.below(40) as i64, 1 + numbers.below(60) as i64];
    let (mut batch, mut memory, mut operands) = (Batch::default(), Memory::new(), Vec::new());
    for (at, &dtype) in outputs.iter().chain(&inputs).enumerate() {
        let place = layout(&mut numbers, &shape, at < outputs.len());
        operands.push(data(&mut batch, &mut memory, &mut numbers, dtype, place));
    }
    for table in &tables {
        let rows = if table.rank == 2 { EXTENT + numbers.below(3) as i64 } else { 1 };
        let columns = EXTENT + numbers.below(9) as i64;
        let place = layout(&mut numbers, &[rows, columns], false);
        let (whole, len) = place;
        let view = if table.rank == 2 {
            whole
        } else {
            View::new(whole.start(), &whole.shape()[1..], &whole.stride()[1..]).unwrap()
        };
        operands.push(data(&mut batch, &mut memory, &mut numbers, table.dtype, (view, len)));
    }
    let around = numbers.below(2) == 0;
    let sum = |dtype: DType| if dtype == DType::Bool { Opcode::LogicalXor } else { Opcode::Add };
    let (mut drops, first) = (Vec::new(), outputs.len());
    if around {
        let made = between(&mut batch, inputs[0], &shape);
        let other = if numbers.below(2) == 0 {
            operands[first]
        } else {
            Operand::constant(batch.push_constant(numbers.constant(inputs[0])))
        };
        batch.push_instr(Instr::new(sum(inputs[0]), &[made, operands[first], other]));
        operands[first] = made;
        drops.push(made);
    }
    let (result, whole) = (operands[0], between(&mut batch, outputs[0], &shape));
    if around {
        operands[0] = whole;
        drops.push(whole);
    }
    let mut instr = Instr::new(METHOD, &operands);
    instr.outputs = outputs.len() as u8;
    batch.push_instr(instr);
    if around {
        batch.push_instr(Instr::new(sum(outputs[0]), &[result, whole, whole]));
    }
    for operand in drops {
        let mut drop = Instr::new(Opcode::Discard, &[operand]);
        drop.outputs = 0;
        batch.push_instr(drop);
    }
    let (name, name_len) = batch.push_string(&text);
    batch.extensions.push(Extension { opcode: METHOD, reserved: 0, name, name_len });
    (Program { batch, memory }, text)
}

/// Are two elements equal, or both NaN?
fn same(dtype: DType, one: &[u8], other: &[u8]) -> bool {
    let part = dtype.real_part();
    let is_nan = |bytes: &[u8]| part.is_float() && Constant::from_bytes(part, bytes).to::<f64>().is_nan();
    let mut parts = one.chunks(part.size()).zip(other.chunks(part.size()));
    parts.all(|(one, other)| one == other || is_nan(one) && is_nan(other))
}

#[test]
fn stacks_do_what_programs_say() {
    let programs = std::env::var("BH_TEST_PROGRAMS").map_or(PROGRAMS, |text| text.parse().unwrap());
    let mut stacks: Vec<Stack> = Vec::new();
    for name in STACKS {
        match stacks::load(name) {
            Ok(stack) => stacks.push(stack),
            Err(error) => {
                assert!(name.starts_with("opencl") && error.to_string().contains("OpenCL"), "{name}: {error}")
            }
        }
    }
    for seed in 0..programs {
        let (program, text) = case(seed);
        let mut wanted = program.memory.clone();
        let mut interpreter =
            Interpreter { memory: &mut wanted, extensions: Some(&mut ScalarPrograms), magnitudes: None };
        interpreter.execute(&program.batch.as_ref()).unwrap();
        for stack in &mut stacks {
            let name = stack.name().to_owned();
            assert!(stack.extmethod(&text, METHOD).unwrap(), "{name} does not know {text}");
            let found =
                run::run(stack, &program).unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}\n{text}"));
            for base in program.batch.bases.iter().filter(|base| base.has(base_flags::LIVE_OUT)) {
                let size = base.dtype().size();
                let (one, other) = (found.get(base.id).unwrap(), wanted.get(base.id).unwrap());
                let differs = one.chunks(size).zip(other.chunks(size)).position(|(a, b)| !same(base.dtype(), a, b));
                assert_eq!(differs, None, "{name}, seed {seed}, base {}\n{text}", base.id);
            }
        }
    }
    let names: Vec<&str> = stacks.iter().map(Stack::name).collect();
    writeln!(std::io::stdout(), "{programs} scalar programs on {}", names.join(", ")).unwrap();
    let compiled = stacks.iter().find(|stack| stack.name() == "jit").unwrap().stats().get("ve-cpu.kernels compiled");
    assert!(compiled.is_none_or(|count| count > 0), "nothing was compiled");
}

/// A stack's error for a program on five elements 0, 1, … and a table of 2 × 5 elements.
fn failure(name: &str, text: &str) -> Option<String> {
    let mut stack = match stacks::load(name) {
        Ok(stack) => stack,
        Err(error) if error.to_string().contains("OpenCL") => return None,
        Err(error) => panic!("{name}: {error}"),
    };
    assert!(stack.extmethod(text, METHOD).unwrap());
    let (mut batch, mut memory, mut operands) = (Batch::default(), Memory::new(), Vec::new());
    for shape in [&[5][..], &[5], &[2, 5]] {
        let view = View::contiguous(shape).unwrap();
        let mut base = Base::new(batch.bases.len() as u64 + 1, DType::I64, view.len());
        base.flags = base_flags::LIVE_OUT;
        memory.insert(base.id, (0..view.len()).flat_map(i64::to_ne_bytes).collect());
        let base = batch.push_base(base);
        operands.push(Operand::view(batch.push_view(base, &view)));
    }
    batch.push_instr(Instr::new(METHOD, &operands));
    let (name, name_len) = batch.push_string(text);
    batch.extensions.push(Extension { opcode: METHOD, reserved: 0, name, name_len });
    Some(run::run(&mut stack, &Program { batch, memory }).err().map_or_else(String::new, |error| error.to_string()))
}

#[test]
fn subscripts_out_of_range_are_errors_with_the_name_of_the_array() {
    let text = "program f (i64) -> (i64) with (i64) reads (grid:i64:2) { r2 = multiply r0 i64:2; r1 = t0 i64:-1 r2; }";
    for name in STACKS {
        if let Some(error) = failure(name, text) {
            // Either of the two elements may be found first.
            let told = |index: i64| {
                error.contains(&format!("f: index {index} is out of range for dimension 1 of 'grid' of extent 5"))
            };
            assert!(told(6) || told(8), "{name}: {error}");
        }
    }
}

#[test]
fn devices_give_up_loops_without_an_end() {
    let text = "program f (i64) -> (i64) with (bool) reads (grid:i64:2) \
        { block { loop { r2 = equal r0 i64:3; if r2 { r1 = add r1 i64:1; } else { leave 0 } } } }";
    for name in ["opencl-only"] {
        if let Some(error) = failure(name, text) {
            assert!(error.contains("f: a loop does not seem to end for some elements"), "{name}: {error}");
        }
    }
}
