//! Prints values, with the names of their variables.

use crate::display::{self, Shown};
use crate::evaluate::Interpreter;
use crate::operators::matrix;
use crate::source::Outcome;
use crate::value::{Closure, Value};

impl Interpreter {
    pub(crate) fn show_variable(&mut self, name: &str) -> Outcome<()> {
        let value = self.variable(name).cloned();
        value.map_or(Ok(()), |value| self.show(name, &value))
    }

    pub(crate) fn show(&mut self, name: &str, value: &Value) -> Outcome<()> {
        let text = match value {
            Value::Text(text) => format!("{name} = {text}\n"),
            Value::Function(function) => format!("{name} = {}\n", function_text(function)),
            other => self.with_shown(other, |shown| display::named(name, shown))?,
        };
        self.print(&text)
    }

    /// Prints a value without its name.
    pub(crate) fn display(&mut self, value: &Value) -> Outcome<()> {
        let text = match value {
            Value::Text(text) => format!("{text}\n"),
            Value::Function(function) => format!("{}\n", function_text(function)),
            other => self.with_shown(other, display::plain)?,
        };
        self.print(&text)
    }

    fn with_shown(&self, value: &Value, print: impl FnOnce(&Shown<'_>) -> String) -> Outcome<String> {
        let (rows, cols) = value.size();
        let range = matches!(value, Value::Matrix(matrix) if matrix.range);
        let values = match value {
            Value::Number(value) => vec![*value],
            other => self.device.download(&matrix(&self.device, other)?)?,
        };
        Ok(print(&Shown { values: &values, rows, cols, logical: value.is_logical(), range }))
    }
}

fn function_text(function: &Closure) -> String {
    match function {
        Closure::Named(name) => format!("@{name}"),
        Closure::Anonymous(parameters, ..) => format!("@({}) ...", parameters.join(", ")),
    }
}
