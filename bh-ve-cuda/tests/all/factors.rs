//! The compiler takes the texts of factors of matrices, in groups of few items, too: loops over what an item keeps then have many
//! turns, and a compiler that copied all of their bodies would not end.

use crate::texts::{load, none_is_refused};
use bh_bytecode::batch::Extension;
use bh_bytecode::random::Program;
use bh_bytecode::{Base, Batch, DType, Instr, Opcode, Operand, View, base_flags};
use bh_tests::run;

/// Rows of the matrices, and columns of those that are not square.
const ROWS: i64 = 100;
const COLUMNS: i64 = 20;

/// A call of a method on zeros, with outputs and inputs of these types and shapes.
fn call(name: &str, opcode: Opcode, outputs: &[(DType, &[i64])], inputs: &[(DType, &[i64])]) -> Program {
    let mut program = Program { batch: Batch::default(), memory: Default::default() };
    let (text, name_len) = program.batch.push_string(name);
    program.batch.extensions.push(Extension { opcode, reserved: 0, name: text, name_len });
    let mut operands = Vec::new();
    for (at, &(dtype, shape)) in outputs.iter().chain(inputs).enumerate() {
        let (id, elements) = (at as u64 + 1, shape.iter().product::<i64>());
        let is_output = at < outputs.len();
        let flags = base_flags::LIVE_OUT | if is_output { base_flags::BORN } else { 0 };
        let base = program.batch.push_base(Base { flags, ..Base::new(id, dtype, elements) });
        operands.push(Operand::view(program.batch.push_view(base, &View::contiguous(shape).unwrap())));
        if !is_output {
            program.memory.insert(id, vec![0; elements as usize * dtype.size()]);
        }
    }
    program.batch.push_instr(Instr { outputs: outputs.len() as u8, ..Instr::new(opcode, &operands) });
    program
}

#[test]
fn the_compiler_takes_factors_by_groups_of_any_size() {
    let (square, tall, triangle) = (&[ROWS, ROWS][..], &[ROWS, COLUMNS][..], &[COLUMNS, COLUMNS][..]);
    for (group, dtype) in [(1, DType::F64), (16, DType::F32), (256, DType::F64)] {
        let Some(mut stack) = load(&format!("group = {group}")) else { return };
        let calls = [
            ("lu", vec![(dtype, square), (DType::I64, &square[..1])], vec![(dtype, square)]),
            ("cholesky", vec![(dtype, square)], vec![(dtype, square)]),
            ("solve", vec![(dtype, tall)], vec![(dtype, square), (dtype, tall)]),
            ("qr", vec![(dtype, tall), (dtype, triangle)], vec![(dtype, tall)]),
        ];
        for (opcode, (name, outputs, inputs)) in (Opcode::FIRST_EXTENSION + 1..).map(Opcode).zip(calls) {
            assert!(stack.extmethod(name, opcode).unwrap(), "{name}");
            run::run(&mut stack, &call(name, opcode, &outputs, &inputs)).unwrap();
        }
        none_is_refused();
    }
}
