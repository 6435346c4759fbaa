//! Predictions: a batch's peak of arrays is known to the byte before it runs, that of methods as an upper limit.
//! Operations that cannot fit are refused before the first kernel, and a plan that does not fit is replaced by one that
//! does.

use bh_bytecode::compare::{Tolerance, compare};
use bh_bytecode::interp::Memory;
use bh_bytecode::random::{self, Program, Rng};
use bh_bytecode::{Base, Batch, Constant, DType, Extension, Instr, Opcode, Operand, View, base_flags};
use bh_core::abi::{capability, status};
use bh_core::stack::Stack;
use bh_tests::{run, stacks};
use std::sync::atomic::Ordering;

/// Programs for each stack; `BH_TEST_PROGRAMS` sets their number, `BH_TEST_FIRST` the first one.
const PROGRAMS: u64 = 250;
/// Runs of each program: its plan may change with repetition.
const TIMES: usize = 3;
/// The counter of the peak of arrays.
const PEAK: &str = "node.peak_bytes";

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// A stack with full fusion, and these lines of configuration.
fn configured(lines: &str) -> Stack {
    let text = format!("[stacks]\nit = ['filter', 'fuser', 'node', 've-cpu']\n{lines}\n");
    Stack::load(&stacks::from_text("predictions.toml", &text).unwrap(), Some("it")).unwrap()
}

fn counted(stack: &Stack, name: &str) -> u64 {
    stack.services().stats().snapshot().get(name).unwrap_or(0)
}

/// Bytes of arrays now.
fn in_use(stack: &mut Stack) -> u64 {
    let leaks = stack.message("leaks").unwrap();
    leaks.lines().last().unwrap().split(' ').nth(3).unwrap().parse().unwrap()
}

/// The prediction for a batch, and its measured peak, both beyond the existing arrays.
fn foretold_and_counted(stack: &mut Stack, batch: &Batch) -> (u64, u64) {
    let before = in_use(stack);
    let foretold = stack.predict(&batch.as_ref(), &[]).unwrap().peak_bytes;
    assert_eq!(in_use(stack), before, "what is foretold takes nothing");
    stack.services().stats().set(PEAK, before);
    let ticket = stack.execute(&batch.as_ref(), &[]).unwrap();
    stack.wait(ticket).unwrap();
    (foretold, counted(stack, PEAK) - before)
}

#[test]
fn predicted_peaks_are_the_counted_ones() {
    let named = ["cpu", "cpu-plain", "cpu-linear", "direct", "jit"].map(|name| (name, stacks::load(name).unwrap()));
    for (name, mut stack) in named.into_iter().chain([("of default planning", configured(""))]) {
        assert_ne!(stack.capabilities().flags & capability::PREDICTS, 0, "{name}");
        let (first, mut bytes) = (variable("BH_TEST_FIRST", 0), 0);
        for seed in first..first + variable("BH_TEST_PROGRAMS", PROGRAMS) {
            let program = random::program(seed, &random::Options::default());
            for time in 0..TIMES {
                let batch = run::bring(&mut stack, &program).unwrap();
                let (foretold, counted) = foretold_and_counted(&mut stack, &batch);
                assert_eq!(foretold, counted, "stack {name}, seed {seed}, time {time}");
                run::discard(&mut stack, &batch).unwrap();
                bytes += counted;
            }
        }
        assert!(bytes > 0, "{name}");
    }
}

/// The programs of the planning benchmarks: stencils, windows, factorisations, partial updates.
#[test]
fn predicted_peaks_of_long_programs_are_the_counted_ones() {
    for (stack, mut loaded) in [("cpu", stacks::load("cpu").unwrap()), ("of default planning", configured(""))] {
        let mut bytes = 0;
        for (name, make) in bh_planning::families::FAMILIES {
            let mut program = Program { batch: make(80), memory: Memory::new() };
            // Some are combined from others, without their lines.
            program.batch.origins.clear();
            program.batch.instrs.iter_mut().for_each(|instr| instr.origin = 0);
            let batch = run::bring(&mut loaded, &program).unwrap();
            let (foretold, counted) = foretold_and_counted(&mut loaded, &batch);
            assert_eq!(foretold, counted, "stack {stack}, {name}");
            run::discard(&mut loaded, &batch).unwrap();
            bytes += counted;
        }
        assert!(bytes > 0, "{stack}");
    }
}

