//! Sums of many blocks, or of their squares, that become one primitive.

use super::analysis::{Access, Analysis, Form, Value};
use crate::primitives::{MOST_SQUARES, Primitives};
use bh_bytecode::Opcode;
use bh_kernel::{Arg, Step};

/// The fewest and the most terms of a sum of many blocks. Three terms are one super-instruction already.
const SUM_LEAST: usize = 4;
pub(super) const SUM_TERMS: usize = 128;

/// A chain of additions of squares: all of its steps, and what the squares are of.
struct Squares {
    steps: Vec<usize>,
    terms: Vec<Arg>,
}
impl Analysis<'_> {
    /// Turns chains of additions, one after the other, into sums that read every term once and keep the running sum in
    /// vector registers. All terms but the first are memory: others would need a register of their own each.
    pub(super) fn sum(&mut self, primitives: Primitives) {
        for index in (0..self.forms.len()).rev() {
            let Step::Compute { opcode: Opcode::Add, input, .. } = self.steps()[index] else { continue };
            let sum = primitives.sum(input, false);
            if self.forms[index].count != 2 || sum.is_none() {
                continue;
            }
            let (mut chain, mut terms) = (Vec::new(), Vec::new());
            let (mut next, mut start) = (Some(index), None);
            while let Some(at) = next {
                let [left, right, _] = self.forms[at].args;
                // Addition is commutative, so the chain may come from either side.
                let (rest, term) = if self.is_memory(right) { (left, right) } else { (right, left) };
                if !self.is_memory(term) || terms.len() + 2 > SUM_TERMS {
                    break;
                }
                chain.push(at);
                terms.push(term);
                start = Some(rest);
                next = self.only_use(rest, Opcode::Add);
            }
            terms.extend(start);
            if terms.len() < SUM_LEAST {
                continue;
            }
            terms.reverse();
            let first = self.terms.len();
            self.terms.extend(terms);
            for &at in &chain[1..] {
                self.drop_step(at);
            }
            let form = &mut self.forms[index];
            (form.count, form.sum, form.terms) = (0, sum, (first, self.terms.len()));
        }
        self.count_uses();
        self.scale_sums();
    }

    /// Merges a multiplication by a single element into the sum before it.
    fn scale_sums(&mut self) {
        for index in 0..self.forms.len() {
            let Step::Compute { opcode: Opcode::Multiply, input, output, .. } = self.steps()[index] else { continue };
            for at in 0..2 {
                let (Arg::Value(sum), factor) = (self.forms[index].args[at], self.forms[index].args[1 - at]) else {
                    continue;
                };
                let Value { made, uses: 1, .. } = self.values[sum as usize] else { continue };
                let Form { sum: run, terms, count, .. } = self.forms[made];
                // A sum takes one single element: one that has its factor, or a term besides, takes no other.
                if terms.0 == terms.1 || count != 0 || input != output || !self.is_scalar(factor) {
                    continue;
                }
                self.drop_step(made);
                let args = [factor; 3];
                self.forms[index] = Form { args, count: 1, scalar: Some(0), sum: run, terms, ..self.forms[index] };
                break;
            }
        }
        self.count_uses();
    }

    /// Turns sums of squares, as distances are made of, into sums that read every block once; a single element may be added
    /// at the end.
    pub(super) fn sum_squares(&mut self, primitives: Primitives) {
        for index in (0..self.forms.len()).rev() {
            let Step::Compute { opcode: Opcode::Add, input, .. } = self.steps()[index] else { continue };
            let Some(sum) = primitives.sum(input, true).filter(|_| self.is_plain(index)) else { continue };
            let [left, right, _] = self.forms[index].args;
            let (single, rest) = match (self.is_scalar(left), self.is_scalar(right)) {
                (false, true) => (Some(right), self.only_use(left, Opcode::Add)),
                (true, false) => (Some(left), self.only_use(right, Opcode::Add)),
                _ => (None, Some(index)),
            };
            let Some(Squares { steps, mut terms }) = rest.and_then(|last| self.squares(last)) else { continue };
            terms.reverse();
            let first = self.terms.len();
            self.terms.extend(terms);
            steps.into_iter().filter(|&step| step != index).for_each(|step| self.drop_step(step));
            let (args, count, scalar) = single.map_or((self.forms[index].args, 0, None), |it| ([it; 3], 1, Some(0)));
            let terms = (first, self.terms.len());
            self.forms[index] = Form { args, count, scalar, sum: Some(sum), terms, ..self.forms[index] };
        }
        self.count_uses();
    }

    /// The squares that a chain of additions adds up, the last one first; `None` if it adds other things as well.
    fn squares(&self, last: usize) -> Option<Squares> {
        let (mut steps, mut terms, mut at) = (Vec::new(), Vec::new(), last);
        while terms.len() + 2 <= MOST_SQUARES {
            steps.push(at);
            let [left, right, _] = self.forms[at].args;
            // Addition is commutative, so the chain may come from either side.
            let (rest, (square, of)) = match (self.square(left), self.square(right)) {
                (first, Some(second)) => (first.ok_or(left), second),
                (Some(first), None) => (Err(right), first),
                (None, None) => return None,
            };
            steps.push(square);
            terms.push(of);
            match rest {
                Ok((square, of)) => {
                    steps.push(square);
                    terms.push(of);
                    return Some(Squares { steps, terms });
                }
                Err(rest) => at = self.only_use(rest, Opcode::Add)?,
            }
        }
        None
    }

    /// The step of a square that has no other use, and what it is of.
    fn square(&self, arg: Arg) -> Option<(usize, Arg)> {
        let made = self.sole(arg)?;
        let [a, b, _] = self.forms[made].args;
        match self.steps()[made] {
            Step::Compute { opcode: Opcode::Multiply, .. } if self.is_plain(made) && a == b => Some((made, a)),
            Step::Compute { opcode: Opcode::Powi, param: 2, .. } if self.is_plain(made) => Some((made, a)),
            _ => None,
        }
    }

    /// Is it a load of memory that can be used as it is?
    fn is_memory(&self, arg: Arg) -> bool {
        match arg {
            Arg::Constant(_) => false,
            Arg::Value(value) => match self.steps()[self.values[value as usize].made] {
                Step::Load { slot } => self.access(slot) == Access::Direct,
                _ => false,
            },
        }
    }
}
