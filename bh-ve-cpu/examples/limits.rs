//! Times whole programs on the engine alone, beside what the machine's memory allows.
//!
//! `limits [name] [threads]`: heat equation, Black-Scholes, N-body, Leibnitz' series, small operations.

#[path = "../tests/all/support/mod.rs"]
mod support;

use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, View, base_flags};
use bh_fuser::{Options, Partitioner};
use std::time::Instant;
use support::Driver;

/// Builds a batch of f64 operations.
#[derive(Default)]
struct Builder {
    batch: Batch,
    temporaries: Vec<u32>,
}

impl Builder {
    fn base(&mut self, id: u64, len: i64) -> u32 {
        let mut base = Base::new(id, DType::F64, len);
        base.flags = base_flags::LIVE_OUT;
        self.batch.push_base(base)
    }

    fn temporary(&mut self, shape: &[i64]) -> Operand {
        let mut base = Base::new(1_000_000 + self.batch.bases.len() as u64, DType::F64, shape.iter().product());
        base.flags = base_flags::BORN | base_flags::DIES;
        let base = self.batch.push_base(base);
        self.temporaries.push(base);
        self.view(base, &View::contiguous(shape).unwrap())
    }

    fn view(&mut self, base: u32, view: &View) -> Operand {
        Operand::view(self.batch.intern_view(base, view))
    }

    fn constant(&mut self, value: f64) -> Operand {
        Operand::constant(self.batch.push_constant(Constant::from_value(value)))
    }

    fn write(&mut self, opcode: Opcode, out: Operand, inputs: &[Operand]) {
        let operands: Vec<Operand> = std::iter::once(out).chain(inputs.iter().copied()).collect();
        self.batch.push_instr(Instr::new(opcode, &operands));
    }

    fn op(&mut self, opcode: Opcode, shape: &[i64], inputs: &[Operand]) -> Operand {
        let out = self.temporary(shape);
        self.write(opcode, out, inputs);
        out
    }

    fn reduce(&mut self, opcode: Opcode, out: Operand, input: Operand, axes: u16) {
        let mut instr = Instr::new(opcode, &[out, input]);
        instr.param = axes;
        self.batch.push_instr(instr);
    }

    /// The batch, with temporaries dropped at the end.
    fn finish(mut self) -> Batch {
        for base in std::mem::take(&mut self.temporaries) {
            let view = self.batch.push_view(base, &View::contiguous(&[self.batch.bases[base as usize].len]).unwrap());
            self.batch.push_instr(Instr::new(Opcode::Discard, &[Operand::view(view)]));
        }
        self.batch
    }
}

fn heat(n: i64) -> Batch {
    let mut b = Builder::default();
    let grid = b.base(1, (n + 2) * (n + 2));
    let delta = b.base(2, 1);
    let at = |b: &mut Builder, row: i64, column: i64| {
        b.view(grid, &View::new(row * (n + 2) + column, &[n, n], &[n + 2, 1]).unwrap())
    };
    let center = at(&mut b, 1, 1);
    let neighbours = [at(&mut b, 0, 1), at(&mut b, 2, 1), at(&mut b, 1, 0), at(&mut b, 1, 2)];
    let shape = [n, n];
    let mut sum = center;
    for neighbour in neighbours {
        sum = b.op(Opcode::Add, &shape, &[sum, neighbour]);
    }
    let fifth = b.constant(0.2);
    let work = b.op(Opcode::Multiply, &shape, &[sum, fifth]);
    let difference = b.op(Opcode::Subtract, &shape, &[work, center]);
    let size = b.op(Opcode::Absolute, &shape, &[difference]);
    let delta = b.view(delta, &View::new(0, &[], &[]).unwrap());
    b.reduce(Opcode::AddReduce, delta, size, 0b11);
    b.write(Opcode::Copy, center, &[work]);
    b.finish()
}