/// For any limit, operations that do not fit are lost, and all else is right.
#[test]
fn limits_lose_only_what_does_not_fit() {
    let named = ["cpu", "cpu-plain", "cpu-linear", "direct"].map(|name| (name, stacks::load(name).unwrap()));
    let (mut lost, mut whole) = (0, 0);
    for (name, mut stack) in named {
        let first = variable("BH_TEST_FIRST", 0);
        for seed in first..first + variable("BH_TEST_PROGRAMS", PROGRAMS) {
            let options = random::Options { allow_inexact: false, max_rank: 4, ..random::Options::default() };
            let program = random::program(seed, &options);
            let right = program.oracle().unwrap().memory;
            let batch = run::bring(&mut stack, &program).unwrap();
            let most = stack.predict(&batch.as_ref(), &[]).unwrap().peak_bytes as usize;
            let services = stack.services().clone();
            services.memory().set_limit(services.memory().usage().in_use + Rng::new(seed).below(4 * most + 1024));
            let result = stack.execute(&batch.as_ref(), &[]).and_then(|ticket| stack.wait(ticket));
            services.memory().set_limit(usize::MAX);
            let mut missing = 0;
            for (index, base) in batch.bases.iter().enumerate() {
                if run::is_dropped(&batch, index as u32) {
                    continue;
                }
                match run::read(&mut stack, base) {
                    Ok(bytes) => {
                        let zeros = vec![0; base.bytes() as usize];
                        let right = right.get(program.batch.bases[index].id).unwrap_or(&zeros);
                        compare(base.dtype(), right, &bytes, &Tolerance::Exact)
                            .unwrap_or_else(|error| panic!("stack {name}, seed {seed}, base {index}: {error}"));
                    }
                    Err(error) => {
                        assert_eq!(error.status, status::MEMORY, "stack {name}, seed {seed}, base {index}: {error}");
                        missing += 1;
                    }
                }
            }
            assert!(missing == 0 || result.is_err(), "stack {name}, seed {seed}: {missing} arrays are lost");
            run::discard(&mut stack, &batch).unwrap();
            (lost, whole) = (lost + missing, whole + u64::from(result.is_ok()));
        }
        assert!(counted(&stack, "node.plans_replaced") > 0, "{name}");
        assert_eq!(in_use(&mut stack), 0, "{name}");
    }
    assert!(lost > PROGRAMS / 8 && whole > PROGRAMS / 8, "{lost} arrays are lost, {whole} programs run whole");
}

/// A batch over vectors of equal length: existing ones are dropped one after the other, while new ones are created.
struct Vectors {
    batch: Batch,
}

impl Vectors {
    fn new(stack: &Stack, lengths: &[i64]) -> Vectors {
        let first = stack.services().base_ids().fetch_add(lengths.len() as u64, Ordering::Relaxed);
        let mut batch = Batch::default();
        for (id, &len) in (first..).zip(lengths) {
            let base = batch.push_base(Base { row_hint: len, ..Base::new(id, DType::F64, len) });
            batch.push_view(base, &View::contiguous(&[len]).unwrap());
        }
        Vectors { batch }
    }

    /// An empty batch over the same vectors.
    fn next(&self, flags: impl Fn(usize) -> u32) -> Vectors {
        let mut batch = self.batch.clone();
        (batch.instrs, batch.constants) = (Vec::new(), Vec::new());
        batch.bases.iter_mut().enumerate().for_each(|(number, base)| base.flags = flags(number));
        Vectors { batch }
    }

    fn op(&mut self, opcode: Opcode, vectors: &[u32], number: Option<f64>) -> &mut Vectors {
        let mut operands: Vec<Operand> = vectors.iter().map(|&vector| Operand::view(vector)).collect();
        operands.extend(number.map(|number| Operand::constant(self.batch.push_constant(Constant::from_value(number)))));
        self.batch.push_instr(Instr::new(opcode, &operands));
        self
    }

    fn run(&self, stack: &mut Stack) -> bh_core::Result<()> {
        let ticket = stack.execute(&self.batch.as_ref(), &[])?;
        stack.wait(ticket)
    }

    fn value(&self, stack: &mut Stack, vector: usize) -> bh_core::Result<f64> {
        let bytes = run::read(stack, &self.batch.bases[vector])?;
        Ok(f64::from_ne_bytes(bytes[..8].try_into().unwrap()))
    }
}

const LEN: i64 = 25_600;

/// The number of kernels run.
fn kernels(stack: &Stack) -> u64 {
    counted(stack, "ve-cpu.kernels")
}

