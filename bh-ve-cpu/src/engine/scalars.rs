//! Operations on scalars, computed where they are recorded: by the primitives that kernels are made of, so with their bits.

use super::immediate;
use crate::primitives::Primitives;
use bh_bytecode::{Constant, DType, Kind, Opcode};
use bh_core::abi::{Evaluation, ImmediateOperation, ScalarOperation};
use bh_core::component::SharedCalls;
use bh_core::{Host, Result};
use bh_methods::AtOnce;
use std::sync::Arc;

/// Computes operations on scalars, and on little data, from any thread.
pub(super) struct Scalars {
    pub(super) primitives: Primitives,
    pub(super) methods: Arc<AtOnce>,
    pub(super) host: Host,
}

/// The most inputs of an elementwise operation.
const INPUTS: usize = 3;

impl SharedCalls for Scalars {
    fn evaluate(&self, operation: &ScalarOperation) -> Result<Evaluation> {
        Ok(self.value(operation, operation.inputs()).map_or_else(Evaluation::default, |value| Evaluation {
            value,
            known: 1,
            ..Evaluation::default()
        }))
    }

    fn immediate(&self, operation: &ImmediateOperation) -> Result<bool> {
        let methods = (&*self.methods, self.host);
        // SAFETY: the operands are arrays that live, and are used here only, through the call, as
        // [`ImmediateOperation`] says.
        unsafe { immediate::run(self.primitives, methods, operation) }
    }
}

impl Scalars {
    /// The result; `None` for what is no elementwise operation, or not for these types.
    fn value(&self, operation: &ScalarOperation, inputs: &[Constant]) -> Option<Constant> {
        let opcode = Opcode::from_code(operation.opcode)?;
        let output = u8::try_from(operation.dtype).ok().and_then(DType::from_code)?;
        if opcode.kind() != Kind::Elementwise || inputs.len() > INPUTS {
            return None;
        }
        let mut types = [output; INPUTS];
        for (dtype, input) in types.iter_mut().zip(inputs) {
            *dtype = DType::from_code(input.dtype)?;
        }
        let types = &types[..inputs.len()];
        if !opcode.check_types(output, types) || !opcode.takes_param(operation.param) {
            return None;
        }
        let (&last, &dtype) = (inputs.last()?, types.last()?);
        if opcode == Opcode::Copy && dtype == output {
            return Some(last);
        }
        let run = self.primitives.elementwise(opcode, operation.param, dtype, output)?;
        let places = [0, 1, 2].map(|at: usize| inputs[at.min(inputs.len() - 1)].bits.as_ptr().cast::<u8>());
        let mut result = [0u64; 2];
        // SAFETY: the operands are one element each, of the types that the primitive was asked for, and aligned.
        unsafe { run(1, result.as_mut_ptr().cast(), places[0], places[1], places[2]) };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&result[0].to_ne_bytes());
        bytes[8..].copy_from_slice(&result[1].to_ne_bytes());
        Some(Constant::from_bytes(output, &bytes))
    }
}
