//! Immediate operations have the same bits as in a batch.

use super::{Findings, Library};
use crate::cases::{Case, cases, folds};
use crate::run;
use bh_bytecode::batch::NO_BASE;
use bh_bytecode::compare::{Tolerance, compare};
use bh_bytecode::interp::Memory;
use bh_bytecode::{DType, Opcode, Operand};
use bh_core::abi::{ImmediateOperation, MethodArray};
use bh_core::component::SharedCalls;
use bh_core::error::Result;

/// Every operation, type and layout of the conformance suite.
pub(super) fn immediate(library: &Library, findings: &mut Findings) -> Result<()> {
    let mut stack = library.load("alone", "\"fuser\", \"node\", \"candidate\"", "")?;
    let Some(calls) = stack.immediate_calls() else { return Ok(()) };
    let mut count = 0;
    let all = Opcode::ALL.iter().flat_map(|&opcode| cases(opcode)).chain(folds());
    for case in all.filter(|case| !overlaps(case)) {
        let mut memory = data(&case);
        match (at_once(&calls, &case, &mut memory), run::run(&mut stack, &case.program)) {
            (Ok(true), Ok(expected)) => {
                count += 1;
                if let Err(difference) = agree(&case, &expected, &memory) {
                    findings.fault(format!("{}: other bits at once than in a batch: {difference}", case.title));
                }
            }
            (Ok(true), Err(error)) => {
                findings.fault(format!("{} is done at once, but a batch fails: {error}", case.title))
            }
            (Ok(false) | Err(_), _) if memory != data(&case) => {
                findings.fault(format!("{} is not done at once, but changes data", case.title));
            }
            (Err(error), Ok(_)) => findings.fault(format!("{} fails at once, but not in a batch: {error}", case.title)),
            _ => {}
        }
    }
    if count == 0 {
        findings.fault("announces IMMEDIATE, but leaves all operations to batches");
    }
    findings.notes.push(format!("{count} operations were carried out at once"));
    Ok(())
}

/// Does an input overlap the output through another view? Callers copy such inputs first.
fn overlaps(case: &Case) -> bool {
    let batch = &case.program.batch;
    let (outputs, inputs) = (case.instr().outputs(), case.instr().inputs());
    let base = |operand: &Operand| operand.as_view().map(|view| batch.views[view as usize].base);
    inputs.iter().any(|input| outputs.iter().any(|output| input != output && base(input) == base(output)))
}

/// The contents of the bases; zeros for those without.
fn data(case: &Case) -> Vec<Vec<u8>> {
    let contents = |base: &bh_bytecode::Base| match case.program.memory.get(base.id) {
        Some(bytes) => bytes.to_vec(),
        None => vec![0; base.bytes() as usize],
    };
    case.program.batch.bases.iter().map(contents).collect()
}

fn at_once(calls: &dyn SharedCalls, case: &Case, memory: &mut [Vec<u8>]) -> Result<bool> {
    let (batch, instr) = (case.program.batch.as_ref(), case.instr());
    let mut operands = Vec::new();
    for &operand in instr.operands() {
        operands.push(match (operand.as_view(), operand.as_constant()) {
            (Some(view), _) => {
                let record = &batch.views[view as usize];
                let (shape, stride) = (batch.shape(view), batch.stride(view));
                let numbers = record.base == NO_BASE;
                let (data, dtype) = match numbers {
                    true => ((&raw const record.start).cast_mut().cast::<u8>(), DType::I64),
                    false => {
                        let dtype = batch.bases[record.base as usize].dtype();
                        let first = record.start as isize * dtype.size() as isize;
                        (memory[record.base as usize].as_mut_ptr().wrapping_offset(first), dtype)
                    }
                };
                let (rank, dtype) = (shape.len() as u32, dtype as u32);
                MethodArray { data: data.cast(), shape: shape.as_ptr(), stride: stride.as_ptr(), rank, dtype }
            }
            (_, Some(constant)) => {
                let constant = &batch.constants[constant as usize];
                let (none, data) = (std::ptr::null(), constant.bits.as_ptr().cast_mut().cast());
                MethodArray { data, shape: none, stride: none, rank: 0, dtype: u32::from(constant.dtype) }
            }
            _ => return Ok(false),
        });
    }
    // SAFETY: the operands refer to the memory of the bases, the batch's tables and its constants, which outlive the
    // call.
    calls.immediate(&unsafe { ImmediateOperation::new(instr.opcode, instr.param, instr.order, &operands) })
}

/// Compares all bases; those without initial data only if they were written as a whole.
fn agree(case: &Case, expected: &Memory, found: &[Vec<u8>]) -> std::result::Result<(), String> {
    let batch = &case.program.batch;
    let written = case.instr().outputs()[0].as_view().map_or(0, |view| batch.views[view as usize].len);
    for (base, found) in batch.bases.iter().zip(found) {
        let known = case.program.memory.get(base.id).is_some() || base.len == written;
        if let (true, Some(expected)) = (known, expected.get(base.id)) {
            compare(base.dtype(), expected, found, &Tolerance::Exact).map_err(|difference| difference.to_string())?;
        }
    }
    Ok(())
}
