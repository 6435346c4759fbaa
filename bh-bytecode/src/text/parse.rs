//! Parsing of the text form, line by line. The result is not validated.

use super::print::FLAGS;
use crate::batch::{Base, Batch, Constant, Extension, Instr, MAX_OPERANDS, NO_BASE, Operand, Origin};
use crate::complex::Complex;
use crate::dtype::DType;
use crate::opcode::Opcode;
use crate::order::AxisOrder;
use crate::truth::Truth;
use crate::view::View;
use std::fmt;
use std::str::FromStr;

/// Why and where a text is not the text form of a batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The error.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

type Result<T> = std::result::Result<T, ParseError>;

/// The batch with this text form.
pub fn parse(text: &str) -> Result<Batch> {
    let mut batch = Batch::default();
    let mut begun = false;
    let mut last = 1;
    for (index, line) in text.lines().enumerate() {
        last = index + 1;
        let mut line = Line::read(index + 1, line)?;
        if line.at_end() {
            continue;
        }
        if begun {
            parse_line(&mut batch, &mut line)?;
        } else {
            parse_head(&mut line)?;
            begun = true;
        }
        if !line.at_end() {
            return line.unexpected("the end of the line is expected");
        }
    }
    if begun {
        Ok(batch)
    } else {
        Err(ParseError { line: last, column: 1, message: "the text does not begin with `bh batch 1`".into() })
    }
}

fn parse_head(line: &mut Line) -> Result<()> {
    if !(line.accept("bh") && line.accept("batch")) {
        return line.fault("the text does not begin with `bh batch 1`");
    }
    if !line.accept("1") {
        return line.unexpected("version 1 is needed");
    }
    Ok(())
}

fn parse_line(batch: &mut Batch, line: &mut Line) -> Result<()> {
    match line.peek() {
        "base" => parse_base(batch, line),
        "view" => parse_view(batch, line),
        "const" => parse_constant(batch, line),
        "origin" => parse_origin(batch, line),
        "extension" => parse_extension(batch, line),
        "block" => parse_block(batch, line),
        "rename" => parse_rename(batch, line),
        _ => parse_instr(batch, line),
    }
}

fn parse_base(batch: &mut Batch, line: &mut Line) -> Result<()> {
    line.label("base", 'b', batch.bases.len())?;
    let dtype = line.dtype()?;
    line.expect("[")?;
    let len = line.number()?;
    line.expect("]")?;
    line.expect("id")?;
    let id = line.number()?;
    let Some(mut base) = Base::checked(id, dtype, len) else {
        return line.fault(format!("a base cannot have {len} elements of {dtype}"));
    };
    if line.accept("row") {
        base.row_hint = line.number()?;
    }
    while !line.at_end() {
        match FLAGS.iter().find(|(_, name)| *name == line.peek()) {
            Some((flag, _)) => base.flags |= flag,
            None => return line.fault(format!("there is no flag `{}`", line.peek())),
        }
        line.advance();
    }
    batch.push_base(base);
    Ok(())
}

fn parse_view(batch: &mut Batch, line: &mut Line) -> Result<()> {
    line.label("view", 'v', batch.views.len())?;
    let base = if line.accept("index") {
        NO_BASE
    } else if line.peek().starts_with('b') {
        line.reference('b')?
    } else {
        return line.unexpected("a base or `index` is expected");
    };
    line.expect("at")?;
    let start = line.number()?;
    let column = line.column();
    line.expect("[")?;
    let (mut shape, mut stride) = (Vec::new(), Vec::new());
    while !line.accept("]") {
        if !shape.is_empty() {
            line.expect(",")?;
        }
        shape.push(line.number()?);
        line.expect(":")?;
        stride.push(line.number()?);
    }
    let view = View::new(start, &shape, &stride).map_err(|error| ParseError {
        line: line.number,
        column,
        message: error.to_string(),
    })?;
    batch.push_view(base, &view);
    Ok(())
}

