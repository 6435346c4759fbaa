//! Scalar programs: operations of the opcode table on typed registers, with branches and loops. One instruction applies
//! a program to each element of its operands.
//!
//! A program is encoded as the name of an extension method, which is its text (see [`Program::parse`]). So it has no
//! pointers, and is hashed, stored and sent between processes with its batch. [`interpret`] defines its meaning.

pub mod fuse;
mod interpret;
pub mod kernel;
mod parse;
mod print;
pub mod random;
mod turns;
mod validate;
mod values;

pub use interpret::{Elements, Interpreted, ScalarPrograms, Stopped};

use bh_bytecode::{Constant, DType, Opcode};

/// Registers of a program, at most. [`DEEPEST`] limits nesting.
pub const MOST_REGISTERS: usize = 4096;
/// Nesting depth of blocks, loops and branches, at most.
pub const DEEPEST: usize = 128;

/// A program. Its registers are the inputs, the outputs and the others, in this order. All but the inputs begin as
/// zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name for users: letters, digits and `_`.
    pub name: String,
    /// How many registers are inputs.
    pub inputs: usize,
    /// How many are outputs.
    pub outputs: usize,
    /// The types of all registers.
    pub registers: Vec<DType>,
    /// Arrays that it reads at subscripts; they are operands behind the inputs.
    pub tables: Vec<Table>,
    /// Its statements.
    pub body: Vec<Statement>,
}

/// An array that a program reads at subscripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name for users.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Its dimensions.
    pub rank: usize,
}

/// A statement of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// Sets a register to the result of an elementwise operation.
    Compute(Compute),
    /// Sets a register to an element of a table.
    Load(Load),
    /// Statements for elements for which a register is true, and for the others.
    If(u16, Vec<Statement>, Vec<Statement>),
    /// Statements that [`Statement::Leave`] can leave.
    Block(Vec<Statement>),
    /// Statements that repeat until [`Statement::Leave`] leaves them.
    Loop(Vec<Statement>),
    /// Continues behind the enclosing block of this number, from 0 for the innermost. Must be the last statement of its
    /// list.
    Leave(u16),
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compute {
    /// The operation.
    pub opcode: Opcode,
    /// Its parameter, the exponent of POWI.
    pub param: u16,
    /// The register for the result.
    pub target: u16,
    /// The operands.
    pub args: Vec<Arg>,
}

/// An element of a table. Negative subscripts count from the end; out of range is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// The register for the element.
    pub target: u16,
    /// The table's number.
    pub table: u16,
    /// The subscripts, `i64`, one for each dimension.
    pub subscripts: Vec<Arg>,
}

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    /// A register.
    Register(u16),
    /// A number.
    Constant(Constant),
}

impl Program {
    /// The type of an operand.
    pub fn dtype(&self, arg: Arg) -> DType {
        match arg {
            Arg::Register(register) => self.registers[usize::from(register)],
            Arg::Constant(constant) => constant.dtype(),
        }
    }

    /// The types of the inputs.
    pub fn input_types(&self) -> &[DType] {
        &self.registers[..self.inputs]
    }

    /// The types of the outputs.
    pub fn output_types(&self) -> &[DType] {
        &self.registers[self.inputs..self.inputs + self.outputs]
    }

    /// The types of an operation's last operand and result, by which engines look up operations.
    pub fn types_of(&self, compute: &Compute) -> (DType, DType) {
        let output = self.registers[usize::from(compute.target)];
        (compute.args.last().map_or(output, |arg| self.dtype(*arg)), output)
    }

    /// All operations.
    pub fn operations(&self) -> impl Iterator<Item = &Compute> {
        self.statements().filter_map(|statement| match statement {
            Statement::Compute(compute) => Some(compute),
            _ => None,
        })
    }

    /// All loads from tables.
    pub fn loads(&self) -> impl Iterator<Item = &Load> {
        self.statements().filter_map(|statement| match statement {
            Statement::Load(load) => Some(load),
            _ => None,
        })
    }

    /// Has it loops?
    pub fn has_loops(&self) -> bool {
        self.statements().any(|statement| matches!(statement, Statement::Loop(_)))
    }

    /// The distinct constants among all operands.
    pub fn constants(&self) -> Vec<Constant> {
        let mut found = Vec::new();
        let args = self.operations().flat_map(|compute| &compute.args);
        for arg in args.chain(self.loads().flat_map(|load| &load.subscripts)) {
            if let Arg::Constant(constant) = arg
                && !found.contains(constant)
            {
                found.push(*constant);
            }
        }
        found
    }

