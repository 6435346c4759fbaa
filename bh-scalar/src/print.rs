//! Programs as text.

use crate::{Arg, Compute, Program, Statement, Table};
use bh_bytecode::methods::{PROGRAM, READS};
use bh_bytecode::{Complex, Constant, DType};
use std::fmt::{Display, Formatter, Result, Write};

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let types = |all: &[DType]| all.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(" ");
        let (inputs, outputs) = (types(self.input_types()), types(self.output_types()));
        write!(f, "{PROGRAM}{} ({inputs}) -> ({outputs}) with ", self.name)?;
        write!(f, "({})", types(&self.registers[self.inputs + self.outputs..]))?;
        if !self.tables.is_empty() {
            let one = |table: &Table| format!("{}:{}:{}", table.name, table.dtype.name(), table.rank);
            write!(f, "{READS}{})", self.tables.iter().map(one).collect::<Vec<_>>().join(" "))?;
        }
        f.write_char(' ')?;
        list(f, &self.body)
    }
}

fn list(f: &mut Formatter<'_>, statements: &[Statement]) -> Result {
    f.write_str("{ ")?;
    for statement in statements {
        match statement {
            Statement::Compute(compute) => write!(f, "{compute}")?,
            Statement::Load(load) => {
                write!(f, "r{} = t{}", load.target, load.table)?;
                args(f, &load.subscripts)?;
            }
            Statement::If(condition, then, orelse) => {
                write!(f, "if r{condition} ")?;
                list(f, then)?;
                if !orelse.is_empty() {
                    f.write_str(" else ")?;
                    list(f, orelse)?;
                }
            }
            Statement::Block(body) | Statement::Loop(body) => {
                f.write_str(if matches!(statement, Statement::Loop(_)) { "loop " } else { "block " })?;
                list(f, body)?;
            }
            Statement::Leave(block) => write!(f, "leave {block}")?,
        }
        f.write_str(" ")?;
    }
    f.write_char('}')
}

impl Display for Compute {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "r{} = {}", self.target, self.opcode.name())?;
        if self.param != 0 {
            write!(f, ".{}", self.param)?;
        }
        args(f, &self.args)
    }
}

/// Operands, and the end of the statement.
fn args(f: &mut Formatter<'_>, all: &[Arg]) -> Result {
    for arg in all {
        match arg {
            Arg::Register(register) => write!(f, " r{register}")?,
            Arg::Constant(constant) => write!(f, " {}", number(constant))?,
        }
    }
    f.write_char(';')
}

/// A constant with its type: `f64:0.5`, `i8:-3`, `bool:1`, `c64:1.0,2.0`; NaNs and infinities by their bits.
fn number(constant: &Constant) -> String {
    let dtype = constant.dtype();
    let float = |value: f64| match (value.is_nan(), dtype.real_part()) {
        (false, DType::F32) => format!("{:?}", value as f32),
        (false, _) => format!("{value:?}"),
        (true, DType::F32) => format!("#{:x}", (value as f32).to_bits()),
        (true, _) => format!("#{:x}", value.to_bits()),
    };
    let value = match dtype {
        DType::F32 | DType::F64 => float(constant.to::<f64>()),
        DType::C64 | DType::C128 => {
            let value = constant.to::<Complex<f64>>();
            format!("{},{}", float(value.re), float(value.im))
        }
        DType::U64 => constant.to::<u64>().to_string(),
        _ => constant.to::<i64>().to_string(),
    };
    format!("{}:{value}", dtype.name())
}