fn parse_constant(batch: &mut Batch, line: &mut Line) -> Result<()> {
    line.label("const", 'c', batch.constants.len())?;
    let constant = match line.dtype()? {
        DType::Bool => Constant::from_value(Truth::from(line.value::<bool>("bool")?)),
        DType::I8 => Constant::from_value(line.value::<i8>("i8")?),
        DType::I16 => Constant::from_value(line.value::<i16>("i16")?),
        DType::I32 => Constant::from_value(line.value::<i32>("i32")?),
        DType::I64 => Constant::from_value(line.value::<i64>("i64")?),
        DType::U8 => Constant::from_value(line.value::<u8>("u8")?),
        DType::U16 => Constant::from_value(line.value::<u16>("u16")?),
        DType::U32 => Constant::from_value(line.value::<u32>("u32")?),
        DType::U64 => Constant::from_value(line.value::<u64>("u64")?),
        DType::F32 => Constant::from_value(line.single()?),
        DType::F64 => Constant::from_value(line.double()?),
        DType::C64 => Constant::from_value(Complex::new(line.single()?, line.single()?)),
        DType::C128 => Constant::from_value(Complex::new(line.double()?, line.double()?)),
    };
    batch.push_constant(constant);
    Ok(())
}

/// The place of a name in the string pool; equal names share one.
fn intern(batch: &mut Batch, name: &str) -> (u32, u32) {
    let origins = batch.origins.iter().map(|origin| (origin.file, origin.file_len));
    let names = origins.chain(batch.extensions.iter().map(|extension| (extension.name, extension.name_len)));
    let same = |&(offset, len): &(u32, u32)| &batch.strings[offset as usize..][..len as usize] == name.as_bytes();
    match { names }.find(same) {
        Some(place) => place,
        None => batch.push_string(name),
    }
}

fn parse_origin(batch: &mut Batch, line: &mut Line) -> Result<()> {
    line.label("origin", 'o', batch.origins.len() + 1)?;
    let name = line.string()?;
    line.expect(":")?;
    let number = line.number()?;
    let (file, file_len) = intern(batch, &name);
    batch.origins.push(Origin { file, file_len, line: number });
    Ok(())
}

fn parse_extension(batch: &mut Batch, line: &mut Line) -> Result<()> {
    line.expect("extension")?;
    let opcode = Opcode(line.reference::<u16>('x')?);
    line.expect("=")?;
    let name = line.string()?;
    let (name, name_len) = intern(batch, &name);
    batch.extensions.push(Extension { opcode, reserved: 0, name, name_len });
    Ok(())
}

fn parse_instr(batch: &mut Batch, line: &mut Line) -> Result<()> {
    if line.tokens.get(line.at + 1).is_some_and(|token| token.text == ":") {
        let wanted = format!("i{}", batch.instrs.len());
        if line.peek() != wanted {
            return line.unexpected(format!("`{wanted}` is expected"));
        }
        line.advance();
        line.advance();
    }
    let assigns = line.tokens[line.at..].iter().any(|token| token.text == "=");
    let mut operands = Vec::new();
    if assigns {
        parse_operands(line, &mut operands)?;
        line.expect("=")?;
    }
    let outputs = operands.len() as u8;
    let opcode = if line.peek().strip_prefix('x').is_some_and(|number| number.parse::<u16>().is_ok()) {
        Opcode(line.reference('x')?)
    } else {
        match Opcode::from_name(line.peek()) {
            Some(opcode) => {
                line.advance();
                opcode
            }
            None => return line.fault(format!("there is no opcode `{}`", line.peek())),
        }
    };
    let attributes = parse_attributes(line, opcode)?;
    let param = parse_param(line)?;
    let order = parse_order(line)?;
    if !line.at_end() && line.peek() != "@" {
        parse_operands(line, &mut operands)?;
    }
    if operands.len() > MAX_OPERANDS {
        return line.fault(format!("{} operands are more than {MAX_OPERANDS}", operands.len()));
    }
    let mut origin = 0;
    if line.accept("@") {
        if line.peek() == "o0" {
            return line.fault("origins count from 1");
        }
        origin = line.reference('o')?;
    }
    batch.push_instr(Instr { param, order, outputs, origin, ..Instr::new(opcode, &operands) });
    attributes.iter().for_each(|(name, value)| batch.push_attribute(name, *value));
    Ok(())
}

/// The attributes of a use of an extension method; others have none.
fn parse_attributes(line: &mut Line, opcode: Opcode) -> Result<Vec<(String, i64)>> {
    let mut attributes = Vec::new();
    if !opcode.is_extension() || !line.accept("with") {
        return Ok(attributes);
    }
    line.expect("(")?;
    loop {
        let name = line.string()?;
        line.expect(":")?;
        attributes.push((name, line.number()?));
        if attributes.len() > usize::from(u16::MAX) {
            return line.fault("there are too many attributes");
        }
        if !line.accept(",") {
            line.expect(")")?;
            return Ok(attributes);
        }
    }
}

