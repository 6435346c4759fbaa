//! Random user programs: loops over recorded whole-array statements, with numbers and views that change from round to
//! round, and reads in between. The bits of all reads must not depend on how they run.
//!
//! All arrays of a program derive from one grid: the grid, its interior, every second element of that, one line, the
//! interior reduced along an axis, the rest of it in a round, all of its elements as a line, and a single element.

mod generate;
mod memory;
mod phrases;
mod run;

pub use generate::looped;
pub use run::Run;

use bh_bytecode::opcode::Signature;
use bh_bytecode::{DType, Kind, Opcode};

/// The most axes of a grid.
const RANK: usize = 5;

/// The shape of an array, or of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// The grid.
    Grid,
    /// The interior: without a border of one element.
    Inside,
    /// Every second element of the interior along this axis.
    Half(u8),
    /// The diagonal of a two-dimensional interior.
    Diagonal,
    /// One line of the interior along the last axis.
    Line,
    /// The interior with one element along this axis.
    Flat(u8),
    /// The interior with one element less in each round along these axes; no array keeps this shape.
    Rest(u8),
    /// All elements of the interior as a line.
    Long,
    /// One element.
    Point,
}

/// A number of a statement.
#[derive(Clone, Copy, Debug)]
enum Number {
    /// The first number before the round of this number, the second from then on.
    Changes(f64, u64, f64),
    /// The number of the round.
    Round,
    /// The first number of the last read.
    Last,
}

/// A view's beginning in each dimension, from 0 to 2, and whether it moves with each round.
#[derive(Clone, Copy, Debug)]
struct Window {
    first: [u8; RANK],
    moves: bool,
    /// Is it reversed along the last axis?
    reversed: bool,
    /// Are the first and last axes exchanged, if their lengths are equal?
    transposed: bool,
}

/// A variable, viewed in a shape.
#[derive(Clone, Copy, Debug)]
struct Seen {
    variable: usize,
    shape: Shape,
    window: Window,
}

/// An operand: a variable, viewed in the required shape, or a number.
#[derive(Clone, Copy, Debug)]
enum Operand {
    Variable(usize, Window),
    Number(Number),
}

/// An elementwise operation on operands of a type.
#[derive(Clone, Copy, Debug)]
struct Computation {
    opcode: Opcode,
    param: u16,
    dtype: DType,
    operands: [Operand; 3],
}

#[derive(Clone, Copy, Debug)]
enum Action {
    /// The variable becomes the result, a new array.
    Make(usize, Computation),
    /// The variable becomes a choice between two operands: the first where it is greater.
    Choose(usize, [Operand; 2]),
    /// Writes the result into a variable or a view of it.
    Write(Seen, Computation),
    /// The variable becomes a reduction along some axes; with `all`, reduced along the others as well.
    Fold {
        into: usize,
        opcode: Opcode,
        of: Seen,
        axes: u16,
        all: bool,
    },
    /// The variable becomes cumulative sums or products of another one along an axis.
    Accumulate(usize, Opcode, u16, Seen),
    /// The variable becomes another one, viewed in its shape and rolled by this distance along all axes.
    Roll(usize, Seen, i64),
    /// The variable becomes elements of another one: every third from some number on, modulo its length.
    Take(usize, i64, usize),
    /// Writes elements of the other variable into the variable: at a step, from some number on, modulo its length.
    Put {
        into: usize,
        opcode: Opcode,
        first: i64,
        step: i64,
        of: usize,
    },
    /// The variable becomes random numbers with a key.
    Random(usize, u64),
    /// The variable becomes numbers from the first one on, with a step.
    Range(usize, i64, i64),
    /// The variable becomes another name of the other one's array, or of a view of it.
    Name(usize, Seen),
    /// A step of an elimination: subtracts a multiple of a line from all later lines.
    Eliminate(usize),
    Free(usize),
    Read(usize),
    /// Reads a view only.
    ReadSeen(Seen),
    /// Copies the user's memory into a view.
    Load(Seen),
    /// Changes elements of a view in place.
    Map(Seen),
    /// The variable becomes an array in the user's memory.
    Adopt(usize),
    /// Pins the memory of the variable's array, for a statement or for its lifetime.
    Pin(usize),
    /// The variable becomes the Fourier transform of another one, by an extension method.
    Transform(usize, Seen),
    Flush,
}

impl Action {
    /// The variable that it changes.
    fn target(&self) -> Option<usize> {
        match *self {
            Action::Make(variable, _) | Action::Choose(variable, _) => Some(variable),
            Action::Write(seen, _) => Some(seen.variable),
            Action::Fold { into, .. } | Action::Accumulate(into, ..) | Action::Put { into, .. } => Some(into),
            Action::Take(into, ..) | Action::Roll(into, ..) | Action::Eliminate(into) => Some(into),
            _ => None,
        }
    }

    /// Does it end batches?
    fn is_seen(&self) -> bool {
        let reads = matches!(self, Action::Read(_) | Action::ReadSeen(_) | Action::Flush);
        reads || matches!(self, Action::Load(_) | Action::Map(_) | Action::Adopt(_) | Action::Pin(_))
    }
}

/// An action that runs in each round whose number `every` divides.
#[derive(Clone, Copy, Debug)]
struct Statement {
    every: u64,
    action: Action,
}

/// The initial content of arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    /// A few small numbers.
    Small,
    /// Random numbers, whose sums round.
    Random,
    /// Numbers of all magnitudes, with infinities and NaN.
    Wild,
}

