//! Random scalar programs: what each stack computes is what the interpreter says, wherever the operands lie.

use bh_bytecode::interp::{Interpreter, Memory};
use bh_bytecode::random::Program;
use bh_bytecode::{Base, Batch, Constant, DType, Extension, Instr, Opcode, Operand, View, base_flags};
use bh_core::stack::Stack;
use bh_scalar::ScalarPrograms;
use bh_scalar::random::{Numbers, program};
use bh_tests::{run, stacks};
use std::io::Write;

/// Programs on each stack. `BH_TEST_PROGRAMS` asks for another number.
const PROGRAMS: u64 = 60;
const TYPES: [DType; 7] = [DType::F64, DType::I64, DType::Bool, DType::F32, DType::I32, DType::U8, DType::U64];
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

/// A view of a shape on a base of its own, of one of several layouts, and the elements that the base needs.
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

/// A batch that applies a random program, and the data before it.
fn case(seed: u64) -> (Program, String) {
    let mut numbers = Numbers::new(seed ^ 0x5ca1a);
    let pick = |numbers: &mut Numbers, most: usize| -> Vec<DType> {
        (0..1 + numbers.below(most)).map(|_| TYPES[numbers.below(TYPES.len())]).collect()
    };
    let (inputs, outputs) = (pick(&mut numbers, 3), pick(&mut numbers, 3));
    let text = program(seed, &inputs, &outputs, &TYPES).to_string();
    let shape = [1 + numbers.below(40) as i64, 1 + numbers.below(60) as i64];
    let (mut batch, mut memory, mut operands) = (Batch::default(), Memory::new(), Vec::new());
    for (at, &dtype) in outputs.iter().chain(&inputs).enumerate() {
        let (view, len) = layout(&mut numbers, &shape, at < outputs.len());
        let mut base = Base::new(at as u64 + 1, dtype, len);
        base.flags = base_flags::LIVE_OUT;
        let elements = (0..len).map(|_| numbers.constant(dtype));
        let bytes = elements.flat_map(|constant| constant.bytes()[..dtype.size()].to_vec()).collect();
        memory.insert(base.id, bytes);
        let base = batch.push_base(base);
        operands.push(Operand::view(batch.push_view(base, &view)));
    }
    let mut instr = Instr::new(METHOD, &operands);
    instr.outputs = outputs.len() as u8;
    batch.push_instr(instr);
    let (name, name_len) = batch.push_string(&text);
    batch.extensions.push(Extension { opcode: METHOD, reserved: 0, name, name_len });
    (Program { batch, memory }, text)
}

/// Are two elements the same number, or none both?
fn same(dtype: DType, one: &[u8], other: &[u8]) -> bool {
    let is_nan = |bytes: &[u8]| dtype.is_float() && Constant::from_bytes(dtype, bytes).to::<f64>().is_nan();
    one == other || is_nan(one) && is_nan(other)
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
            for base in &program.batch.bases {
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
