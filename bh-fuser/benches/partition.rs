//! Microseconds per operation to partition a fresh batch, by algorithm and size, and the cost of a cache hit.
//!
//! `cargo bench -p bh-fuser` prints one JSON object.

use bh_bytecode::planning::{Level, Planning, Work};
use bh_bytecode::random::{self, Rng};
use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, View, base_flags};
use bh_fuser::cache::{Entry, PartitionCache};
use bh_fuser::{Algorithm, Options, Partitioner, cost};
use std::time::Instant;

fn temporary(batch: &mut Batch, shape: &[i64]) -> Operand {
    let view = View::contiguous(shape).expect("small shapes are legal");
    let base = Base::new(batch.bases.len() as u64 + 1, DType::F64, view.len());
    let base = batch.push_base(Base { flags: base_flags::BORN | base_flags::DIES, ..base });
    Operand::view(batch.push_view(base, &view))
}

fn heat(ops: usize) -> Batch {
    let mut batch = Batch::default();
    let n = 1000;
    let grid = batch.push_base(Base { flags: base_flags::LIVE_OUT, ..Base::new(1, DType::F64, n * n) });
    let mut window = |row: i64, col: i64| {
        let view = View::new((1 + row) * n + 1 + col, &[n - 2, n - 2], &[n, 1]).expect("windows fit");
        Operand::view(batch.push_view(grid, &view))
    };
    let windows = [window(0, 0), window(-1, 0), window(0, 1), window(0, -1), window(1, 0)];
    let factor = Operand::constant(batch.push_constant(Constant::from_value(0.2)));
    let shape = [n - 2, n - 2];
    while batch.instrs.len() < ops {
        let mut sum = windows[0];
        let discard = |batch: &mut Batch, operand| batch.push_instr(Instr::new(Opcode::Discard, &[operand]));
        for (at, &window) in windows[1..].iter().enumerate() {
            let next = temporary(&mut batch, &shape);
            batch.push_instr(Instr::new(Opcode::Add, &[next, sum, window]));
            if at > 0 {
                discard(&mut batch, sum);
            }
            sum = next;
        }
        let [work, difference, size] = [(); 3].map(|()| temporary(&mut batch, &shape));
        let delta = temporary(&mut batch, &[]);
        batch.push_instr(Instr::new(Opcode::Multiply, &[work, sum, factor]));
        discard(&mut batch, sum);
        batch.push_instr(Instr::new(Opcode::Subtract, &[difference, work, windows[0]]));
        batch.push_instr(Instr::new(Opcode::Absolute, &[size, difference]));
        discard(&mut batch, difference);
        let mut reduce = Instr::new(Opcode::AddReduce, &[delta, size]);
        reduce.param = 0b11;
        batch.push_instr(reduce);
        discard(&mut batch, size);
        batch.push_instr(Instr::new(Opcode::Copy, &[windows[0], work]));
        discard(&mut batch, work);
        discard(&mut batch, delta);
    }
    batch
}

/// An elementwise program with random data flow over temporaries and ten inputs.
fn expressions(ops: usize) -> Batch {
    let (mut batch, mut rng) = (Batch::default(), Rng::new(3));
    let shape = [100_000];
    let mut live: Vec<Operand> = (0..10).map(|_| temporary(&mut batch, &shape)).collect();
    batch.bases.iter_mut().for_each(|base| base.flags = base_flags::LIVE_OUT);
    while batch.instrs.len() < ops {
        let (a, b) = (live[rng.below(live.len())], live[rng.below(live.len())]);
        let out = temporary(&mut batch, &shape);
        batch.push_instr(Instr::new(Opcode::Add, &[out, a, b]));
        if live.len() > 20 {
            let dead = live.remove(10 + rng.below(8));
            batch.push_instr(Instr::new(Opcode::Discard, &[dead]));
        }
        live.push(out);
    }
    batch
}

