//! The block primitives of the chosen instruction set.

use crate::prims;
pub(crate) use crate::prims::{FillFn, IotaFn, JoinFn, LANES, LanesFn, PhiloxFn, PrimFn, Side, StridedFn};
use crate::simd::Isa;
use bh_bytecode::{DType, Opcode};

/// Looks up primitives for one instruction set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Primitives {
    pub(crate) isa: Isa,
}

impl Primitives {
    /// An element-wise operation, by the type of its last operand and of its result.
    pub(crate) fn elementwise(&self, opcode: Opcode, param: u16, input: DType, output: DType) -> Option<PrimFn> {
        prims::lookup(self.isa, opcode, param, input, output)
    }

    /// A fold into lanes, and the join of the lanes.
    pub(crate) fn lanes(&self, combiner: Opcode, dtype: DType) -> Option<(LanesFn, JoinFn)> {
        Some((prims::reduce_lanes(self.isa, combiner, dtype)?, prims::fold_lanes(combiner, dtype)?))
    }

    pub(crate) fn gather_strided(&self, size: usize) -> StridedFn {
        prims::gather_strided(size)
    }

    pub(crate) fn scatter_strided(&self, size: usize) -> StridedFn {
        prims::scatter_strided(size)
    }

    pub(crate) fn fill(&self, size: usize) -> FillFn {
        prims::fill(size)
    }

    pub(crate) fn iota(&self, dtype: DType) -> Option<IotaFn> {
        prims::iota(self.isa, dtype)
    }

    pub(crate) fn philox(&self, dtype: DType) -> Option<PhiloxFn> {
        prims::philox(self.isa, dtype)
    }
}
