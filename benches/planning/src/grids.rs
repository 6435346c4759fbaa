//! Stencils, windows, chains, and random data flow.

use crate::writer::{Array, Axis, Writer};
use bh_bytecode::random::{self, Rng};
use bh_bytecode::{Batch, Opcode};

use Axis::{All, At, From};

fn until(ops: usize, writer: &mut Writer, mut step: impl FnMut(&mut Writer, i64)) {
    let mut at = 0;
    while writer.len() < ops {
        step(writer, at);
        at += 1;
    }
}

/// Steps of a five-point stencil with the sum of the changes.
pub fn heat(ops: usize) -> Batch {
    let mut writer = Writer::default();
    let n = 1000;
    let grid = writer.old(&[n, n]);
    let window = |row: i64, column: i64| grid.part(&[From(1 + row, n - 1 + row), From(1 + column, n - 1 + column)]);
    let center = window(0, 0);
    until(ops, &mut writer, |writer, _| {
        let mut sum = center;
        for (at, (row, column)) in [(-1, 0), (0, 1), (0, -1), (1, 0)].into_iter().enumerate() {
            let next = writer.temporary(&[n - 2, n - 2]);
            writer.binary(Opcode::Add, next, sum, window(row, column));
            if at > 0 {
                writer.drop(sum);
            }
            sum = next;
        }
        let [work, difference, size] = [(); 3].map(|()| writer.temporary(&[n - 2, n - 2]));
        let delta = writer.temporary(&[]);
        writer.with_constant(Opcode::Multiply, work, sum, 0.2);
        writer.drop(sum);
        writer.binary(Opcode::Subtract, difference, work, center);
        writer.unary(Opcode::Absolute, size, difference);
        writer.drop(difference);
        writer.sum(delta, size, 0b11);
        writer.drop(size);
        writer.unary(Opcode::Copy, center, work);
        writer.drop(work);
        writer.drop(delta);
    });
    writer.finish()
}

/// An elementwise program with random data flow over temporaries and ten inputs.
pub fn expressions(ops: usize) -> Batch {
    let (mut writer, mut rng) = (Writer::default(), Rng::new(3));
    let shape = [100_000];
    let mut live: Vec<Array> = (0..10).map(|_| writer.old(&shape)).collect();
    until(ops, &mut writer, |writer, _| {
        let (a, b) = (live[rng.below(live.len())], live[rng.below(live.len())]);
        let out = writer.temporary(&shape);
        writer.binary(Opcode::Add, out, a, b);
        if live.len() > 20 {
            let dead = live.remove(10 + rng.below(8));
            writer.drop(dead);
        }
        live.push(out);
    });
    writer.finish()
}

/// Random programs, one after the other, each on arrays of its own.
pub fn mixed(ops: usize) -> Batch {
    let options = random::Options { max_instrs: 60, max_elements: 1 << 20, ..random::Options::default() };
    let mut all = Batch::default();
    let mut seed = 0;
    while all.instrs.len() < ops {
        append(&mut all, &random::program(seed, &options).batch);
        seed += 1;
    }
    all
}

/// Appends a batch with all its tables.
fn append(all: &mut Batch, batch: &Batch) {
    let (bases, views, dims) = (all.bases.len() as u32, all.views.len() as u32, all.dims.len() as u32);
    let (constants, origins) = (all.constants.len() as u32, all.origins.len() as u32);
    all.bases
        .extend(batch.bases.iter().map(|base| bh_bytecode::Base { id: base.id + (u64::from(bases) << 20), ..*base }));
    all.dims.extend_from_slice(&batch.dims);
    all.constants.extend_from_slice(&batch.constants);
    all.origins.extend_from_slice(&batch.origins);
    let moved = |base: u32| if (base as usize) < batch.bases.len() { base + bases } else { base };
    all.views.extend(batch.views.iter().map(|view| bh_bytecode::ViewRec {
        base: moved(view.base),
        dims: view.dims + dims,
        ..*view
    }));
    for instr in &batch.instrs {
        let mut instr = *instr;
        for operand in instr.operands_mut() {
            *operand = match (operand.as_view(), operand.as_constant()) {
                (Some(view), _) => bh_bytecode::Operand::view(view + views),
                (_, Some(constant)) => bh_bytecode::Operand::constant(constant + constants),
                _ => *operand,
            };
        }
        if instr.origin > 0 {
            instr.origin += origins;
        }
        all.instrs.push(instr);
    }
}

/// One array changed again and again, each time into a new temporary.
pub fn long_chain(ops: usize) -> Batch {
    let mut writer = Writer::default();
    let (input, result) = (writer.old(&[100_000]), writer.kept(&[100_000]));
    let mut last = input;
    until(ops, &mut writer, |writer, at| {
        let next = writer.temporary(&[100_000]);
        writer.with_constant(if at % 2 == 0 { Opcode::Multiply } else { Opcode::Add }, next, last, 1.0 + at as f64);
        if at > 0 {
            writer.drop(last);
        }
        last = next;
    });
    writer.unary(Opcode::Copy, result, last);
    writer.drop(last);
    writer.finish()
}

/// Updates of scalars in place.
pub fn scalar_chain(ops: usize) -> Batch {
    let mut writer = Writer::default();
    let [a, b] = [(); 2].map(|()| writer.old(&[]));
    until(ops, &mut writer, |writer, at| {
        writer.binary(Opcode::Multiply, a, a, b);
        writer.with_constant(Opcode::Add, b, b, at as f64);
    });
    writer.finish()
}

