//! Norms: roots of sums of squares, and what is divided by them or their cubes, that become one primitive with the sum.

use super::analysis::{Analysis, Form, Value};
use crate::primitives::{Dividend, Norm, Primitives};
use bh_bytecode::{DType, Opcode};
use bh_fuser::lower::{Arg, Step};

/// The steps of a norm and of the sum before it.
struct Steps {
    root: usize,
    /// The product of the sum and its root.
    product: Option<usize>,
    sum: usize,
}

impl Analysis<'_> {
    /// Merges sums of squares into the roots and quotients that alone use them.
    pub(super) fn find_norms(&mut self, primitives: Primitives) {
        // Quotients come before their roots, going backward.
        for index in (0..self.forms.len()).rev() {
            let Step::Compute { opcode, input: DType::F64, .. } = self.steps()[index] else { continue };
            if !self.is_plain(index) {
                continue;
            }
            let [left, right, _] = self.forms[index].args;
            let (steps, dividend) = match opcode {
                Opcode::Divide => (self.norm(right), Some(left)),
                Opcode::Sqrt => (self.root_of_sum(index), None),
                _ => continue,
            };
            let Some(Steps { root, product, sum }) = steps else { continue };
            let kind = dividend.map(|arg| if self.is_scalar(arg) { Dividend::Single } else { Dividend::Block });
            let norm = match (kind, product) {
                (None, _) => Norm::Root,
                (Some(kind), None) => Norm::OverRoot(kind),
                (Some(kind), Some(_)) => Norm::OverCube(kind),
            };
            let Form { sum: Some((squares, _)), args, count, scalar, terms, .. } = self.forms[sum] else { continue };
            let Some(run) = primitives.norm(squares, norm) else { continue };
            let first = self.terms.len();
            self.terms.extend_from_within(terms.0..terms.1);
            self.terms.extend(dividend);
            let terms = (first, self.terms.len());
            for step in [Some(sum), product, Some(root).filter(|&root| root != index)].into_iter().flatten() {
                self.drop_step(step);
            }
            let sum = Some((squares, run));
            self.forms[index] = Form { args, count, scalar, sum, terms, dividend: kind, ..self.forms[index] };
        }
        self.count_uses();
    }

    /// The steps of a divisor that is a norm, or the cube of one, which nothing else uses.
    fn norm(&self, divisor: Arg) -> Option<Steps> {
        let (made, opcode) = self.made_for_one(divisor)?;
        match opcode {
            Opcode::Sqrt => self.root_of_sum(made),
            Opcode::Multiply => {
                let [left, right, _] = self.forms[made].args;
                let of_cube = |root: Arg, sum: Arg| {
                    let (root, opcode) = self.made_for_one(root)?;
                    let is_root = opcode == Opcode::Sqrt && self.forms[root].args[0] == sum;
                    let sum = self.sum_used(sum, 2).filter(|_| is_root)?;
                    Some(Steps { root, product: Some(made), sum })
                };
                of_cube(left, right).or_else(|| of_cube(right, left))
            }
            _ => None,
        }
    }

    /// The steps of a root of a sum, if that has no other use.
    fn root_of_sum(&self, root: usize) -> Option<Steps> {
        let sum = self.sum_used(self.forms[root].args[0], 1)?;
        Some(Steps { root, product: None, sum })
    }

    /// The step of a plain operation that is used once, and its opcode.
    fn made_for_one(&self, arg: Arg) -> Option<(usize, Opcode)> {
        let Arg::Value(value) = arg else { return None };
        let Value { made, uses: 1, .. } = self.values[value as usize] else { return None };
        match self.steps()[made] {
            Step::Compute { opcode, .. } if self.is_plain(made) => Some((made, opcode)),
            _ => None,
        }
    }

    /// The step of a sum of products with so many uses.
    fn sum_used(&self, arg: Arg, wanted: usize) -> Option<usize> {
        let Arg::Value(value) = arg else { return None };
        let Value { made, uses, .. } = self.values[value as usize];
        (uses == wanted && self.forms[made].sum.is_some()).then_some(made)
    }
}
