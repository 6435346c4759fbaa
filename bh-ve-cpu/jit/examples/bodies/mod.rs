//! Kernels of well-known programs, as requests for the compiler.

use bh_bytecode::{DType, Opcode};
use bh_jit_abi::{Folds, Level, Near, Request, SlotForm, Stride};
use bh_kernel::{Arg, SlotMode, Step};

/// Builds the body of a kernel of a type, f64 unless it is changed, at the level of AVX-512 unless that is.
pub struct Body(pub Request, u16, DType);

impl Body {
    fn new(folds: Folds) -> Body {
        let request = Request {
            level: Level::Avx512,
            divider: bh_jit_abi::Divider::Slow,
            fast_math: false,
            in_order: false,
            short: false,
            repeat: 0,
            folds,
            slots: Vec::new(),
            constants: Vec::new(),
            steps: Vec::new(),
            program: String::new(),
        };
        Body(request, 0, DType::F64)
    }

    fn slot(&mut self, mode: SlotMode, stride: Stride) -> u16 {
        self.0.slots.push(SlotForm { dtype: self.2, mode, stride, non_temporal: false, fetch: true, near: None });
        self.0.slots.len() as u16 - 1
    }

    fn value(&mut self, step: Step) -> Arg {
        self.0.steps.push(step);
        self.1 += 1;
        Arg::Value(self.1 - 1)
    }

    fn load(&mut self, stride: Stride) -> Arg {
        let slot = self.slot(SlotMode::Read, stride);
        self.value(Step::Load { slot })
    }

    fn constant(&mut self) -> Arg {
        self.0.constants.push(self.2);
        Arg::Constant(self.0.constants.len() as u16 - 1)
    }

    fn compute(&mut self, opcode: Opcode, args: &[Arg]) -> Arg {
        let last = args[args.len() - 1];
        let args = [args[0], args.get(1).copied().unwrap_or(last), last];
        let (count, dtype) = (opcode.info().inputs, self.2);
        self.value(Step::Compute { opcode, param: 0, input: dtype, output: dtype, args, count })
    }

    fn sum(&mut self, arg: Arg) {
        let slot = self.slot(SlotMode::Result, Stride::Zero);
        self.0.steps.push(Step::Reduce { opcode: Opcode::AddReduce, slot, arg });
    }

    fn store(&mut self, arg: Arg) {
        let slot = self.slot(SlotMode::Write, Stride::Unit);
        self.0.steps.push(Step::Store { slot, arg });
    }
}

/// The pull of all bodies on one.
pub fn gravity() -> Body {
    let mut body = Body::new(Folds::Lanes);
    let mut distances = Vec::new();
    let mut square = body.constant();
    for _ in 0..3 {
        let (other, own) = (body.load(Stride::Unit), body.load(Stride::Zero));
        let distance = body.compute(Opcode::Subtract, &[other, own]);
        let part = body.compute(Opcode::Multiply, &[distance, distance]);
        square = body.compute(Opcode::Add, &[part, square]);
        distances.push(distance);
    }
    let root = body.compute(Opcode::Sqrt, &[square]);
    let cube = body.compute(Opcode::Multiply, &[square, root]);
    let mass = body.load(Stride::Unit);
    let pull = body.compute(Opcode::Divide, &[mass, cube]);
    for distance in distances {
        let part = body.compute(Opcode::Multiply, &[pull, distance]);
        body.sum(part);
    }
    body
}

/// The sum of 1 / (k + a) - 1 / (k + b).
pub fn series() -> Body {
    let mut body = Body::new(Folds::Lanes);
    let slot = body.slot(SlotMode::Index, Stride::Other);
    let k = body.value(Step::Range { slot, output: DType::F64 });
    let one = body.constant();
    let mut terms = Vec::new();
    for _ in 0..2 {
        let shift = body.constant();
        let divisor = body.compute(Opcode::Add, &[k, shift]);
        terms.push(body.compute(Opcode::Divide, &[one, divisor]));
    }
    let difference = body.compute(Opcode::Subtract, &terms);
    body.sum(difference);
    body
}

