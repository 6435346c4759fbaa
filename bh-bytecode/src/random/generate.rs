//! The generator: grows a program instruction by instruction from the arrays that are already there.

use super::{Options, Program, Rng, views};
use crate::batch::{Base, Batch, Constant, Instr, NO_BASE, Operand, Origin, base_flags};
use crate::compare::may_differ;
use crate::dtype::{DType, TypeSet};
use crate::element::{CastFrom, Element};
use crate::interp::Memory;
use crate::opcode::{Info, Kind, Opcode, SAME_BITS, Signature};
use crate::order::{AxisOrder, FIXED};
use crate::truth::Truth;
use crate::view::{Overlap, View, overlap};
use crate::with_dtype;

/// A base of the program under construction.
struct Array {
    dtype: DType,
    /// Its layout, from which slices are taken.
    grid: Vec<i64>,
    len: i64,
    /// May instructions use it?
    usable: bool,
    /// Has FREE dropped its data? Then it may be written again, as a whole.
    freed: bool,
}

struct Generator<'a> {
    rng: Rng,
    options: &'a Options,
    batch: Batch,
    memory: Memory,
    arrays: Vec<Array>,
    shapes: Vec<Vec<i64>>,
    /// Identities come in no order.
    next_id: u64,
}

/// A random valid program. The same seed and options give the same program everywhere.
pub fn program(seed: u64, options: &Options) -> Program {
    let mut rng = Rng::new(seed);
    let first_id = 1 + (rng.bits() >> 40);
    let mut generator = Generator {
        rng,
        options,
        batch: Batch::default(),
        memory: Memory::new(),
        arrays: Vec::new(),
        shapes: Vec::new(),
        next_id: first_id,
    };
    generator.run();
    let Generator { mut batch, memory, .. } = generator;
    let dies = batch.bases.iter().map(|base| !base.has(base_flags::DIES)).collect::<Vec<_>>();
    for (base, live) in batch.bases.iter_mut().zip(dies) {
        base.flags |= if live { base_flags::LIVE_OUT } else { 0 };
    }
    Program { batch, memory }
}

