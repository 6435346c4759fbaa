//! Random sums at indices, of whole numbers whose order does not matter and of others: few elements that groups have sums of, and many;
//! negative indices, results backward and with gaps. The interpreter says what they should be, to the last bit.

use crate::support;

use bh_bytecode::random::{Program, Rng};
use bh_bytecode::{Base, Batch, DType, Instr, Opcode, Operand, View, base_flags};
use bh_tests::data::{Values, fill};
use bh_tests::run;
use support::{alone, count, load_with_groups};

const TYPES: [DType; 6] = [DType::I32, DType::U32, DType::I64, DType::U64, DType::I16, DType::F64];

/// An array of the program's, as a line of elements this far apart.
fn line(program: &mut Program, rng: &mut Rng, dtype: DType, len: i64, step: i64, values: Values) -> Operand {
    let (id, elements) = (program.batch.bases.len() as u64 + 1, (len * step.abs()).max(1));
    program.memory.insert(id, fill(rng, dtype, elements, values));
    let base = program.batch.push_base(Base { flags: base_flags::LIVE_OUT, ..Base::new(id, dtype, elements) });
    let start = if step < 0 { (1 - len) * step } else { 0 };
    Operand::view(program.batch.push_view(base, &View::new(start, &[len], &[step]).unwrap()))
}

fn program(seed: u64) -> (Program, String) {
    let mut rng = Rng::new(seed);
    let dtype = TYPES[seed as usize % TYPES.len()];
    // Local memory has room for 8192 numbers of 32 bits.
    let elements = [1, 7, 300, 4000, 9000, 20_000][rng.below(6)];
    let indices = [50, 3000, 40_000][rng.below(3)];
    let mut program = Program { batch: Batch::default(), memory: Default::default() };
    let step = [1, 2, -1][rng.below(3)];
    let out = line(&mut program, &mut rng, dtype, elements, step, Values::Whole);
    let values = if dtype == DType::F64 { Values::Whole } else { Values::Wild };
    let value = line(&mut program, &mut rng, dtype, indices, 1, values);
    let index = line(&mut program, &mut rng, DType::I64, indices, 1, Values::Indices(elements));
    program.batch.push_instr(Instr::new(Opcode::ScatterAdd, &[out, value, index]));
    (program, format!("seed {seed}: {indices} {dtype} in {elements}, step {step}"))
}

#[test]
fn random_sums_at_indices_equal_the_oracle() {
    let _alone = alone();
    let programs = std::env::var("BH_TEST_PROGRAMS").map_or(18, |text| text.parse().unwrap());
    for (group, specialise) in [(16, "on"), (256, "off")] {
        let keys = format!("specialise = '{specialise}'\ncache_dir = ''\nplacement = 'device'");
        let Some(mut stack) = load_with_groups(group, "'opencl'", &keys) else { return };
        for seed in 0..programs {
            let (program, what) = program(seed);
            let memory = run::run(&mut stack, &program).unwrap_or_else(|error| panic!("{what}: {error}"));
            let outcome = program.oracle().unwrap().check(&program.batch, &memory);
            outcome.unwrap_or_else(|why| panic!("groups of {group}, {what}: {why}"));
        }
        assert!(count(&stack, "kernels") >= programs);
    }
}
