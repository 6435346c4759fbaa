//! Small expressions, exhaustively, and longer ones at random, as used in engines' patterns.

use crate::data::Values;
use crate::writer::{Given, Seen, Writer};
use bh_bytecode::random::{Program, Rng};
use bh_bytecode::{DType, Opcode, View};
use std::collections::BTreeSet;
use std::fmt;

/// An expression over arrays of one shape.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expression {
    /// One of the arrays.
    Array(u8),
    /// One of the arrays of a single element, broadcast.
    Single(u8),
    /// A number, different for each occurrence.
    Number,
    /// An operation by its place in [`OPERATIONS`].
    Apply(u8, Vec<Expression>),
}

/// Operations: name, parameter, and whether operands may be exchanged.
pub const OPERATIONS: &[(Opcode, &str, u16, bool)] = &[
    (Opcode::Add, "+", 0, true),
    (Opcode::Multiply, "*", 0, true),
    (Opcode::Subtract, "-", 0, false),
    (Opcode::Divide, "/", 0, false),
    (Opcode::Minimum, "min", 0, true),
    (Opcode::Absolute, "abs", 0, false),
    (Opcode::Powi, "square", 2, false),
    (Opcode::Sqrt, "sqrt", 0, false),
];
const ADD: u8 = 0;
const MULTIPLY: u8 = 1;
const DIVIDE: u8 = 3;
/// Operations in expressions of all kinds: the first ones, with two operands, and one unary.
const BINARY: u8 = 5;
const ABSOLUTE: u8 = 5;
const SQUARE: u8 = 6;
const ROOT: u8 = 7;

/// Arrays, and arrays of one element, that an expression may use.
const ARRAYS: u8 = 6;
const SINGLES: u8 = 2;
/// Powers of two and numbers whose products round.
const NUMBERS: &[f64] = &[0.5, 0.3, 3.0, 0.25, 1.7, -0.7, 0.1, 7.0];

use Expression::{Apply, Array, Number, Single};

fn apply(operation: u8, operands: &[Expression]) -> Expression {
    Apply(operation, operands.to_vec())
}

/// All expressions of `operations` operations over three arrays and numbers; one representative of those that differ
/// only by names and by the order of exchangeable operands.
pub fn all(operations: usize) -> Vec<Expression> {
    let mut by_size = vec![vec![Array(0), Array(1), Array(2), Number]];
    for size in 1..=operations {
        let below: Vec<Expression> = by_size[size - 1].iter().filter(|it| **it != Number).cloned().collect();
        let mut next: Vec<Expression> = below.into_iter().map(|of| apply(ABSOLUTE, &[of])).collect();
        for left in 0..size {
            for (a, b) in by_size[left].iter().flat_map(|a| by_size[size - 1 - left].iter().map(move |b| (a, b))) {
                if *a != Number || *b != Number {
                    next.extend((0..BINARY).map(|operation| apply(operation, &[a.clone(), b.clone()])));
                }
            }
        }
        // Names differ inside of larger expressions, so only the order of operands makes two of these equal.
        let distinct: BTreeSet<Expression> = next.into_iter().map(Expression::sorted).collect();
        by_size.push(distinct.into_iter().collect());
    }
    let distinct: BTreeSet<Expression> = by_size.pop().unwrap_or_default().iter().map(Expression::named).collect();
    distinct.into_iter().collect()
}

/// A chain of sums, products and quotients with numbers, of two to seven operations.
pub fn chain(rng: &mut Rng) -> Expression {
    let mut chain = leaf(rng);
    for _ in 0..2 + rng.below(6) {
        let operation = *rng.pick(&[ADD, ADD, ADD, MULTIPLY, MULTIPLY, DIVIDE]).unwrap_or(&ADD);
        let other = if rng.chance(40) { Number } else { leaf(rng) };
        let swapped = operation != DIVIDE && rng.chance(30);
        chain = apply(operation, &if swapped { [other, chain] } else { [chain, other] });
    }
    chain
}

