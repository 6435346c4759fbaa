//! Scalar programs as vector code: each lane is an element, and goes its own way under a mask. Branches that no lane takes are
//! jumped over, and loops end when their last lane leaves.

mod flow;
mod lanes;
mod operation;
mod refill;
mod scope;
mod tables;
mod turns;

use crate::builder::{Builder, Element, Kind, Phi, Value};
use crate::function::set_attributes;
use crate::memory::{load_packed, pack, store_packed, unpack};
use bh_jit_abi::{Function, Level, TURNS_AT};
use bh_scalar::Program;
use flow::Flow;
use inkwell::IntPredicate as Int;
use inkwell::context::Context;
use inkwell::module::Module;
use lanes::{Mask, State};
use operation::Operations;
use refill::Path;
use tables::Tables;

/// Lanes: vectors of 64-bit elements are two registers, so that a chain of operations waits for half as long.
fn lanes(level: Level) -> u16 {
    (2 * level.bytes() / 8) as u16
}

/// Builds the module of a program, and lists the primitives that it calls. An error names the part that cannot be compiled.
pub(crate) fn build<'c>(
    context: &'c Context,
    level: Level,
    program: &Program,
) -> Result<(Module<'c>, Vec<Option<Function>>), String> {
    let b = Builder::new(context, "kernel");
    set_attributes(&b, level);
    let width = lanes(level);
    let call = b.argument();
    let field = |at: i64, kind| b.load(kind, b.byte(call, b.index(8 * at)), 8);
    let count = field(1, Kind::I64);
    let [slots, numbers, functions, scratch] = [3, 4, 8, 9].map(|at| field(at, Kind::POINTER));
    let places: Vec<Value> = (0..program.inputs + program.outputs)
        .map(|at| b.load(Kind::POINTER, b.byte(slots, b.index(8 * at as i64)), 8))
        .collect();
    let tables = Tables::new(&b, program, width, (slots, numbers, scratch));
    let probe = Builder::new(context, "probe");
    let operations = Operations::new(&b, &probe, (level, width), program, functions, scratch);
    let [some, exit] = b.blocks(["some", "exit"]);
    b.branch(b.compare(Int::SGT, count, b.index(0)), (some, exit));
    b.begin(some);
    let turns = b.byte(scratch, b.index(TURNS_AT as i64));
    let (operations, tables, first) = match Path::of(program) {
        Some(path) => turns::build(&b, program, path, (operations, tables), (&places, count, width, turns), exit)?,
        None => (operations, tables, b.index(0)),
    };
    let operations = in_order(&b, program, (operations, tables), (&places, count, width, turns), first)?;
    b.jump(exit);
    b.begin(exit);
    b.end();
    let functions = operations.functions();
    Ok((b.finish(), functions))
}

/// Builds the code for the elements from one on, vector by vector, behind the present block.
fn in_order<'a, 'c>(
    b: &'a Builder<'c>,
    program: &'a Program,
    parts: (Operations<'c>, Tables<'c>),
    (places, count, width, turns): (&[Value<'c>], Value<'c>, u16, Value<'c>),
    from: Value<'c>,
) -> Result<Operations<'c>, String> {
    let [turn, exit] = b.blocks(["elements", "done"]);
    let entry = b.current();
    b.jump(turn);
    b.begin(turn);
    let first: Phi = b.phi(Kind::I64, &[(from, entry)]);
    let left = b.broadcast(b.sub(count, first.value), width);
    let tail = b.compare(Int::SLT, b.numbers(Element::I64, 0..i64::from(width)), left);
    let mut registers: Vec<Value> =
        program.registers.iter().map(|dtype| b.zero(Kind::registers(*dtype, width))).collect();
    for (register, &dtype) in program.input_types().iter().enumerate() {
        let address = b.element(places[register], dtype, first.value);
        registers[register] = unpack(b, dtype, load_packed(b, dtype, address, width, Some(tail)));
    }
    let mut flow = Flow::new(b, program, parts, (tail, turns));
    let mut state = State { registers, active: Mask::All, exits: Vec::new() };
    flow.list(&mut state, &program.body)?;
    for (at, &dtype) in program.output_types().iter().enumerate() {
        let register = program.inputs + at;
        let address = b.element(places[register], dtype, first.value);
        store_packed(b, dtype, pack(b, dtype, state.registers[register]), address, Some(tail));
    }
    let next = b.add(first.value, b.index(width.into()));
    first.add(next, b.current());
    b.branch(b.compare(Int::SLT, next, count), (turn, exit));
    b.begin(exit);
    Ok(flow.operations)
}

#[cfg(test)]
mod tests {
    use bh_bytecode::DType;
    use bh_jit_abi::Request;
    use bh_scalar::Table;
    use bh_scalar::random::reading;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn loops_are_registers_and_a_mask() {
        let assembly =
            crate::assembly(&Request::of_program(bh_jit_abi::Level::Avx512, bh_scalar::random::STEPS.into())).unwrap();
        assert!(assembly.contains("kortest") || assembly.contains("ktest"), "{assembly}");
        assert!(!assembly.contains("div"), "{assembly}");
    }

    #[test]
    fn random_programs_are_code() {
        let types = bh_scalar::random::TYPES;
        for seed in 0..60 {
            let table = |at: usize, rank| Table {
                name: "table".into(),
                dtype: types[(seed as usize + at) % types.len()],
                rank,
            };
            let tables = vec![table(0, 1), table(4, 2)];
            for tables in [tables, Vec::new()] {
                let program = reading(seed, &[DType::F64, DType::I64], &[DType::F64, DType::Bool], &types, tables);
                let text = program.to_string();
                for &level in crate::LEVELS {
                    let built = crate::compile(&Request::of_program(level, text.clone()));
                    built.unwrap_or_else(|why| panic!("{why}: {text}"));
                }
            }
        }
    }
}
