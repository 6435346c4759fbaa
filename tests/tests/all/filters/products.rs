//! Random batches that express matrix products as multiply, broadcast and sum, and near misses.

use bh_bytecode::contraction::is_product;
use bh_bytecode::interp::Memory;
use bh_bytecode::random::{Program, Rng};
use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, View, base_flags};

/// A reason why a batch is no matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flaw {
    /// None: it is one.
    None,
    /// The factors are added.
    Sum,
    /// The products are multiplied.
    Product,
    /// Both factors span the rows: a stack of vectors.
    ThreeAxes,
    /// A factor is constant along the summed axis.
    Repeated,
    /// All axes but one are summed.
    TwoAxes,
    /// Another operation reads the products.
    Read,
    /// The products outlive the batch.
    Kept,
    /// A factor changes before the sum.
    Changed,
    /// The products change before the sum.
    Overwritten,
    /// The result overwrites a factor.
    InPlace,
    /// Too few multiplications.
    Small,
}

/// All of them.
pub const FLAWS: [Flaw; 12] = [
    Flaw::None,
    Flaw::Sum,
    Flaw::Product,
    Flaw::ThreeAxes,
    Flaw::Repeated,
    Flaw::TwoAxes,
    Flaw::Read,
    Flaw::Kept,
    Flaw::Changed,
    Flaw::Overwritten,
    Flaw::InPlace,
    Flaw::Small,
];

const TYPES: [DType; 8] =
    [DType::I8, DType::U16, DType::I32, DType::I64, DType::U64, DType::F32, DType::F64, DType::C128];

/// A batch and its data.
pub struct Candidate {
    /// The batch and its data.
    pub program: Program,
    /// Its flaw.
    pub flaw: Flaw,
    /// The type of its elements.
    pub dtype: DType,
    /// Is the sum of the factors' views along the axes a matrix product?
    pub is_matrices: bool,
}

struct Builder {
    batch: Batch,
    memory: Memory,
    rng: Rng,
    dtype: DType,
}

impl Builder {
    fn base(&mut self, len: i64, flags: u32) -> u32 {
        let id = self.batch.bases.len() as u64 + 1;
        self.batch.push_base(Base { flags, ..Base::new(id, self.dtype, len) })
    }

    fn filled(&mut self, len: i64) -> u32 {
        let base = self.base(len, base_flags::LIVE_OUT);
        let (size, lowest) = (self.dtype.size(), if self.dtype.is_signed_int() { -50 } else { 0 });
        let number = |rng: &mut Rng| Constant::from_value(rng.between(lowest, 50));
        let bytes =
            (0..len).flat_map(|_| number(&mut self.rng).cast(self.dtype).bytes().into_iter().take(size)).collect();
        self.memory.insert(self.batch.bases[base as usize].id, bytes);
        base
    }

    /// A matrix with data: contiguous, transposed, reversed, every other row, or the interior of a larger one.
    fn matrix(&mut self, rows: i64, columns: i64) -> (u32, View) {
        let layout = self.rng.below(5);
        let stored = match layout {
            1 => [columns, rows],
            3 => [2 * rows, columns],
            4 => [rows + 2, columns + 3],
            _ => [rows, columns],
        };
        let view = View::contiguous(&stored).unwrap();
        let base = self.filled(view.len());
        let view = match layout {
            1 => view.transpose(&[1, 0]).unwrap(),
            2 => view.reverse(self.rng.below(2)).unwrap(),
            3 => view.slice(0, Some(0), None, 2).unwrap(),
            4 => view.slice(0, Some(1), Some(1 + rows), 1).unwrap().slice(1, Some(2), Some(2 + columns), 1).unwrap(),
            _ => view,
        };
        (base, view)
    }

    fn operand(&mut self, base: u32, view: &View) -> Operand {
        Operand::view(self.batch.intern_view(base, view))
    }

    fn run(&mut self, opcode: Opcode, param: u16, operands: &[Operand]) {
        let mut instr = Instr::new(opcode, operands);
        instr.param = param;
        self.batch.push_instr(instr);
    }
}

