//! Parses programs.

use crate::{Arg, Compute, DEEPEST, Load, Program, Statement, Table};
use bh_bytecode::methods::PROGRAM;
use bh_bytecode::{Complex, Constant, DType, Opcode};

/// The words of a text.
struct Words<'a> {
    words: std::iter::Peekable<std::str::SplitAsciiWhitespace<'a>>,
    depth: usize,
}

impl Program {
    /// Parses a program in the form that [`Program`]'s `Display` writes, and validates it. Operations may also be given
    /// as numbers.
    ///
    /// ```text
    /// program steps (i64) -> (i64) with (bool bool i64)
    /// { block { loop { r2 = not_equal r0 i64:1; if r2 { } else { leave 0 } r1 = add r1 i64:1; … } } }
    /// ```
    pub fn parse(text: &str) -> Result<Program, String> {
        let rest = text.strip_prefix(PROGRAM).ok_or("it does not begin with 'program'")?;
        let mut words = Words { words: rest.split_ascii_whitespace().peekable(), depth: 0 };
        let name = words.next("its name")?.to_owned();
        let mut registers = words.types()?;
        let inputs = registers.len();
        words.expect("->")?;
        registers.extend(words.types()?);
        let outputs = registers.len() - inputs;
        words.expect("with")?;
        registers.extend(words.types()?);
        let tables = if words.words.next_if_eq(&"reads").is_some() { words.tables()? } else { Vec::new() };
        let body = words.list()?;
        if let Some(word) = words.words.next() {
            return Err(format!("'{word}' behind the end"));
        }
        let program = Program { name, inputs, outputs, registers, tables, body };
        program.validate()?;
        Ok(program)
    }
}

impl<'a> Words<'a> {
    fn next(&mut self, what: &str) -> Result<&'a str, String> {
        self.words.next().ok_or_else(|| format!("the text ends where {what} should be"))
    }

    fn expect(&mut self, wanted: &str) -> Result<(), String> {
        let word = self.next(&format!("'{wanted}'"))?;
        if word == wanted { Ok(()) } else { Err(format!("'{word}' where '{wanted}' should be")) }
    }

    /// Types between parentheses.
    fn types(&mut self) -> Result<Vec<DType>, String> {
        self.between(dtype)
    }

    /// Tables between parentheses: name, type and dimensions of each.
    fn tables(&mut self) -> Result<Vec<Table>, String> {
        self.between(|word| {
            let mut parts = word.split(':');
            let (name, of, rank) = (parts.next(), parts.next(), parts.next());
            let rank = rank.and_then(|rank| rank.parse().ok()).ok_or_else(|| format!("'{word}' is no table"))?;
            Ok(Table { name: name.unwrap_or_default().into(), dtype: dtype(of.unwrap_or_default())?, rank })
        })
    }

    fn between<T>(&mut self, each: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
        let mut all = Vec::new();
        let mut word = self.next("'('")?.strip_prefix('(').ok_or("types stand between parentheses")?;
        loop {
            let (name, ends) = word.strip_suffix(')').map_or((word, false), |name| (name, true));
            if !name.is_empty() {
                all.push(each(name)?);
            }
            if ends {
                return Ok(all);
            }
            word = self.next("')'")?;
        }
    }

    fn list(&mut self) -> Result<Vec<Statement>, String> {
        self.expect("{")?;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("more than {DEEPEST} blocks in each other"));
        }
        let mut all = Vec::new();
        loop {
            match self.next("'}'")? {
                "}" => break,
                "if" => {
                    let condition = register(self.next("a register")?)?;
                    let then = self.list()?;
                    let has_other = self.words.next_if_eq(&"else").is_some();
                    all.push(Statement::If(condition, then, if has_other { self.list()? } else { Vec::new() }));
                }
                "block" => all.push(Statement::Block(self.list()?)),
                "loop" => all.push(Statement::Loop(self.list()?)),
                "leave" => {
                    let word = self.next("a block's number")?;
                    all.push(Statement::Leave(word.parse().map_err(|_| format!("'{word}' is no block's number"))?));
                }
                target => all.push(self.operation(register(target)?)?),
            }
        }
        self.depth -= 1;
        Ok(all)
    }

    fn operation(&mut self, target: u16) -> Result<Statement, String> {
        self.expect("=")?;
        let word = self.next("an operation")?;
        if let Some(table) = word.strip_prefix('t').and_then(|number| number.parse().ok()) {
            return Ok(Statement::Load(Load { target, table, subscripts: self.args()? }));
        }
        let (name, param) = match word.split_once('.') {
            None => (word, 0),
            Some((name, param)) => (name, param.parse().map_err(|_| format!("'{param}' is no parameter"))?),
        };
        let number = || name.parse().ok().map(Opcode).filter(|number| Opcode::ALL.contains(number));
        let opcode = Opcode::from_name(name).or_else(number);
        let opcode = opcode.ok_or_else(|| format!("there is no operation '{name}'"))?;
        Ok(Statement::Compute(Compute { opcode, param, target, args: self.args()? }))
    }

    /// Operands up to the end of the statement.
    fn args(&mut self) -> Result<Vec<Arg>, String> {
        let mut args = Vec::new();
        loop {
            let word = self.next("an operand")?;
            let (text, ends) = word.strip_suffix(';').map_or((word, false), |text| (text, true));
            args.push(if text.contains(':') { Arg::Constant(constant(text)?) } else { Arg::Register(register(text)?) });
            if ends {
                return Ok(args);
            }
        }
    }
}

fn dtype(name: &str) -> Result<DType, String> {
    DType::from_name(name).ok_or_else(|| format!("there is no type '{name}'"))
}

fn register(word: &str) -> Result<u16, String> {
    word.strip_prefix('r').and_then(|number| number.parse().ok()).ok_or_else(|| format!("'{word}' is no register"))
}

fn constant(text: &str) -> Result<Constant, String> {
    let wrong = || format!("'{text}' is no constant");
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    let dtype = DType::from_name(name).ok_or_else(wrong)?;
    let double = |text: &str| match text.strip_prefix('#') {
        Some(bits) => u64::from_str_radix(bits, 16).ok().map(f64::from_bits),
        None => text.parse().ok(),
    };
    let single = |text: &str| match text.strip_prefix('#') {
        Some(bits) => u32::from_str_radix(bits, 16).ok().map(f32::from_bits),
        None => text.parse().ok(),
    };
    let found = match dtype {
        DType::F32 => single(value).map(Constant::from_value),
        DType::F64 => double(value).map(Constant::from_value),
        DType::C64 | DType::C128 => value.split_once(',').and_then(|(re, im)| match dtype {
            DType::C64 => Some(Constant::from_value(Complex::new(single(re)?, single(im)?))),
            _ => Some(Constant::from_value(Complex::new(double(re)?, double(im)?))),
        }),
        DType::U64 => value.parse::<u64>().ok().map(Constant::from_value),
        _ => value.parse::<i64>().ok().map(|value| Constant::from_value(value).cast(dtype)).filter(|cast| {
            // Values out of the type's range change in the conversion.
            cast.to::<i64>().to_string() == value
        }),
    };
    found.ok_or_else(wrong)
}
