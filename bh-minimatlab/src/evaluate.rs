//! Runs programs.

use crate::ast::{Action, Expr, Function, Kind, Statement, Target};
use crate::device::Device;
use crate::index::{self, Subscript};
use crate::operators::{binary, is_true, matrix};
use crate::parser::parse;
use crate::picture::Picture;
use crate::source::{Fault, Outcome, Source};
use crate::value::Value;
use bh_recorder::Recorder;
use std::collections::HashMap;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// A running function, or the program outside of functions.
pub(crate) struct Frame {
    pub(crate) variables: HashMap<String, Value>,
    /// The number of arguments.
    pub(crate) arguments: usize,
    /// The text of the running code.
    pub(crate) source: Rc<Source>,
}

/// How a block ended.
#[derive(PartialEq)]
pub(crate) enum Flow {
    Next,
    Break,
    Continue,
    Return,
}

/// A variable's contents.
#[derive(Clone, Debug)]
pub struct Variable {
    /// `double`, `logical` or `char`.
    pub class: &'static str,
    /// Rows and columns.
    pub size: (usize, usize),
    /// Elements in column order; for a text, its characters.
    pub elements: Vec<f64>,
}

/// An interpreter with its variables and functions.
pub struct Interpreter {
    pub(crate) device: Device,
    pub(crate) out: Box<dyn Write>,
    /// The last plotted picture.
    pub(crate) picture: Option<Picture>,
    /// The time of the last `tic`.
    pub(crate) started: Option<Instant>,
    pub(crate) functions: HashMap<String, Rc<Function>>,
    pub(crate) frames: Vec<Frame>,
    /// The meaning of `end`: size of the indexed value, subscript number and count.
    pub(crate) ends: Vec<(usize, usize, usize, usize)>,
}

impl Interpreter {
    /// An interpreter on a started recorder, which prints to `out`.
    pub fn new(recorder: Arc<Recorder>, out: Box<dyn Write>) -> Interpreter {
        let source = Rc::new(Source { name: String::new(), text: String::new() });
        let frames = vec![Frame { variables: HashMap::new(), arguments: 0, source }];
        Interpreter {
            device: Device::new(recorder),
            out,
            picture: None,
            started: None,
            functions: HashMap::new(),
            frames,
            ends: Vec::new(),
        }
    }

    /// Parses and runs a text. Its variables and functions stay.
    pub fn run(&mut self, name: &str, text: &str) -> Outcome<()> {
        let source = Rc::new(Source { name: name.to_owned(), text: text.to_owned() });
        let program = parse(&source)?;
        for function in program.functions {
            self.functions.insert(function.name.clone(), function);
        }
        self.frames[0].source = source;
        let result = self.block(&program.body).and_then(|_| self.device.look_at_checks());
        if result.is_err() {
            self.frames.truncate(1);
            self.ends.clear();
            self.device.forget_checks();
        }
        let _ = self.out.flush();
        result
    }

    /// Forgets all variables and functions.
    pub fn clear(&mut self) {
        self.frames[0].variables.clear();
        self.functions.clear();
    }

    /// The contents of a variable; `None` if it is not set, or a function.
    pub fn variable_of(&self, name: &str) -> Option<Outcome<Variable>> {
        let value = self.frames[0].variables.get(name)?;
        let class = match value {
            Value::Function(_) => return None,
            Value::Text(_) => "char",
            other if other.is_logical() => "logical",
            _ => "double",
        };
        let elements = matrix(&self.device, value).and_then(|matrix| self.device.download(&matrix));
        Some(elements.map(|elements| Variable { class, size: value.size(), elements }))
    }

    /// Sets a variable to a number.
    pub fn set_number(&mut self, name: &str, number: f64) {
        self.frames[0].variables.insert(name.to_owned(), Value::Number(number));
    }

    pub(crate) fn source(&self) -> Rc<Source> {
        self.frames[self.frames.len() - 1].source.clone()
    }

