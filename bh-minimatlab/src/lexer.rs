//! The lexer. In brackets, white space separates elements and line ends separate rows; the lexer inserts these
//! separators.

use crate::source::{Fault, Outcome, Source};
use std::rc::Rc;
use winnow::Parser;
use winnow::ascii::{digit0, digit1};
use winnow::combinator::{alt, opt};
use winnow::error::ContextError;
use winnow::token::{one_of, take_while};

type Parsed<T> = Result<T, ContextError>;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// A name.
    Name(String),
    /// A keyword.
    Keyword(&'static str),
    /// `end` inside an index.
    Last,
    /// An operator or a separator; `\n` is the end of a line.
    Symbol(&'static str),
    /// The end of the text.
    Finish,
}

/// A token with its offset.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The token.
    pub token: Token,
    /// Byte offset.
    pub offset: usize,
    /// White space precedes it.
    pub spaced: bool,
}

const KEYWORDS: &[&str] = &[
    "if",
    "elseif",
    "else",
    "end",
    "endif",
    "while",
    "endwhile",
    "for",
    "endfor",
    "function",
    "endfunction",
    "return",
    "break",
    "continue",
    "do",
    "until",
    "switch",
    "case",
    "otherwise",
    "try",
    "catch",
    "global",
    "persistent",
    "unwind_protect",
    "classdef",
    "parfor",
];

/// Longest first.
const SYMBOLS: &[&str] = &[
    ".^'", "==", "~=", "!=", "<=", ">=", "&&", "||", ".*", "./", ".\\", ".^", ".'", "++", "--", "+=", "-=", "*=", "/=",
    "^=", "+", "-", "*", "/", "\\", "^", "<", ">", "=", "&", "|", "~", "!", ",", ";", ":", "(", ")", "[", "]", "{",
    "}", "@", ".",
];

fn number(input: &mut &str) -> Parsed<f64> {
    let exponent = || opt((one_of(['e', 'E', 'd', 'D']), opt(one_of(['+', '-'])), digit1));
    // A point that begins an operator (1./x) does not belong to the number.
    let fraction = |input: &mut &str| -> Parsed<()> {
        let after = input.get(1..).and_then(|rest| rest.chars().next());
        if input.starts_with('.') && !matches!(after, Some('*' | '/' | '\\' | '^' | '\'')) {
            ('.', digit0).void().parse_next(input)?;
        }
        Ok(())
    };
    let whole = (digit1, fraction, exponent()).take();
    let small = ('.', digit1, exponent()).take();
    let text: &str = alt((whole, small)).parse_next(input)?;
    text.replace(['d', 'D'], "e").parse().map_err(|_| ContextError::new())
}

fn name<'a>(input: &mut &'a str) -> Parsed<&'a str> {
    (
        one_of(|c: char| c.is_ascii_alphabetic() || c == '_'),
        take_while(0.., |c: char| c.is_ascii_alphanumeric() || c == '_'),
    )
        .take()
        .parse_next(input)
}

struct Lexer<'a> {
    source: &'a Rc<Source>,
    rest: &'a str,
    tokens: Vec<Placed>,
    brackets: Vec<(char, usize)>,
}

/// The tokens of a text.
pub fn tokens(source: &Rc<Source>) -> Outcome<Vec<Placed>> {
    let mut lexer = Lexer { source, rest: &source.text, tokens: Vec::new(), brackets: Vec::new() };
    while lexer.step()? {}
    Ok(lexer.tokens)
}