/// The mean of five neighbours, and the sum of changes.
pub fn stencil() -> Body {
    let mut body = Body::new(Folds::Lanes);
    let centre = body.load(Stride::Unit);
    let mut sum = centre;
    for (rows, distance) in [(-1, 0), (1, 0), (0, -1), (0, 1)] {
        let neighbour = body.load(Stride::Unit);
        body.0.slots.last_mut().expect("just made").near = Some(Near { slot: 0, rows, distance });
        sum = body.compute(Opcode::Add, &[sum, neighbour]);
    }
    let factor = body.constant();
    let mean = body.compute(Opcode::Multiply, &[sum, factor]);
    let change = body.compute(Opcode::Subtract, &[mean, centre]);
    let size = body.compute(Opcode::Absolute, &[change]);
    body.store(mean);
    body.0.slots.last_mut().expect("just made").non_temporal = true;
    body.sum(size);
    body
}

/// The mean of 27 neighbours.
pub fn cube() -> Body {
    let mut body = Body::new(Folds::None);
    let mut sum = None;
    for number in 0..27 {
        let neighbour = body.load(Stride::Unit);
        // Planes have positions of their own.
        let (slot, rows, distance) = (number / 9 * 9, (number / 3 % 3) as i8, (number % 3) as i16);
        let near = (number % 9 > 0).then_some(Near { slot, rows, distance });
        body.0.slots.last_mut().expect("just made").near = near;
        sum = Some(sum.map_or(neighbour, |sum| body.compute(Opcode::Add, &[sum, neighbour])));
    }
    let factor = body.constant();
    let mean = body.compute(Opcode::Multiply, &[sum.expect("there are terms"), factor]);
    body.store(mean);
    body.0.slots.last_mut().expect("just made").non_temporal = true;
    body
}

/// Prices of options to buy, and their sum (Black and Scholes).
pub fn prices() -> Body {
    let mut body = Body::new(Folds::Lanes);
    let (spot, strike, years) = (body.load(Stride::Unit), body.load(Stride::Unit), body.load(Stride::Unit));
    let [drift, volatility, discount, half, one, root_half] = [(); 6].map(|()| body.constant());
    let ratio = body.compute(Opcode::Divide, &[spot, strike]);
    let moneyness = body.compute(Opcode::Log, &[ratio]);
    let root = body.compute(Opcode::Sqrt, &[years]);
    let spread = body.compute(Opcode::Multiply, &[volatility, root]);
    let drifted = body.compute(Opcode::Multiply, &[drift, years]);
    let sum = body.compute(Opcode::Add, &[moneyness, drifted]);
    let first = body.compute(Opcode::Divide, &[sum, spread]);
    let second = body.compute(Opcode::Subtract, &[first, spread]);
    let probabilities = [first, second].map(|point| {
        let scaled = body.compute(Opcode::Multiply, &[point, root_half]);
        let error = body.compute(Opcode::Erf, &[scaled]);
        let shifted = body.compute(Opcode::Add, &[error, one]);
        body.compute(Opcode::Multiply, &[shifted, half])
    });
    let discounted = body.compute(Opcode::Multiply, &[discount, years]);
    let factor = body.compute(Opcode::Exp, &[discounted]);
    let paid = body.compute(Opcode::Multiply, &[strike, factor]);
    let gain = body.compute(Opcode::Multiply, &[spot, probabilities[0]]);
    let loss = body.compute(Opcode::Multiply, &[paid, probabilities[1]]);
    let price = body.compute(Opcode::Subtract, &[gain, loss]);
    body.store(price);
    body.sum(price);
    body
}

/// The product of complex numbers and the conjugates of others, added.
pub fn waves() -> Body {
    let mut body = Body::new(Folds::None);
    body.2 = DType::C128;
    let (a, b, c) = (body.load(Stride::Unit), body.load(Stride::Unit), body.load(Stride::Unit));
    let product = body.compute(Opcode::Multiply, &[a, b]);
    let conjugate = body.compute(Opcode::Conj, &[c]);
    let sum = body.compute(Opcode::Add, &[product, conjugate]);
    body.store(sum);
    body.0.slots.last_mut().expect("just made").non_temporal = true;
    body
}
