//! Random stencil chains: several kernels that read what others of the batch write at shifted places.

use bh_bytecode::batch::base_flags;
use bh_bytecode::interp::Memory;
use bh_bytecode::random::Program;
use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, View};

/// A sequence of numbers from a seed.
pub struct Dice(pub u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// A number from `low` to `high`.
    pub fn pick(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() % (high - low + 1) as u64) as i64
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// A dense array of a program under construction.
#[derive(Clone)]
pub(super) struct Array {
    pub(super) base: u32,
    pub(super) shape: Vec<i64>,
}

/// Builds a program.
pub(super) struct Builder {
    pub(super) dice: Dice,
    pub(super) batch: Batch,
    pub(super) memory: Memory,
    pub(super) dtype: DType,
    pub(super) grids: Vec<Array>,
    pub(super) temporaries: Vec<Array>,
}

pub(super) fn strides(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

impl Builder {
    pub(super) fn new(seed: u64, shape: &[i64], dtypes: &[DType]) -> Builder {
        let mut dice = Dice(seed);
        let dtype = dtypes[dice.pick(0, dtypes.len() as i64 - 1) as usize];
        let (batch, memory) = (Batch::default(), Memory::new());
        let mut builder = Builder { dice, batch, memory, dtype, grids: Vec::new(), temporaries: Vec::new() };
        for _ in 0..builder.dice.pick(1, 3) {
            let len: i64 = shape.iter().product();
            let base = builder.batch.push_base(Base {
                flags: base_flags::LIVE_OUT,
                ..Base::new(builder.batch.bases.len() as u64 + 1, dtype, len)
            });
            let values = (0..len).map(|_| builder.dice.pick(-9, 9));
            let bytes: Vec<u8> = match dtype {
                DType::I64 => values.flat_map(i64::to_ne_bytes).collect(),
                DType::I32 => values.flat_map(|value| (value as i32).to_ne_bytes()).collect(),
                DType::F32 => values.flat_map(|value| (value as f32 * 0.37).to_ne_bytes()).collect(),
                _ => values.flat_map(|value| (value as f64 * 0.37).to_ne_bytes()).collect(),
            };
            builder.memory.insert(u64::from(base) + 1, bytes);
            builder.grids.push(Array { base, shape: shape.to_vec() });
        }
        builder
    }

    pub(super) fn born(&mut self, shape: &[i64]) -> Array {
        let id = self.batch.bases.len() as u64 + 1;
        let flags = base_flags::BORN | base_flags::LIVE_OUT;
        let base = Base { flags, ..Base::new(id, self.dtype, shape.iter().product()) };
        Array { base: self.batch.push_base(base), shape: shape.to_vec() }
    }

    /// The window of an array with this shape that begins at `origin`.
    pub(super) fn window(&mut self, array: &Array, origin: &[i64], shape: &[i64]) -> Operand {
        let strides = strides(&array.shape);
        let start = origin.iter().zip(&strides).map(|(at, stride)| at * stride).sum();
        Operand::view(self.batch.intern_view(array.base, &View::new(start, shape, &strides).unwrap()))
    }

    /// A window of some array that is large enough, somewhere.
    pub(super) fn somewhere(&mut self, shape: &[i64]) -> Operand {
        let fits = |array: &&Array| array.shape.iter().zip(shape).all(|(have, want)| have >= want);
        let all: Vec<Array> = self.temporaries.iter().chain(&self.grids).filter(fits).cloned().collect();
        let array = all[self.dice.pick(0, all.len() as i64 - 1) as usize].clone();
        let origin: Vec<i64> =
            array.shape.iter().zip(shape).map(|(have, want)| self.dice.pick(0, (have - want).min(3))).collect();
        self.window(&array, &origin, shape)
    }

    pub(super) fn constant(&mut self) -> Operand {
        let number = self.dice.pick(-3, 3);
        let constant = match self.dtype {
            DType::I64 | DType::I32 => Constant { bits: [number as u64, 0], dtype: DType::I64 as u8, reserved: [0; 7] },
            _ => Constant { bits: [(number as f64 / 4.0).to_bits(), 0], dtype: DType::F64 as u8, reserved: [0; 7] },
        };
        Operand::constant(self.batch.push_constant(constant.cast(self.dtype)))
    }

    pub(super) fn compute(&mut self, out: Operand, shape: &[i64]) {
        let left = self.somewhere(shape);
        let right = if self.dice.chance(20) { self.constant() } else { self.somewhere(shape) };
        let opcodes = [Opcode::Add, Opcode::Subtract, Opcode::Maximum, Opcode::Multiply];
        let opcode = opcodes[self.dice.pick(0, if self.dtype == DType::I64 { 3 } else { 2 }) as usize];
        self.batch.push_instr(Instr::new(opcode, &[out, left, right]));
    }

    /// Quotients of windows of two arrays, at places that lie apart along an axis, and often the same along another one.
    fn flux(&mut self) {
        let shape = self.smaller();
        let fits = |array: &&Array| array.shape.iter().zip(&shape).all(|(have, want)| have >= want);
        let all: Vec<Array> = self.temporaries.iter().chain(&self.grids).filter(fits).cloned().collect();
        if all.is_empty() {
            return;
        }
        let inputs = [(); 2].map(|()| {
            let array = all[self.dice.pick(0, all.len() as i64 - 1) as usize].clone();
            let room = array.shape.iter().zip(&shape).map(|(have, want)| have - want);
            let place = room.map(|room| self.dice.pick(0, room.min(2))).collect();
            (array, place)
        });
        let axis = self.dice.pick(0, shape.len() as i64 - 1) as usize;
        self.flux_along(axis, &inputs, &shape);
        let other = self.dice.pick(0, shape.len() as i64 - 1) as usize;
        if other != axis && self.dice.chance(70) {
            // Inside of the others' first and last places, as faces are.
            let (mut inputs, mut shape) = (inputs, shape);
            if shape[axis] > 8 && self.dice.chance(70) {
                shape[axis] -= 2;
                inputs.iter_mut().for_each(|(_, place)| place[axis] += 1);
            }
            self.flux_along(other, &inputs, &shape);
        }
    }

    /// A quotient of windows of two arrays, at two or three places along an axis, and their sum: values that are made
    /// once in a window. All but the sum may be contracted.
    fn flux_along(&mut self, axis: usize, inputs: &[(Array, Vec<i64>); 2], shape: &[i64]) {
        let mut shape = shape.to_vec();
        let reach = self.dice.pick(1, 2).min(shape[axis] / 8);
        if reach < 1 {
            return;
        }
        shape[axis] -= reach;
        let origin = vec![0; shape.len()];
        let (sum, mut temporaries) = (self.born(&shape), Vec::new());
        let target = self.window(&sum, &origin, &shape);
        let other = self.somewhere(&shape);
        for at in 0..=reach {
            if at == 1 && reach == 2 && self.dice.chance(50) {
                continue;
            }
            let mut part = |builder: &mut Builder, opcode: Opcode, inputs: [Operand; 2]| {
                let array = builder.born(&shape);
                let out = builder.window(&array, &origin, &shape);
                builder.batch.push_instr(Instr::new(opcode, &[out, inputs[0], inputs[1]]));
                temporaries.push(array);
                out
            };
            let [x, y] = inputs.each_ref().map(|(array, place)| {
                let mut place = place.clone();
                place[axis] += at;
                self.window(array, &place, &shape)
            });
            // At least one, so that the quotient is a number.
            let one = match self.dtype {
                DType::I64 => Constant { bits: [1, 0], dtype: DType::I64 as u8, reserved: [0; 7] },
                _ => Constant { bits: [1f64.to_bits(), 0], dtype: DType::F64 as u8, reserved: [0; 7] },
            };
            let one = Operand::constant(self.batch.push_constant(one));
            let divisor = part(self, Opcode::Maximum, [y, one]);
            let quotient = part(self, Opcode::Divide, [x, divisor]);
            let last = part(self, Opcode::Add, [quotient, x]);
            let before = if at == 0 { other } else { target };
            self.batch.push_instr(Instr::new(Opcode::Maximum, &[target, before, last]));
            if self.dice.chance(30) {
                self.batch.push_instr(Instr::new(Opcode::Subtract, &[target, target, quotient]));
            }
        }
        for array in temporaries {
            self.drop_base(&array);
        }
        self.temporaries.push(sum);
    }

    /// A shape a little smaller than the grids'.
    pub(super) fn smaller(&mut self) -> Vec<i64> {
        let shape = self.grids[0].shape.clone();
        shape.iter().map(|&extent| (extent - self.dice.pick(0, 2)).max(1)).collect()
    }

    fn temporary(&mut self) {
        let shape = self.smaller();
        let array = self.born(&shape);
        if self.dice.chance(20) && shape[0] > 3 {
            // Written in two parts.
            let first = self.dice.pick(1, shape[0] - 1);
            for (from, to) in [(0, first), (first, shape[0])] {
                let mut part = shape.clone();
                part[0] = to - from;
                let mut origin = vec![0; shape.len()];
                origin[0] = from;
                let out = self.window(&array, &origin, &part);
                self.compute(out, &part);
            }
        } else {
            let out = self.window(&array, &vec![0; shape.len()], &shape);
            self.compute(out, &shape);
            if self.dice.chance(40) {
                let more = self.somewhere(&shape);
                self.batch.push_instr(Instr::new(Opcode::Add, &[out, out, more]));
            }
        }
        self.temporaries.push(array);
    }

    fn update_grid(&mut self) {
        let shape = self.smaller();
        let grid = self.grids[self.dice.pick(0, self.grids.len() as i64 - 1) as usize].clone();
        let origin: Vec<i64> =
            grid.shape.iter().zip(&shape).map(|(have, want)| self.dice.pick(0, have - want)).collect();
        let out = self.window(&grid, &origin, &shape);
        if self.dice.chance(50) {
            // Through a temporary that dies, as C++ expressions do: shifted reads of the grid itself.
            let array = self.born(&shape);
            let value = self.window(&array, &vec![0; shape.len()], &shape);
            self.compute(value, &shape);
            self.batch.push_instr(Instr::new(Opcode::Copy, &[out, value]));
            self.drop_base(&array);
        } else {
            let other = self.somewhere(&shape);
            let base = |batch: &Batch, operand: Operand| batch.views[operand.as_view().unwrap() as usize].base;
            if base(&self.batch, other) != grid.base {
                self.batch.push_instr(Instr::new(Opcode::Subtract, &[out, out, other]));
            }
        }
    }

    /// Copies an inner face of a grid to its border.
    fn border(&mut self) {
        let grid = self.grids[self.dice.pick(0, self.grids.len() as i64 - 1) as usize].clone();
        let axis = self.dice.pick(0, grid.shape.len() as i64 - 1) as usize;
        if grid.shape[axis] < 3 {
            return;
        }
        let (mut shape, mut to) = (grid.shape.clone(), vec![0; grid.shape.len()]);
        shape[axis] = 1;
        let mut from = to.clone();
        (to[axis], from[axis]) =
            if self.dice.chance(50) { (0, 1) } else { (grid.shape[axis] - 1, grid.shape[axis] - 2) };
        let (out, input) = (self.window(&grid, &to, &shape), self.window(&grid, &from, &shape));
        self.batch.push_instr(Instr::new(Opcode::Copy, &[out, input]));
    }

    fn fold(&mut self) {
        let shape = self.smaller();
        let input = self.somewhere(&shape);
        let all = (1u16 << shape.len()) - 1;
        let mask = if self.dice.chance(60) { all } else { self.dice.pick(1, i64::from(all)) as u16 };
        let kept: Vec<i64> =
            shape.iter().enumerate().filter(|(axis, _)| mask >> axis & 1 == 0).map(|(_, &extent)| extent).collect();
        let array = self.born(&kept);
        let out = self.window(&array, &vec![0; kept.len()], &kept);
        let opcode = if self.dice.chance(50) { Opcode::AddReduce } else { Opcode::MaximumReduce };
        let instr = Instr { param: mask, ..Instr::new(opcode, &[out, input]) };
        self.batch.push_instr(instr);
        // A sum may be rounded in another order, so that nothing may be made of it.
        let exact = self.dtype == DType::I64 || opcode == Opcode::MaximumReduce;
        if exact && self.dice.chance(30) {
            let constant = self.constant();
            let scaled = self.born(&kept);
            let scaled = self.window(&scaled, &vec![0; kept.len()], &kept);
            self.batch.push_instr(Instr::new(Opcode::Maximum, &[scaled, out, constant]));
        }
    }

    pub(super) fn drop_base(&mut self, array: &Array) {
        let base = &mut self.batch.bases[array.base as usize];
        base.flags = base.flags & !base_flags::LIVE_OUT | base_flags::DIES;
        let len = base.len;
        let whole = Operand::view(self.batch.intern_view(array.base, &View::new(0, &[len], &[1]).unwrap()));
        self.batch.push_instr(Instr::new(Opcode::Discard, &[whole]));
    }

    pub(super) fn drop_temporary(&mut self) {
        if !self.temporaries.is_empty() {
            let at = self.dice.pick(0, self.temporaries.len() as i64 - 1) as usize;
            let array = self.temporaries.swap_remove(at);
            self.drop_base(&array);
        }
    }

    fn build(mut self, operations: usize) -> Program {
        for _ in 0..operations {
            match self.dice.pick(0, 99) {
                0..20 => self.temporary(),
                20..42 => self.flux(),
                42..65 => self.update_grid(),
                65..75 => self.border(),
                75..83 => self.fold(),
                _ => self.drop_temporary(),
            }
        }
        for array in std::mem::take(&mut self.temporaries) {
            if self.dice.chance(75) {
                self.drop_base(&array);
            }
        }
        Program { batch: self.batch, memory: self.memory }
    }
}

/// A chain of kernels over arrays of about this shape.
pub fn stencil_chain(seed: u64, shape: &[i64], operations: usize) -> Program {
    Builder::new(seed, shape, &[DType::I64, DType::F64]).build(operations)
}
