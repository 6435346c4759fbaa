//! Folds in the order that the engine promises, one element at a time, to compare bits with.

use super::{Driver, singletons};
use bh_bytecode::interp::Memory;
use bh_bytecode::text::parse;
use bh_fuser::{Algorithm, Options, Partitioner};

const LANES: usize = 32;
const SETS: usize = 4;
const CHUNK: usize = 8192;
const WHOLE_ROW: usize = 32_768;
const LONG_ROW: usize = 64;
const KEPT_CHUNK: usize = 32_768;
const KEPT_PARTIALS: usize = 1 << 20;
const MANY_KEPT: usize = 1 << 16;
const LINES: usize = 64;
const FEW_LINES: usize = 16;
const COLUMNS: std::ops::Range<usize> = 2..32;
const COLUMN_ROWS: usize = 128;
/// Rows of at most this many folded elements are folded one after the other if there are more of them around.
const SHORT_ROW: usize = 16;

/// The sizes of the chunks that these axes are cut into: at most `most`, and a multiple of `unit` where possible.
fn chunks(axes: &[usize], most: usize, unit: usize) -> Vec<usize> {
    let all: usize = axes.iter().product();
    if all <= most {
        return vec![all];
    }
    let inner: usize = axes[1..].iter().product();
    if inner > most {
        return chunks(&axes[1..], most, unit).repeat(axes[0]);
    }
    let fits = |times: &usize| times * inner <= most;
    let whole = |times: &usize| (times * inner).is_multiple_of(unit);
    let largest = (1..=axes[0]).rev().filter(fits);
    let times = largest.clone().find(whole).or(largest.clone().next()).unwrap();
    let mut sizes = vec![times * inner; axes[0] / times];
    if !axes[0].is_multiple_of(times) {
        sizes.push(axes[0] % times * inner);
    }
    sizes
}

/// The fold of the elements of these axes, which are in C order.
fn tree<T: Copy>(axes: &[usize], values: &[T], neutral: T, op: impl Fn(T, T) -> T) -> T {
    let axes: Vec<usize> = axes.iter().copied().filter(|&extent| extent != 1).collect();
    let row = axes.last().copied().filter(|row| (LONG_ROW..=WHOLE_ROW).contains(row));
    let sizes: Vec<usize> = match row {
        Some(row) => {
            let rows = (CHUNK / row / SETS * SETS).max(SETS);
            chunks(&axes[..axes.len() - 1], rows, SETS).iter().map(|rows| rows * row).collect()
        }
        None => chunks(&axes, CHUNK, 1),
    };
    let mut rest = values;
    let mut results: Vec<T> = Vec::new();
    for size in sizes {
        let (chunk, after) = rest.split_at(size);
        rest = after;
        let mut lanes = [[neutral; LANES]; SETS];
        for (index, &value) in chunk.iter().enumerate() {
            let (set, element) = row.map_or((0, index), |row| (index / row % SETS, index % row));
            let lane = &mut lanes[set][element % LANES];
            *lane = op(*lane, value);
        }
        let [mut joined, second, third, fourth] = lanes;
        for lane in 0..LANES {
            joined[lane] = op(op(joined[lane], second[lane]), op(third[lane], fourth[lane]));
        }
        results.push(halve(joined.to_vec(), &op));
    }
    assert!(rest.is_empty());
    halve(results, op)
}

/// The fold of one of a few columns inside of these axes, row by row into lanes.
fn column_tree<T: Copy>(axes: &[usize], columns: usize, values: &[T], neutral: T, op: impl Fn(T, T) -> T) -> T {
    let axes: Vec<usize> = axes.iter().copied().filter(|&extent| extent != 1).collect();
    let mut rest = values;
    let mut results: Vec<T> = Vec::new();
    for size in chunks(&axes, 1 << (KEPT_CHUNK / columns).ilog2(), LANES) {
        let (chunk, after) = rest.split_at(size);
        rest = after;
        let mut lanes = [neutral; LANES];
        for (row, &value) in chunk.iter().enumerate() {
            lanes[row % LANES] = op(lanes[row % LANES], value);
        }
        results.push(halve(lanes.to_vec(), &op));
    }
    assert!(rest.is_empty());
    halve(results, op)
}

/// The fold of one of `kept` results, of which `run` lie inside of all folded axes.
fn kept_tree<T: Copy>(values: &[T], (run, kept): (usize, usize), neutral: T, op: impl Fn(T, T) -> T) -> T {
    let least = if kept < MANY_KEPT { FEW_LINES } else { LINES };
    let chunk = values.len().div_ceil((KEPT_PARTIALS / kept).max(1)).max(KEPT_CHUNK / run).max(least);
    halve(values.chunks(chunk).map(|chunk| chunk.iter().fold(neutral, |a, &b| op(a, b))).collect(), op)
}