/// The candidate of a seed.
pub fn candidate(seed: u64) -> Candidate {
    let mut rng = Rng::new(seed);
    let flaw = if rng.chance(40) { Flaw::None } else { *rng.pick(&FLAWS).unwrap() };
    let dtype = *rng.pick(&TYPES).unwrap();
    let mut extents = [rng.between(2, 70), rng.between(2, 70), rng.between(2, 70)];
    // Vectors, and matrices of two rows.
    let thin = rng.below(9);
    if thin < 3 {
        extents[thin] = if thin == 1 && flaw == Flaw::Repeated { 2 } else { rng.between(1, 2) };
    }
    while extents.iter().product::<i64>() < 32 * 32 * 32 {
        (0..3).filter(|&axis| axis != thin).for_each(|axis| extents[axis] += [5, 3, 4][axis]);
    }
    let [mut m, mut k, mut n] = extents;
    if flaw == Flaw::Small {
        (m, k, n) = (m.min(20), k.min(20), n.min(20));
    }
    let mut b = Builder { batch: Batch::default(), memory: Memory::new(), rng, dtype };
    let (a_base, a) = b.matrix(m, k);
    let (b_base, right) = b.matrix(k, n);
    // The product array has the axes (row, summed, column) in any order.
    let mut order = [0, 1, 2];
    (1..3).for_each(|at| order.swap(at, b.rng.below(at + 1)));
    let spread = |view: View| view.transpose(&order).unwrap();
    let full = [m, k, n];
    let left = match flaw {
        Flaw::Repeated => a.slice(1, Some(0), Some(1), 1).unwrap().new_axis(2).unwrap(),
        _ => a.new_axis(2).unwrap(),
    };
    let left = spread(left.broadcast_to(&full).unwrap());
    let (right_base, right) = if flaw == Flaw::ThreeAxes {
        let view = View::contiguous(&full).unwrap();
        (b.filled(view.len()), spread(view))
    } else {
        (b_base, spread(right.new_axis(0).unwrap().broadcast_to(&full).unwrap()))
    };
    let shape = order.map(|axis| full[axis]);
    let products_view = View::contiguous(&shape).unwrap();
    let fate = if flaw == Flaw::Kept { base_flags::LIVE_OUT } else { base_flags::DIES };
    let products = b.base(products_view.len(), base_flags::BORN | fate);
    let mut factors = [b.operand(a_base, &left), b.operand(right_base, &right)];
    if b.rng.chance(50) {
        factors.reverse();
    }
    let between = b.operand(products, &products_view);
    let opcode = if flaw == Flaw::Sum { Opcode::Add } else { Opcode::Multiply };
    b.run(opcode, 0, &[between, factors[0], factors[1]]);
    let one = Operand::constant(b.batch.push_constant(Constant::from_value(1i8).cast(dtype)));
    match flaw {
        Flaw::Read => {
            let other = b.base(products_view.len(), base_flags::BORN | base_flags::LIVE_OUT);
            let other = b.operand(other, &products_view);
            b.run(Opcode::Add, 0, &[other, between, one]);
        }
        Flaw::Changed => {
            let changed = b.operand(a_base, &a);
            b.run(Opcode::Add, 0, &[changed, changed, one]);
        }
        Flaw::Overwritten => {
            let first = b.operand(products, &products_view.index(0, 0).unwrap());
            b.run(Opcode::Copy, 0, &[first, one]);
        }
        _ => {}
    }
    let summed = order.iter().position(|&axis| axis == 1).unwrap();
    let mut axes = 1u16 << summed;
    let mut kept: Vec<i64> = (0..3).filter(|&axis| axis != summed).map(|axis| shape[axis]).collect();
    if flaw == Flaw::TwoAxes {
        let axis = (0..3).find(|&axis| axis != summed).unwrap();
        axes |= 1 << axis;
        kept.remove(0);
    }
    let result_view = View::contiguous(&kept).unwrap();
    let (out, out_view) = if flaw == Flaw::InPlace {
        // A part of the left factor's base, extended to make space for the result.
        b.batch.bases[a_base as usize].len += result_view.len();
        let id = b.batch.bases[a_base as usize].id;
        let more = vec![0; result_view.len() as usize * dtype.size()];
        let bytes = [b.memory.get(id).unwrap(), &more].concat();
        b.memory.insert(id, bytes);
        let start = b.batch.bases[a_base as usize].len - result_view.len();
        (a_base, View::new(start, result_view.shape(), result_view.stride()).unwrap())
    } else {
        (b.base(result_view.len(), base_flags::BORN | base_flags::LIVE_OUT), result_view)
    };
    let result = b.operand(out, &out_view);
    let contraction = Instr { param: axes, ..Instr::new(Opcode::Contract, &[result, factors[0], factors[1]]) };
    let is_matrices = is_product(&b.batch.as_ref(), &contraction);
    let opcode = if flaw == Flaw::Product { Opcode::MultiplyReduce } else { Opcode::AddReduce };
    b.run(opcode, axes, &[result, between]);
    if flaw != Flaw::Kept {
        b.run(Opcode::Discard, 0, &[between]);
    }
    Candidate { program: Program { batch: b.batch, memory: b.memory }, flaw, dtype, is_matrices }
}
