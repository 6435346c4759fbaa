//! Options of the configuration that instructions carry: the rule for floats beyond integer types, and results with the same
//! bits everywhere.

use crate::Options;
use crate::record::{Operation, Source};
use crate::state::State;
use bh_bytecode::compare::{Tolerance, may_differ, tolerance};
use bh_bytecode::methods::shown;
use bh_bytecode::opcode::SAME_BITS;
use bh_bytecode::order::FIXED;
use bh_bytecode::{AxisOrder, DType, Kind, Opcode};
use bh_core::abi::status;
use bh_core::error::Error;

/// Kept elements inside of folded ones, that many of them and more, are folded side by side.
const SHORT: i64 = 8;

/// Methods that move, compare or count.
const EXACT_METHODS: [&str; 7] =
    ["count_nonzero", "compress", "flatnonzero", "sort", "argsort", "searchsorted_left", "searchsorted_right"];

impl State {
    /// Have results to have the same bits everywhere?
    #[inline]
    pub(crate) fn is_reproducible(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.options.reproducible)
    }

    /// The operation with the rules that the context has for it: for conversions of floats to integer types, and for functions that
    /// engines compute each in a way of its own.
    #[inline]
    pub(crate) fn with_rule<'a>(
        &self,
        operation: Operation<'a>,
        output: DType,
        input: impl FnOnce() -> Option<DType>,
    ) -> Operation<'a> {
        self.running.as_ref().map_or(operation, |running| with_rule_of(&running.options, operation, output, input))
    }

    /// The order of a fold, with the fixed tree if results have to have the same bits everywhere and this one rounds.
    #[inline]
    pub(crate) fn in_tree(&self, operation: Operation<'_>, order: u16, input: u32) -> u16 {
        let (opcode, folded) = (operation.opcode, operation.param);
        if !self.is_reproducible() || !may_differ(opcode, self.dtype(input)) {
            return order;
        }
        if opcode.kind() == Kind::Accumulate {
            return FIXED;
        }
        let shape = self.handles.at(input).view.shape();
        let order = AxisOrder::decode(order, shape.len()).unwrap_or_else(|| AxisOrder::c_order(shape.len()));
        order.fixed_tree(shape, folded, SHORT).code()
    }

    /// May engines give a method's results bits of their own, where these have to be the same?
    #[inline]
    pub(crate) fn has_own_bits(&self, name: &str, sources: &[Source]) -> bool {
        let rounds = |source: &Source| self.type_of(source).is_float() || self.type_of(source).is_complex();
        self.is_reproducible() && !EXACT_METHODS.contains(&name) && sources.iter().any(rounds)
    }
}

/// As [`State::with_rule`], of a context with these options.
#[inline]
pub(crate) fn with_rule_of<'a>(
    options: &Options,
    operation: Operation<'a>,
    output: DType,
    input: impl FnOnce() -> Option<DType>,
) -> Operation<'a> {
    let opcode = operation.opcode;
    let (converts, varies) = (opcode == Opcode::Copy && output.is_int(), options.reproducible && opcode.has_variants());
    if !converts && !varies {
        return operation;
    }
    let input = input().unwrap_or(output);
    let param = match converts {
        true if input.is_float() => options.casts.param(),
        false if opcode == Opcode::ScatterAdd && (input.is_float() || input.is_complex()) => SAME_BITS,
        false if tolerance(opcode, input) != Tolerance::Exact => SAME_BITS,
        _ => 0,
    };
    Operation { param: operation.param | param, ..operation }
}

/// The error of a method whose results have bits of their own on each engine.
pub(crate) fn own_bits(name: &str) -> Error {
    let name = shown(name);
    let text = format!(
        "{name}: the bits of its result depend on the engine, which the key 'reproducible' of the recorder rules out"
    );
    Error::new(status::UNSUPPORTED, text)
}