fn halve<T: Copy>(mut results: Vec<T>, op: impl Fn(T, T) -> T) -> T {
    while results.len() > 1 {
        let upper = results.split_off(results.len().div_ceil(2));
        for (to, from) in results.iter_mut().zip(upper) {
            *to = op(*to, from);
        }
    }
    results[0]
}

/// An array whose innermost `dense` axes follow each other without gaps.
struct Layout {
    shape: Vec<usize>,
    strides: Vec<usize>,
    len: usize,
}

impl Layout {
    fn new(shape: &[usize], dense: usize) -> Layout {
        let (mut strides, mut pitch) = (vec![0; shape.len()], 1);
        for axis in (0..shape.len()).rev() {
            if axis + dense < shape.len() {
                pitch += 3;
            }
            strides[axis] = pitch;
            pitch *= shape[axis];
        }
        Layout { shape: shape.to_vec(), strides, len: pitch }
    }

    fn view(&self) -> String {
        let axes: Vec<String> =
            self.shape.iter().zip(&self.strides).map(|(n, stride)| format!("{n}:{stride}")).collect();
        format!("[{}]", axes.join(", "))
    }

    /// The offsets of all elements in C order.
    fn offsets(&self) -> Vec<usize> {
        let mut offsets = vec![0];
        for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
            offsets = offsets.iter().flat_map(|from| (0..extent).map(move |at| from + at * stride)).collect();
        }
        offsets
    }
}

/// Numbers of which no sum is exact.
fn number(index: usize) -> f64 {
    let mixed = (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 11) as f64 / (1u64 << 48) as f64 - 7.0
}

/// Folds views of these shapes and layouts over the `folded` axes, and compares the bits with the tree's.
fn check(drivers: &mut [Driver], shape: &[usize], folded: &[usize], dense: usize) {
    let layout = Layout::new(shape, dense);
    let kept: Vec<usize> = (0..shape.len()).filter(|axis| !folded.contains(axis)).collect();
    let results = Layout::new(&kept.iter().map(|&axis| shape[axis]).collect::<Vec<_>>(), kept.len());
    let axes: Vec<String> = folded.iter().map(usize::to_string).collect();
    let axes = axes.join(",");
    let (len, view, count, result) = (layout.len, layout.view(), results.len, results.view());
    let temporary = Layout::new(shape, shape.len());
    let (temporary_len, temporary) = (temporary.len, temporary.view());
    let source = format!(
        "bh batch 1
base b0 = f64[{len}] id 1
base b1 = f32[{len}] id 2
base b2 = f64[{count}] id 3 born
base b3 = f64[{count}] id 4 born
base b4 = f32[{count}] id 5 born
base b5 = f64[{temporary_len}] id 6 born dies
const c0 = f64 3
view v0 = b0 at 0 {view}
view v1 = b1 at 0 {view}
view v2 = b2 at 0 {result}
view v3 = b3 at 0 {result}
view v4 = b4 at 0 {result}
view v5 = b5 at 0 {temporary}
i0: v5 = multiply v0, c0
i1: v2 = add_reduce axes({axes}) v5
i2: v3 = minimum_reduce axes({axes}) v5
i3: v4 = add_reduce axes({axes}) v1
"
    );
    let batch = parse(&source).unwrap();
    let mut memory = Memory::new();
    memory.insert(1, (0..len).flat_map(|at| number(at).to_ne_bytes()).collect());
    memory.insert(2, (0..len).flat_map(|at| (number(at) as f32).to_ne_bytes()).collect());
    // The folded elements of each result, in C order.
    let folded_shape: Vec<usize> = folded.iter().map(|&axis| shape[axis]).collect();
    let part = |axes: &[usize]| {
        let pick = |list: &[usize]| axes.iter().map(|&axis| list[axis]).collect::<Vec<usize>>();
        Layout { shape: pick(shape), strides: pick(&layout.strides), len: 0 }.offsets()
    };
    let (outer, inner) = (part(&kept), part(folded));
    let run = shape.iter().enumerate().rev().take_while(|(axis, _)| !folded.contains(axis)).map(|(_, extent)| extent);
    let run: usize = run.product();
    let around = shape.iter().enumerate().rev().skip_while(|(axis, _)| !folded.contains(axis));
    let rows: usize = around.take_while(|(axis, _)| folded.contains(axis)).map(|(_, extent)| extent).product();
    let has_columns = COLUMNS.contains(&run) && rows >= COLUMN_ROWS;
    let beside = shape.iter().enumerate().rev().skip_while(|(axis, _)| folded.contains(axis));
    let beside: usize = beside.take_while(|(axis, _)| !folded.contains(axis)).map(|(_, extent)| extent).product();
    let is_short = run == 1 && rows <= SHORT_ROW && beside > rows;
    let run = if is_short { beside } else { run };
    let mut wanted = [Vec::new(), Vec::new(), Vec::new()];
    for from in outer {
        let values: Vec<f64> = inner.iter().map(|at| number(from + at)).collect();
        let tripled: Vec<f64> = values.iter().map(|value| value * 3.0).collect();
        let singles: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        let (sum, least, single) = if folded.contains(&(shape.len() - 1)) && !is_short {
            (
                tree(&folded_shape, &tripled, 0.0, |a, b| a + b),
                tree(&folded_shape, &tripled, f64::INFINITY, f64::min),
                tree(&folded_shape, &singles, 0.0, |a, b| a + b),
            )
        } else if has_columns {
            (
                column_tree(&folded_shape, run, &tripled, 0.0, |a, b| a + b),
                column_tree(&folded_shape, run, &tripled, f64::INFINITY, f64::min),
                column_tree(&folded_shape, run, &singles, 0.0, |a, b| a + b),
            )
        } else {
            (
                kept_tree(&tripled, (run, count), 0.0, |a, b| a + b),
                kept_tree(&tripled, (run, count), f64::INFINITY, f64::min),
                kept_tree(&singles, (run, count), 0.0, |a, b| a + b),
            )
        };
        wanted[0].extend(sum.to_ne_bytes());
        wanted[1].extend(least.to_ne_bytes());
        wanted[2].extend(single.to_ne_bytes());
    }
    let tables = batch.as_ref();
    let options = Options { algorithm: Algorithm::Greedy, ..Options::default() };
    let fused = Partitioner::default().partition(&tables, &options);
    for (index, driver) in drivers.iter_mut().enumerate() {
        for (name, batch) in [("fused", fused.apply(&tables)), ("single", singletons(&batch).as_ref())] {
            let after = driver.run_on(&batch, &memory).unwrap();
            for (id, wanted) in (3..).zip(&wanted) {
                let what = format!("{shape:?} over {folded:?}, {dense} dense axes, {name}, driver {index}");
                assert!(after.get(id).unwrap() == wanted, "{what}: base {id} has other bits");
            }
        }
    }
}