impl Generator<'_> {
    fn run(&mut self) {
        for _ in 0..1 + self.rng.below(3) {
            let shape = views::shape(&mut self.rng, self.options);
            self.shapes.push(shape);
        }
        let target = 1 + self.rng.below(self.options.max_instrs);
        let mut attempts = 0;
        while self.batch.instrs.len() < target && attempts < 20 * target {
            attempts += 1;
            if self.rng.chance(3) {
                self.stencil();
            } else if self.rng.chance(10) {
                self.system();
            } else {
                self.operation();
            }
        }
        if self.batch.instrs.is_empty() {
            self.push(Opcode::Nop, 0, &[]);
        }
    }

    fn push(&mut self, opcode: Opcode, param: u16, operands: &[Operand]) {
        let mut instr = Instr::new(opcode, operands);
        instr.param = param;
        if self.rng.chance(70) {
            if self.batch.origins.is_empty() {
                self.batch.push_string("random.c");
            }
            let line = self.batch.instrs.len() as u32 + 1;
            self.batch.origins.push(Origin { file: 0, file_len: 8, line });
            instr.origin = self.batch.origins.len() as u32;
        }
        self.batch.push_instr(instr);
    }

    /// A type that the options allow, out of a set.
    fn dtype(&mut self, set: TypeSet) -> Option<DType> {
        let types: Vec<DType> = TypeSet(set.0 & self.options.types.0).iter().collect();
        self.rng.pick(&types).copied()
    }

    fn shape(&mut self) -> Vec<i64> {
        if self.rng.chance(5) {
            let shape = views::shape(&mut self.rng, self.options);
            self.shapes.push(shape);
        }
        let freed: Vec<usize> = (0..self.arrays.len()).filter(|&at| self.arrays[at].freed).collect();
        if let Some(&array) = self.rng.pick(&freed).filter(|_| self.rng.chance(30)) {
            return self.arrays[array].grid.clone();
        }
        let at = self.rng.below(self.shapes.len());
        self.shapes[at].clone()
    }

    /// A new base with this layout.
    fn add_array(&mut self, dtype: DType, grid: Vec<i64>, flags: u32) -> usize {
        let len = grid.iter().product();
        let mut base = Base::new(self.next_id, dtype, len);
        base.flags = flags;
        base.row_hint = if grid.is_empty() { 0 } else { grid[1..].iter().product() };
        self.next_id += 1 + self.rng.below(3) as u64;
        self.batch.push_base(base);
        self.arrays.push(Array { dtype, grid, len, usable: true, freed: false });
        self.arrays.len() - 1
    }

    /// A new base that has data before the batch.
    fn add_input(&mut self, dtype: DType, grid: Vec<i64>) -> usize {
        let array = self.add_array(dtype, grid, 0);
        let base = self.batch.bases[array];
        let mut bytes = vec![0; base.bytes() as usize];
        for element in bytes.chunks_exact_mut(dtype.size()) {
            let value = self.value(dtype);
            element.copy_from_slice(&value.bytes()[..dtype.size()]);
            // In memory every byte but 0 is true.
            if dtype == DType::Bool && element[0] != 0 && self.options.allow_specials && self.rng.chance(30) {
                element[0] = self.rng.between(2, 255) as u8;
            }
        }
        self.memory.insert(base.id, bytes);
        array
    }

    /// A random value: mostly small.
    fn value(&mut self, dtype: DType) -> Constant {
        let special = self.options.allow_specials && self.rng.chance(5);
        if dtype.is_complex() {
            let (re, im) = (self.value(dtype.real_part()), self.value(dtype.real_part()));
            let mut bytes = re.bytes();
            let half = dtype.size() / 2;
            bytes[half..2 * half].copy_from_slice(&im.bytes()[..half]);
            return Constant::from_bytes(dtype, &bytes);
        }
        if dtype.is_float() {
            let specials = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e-310, 3e38];
            let value = match self.rng.below(3) {
                _ if special => specials[self.rng.below(specials.len())],
                0 => self.rng.between(-4, 10) as f64,
                1 => self.rng.between(-40, 100) as f64 / 8.0,
                _ => (self.rng.bits() >> 11) as f64 / (1u64 << 50) as f64 - 3.0,
            };
            return Constant::from_value(value).cast(dtype);
        }
        let value = if special { self.rng.bits() as i64 } else { self.rng.between(-4, 10) };
        if dtype == DType::Bool {
            return Constant::from_value(Truth::from(value & 1 == 1));
        }
        Constant::from_value(if dtype.is_signed_int() || special { value } else { value.abs() }).cast(dtype)
    }

    fn constant(&mut self, dtype: DType) -> Operand {
        let value = self.value(dtype);
        Operand::constant(self.batch.push_constant(value))
    }

    fn operand(&mut self, array: usize, view: &View) -> Operand {
        Operand::view(self.batch.intern_view(array as u32, view))
    }

    /// The usable arrays of a type, the latest more often.
    fn pick_array(&mut self, dtype: DType) -> Option<usize> {
        let known: Vec<usize> =
            (0..self.arrays.len()).filter(|&at| self.arrays[at].usable && self.arrays[at].dtype == dtype).collect();
        let at = self.rng.below(known.len()).max(self.rng.below(known.len()));
        known.get(at).copied()
    }

    /// A random view of this shape on an array.
    fn view_on(&mut self, array: usize, shape: &[i64], injective: bool) -> Option<View> {
        let Array { grid, len, .. } = &self.arrays[array];
        views::view(&mut self.rng, grid, *len, shape, injective)
    }

    /// Where an operation writes: a new base or one that has been freed as a whole, or a view of a base that has data. A
    /// `fresh` output is new.
    fn output(&mut self, dtype: DType, shape: &[i64], fresh: bool) -> (usize, View, bool) {
        let whole = View::contiguous(shape).unwrap_or_default();
        if !fresh && let Some(array) = self.reuse(dtype, shape) {
            return (array, whole, true);
        }
        if !fresh
            && self.rng.chance(45)
            && let Some(array) = self.pick_array(dtype)
            && let Some(view) = self.view_on(array, shape, true)
        {
            return (array, view, false);
        }
        let array = self.add_array(dtype, shape.to_vec(), base_flags::BORN);
        (array, whole, true)
    }

    /// A base whose data FREE has dropped, which gets new data of this shape.
    fn reuse(&mut self, dtype: DType, shape: &[i64]) -> Option<usize> {
        let len = shape.iter().product();
        let fits = |array: &Array| array.freed && array.dtype == dtype && array.len == len;
        let freed: Vec<usize> = (0..self.arrays.len()).filter(|&at| fits(&self.arrays[at])).collect();
        let array = *self.rng.pick(&freed)?;
        self.arrays[array] = Array { dtype, grid: shape.to_vec(), len, usable: true, freed: false };
        self.batch.bases[array].flags &= !base_flags::DIES;
        Some(array)
    }

    /// An input of this type and shape that the output does not forbid.
    fn input(&mut self, dtype: DType, shape: &[i64], output: &(usize, View, bool), rule: Rule) -> Operand {
        if rule.constant && self.rng.chance(15) {
            return self.constant(dtype);
        }
        if rule.identical && !output.2 && self.arrays[output.0].dtype == dtype && self.rng.chance(25) {
            return self.operand(output.0, &output.1);
        }
        for _ in 0..4 {
            // A new output has no data yet that could be read.
            let Some(array) = self.pick_array(dtype).filter(|&array| array != output.0 || !output.2) else { break };
            let Some(view) = self.view_on(array, shape, false) else { continue };
            let legal = array != output.0
                || match overlap(&view, &output.1) {
                    Overlap::Disjoint => true,
                    Overlap::Identical => rule.identical,
                    Overlap::Overlapping => false,
                };
            if legal {
                return self.operand(array, &view);
            }
        }
        if rule.constant && self.rng.chance(30) {
            return self.constant(dtype);
        }
        let grid = views::grid(&mut self.rng, shape);
        let array = self.add_input(dtype, grid);
        let view = self.view_on(array, shape, false).unwrap_or_else(|| View::contiguous(shape).unwrap_or_default());
        self.operand(array, &view)
    }

    /// One random operation of the table.
    fn operation(&mut self) {
        // Start from what is there, so that operations form chains.
        let at = self.rng.below(self.arrays.len()).max(self.rng.below(self.arrays.len()));
        let known = self.arrays.get(at).filter(|array| array.usable || array.freed).map(|array| array.dtype);
        let Some(opcode) = self.rng.pick(Opcode::ALL).copied() else { return };
        let info = opcode.info();
        let dtype = match known.filter(|&dtype| info.types.contains(dtype) && self.rng.chance(80)) {
            Some(dtype) => dtype,
            None => match self.dtype(info.types) {
                Some(dtype) => dtype,
                None => return,
            },
        };
        let inexact = may_differ(opcode, dtype);
        if inexact && !self.options.allow_inexact {
            return;
        }
        match info.kind {
            Kind::Elementwise => self.elementwise(opcode, info, dtype, inexact),
            Kind::Reduction | Kind::Accumulate => self.fold(opcode, dtype, inexact),
            Kind::Generator => self.generator(opcode, dtype),
            Kind::Index if self.options.allow_index => self.index(opcode, dtype),
            Kind::Index | Kind::System | Kind::Extension => {}
        }
    }

    fn elementwise(&mut self, opcode: Opcode, info: &Info, dtype: DType, inexact: bool) {
        let shape = self.shape();
        let output_type = match info.signature {
            Signature::Test => DType::Bool,
            Signature::Abs | Signature::Part => dtype.real_part(),
            Signature::Cast => match self.dtype(if dtype.is_complex() { TypeSet::COMPLEX } else { TypeSet::ALL }) {
                Some(output) => output,
                None => return,
            },
            _ => dtype,
        };
        if !self.options.types.contains(output_type) {
            return;
        }
        if info.signature == Signature::Select && !self.options.types.contains(DType::Bool) {
            return;
        }
        let output = self.output(output_type, &shape, inexact);
        let mut operands = vec![self.operand(output.0, &output.1)];
        for input in 0..info.inputs {
            let mask = info.signature == Signature::Select && input == 0;
            let input_type = if mask { DType::Bool } else { dtype };
            operands.push(self.input(input_type, &shape, &output, Rule { constant: true, identical: true }));
        }
        let param = match opcode {
            Opcode::Powi => self.rng.between(2, 5) as u16,
            Opcode::Copy if dtype.is_float() && output_type.is_int() => self.rng.between(0, 2) as u16,
            _ if self.options.same_bits && inexact => SAME_BITS,
            _ => 0,
        };
        self.push(opcode, param, &operands);
        self.arrays[output.0].usable = !inexact;
    }

    fn fold(&mut self, opcode: Opcode, dtype: DType, inexact: bool) {
        let shape = self.shape();
        let accumulate = opcode.kind() == Kind::Accumulate;
        let masked = opcode.unmasked().is_some();
        // A complex product that has overflowed is no number any more once it meets a neutral element.
        let overflows = opcode == Opcode::MaskedMultiplyReduce && dtype.is_complex();
        if accumulate && shape.is_empty() || masked && (overflows || !self.options.types.contains(DType::Bool)) {
            return;
        }
        let rank = shape.len();
        let all = (1u32 << rank) as u16;
        let all = if rank == 16 { u16::MAX } else { all.wrapping_sub(1) };
        let param = if accumulate {
            1 << self.rng.below(rank)
        } else if rank == 0 || self.rng.chance(30) {
            all
        } else {
            match self.rng.bits() as u16 & all {
                0 => 1,
                mask => mask,
            }
        };
        let kept: Vec<i64> = if accumulate {
            shape.clone()
        } else {
            (0..rank).filter(|axis| param >> axis & 1 == 0).map(|axis| shape[axis]).collect()
        };
        let output = self.output(dtype, &kept, inexact);
        let target = self.operand(output.0, &output.1);
        let source = self.input(dtype, &shape, &output, Rule { constant: false, identical: accumulate });
        let mut operands = vec![target, source];
        if masked {
            operands.push(self.input(DType::Bool, &shape, &output, Rule { constant: false, identical: false }));
        }
        if opcode == Opcode::Contract {
            let factor = self.input(dtype, &shape, &output, Rule { constant: false, identical: false });
            operands = vec![target, self.repeated(source), self.repeated(factor)];
        }
        self.push(opcode, param, &operands);
        if let Some(instr) = self.batch.instrs.last_mut().filter(|_| !accumulate && self.rng.chance(30)) {
            instr.order = random_order(&mut self.rng, rank, param);
        }
        if let Some(instr) = self.batch.instrs.last_mut().filter(|_| inexact && self.options.same_bits) {
            let order = AxisOrder::decode(instr.order, rank).map_or(FIXED, |order| order.fixed().code());
            instr.order = if accumulate { FIXED } else { order };
        }
        self.arrays[output.0].usable = !inexact;
        if !self.shapes.contains(&kept) {
            self.shapes.push(kept);
        }
    }

    /// The view of an operand, most often with the same elements all along some axes, as factors of matrix products have them.
    fn repeated(&mut self, operand: Operand) -> Operand {
        let Some(index) = operand.as_view().filter(|_| self.rng.chance(70)) else { return operand };
        let (view, base) = (self.batch.as_ref().view(index), self.batch.views[index as usize].base);
        let stride: Vec<i64> = view.stride().iter().map(|&step| if self.rng.chance(35) { 0 } else { step }).collect();
        match View::new(view.start(), view.shape(), &stride) {
            Ok(repeated) => self.operand(base as usize, &repeated),
            Err(_) => operand,
        }
    }

    fn generator(&mut self, opcode: Opcode, dtype: DType) {
        let shape = self.shape();
        let Some(index) = views::index_view(&mut self.rng, &shape) else { return };
        let output = self.output(dtype, &shape, false);
        let mut operands = vec![self.operand(output.0, &output.1)];
        operands.push(Operand::view(self.batch.intern_view(NO_BASE, &index)));
        if opcode == Opcode::Random {
            let key = Constant::from_value(self.rng.bits());
            operands.push(Operand::constant(self.batch.push_constant(key)));
        }
        self.push(opcode, 0, &operands);
    }

    fn index(&mut self, opcode: Opcode, dtype: DType) {
        let Some(index_type) = self.dtype(TypeSet::INDEX) else { return };
        let (places, whole) = (self.shape(), self.shape());
        let length = whole.iter().product::<i64>();
        if length == 0 && !places.contains(&0) {
            return;
        }
        let index = self.indices(index_type, &places, length);
        if opcode == Opcode::Gather {
            let output = self.output(dtype, &places, false);
            let target = self.operand(output.0, &output.1);
            let source = self.input(dtype, &whole, &output, Rule { constant: false, identical: false });
            self.push(opcode, 0, &[target, source, index]);
            return;
        }
        // A scatter leaves elements as they are, so its output has data.
        let array = match self.pick_array(dtype) {
            Some(array) => array,
            None => self.add_input(dtype, whole.clone()),
        };
        let Some(view) = self.view_on(array, &whole, true) else { return };
        let output = (array, view, false);
        let target = self.operand(array, &view);
        let value = self.input(dtype, &places, &output, Rule { constant: true, identical: false });
        let mut operands = vec![target, value, index];
        if opcode == Opcode::CondScatter {
            if !self.options.types.contains(DType::Bool) {
                return;
            }
            operands.push(self.input(DType::Bool, &places, &output, Rule { constant: false, identical: false }));
        }
        self.push(opcode, 0, &operands);
    }

    /// A new base of indices into `length` elements. Nothing writes it, so that they stay in range.
    fn indices(&mut self, dtype: DType, shape: &[i64], length: i64) -> Operand {
        let array = self.add_array(dtype, shape.to_vec(), 0);
        self.arrays[array].usable = false;
        let count = self.arrays[array].len as usize;
        let mut bytes = vec![0; count * 8];
        for element in bytes.chunks_exact_mut(8) {
            let low = if dtype == DType::I64 { -length } else { 0 };
            let value = if length == 0 { 0 } else { self.rng.between(low, length - 1) };
            with_dtype!(dtype, T => T::cast_from(value).write(element));
        }
        self.memory.insert(self.batch.bases[array].id, bytes);
        self.operand(array, &View::contiguous(shape).unwrap_or_default())
    }

    /// A sweep over a grid as in heat: a temporary from shifted slices, copied back to the middle.
    fn stencil(&mut self) {
        let Some(dtype) = self.dtype(TypeSet::REAL) else { return };
        let rank = 1 + self.rng.below(2.min(self.options.max_rank));
        let inner: Vec<i64> = (0..rank).map(|_| self.rng.between(1, 8)).collect();
        let grid = self.add_input(dtype, inner.iter().map(|extent| extent + 2).collect());
        let work = self.add_array(dtype, inner.clone(), base_flags::BORN);
        let Ok(whole) = View::contiguous(&self.arrays[grid].grid) else { return };
        let shifted = |first: &[i64]| {
            let cut = |view: View, dim: usize| view.slice(dim, Some(first[dim]), Some(first[dim] + inner[dim]), 1);
            (0..rank).try_fold(whole, cut)
        };
        let centre = vec![1; rank];
        let Ok(middle) = shifted(&centre) else { return };
        let middle = self.operand(grid, &middle);
        let temporary = self.operand(work, &View::contiguous(&inner).unwrap_or_default());
        let mut sum = middle;
        for dim in 0..rank {
            for at in [0, 2] {
                let mut first = centre.clone();
                first[dim] = at;
                let Ok(neighbour) = shifted(&first) else { return };
                let neighbour = self.operand(grid, &neighbour);
                self.push(Opcode::Add, 0, &[temporary, sum, neighbour]);
                sum = temporary;
            }
        }
        self.push(Opcode::Copy, 0, &[middle, temporary]);
        if self.options.allow_drops && self.rng.chance(60) {
            self.drop_array(work, &[Opcode::Free, Opcode::Discard]);
        }
    }

    fn drop_array(&mut self, array: usize, opcodes: &[Opcode]) {
        let whole = View::contiguous(&[self.arrays[array].len]).unwrap_or_default();
        let operand = self.operand(array, &whole);
        for &opcode in opcodes {
            self.push(opcode, 0, &[operand]);
        }
        self.arrays[array].usable = false;
        self.arrays[array].freed = !opcodes.contains(&Opcode::Discard);
        self.batch.bases[array].flags |= base_flags::DIES;
    }

    /// Nop, SYNC, FREE or DISCARD.
    fn system(&mut self) {
        if self.rng.chance(5) {
            return self.push(Opcode::Nop, 0, &[]);
        }
        let alive: Vec<usize> = (0..self.arrays.len()).filter(|&array| self.arrays[array].usable).collect();
        let Some(&array) = self.rng.pick(&alive) else { return };
        if !self.options.allow_drops || self.rng.chance(50) {
            let whole = View::contiguous(&[self.arrays[array].len]).unwrap_or_default();
            let operand = self.operand(array, &whole);
            return self.push(Opcode::Sync, 0, &[operand]);
        }
        match self.rng.below(3) {
            0 => self.drop_array(array, &[Opcode::Free]),
            1 => self.drop_array(array, &[Opcode::Discard]),
            _ => self.drop_array(array, &[Opcode::Free, Opcode::Discard]),
        }
    }
}

/// The code of any order in which a fold along these axes may take its elements.
fn random_order(rng: &mut Rng, rank: usize, folded: u16) -> u16 {
    let mut axes: Vec<(u8, bool)> =
        (0..rank as u8).map(|axis| (axis, folded >> axis & 1 == 1 && rng.chance(25))).collect();
    (1..rank).for_each(|at| axes.swap(at, rng.below(at + 1)));
    AxisOrder::of_axes(&axes).map_or(0, |order| order.code())
}

/// The forms of an input besides a view of another base.
#[derive(Clone, Copy)]
struct Rule {
    /// A constant.
    constant: bool,
    /// The view that is written.
    identical: bool,
}