fn parse_operands(line: &mut Line, operands: &mut Vec<Operand>) -> Result<()> {
    loop {
        let operand = match line.peek().chars().next() {
            Some('v') => Operand::view(line.reference::<u32>('v')? & (u32::MAX >> 1)),
            Some('c') => Operand::constant(line.reference('c')?),
            Some('_') => {
                line.advance();
                Operand::NONE
            }
            _ => return line.unexpected("an operand is expected"),
        };
        operands.push(operand);
        if !line.accept(",") {
            return Ok(());
        }
    }
}

fn parse_param(line: &mut Line) -> Result<u16> {
    if line.accept("axes") {
        line.expect("(")?;
        let mut axes = 0u16;
        while !line.accept(")") {
            if axes != 0 {
                line.expect(",")?;
            }
            let column = line.column();
            let axis: u32 = line.number()?;
            axes |= 1u16.checked_shl(axis).ok_or_else(|| ParseError {
                line: line.number,
                column,
                message: format!("axis {axis} is above 15"),
            })?;
        }
        return Ok(axes);
    }
    if line.accept("exponent") || line.accept("param") {
        line.expect("(")?;
        let param = line.number()?;
        line.expect(")")?;
        return Ok(param);
    }
    Ok(0)
}

/// The code of an order; C order if none is given.
fn parse_order(line: &mut Line) -> Result<u16> {
    let fixed = line.accept("fixed_order");
    if !fixed && !line.accept("order") {
        return Ok(0);
    }
    line.expect("(")?;
    let column = line.column();
    let mut axes = Vec::new();
    while !line.accept(")") {
        if !axes.is_empty() {
            line.expect(",")?;
        }
        let backward = line.peek().starts_with('-');
        let axis = line.peek().trim_start_matches('-').parse::<u8>().ok();
        axes.push((line.parsed(axis, "an axis is expected")?, backward));
    }
    let coded = |order: AxisOrder| if fixed { order.fixed().code() } else { order.code() };
    AxisOrder::of_axes(&axes).map(coded).ok_or_else(|| ParseError {
        line: line.number,
        column,
        message: format!("an order of {} axes names each of them once", axes.len()),
    })
}

/// As many references of a kind as follow.
fn references(line: &mut Line, prefix: char) -> Result<Vec<u32>> {
    let mut indices = Vec::new();
    while line.peek().strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        indices.push(line.reference(prefix)?);
    }
    Ok(indices)
}

fn parse_block(batch: &mut Batch, line: &mut Line) -> Result<()> {
    line.expect("block")?;
    let instrs = references(line, 'i')?;
    let contracted = if line.accept("contracted") { references(line, 'b')? } else { Vec::new() };
    batch.push_block(&instrs, &contracted);
    Ok(())
}

fn parse_rename(batch: &mut Batch, line: &mut Line) -> Result<()> {
    if batch.blocks.is_empty() {
        return line.fault("there is no block before the rename");
    }
    line.expect("rename")?;
    let base = line.reference('b')?;
    let uncovered = if line.accept("uncovered") { references(line, 'v')? } else { Vec::new() };
    let alias = if line.accept("alias") { Some((line.reference('b')?, line.reference('v')?)) } else { None };
    batch.push_rename(base, &uncovered, alias);
    Ok(())
}

/// A word, a string in quotes, or a sign.
struct Token {
    text: String,
    column: usize,
    string: bool,
}

/// The tokens of one line and how far they are read.
struct Line {
    number: usize,
    tokens: Vec<Token>,
    at: usize,
    /// The column after the last token.
    end: usize,
}

impl Line {
    fn read(number: usize, text: &str) -> Result<Line> {
        let mut tokens = Vec::new();
        let mut chars = text.chars().enumerate().peekable();
        let mut end = 1;
        while let Some(&(at, first)) = chars.peek() {
            let column = at + 1;
            if first == '#' {
                break;
            }
            chars.next();
            if first.is_whitespace() {
                continue;
            }
            let mut token = Token { text: first.to_string(), column, string: first == '"' };
            if first == '"' {
                token.text = read_string(&mut chars, number, column)?;
            } else if is_word(first) {
                while let Some((_, next)) = chars.next_if(|&(_, next)| is_word(next)) {
                    token.text.push(next);
                }
            } else if !"=[](),:@".contains(first) {
                let message = format!("`{first}` is not part of the text form");
                return Err(ParseError { line: number, column, message });
            }
            end = chars.peek().map_or(text.chars().count(), |&(at, _)| at) + 1;
            tokens.push(token);
        }
        Ok(Line { number, tokens, at: 0, end })
    }