/// Pairs of arrays are added, and pairs of sums, up to one array.
pub fn tree(ops: usize) -> Batch {
    let mut writer = Writer::default();
    let mut level: Vec<Array> = (0..ops.div_ceil(2)).map(|_| writer.old(&[5000])).collect();
    let mut first = true;
    while level.len() > 1 {
        let mut next = Vec::new();
        for pair in level.chunks(2) {
            let &[a, b] = pair else {
                next.extend_from_slice(pair);
                continue;
            };
            let sum = writer.temporary(&[5000]);
            writer.binary(Opcode::Add, sum, a, b);
            if !first {
                writer.drop(a);
                writer.drop(b);
            }
            next.push(sum);
        }
        if first && level.len() % 2 == 1 {
            // A value left over is no temporary.
            next.pop();
        }
        (level, first) = (next, false);
    }
    let result = writer.kept(&[5000]);
    writer.unary(Opcode::Copy, result, level[0]);
    writer.finish()
}

/// `out(all, i, j, all) = sum(in(all, slice(i, i + 2), slice(j, j + 2), all, newaxis) * k(newaxis), {1, 2, 3})`.
pub fn windows(ops: usize) -> Batch {
    let mut writer = Writer::default();
    let (images, rows, columns, channels, filters) = (16, 120, 30, 3, 8);
    let input = writer.old(&[images, rows + 1, columns + 1, channels]);
    let kernel = writer.old(&[2, 2, channels, filters]);
    let output = writer.kept(&[images, rows, columns, filters]);
    until(ops, &mut writer, |writer, at| {
        let (i, j) = (at / columns, at % columns);
        let window = input.part(&[All, From(i, i + 2), From(j, j + 2), All]).new_axis(4);
        let product = writer.temporary(&[images, 2, 2, channels, filters]);
        writer.binary(Opcode::Multiply, product, window, kernel.new_axis(0));
        writer.sum(output.part(&[All, At(i), At(j), All]), product, 0b1110);
        writer.drop(product);
    });
    writer.finish()
}

/// Sums of windows that slide along one array, one result each.
pub fn sliding_sums(ops: usize) -> Batch {
    let mut writer = Writer::default();
    let (input, output) = (writer.old(&[100_000]), writer.kept(&[20_000]));
    until(ops, &mut writer, |writer, at| {
        let square = writer.temporary(&[500]);
        let window = input.part(&[From(at, at + 500)]);
        writer.binary(Opcode::Multiply, square, window, window);
        writer.sum(output.part(&[At(at)]), square, 1);
        writer.drop(square);
    });
    writer.finish()
}

/// Steps of a wave in three grids that change places.
pub fn wave(ops: usize) -> Batch {
    let mut writer = Writer::default();
    let n = 700;
    let mut grids = [(); 3].map(|()| writer.old(&[n, n]));
    until(ops, &mut writer, |writer, _| {
        let [old, now, new] = grids;
        let window = |grid: Array, row: i64, column: i64| {
            grid.part(&[From(1 + row, n - 1 + row), From(1 + column, n - 1 + column)])
        };
        let [a, b, c, d] = [(); 4].map(|()| writer.temporary(&[n - 2, n - 2]));
        writer.binary(Opcode::Add, a, window(now, -1, 0), window(now, 1, 0));
        writer.binary(Opcode::Add, b, window(now, 0, -1), window(now, 0, 1));
        writer.binary(Opcode::Add, c, a, b);
        writer.with_constant(Opcode::Multiply, d, c, 0.5);
        writer.binary(Opcode::Subtract, window(new, 0, 0), d, window(old, 0, 0));
        [a, b, c, d].into_iter().for_each(|array| writer.drop(array));
        grids = [now, new, old];
    });
    writer.finish()
}

/// Tiles of a matrix, each scaled by the tile before it in its row.
pub fn tiles(ops: usize) -> Batch {
    let mut writer = Writer::default();
    let (tile, across) = (32, 60);
    let matrix = writer.old(&[tile * 200, tile * across]);
    until(ops, &mut writer, |writer, at| {
        let place = |at: i64| {
            let (row, column) = (at / across * tile, at % across * tile);
            matrix.part(&[From(row, row + tile), From(column, column + tile)])
        };
        let scaled = writer.temporary(&[tile, tile]);
        writer.with_constant(Opcode::Multiply, scaled, place((at - 1).max(0)), 0.25);
        writer.binary(Opcode::Add, place(at), place(at), scaled);
        writer.drop(scaled);
    });
    writer.finish()
}

/// Sums and differences of halves, as a fast transform takes them.
pub fn butterflies(ops: usize) -> Batch {
    let mut writer = Writer::default();
    let n = 1 << 14;
    let data = writer.old(&[n]);
    let mut at = 0;
    let mut half = n / 2;
    until(ops, &mut writer, |writer, _| {
        let (low, high) = (data.part(&[From(at, at + half)]), data.part(&[From(at + half, at + 2 * half)]));
        let [sum, difference] = [(); 2].map(|()| writer.temporary(&[half]));
        writer.binary(Opcode::Add, sum, low, high);
        writer.binary(Opcode::Subtract, difference, low, high);
        writer.unary(Opcode::Copy, low, sum);
        writer.unary(Opcode::Copy, high, difference);
        writer.drop(sum);
        writer.drop(difference);
        at += 2 * half;
        if at == n {
            (at, half) = (0, if half > 4 { half / 2 } else { n / 2 });
        }
    });
    writer.finish()
}

/// One array that all operations read, each with results of its own that are summed.
pub fn many_readers(ops: usize) -> Batch {
    let mut writer = Writer::default();
    let (weights, results) = (writer.kept(&[1000]), writer.kept(&[20_000]));
    let input = writer.old(&[1000]);
    writer.unary(Opcode::Exp, weights, input);
    until(ops, &mut writer, |writer, at| {
        let own = writer.old(&[1000]);
        writer.dot(results.part(&[At(at)]), own, weights);
    });
    writer.finish()
}
