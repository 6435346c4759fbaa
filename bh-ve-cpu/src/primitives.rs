//! The block primitives of the chosen instruction set.

use crate::portable;
pub(crate) use crate::portable::{FillFn, IotaFn, LANES, LanesFn, PhiloxFn, PrimFn, StridedFn};
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
        portable::lookup(opcode, param, input, output)
    }

    /// A fold into lanes, where there is a special one.
    pub(crate) fn lanes(&self, _combiner: Opcode, _dtype: DType) -> Option<LanesFn> {
        None
    }

    pub(crate) fn gather_strided(&self, size: usize) -> StridedFn {
        portable::gather_strided(size)
    }

    pub(crate) fn scatter_strided(&self, size: usize) -> StridedFn {
        portable::scatter_strided(size)
    }

    pub(crate) fn fill(&self, size: usize) -> FillFn {
        portable::fill(size)
    }

    pub(crate) fn iota(&self, dtype: DType) -> Option<IotaFn> {
        portable::iota(dtype)
    }

    pub(crate) fn philox(&self, dtype: DType) -> Option<PhiloxFn> {
        portable::philox(dtype)
    }
}