/// The largest of zeros of both signs: which one it is depends on their order, so on the tree alone.
fn check_zeros(driver: &mut Driver, shape: &[usize], folded: &[usize]) {
    let kept: Vec<usize> = (0..shape.len()).filter(|axis| !folded.contains(axis)).collect();
    let results = Layout::new(&kept.iter().map(|&axis| shape[axis]).collect::<Vec<_>>(), kept.len());
    let axes: Vec<String> = folded.iter().map(usize::to_string).collect();
    let found = (0..=shape.len()).map(|dense| {
        let layout = Layout::new(shape, dense);
        let source = format!(
            "bh batch 1\nbase b0 = f64[{}] id 1\nbase b1 = f64[{}] id 2 born\nview v0 = b0 at 0 {}\nview v1 = b1 at 0 {}\n\
             i0: v1 = maximum_reduce axes({}) v0\n",
            layout.len, results.len, layout.view(), results.view(), axes.join(",")
        );
        let mut values = vec![0.0f64; layout.len];
        for (index, at) in layout.offsets().into_iter().enumerate() {
            values[at] = if number(index) < 0.0 { -0.0 } else { 0.0 };
        }
        let mut memory = Memory::new();
        memory.insert(1, values.iter().flat_map(|value| value.to_ne_bytes()).collect());
        let after = driver.run_on(&singletons(&parse(&source).unwrap()).as_ref(), &memory).unwrap();
        after.get(2).unwrap().to_vec()
    });
    let found: Vec<Vec<u8>> = found.collect();
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{shape:?} over {folded:?}: zeros of other signs");
}

