//! Operations that ask for the same bits everywhere: on all instruction sets, compiled or not, for any number of threads, and for
//! any share of the kept axes.

use crate::support;

use bh_bytecode::batch::base_flags;
use bh_bytecode::compare::{Tolerance, compare};
use bh_bytecode::interp::Memory;
use bh_bytecode::random::{self, program};
use bh_bytecode::{AxisOrder, Base, Batch, DType, Instr, Opcode, Operand, View, text};
use bh_fuser::Partitioner;
use bh_ve_cpu::simd::Isa;
use support::{Driver, sample, singletons};

/// One program in this many is compiled, too. Random programs of `bh-ve-cpu-jit` compare all that it compiles with blocks.
const COMPILED: u64 = 4;

/// Engines of all instruction sets, with and without compiled kernels, on several numbers of threads.
fn engines() -> Vec<(String, Driver)> {
    let one = |(isa, jit, threads): (Isa, &str, &str)| {
        let keys = [("threads", threads), ("isa", isa.name()), ("jit", jit), ("jit_cache_dir", "")];
        (format!("{isa}, jit {jit}, {threads} threads"), Driver::new(&keys).unwrap())
    };
    let blocks = Isa::available().map(|isa| (isa, "off", "2"));
    let best = Isa::detect();
    blocks.chain([(best, "on", "1"), (best, "off", "5")]).map(one).collect()
}

/// Runs programs on all engines, and compares what they leave with what the first one leaves.
fn agree(options: &random::Options, seeds: std::ops::Range<u64>) {
    let mut engines = engines();
    for seed in sample(seeds) {
        let program = program(seed, options);
        let tables = program.batch.as_ref();
        let partition = Partitioner::default().partition(&tables, &bh_fuser::Options::default());
        let mut wanted: Option<Memory> = None;
        for (name, engine) in &mut engines {
            // The compiler takes far longer than all that runs.
            if name.contains("jit on") && seed % COMPILED != 0 {
                continue;
            }
            for batch in [&singletons(&program.batch).as_ref(), &partition.apply(&tables)] {
                let found = engine.run_on(batch, &program.memory).unwrap();
                let first = wanted.get_or_insert_with(|| found.clone());
                for base in program.batch.bases.iter().filter(|base| base.has(base_flags::LIVE_OUT)) {
                    let (Some(a), Some(b)) = (first.get(base.id), found.get(base.id)) else { continue };
                    if let Err(difference) = compare(base.dtype(), a, b, &Tolerance::Exact) {
                        panic!("{name}, seed {seed}, identity {}: {difference}\n{}", base.id, text::print(&tables));
                    }
                }
            }
        }
    }
}

#[test]
fn engines_agree_on_small_programs() {
    agree(&random::Options { same_bits: true, ..random::Options::default() }, 0..400);
}

#[test]
fn engines_agree_on_larger_arrays() {
    let options = random::Options {
        same_bits: true,
        max_elements: 40_000,
        max_instrs: 12,
        max_rank: 4,
        ..random::Options::default()
    };
    agree(&options, 400..480);
}

/// Numbers whose sums round.
fn numbers(count: i64) -> Vec<u8> {
    let number = |at: i64| ((at * 7919 % 10_007) as f64 / 3.0).sin() * 10f64.powi((at % 7) as i32 - 3);
    (0..count).flat_map(|at| number(at).to_ne_bytes()).collect()
}

/// The view of the part of one that has index `at` along an axis.
fn part(view: &View, axis: usize, at: i64) -> View {
    view.slice(axis, Some(at), Some(at + 1), 1).unwrap()
}

#[test]
fn shares_of_the_kept_axes_have_the_bits_of_the_whole() {
    let mut engine = Driver::new(&[("threads", "2")]).unwrap();
    let shapes: [&[i64]; 8] =
        [&[3000, 12], &[12, 3000], &[700, 40], &[2, 600, 9], &[9, 5, 300], &[20, 70, 30], &[5000, 8], &[3, 20_000]];
    for shape in shapes {
        let rank = shape.len();
        for folded in 1..(1u16 << rank) - 1 {
            let orders = [AxisOrder::c_order(rank), AxisOrder::of_axes(&reversed(rank)).unwrap()];
            for (order, opcode) in
                orders.into_iter().flat_map(|it| [(it, Opcode::AddReduce), (it, Opcode::MultiplyReduce)])
            {
                let order = order.fixed_tree(shape, folded, 8).code();
                for axis in (0..rank).filter(|axis| folded >> axis & 1 == 0) {
                    check(&mut engine, shape, (opcode, folded, order), axis);
                }
            }
        }
    }
}

/// The axes from the last one to the first.
fn reversed(rank: usize) -> Vec<(u8, bool)> {
    (0..rank as u8).rev().map(|axis| (axis, false)).collect()
}

/// Compares a fold with the folds of its parts along a kept axis.
fn check(engine: &mut Driver, shape: &[i64], (opcode, folded, order): (Opcode, u16, u16), axis: usize) {
    let kept: Vec<i64> = (0..shape.len()).filter(|at| folded >> at & 1 == 0).map(|at| shape[at]).collect();
    let place = (0..axis).filter(|at| folded >> at & 1 == 0).count();
    let (input, output) = (View::contiguous(shape).unwrap(), View::contiguous(&kept).unwrap());
    let mut batch = Batch::default();
    let from = batch.push_base(Base::new(1, DType::F64, input.len()));
    let [whole, parts] = [2, 3].map(|id| {
        let mut base = Base::new(id, DType::F64, output.len());
        base.flags = base_flags::BORN | base_flags::LIVE_OUT;
        batch.push_base(base)
    });
    let pieces = (0..shape[axis]).map(|at| (parts, part(&input, axis, at), part(&output, place, at)));
    for (to, input, output) in std::iter::once((whole, input, output)).chain(pieces) {
        let (out, source) = (batch.push_view(to, &output), batch.push_view(from, &input));
        let instr = Instr::new(opcode, &[Operand::view(out), Operand::view(source)]);
        batch.push_instr(Instr { param: folded, order, ..instr });
    }
    let mut memory = Memory::new();
    memory.insert(1, numbers(input.len()));
    let found = engine.run_on(&singletons(&batch).as_ref(), &memory).unwrap();
    assert!(
        found.get(2) == found.get(3),
        "{opcode} of {shape:?} along {folded:#b}, order {order:#x}, parts of axis {axis}"
    );
}
