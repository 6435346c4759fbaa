//! The block primitives of the chosen instruction set.

use crate::prims;
pub(crate) use crate::prims::{
    CopyFn, FillFn, IotaFn, JoinFn, LANES, LanesFn, MOST_SQUARES, PhiloxFn, PrimFn, RepeatFn, RunFn, Side, StridedFn,
    SumFn,
};
use crate::simd::Isa;
use bh_bytecode::{DType, Opcode};

const _: () = assert!(LANES == bh_kernel::schedule::LANES, "the primitives fold into the lanes of the tree");

/// Looks up primitives for one instruction set, and says when to use them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Primitives {
    pub(crate) isa: Isa,
    /// Outputs of at least this many bytes bypass the caches.
    pub(crate) stream_bytes: u64,
    /// Do several operations become one primitive, where there is one?
    pub(crate) superinstructions: bool,
}

impl Primitives {
    /// An element-wise operation, by the type of its last operand and of its result.
    pub(crate) fn elementwise(&self, opcode: Opcode, param: u16, input: DType, output: DType) -> Option<PrimFn> {
        prims::lookup(self.isa, opcode, param, input, output)
    }

    /// `second(first(a, b), c)`, or `second(c, first(a, b))` if `swapped`, in one pass; `c` may be a single element.
    pub(crate) fn fused(
        &self,
        first: Opcode,
        second: Opcode,
        swapped: bool,
        single: bool,
        dtype: DType,
    ) -> Option<PrimFn> {
        let lookup = if single { prims::lookup_fused_const } else { prims::lookup_fused };
        lookup(self.isa, first, second, swapped, dtype)
    }

    /// [`Primitives::fused`] of f64 where `a` is replaced by its square root.
    pub(crate) fn rooted(&self, first: Opcode, second: Opcode, swapped: bool, single: bool) -> Option<PrimFn> {
        crate::math::lookup_rooted(self.isa, first, second, swapped, single)
    }

    /// A binary operation with a single element on one side.
    pub(crate) fn with_scalar(&self, opcode: Opcode, side: Side, dtype: DType) -> Option<PrimFn> {
        prims::lookup_const(self.isa, opcode, side, dtype)
    }

    /// A sum of many blocks of a type, or of their squares.
    pub(crate) fn sum(&self, dtype: DType, squares: bool) -> Option<SumFn> {
        prims::lookup_sum(self.isa, dtype, squares)
    }

    /// A fold into lanes, and the join of the lanes.
    pub(crate) fn lanes(&self, combiner: Opcode, dtype: DType) -> Option<(LanesFn, JoinFn)> {
        Some((prims::reduce_lanes(self.isa, combiner, dtype)?, prims::fold_lanes(self.isa, combiner, dtype)?))
    }

    /// The fold into lanes of what an operation makes of two blocks.
    pub(crate) fn lanes_of(&self, first: Opcode, combiner: Opcode, dtype: DType) -> Option<LanesFn> {
        prims::reduce_lanes_of(self.isa, first, combiner, dtype)
    }

    pub(crate) fn copy_streaming(&self) -> CopyFn {
        prims::copy_streaming()
    }

    pub(crate) fn gather_strided(&self, size: usize) -> StridedFn {
        prims::gather_strided(self.isa, size)
    }

    pub(crate) fn scatter_strided(&self, size: usize) -> StridedFn {
        prims::scatter_strided(size)
    }

    pub(crate) fn fill(&self, size: usize) -> FillFn {
        prims::fill(size)
    }

    /// Each element of a row several times.
    pub(crate) fn repeat(&self, size: usize) -> RepeatFn {
        prims::repeat(size)
    }

    pub(crate) fn iota(&self, dtype: DType) -> Option<IotaFn> {
        prims::iota(self.isa, dtype)
    }

    /// Do indices go up by one?
    pub(crate) fn is_run(&self) -> RunFn {
        prims::is_run(self.isa)
    }

    pub(crate) fn philox(&self, dtype: DType) -> Option<PhiloxFn> {
        prims::philox(self.isa, dtype)
    }
}