/// Elimination: ever smaller views of one matrix.
fn shrinking(ops: usize) -> Batch {
    let mut batch = Batch::default();
    let n = 4000;
    let matrix = batch.push_base(Base { flags: base_flags::LIVE_OUT, ..Base::new(1, DType::F64, n * n) });
    let mut step = 0;
    while batch.instrs.len() < ops {
        let rest = n - step - 1;
        let corner = (step + 1) * n + step + 1;
        let mut push = |start, strides: &[i64]| {
            let view = View::new(start, &[rest, rest], strides).expect("views fit");
            Operand::view(batch.push_view(matrix, &view))
        };
        let column = push((step + 1) * n + step, &[n, 0]);
        let row = push(step * n + step + 1, &[0, 1]);
        let square = push(corner, &[n, 1]);
        let product = temporary(&mut batch, &[rest, rest]);
        batch.push_instr(Instr::new(Opcode::Multiply, &[product, column, row]));
        batch.push_instr(Instr::new(Opcode::Subtract, &[square, square, product]));
        batch.push_instr(Instr::new(Opcode::Discard, &[product]));
        step += 1;
    }
    batch
}

fn mixed(ops: usize) -> Batch {
    let options = random::Options { max_instrs: ops, max_elements: 1 << 20, ..random::Options::default() };
    (0..200)
        .map(|seed| random::program(seed, &options).batch)
        .max_by_key(|batch| batch.instrs.len())
        .unwrap_or_default()
}

/// The least microseconds of several runs.
fn best(mut run: impl FnMut(), runs: usize) -> f64 {
    (0..runs)
        .map(|_| {
            let begin = Instant::now();
            run();
            begin.elapsed().as_secs_f64() * 1e6
        })
        .fold(f64::MAX, f64::min)
}

fn main() {
    let mut partitioner = Partitioner::default();
    let mut lines = Vec::new();
    type Maker = fn(usize) -> Batch;
    let programs: [(&str, Maker); 4] =
        [("heat", heat), ("expressions", expressions), ("shrinking", shrinking), ("mixed", mixed)];
    let wanted = std::env::args().nth(1).filter(|name| !name.starts_with('-')).unwrap_or_default();
    for (name, make) in programs {
        if !name.contains(&wanted) {
            continue;
        }
        for size in [30, 100, 300, 1000, 3000] {
            let batch = make(size);
            let reference = batch.as_ref();
            let count = batch.instrs.len() as f64;
            let mut fields = Vec::new();
            for (label, algorithm) in [("naive", Algorithm::Naive), ("greedy", Algorithm::Greedy)] {
                for (model, cost) in [("views", &cost::UNIQUE_VIEWS), ("traffic", &cost::TRAFFIC)] {
                    let options = Options { algorithm, cost, ..Options::default() };
                    let mut kernels = 0;
                    let time = best(|| kernels = partitioner.partition(&reference, &options).blocks.len(), 20);
                    fields.push(format!(
                        "\"{label}_{model}\":{{\"us_per_op\":{:.3},\"kernels\":{kernels}}}",
                        time / count
                    ));
                }
            }
            lines.push(format!("\"{name}_{size}\":{{\"ops\":{count},{}}}", fields.join(",")));
        }
    }
    for ops in [30, 300] {
        let batch = heat(ops);
        let batch = batch.as_ref();
        let mut cache = PartitionCache::new(1 << 20);
        cache.look_up(&batch, Planning::Auto);
        let partition = partitioner.partition(&batch, &Options::default());
        cache.insert(Entry::new(partition, Level::Full, Work::of(&batch)));
        let rounds = 1000;
        let run =
            || (0..rounds).for_each(|_| assert!(cache.look_up(&batch, Planning::Auto) && cache.found().is_some()));
        let time = best(run, 20) / rounds as f64;
        lines.push(format!("\"cache_hit_{ops}\":{{\"ops\":{},\"us\":{time:.3}}}", batch.instrs.len()));
    }
    println!("{{{}}}", lines.join(",\n"));
}
