//! Scalar programs as vector code: each lane is an element, and goes its own way under a mask. Branches that no lane takes are
//! jumped over, and loops end when their last lane leaves.

mod flow;
mod operation;
mod scope;

use crate::builder::{Builder, Element, Kind, Phi, Value};
use crate::kernel::set_attributes;
use bh_bytecode::DType;
use bh_jit_abi::{Function, Level, TURNS_AT};
use bh_scalar::Program;
use flow::{Flow, Mask, State};
use inkwell::IntPredicate as Int;
use inkwell::context::Context;
use inkwell::module::Module;
use operation::{Operations, in_registers};

/// Lanes: vectors of 64-bit elements are two registers, so that a chain of operations waits for half as long.
fn lanes(level: Level) -> u16 {
    match level {
        Level::Avx512 => 16,
        Level::Avx2 => 8,
    }
}

/// Builds the module of a program, and lists the primitives that it calls. An error says what cannot be compiled.
pub(crate) fn build<'c>(
    context: &'c Context,
    level: Level,
    program: &Program,
) -> Result<(Module<'c>, Vec<Option<Function>>), String> {
    if program.registers.iter().any(|dtype| dtype.is_complex()) {
        return Err("programs of complex numbers are not compiled".into());
    }
    let b = Builder::new(context, "kernel");
    set_attributes(&b, level);
    let width = lanes(level);
    let call = b.argument();
    let field = |at: i64, kind| b.load(kind, b.byte(call, b.index(8 * at)), 8);
    let count = field(1, Kind::I64);
    let [slots, functions, scratch] = [3, 8, 9].map(|at| field(at, Kind::POINTER));
    let places: Vec<Value> = (0..program.inputs + program.outputs)
        .map(|at| b.load(Kind::POINTER, b.byte(slots, b.index(8 * at as i64)), 8))
        .collect();
    let probe = Builder::new(context, "probe");
    let operations = Operations::new(&b, &probe, (level, width), program, functions, scratch);
    let [turn, exit] = b.blocks(["elements", "exit"]);
    let entry = b.current();
    let none = b.index(0);
    b.branch(b.compare(Int::SGT, count, none), (turn, exit));
    b.begin(turn);
    let first: Phi = b.phi(Kind::I64, &[(none, entry)]);
    let left = b.broadcast(b.sub(count, first.value), width);
    let tail = b.compare(Int::SLT, b.numbers(Element::I64, 0..i64::from(width)), left);
    let mut registers: Vec<Value> =
        program.registers.iter().map(|dtype| b.zero(Kind::registers(*dtype, width))).collect();
    for (register, &dtype) in program.input_types().iter().enumerate() {
        let address = b.element(places[register], dtype, first.value);
        let loaded = b.load_masked(Kind::memory(dtype, width), address, dtype.size(), tail);
        registers[register] = in_registers(&b, dtype, loaded);
    }
    let mut flow = Flow::new(&b, program, operations, (tail, b.byte(scratch, b.index(TURNS_AT as i64))));
    let mut state = State { registers, active: Mask::All, exits: Vec::new() };
    flow.list(&mut state, &program.body)?;
    for (at, &dtype) in program.output_types().iter().enumerate() {
        let register = program.inputs + at;
        let address = b.element(places[register], dtype, first.value);
        b.store_masked(in_memory(&b, dtype, state.registers[register]), address, dtype.size(), tail);
    }
    let next = b.add(first.value, b.index(width.into()));
    first.add(next, b.current());
    b.branch(b.compare(Int::SLT, next, count), (turn, exit));
    b.begin(exit);
    b.end();
    let functions = flow.operations.functions();
    Ok((b.finish(), functions))
}

/// A vector as it lies in memory.
fn in_memory<'c>(b: &Builder<'c>, dtype: DType, value: Value<'c>) -> Value<'c> {
    if dtype == DType::Bool { b.extend(value, Element::I8) } else { value }
}

#[cfg(test)]
mod tests {
    use bh_bytecode::DType;
    use bh_jit_abi::{Level, Request};
    use bh_scalar::random::{STEPS, program};

    #[test]
    fn loops_are_registers_and_a_mask() {
        let assembly = crate::assembly(&Request::of_program(Level::Avx512, STEPS.into())).unwrap();
        assert!(assembly.contains("kortest") || assembly.contains("ktest"), "{assembly}");
        assert!(!assembly.contains("div"), "{assembly}");
    }

    #[test]
    fn random_programs_are_code() {
        let types = [DType::F64, DType::I64, DType::Bool, DType::F32, DType::I32, DType::U8, DType::U64];
        for seed in 0..60 {
            let text = program(seed, &[DType::F64, DType::I64], &[DType::F64, DType::Bool], &types).to_string();
            for level in [Level::Avx2, Level::Avx512] {
                crate::compile(&Request::of_program(level, text.clone())).unwrap_or_else(|why| panic!("{why}: {text}"));
            }
        }
    }
}
