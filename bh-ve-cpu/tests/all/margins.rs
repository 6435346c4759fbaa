//! What a rename leaves unwritten at the ends of lines is copied with them: the results equal the oracle's, however lines
//! are shared out.

use crate::support;

use bh_bytecode::batch::base_flags;
use bh_bytecode::interp::Memory;
use bh_bytecode::random::Program;
use bh_bytecode::{Base, Batch, DType, Instr, Opcode, Operand, View, text};
use bh_core::Component;
use bh_fuser::{Algorithm, Options, Partitioner};
use support::Driver;
use support::chains::{Dice, stencil_chain};

fn check(driver: &mut Driver, program: &Program) -> Result<(), String> {
    let oracle = program.oracle().map_err(|error| error.to_string())?;
    let options = Options { algorithm: Algorithm::Greedy, rename_percent: 400, ..Options::default() };
    let batch = program.batch.as_ref();
    let partition = Partitioner::default().partition(&batch, &options);
    let actual = driver.run_on(&partition.apply(&batch), &program.memory).map_err(|error| error.to_string())?;
    oracle.check(&program.batch, &actual)
}

fn drivers() -> Vec<Driver> {
    let driver = |threads: usize, keys: &[(&str, &str)]| {
        let mut driver = Driver::new(&[&[("threads", "1"), ("windows", "off")], keys].concat()).unwrap();
        driver.engine.message(&format!("threads {threads}")).unwrap();
        driver
    };
    vec![driver(1, &[("jit", "off")]), driver(3, &[("jit", "off")]), driver(2, &[("jit", "on")])]
}

fn compare(drivers: &mut [Driver], program: &Program, what: &str) {
    for (index, driver) in drivers.iter_mut().enumerate() {
        if let Err(difference) = check(driver, program) {
            panic!("{what}, driver {index}: {difference}\n{}", text::print(&program.batch.as_ref()));
        }
    }
}

#[test]
fn random_steps_of_grids_equal_the_oracle() {
    let mut drivers = drivers();
    for seed in 0..1200 {
        let mut dice = Dice(seed ^ 991);
        let mut shape: Vec<i64> = (0..dice.pick(1, 3)).map(|_| dice.pick(3, 9)).collect();
        shape.push(dice.pick(50, 90));
        let program = stencil_chain(seed, &shape, dice.pick(2, 6) as usize);
        compare(&mut drivers, &program, &format!("seed {seed}"));
    }
    for driver in &drivers {
        assert!(driver.counter("margins") > 100, "{} margins", driver.counter("margins"));
    }
}

/// A grid whose inside becomes a function of neighbours; `wide` elements at each end of a line stay, and
/// one at each end of the other dimensions. `summed` asks for the sum of what is written.
fn step(dtype: DType, shape: &[i64], wide: i64, summed: bool) -> Program {
    let (mut batch, mut memory) = (Batch::default(), Memory::new());
    let len: i64 = shape.iter().product();
    let base = batch.push_base(Base { flags: base_flags::LIVE_OUT, ..Base::new(1, dtype, len) });
    memory.insert(1, (0..len as usize * dtype.size()).map(|byte| (byte % 61) as u8).collect());
    let strides: Vec<i64> = (0..shape.len()).map(|axis| shape[axis + 1..].iter().product()).collect();
    let (last, outer) = (shape.len() - 1, &shape[..shape.len() - 1]);
    let mut inside: Vec<i64> = outer.iter().map(|extent| extent - 2).collect();
    inside.push(shape[last] - 2 * wide);
    let start: i64 = strides[..last].iter().sum::<i64>() + wide;
    let flags = base_flags::BORN | base_flags::DIES;
    let (count, rank) = (inside.iter().product(), inside.len());
    let sum = batch.push_base(Base { flags, ..Base::new(2, dtype, count) });
    let dense: Vec<i64> = (0..rank).map(|axis| inside[axis + 1..].iter().product()).collect();
    let mut view = |base, start, strides: &[i64]| {
        Operand::view(batch.intern_view(base, &View::new(start, &inside, strides).unwrap()))
    };
    let [out, left, below] = [0, -1, strides[0]].map(|by| view(base, start + by, &strides));
    let sum_view = view(sum, 0, &dense);
    batch.push_instr(Instr::new(Opcode::BitwiseXor, &[sum_view, left, below]));
    batch.push_instr(Instr::new(Opcode::Copy, &[out, sum_view]));
    if summed {
        let flags = base_flags::BORN | base_flags::LIVE_OUT;
        let total = batch.push_base(Base { flags, ..Base::new(3, dtype, 1) });
        let total = Operand::view(batch.intern_view(total, &View::new(0, &[], &[]).unwrap()));
        let all = (1 << rank) - 1;
        batch.push_instr(Instr { param: all, ..Instr::new(Opcode::AddReduce, &[total, sum_view]) });
    }
    let whole = Operand::view(batch.intern_view(sum, &View::new(0, &[count], &[1]).unwrap()));
    batch.push_instr(Instr::new(Opcode::Discard, &[whole]));
    Program { batch, memory }
}

#[test]
fn margins_of_all_widths_are_copied() {
    let mut drivers = drivers();
    for dtype in [DType::U8, DType::I16, DType::I32, DType::U64] {
        for wide in [1, 2, 3, 8, 9, 70] {
            for shape in [&[7, 50 + 2 * wide][..], &[4, 5, 49 + 2 * wide], &[4, 200 + 2 * wide]] {
                compare(&mut drivers, &step(dtype, shape, wide, false), &format!("{dtype}, {shape:?}, {wide}"));
            }
        }
    }
    // Wider ones than a cache line are copied afterwards.
    let margins = drivers[0].counter("margins");
    let of_a_line =
        |bytes: &i64| -> u64 { [1, 2, 3, 8, 9, 70].iter().filter(|wide| *wide * bytes <= 64).count() as u64 };
    assert_eq!(margins, 2 * 3 * [1, 2, 4, 8].iter().map(of_a_line).sum::<u64>());
}

#[test]
fn margins_are_copied_once_whoever_takes_the_lines() {
    let mut drivers = drivers();
    // Many lines, so many that go in tiles, and lines so few that their parts are shared out.
    for shape in [&[5000, 200][..], &[80, 100, 120], &[5, 300_000]] {
        for summed in [false, true] {
            compare(&mut drivers, &step(DType::U64, shape, 1, summed), &format!("{shape:?}, summed: {summed}"));
        }
    }
    // The sum of long rows is folded in parts of them.
    assert_eq!(drivers[0].counter("margins"), 2 * 3 + 2 * 2);
}