fn black_scholes(n: i64) -> Batch {
    let mut b = Builder::default();
    let spot = b.base(1, n);
    let total = b.base(2, 1);
    let shape = [n];
    let (strike, rate, volatility, years) = (65.0, 0.08, 0.3, 0.25f64);
    let spread = volatility * years.sqrt();
    let drift = (rate + volatility * volatility / 2.0) * years;
    let spot = b.view(spot, &View::contiguous(&shape).unwrap());
    let with = |b: &mut Builder, opcode, x: Operand, value: f64| {
        let value = b.constant(value);
        b.op(opcode, &shape, &[x, value])
    };
    let ratio = with(&mut b, Opcode::Divide, spot, strike);
    let log = b.op(Opcode::Log, &shape, &[ratio]);
    let drifted = with(&mut b, Opcode::Add, log, drift);
    let d1 = with(&mut b, Opcode::Divide, drifted, spread);
    let d2 = with(&mut b, Opcode::Subtract, d1, spread);
    let normal = |b: &mut Builder, x: Operand| {
        let size = b.op(Opcode::Absolute, &shape, &[x]);
        let scaled = with(b, Opcode::Multiply, size, 0.2316419);
        let shifted = with(b, Opcode::Add, scaled, 1.0);
        let one = b.constant(1.0);
        let k = b.op(Opcode::Divide, &shape, &[one, shifted]);
        let mut series = with(b, Opcode::Multiply, k, 1.330274429);
        for coefficient in [-1.821255978, 1.781477937, -0.356563782, 0.31938153] {
            let term = with(b, Opcode::Add, series, coefficient);
            series = b.op(Opcode::Multiply, &shape, &[k, term]);
        }
        let half = with(b, Opcode::Multiply, size, -0.5);
        let exponent = b.op(Opcode::Multiply, &shape, &[half, size]);
        let exp = b.op(Opcode::Exp, &shape, &[exponent]);
        let density = with(b, Opcode::Multiply, exp, 0.3989422804014327);
        let tail = b.op(Opcode::Multiply, &shape, &[density, series]);
        let upper = b.op(Opcode::Subtract, &shape, &[one, tail]);
        let zero = b.constant(0.0);
        let mask = Base {
            dtype: DType::Bool as u8,
            flags: base_flags::BORN | base_flags::DIES,
            ..Base::new(2_000_000 + b.batch.bases.len() as u64, DType::Bool, n)
        };
        let mask = b.batch.push_base(mask);
        b.temporaries.push(mask);
        let mask = b.view(mask, &View::contiguous(&shape).unwrap());
        b.write(Opcode::Less, mask, &[x, zero]);
        b.op(Opcode::Where, &shape, &[mask, tail, upper])
    };
    let (first, second) = (normal(&mut b, d1), normal(&mut b, d2));
    let gain = b.op(Opcode::Multiply, &shape, &[spot, first]);
    let cost = with(&mut b, Opcode::Multiply, second, strike * (-rate * years).exp());
    let price = b.op(Opcode::Subtract, &shape, &[gain, cost]);
    let total = b.view(total, &View::new(0, &[], &[]).unwrap());
    b.reduce(Opcode::AddReduce, total, price, 1);
    b.finish()
}

fn nbody(n: i64) -> Batch {
    let mut b = Builder::default();
    let bases: Vec<u32> = (0..7).map(|id| b.base(id + 1, n)).collect();
    let shape = [n, n];
    let line = View::contiguous(&[n]).unwrap();
    let down = View::new(0, &shape, &[1, 0]).unwrap();
    let along = View::new(0, &shape, &[0, 1]).unwrap();
    let mut d = Vec::new();
    for &base in &bases[..3] {
        let (here, there) = (b.view(base, &down), b.view(base, &along));
        d.push(b.op(Opcode::Subtract, &shape, &[there, here]));
    }
    let squares: Vec<Operand> = d.iter().map(|&x| b.op(Opcode::Multiply, &shape, &[x, x])).collect();
    let sum = b.op(Opcode::Add, &shape, &[squares[0], squares[1]]);
    let sum = b.op(Opcode::Add, &shape, &[sum, squares[2]]);
    let softening = b.constant(0.01);
    let square = b.op(Opcode::Add, &shape, &[sum, softening]);
    let root = b.op(Opcode::Sqrt, &shape, &[square]);
    let cube = b.op(Opcode::Multiply, &shape, &[square, root]);
    let mass = b.view(bases[6], &along);
    let pull = b.op(Opcode::Divide, &shape, &[mass, cube]);
    let mut sums = Vec::new();
    for &x in &d {
        let force = b.op(Opcode::Multiply, &shape, &[pull, x]);
        let sum = b.temporary(&[n]);
        b.reduce(Opcode::AddReduce, sum, force, 0b10);
        sums.push(sum);
    }
    let dt = b.constant(0.0001);
    for (axis, &sum) in sums.iter().enumerate() {
        let velocity = b.view(bases[3 + axis], &line);
        let change = b.op(Opcode::Multiply, &[n], &[sum, dt]);
        b.write(Opcode::Add, velocity, &[velocity, change]);
    }
    for axis in 0..3 {
        let (velocity, position) = (b.view(bases[3 + axis], &line), b.view(bases[axis], &line));
        let change = b.op(Opcode::Multiply, &[n], &[velocity, dt]);
        b.write(Opcode::Add, position, &[position, change]);
    }
    b.finish()
}

