//! Sums of products that become one primitive: the products of a chain of additions are made where they are added.

use super::analysis::{Analysis, Form, Value};
use crate::primitives::{Factors, MOST_PRODUCTS, Primitives, ProductSum};
use bh_bytecode::Opcode;
use bh_fuser::lower::{Arg, Step};

/// A chain of additions, the last one first.
#[derive(Default)]
struct Chain {
    /// The additions.
    steps: Vec<usize>,
    /// The steps of the products, and their factors.
    products: Vec<(usize, [Arg; 2])>,
    /// The single element that the last addition adds.
    single: Option<Arg>,
    /// What the first product is added to.
    start: Option<Arg>,
}

impl Analysis<'_> {
    /// Turns chains of additions of products into sums of products.
    pub(super) fn sum_products(&mut self, primitives: Primitives) {
        for index in (0..self.forms.len()).rev() {
            let Step::Compute { opcode: Opcode::Add, input, .. } = self.steps()[index] else { continue };
            if !self.is_plain(index) {
                continue;
            }
            let Chain { steps, products, single, start } = self.chain(index);
            let squares = products.iter().all(|(_, [a, b])| a == b);
            let factors = if squares { Factors::Squares } else { Factors::Blocks };
            let sum = ProductSum { products: products.len(), start: start.is_some(), factors };
            let Some(run) = primitives.product_sum(sum, input) else { continue };
            let first = self.terms.len();
            self.terms.extend(start);
            for (made, factors) in products.into_iter().rev() {
                self.terms.extend(&factors[..if squares { 1 } else { 2 }]);
                self.drop_step(made);
            }
            steps[1..].iter().for_each(|&step| self.drop_step(step));
            let form = &mut self.forms[index];
            form.sum = Some((sum, run));
            form.terms = (first, self.terms.len());
            (form.args, form.count, form.scalar) = match single {
                Some(single) => ([single; 3], 1, Some(0)),
                None => (form.args, 0, None),
            };
        }
        self.count_uses();
    }

    /// The longest chain that ends with an addition and is one sum of products.
    fn chain(&self, index: usize) -> Chain {
        let mut chain = Chain::default();
        let mut at = index;
        loop {
            // Addition is commutative, so the rest of the chain may come from either side.
            let [left, right, _] = self.forms[at].args;
            let rest = if let Some(product) = self.product(right) {
                chain.products.push(product);
                left
            } else if let Some(product) = self.product(left) {
                chain.products.push(product);
                right
            } else if at == index && (self.is_scalar(right) || self.is_scalar(left)) {
                let (single, rest) = if self.is_scalar(right) { (right, left) } else { (left, right) };
                chain.single = Some(single);
                rest
            } else {
                // What this addition makes is the start.
                return chain;
            };
            chain.steps.push(at);
            let is_full = chain.products.len() == MOST_PRODUCTS;
            match self.product(rest) {
                Some(product) if !is_full => {
                    chain.products.push(product);
                    chain.start = None;
                    return chain;
                }
                _ => chain.start = Some(rest),
            }
            match self.only_use(rest, Opcode::Add) {
                Some(next) if !is_full => at = next,
                _ => return chain,
            }
        }
    }

    /// The step of a product that has no other use, and its factors.
    pub(super) fn product(&self, arg: Arg) -> Option<(usize, [Arg; 2])> {
        let Arg::Value(value) = arg else { return None };
        let Value { made, uses: 1, .. } = self.values[value as usize] else { return None };
        let [a, b, _] = self.forms[made].args;
        match self.steps()[made] {
            Step::Compute { opcode: Opcode::Multiply, .. } if self.is_plain(made) => Some((made, [a, b])),
            Step::Compute { opcode: Opcode::Powi, param: 2, .. } if self.is_plain(made) => Some((made, [a, a])),
            _ => None,
        }
    }

    /// Is a step with operands still a primitive of its own?
    pub(super) fn is_plain(&self, step: usize) -> bool {
        let Form { run, count, terms, .. } = self.forms[step];
        run.is_none() && count > 0 && terms.0 == terms.1
    }
}
