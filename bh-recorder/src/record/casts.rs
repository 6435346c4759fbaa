//! The rule for floats beyond integer types, which conversions get where they are recorded.

use crate::record::Operation;
use crate::state::State;
use bh_bytecode::{DType, Opcode};

impl State {
    /// The operation with the rule that the context has for it: conversions of floats to integer types have one.
    #[inline]
    pub(crate) fn with_rule<'a>(
        &self,
        operation: Operation<'a>,
        output: DType,
        input: impl FnOnce() -> Option<DType>,
    ) -> Operation<'a> {
        let converts = operation.opcode == Opcode::Copy && output.is_int() && input().is_some_and(DType::is_float);
        match &self.running {
            Some(running) if converts => {
                Operation { param: operation.param | running.options.casts.param(), ..operation }
            }
            _ => operation,
        }
    }
}