#[test]
fn what_cannot_fit_is_refused_before_the_first_kernel() {
    for planning in ["full", "direct", "auto"] {
        let lines = format!("[memory]\nlimit = '1MiB'\n[components.fuser]\nplanning = '{planning}'");
        let mut stack = configured(&lines);
        let mut vectors = Vectors::new(&stack, &[LEN; 8]);
        vectors.op(Opcode::Copy, &[0], Some(1.0));
        vectors.run(&mut stack).unwrap();
        let (before, bytes) = (kernels(&stack), in_use(&mut stack));
        // The last sum needs all others, which do not fit at the same time.
        let flags =
            |vector: usize| if vector == 0 { base_flags::LIVE_OUT } else { base_flags::BORN | base_flags::LIVE_OUT };
        let mut batch = vectors.next(flags);
        for vector in 1..8 {
            batch.op(Opcode::Add, &[vector, vector - 1, 0], None);
        }
        for vector in 1..7 {
            batch.op(Opcode::Multiply, &[7, 7, vector], None);
        }
        for vector in 1..7 {
            batch.op(Opcode::Discard, &[vector], None);
        }
        let error = batch.run(&mut stack).unwrap_err();
        assert_eq!(error.status, status::MEMORY, "{error}");
        for part in ["out of memory", "found before it ran", "(f64[25600], 204800 bytes)"] {
            assert!(error.text.contains(part), "{planning}: {error}");
        }
        assert_eq!(kernels(&stack), before, "{planning}");
        assert_eq!(in_use(&mut stack), bytes, "{planning}");
        assert!(counted(&stack, "node.blocks_refused") > 0);
        assert_eq!(batch.value(&mut stack, 7).unwrap_err().status, status::MEMORY);
        assert_eq!(batch.value(&mut stack, 0).unwrap(), 1.0);
        run::discard(&mut stack, &batch.batch).unwrap();
    }
}

#[test]
fn plans_that_do_not_fit_are_replaced() {
    let mut stack = configured("[memory]\nlimit = '1300KiB'\n[components.fuser]\nplanning = 'full'");
    let mut vectors = Vectors::new(&stack, &[LEN; 8]);
    for vector in 0..4 {
        vectors.op(Opcode::Copy, &[vector], Some(f64::from(vector)));
    }
    vectors.run(&mut stack).unwrap();
    // One kernel would need all eight at the same time; in sequence, five are enough.
    let flags = |vector: usize| if vector < 4 { base_flags::DIES } else { base_flags::BORN | base_flags::LIVE_OUT };
    let mut batch = vectors.next(flags);
    for vector in 0..4 {
        batch.op(Opcode::Add, &[vector + 4, vector], Some(0.5)).op(Opcode::Discard, &[vector], None);
    }
    let foretold = stack.predict(&batch.batch.as_ref(), &[]).unwrap().peak_bytes;
    assert_eq!(foretold, 4 * 8 * LEN as u64, "as it is planned");
    batch.run(&mut stack).unwrap();
    assert_eq!((counted(&stack, "node.plans_replaced"), counted(&stack, "node.blocks_refused")), (1, 0));
    for vector in 4..8 {
        assert_eq!(batch.value(&mut stack, vector).unwrap(), vector as f64 - 3.5);
    }
    // If all fit, the plan stays.
    run::discard(&mut stack, &batch.batch).unwrap();
    let mut small = Vectors::new(&stack, &[LEN; 2]);
    small.op(Opcode::Copy, &[0], Some(1.0)).op(Opcode::Add, &[1, 0], Some(1.0));
    small.run(&mut stack).unwrap();
    assert_eq!(counted(&stack, "node.plans_replaced"), 1);
    run::discard(&mut stack, &small.batch).unwrap();
}

