//! Methods on little data, run by the thread that calls, while batches run elsewhere.

use crate::fourier::Plans;
use crate::{BESIDE, Beside, Call, Parallel, Strided};
use bh_bytecode::Opcode;
use bh_core::Host;
use std::sync::atomic::{AtomicU32, Ordering};

/// Products of a matrix product that take some microseconds.
pub const PRODUCTS: i64 = 1 << 16;

/// The most numbers that are known. Each component that calls a method gives it a number of its own.
const NUMBERS: usize = 32;

/// The numbers of the methods that may run at once: the number, and above it the method's place in `BESIDE` and one. 0:
/// free.
#[derive(Default)]
struct Numbers([AtomicU32; NUMBERS]);

/// The methods that may run at once, and plans of transforms, which batches use, too.
#[derive(Default)]
pub struct AtOnce {
    numbers: Numbers,
    plans: Plans,
}

impl Numbers {
    /// Learns the place of a method with this number; without one, the number is another method's.
    fn learn(&self, place: Option<usize>, number: Opcode) {
        for known in &self.0 {
            if known.load(Ordering::Relaxed) as u16 == number.0 {
                known.store(0, Ordering::Release);
            }
        }
        let free = self.0.iter().find(|known| known.load(Ordering::Relaxed) == 0);
        if let (Some(place), Some(free)) = (place, free) {
            free.store((place as u32 + 1) << 16 | u32::from(number.0), Ordering::Release);
        }
    }

    /// The place of the method with this number.
    fn place(&self, opcode: Opcode) -> Option<usize> {
        let mut all = self.0.iter().map(|known| known.load(Ordering::Acquire));
        let found = all.find(|&known| known as u16 == opcode.0)?;
        (found >> 16).checked_sub(1).map(|place| place as usize)
    }
}

impl AtOnce {
    /// Learns that a number is that of a method, which is of `BESIDE` or another one. Only one thread does so at a time.
    pub(crate) fn learn(&self, name: &str, number: Opcode, is_beside: bool) {
        let place = BESIDE.iter().position(|(known, _)| *known == name).filter(|_| is_beside);
        self.numbers.learn(place, number);
    }

    /// The method with this number.
    fn method(&self, opcode: Opcode) -> Option<(&'static str, Beside)> {
        BESIDE.get(self.numbers.place(opcode)?).copied()
    }

    /// Plans of transforms.
    pub(crate) fn plans(&self) -> &Plans {
        &self.plans
    }

    /// Runs the method with this number on an output and inputs. False, and nothing has happened, if it is none of these, or
    /// too much, or if it fails.
    pub fn run(&self, opcode: Opcode, operands: &[Strided<'_>], host: Host) -> bool {
        let Some((name, method)) = self.method(opcode) else { return false };
        let (outputs, inputs) = operands.split_at(1.min(operands.len()));
        if name == "matmul" && products(outputs, inputs) > PRODUCTS {
            return false;
        }
        let call = Call { name, outputs, inputs, memory: Some(host) };
        match method {
            Beside::Plain(run) => run(&call, &mut Alone).is_ok(),
            Beside::Planned(run) => run(&self.plans, &call, &mut Alone).is_ok(),
        }
    }
}

/// How many products of elements a product of matrices is made of.
fn products(outputs: &[Strided<'_>], inputs: &[Strided<'_>]) -> i64 {
    let (Some(out), Some(left)) = (outputs.first(), inputs.first()) else { return 0 };
    out.len().saturating_mul(left.shape.last().copied().unwrap_or(1))
}

/// No threads but the calling one.
pub struct Alone;

// SAFETY: it hands all numbers out once, and there is one for a call.
unsafe impl Parallel for Alone {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_keeps_all_its_numbers_until_they_are_others() {
        let known = Numbers::default();
        let [first, second, third] = [0, 1, 2].map(|number| Opcode(Opcode::FIRST_EXTENSION + number));
        let [matmul, sort] = [0, 4].map(Some);
        known.learn(matmul, first);
        known.learn(sort, second);
        known.learn(matmul, third);
        let places = || [first, second, third].map(|number| known.place(number));
        assert_eq!(places(), [matmul, sort, matmul]);
        known.learn(None, first);
        known.learn(None, second);
        assert_eq!(places(), [None, None, matmul]);
    }
}
