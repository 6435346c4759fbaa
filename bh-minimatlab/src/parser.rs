//! Parses statements.

use crate::ast::{Action, Expr, Function, Kind, Program, Statement, Target};
use crate::lexer::{Placed, Token, tokens};
use crate::source::{Fault, Outcome, Source};
use std::rc::Rc;

/// Nesting of expressions and blocks, at most, so that the stack is not exhausted.
const DEEPEST: usize = 100;

/// Words that are commands if a word follows.
const COMMANDS: &[&str] = &["format", "close", "clear", "clc", "hold", "more", "figure", "warning", "pkg", "clearvars"];

pub(crate) struct Parser {
    pub(crate) source: Rc<Source>,
    tokens: Vec<Placed>,
    position: usize,
    depth: usize,
    functions: Vec<Rc<Function>>,
}

/// Parses a program.
pub fn parse(source: &Rc<Source>) -> Outcome<Program> {
    let mut parser =
        Parser { source: source.clone(), tokens: tokens(source)?, position: 0, depth: 0, functions: Vec::new() };
    let body = parser.block(&[])?;
    if *parser.peek() != Token::Finish {
        return Err(parser.unexpected("a statement"));
    }
    Ok(Program { body, functions: parser.functions })
}

fn symbol_text(token: &Token) -> String {
    match token {
        Token::Number(value) => format!("the number {value}"),
        Token::Text(_) => "a text".to_owned(),
        Token::Name(name) => format!("'{name}'"),
        Token::Keyword(word) => format!("'{word}'"),
        Token::Last => "'end'".to_owned(),
        Token::Symbol("\n") => "the end of the line".to_owned(),
        Token::Symbol(symbol) => format!("'{symbol}'"),
        Token::Finish => "the end of the program".to_owned(),
    }
}

impl Parser {
    pub(crate) fn peek(&self) -> &Token {
        &self.tokens[self.position.min(self.tokens.len() - 1)].token
    }

    pub(crate) fn offset(&self) -> usize {
        self.tokens[self.position.min(self.tokens.len() - 1)].offset
    }

    pub(crate) fn spaced(&self) -> bool {
        self.tokens[self.position.min(self.tokens.len() - 1)].spaced
    }

    fn peek_at(&self, ahead: usize) -> &Token {
        &self.tokens[(self.position + ahead).min(self.tokens.len() - 1)].token
    }

