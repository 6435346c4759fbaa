//! Operations that are carried out at once: programs cannot tell them from those that batches run.

use super::*;
use crate::Recipes;
use bh_core::abi::access;

/// A context on a fake stack that carries out operations at once on up to `immediate_bytes` bytes.
fn immediate(immediate_bytes: u64) -> (Arc<Recorder>, Log) {
    immediate_with(Options { immediate_bytes, ..Options::default() })
}

fn immediate_with(options: Options) -> (Arc<Recorder>, Log) {
    let log = Log { immediate: true, ..Log::default() };
    let seen = log.clone();
    let recorder = Recorder::new();
    recorder.start(options, move || Ok(Box::new(Fake::new(seen)))).unwrap();
    (recorder, log)
}

fn slice(recorder: &Recorder, array: ArrayId, first: i64, last: i64) -> ArrayId {
    recorder.derive(array, |view| view.slice(0, Some(first), Some(last), 1)).unwrap()
}

#[test]
fn little_data_needs_no_batch() {
    let (recorder, log) = immediate(1 << 10);
    let a = array(&recorder, &[3], &[1.0, 2.0, 3.0]);
    let b = add(&recorder, a, a);
    recorder.operate(Opcode::Multiply, 0, b, &[Input::Array(b), number(2.0)], HERE).unwrap();
    // Overlapping parts are copied first.
    let (tail, head) = (slice(&recorder, b, 1, 3), slice(&recorder, b, 0, 2));
    recorder.operate(Opcode::Copy, 0, tail, &[Input::Array(head)], HERE).unwrap();
    assert_eq!(values(&recorder, b), [4.0, 4.0, 8.0]);
    let element = recorder.derive(b, |view| view.index(0, -1)).unwrap();
    assert_eq!(recorder.read_scalar(element).unwrap().to::<f64>(), 8.0);
    recorder.free(a).unwrap();
    assert!(lock(&log.batches).is_empty());
    assert_eq!(recorder.statistics().immediate, 4);
    // The stack hears of what a batch needs, and of nothing else.
    let large = recorder.full(Constant::from_value(1.0f64), &[1000, 3], HERE).unwrap();
    let sum = add(&recorder, large, b);
    assert_eq!(values(&recorder, sum)[2997..], [5.0, 5.0, 9.0]);
    assert_eq!(lock(&log.batches).len(), 1);
    assert_eq!(lock(&log.batches)[0].bases.len(), 3);
}