/// A random user program.
#[derive(Clone, Debug)]
pub struct Looped {
    grid: Vec<i64>,
    /// Are some views reversed or transposed?
    backwards: bool,
    /// Only operations with the same bits on every engine?
    exact: bool,
    first: First,
    variables: Vec<Shape>,
    dtypes: Vec<DType>,
    body: Vec<Statement>,
    rounds: u64,
}

impl Looped {
    /// How often its statements run.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Do its results have the same bits on every engine?
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Smaller programs: without one of the statements, with fewer rounds, or on a smaller grid.
    pub fn smaller(&self) -> Vec<Looped> {
        let mut all: Vec<Looped> = (0..self.body.len())
            .map(|at| {
                let mut one = self.clone();
                one.body.remove(at);
                one
            })
            .collect();
        if self.rounds > 1 {
            all.push(Looped { rounds: self.rounds / 2, ..self.clone() });
            all.push(Looped { rounds: self.rounds - 1, ..self.clone() });
        }
        for (dim, &extent) in self.grid.iter().enumerate() {
            for less in [extent / 2, extent - 1] {
                let fits = |&(other, &same): &(usize, &i64)| other == dim || (self.backwards && same == extent);
                if less >= 3 {
                    let mut one = self.clone();
                    let dims: Vec<usize> = self.grid.iter().enumerate().filter(fits).map(|(other, _)| other).collect();
                    dims.into_iter().for_each(|other| one.grid[other] = less);
                    all.push(one);
                }
            }
        }
        all
    }

    /// Does a type have sums and products?
    fn has_sums(&self, dtype: DType) -> bool {
        !self.exact || dtype.is_int() || dtype == DType::Bool
    }

    fn shape(&self, shape: Shape, round: u64) -> Vec<i64> {
        let mut inside: Vec<i64> = self.grid.iter().map(|extent| extent - 2).collect();
        match shape {
            Shape::Grid => self.grid.clone(),
            Shape::Inside => inside,
            Shape::Half(axis) => {
                inside[axis as usize] /= 2;
                inside
            }
            Shape::Diagonal => vec![inside[0].min(inside[inside.len() - 1])],
            Shape::Line => inside[inside.len() - 1..].to_vec(),
            Shape::Flat(axis) => {
                inside[axis as usize] = 1;
                inside
            }
            Shape::Rest(axes) => {
                let shrinks = |(axis, extent): (usize, &mut i64)| {
                    *extent -= if axes >> axis & 1 == 1 { round as i64 % (*extent).max(1) } else { 0 };
                };
                inside.iter_mut().enumerate().for_each(shrinks);
                inside
            }
            Shape::Long => vec![inside.iter().product()],
            Shape::Point => Vec::new(),
        }
    }

    /// The number of axes of a shape.
    fn rank(&self, shape: Shape) -> usize {
        self.shape(shape, 0).len()
    }

    /// The number of elements of an array's shape.
    fn count(&self, shape: Shape) -> i64 {
        self.shape(shape, 0).iter().product()
    }

    /// Is a shape a view of an array of another shape, or that array with merged axes?
    fn is_window(&self, own: Shape, seen: Shape) -> bool {
        let last = self.grid.len() - 1;
        let is_empty = |dims: &[i64]| dims.contains(&2);
        match (own, seen) {
            (Shape::Grid | Shape::Inside, Shape::Rest(_)) | (Shape::Grid, Shape::Inside | Shape::Flat(_)) => true,
            (Shape::Inside, Shape::Half(_) | Shape::Long) => true,
            (Shape::Inside, Shape::Diagonal) => last == 1,
            (Shape::Inside, Shape::Line) => !is_empty(&self.grid[..last]),
            (Shape::Inside, Shape::Flat(axis)) => self.grid[axis as usize] > 2,
            (Shape::Long, Shape::Inside) => true,
            _ => own == seen,
        }
    }

    /// Can an array be read in another shape, possibly broadcast along some axes?
    fn is_readable(&self, own: Shape, seen: Shape) -> bool {
        let last = (self.grid.len() - 1) as u8;
        match (own, seen) {
            (Shape::Point, _) | (Shape::Line | Shape::Flat(_), Shape::Inside) => true,
            (Shape::Flat(axis), Shape::Half(other)) => axis == other,
            (Shape::Line, Shape::Half(axis)) => axis != last,
            (Shape::Flat(axis), Shape::Rest(axes)) => axes == 1 << axis,
            (Shape::Line, Shape::Rest(axes)) => axes >> last & 1 == 0,
            (Shape::Line, Shape::Flat(axis)) => axis != last,
            _ => self.is_window(own, seen),
        }
    }
}

/// The type of an elementwise operation's result; `wanted` if the operands do not determine it.
fn result_type(opcode: Opcode, operands: DType, wanted: DType) -> DType {
    match opcode.info().signature {
        Signature::Test => DType::Bool,
        Signature::Abs | Signature::Part => operands.real_part(),
        Signature::Cast => wanted,
        _ => operands,
    }
}

/// Can the reduction give zeros of either sign? The order within a batch decides which extreme comes first.
fn is_extreme(opcode: Opcode, dtype: DType) -> bool {
    dtype.is_float() && matches!(opcode, Opcode::MinimumReduce | Opcode::MaximumReduce)
}

/// Is the reduction a sum or product, which rounds in the order of its terms?
fn is_sum(opcode: Opcode) -> bool {
    debug_assert!(matches!(opcode.kind(), Kind::Reduction | Kind::Accumulate));
    matches!(opcode, Opcode::AddReduce | Opcode::MultiplyReduce | Opcode::AddAccumulate | Opcode::MultiplyAccumulate)
}