    pub(crate) fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.position += 1;
        token
    }

    pub(crate) fn is(&self, symbol: &str) -> bool {
        matches!(self.peek(), Token::Symbol(found) if *found == symbol)
    }

    pub(crate) fn take(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        self.position += usize::from(found);
        found
    }

    pub(crate) fn expect(&mut self, symbol: &str) -> Outcome<()> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected(&format!("'{symbol}'"))) }
    }

    pub(crate) fn fault(&self, text: impl Into<String>) -> Fault {
        Fault::at(text, &self.source, self.offset())
    }

    pub(crate) fn unexpected(&self, wanted: &str) -> Fault {
        self.fault(format!("expected {wanted}, found {}", symbol_text(self.peek())))
    }

    pub(crate) fn nested<T>(&mut self, read: impl FnOnce(&mut Parser) -> Outcome<T>) -> Outcome<T> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.fault("this is nested too deeply"));
        }
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn word(&self) -> Option<&'static str> {
        match self.peek() {
            Token::Keyword(word) => Some(word),
            _ => None,
        }
    }

    pub(crate) fn name(&mut self, wanted: &str) -> Outcome<String> {
        match self.peek().clone() {
            Token::Name(name) => {
                self.position += 1;
                Ok(name)
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    /// Statements up to one of these words, which is not consumed, or to the end of the text.
    fn block(&mut self, ends: &[&str]) -> Outcome<Vec<Statement>> {
        let mut statements = Vec::new();
        loop {
            while self.take("\n") || self.take(";") || self.take(",") {}
            match self.peek() {
                Token::Finish => return Ok(statements),
                Token::Keyword(word) if ends.contains(word) => return Ok(statements),
                Token::Keyword("function") if self.depth == 0 => self.function()?,
                _ => {
                    let statement = self.nested(Parser::statement)?;
                    statements.push(statement);
                }
            }
        }
    }

    fn close(&mut self, what: &str, at: usize, ends: &[&str]) -> Outcome<()> {
        match self.word() {
            Some(word) if ends.contains(&word) => {
                self.position += 1;
                Ok(())
            }
            _ => Err(Fault::at(format!("this '{what}' has no 'end'"), &self.source, at)),
        }
    }

    fn statement(&mut self) -> Outcome<Statement> {
        let at = self.offset();
        let action = match self.word() {
            Some("if") => self.conditional(at)?,
            Some("while") => {
                self.position += 1;
                let condition = self.expression()?;
                let body = self.block(&["end", "endwhile"])?;
                self.close("while", at, &["end", "endwhile"])?;
                Action::While(condition, body)
            }
            Some("do") => {
                self.position += 1;
                let body = self.block(&["until"])?;
                self.close("do", at, &["until"])?;
                Action::Until(body, self.expression()?)
            }
            Some("for") => self.counted(at)?,
            Some(word @ ("break" | "continue" | "return")) => {
                self.position += 1;
                match word {
                    "break" => Action::Break,
                    "continue" => Action::Continue,
                    _ => Action::Return,
                }
            }
            Some(word @ ("switch" | "try" | "global" | "persistent" | "unwind_protect" | "classdef" | "parfor")) => {
                return Err(self.fault(format!("'{word}' is not supported")));
            }
            Some("function") => return Err(self.fault("a function cannot stand inside a block")),
            Some(word) => return Err(self.fault(format!("'{word}' belongs to no block"))),
            None => self.simple()?,
        };
        let shown = self.finish_statement(&action)?;
        Ok(Statement { action, at, shown })
    }

    /// Consumes the end of a statement; true if its value is printed.
    fn finish_statement(&mut self, action: &Action) -> Outcome<bool> {
        if self.take(";") {
            return Ok(false);
        }
        if self.take("\n") || self.take(",") || *self.peek() == Token::Finish {
            return Ok(true);
        }
        match action {
            Action::Evaluate(_) | Action::Assign(..) => Err(self.unexpected("an operator or the end of the statement")),
            _ => Ok(false),
        }
    }

    fn conditional(&mut self, at: usize) -> Outcome<Action> {
        const ENDS: &[&str] = &["elseif", "else", "end", "endif"];
        let mut branches = Vec::new();
        loop {
            self.position += 1;
            let condition = self.expression()?;
            branches.push((condition, self.block(ENDS)?));
            if self.word() != Some("elseif") {
                break;
            }
        }
        let mut otherwise = Vec::new();
        if self.word() == Some("else") {
            self.position += 1;
            otherwise = self.block(&["end", "endif"])?;
        }
        self.close("if", at, &["end", "endif"])?;
        Ok(Action::If(branches, otherwise))
    }

    fn counted(&mut self, at: usize) -> Outcome<Action> {
        self.position += 1;
        let enclosed = self.take("(");
        let place = self.offset();
        let name = self.name("the loop's variable")?;
        self.expect("=")?;
        let over = self.expression()?;
        if enclosed {
            self.expect(")")?;
        }
        let body = self.block(&["end", "endfor"])?;
        self.close("for", at, &["end", "endfor"])?;
        Ok(Action::For(Target { name: Some(name), index: None, at: place }, over, body))
    }

    fn simple(&mut self) -> Outcome<Action> {
        if let (Token::Name(name), Token::Name(_)) = (self.peek(), self.peek_at(1))
            && COMMANDS.contains(&name.as_str())
        {
            let name = name.clone();
            self.position += 1;
            let mut words = Vec::new();
            while let Token::Name(word) = self.peek() {
                words.push(word.clone());
                self.position += 1;
            }
            return Ok(Action::Command(name, words));
        }
        if self.is("[")
            && let Some(targets) = self.several_targets()?
        {
            return Ok(Action::Assign(targets, self.expression()?, None));
        }
        let left = self.expression()?;
        let operator = match self.peek() {
            Token::Symbol("=") => None,
            Token::Symbol("+=") => Some("+"),
            Token::Symbol("-=") => Some("-"),
            Token::Symbol("*=") => Some("*"),
            Token::Symbol("/=") => Some("/"),
            Token::Symbol("^=") => Some("^"),
            Token::Symbol(step @ ("++" | "--")) => {
                let operator = if *step == "++" { "+" } else { "-" };
                let target = self.target(left)?;
                let at = self.offset();
                self.position += 1;
                return Ok(Action::Assign(vec![target], Expr { kind: Kind::Number(1.0), at }, Some(operator)));
            }
            _ => return Ok(Action::Evaluate(left)),
        };
        let target = self.target(left)?;
        self.position += 1;
        Ok(Action::Assign(vec![target], self.expression()?, operator))
    }

    fn target(&self, left: Expr) -> Outcome<Target> {
        let at = left.at;
        match left.kind {
            Kind::Name(name) => Ok(Target { name: Some(name), index: None, at }),
            Kind::Index(inner, index) => match inner.kind {
                Kind::Name(name) => Ok(Target { name: Some(name), index: Some(index), at: inner.at }),
                _ => Err(Fault::at("this cannot be assigned to", &self.source, at)),
            },
            _ => Err(Fault::at("this cannot be assigned to", &self.source, at)),
        }
    }

    /// The targets of `[a, b] = ...`, if this is one.
    fn several_targets(&mut self) -> Outcome<Option<Vec<Target>>> {
        let begin = self.position;
        let (mut depth, mut ahead) = (0usize, 0);
        loop {
            match self.peek_at(ahead) {
                Token::Symbol("[" | "(" | "{") => depth += 1,
                Token::Symbol("]" | ")" | "}") => depth = depth.saturating_sub(1),
                Token::Finish => return Ok(None),
                _ => {}
            }
            ahead += 1;
            if depth == 0 {
                break;
            }
        }
        if !matches!(self.peek_at(ahead), Token::Symbol("=")) {
            return Ok(None);
        }
        self.position = begin + 1;
        let mut targets = Vec::new();
        while !self.is("]") {
            let at = self.offset();
            if matches!(self.peek(), Token::Symbol("~" | "!")) {
                self.position += 1;
                targets.push(Target { name: None, index: None, at });
            } else {
                let left = self.expression()?;
                targets.push(self.target(left)?);
            }
            if !self.take(",") && !self.is("]") {
                return Err(self.unexpected("',' or ']'"));
            }
        }
        if targets.is_empty() {
            return Err(self.fault("there is nothing to assign to"));
        }
        self.position += 2;
        Ok(Some(targets))
    }

    fn function(&mut self) -> Outcome<()> {
        self.position += 1;
        let at = self.offset();
        let mut results = Vec::new();
        let mut name = String::new();
        if self.take("[") {
            while !self.take("]") {
                results.push(self.name("a result's name")?);
                let _ = self.take(",");
            }
            self.expect("=")?;
        } else {
            name = self.name("a function's name")?;
            if self.take("=") {
                results.push(std::mem::take(&mut name));
            }
        }
        if name.is_empty() {
            name = self.name("a function's name")?;
        }
        let mut parameters = Vec::new();
        if self.take("(") {
            while !self.take(")") {
                if self.take("~") {
                    parameters.push(String::new());
                } else {
                    let at = self.offset();
                    let parameter = self.name("a parameter")?;
                    if parameters.contains(&parameter) {
                        return Err(Fault::at(format!("the parameter '{parameter}' is there twice"), &self.source, at));
                    }
                    parameters.push(parameter);
                }
                if self.is("=") {
                    return Err(self.fault("default values of parameters are not supported"));
                }
                if !self.take(",") && !self.is(")") {
                    return Err(self.unexpected("',' or ')'"));
                }
            }
        }
        let body = self.block(&["end", "endfunction", "function"])?;
        if matches!(self.word(), Some("end" | "endfunction")) {
            self.position += 1;
        }
        let source = self.source.clone();
        self.functions.push(Rc::new(Function { name, parameters, results, body, source, at }));
        Ok(())
    }
}
