//! The syntax tree.

use crate::source::Source;
use std::rc::Rc;

/// An expression, with its offset for errors.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The kind.
    pub kind: Kind,
    /// Byte offset.
    pub at: usize,
}

/// Kinds of expressions.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// A variable, or a call without arguments.
    Name(String),
    /// `:` as an index.
    All,
    /// `end` as an index.
    Last,
    /// first : step : last.
    Range(Box<Expr>, Option<Box<Expr>>, Box<Expr>),
    /// `-a`, `+a`, `~a`.
    Prefix(&'static str, Box<Expr>),
    /// `a'`.
    Transpose(Box<Expr>),
    /// An operator with two operands.
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// `&&` or `||`.
    Short(&'static str, Box<Expr>, Box<Expr>),
    /// An index or a call.
    Index(Box<Expr>, Vec<Expr>),
    /// Rows of elements.
    Matrix(Vec<Vec<Expr>>),
    /// `@(x) body`.
    Anonymous(Vec<String>, Box<Expr>),
    /// `@name`.
    Handle(String),
}

/// The target of an assignment.
#[derive(Clone, Debug)]
pub struct Target {
    /// The variable; `None` for `~`.
    pub name: Option<String>,
    /// The index.
    pub index: Option<Vec<Expr>>,
    /// Byte offset.
    pub at: usize,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The action.
    pub action: Action,
    /// Byte offset.
    pub at: usize,
    /// Its value is printed.
    pub shown: bool,
}

/// Kinds of statements.
#[derive(Clone, Debug)]
pub enum Action {
    /// An expression.
    Evaluate(Expr),
    /// An assignment, with the operator of `+=` and similar.
    Assign(Vec<Target>, Expr, Option<&'static str>),
    /// Conditions with their blocks, and the `else` block.
    If(Vec<(Expr, Vec<Statement>)>, Vec<Statement>),
    /// A `while` loop.
    While(Expr, Vec<Statement>),
    /// A `do … until` loop.
    Until(Vec<Statement>, Expr),
    /// A loop over columns.
    For(Target, Expr, Vec<Statement>),
    /// `break`.
    Break,
    /// `continue`.
    Continue,
    /// `return`.
    Return,
    /// A command with words as arguments, such as `format long`.
    Command(String, Vec<String>),
}

/// A function of the program.
#[derive(Debug)]
pub struct Function {
    /// Name.
    pub name: String,
    /// Parameters.
    pub parameters: Vec<String>,
    /// Results.
    pub results: Vec<String>,
    /// Body.
    pub body: Vec<Statement>,
    /// The source text.
    pub source: Rc<Source>,
    /// Byte offset.
    pub at: usize,
}

/// A parsed text.
#[derive(Debug)]
pub struct Program {
    /// Statements outside functions.
    pub body: Vec<Statement>,
    /// Functions.
    pub functions: Vec<Rc<Function>>,
}
