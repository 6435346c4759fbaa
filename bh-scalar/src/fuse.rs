//! Merges a program with an elementwise operation before or after it.

use crate::{Arg, Compute, Load, Program, Statement};
use bh_bytecode::{DType, Opcode};

/// An elementwise operation to merge with a program.
pub struct Beside {
    /// The operation.
    pub opcode: Opcode,
    /// Its parameter.
    pub param: u16,
    /// The type of its result.
    pub output: DType,
    /// Its operands.
    pub operands: Vec<Source>,
}

/// An operand of such an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The program's input of this number.
    Input(usize),
    /// The program's result, for operations after it.
    Result,
    /// An additional input of this type. New inputs follow the program's remaining ones.
    New(DType),
}

impl Program {
    /// The program with an operation before it, whose result replaces the inputs `fed`.
    pub fn after(&self, operation: &Beside, fed: &[usize]) -> Result<Program, String> {
        let kept: Vec<usize> = (0..self.inputs).filter(|input| !fed.contains(input)).collect();
        let mut made = Maker::new(self, &kept, operation);
        for &dtype in self.output_types() {
            made.registers.push(dtype);
        }
        let outputs = made.inputs..made.registers.len();
        made.places[self.inputs..self.inputs + self.outputs]
            .iter_mut()
            .zip(outputs)
            .for_each(|(to, at)| *to = at as u16);
        made.locals(self, fed.iter().copied().chain(self.inputs + self.outputs..self.registers.len()));
        let first = fed.first().ok_or("an operation whose result nobody needs")?;
        let mut body = vec![made.compute(operation, made.places[*first])];
        for other in &fed[1..] {
            let args = vec![Arg::Register(made.places[*first])];
            body.push(Statement::Compute(Compute {
                opcode: Opcode::Copy,
                param: 0,
                target: made.places[*other],
                args,
            }));
        }
        body.extend(renumbered(&self.body, &made.places));
        made.finish(self, self.outputs, body)
    }

    /// The program, which must have one output, with an operation after it, whose result becomes the output.
    pub fn before(&self, operation: &Beside) -> Result<Program, String> {
        if self.outputs != 1 {
            return Err("an operation behind a program with several outputs".into());
        }
        let kept: Vec<usize> = (0..self.inputs).collect();
        let mut made = Maker::new(self, &kept, operation);
        made.registers.push(operation.output);
        made.locals(self, self.inputs..self.registers.len());
        let mut body = renumbered(&self.body, &made.places);
        body.push(made.compute(operation, made.inputs as u16));
        made.finish(self, 1, body)
    }

    /// Does a statement set a register?
    pub fn sets(&self, register: usize) -> bool {
        self.operations().any(|compute| usize::from(compute.target) == register)
            || self.loads().any(|load| usize::from(load.target) == register)
    }
}

/// A program under construction.
struct Maker {
    /// The new number of each register of the old program.
    places: Vec<u16>,
    registers: Vec<DType>,
    inputs: usize,
    /// How many inputs belong to the old program.
    kept: usize,
}

impl Maker {
    fn new(program: &Program, kept: &[usize], operation: &Beside) -> Maker {
        let mut places = vec![0; program.registers.len()];
        kept.iter().enumerate().for_each(|(at, input)| places[*input] = at as u16);
        let mut registers: Vec<DType> = kept.iter().map(|input| program.registers[*input]).collect();
        registers.extend(operation.operands.iter().filter_map(|operand| match operand {
            Source::New(dtype) => Some(*dtype),
            Source::Input(_) | Source::Result => None,
        }));
        Maker { places, inputs: registers.len(), registers, kept: kept.len() }
    }

    /// Adds the old program's registers that are neither inputs nor outputs now.
    fn locals(&mut self, program: &Program, all: impl Iterator<Item = usize>) {
        for register in all {
            self.places[register] = self.registers.len() as u16;
            self.registers.push(program.registers[register]);
        }
    }

    fn compute(&self, operation: &Beside, target: u16) -> Statement {
        let mut next = self.kept as u16..;
        let args = operation.operands.iter().map(|operand| match *operand {
            Source::Input(input) => self.places[input],
            // The old output is the first local.
            Source::Result => self.inputs as u16 + 1,
            Source::New(_) => next.next().unwrap_or_default(),
        });
        let args = args.map(Arg::Register).collect();
        Statement::Compute(Compute { opcode: operation.opcode, param: operation.param, target, args })
    }

    fn finish(self, program: &Program, outputs: usize, body: Vec<Statement>) -> Result<Program, String> {
        let Maker { registers, inputs, .. } = self;
        let (name, tables) = (program.name.clone(), program.tables.clone());
        let made = Program { name, inputs, outputs, registers, tables, body };
        made.validate()?;
        Ok(made)
    }
}

fn renumbered(statements: &[Statement], places: &[u16]) -> Vec<Statement> {
    let place = |register: u16| places[usize::from(register)];
    let arg = |arg: &Arg| match *arg {
        Arg::Register(register) => Arg::Register(place(register)),
        constant => constant,
    };
    let one = |statement: &Statement| match statement {
        Statement::Compute(compute) => Statement::Compute(Compute {
            target: place(compute.target),
            args: compute.args.iter().map(arg).collect(),
            ..compute.clone()
        }),
        Statement::Load(load) => Statement::Load(Load {
            target: place(load.target),
            table: load.table,
            subscripts: load.subscripts.iter().map(arg).collect(),
        }),
        Statement::If(condition, then, orelse) => {
            Statement::If(place(*condition), renumbered(then, places), renumbered(orelse, places))
        }
        Statement::Block(body) => Statement::Block(renumbered(body, places)),
        Statement::Loop(body) => Statement::Loop(renumbered(body, places)),
        Statement::Leave(block) => Statement::Leave(*block),
    };
    statements.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::STEPS;
    use bh_bytecode::Constant;

    fn operation(opcode: Opcode, operands: &[Source]) -> Beside {
        Beside { opcode, param: 0, output: DType::I64, operands: operands.to_vec() }
    }

    #[test]
    fn operations_around_a_program_are_in_it() {
        let steps = Program::parse(STEPS).unwrap();
        let product = operation(Opcode::Multiply, &[Source::New(DType::I64), Source::New(DType::I64)]);
        let program = steps.after(&product, &[0]).unwrap();
        // The program changes its input, so the operation must read a copy.
        assert!(!program.sets(0) && program.sets(3));
        let program = program.before(&operation(Opcode::Add, &[Source::Result, Source::Input(1)])).unwrap();
        let [three, nine] = [3i64, 9].map(Constant::from_value);
        assert_eq!(program.interpret(&[three, nine], 100_000).map(|all| all[0].to::<i64>()), Ok(111 + 9));
        assert_eq!(Program::parse(&program.to_string()).as_ref(), Ok(&program));
    }

    #[test]
    fn several_inputs_may_be_one_result() {
        let text =
            "program f (i64 i64 i64) -> (i64) with () { r0 = add r0 i64:1; r3 = multiply r0 r1; r3 = add r3 r2; }";
        let program = Program::parse(text).unwrap();
        let double = operation(Opcode::Add, &[Source::Input(2), Source::Input(2)]);
        let program = program.after(&double, &[0, 1]).unwrap();
        assert_eq!(program.interpret(&[Constant::from_value(5i64)], 100).map(|all| all[0].to::<i64>()), Ok(115));
    }
}