#[test]
fn only_the_kernels_that_do_not_fit_are_cut() {
    let mut stack = configured("[memory]\nlimit = '1300KiB'\n[components.fuser]\nplanning = 'full'");
    // Six vectors fit; those of other lengths are in other kernels.
    let mut vectors = Vectors::new(&stack, &[[LEN; 8].as_slice(), &[LEN - 600; 4]].concat());
    for vector in [0, 1, 2, 3, 8] {
        vectors.op(Opcode::Copy, &[vector], Some(f64::from(vector)));
    }
    vectors.run(&mut stack).unwrap();
    let mut batch = vectors.next(|vector| match vector {
        0..4 => base_flags::DIES,
        8 => base_flags::LIVE_OUT,
        4..8 => base_flags::BORN | base_flags::LIVE_OUT,
        _ => base_flags::BORN | base_flags::DIES,
    });
    // Alone, these three would need their own memory.
    for vector in 9..12 {
        batch.op(Opcode::Add, &[vector, 8], Some(f64::from(vector)));
    }
    for vector in 9..12 {
        batch.op(Opcode::Multiply, &[8, 8, vector], None);
    }
    for vector in 9..12 {
        batch.op(Opcode::Discard, &[vector], None);
    }
    for vector in 0..4 {
        batch.op(Opcode::Add, &[vector + 4, vector], Some(0.5)).op(Opcode::Discard, &[vector], None);
    }
    batch.run(&mut stack).unwrap();
    assert_eq!((counted(&stack, "node.plans_replaced"), counted(&stack, "node.blocks_refused")), (1, 0));
    assert_eq!(batch.value(&mut stack, 8).unwrap(), 8.0 * 17.0 * 18.0 * 19.0);
    for vector in 4..8 {
        assert_eq!(batch.value(&mut stack, vector).unwrap(), vector as f64 - 3.5);
    }
    run::discard(&mut stack, &batch.batch).unwrap();
}

/// Methods with the shapes of their operands, outputs first.
fn methods(n: i64) -> Vec<(&'static str, usize, Vec<Vec<i64>>)> {
    vec![
        ("solve", 1, vec![vec![n, 2], vec![n, n], vec![n, 2]]),
        ("cholesky", 1, vec![vec![n, n], vec![n, n]]),
        ("qr", 2, vec![vec![2 * n, n], vec![n, n], vec![2 * n, n]]),
        ("eigh", 2, vec![vec![n], vec![n, n], vec![n, n]]),
        ("svd", 3, vec![vec![n, n], vec![n], vec![n, n], vec![n, n]]),
        ("sort", 1, vec![vec![3, n], vec![3, n]]),
    ]
}

#[test]
fn methods_take_at_most_what_is_foretold() {
    for n in [1, 9, 64, 150] {
        for (name, outputs, shapes) in methods(n) {
            let mut stack = configured("");
            let opcode = Opcode(Opcode::FIRST_EXTENSION);
            assert!(stack.extmethod(name, opcode).unwrap(), "{name}");
            let first = stack.services().base_ids().fetch_add(shapes.len() as u64, Ordering::Relaxed);
            let mut batch = Batch::default();
            for (id, shape) in (first..).zip(&shapes) {
                let base = batch.push_base(Base::new(id, DType::F64, shape.iter().product()));
                batch.push_view(base, &View::contiguous(shape).unwrap());
            }
            for (number, shape) in shapes.iter().enumerate().skip(outputs) {
                // The diagonal is large, so that all factorisations exist.
                let columns = *shape.last().unwrap();
                let value = |at: i64| if at / columns == at % columns { 9.0 * n as f64 } else { (at % 7) as f64 / 7.0 };
                let symmetric = |at: i64| value(at).max(value(at % columns * columns + at / columns));
                let bytes = (0..shape.iter().product()).flat_map(|at| match shape[..] {
                    [rows, _] if rows == columns => symmetric(at).to_ne_bytes(),
                    _ => value(at).to_ne_bytes(),
                });
                run::write(&mut stack, &batch.bases[number], &bytes.collect::<Vec<u8>>()).unwrap();
            }
            let text = batch.push_string(name);
            batch.extensions.push(Extension { opcode, reserved: 0, name: text.0, name_len: text.1 });
            let operands: Vec<Operand> = (0..shapes.len() as u32).map(Operand::view).collect();
            batch.push_instr(Instr { outputs: outputs as u8, ..Instr::new(opcode, &operands) });
            let prediction = stack.predict(&batch.as_ref(), &[]).unwrap();
            let before = stack.services().memory().usage();
            let result = stack.execute(&batch.as_ref(), &[]).and_then(|ticket| stack.wait(ticket));
            result.unwrap_or_else(|error| panic!("{name}, {n}: {error}"));
            // Arrays count slightly more than their bytes.
            let arrays: usize = shapes[..outputs].iter().map(|it| it.iter().product::<i64>() as usize * 9 + 4096).sum();
            let most = before.in_use + arrays + prediction.work_bytes as usize;
            let usage = stack.services().memory().usage();
            assert!(usage.peak <= before.peak.max(most), "{name}, {n}: {} of {most}", usage.peak);
            assert_eq!(
                prediction.peak_bytes,
                8 * shapes[..outputs].iter().map(|it| it.iter().product::<i64>() as u64).sum::<u64>()
            );
            run::discard(&mut stack, &batch).unwrap();
        }
    }
}
