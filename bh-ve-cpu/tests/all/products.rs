//! Matrix products of all types, shapes and layouts: right, and with the same bits for any number of threads.

use crate::support;

use bh_bytecode::interp::Memory;
use bh_bytecode::{Base, Batch, DType, Instr, Opcode, Operand, View};
use bh_core::Component;
use support::chains::Dice;
use support::{Driver, singletons};

/// A matrix or vector in memory.
struct Array {
    start: i64,
    shape: Vec<i64>,
    strides: Vec<i64>,
    elements: i64,
}

impl Array {
    /// A layout of this shape: rows or columns first, with gaps, backward, or the same along an axis if it is read only.
    fn new(dice: &mut Dice, shape: &[i64], is_read: bool) -> Array {
        let (mut strides, mut pitch) = (vec![0; shape.len()], if dice.chance(15) { 2 } else { 1 });
        let mut axes: Vec<usize> = (0..shape.len()).collect();
        if dice.chance(40) {
            axes.reverse();
        }
        let gap = if dice.chance(30) { dice.pick(1, 3) } else { 0 };
        for &axis in axes.iter().rev() {
            strides[axis] = pitch;
            pitch = pitch * shape[axis] + gap;
        }
        let mut start = dice.pick(0, 2);
        for (stride, &extent) in strides.iter_mut().zip(shape) {
            if is_read && dice.chance(6) {
                *stride = 0;
            } else if dice.chance(10) && extent > 0 {
                start += *stride * (extent - 1);
                *stride = -*stride;
            }
        }
        Array { start, shape: shape.to_vec(), strides, elements: pitch + 3 }
    }

    fn at(&self, indices: &[usize]) -> usize {
        let offset: i64 = indices.iter().zip(&self.strides).map(|(&index, stride)| index as i64 * stride).sum();
        (self.start + offset) as usize
    }
}

/// Elements of a type, as the real and imaginary parts of each.
fn numbers(dice: &mut Dice, dtype: DType, count: i64) -> Vec<[f64; 2]> {
    let scale = if dtype.is_complex() || dtype.is_float() { 0.37 } else { 1.0 };
    let mut part = |is_there: bool| if is_there { dice.pick(-9, 9) as f64 * scale } else { 0.0 };
    let number = |[re, im]: [f64; 2]| match dtype {
        DType::Bool => [f64::from(re > 0.0), im],
        DType::F32 | DType::C64 => [f64::from(re as f32), f64::from(im as f32)],
        _ => [re, im],
    };
    (0..count).map(|_| number([part(true), part(dtype.is_complex())])).collect()
}

fn bytes(dtype: DType, numbers: &[[f64; 2]]) -> Vec<u8> {
    let bytes = |&[re, im]: &[f64; 2]| match dtype {
        DType::F64 => re.to_ne_bytes().to_vec(),
        DType::F32 => (re as f32).to_ne_bytes().to_vec(),
        DType::C128 => [re, im].map(f64::to_ne_bytes).concat(),
        DType::C64 => [re as f32, im as f32].map(f32::to_ne_bytes).concat(),
        DType::Bool => vec![u8::from(re != 0.0)],
        _ => (re as i64).to_ne_bytes()[..dtype.size()].to_vec(),
    };
    numbers.iter().flat_map(bytes).collect()
}

fn read(dtype: DType, bytes: &[u8], at: usize) -> [f64; 2] {
    let element = &bytes[at * dtype.size()..][..dtype.size()];
    let double = |at: usize| f64::from_ne_bytes(element[at..at + 8].try_into().unwrap());
    let single = |at: usize| f64::from(f32::from_ne_bytes(element[at..at + 4].try_into().unwrap()));
    match dtype {
        DType::F64 => [double(0), 0.0],
        DType::F32 => [single(0), 0.0],
        DType::C128 => [double(0), double(8)],
        DType::C64 => [single(0), single(4)],
        DType::Bool => [f64::from(element[0]), 0.0],
        DType::I32 => [f64::from(i32::from_ne_bytes(element.try_into().unwrap())), 0.0],
        _ => [i64::from_ne_bytes(element.try_into().unwrap()) as f64, 0.0],
    }
}