/// A pattern for which engines have an instruction, with arbitrary neighbours.
pub fn pattern(rng: &mut Rng) -> Expression {
    let mut it = match rng.below(5) {
        0 => sum(rng, false),
        1 => sum(rng, true),
        2 => apply(ROOT, &[sum(rng, true)]),
        3 => apply(MULTIPLY, &[leaf(rng), apply(ROOT, &[leaf(rng)])]),
        _ => chain(rng),
    };
    for _ in 0..1 + rng.below(4) {
        it = neighbour(rng, it);
    }
    it
}

/// A sum of two to twelve terms, or of squares, in any association.
fn sum(rng: &mut Rng, squares: bool) -> Expression {
    let mut terms: Vec<Expression> = (0..2 + rng.below(11))
        .map(|_| match rng.below(10) {
            _ if squares => square(rng),
            0 => apply(MULTIPLY, &[Number, leaf(rng)]),
            1 => apply(MULTIPLY, &[leaf(rng), leaf(rng)]),
            _ => Array(rng.below(ARRAYS.into()) as u8),
        })
        .collect();
    let in_order = rng.chance(70);
    while terms.len() > 1 {
        let at = if in_order { 0 } else { rng.below(terms.len() - 1) };
        let (left, right) = (terms.remove(at), terms.remove(at));
        terms.insert(at, apply(ADD, &if rng.chance(15) { [right, left] } else { [left, right] }));
    }
    terms.pop().unwrap_or(Number)
}

fn square(rng: &mut Rng) -> Expression {
    let of = if rng.chance(60) { apply(2, &[leaf(rng), leaf(rng)]) } else { Array(rng.below(ARRAYS.into()) as u8) };
    if rng.chance(50) { apply(SQUARE, &[of]) } else { apply(MULTIPLY, &[of.clone(), of]) }
}

fn neighbour(rng: &mut Rng, it: Expression) -> Expression {
    let single = |rng: &mut Rng| if rng.chance(70) { Number } else { Single(rng.below(SINGLES.into()) as u8) };
    match rng.below(12) {
        0..3 => apply(MULTIPLY, &[single(rng), it]),
        3 => apply(DIVIDE, &[it, single(rng)]),
        4 => apply(DIVIDE, &[single(rng), it]),
        5 | 6 => apply(ADD, &[it, single(rng)]),
        7 => apply(rng.below(BINARY.into()) as u8, &[it, leaf(rng)]),
        8 => apply(rng.below(BINARY.into()) as u8, &[it.clone(), it]),
        9 => apply(ADD, &[it, sum(rng, false)]),
        10 => apply(ADD, &[it.clone(), apply(MULTIPLY, &[it, single(rng)])]),
        _ => apply(ABSOLUTE + rng.below(3) as u8, &[it]),
    }
}

fn leaf(rng: &mut Rng) -> Expression {
    if rng.chance(10) { Single(rng.below(SINGLES.into()) as u8) } else { Array(rng.below(ARRAYS.into()) as u8) }
}

impl Expression {
    /// Sorts exchangeable operands.
    fn sorted(self) -> Expression {
        let Apply(operation, operands) = self else { return self };
        let mut operands: Vec<Expression> = operands.into_iter().map(Expression::sorted).collect();
        if OPERATIONS[operation as usize].3 {
            operands.sort();
        }
        Apply(operation, operands)
    }

    /// The canonical expression among those that differ only by names and by the order of exchangeable operands.
    fn named(&self) -> Expression {
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        orders.iter().map(|names| self.renamed(names).sorted()).min().unwrap_or(Number)
    }

