//! Values.

use crate::ast::Expr;
use crate::source::Source;
use bh_recorder::Array;
use std::collections::HashMap;
use std::rc::Rc;

/// A matrix on the recorder. Its array has the shape [columns, rows], so that its C order is the matrix's column order
/// and linear indices need no conversion.
#[derive(Clone)]
pub struct Matrix {
    /// The elements: f64, or bool for a logical matrix.
    pub array: Rc<Array>,
    /// Shared by all users of the base; a single user may overwrite it.
    pub base: Rc<()>,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Its elements are booleans.
    pub logical: bool,
    /// Created by a range; printed one character wider unless all elements are whole numbers.
    pub range: bool,
}

impl Matrix {
    /// Elements.
    pub fn len(&self) -> usize {
        self.rows * self.cols
    }

    /// Has it one row or one column?
    pub fn is_vector(&self) -> bool {
        self.rows == 1 || self.cols == 1
    }
}

/// A function value.
pub enum Closure {
    /// A named function.
    Named(String),
    /// An anonymous function: parameters, body, captured variables, and source text.
    Anonymous(Vec<String>, Expr, HashMap<String, Value>, Rc<Source>),
}

/// A value.
#[derive(Clone)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A truth value.
    Truth(bool),
    /// One row of characters.
    Text(Rc<str>),
    /// A matrix.
    Matrix(Matrix),
    /// A function.
    Function(Rc<Closure>),
}

impl Value {
    /// A text.
    pub fn text(text: &str) -> Value {
        Value::Text(Rc::from(text))
    }

    /// Rows and columns.
    pub fn size(&self) -> (usize, usize) {
        match self {
            Value::Matrix(matrix) => (matrix.rows, matrix.cols),
            Value::Text(text) => (usize::from(!text.is_empty()), text.chars().count()),
            _ => (1, 1),
        }
    }

    /// Elements.
    pub fn len(&self) -> usize {
        let (rows, cols) = self.size();
        rows * cols
    }

    /// The kind of the value, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Number(_) => "double",
            Value::Truth(_) => "bool",
            Value::Text(_) => "string",
            Value::Matrix(matrix) if matrix.logical => "bool matrix",
            Value::Matrix(_) => "matrix",
            Value::Function(_) => "function handle",
        }
    }

    /// Are its elements booleans?
    pub fn is_logical(&self) -> bool {
        match self {
            Value::Truth(_) => true,
            Value::Matrix(matrix) => matrix.logical,
            _ => false,
        }
    }
}