fn leibnitz(n: i64) -> Batch {
    let mut b = Builder::default();
    let total = b.base(1, 1);
    let shape = [n];
    let index = View::contiguous(&shape).unwrap();
    let index = Operand::view(b.batch.push_view(bh_bytecode::batch::NO_BASE, &index));
    let k = b.op(Opcode::Range, &shape, &[index]);
    let with = |b: &mut Builder, opcode, x: Operand, value: f64| {
        let value = b.constant(value);
        b.op(opcode, &shape, &[x, value])
    };
    let four = with(&mut b, Opcode::Multiply, k, 4.0);
    let (low, high) = (with(&mut b, Opcode::Add, four, 1.0), with(&mut b, Opcode::Add, four, 3.0));
    let one = b.constant(1.0);
    let (first, second) = (b.op(Opcode::Divide, &shape, &[one, low]), b.op(Opcode::Divide, &shape, &[one, high]));
    let term = b.op(Opcode::Subtract, &shape, &[first, second]);
    let total = b.view(total, &View::new(0, &[], &[]).unwrap());
    b.reduce(Opcode::AddReduce, total, term, 1);
    b.finish()
}

fn small(n: i64) -> Batch {
    let mut b = Builder::default();
    let bases: Vec<u32> = (0..2).map(|id| b.base(id + 1, n)).collect();
    let line = View::contiguous(&[n]).unwrap();
    let views: Vec<Operand> = bases.iter().map(|&base| b.view(base, &line)).collect();
    for step in 0..20 {
        let out = views[step % 2];
        b.write(if step % 3 == 0 { Opcode::Add } else { Opcode::Multiply }, out, &[views[0], views[1]]);
    }
    b.finish()
}

fn add(n: i64) -> Batch {
    let mut b = Builder::default();
    let line = View::contiguous(&[n]).unwrap();
    let views: Vec<Operand> = (0..3)
        .map(|id| {
            let base = b.base(id + 1, n);
            b.view(base, &line)
        })
        .collect();
    b.write(Opcode::Add, views[2], &[views[0], views[1]]);
    b.finish()
}

fn measure(name: &str, threads: &str, batch: Batch, bytes: f64, repeat: usize) {
    let mut driver = Driver::new(&[("threads", threads)]).expect("the engine starts");
    let tables = batch.as_ref();
    let partition = Partitioner::default().partition(&tables, &Options::default());
    let fused = partition.apply(&tables);
    for base in &batch.bases {
        if base.id < 1000 {
            let data: Vec<u8> = (0..base.len).flat_map(|i| (58.0 + (i % 97) as f64 / 25.0).to_ne_bytes()).collect();
            driver.put(base.id, &data);
        }
    }
    driver.run(&fused).expect("it runs");
    let mut times: Vec<f64> = (0..repeat)
        .map(|_| {
            let begin = Instant::now();
            driver.run(&fused).expect("it runs");
            begin.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let median = times[repeat / 2];
    let blocks = fused.blocks.len();
    let rate = bytes / median / 1e9;
    println!(
        "{name:24} {blocks:3} blocks  median {:10.3} µs  best {:10.3} µs  {rate:6.2} GB/s",
        median * 1e6,
        times[0] * 1e6
    );
}

/// Name, program, size, bytes that must move, and repetitions.
type Case = (&'static str, fn(i64) -> Batch, i64, f64, usize);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let wanted = arguments.get(1).map_or("", String::as_str);
    let threads = arguments.get(2).map_or("2", String::as_str);
    let cases: [Case; 9] = [
        ("add10", add, 10, 240.0, 20_000),
        ("small1000", small, 1000, 16_000.0, 20_000),
        ("add1e7", add, 10_000_000, 2.4e8, 15),
        ("heat500", heat, 500, 4e6, 200),
        ("heat2000", heat, 2000, 6.4e7, 30),
        ("heat8000", heat, 8000, 1.024e9, 7),
        ("black_scholes4e6", black_scholes, 4_000_000, 3.2e7, 9),
        ("nbody2000", nbody, 2000, 3.2e7, 15),
        ("leibnitz1e7", leibnitz, 10_000_000, 8e7, 15),
    ];
    for (name, program, n, bytes, repeat) in cases {
        if name.contains(wanted) {
            measure(name, threads, program(n), bytes, repeat);
        }
    }
}
