//! Two operations that become one primitive, or one that takes a single element.

use super::analysis::{Analysis, Form, Value, ValueHome};
use crate::primitives::{Primitives, Side};
use bh_bytecode::{DType, Opcode};
use bh_kernel::schedule::FoldTree;
use bh_kernel::{Arg, Step};

impl Analysis<'_> {
    /// Merges a binary operation into the only user of its result, where there is a primitive for both.
    pub(super) fn fuse(&mut self, primitives: Primitives) {
        for index in 0..self.forms.len() {
            let Step::Compute { opcode: second, input, output, count: count @ 1..=2, .. } = self.steps()[index] else {
                continue;
            };
            if input != output || self.forms[index].count != count as usize {
                continue;
            }
            for at in 0..count as usize {
                let Arg::Value(value) = self.forms[index].args[at] else { continue };
                let Value { made, uses: 1, .. } = self.values[value as usize] else { continue };
                let Step::Compute { opcode: first, input: inner, count: 2, .. } = self.steps()[made] else { continue };
                if inner != input || self.forms[made].run.is_some() || self.forms[made].count != 2 {
                    continue;
                }
                let [a, b, _] = self.forms[made].args;
                let c = self.forms[index].args[1 - at];
                let single = count == 2 && self.is_scalar(c);
                let root = if count == 2 {
                    self.root(a).map(|root| (root, b)).or(self.root(b).map(|root| (root, a)))
                } else {
                    None
                };
                if let Some(((root, x), b)) = root
                    && let Some(run) = primitives.rooted(first, second, at == 1, single)
                {
                    let scalar = single.then_some(2);
                    self.forms[index] = Form { run: Some(run), args: [x, b, c], count: 3, scalar, ..self.forms[index] };
                    self.drop_step(made);
                    self.drop_step(root);
                    break;
                }
                let Some(run) = primitives.fused(first, second, at == 1, single, input) else { continue };
                let (operands, scalar) = (count as usize + 1, single.then_some(2));
                self.forms[index] =
                    Form { run: Some(run), args: [a, b, c], count: operands, scalar, ..self.forms[index] };
                self.forms[made].count = 0;
                self.values[value as usize].home = ValueHome::Nowhere;
                break;
            }
        }
    }

    /// The step of a square root of f64 that has no other use, and what it is of.
    fn root(&self, arg: Arg) -> Option<(usize, Arg)> {
        let made = self.sole(arg)?;
        match self.steps()[made] {
            Step::Compute { opcode: Opcode::Sqrt, input: DType::F64, .. } if self.is_plain(made) => {
                Some((made, self.forms[made].args[0]))
            }
            _ => None,
        }
    }

    /// Merges a binary operation, or a square, into the fold that is the only user of its result, where lines are folded into
    /// lanes.
    pub(super) fn fuse_folds(&mut self, primitives: Primitives) {
        for index in 0..self.forms.len() {
            let Step::Reduce { opcode, arg: Arg::Value(value), .. } = self.steps()[index] else { continue };
            let Value { made, uses: 1, dtype, .. } = self.values[value as usize] else { continue };
            let Step::Compute { opcode: first, param, input, .. } = self.steps()[made] else { continue };
            let form = self.forms[made];
            let first = match (first, param, form.count) {
                (Opcode::Powi, 2, 1) if !dtype.is_complex() => Opcode::Multiply,
                (_, _, 2) => first,
                _ => continue,
            };
            let Some(combiner) = opcode.combiner() else { continue };
            if form.run.is_none()
                && input == dtype
                && self.folds_into_lanes(index)
                && let Some(lanes) = primitives.lanes_of(first, combiner, dtype)
            {
                let args = [form.args[0], form.args[form.count - 1], form.args[0]];
                self.forms[index] = Form { lanes: Some(lanes), args, count: 2, ..form };
                self.drop_step(made);
            }
        }
    }

    /// Is a step the fold of elements of a line, as they are, into lanes?
    fn folds_into_lanes(&self, step: usize) -> bool {
        let Step::Reduce { slot, arg: Arg::Value(value), .. } = self.steps()[step] else { return false };
        self.schedule.tree().is_some_and(FoldTree::has_lanes)
            && self.slots()[slot as usize].dtype == self.values[value as usize].dtype
    }

    /// Takes single elements where a primitive accepts them: constants, and loads that stay the same along a line.
    pub(super) fn find_scalars(&mut self, primitives: Primitives) {
        for index in 0..self.forms.len() {
            let Step::Compute { opcode, input, count: 2, .. } = self.steps()[index] else { continue };
            let form = self.forms[index];
            if form.run.is_some() || form.count != 2 {
                continue;
            }
            for (at, side) in [(1, Side::Right), (0, Side::Left)] {
                if self.is_scalar(form.args[at])
                    && !self.is_scalar(form.args[1 - at])
                    && let Some(run) = primitives.with_scalar(opcode, side, input)
                {
                    self.forms[index] = Form { run: Some(run), scalar: Some(at), ..form };
                    break;
                }
            }
        }
    }
}