    fn renamed(&self, names: &[u8; 3]) -> Expression {
        match self {
            Array(name) => Array(names[*name as usize]),
            Apply(operation, operands) => Apply(*operation, operands.iter().map(|it| it.renamed(names)).collect()),
            other => other.clone(),
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Array(name) => write!(f, "{}", (b'a' + name) as char),
            Single(name) => write!(f, "{}[0]", (b'p' + name) as char),
            Number => write!(f, "#"),
            Apply(operation, operands) => match &operands[..] {
                [left, right] => write!(f, "({left} {} {right})", OPERATIONS[*operation as usize].1),
                all => write!(f, "{}({})", OPERATIONS[*operation as usize].1, all[0]),
            },
        }
    }
}

/// The arrays of expressions, and computed parts.
struct Computed<'a> {
    writer: &'a mut Writer,
    arrays: Vec<Seen>,
    singles: Vec<Seen>,
    /// Equal parts of an expression are computed once.
    made: Vec<(Expression, Seen)>,
    numbers: usize,
}

impl Computed<'_> {
    fn value(&mut self, of: &Expression) -> Given {
        match of {
            Array(name) => Given::Array(self.arrays[*name as usize]),
            Single(name) => Given::Array(self.singles[*name as usize]),
            Number => {
                self.numbers += 1;
                Given::Number(NUMBERS[(self.numbers - 1) % NUMBERS.len()])
            }
            Apply(..) => Given::Array(self.made(of)),
        }
    }

    fn made(&mut self, of: &Expression) -> Seen {
        if let Some((_, seen)) = self.made.iter().find(|(known, _)| known == of) {
            return *seen;
        }
        let Apply(operation, operands) = of else { return self.arrays[0] };
        let (opcode, _, param, _) = OPERATIONS[*operation as usize];
        let inputs: Vec<Given> = operands.iter().map(|operand| self.value(operand)).collect();
        let Seen { view, dtype, .. } = self.arrays[0];
        let seen = self.writer.make(opcode, param, dtype, view.shape(), &inputs);
        self.made.push((of.clone(), seen));
        seen
    }
}

/// A program that computes expressions on arrays of `elements` elements, and keeps the reduction of each if `fold` is
/// given.
pub fn program(of: &[Expression], fold: Option<Opcode>, dtype: DType, elements: i64) -> Program {
    let mut writer = Writer::default();
    let mut rng = Rng::new(elements as u64);
    let arrays = (0..ARRAYS).map(|_| writer.input(&mut rng, dtype, &[elements], Values::Tame)).collect();
    let whole = |seen: Seen| seen.through(View::new(0, &[elements], &[0]).unwrap_or_default());
    let singles = (0..SINGLES).map(|_| whole(writer.input(&mut rng, dtype, &[1], Values::Tame))).collect();
    let mut values = Computed { writer: &mut writer, arrays, singles, made: Vec::new(), numbers: 0 };
    for expression in of {
        (values.made, values.numbers) = (Vec::new(), 0);
        let mut result = values.made(expression);
        if let Some(fold) = fold {
            result = values.writer.make(fold, 1, dtype, &[], &[Given::Array(result)]);
        }
        values.writer.keep(result);
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_distinct_and_many() {
        let shown = |operations| -> Vec<String> { all(operations).iter().map(Expression::to_string).collect() };
        let one = shown(1);
        for wanted in ["(a + b)", "(a * #)", "(# - a)", "(a / #)", "(a min a)", "abs(a)"] {
            assert!(
                one.iter().any(|it| it == wanted) || one.iter().any(|it| *it == swapped(wanted)),
                "{wanted}: {one:?}"
            );
        }
        assert!(!one.iter().any(|it| it == "(b + c)"), "{one:?}");
        assert!(shown(2).len() > 300 && all(3).len() > 10_000);
    }

    /// `(x op y)` with exchanged operands.
    fn swapped(text: &str) -> String {
        let words: Vec<&str> = text.trim_matches(['(', ')']).split(' ').collect();
        if let [x, op, y] = words[..] { format!("({y} {op} {x})") } else { text.to_owned() }
    }
}
