//! Differences with a single element, as of coordinates and those of one point, that are made where they are used: inside of
//! sums of squares and of folds. They are neither stored nor read again then.

use super::analysis::{Analysis, Form, Value};
use crate::primitives::{Difference, Factors, LanesFn, Primitives, ProductSum, Side, SumFn};
use bh_bytecode::Opcode;
use bh_fuser::lower::{Arg, Step};

/// A block less a single element, or that less a block.
#[derive(Clone, Copy)]
struct Minus {
    block: Arg,
    single: Arg,
    /// Where the single element is.
    side: Side,
}

/// A step that can make differences itself.
struct User {
    step: usize,
    /// Their values, each as often as it is used.
    differences: Vec<u16>,
    primitive: Primitive,
}

/// What makes them.
enum Primitive {
    /// A sum of squares.
    Sum(ProductSum, SumFn),
    /// A fold of the square of a difference, or of its product with another factor, which a step makes otherwise.
    Fold { run: LanesFn, product: usize, factor: Option<Arg> },
}

impl Analysis<'_> {
    /// Has sums of squares and folds make the differences that nothing else uses.
    pub(super) fn sink_differences(&mut self, primitives: Primitives) {
        let minus: Vec<Option<Minus>> = self.values.iter().map(|value| self.minus(value.made)).collect();
        let sums = (0..self.forms.len()).filter_map(|step| self.sum_of_squares(step, &minus, primitives));
        let folds = (0..self.forms.len()).filter_map(|step| self.fold_of_product(step, &minus, primitives));
        let mut users: Vec<User> = sums.chain(folds).collect();
        // What has another use is stored anyway, and so is what a sum squares beside that.
        let mut uses = vec![0; self.values.len()];
        loop {
            uses.fill(0);
            users.iter().flat_map(|user| &user.differences).for_each(|&value| uses[value as usize] += 1);
            let count = users.len();
            let is_sunk = |value: &u16| uses[*value as usize] == self.values[*value as usize].uses;
            users.retain(|user| user.differences.iter().all(is_sunk));
            if users.len() == count {
                break;
            }
        }
        for User { step, differences, primitive } in users {
            let minus = |value: u16| minus[value as usize].expect("only these are listed");
            for &value in &differences {
                self.drop_step(self.values[value as usize].made);
            }
            match primitive {
                Primitive::Sum(sum, run) => {
                    let (first, start) = (self.terms.len(), self.forms[step].terms.0);
                    self.terms.extend_from_within(start..start + usize::from(sum.start));
                    self.terms.extend(differences.into_iter().map(minus).flat_map(|minus| [minus.block, minus.single]));
                    (self.forms[step].terms, self.forms[step].sum) = ((first, self.terms.len()), Some((sum, run)));
                }
                Primitive::Fold { run, product, factor } => {
                    self.drop_step(product);
                    let Minus { block, single, .. } = minus(differences[0]);
                    let (args, count) = match factor {
                        Some(factor) => ([block, factor, single], 3),
                        None => ([block, single, single], 2),
                    };
                    let form = &mut self.forms[step];
                    *form = Form { lanes: Some(run), args, count, scalar: Some(count - 1), ..*form };
                }
            }
        }
        self.count_uses();
    }

    /// The difference that a step makes.
    fn minus(&self, made: usize) -> Option<Minus> {
        let Step::Compute { opcode: Opcode::Subtract, .. } = self.steps()[made] else { return None };
        let [left, right, _] = self.forms[made].args;
        match (self.is_plain(made), self.is_scalar(left), self.is_scalar(right)) {
            (true, false, true) => Some(Minus { block: left, single: right, side: Side::Right }),
            (true, true, false) => Some(Minus { block: right, single: left, side: Side::Left }),
            _ => None,
        }
    }

    /// A step that is a sum of the squares of differences.
    fn sum_of_squares(&self, step: usize, minus: &[Option<Minus>], primitives: Primitives) -> Option<User> {
        let (sum, _) = self.forms[step].sum?;
        let Step::Compute { input, .. } = self.steps()[step] else { return None };
        let squared = self.terms(step)[usize::from(sum.start)..].iter();
        let differences = squared.map(|&term| difference(term, minus)).collect::<Option<_>>()?;
        let sum = match sum.factors {
            Factors::Squares => ProductSum { factors: Factors::Differences, ..sum },
            Factors::Blocks | Factors::Differences => return None,
        };
        let primitive = Primitive::Sum(sum, primitives.product_sum(sum, input)?);
        Some(User { step, differences, primitive })
    }

    /// A step that folds the product of a difference with itself or with something else.
    fn fold_of_product(&self, step: usize, minus: &[Option<Minus>], primitives: Primitives) -> Option<User> {
        let Step::Reduce { opcode, arg: Arg::Value(value), .. } = self.steps()[step] else { return None };
        let Value { made, dtype, .. } = self.values[value as usize];
        let (product, [a, b]) = self.product(Arg::Value(value)).filter(|_| self.folds_into_lanes(step))?;
        let combiner = opcode.combiner()?;
        let run = |made| primitives.lanes_of_difference(made, combiner, dtype);
        let of = |differences: Vec<u16>, run, factor| {
            Some(User { step, differences, primitive: Primitive::Fold { run, product, factor } })
        };
        if a == b {
            let square = difference(a, minus)?;
            return of(vec![square; self.forms[made].count], run(Difference::Squared)?, None);
        }
        let (value, factor) = difference(a, minus).map(|a| (a, b)).or_else(|| Some((difference(b, minus)?, a)))?;
        let side = minus[value as usize]?.side;
        of(vec![value], run(Difference::Times(side))?, Some(factor))
    }
}

/// The number of a value that is a difference.
fn difference(arg: Arg, minus: &[Option<Minus>]) -> Option<u16> {
    match arg {
        Arg::Value(value) if minus[value as usize].is_some() => Some(value),
        _ => None,
    }
}
