//! Parses expressions, by precedence.

use crate::ast::{Expr, Kind};
use crate::lexer::Token;
use crate::parser::Parser;
use crate::source::Outcome;

/// Binary operators by precedence, loosest first; ranges are between comparisons and sums.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["&"],
    &["<", "<=", "==", "~=", "!=", ">", ">="],
    &[":"],
    &["+", "-"],
    &["*", "/", "\\", ".*", "./", ".\\"],
];

impl Parser {
    pub(crate) fn expression(&mut self) -> Outcome<Expr> {
        self.nested(|parser| parser.level(0))
    }

    fn level(&mut self, level: usize) -> Outcome<Expr> {
        let Some(operators) = LEVELS.get(level) else { return self.prefix() };
        if operators == &[":"] {
            return self.range(level);
        }
        let mut left = self.level(level + 1)?;
        while let Token::Symbol(symbol) = *self.peek() {
            if !operators.contains(&symbol) {
                break;
            }
            let at = self.offset();
            self.next();
            let right = self.level(level + 1)?;
            let (left_side, right) = (Box::new(left), Box::new(right));
            let kind = match symbol {
                "&&" | "||" => Kind::Short(symbol, left_side, right),
                "!=" => Kind::Binary("~=", left_side, right),
                _ => Kind::Binary(symbol, left_side, right),
            };
            left = Expr { kind, at };
        }
        Ok(left)
    }

    fn range(&mut self, level: usize) -> Outcome<Expr> {
        let first = self.level(level + 1)?;
        let at = self.offset();
        if !self.is(":") {
            return Ok(first);
        }
        self.next();
        let second = self.level(level + 1)?;
        let (step, last) = match self.take(":") {
            true => (Some(Box::new(second)), self.level(level + 1)?),
            false => (None, second),
        };
        if self.is(":") {
            return Err(self.fault("a range has at most first, step and last"));
        }
        Ok(Expr { kind: Kind::Range(Box::new(first), step, Box::new(last)), at })
    }

    fn prefix(&mut self) -> Outcome<Expr> {
        let at = self.offset();
        let operator = match *self.peek() {
            Token::Symbol(symbol @ ("-" | "+" | "~")) => symbol,
            Token::Symbol("!") => "~",
            Token::Symbol("++") => "+",
            // Two consecutive signs.
            Token::Symbol("--") => "--",
            _ => return self.power(),
        };
        self.next();
        let operand = self.nested(Parser::prefix)?;
        let negative = |operand| Expr { kind: Kind::Prefix("-", Box::new(operand)), at };
        Ok(match operator {
            "--" => negative(negative(operand)),
            _ => Expr { kind: Kind::Prefix(operator, Box::new(operand)), at },
        })
    }

    /// Powers are left-associative and bind tighter than preceding signs. Exponents may have signs.
    fn power(&mut self) -> Outcome<Expr> {
        let mut left = self.postfix()?;
        while let Token::Symbol(symbol @ ("^" | ".^")) = *self.peek() {
            let at = self.offset();
            self.next();
            let right = self.exponent()?;
            left = Expr { kind: Kind::Binary(symbol, Box::new(left), Box::new(right)), at };
        }
        Ok(left)
    }

    fn exponent(&mut self) -> Outcome<Expr> {
        let at = self.offset();
        match *self.peek() {
            Token::Symbol(symbol @ ("-" | "+" | "~")) => {
                self.next();
                let operand = self.nested(Parser::exponent)?;
                Ok(Expr { kind: Kind::Prefix(symbol, Box::new(operand)), at })
            }
            _ => self.postfix(),
        }
    }

    fn postfix(&mut self) -> Outcome<Expr> {
        let mut value = self.primary()?;
        loop {
            let at = self.offset();
            if self.is("(") {
                self.next();
                let arguments = self.arguments(")")?;
                let place = value.at;
                value = Expr { kind: Kind::Index(Box::new(value), arguments), at: place };
            } else if self.is("{") && !self.spaced() {
                return Err(self.fault("cells are not supported"));
            } else if matches!(self.peek(), Token::Symbol("'" | ".'")) {
                self.next();
                value = Expr { kind: Kind::Transpose(Box::new(value)), at };
            } else if self.is(".") {
                return Err(self.fault("structures are not supported"));
            } else {
                return Ok(value);
            }
        }
    }

    fn arguments(&mut self, close: &str) -> Outcome<Vec<Expr>> {
        let mut arguments = Vec::new();
        while !self.take(close) {
            let at = self.offset();
            if self.take(":") {
                arguments.push(Expr { kind: Kind::All, at });
            } else {
                arguments.push(self.expression()?);
            }
            if !self.take(",") && !self.is(close) {
                return Err(self.unexpected(&format!("',' or '{close}'")));
            }
        }
        Ok(arguments)
    }

    fn primary(&mut self) -> Outcome<Expr> {
        let at = self.offset();
        let kind = match self.peek().clone() {
            Token::Number(value) => Kind::Number(value),
            Token::Text(text) => Kind::Text(text),
            Token::Name(name) => Kind::Name(name),
            Token::Last => Kind::Last,
            Token::Symbol("(") => {
                self.next();
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Token::Symbol("[") => {
                self.next();
                return Ok(Expr { kind: Kind::Matrix(self.rows()?), at });
            }
            Token::Symbol("{") => return Err(self.fault("cells are not supported")),
            Token::Symbol("@") => {
                self.next();
                return self.function_value(at);
            }
            _ => return Err(self.unexpected("a value")),
        };
        self.next();
        Ok(Expr { kind, at })
    }

    fn rows(&mut self) -> Outcome<Vec<Vec<Expr>>> {
        let mut rows = vec![Vec::new()];
        loop {
            if self.take("]") {
                rows.retain(|row: &Vec<Expr>| !row.is_empty());
                return Ok(rows);
            }
            if self.take(";") {
                rows.push(Vec::new());
                continue;
            }
            let element = self.expression()?;
            if let Some(row) = rows.last_mut() {
                row.push(element);
            }
            if !self.take(",") && !self.is(";") && !self.is("]") {
                return Err(self.unexpected("',', ';' or ']'"));
            }
        }
    }

    fn function_value(&mut self, at: usize) -> Outcome<Expr> {
        if !self.take("(") {
            return Ok(Expr { kind: Kind::Handle(self.name("a function's name")?), at });
        }
        let mut parameters = Vec::new();
        while !self.take(")") {
            match self.take("~") {
                true => parameters.push(String::new()),
                false => parameters.push(self.name("a parameter")?),
            }
            if !self.take(",") && !self.is(")") {
                return Err(self.unexpected("',' or ')'"));
            }
        }
        let body = self.expression()?;
        Ok(Expr { kind: Kind::Anonymous(parameters, Box::new(body)), at })
    }
}
