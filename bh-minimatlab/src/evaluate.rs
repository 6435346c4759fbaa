//! Runs programs.

use crate::ast::{Action, Expr, Function, Kind, Statement, Target};
use crate::device::Device;
use crate::display::{self, Shown};
use crate::index::{self, Subscript};
use crate::operators::{binary, matrix, prefix, scalar, transpose};
use crate::parser::parse;
use crate::source::{Fault, Outcome, Source};
use crate::value::{Closure, Value};
use crate::{arrange, library};
use bh_recorder::Recorder;
use std::collections::HashMap;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;

/// Calls inside calls; more is refused instead of exhausting the stack.
const DEEPEST: usize = 100;

struct Frame {
    variables: HashMap<String, Value>,
    results: usize,
    source: Rc<Source>,
}

/// How a block ended.
#[derive(PartialEq)]
enum Flow {
    Next,
    Break,
    Continue,
    Return,
}

/// An interpreter with its variables and functions.
pub struct Interpreter {
    pub(crate) device: Device,
    pub(crate) out: Box<dyn Write>,
    functions: HashMap<String, Rc<Function>>,
    frames: Vec<Frame>,
    /// What `end` stands for: the value that is indexed, which subscript, of how many.
    ends: Vec<(usize, usize, usize, usize)>,
}

impl Interpreter {
    /// An interpreter on a started recorder, which prints to `out`.
    pub fn new(recorder: Arc<Recorder>, out: Box<dyn Write>) -> Interpreter {
        let source = Rc::new(Source { name: String::new(), text: String::new() });
        let frames = vec![Frame { variables: HashMap::new(), results: 0, source }];
        Interpreter { device: Device::new(recorder), out, functions: HashMap::new(), frames, ends: Vec::new() }
    }

    /// Reads and runs a text. Its variables and functions stay.
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

    fn source(&self) -> Rc<Source> {
        self.frames[self.frames.len() - 1].source.clone()
    }

    fn variables(&mut self) -> &mut HashMap<String, Value> {
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
        self.frames[self.frames.len() - 1].results
    }

    pub(crate) fn print(&mut self, text: &str) -> Outcome<()> {
        self.out.write_all(text.as_bytes()).map_err(|error| Fault::new(format!("cannot print: {error}")))
    }

    fn placed<T>(&self, outcome: Outcome<T>, at: usize) -> Outcome<T> {
        outcome.map_err(|fault| fault.or_at(&self.source(), at))
    }