#[test]
fn parts_need_no_handles() {
    use crate::{Known, Made};
    let handle = |made: Option<Made>| match made {
        Some(Made::Handle(id)) => id,
        _ => panic!("not behind a handle"),
    };
    for limit in [0, 1 << 10] {
        let (recorder, log) = immediate(limit);
        let a = array(&recorder, &[4], &[1.0, 2.0, 3.0, 4.0]);
        let whole = View::contiguous(&[4]).unwrap();
        let part = |first, last, step| whole.slice(0, Some(first), Some(last), step).unwrap();
        let (head, tail, back) = (part(0, 3, 1), part(1, 4, 1), part(3, -5, -1));
        let ten = Constant::from_value(10.0f64);
        let add = |inputs: &[Known<'_>], shape: &[i64]| recorder.make_at_hand(Opcode::Add, DType::F64, inputs, shape);
        let made = add(&[Known::Part(a.into(), &head), Known::Part(a.into(), &tail)], &[3]);
        assert_eq!(made.is_some(), limit > 0);
        let change = |view: &View, inputs: &[Known<'_>]| recorder.change_at_hand(Opcode::Add, (a.into(), view), inputs);
        assert_eq!(change(&tail, &[Known::Part(a.into(), &tail), Known::Number(&ten)]).is_some(), limit > 0);
        // Left to the general way: parts that overlap, other orders, wrong types, what is large or empty.
        assert!(change(&tail, &[Known::Part(a.into(), &head), Known::Number(&ten)]).is_none());
        assert!(add(&[Known::Part(a.into(), &back), Known::Number(&ten)], &[4]).is_none());
        let whole_number = Constant::from_value(1i64);
        assert!(add(&[Known::Part(a.into(), &head), Known::Number(&whole_number)], &[3]).is_none());
        assert!(add(&[Known::Part(a.into(), &head), Known::Number(&ten)], &[1000, 3]).is_none());
        assert!(add(&[Known::Part(a.into(), &head), Known::Number(&ten)], &[0, 3]).is_none());
        let Some(Made::Handle(made)) = made else { continue };
        assert_eq!((values(&recorder, made), values(&recorder, a)), (vec![3.0, 5.0, 7.0], vec![1.0, 12.0, 13.0, 14.0]));
        assert_eq!((recorder.statistics().arrays, recorder.statistics().immediate), (2, 2));
        assert!(lock(&log.batches).is_empty());
        // Cubes are products, and one element stands for all.
        let three = Constant::from_value(3.0f64);
        let cubes = [Known::Part(made.into(), &head), Known::Number(&three)];
        let cubes = handle(recorder.make_at_hand(Opcode::Power, DType::F64, &cubes, &[3]));
        assert_eq!(values(&recorder, cubes), [27.0, 125.0, 343.0]);
        let one = part(0, 1, 1);
        let sums = handle(add(&[Known::Part(made.into(), &head), Known::Part(a.into(), &one)], &[3]));
        assert_eq!(values(&recorder, sums), [4.0, 6.0, 8.0]);
    }
}

#[test]
fn little_arrays_are_taken_over_as_they_are() {
    use crate::{Here, Known, Made, Store};
    let (recorder, log) = immediate(1 << 10);
    let here = |made: Option<Made>| match made {
        Some(Made::Here(here)) => Some(here),
        _ => None,
    };
    let make = |values: &[f64]| {
        let (made, data) = recorder.hand()?.make(DType::F64, &[values.len() as i64], &[])?;
        // SAFETY: the array has as many elements.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), data.cast(), values.len()) };
        here(Some(made))
    };
    let (a, view) = (make(&[1.0, 2.0, 3.0]).unwrap(), View::contiguous(&[3]).unwrap());
    let ten = Constant::from_value(10.0f64);
    let add = |inputs: &[Known<'_>]| recorder.make_at_hand(Opcode::Add, DType::F64, inputs, &[3]);
    let raised = |a: &Here| here(add(&[Known::Part(Store::Here(a), &view), Known::Number(&ten)]));
    let sum = raised(&a).unwrap();
    let element = |here: &Here, place| recorder.element_here(here, place).map(|value| value.to::<f64>());
    assert_eq!((element(&sum, 1), element(&sum, 3)), (Some(12.0), None));
    assert!(recorder.set_element_here(&a, 0, Constant::from_value(1i64)).is_none());
    recorder.set_element_here(&a, 0, Constant::from_value(5.0f64)).unwrap();
    let counts = recorder.statistics();
    assert_eq!((counts.arrays, counts.bases, counts.immediate), (0, 0, 3));
    // Where everything is recorded, so is work on little arrays.
    let stays_shut = || {
        assert!(!recorder.is_open() && make(&[1.0]).is_none() && raised(&a).is_none() && element(&a, 0).is_none());
        assert!(recorder.set_element_here(&a, 0, ten).is_none());
    };
    recorder.set_eager(true).unwrap();
    stays_shut();
    recorder.set_eager(false).unwrap();
    recorder.begin_trace(&[]).unwrap();
    stays_shut();
    recorder.abandon_trace().unwrap();
    assert!(recorder.is_open());
    // One input behind a handle, and one that is not.
    let known = recorder.adopt_here(sum, &[3], false).unwrap();
    let Some(Made::Handle(both)) = add(&[Known::Part(known.into(), &view), Known::Part(Store::Here(&a), &view)]) else {
        panic!("the result is behind a handle, as an input is");
    };
    assert_eq!((values(&recorder, known), values(&recorder, both)), (vec![11.0, 12.0, 13.0], vec![16.0, 14.0, 16.0]));
    let one = recorder.adopt_here(make(&[4.0]).unwrap(), &[], false).unwrap();
    assert_eq!(recorder.read_scalar(one).unwrap().to::<f64>(), 4.0);
    // Memory that somebody uses stays where it is.
    let lent = make(&[1.0, 2.0]).unwrap();
    let addresses = [0, 1].map(|place| recorder.look_here(&lent, place).unwrap().addr());
    assert_eq!(addresses[1] - addresses[0], 8);
    let lent = recorder.adopt_here(lent, &[2], true).unwrap();
    assert!(recorder.info(lent).unwrap().pinned && !recorder.info(known).unwrap().pinned);
    recorder.free(lent).unwrap();
    lock(&log.batches).clear();
    let again = make(&[7.0, 8.0, 9.0]).unwrap();
    again.end();
    assert!(lock(&log.batches).is_empty());
    recorder.shutdown().unwrap();
    stays_shut();
    assert!(recorder.adopt_here(a, &[3], false).is_err());
}

#[test]
fn a_batch_under_construction_keeps_what_it_read() {
    let (recorder, _) = immediate(1 << 10);
    let small = array(&recorder, &[3], &[1.0, 2.0, 3.0]);
    let large = recorder.full(Constant::from_value(0.0f64), &[1000, 3], HERE).unwrap();
    let before = add(&recorder, large, small);
    recorder.operate(Opcode::Add, 0, small, &[Input::Array(small), number(10.0)], HERE).unwrap();
    let after = add(&recorder, large, small);
    assert_eq!(recorder.statistics().immediate, 1);
    assert_eq!(values(&recorder, small), [11.0, 12.0, 13.0]);
    assert_eq!(values(&recorder, before)[..3], [1.0, 2.0, 3.0]);
    assert_eq!(values(&recorder, after)[..3], [11.0, 12.0, 13.0]);
}

#[test]
fn what_a_batch_writes_is_at_hand_once_it_is_read() {
    let (recorder, log) = immediate(1 << 10);
    let large = recorder.full(Constant::from_value(2.0f64), &[1000, 3], HERE).unwrap();
    let sums = recorder.operate_new(Opcode::AddReduce, 0b01, None, &[Input::Array(large)], HERE).unwrap();
    let waits = add(&recorder, sums, sums);
    assert_eq!(recorder.statistics().immediate, 0);
    assert_eq!(values(&recorder, waits), [4000.0; 3]);
    add(&recorder, waits, waits);
    assert_eq!((recorder.statistics().immediate, lock(&log.batches).len()), (1, 1));
}

#[test]
fn long_chains_on_middling_arrays_are_recorded() {
    let (recorder, log) = immediate(1 << 10);
    let immediate = || recorder.statistics().immediate;
    // The number of operations of a chain that are carried out at once; its result is read.
    let chain = |elements: i64, count: usize| {
        let mut sums = recorder.full(Constant::from_value(1.0f64), &[elements], HERE).unwrap();
        let before = immediate();
        for _ in 0..count {
            sums = add(&recorder, sums, sums);
        }
        let made = immediate() - before;
        assert_eq!(values(&recorder, sums), vec![f64::powi(2.0, count as i32); elements as usize]);
        made
    };
    // Very little arrays are no matter for kernels, whatever the chain.
    assert_eq!(chain(64, 30), 30);
    // The first operation of each is the one that fills the array.
    assert_eq!((chain(100, 3), chain(100, 6)), (3, 6));
    assert_eq!((chain(100, 20), lock(&log.batches).len()), (7, 1));
    assert_eq!((chain(100, 20), lock(&log.batches).len()), (0, 2));
    // A chain that turns out short says that the next one is short.
    assert_eq!((chain(100, 2), chain(100, 2)), (0, 2));
}

#[test]
fn work_that_has_ended_does_not_count() {
    let (recorder, _) = immediate(1 << 10);
    let little = |count: usize| {
        let large = recorder.full(Constant::from_value(2.0f64), &[1000, 3], HERE).unwrap();
        let mut sums = recorder.operate_new(Opcode::AddReduce, 0b01, None, &[Input::Array(large)], HERE).unwrap();
        for _ in 0..count {
            sums = add(&recorder, sums, sums);
        }
        recorder.statistics().immediate
    };
    // More than the recorder waits for by itself.
    let much = recorder.full(Constant::from_value(1.0f64), &[(2 << 20) + 1], HERE).unwrap();
    recorder.flush().unwrap();
    assert_eq!(little(40), 0);
    // A read of its result says that it has ended; no wait for everything is needed.
    let first = recorder.derive(much, |view| view.index(0, 0)).unwrap();
    let mut element = [0u8; 8];
    // SAFETY: it has room for the element.
    unsafe { recorder.read(first, element.as_mut_ptr(), None).unwrap() };
    assert!(little(100) > 0);
}

#[test]
fn maps_of_data_at_hand() {
    let (recorder, log) = immediate(1 << 10);
    let a = array(&recorder, &[3], &[1.0, 2.0, 3.0]);
    let large = recorder.full(Constant::from_value(0.0f64), &[1000, 3], HERE).unwrap();
    let before = add(&recorder, large, a);
    let data = recorder.map(a, access::READ | access::WRITE).unwrap().cast::<f64>();
    assert!(recorder.operate_new(Opcode::Add, 0, None, &[Input::Array(a), Input::Array(a)], HERE).is_err());
    assert!(recorder.map(a, access::READ).is_err());
    // SAFETY: the map has three elements.
    unsafe { *data.add(1) = 7.0 };
    recorder.unmap(a).unwrap();
    assert!(recorder.unmap(a).is_err());
    let after = add(&recorder, large, a);
    assert!(lock(&log.batches).is_empty());
    assert_eq!(values(&recorder, before)[..3], [1.0, 2.0, 3.0]);
    assert_eq!(values(&recorder, after)[..3], [1.0, 7.0, 3.0]);
    // The last handle goes while the data is mapped.
    recorder.map(a, access::READ).unwrap();
    recorder.free(a).unwrap();
    recorder.sync().unwrap();
}

/// A source of numbers that is the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// The shapes of the arrays of random programs: little and large rows, and matrices of them.
const SHAPES: [&[i64]; 5] = [&[1], &[4], &[200], &[3, 4], &[50, 4]];

fn random_part(recorder: &Recorder, dice: &mut Dice, array: ArrayId) -> ArrayId {
    let view = recorder.info(array).unwrap().view;
    let extent = view.shape()[0];
    let first = dice.roll(extent as u64) as i64;
    let count = 1 + dice.roll((extent - first) as u64) as i64;
    let step = if dice.roll(4) == 0 { 2 } else { 1 };
    match dice.roll(4) {
        0 => recorder.derive(array, |view| view.slice(0, None, None, -1)).unwrap(),
        1 => recorder.derive(array, |view| view.slice(0, Some(first), Some(first + count), step)).unwrap(),
        _ => recorder.duplicate(array).unwrap(),
    }
}

/// One step of a random program: `arrays` are those that it has, `told` what it learns.
fn step(recorder: &Recorder, dice: &mut Dice, arrays: &mut [ArrayId], told: &mut Vec<Vec<u64>>) {
    let pick = |dice: &mut Dice, arrays: &[ArrayId]| arrays[dice.roll(arrays.len() as u64) as usize];
    let (first, second) = (pick(dice, arrays), pick(dice, arrays));
    let (a, b) = (random_part(recorder, dice, first), random_part(recorder, dice, second));
    let input = |dice: &mut Dice| if dice.roll(4) == 0 { number(dice.roll(9) as f64) } else { Input::Array(b) };
    let opcode = [Opcode::Add, Opcode::Subtract, Opcode::Maximum, Opcode::Multiply][dice.roll(4) as usize];
    // Operands that do not fit are refused, in the same way on every path.
    let made = match dice.roll(12) {
        0..4 => recorder.operate(opcode, 0, a, &[Input::Array(a), input(dice)], HERE).map(|()| None),
        4 => recorder.operate(Opcode::Copy, 0, a, &[input(dice)], HERE).map(|()| None),
        5 | 6 => recorder.operate_new(opcode, 0, None, &[Input::Array(a), input(dice)], HERE).map(Some),
        7 => recorder.operate_new(Opcode::AddReduce, 1, None, &[Input::Array(a)], HERE).map(|sum| {
            let row = recorder.derive(sum, |view| view.new_axis(0)).ok();
            recorder.free(sum).unwrap();
            row
        }),
        8 => {
            let data = [dice.roll(9) as f64; 200];
            // SAFETY: no array has more elements.
            unsafe { recorder.write(a, data.as_ptr().cast(), None) }.map(|()| None)
        }
        9 => recorder.map(a, access::READ | access::WRITE).map(|data| {
            // SAFETY: the map reaches the first element.
            unsafe { *data.cast::<f64>() += 1.0 };
            recorder.unmap(a).unwrap();
            None
        }),
        10 => recorder.full(Constant::from_value(dice.roll(9) as f64), SHAPES[dice.roll(5) as usize], HERE).map(Some),
        _ => {
            told.push(values(recorder, a).into_iter().map(f64::to_bits).collect());
            Ok(None)
        }
    };
    told.push(vec![u64::from(made.is_ok())]);
    recorder.free(a).unwrap();
    recorder.free(b).unwrap();
    let lost = dice.roll(arrays.len() as u64) as usize;
    if let Ok(Some(array)) = made {
        recorder.free(std::mem::replace(&mut arrays[lost], array)).unwrap();
    }
}

/// The values and errors of a program of this seed.
fn run(seed: u64, immediate_bytes: u64, recipes: Recipes) -> (Vec<Vec<u64>>, u64) {
    let max_instructions = if seed.is_multiple_of(2) { 1000 } else { 30 };
    let (recorder, _) = immediate_with(Options { immediate_bytes, recipes, max_instructions, ..Options::default() });
    let mut dice = Dice(seed);
    let full = |shape: &&[i64]| recorder.full(Constant::from_value(1.5f64), shape, HERE).unwrap();
    let mut arrays: Vec<ArrayId> = SHAPES.iter().map(full).collect();
    let mut told = Vec::new();
    for _ in 0..60 {
        step(&recorder, &mut dice, &mut arrays, &mut told);
    }
    for &array in &arrays {
        told.push(values(&recorder, array).into_iter().map(f64::to_bits).collect());
    }
    arrays.into_iter().for_each(|array| recorder.free(array).unwrap());
    recorder.sync().unwrap();
    let statistics = recorder.statistics();
    assert_eq!((statistics.arrays, statistics.bases), (0, 0));
    (told, statistics.immediate)
}

#[test]
fn random_programs_learn_the_same_with_any_limit() {
    let mut immediate = 0;
    for seed in 0..400 {
        let (expected, none) = run(seed, 0, Recipes::Off);
        assert_eq!(none, 0);
        for bytes in [0, 40, 1 << 9, 1 << 20] {
            for recipes in [Recipes::Off, Recipes::Always] {
                let (told, count) = run(seed, bytes, recipes);
                assert_eq!(told, expected, "seed {seed}, limit of {bytes} bytes, {recipes:?}");
                immediate += count;
            }
        }
    }
    assert!(immediate > 10_000, "only {immediate} operations were carried out at once");
}