impl Lexer<'_> {
    fn offset(&self) -> usize {
        self.source.text.len() - self.rest.len()
    }

    fn fault(&self, text: impl Into<String>, offset: usize) -> Fault {
        Fault::at(text, self.source, offset)
    }

    fn in_matrix(&self) -> bool {
        matches!(self.brackets.last(), Some(('[' | '{', _)))
    }

    fn push(&mut self, token: Token, offset: usize, spaced: bool) {
        self.tokens.push(Placed { token, offset, spaced });
    }

    /// Does the last token end an operand, so that a quote transposes it?
    fn after_operand(&self) -> bool {
        self.tokens.last().is_some_and(|last| match &last.token {
            Token::Number(_) | Token::Text(_) | Token::Name(_) | Token::Last => true,
            Token::Symbol(symbol) => matches!(*symbol, ")" | "]" | "}" | "'" | ".'"),
            _ => false,
        })
    }

    /// Reads one token; false at the end.
    fn step(&mut self) -> Outcome<bool> {
        let spaced = self.skip_blank()?;
        let offset = self.offset();
        let Some(first) = self.rest.chars().next() else {
            if let Some(&(bracket, at)) = self.brackets.last() {
                return Err(self.fault(format!("'{bracket}' is never closed"), at));
            }
            self.push(Token::Symbol("\n"), offset, false);
            self.push(Token::Finish, offset, false);
            return Ok(false);
        };
        if first == '\n' {
            self.rest = &self.rest[1..];
            match self.brackets.last() {
                None => self.push(Token::Symbol("\n"), offset, false),
                Some(('(', at)) => return Err(self.fault("'(' is not closed in its line", *at)),
                Some(_) => self.push(Token::Symbol(";"), offset, false),
            }
            return Ok(true);
        }
        if spaced && self.in_matrix() && self.after_operand() && self.starts_element(first) {
            self.push(Token::Symbol(","), offset, false);
        }
        if first == '"' || first == '\'' && !(self.after_operand() && !(spaced && self.in_matrix())) {
            let text = self.quoted(first, offset)?;
            self.push(Token::Text(text), offset, spaced);
            return Ok(true);
        }
        if first == '\'' {
            self.rest = &self.rest[1..];
            self.push(Token::Symbol("'"), offset, spaced);
            return Ok(true);
        }
        if first.is_ascii_digit() || first == '.' && self.rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
            let value = number(&mut self.rest).map_err(|_| self.fault("this number cannot be read", offset))?;
            if matches!(self.rest.chars().next(), Some('i' | 'j' | 'I' | 'J')) {
                return Err(self.fault("complex numbers are not supported", offset));
            }
            if self.rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
                return Err(self.fault("a name cannot follow a number without a space", self.offset()));
            }
            self.push(Token::Number(value), offset, spaced);
            return Ok(true);
        }
        if let Ok(word) = name(&mut self.rest) {
            let word = match KEYWORDS.iter().find(|keyword| **keyword == word) {
                Some(&"end") if !self.brackets.is_empty() => Token::Last,
                Some(keyword) => Token::Keyword(keyword),
                None => Token::Name(word.to_owned()),
            };
            self.push(word, offset, spaced);
            return Ok(true);
        }
        let Some(symbol) = SYMBOLS.iter().find(|symbol| self.rest.starts_with(**symbol)) else {
            return Err(self.fault(format!("the character '{first}' has no meaning here"), offset));
        };
        self.rest = &self.rest[symbol.len()..];
        self.track(symbol, offset)?;
        self.push(Token::Symbol(symbol), offset, spaced);
        Ok(true)
    }

    fn track(&mut self, symbol: &str, offset: usize) -> Outcome<()> {
        match symbol {
            "(" | "[" | "{" => self.brackets.push((symbol.chars().next().unwrap_or('('), offset)),
            ")" | "]" | "}" => match (self.brackets.pop(), symbol) {
                (Some(('(', _)), ")") | (Some(('[', _)), "]") | (Some(('{', _)), "}") => {}
                (Some((open, _)), _) => return Err(self.fault(format!("'{symbol}' does not close '{open}'"), offset)),
                (None, _) => return Err(self.fault(format!("'{symbol}' closes nothing"), offset)),
            },
            _ => {}
        }
        Ok(())
    }

    /// After white space in a matrix: does a new element begin here?
    fn starts_element(&self, first: char) -> bool {
        let second = self.rest[first.len_utf8()..].chars().next();
        let blank = second.is_none_or(char::is_whitespace);
        match first {
            '+' | '-' => !blank && second != Some('='),
            '~' | '!' => second != Some('='),
            '.' => second.is_some_and(|c| c.is_ascii_digit()),
            _ => first.is_ascii_alphanumeric() || matches!(first, '_' | '(' | '[' | '{' | '\'' | '"' | '@'),
        }
    }

    /// Skips blanks, comments and continued line ends; true if there were any.
    fn skip_blank(&mut self) -> Outcome<bool> {
        let before = self.rest.len();
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\r']);
            let line = self.rest.split('\n').next().unwrap_or("");
            if self.rest.starts_with("...") {
                self.rest = self.rest.get(line.len() + 1..).unwrap_or("");
            } else if self.rest.starts_with(['%', '#']) {
                let alone =
                    self.source.text[..self.offset()].rsplit('\n').next().is_none_or(|text| text.trim().is_empty());
                if alone && matches!(line.trim_end(), "%{" | "#{") {
                    self.skip_block()?;
                } else {
                    self.rest = &self.rest[line.len()..];
                }
            } else {
                return Ok(self.rest.len() < before);
            }
        }
    }

    fn skip_block(&mut self) -> Outcome<()> {
        let (begin, mut depth) = (self.offset(), 0);
        while !self.rest.is_empty() {
            let line = self.rest.split('\n').next().unwrap_or("");
            self.rest = self.rest.get(line.len() + 1..).unwrap_or("");
            match line.trim() {
                "%{" | "#{" => depth += 1,
                "%}" | "#}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
        Err(self.fault("this comment is never closed", begin))
    }

    fn quoted(&mut self, quote: char, offset: usize) -> Outcome<String> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            if c == quote {
                if chars.next_if(|(_, next)| *next == quote).is_none() {
                    self.rest = &self.rest[at + 1..];
                    return Ok(text);
                }
                text.push(quote);
            } else if c == '\n' {
                break;
            } else if c == '\\' && quote == '"' {
                let Some((_, escaped)) = chars.next() else { break };
                text.push(escape(escaped));
            } else {
                text.push(c);
            }
        }
        Err(self.fault("this text is never closed", offset))
    }
}

/// The character for an escape sequence.
pub fn escape(c: char) -> char {
    match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        '0' => '\0',
        'a' => '\u{7}',
        other => other,
    }
}