    fn block(&mut self, statements: &[Statement]) -> Outcome<Flow> {
        for statement in statements {
            let source = self.source();
            let line = source.text[..statement.at].bytes().filter(|byte| *byte == b'\n').count() + 1;
            self.device.set_place(&source.name, line as u32);
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
        // The variable gives its value away while it changes, so that one that nobody shares is changed in place.
        let mut taken = self.variables().remove(name).unwrap_or_else(|| current.clone());
        drop(current);
        let done = index::assign(&self.device, &mut taken, &subscripts, value);
        self.variables().insert(name.to_owned(), taken);
        self.placed(done, at)
    }

    fn condition(&mut self, expression: &Expr) -> Outcome<bool> {
        let value = self.expression(expression)?;
        let truth = library::is_true(&self.device, &value);
        self.placed(truth, expression.at)
    }

    /// One value.
    pub(crate) fn expression(&mut self, expression: &Expr) -> Outcome<Value> {
        let first = self.several(expression, 1)?.into_iter().next();
        self.placed(first.ok_or_else(|| Fault::new("this gives no value")), expression.at)
    }

    /// First, step and count of a range that is written as one.
    fn range_parts(&mut self, expression: &Expr) -> Outcome<Option<(f64, f64, usize)>> {
        let Kind::Range(first, step, last) = &expression.kind else { return Ok(None) };
        let mut part = |expression: &Expr| -> Outcome<f64> {
            let value = self.expression(expression)?;
            let number = scalar(&self.device, &value)
                .and_then(|number| number.ok_or_else(|| Fault::new("a range is between single numbers")));
            self.placed(number, expression.at)
        };
        let first = part(first)?;
        let step = step.as_deref().map_or(Ok(1.0), &mut part)?;
        let last = part(last)?;
        let steps = (last - first) / step;
        if step == 0.0 || !(steps >= 0.0) {
            let nan = first.is_nan() || last.is_nan() || step.is_nan();
            return if nan {
                Err(Fault::at("a range has NaN for a limit", &self.source(), expression.at))
            } else {
                Ok(Some((first, step, 0)))
            };
        }
        // As far as rounding of the quotient goes, the last one belongs to the range.
        let count = (steps * (1.0 + f64::EPSILON)).floor() + 1.0;
        if count > 1e15 {
            return Err(Fault::at("out of memory or dimension too large", &self.source(), expression.at));
        }
        Ok(Some((first, step, count as usize)))
    }

    fn subscripts(&mut self, value: &Value, expressions: &[Expr]) -> Outcome<Vec<Subscript>> {
        let (rows, cols) = value.size();
        let mut subscripts = Vec::new();
        for (number, expression) in expressions.iter().enumerate() {
            self.ends.push((rows, cols, number, expressions.len()));
            let subscript = match &expression.kind {
                Kind::All => Ok(Subscript::All),
                Kind::Range(..) => self.range_parts(expression).map(|range| match range {
                    Some((first, step, count)) => Subscript::Range(first, step, count),
                    None => Subscript::All,
                }),
                _ => self.expression(expression).map(Subscript::Value),
            };
            self.ends.pop();
            subscripts.push(match subscript? {
                Subscript::Value(Value::Matrix(one)) if one.len() == 1 && !one.logical => {
                    Subscript::Value(Value::Number(self.device.download(&one)?[0]))
                }
                other => other,
            });
        }
        Ok(subscripts)
    }

    /// The values of an expression of which so many are wanted.
    fn several(&mut self, expression: &Expr, wanted: usize) -> Outcome<Vec<Value>> {
        let at = expression.at;
        let value = match &expression.kind {
            Kind::Number(value) => Value::Number(*value),
            Kind::Text(text) => Value::text(text),
            Kind::All => Value::text(":"),
            Kind::Name(name) => match self.variable(name) {
                Some(value) => value.clone(),
                None => {
                    let values = self.call(name, Vec::new(), wanted);
                    return self.placed(values, at);
                }
            },
            Kind::Last => match self.ends.last() {
                Some((rows, cols, _, 1)) => Value::Number((rows * cols) as f64),
                Some((rows, _, 0, _)) => Value::Number(*rows as f64),
                Some((_, cols, 1, _)) => Value::Number(*cols as f64),
                Some(_) => Value::Number(1.0),
                None => return Err(Fault::at("'end' stands only in subscripts", &self.source(), at)),
            },
            Kind::Range(..) => {
                let (first, step, count) = self.range_parts(expression)?.unwrap_or((0.0, 1.0, 0));
                let range = self.device.range(first, step, count).map(Value::Matrix);
                self.placed(range, at)?
            }
            Kind::Prefix(operator, operand) => {
                let operand = self.expression(operand)?;
                self.placed(prefix(&self.device, operator, &operand), at)?
            }
            Kind::Transpose(operand) => {
                let operand = self.expression(operand)?;
                self.placed(transpose(&self.device, &operand), at)?
            }
            Kind::Binary(operator, a, b) => {
                let (a, b) = (self.expression(a)?, self.expression(b)?);
                self.placed(binary(&self.device, operator, &a, &b), at)?
            }
            Kind::Short(operator, a, b) => {
                let first = self.condition(a)?;
                Value::Truth(if (*operator == "&&") == first { self.condition(b)? } else { first })
            }
            Kind::Matrix(rows) => {
                let mut values = Vec::new();
                for row in rows {
                    values.push(row.iter().map(|element| self.expression(element)).collect::<Outcome<Vec<_>>>()?);
                }
                let joined = arrange::join(&self.device, &values);
                self.placed(joined, at)?
            }
            Kind::Handle(name) => Value::Function(Rc::new(Closure::Named(name.clone()))),
            Kind::Anonymous(parameters, body) => {
                let seen = self.frames[self.frames.len() - 1].variables.clone();
                let closure = Closure::Anonymous(parameters.clone(), (**body).clone(), seen, self.source());
                Value::Function(Rc::new(closure))
            }
            Kind::Index(inner, expressions) => return self.indexed(inner, expressions, wanted, at),
        };
        Ok(vec![value])
    }

    fn indexed(&mut self, inner: &Expr, expressions: &[Expr], wanted: usize, at: usize) -> Outcome<Vec<Value>> {
        let value = match &inner.kind {
            Kind::Name(name) => match self.variable(name) {
                Some(value) => value.clone(),
                None => {
                    let ends = std::mem::take(&mut self.ends);
                    let arguments: Outcome<Vec<Value>> =
                        expressions.iter().map(|argument| self.expression(argument)).collect();
                    self.ends = ends;
                    let values = self.call(name, arguments?, wanted);
                    return self.placed(values, at);
                }
            },
            _ => self.expression(inner)?,
        };
        if let Value::Function(function) = &value {
            let arguments = expressions.iter().map(|argument| self.expression(argument)).collect::<Outcome<_>>()?;
            let values = self.call_value(function, arguments, wanted);
            return self.placed(values, at);
        }
        let subscripts = self.subscripts(&value, expressions)?;
        let part = index::read(&self.device, &value, &subscripts);
        Ok(vec![self.placed(part, at)?])
    }

    /// Calls a function by name.
    pub(crate) fn call(&mut self, name: &str, arguments: Vec<Value>, wanted: usize) -> Outcome<Vec<Value>> {
        let Some(function) = self.functions.get(name).cloned() else {
            return library::call(self, name, arguments, wanted);
        };
        if arguments.len() > function.parameters.len() {
            return Err(Fault::new(format!("{name}: function called with too many inputs")));
        }
        if wanted > function.results.len().max(1) {
            return Err(Fault::new(format!("{name}: function called with too many outputs")));
        }
        let results = arguments.len();
        let variables = function.parameters.iter().cloned().zip(arguments).collect();
        self.enter(Frame { variables, results, source: function.source.clone() })?;
        let flow = self.block(&function.body);
        let frame = self.frames.pop();
        flow?;
        let mut variables = frame.map(|frame| frame.variables).unwrap_or_default();
        let mut values = Vec::new();
        for (number, result) in function.results.iter().enumerate().take(wanted.max(1)) {
            match variables.remove(result) {
                Some(value) => values.push(value),
                None if number < wanted => {
                    return Err(Fault::at(
                        format!("{name}: the result '{result}' is not set"),
                        &function.source,
                        function.at,
                    ));
                }
                None => break,
            }
        }
        Ok(values)
    }

    fn enter(&mut self, frame: Frame) -> Outcome<()> {
        if self.frames.len() >= DEEPEST {
            return Err(Fault::new("max_recursion_depth exceeded"));
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Calls a function that is a value.
    pub(crate) fn call_value(
        &mut self,
        function: &Closure,
        arguments: Vec<Value>,
        wanted: usize,
    ) -> Outcome<Vec<Value>> {
        match function {
            Closure::Named(name) => self.call(name, arguments, wanted),
            Closure::Anonymous(parameters, body, seen, source) => {
                if arguments.len() > parameters.len() {
                    return Err(Fault::new("@<anonymous>: function called with too many inputs"));
                }
                let mut variables = seen.clone();
                variables.extend(parameters.iter().cloned().zip(arguments));
                self.enter(Frame { variables, results: 0, source: source.clone() })?;
                let values = self.several(body, wanted);
                self.frames.pop();
                values
            }
        }
    }

    fn show_variable(&mut self, name: &str) -> Outcome<()> {
        let value = self.variable(name).cloned();
        value.map_or(Ok(()), |value| self.show(name, &value))
    }

    fn show(&mut self, name: &str, value: &Value) -> Outcome<()> {
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