    /// All statements, including nested ones.
    pub fn statements(&self) -> impl Iterator<Item = &Statement> {
        let mut rest: Vec<&Statement> = self.body.iter().collect();
        std::iter::from_fn(move || {
            let next = rest.pop()?;
            rest.extend(next.parts().into_iter().flatten());
            Some(next)
        })
    }

    /// The error for a subscript out of range.
    pub fn out_of_range(&self, table: u16, dimension: usize, subscript: impl std::fmt::Display, extent: i64) -> String {
        let known = self.tables.get(usize::from(table)).map_or("", |table| &table.name);
        format!(
            "{}: index {subscript} is out of range for dimension {dimension} of '{known}' of extent {extent}",
            self.name
        )
    }
}

impl Statement {
    /// The lists of nested statements.
    pub fn parts(&self) -> [&[Statement]; 2] {
        match self {
            Statement::If(_, then, orelse) => [then, orelse],
            Statement::Block(body) | Statement::Loop(body) => [body, &[]],
            Statement::Compute(_) | Statement::Load(_) | Statement::Leave(_) => [&[], &[]],
        }
    }
}

/// Can control leave these statements to behind the block that is `outside` blocks around them, or further out?
pub fn leaves(statements: &[Statement], outside: u16) -> bool {
    statements.iter().any(|statement| match statement {
        Statement::Leave(block) => *block >= outside,
        Statement::Block(body) => leaves(body, outside + 1),
        other => other.parts().iter().any(|part| leaves(part, outside)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::{Numbers, STEPS};

    #[test]
    fn programs_do_what_they_say() {
        let program = Program::parse(STEPS).unwrap();
        assert_eq!(program.to_string(), STEPS);
        let steps = |n: i64| program.interpret(&[Constant::from_value(n)], 10_000).map(|all| all[0].to::<i64>());
        assert_eq!([1, 2, 3, 27].map(steps), [Ok(0), Ok(1), Ok(7), Ok(111)]);
        assert_eq!(steps(0), Err(Stopped::Late));
    }

    #[test]
    fn random_programs_survive_printing_and_end() {
        for seed in 0..300 {
            let program = random::program(seed, &[DType::F64, DType::I64], &[DType::F64, DType::I64], &random::TYPES);
            let text = program.to_string();
            assert_eq!(Program::parse(&text).as_ref(), Ok(&program), "{text}");
            let mut numbers = Numbers::new(seed);
            let inputs = [DType::F64, DType::I64].map(|dtype| numbers.constant(dtype));
            assert!(program.interpret(&inputs, 100_000).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refused = |body: &str| Program::parse(&format!("program f (f64) -> (f64) with (bool) {body}")).unwrap_err();
        assert_eq!(refused("{ r1 = add r0 i64:1; }"), "'r1 = add r0 i64:1;' does not fit the types");
        assert_eq!(refused("{ r1 = add_reduce r0; }"), "'r1 = add_reduce r0;' does not fit the types");
        let numbered = format!("program f (f64) -> (f64) with () {{ r1 = {} r0 r0; }}", Opcode::Add.0);
        assert!(Program::parse(&numbered).unwrap().to_string().contains("r1 = add r0 r0;"));
        assert_eq!(refused("{ r1 = 9999 r0; }"), "there is no operation '9999'");
        assert_eq!(refused("{ r7 = copy r0; }"), "'r7 = copy r0;' names registers that do not exist");
        assert_eq!(refused("{ leave 0 }"), "leave 0: there are 0 blocks around");
        assert_eq!(refused("{ block { leave 0 r1 = copy r0; } }"), "statements behind one that leaves");
        assert_eq!(refused("{ if r0 { } }"), "the condition r0 is no truth value");
        assert_eq!(refused("{ block { loop { r1 = copy r0; } } }"), "a loop that nothing leaves");
        assert_eq!(refused("{ r1 = copy f64:x; }"), "'f64:x' is no constant");
        assert_eq!(refused("{ r2 = copy bool:2; }"), "'bool:2' is no constant");
        assert_eq!(refused("{ block { } "), "the text ends where '}' should be");
        assert!(refused(&"{ block ".repeat(1000)).contains("blocks in each other"));
        assert!(Program::parse("program f-g (f64) -> (f64) with () { }").is_err());
    }
}