/// Runs a product on each driver, checks the first result element by element, and the others' bits.
fn check(drivers: &mut [Driver], dice: &mut Dice, dtype: DType, [m, k, n]: [i64; 3], vectors: [bool; 2]) {
    let left_shape = if vectors[0] { vec![k] } else { vec![m, k] };
    let right_shape = if vectors[1] { vec![k] } else { vec![k, n] };
    let out_shape = if vectors[0] {
        vec![n]
    } else if vectors[1] {
        vec![m]
    } else {
        vec![m, n]
    };
    let arrays = [
        Array::new(dice, &out_shape, false),
        Array::new(dice, &left_shape, true),
        Array::new(dice, &right_shape, true),
    ];
    let opcode = Opcode(Opcode::FIRST_EXTENSION + 1);
    let (mut batch, mut memory, mut values) = (Batch::default(), Memory::new(), Vec::new());
    let mut operands = Vec::new();
    for (id, array) in (1..).zip(&arrays) {
        let base = batch.push_base(Base::new(id, dtype, array.elements));
        let view = View::new(array.start, &array.shape, &array.strides).unwrap();
        operands.push(Operand::view(batch.intern_view(base, &view)));
        values.push(numbers(dice, dtype, array.elements));
        memory.insert(id, bytes(dtype, &values[id as usize - 1]));
    }
    batch.push_instr(Instr { outputs: 1, ..Instr::new(opcode, &operands) });
    let what = format!("{dtype} {m}x{k}x{n} {vectors:?} {:?}", arrays.each_ref().map(|array| &array.strides));
    let mut first: Option<Vec<u8>> = None;
    for driver in drivers {
        let after = driver.run_on(&singletons(&batch).as_ref(), &memory).unwrap();
        let found = after.get(1).unwrap().to_vec();
        assert!(first.as_ref().is_none_or(|first| *first == found), "{what}: the bits depend on the threads");
        first.get_or_insert(found);
    }
    let (found, [out, left, right]) = (first.unwrap(), &arrays);
    let epsilon = match dtype {
        DType::F64 | DType::C128 => f64::EPSILON,
        DType::F32 | DType::C64 => f64::from(f32::EPSILON),
        _ => 0.0,
    };
    let mut expected = values[0].clone();
    for row in 0..m as usize {
        for column in 0..n as usize {
            let (mut sum, mut size) = ([0.0; 2], 0.0);
            for term in 0..k as usize {
                let a = values[1][left.at(&if vectors[0] { vec![term] } else { vec![row, term] })];
                let b = values[2][right.at(&if vectors[1] { vec![term] } else { vec![term, column] })];
                sum[0] += a[0] * b[0] - a[1] * b[1];
                sum[1] += a[0] * b[1] + a[1] * b[0];
                size += (a[0].abs() + a[1].abs()) * (b[0].abs() + b[1].abs());
            }
            if dtype == DType::Bool {
                sum[0] = sum[0].min(1.0);
            }
            let at = out.at(&if vectors[0] {
                vec![column]
            } else if vectors[1] {
                vec![row]
            } else {
                vec![row, column]
            });
            let made = read(dtype, &found, at);
            let near = (0..2).all(|part| (made[part] - sum[part]).abs() <= size * epsilon * (k + 4) as f64);
            assert!(near, "{what}: {made:?} for {sum:?} at {row}, {column}");
            expected[at] = made;
        }
    }
    assert_eq!(bytes(dtype, &expected), found, "{what}: something else was written");
}

fn drivers() -> Vec<Driver> {
    ["1", "2", "3", "16"]
        .map(|threads| {
            let mut driver = Driver::new(&[("threads", threads)]).unwrap();
            assert!(driver.engine.extmethod("matmul", Opcode(Opcode::FIRST_EXTENSION + 1)).unwrap());
            driver
        })
        .into()
}

const TYPES: [DType; 7] = [DType::F64, DType::F32, DType::C128, DType::C64, DType::I64, DType::I32, DType::Bool];

#[test]
fn small_products_of_all_layouts() {
    let (mut drivers, mut dice) = (drivers(), Dice(1));
    for round in 0..600 {
        let extents = [(); 3].map(|()| match dice.pick(0, 9) {
            0 => dice.pick(0, 2),
            1..5 => dice.pick(1, 9),
            5..9 => dice.pick(3, 40),
            _ => dice.pick(30, 130),
        });
        let vectors = [dice.chance(10), dice.chance(10)];
        let vectors = if vectors[0] { [true, false] } else { vectors };
        let [m, k, n] = extents;
        let extents = [if vectors[0] { 1 } else { m }, k, if vectors[1] { 1 } else { n }];
        check(&mut drivers, &mut dice, TYPES[round % TYPES.len()], extents, vectors);
    }
}

/// Products that threads divide, of shapes at which the libraries change their ways.
#[test]
fn bits_of_products_do_not_depend_on_the_threads() {
    let (mut drivers, mut dice) = (drivers(), Dice(2));
    let shapes = [
        [300, 200, 170],
        [65, 1100, 70],
        [64, 1500, 64],
        [40, 3000, 40],
        [513, 600, 3],
        [3, 700, 900],
        [1200, 130, 2],
        [129, 513, 129],
        [200, 1026, 66],
        [17, 5000, 16],
        [90, 514, 300],
    ];
    for (round, shape) in shapes.into_iter().enumerate() {
        for dtype in [TYPES[round % 4], TYPES[(round + 1) % 4]] {
            check(&mut drivers, &mut dice, dtype, shape, [false; 2]);
        }
    }
    for round in 0..12 {
        let shape = if round % 2 == 0 { [36, 25_000, 9] } else { [9, 25_000, 36] };
        check(&mut drivers, &mut dice, TYPES[round % 4], shape, [false; 2]);
    }
    for dtype in &TYPES[..4] {
        check(&mut drivers, &mut dice, *dtype, [2500, 600, 1], [false, true]);
        check(&mut drivers, &mut dice, *dtype, [1, 600, 2500], [true, false]);
    }
}