/// Folds of many shapes on each of these drivers have the bits of the tree.
pub fn check_folds(drivers: &mut [Driver]) {
    let whole: [&[usize]; 27] = [
        &[1],
        &[31],
        &[63],
        &[64],
        &[8192],
        &[8193],
        &[33_000],
        &[50_000],
        &[300_000],
        &[2, 64],
        &[700, 64],
        &[5, 1000],
        &[66, 512],
        &[131, 700],
        &[6, 20_001],
        &[3, 32_768],
        &[3, 32_769],
        &[2, 2, 33_333],
        &[40, 3, 513],
        &[9, 7, 601],
        &[6, 30, 1000],
        &[2, 3, 5, 530],
        &[300, 130],
        &[40, 41, 29],
        // Lines of short rows that end right behind a fold's lanes, and right before.
        &[9, 3, 11],
        &[6, 5, 13],
        &[7, 3, 21],
    ];
    for shape in whole {
        let axes: Vec<usize> = (0..shape.len()).collect();
        for dense in 0..=shape.len() {
            check(drivers, shape, &axes, dense);
        }
    }
    for (shape, folded) in [
        (&[7, 40, 600][..], &[1, 2][..]),
        (&[3, 70, 513], &[1, 2]),
        (&[9, 5, 1025], &[0, 2]),
        (&[6, 3, 5, 514], &[0, 1, 3]),
        (&[11, 33_000], &[1]),
        (&[9, 700], &[1]),
        (&[41, 700], &[1]),
        (&[3, 6, 90], &[2]),
        (&[5, 7, 50], &[2]),
        (&[70, 8], &[1]),
        (&[70, 16], &[1]),
        (&[70, 17], &[1]),
        (&[9, 12], &[1]),
        (&[3, 5, 11], &[2]),
        (&[41, 13], &[1]),
        (&[9, 3, 16], &[2]),
        (&[300, 31], &[1]),
        (&[21, 2, 5], &[1, 2]),
        (&[2, 3, 10, 12], &[2, 3]),
        (&[5, 4, 3, 700], &[1, 2, 3]),
        (&[50, 40, 35], &[1, 2]),
        // Lines of several results beside each other: long ones, short ones, and more than a chunk.
        (&[100, 37, 160], &[0, 2]),
        (&[97, 3, 64], &[0, 2]),
        (&[3, 61, 41, 170], &[1, 3]),
        (&[2, 5, 130, 17, 66], &[0, 2, 4]),
        (&[400, 35, 50], &[0, 2]),
        (&[90, 70, 32], &[0, 2]),
        (&[3, 90, 5, 33], &[1, 3]),
        (&[2, 3, 33_000], &[0, 2]),
        (&[5, 3, 2, 100], &[0, 2, 3]),
    ] {
        for dense in 0..=shape.len() {
            check(drivers, shape, folded, dense);
        }
    }
    for columns in 2..64 {
        check_zeros(&mut drivers[0], &[columns % 5 + 2, 3, columns], &[0, 1, 2]);
        check_zeros(&mut drivers[0], &[4, columns % 5 + 2, 3, columns], &[1, 2, 3]);
    }
    // Lines that are kept.
    for (shape, folded) in [
        (&[500, 40][..], &[0][..]),
        (&[900, 3, 40], &[0]),
        (&[4, 1500, 80], &[1]),
        (&[30, 7, 50, 64], &[0, 2]),
        (&[9001, 8], &[0]),
        (&[5000, 13], &[0]),
        (&[90, 70, 19], &[0, 1]),
        (&[61, 2500], &[0]),
        (&[2, 45, 5000], &[1]),
        (&[7, 6, 3000], &[0, 1]),
        (&[37, 9000], &[0]),
        // Columns, which lie in memory row after row or not.
        (&[127, 8], &[0]),
        (&[128, 3], &[0]),
        (&[1003, 2], &[0]),
        (&[70_001, 3], &[0]),
        (&[9001, 7], &[0]),
        (&[333, 31], &[0]),
        (&[20_007, 31], &[0]),
        (&[700, 32], &[0]),
        (&[700, 2, 3], &[0]),
        (&[700, 4, 5], &[0]),
        (&[5, 401, 3], &[1]),
        (&[5, 401, 11], &[1]),
        (&[50, 130, 3], &[0, 1]),
        (&[50, 130, 12], &[0, 1]),
        (&[3, 9000, 12], &[0, 1]),
        (&[90, 3, 5], &[0, 1]),
        (&[7, 6, 140, 9], &[0, 2]),
        (&[7, 6, 140, 2, 2], &[0, 2]),
    ] {
        for dense in 0..=shape.len() {
            check(drivers, shape, folded, dense);
        }
    }
    // Enough for several participants, the second one for folding the partial results as well.
    check(drivers, &[2100, 1001], &[0, 1], 1);
    check(drivers, &[2000, 1100], &[0], 2);
    check(drivers, &[1400, 1500], &[0, 1], 2);
    // So many results that chunks are longer.
    check(drivers, &[70, 65_536], &[0], 2);
    check(drivers, &[70, 65_535], &[0], 2);
}