    pub(crate) fn variables(&mut self) -> &mut HashMap<String, Value> {
        let last = self.frames.len() - 1;
        &mut self.frames[last].variables
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Value> {
        self.frames[self.frames.len() - 1].variables.get(name)
    }

    pub(crate) fn has_function(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    pub(crate) fn argument_count(&self) -> usize {
        self.frames[self.frames.len() - 1].arguments
    }

    pub(crate) fn print(&mut self, text: &str) -> Outcome<()> {
        self.out.write_all(text.as_bytes()).map_err(|error| Fault::new(format!("cannot print: {error}")))
    }

    pub(crate) fn placed<T>(&self, outcome: Outcome<T>, at: usize) -> Outcome<T> {
        outcome.map_err(|fault| fault.or_at(&self.source(), at))
    }

    pub(crate) fn block(&mut self, statements: &[Statement]) -> Outcome<Flow> {
        for statement in statements {
            let source = self.source();
            self.device.set_place(&source, statement.at);
            let flow = self.statement(statement);
            let flow = self.placed(flow, statement.at)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &Statement) -> Outcome<Flow> {
        match &statement.action {
            Action::Evaluate(expression) => {
                let name = match &expression.kind {
                    Kind::Name(name) if self.variable(name).is_some() => name.clone(),
                    _ => "ans".to_owned(),
                };
                if let Some(value) = self.several(expression, 0)?.into_iter().next() {
                    if statement.shown {
                        self.show(&name, &value)?;
                    }
                    if name == "ans" {
                        self.variables().insert(name, value);
                    }
                }
            }
            Action::Assign(targets, right, operator) => self.assignment(targets, right, *operator, statement.shown)?,
            Action::If(branches, otherwise) => {
                for (condition, body) in branches {
                    if self.condition(condition)? {
                        return self.block(body);
                    }
                }
                return self.block(otherwise);
            }
            Action::While(condition, body) => {
                while self.condition(condition)? {
                    match self.block(body)? {
                        Flow::Break => break,
                        Flow::Return => return Ok(Flow::Return),
                        _ => {}
                    }
                }
            }
            Action::Until(body, condition) => loop {
                match self.block(body)? {
                    Flow::Break => break,
                    Flow::Return => return Ok(Flow::Return),
                    _ => {}
                }
                if self.condition(condition)? {
                    break;
                }
            },
            Action::For(target, over, body) => return self.counted(target, over, body),
            Action::Break => return Ok(Flow::Break),
            Action::Continue => return Ok(Flow::Continue),
            Action::Return => return Ok(Flow::Return),
            Action::Command(name, words) => match name.as_str() {
                "clear" | "clearvars" => words.iter().for_each(|word| {
                    if word == "all" { self.variables().clear() } else { drop(self.variables().remove(word)) }
                }),
                "format" if words.iter().any(|word| word != "short") => {
                    return Err(Fault::new("only the short format is supported"));
                }
                _ => {}
            },
        }
        Ok(Flow::Next)
    }

    fn counted(&mut self, target: &Target, over: &Expr, body: &[Statement]) -> Outcome<Flow> {
        let name = target.name.clone().unwrap_or_default();
        let (range, value) = match self.range_parts(over)? {
            Some(range) => (Some(range), None),
            None => (None, Some(self.expression(over)?)),
        };
        let count = match (&range, &value) {
            (Some((_, _, count)), _) => *count,
            (_, Some(value)) if value.size().0 == 0 => 0,
            (_, Some(value)) => value.size().1,
            _ => 0,
        };
        let row = match &value {
            Some(Value::Matrix(matrix)) if matrix.rows == 1 => Some((self.device.download(matrix)?, matrix.logical)),
            _ => None,
        };
        if count == 0 {
            let none = match &value {
                Some(value) => value.clone(),
                None => Value::Matrix(self.device.full(0.0, 1, 0)?),
            };
            self.variables().insert(name.clone(), none);
        }
        for number in 0..count {
            let element = match (&range, &row, &value) {
                (Some((first, step, _)), ..) => Value::Number(first + step * number as f64),
                (_, Some((row, true)), _) => Value::Truth(row[number] != 0.0),
                (_, Some((row, false)), _) => Value::Number(row[number]),
                (_, _, Some(value)) => {
                    let column = Subscript::Value(Value::Number(number as f64 + 1.0));
                    index::read(&self.device, value, &[Subscript::All, column])?
                }
                _ => Value::Number(0.0),
            };
            self.variables().insert(name.clone(), element);
            match self.block(body)? {
                Flow::Break => break,
                Flow::Return => return Ok(Flow::Return),
                _ => {}
            }
        }
        Ok(Flow::Next)
    }

    fn assignment(
        &mut self,
        targets: &[Target],
        right: &Expr,
        operator: Option<&'static str>,
        shown: bool,
    ) -> Outcome<()> {
        let deletes = matches!(&right.kind, Kind::Matrix(rows) if rows.is_empty()) && operator.is_none();
        if let ([Target { name: Some(name), index: Some(subscripts), at }], true) = (targets, deletes) {
            let mut value = self.variable(name).cloned().ok_or_else(|| Fault::new(format!("'{name}' undefined")))?;
            let subscripts = self.subscripts(&value, subscripts)?;
            let done = index::delete(&self.device, &mut value, &subscripts);
            self.placed(done, *at)?;
            self.variables().insert(name.clone(), value);
            return if shown { self.show_variable(name) } else { Ok(()) };
        }
        let values = if let ([target], Some(operator)) = (targets, operator) {
            let right_value = self.expression(right)?;
            let name = target.name.clone().unwrap_or_default();
            let kind = match &target.index {
                Some(index) => Kind::Index(Box::new(Expr { kind: Kind::Name(name), at: target.at }), index.clone()),
                None => Kind::Name(name),
            };
            let left = self.expression(&Expr { kind, at: target.at })?;
            let result = binary(&self.device, operator, &left, &right_value);
            vec![self.placed(result, right.at)?]
        } else if targets.len() == 1 {
            vec![self.expression(right)?]
        } else {
            self.several(right, targets.len())?
        };
        let wanted = targets.iter().rposition(|target| target.name.is_some()).map_or(0, |last| last + 1);
        if values.len() < wanted {
            return Err(Fault::new(format!("the call gives {} results, and {wanted} are assigned", values.len())));
        }
        for (target, value) in targets.iter().zip(values) {
            let Some(name) = &target.name else { continue };
            match &target.index {
                None => drop(self.variables().insert(name.clone(), value)),
                Some(subscripts) => self.assign_part(name, subscripts, &value, target.at)?,
            }
            if shown {
                self.show_variable(name)?;
            }
        }
        Ok(())
    }

    fn assign_part(&mut self, name: &str, subscripts: &[Expr], value: &Value, at: usize) -> Outcome<()> {
        let current = match self.variable(name) {
            Some(value) => value.clone(),
            None if value.is_logical() => Value::Matrix(self.device.full_truth(false, 0, 0)?),
            None => Value::Matrix(self.device.full(0.0, 0, 0)?),
        };
        let subscripts = self.subscripts(&current, subscripts)?;
        // The variable releases its value during the update, so that an unshared value changes in place.
        let mut taken = self.variables().remove(name).unwrap_or_else(|| current.clone());
        drop(current);
        let done = index::assign(&self.device, &mut taken, &subscripts, value);
        self.variables().insert(name.to_owned(), taken);
        self.placed(done, at)
    }

    pub(crate) fn condition(&mut self, expression: &Expr) -> Outcome<bool> {
        let value = self.expression(expression)?;
        let truth = is_true(&self.device, &value);
        self.placed(truth, expression.at)
    }
}