    fn at_end(&self) -> bool {
        self.at == self.tokens.len()
    }

    /// The next token, or nothing at the end.
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", |token| &token.text)
    }

    fn advance(&mut self) {
        self.at += 1;
    }

    fn column(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |token| token.column)
    }

    fn fault<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(ParseError { line: self.number, column: self.column(), message: message.into() })
    }

    fn unexpected<T>(&self, wanted: impl fmt::Display) -> Result<T> {
        match self.tokens.get(self.at) {
            Some(token) => self.fault(format!("{wanted}, not `{}`", token.text)),
            None => self.fault(format!("{wanted}, not the end of the line")),
        }
    }

    fn accept(&mut self, text: &str) -> bool {
        let found = self.tokens.get(self.at).is_some_and(|token| !token.string && token.text == text);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, text: &str) -> Result<()> {
        if self.accept(text) { Ok(()) } else { self.unexpected(format!("`{text}` is expected")) }
    }

    /// The head of a table entry: its kind, its name with the right number, and `=`.
    fn label(&mut self, kind: &str, prefix: char, index: usize) -> Result<()> {
        self.expect(kind)?;
        self.expect(&format!("{prefix}{index}"))?;
        self.expect("=")
    }

    fn parsed<T>(&mut self, value: Option<T>, wanted: impl fmt::Display) -> Result<T> {
        match value {
            Some(value) => {
                self.advance();
                Ok(value)
            }
            None => self.unexpected(wanted),
        }
    }

    fn number<T: FromStr>(&mut self) -> Result<T> {
        self.parsed(self.peek().parse().ok(), "a number is expected")
    }

    /// The number behind a prefix: 3 of `v3`.
    fn reference<T: FromStr>(&mut self, prefix: char) -> Result<T> {
        let number = self.peek().strip_prefix(prefix).and_then(|number| number.parse().ok());
        self.parsed(number, format!("a name like `{prefix}0` is expected"))
    }

    fn dtype(&mut self) -> Result<DType> {
        match DType::from_name(self.peek()) {
            Some(dtype) => {
                self.advance();
                Ok(dtype)
            }
            None => self.fault(format!("there is no element type `{}`", self.peek())),
        }
    }

    fn value<T: FromStr>(&mut self, dtype: &str) -> Result<T> {
        match self.peek().parse() {
            Ok(value) => {
                self.advance();
                Ok(value)
            }
            Err(_) => self.fault(format!("`{}` is no {dtype}", self.peek())),
        }
    }

    fn single(&mut self) -> Result<f32> {
        if let Some(bits) = self.peek().strip_prefix("0x") {
            let bits = u32::from_str_radix(bits, 16).ok();
            return self.parsed(bits, "the bits of an f32 are expected").map(f32::from_bits);
        }
        self.value("f32")
    }

    fn double(&mut self) -> Result<f64> {
        if let Some(bits) = self.peek().strip_prefix("0x") {
            let bits = u64::from_str_radix(bits, 16).ok();
            return self.parsed(bits, "the bits of an f64 are expected").map(f64::from_bits);
        }
        self.value("f64")
    }

    fn string(&mut self) -> Result<String> {
        let text = self.tokens.get(self.at).filter(|token| token.string).map(|token| token.text.clone());
        self.parsed(text, "a string in quotes is expected")
    }
}

/// Words are names and numbers.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_.-".contains(c)
}

/// The rest of a string behind its opening quote, with escapes as Rust prints them.
fn read_string(chars: &mut impl Iterator<Item = (usize, char)>, line: usize, column: usize) -> Result<String> {
    let fault = |message: &str| Err(ParseError { line, column, message: message.into() });
    let mut text = String::new();
    while let Some((_, c)) = chars.next() {
        match c {
            '"' => return Ok(text),
            '\\' => match chars.next().map(|(_, c)| c) {
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some('t') => text.push('\t'),
                Some('0') => text.push('\0'),
                Some('u') => {
                    let code: String =
                        chars.map(|(_, c)| c).skip_while(|&c| c == '{').take_while(|&c| c != '}').take(8).collect();
                    match u32::from_str_radix(&code, 16).ok().and_then(char::from_u32) {
                        Some(c) => text.push(c),
                        None => return fault("the string has a wrong \\u escape"),
                    }
                }
                Some(c @ ('\\' | '"' | '\'')) => text.push(c),
                _ => return fault("the string has a wrong escape"),
            },
            c => text.push(c),
        }
    }
    fault("the string does not end")
}
