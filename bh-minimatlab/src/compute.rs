//! Evaluates expressions and calls functions.

use crate::ast::{Expr, Kind};
use crate::evaluate::{Frame, Interpreter};
use crate::index::{self, Subscript};
use crate::operators::{binary, prefix, scalar, transpose};
use crate::source::{Fault, Outcome};
use crate::value::{Closure, Value};
use crate::{arrange, library};
use std::rc::Rc;

/// Nested calls, at most, so that the stack is not exhausted.
const DEEPEST: usize = 100;

impl Interpreter {
    /// One value.
    pub(crate) fn expression(&mut self, expression: &Expr) -> Outcome<Value> {
        let first = self.several(expression, 1)?.into_iter().next();
        self.placed(first.ok_or_else(|| Fault::new("this gives no value")), expression.at)
    }

    /// First, step and count, if the expression is a range.
    pub(crate) fn range_parts(&mut self, expression: &Expr) -> Outcome<Option<(f64, f64, usize)>> {
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
        if step == 0.0 || steps.is_nan() || steps < 0.0 {
            let nan = first.is_nan() || last.is_nan() || step.is_nan();
            return if nan {
                Err(Fault::at("a range has NaN for a limit", &self.source(), expression.at))
            } else {
                Ok(Some((first, step, 0)))
            };
        }
        // A last element that is only missed by rounding belongs to the range.
        let count = (steps * (1.0 + f64::EPSILON)).floor() + 1.0;
        if count > 1e15 {
            return Err(Fault::at("out of memory or dimension too large", &self.source(), expression.at));
        }
        Ok(Some((first, step, count as usize)))
    }

    pub(crate) fn subscripts(&mut self, value: &Value, expressions: &[Expr]) -> Outcome<Vec<Subscript>> {
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

    /// The values of an expression; the caller uses `wanted` of them.
    pub(crate) fn several(&mut self, expression: &Expr, wanted: usize) -> Outcome<Vec<Value>> {
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
                    if wanted <= 1
                        && let Some(value) = self.folded(name, expressions, at)?
                    {
                        return Ok(vec![value]);
                    }
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

    /// `sum(sum(x))` and `sum(x(:))` as one reduction of all elements.
    fn folded(&mut self, name: &str, expressions: &[Expr], at: usize) -> Outcome<Option<Value>> {
        let [Expr { kind: Kind::Index(inner, within), .. }] = expressions else { return Ok(None) };
        let [operand] = within.as_slice() else { return Ok(None) };
        if !library::is_fold(name) || self.has_function(name) {
            return Ok(None);
        }
        let (again, of) = match (&inner.kind, &operand.kind) {
            (Kind::Name(same), _) if same == name => (true, operand),
            (Kind::Name(variable), Kind::All) if self.variable(variable).is_none() => return Ok(None),
            (_, Kind::All) => (false, &**inner),
            _ => return Ok(None),
        };
        let ends = std::mem::take(&mut self.ends);
        let value = self.expression(of);
        self.ends = ends;
        let value = value?;
        let folded = library::whole(&self.device, name, &value);
        if let Some(folded) = self.placed(folded, at)? {
            return Ok(Some(folded));
        }
        let part = match again {
            true => self.call(name, vec![value], 1).map(|mut values| values.remove(0)),
            false => index::read(&self.device, &value, &[Subscript::All]),
        };
        let part = self.placed(part, expressions[0].at)?;
        let values = self.call(name, vec![part], 1);
        Ok(self.placed(values, at)?.into_iter().next())
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
        let count = arguments.len();
        let variables = function.parameters.iter().cloned().zip(arguments).collect();
        self.enter(Frame { variables, arguments: count, source: function.source.clone() })?;
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

    /// Calls a function value.
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
                let count = arguments.len();
                let mut variables = seen.clone();
                variables.extend(parameters.iter().cloned().zip(arguments));
                self.enter(Frame { variables, arguments: count, source: source.clone() })?;
                let values = self.several(body, wanted);
                self.frames.pop();
                values
            }
        }
    }
}
