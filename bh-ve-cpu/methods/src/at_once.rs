//! Methods on little data, run by the thread that calls, while batches run elsewhere.

use crate::{Call, Parallel, Plain, Strided, choose, multiply, order};
use bh_bytecode::Opcode;
use bh_core::Host;
use std::sync::atomic::{AtomicU16, Ordering};

/// Methods that may run at once. Their bits do not depend on the number of threads.
const METHODS: [(&str, Plain); 8] = [
    ("matmul", multiply::matmul),
    ("sort", order::sort),
    ("argsort", order::argsort),
    ("searchsorted_left", order::search_left),
    ("searchsorted_right", order::search_right),
    ("count_nonzero", choose::count_nonzero),
    ("flatnonzero", choose::flatnonzero),
    ("compress", choose::compress),
];

/// Products of a matrix product that take some microseconds.
const PRODUCTS: i64 = 1 << 16;

/// The numbers of the methods that may run at once, as far as they are known.
#[derive(Default)]
pub struct AtOnce([AtomicU16; METHODS.len()]);

impl AtOnce {
    /// Learns the number of a method; none if another one has its name.
    pub(crate) fn learn(&self, name: &str, number: Option<Opcode>) {
        if let Some(at) = METHODS.iter().position(|(known, _)| *known == name) {
            self.0[at].store(number.map_or(0, |opcode| opcode.0), Ordering::Release);
        }
    }

    /// Runs the method with this number on an output and inputs. False, and nothing has happened, if it is none of these, or
    /// too much, or if it fails.
    pub fn run(&self, opcode: Opcode, operands: &[Strided<'_>], host: Host) -> bool {
        let Some(at) = self.0.iter().position(|number| number.load(Ordering::Acquire) == opcode.0) else {
            return false;
        };
        let ((name, run), (outputs, inputs)) = (METHODS[at], operands.split_at(1.min(operands.len())));
        if name == "matmul" && products(outputs, inputs) > PRODUCTS {
            return false;
        }
        run(&Call { name, outputs, inputs, memory: Some(host) }, &mut Alone).is_ok()
    }
}

/// How many products of elements a product of matrices is made of.
fn products(outputs: &[Strided<'_>], inputs: &[Strided<'_>]) -> i64 {
    let (Some(out), Some(left)) = (outputs.first(), inputs.first()) else { return 0 };
    out.len().saturating_mul(left.shape.last().copied().unwrap_or(1))
}

/// No threads but the calling one.
struct Alone;

impl Parallel for Alone {
    fn participants(&self, _: u64) -> usize {
        1
    }

    fn run(&mut self, _: usize, tasks: usize, body: &(dyn Fn(&mut dyn Iterator<Item = usize>) + Sync)) {
        body(&mut (0..tasks));
    }

    fn install(&mut self, _: &mut (dyn FnMut() + Send)) -> bool {
        false
    }
}
