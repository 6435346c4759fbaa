//! The meaning of programs: the reference interpreter runs them element by element, operation by operation.

use crate::{Arg, Compute, Load, Program, Statement};
use bh_bytecode::interp::{ExtensionMethods, Memory, execute};
use bh_bytecode::subscript::indexed;
use bh_bytecode::{Base, Batch, BatchRef, Constant, DType, Instr, Operand, Truth, View, with_dtype};

/// Why a program did not finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It exceeded the allowed number of operations.
    Late,
    /// An operation failed.
    Failed(String),
}

/// The outputs for one element.
pub type Interpreted = Result<Vec<Constant>, Stopped>;

/// Where control continues: at the next statement, or behind the enclosing block of this number.
enum Way {
    On,
    Leaves(u16),
}

/// The elements of a table, in C order.
pub struct Elements {
    /// The table's extents.
    pub shape: Vec<i64>,
    /// Its elements.
    pub values: Vec<Constant>,
}

/// The state of one element in a program.
struct Element<'a> {
    program: &'a Program,
    tables: &'a [Elements],
    registers: Vec<Constant>,
    left: u64,
}

impl Program {
    /// The outputs for inputs of the program's types, within a number of operations.
    pub fn interpret(&self, inputs: &[Constant], operations: u64) -> Interpreted {
        self.interpret_with(inputs, &[], operations)
    }

    /// Like [`Program::interpret`], with the elements of tables.
    pub fn interpret_with(&self, inputs: &[Constant], tables: &[Elements], operations: u64) -> Interpreted {
        let mut registers: Vec<Constant> =
            self.registers.iter().map(|&dtype| Constant::from_value(0i64).cast(dtype)).collect();
        registers[..self.inputs].copy_from_slice(inputs);
        let mut element = Element { program: self, tables, registers, left: operations };
        element.list(&self.body)?;
        Ok(element.registers[self.inputs..self.inputs + self.outputs].to_vec())
    }
}

impl Element<'_> {
    fn list(&mut self, statements: &[Statement]) -> Result<Way, Stopped> {
        for statement in statements {
            let way = match statement {
                Statement::Compute(compute) => {
                    self.compute(compute)?;
                    Way::On
                }
                Statement::Load(load) => {
                    self.load(load)?;
                    Way::On
                }
                Statement::If(condition, then, orelse) => {
                    let holds = self.registers[usize::from(*condition)].to::<Truth>().get();
                    self.list(if holds { then } else { orelse })?
                }
                Statement::Block(body) => match self.list(body)? {
                    Way::Leaves(0) => Way::On,
                    Way::Leaves(block) => Way::Leaves(block - 1),
                    Way::On => Way::On,
                },
                Statement::Loop(body) => loop {
                    if let Way::Leaves(block) = self.list(body)? {
                        break Way::Leaves(block);
                    }
                    self.count()?;
                },
                Statement::Leave(block) => Way::Leaves(*block),
            };
            if let Way::Leaves(_) = way {
                return Ok(way);
            }
        }
        Ok(Way::On)
    }

    fn count(&mut self) -> Result<(), Stopped> {
        self.left = self.left.checked_sub(1).ok_or(Stopped::Late)?;
        Ok(())
    }

    fn value(&self, arg: Arg) -> Constant {
        match arg {
            Arg::Register(register) => self.registers[usize::from(register)],
            Arg::Constant(constant) => constant,
        }
    }

    fn load(&mut self, load: &Load) -> Result<(), Stopped> {
        self.count()?;
        let table = &self.tables[usize::from(load.table)];
        let mut place = 0;
        for (dimension, (&extent, &arg)) in table.shape.iter().zip(&load.subscripts).enumerate() {
            let subscript = self.value(arg).to::<i64>();
            let wrong = || Stopped::Failed(self.program.out_of_range(load.table, dimension, subscript, extent));
            place = place * extent + indexed(extent, subscript).ok_or_else(wrong)?;
        }
        self.registers[usize::from(load.target)] = table.values[place as usize];
        Ok(())
    }

    fn compute(&mut self, compute: &Compute) -> Result<(), Stopped> {
        self.count()?;
        let output = self.program.registers[usize::from(compute.target)];
        let args = compute.args.iter().map(|arg| self.value(*arg));
        let result = one(compute, output, args).map_err(Stopped::Failed)?;
        self.registers[usize::from(compute.target)] = result;
        Ok(())
    }
}

/// The result of an operation on one element.
fn one(compute: &Compute, output: DType, args: impl Iterator<Item = Constant>) -> Result<Constant, String> {
    let mut batch = Batch::default();
    let base = batch.push_base(Base::new(1, output, 1));
    let view = View::contiguous(&[1]).map_err(|error| error.to_string())?;
    let mut operands = vec![Operand::view(batch.push_view(base, &view))];
    operands.extend(args.map(|arg| Operand::constant(batch.push_constant(arg))));
    let mut instr = Instr::new(compute.opcode, &operands);
    instr.param = compute.param;
    batch.push_instr(instr);
    let mut memory = Memory::new();
    execute(&batch.as_ref(), &mut memory).map_err(|error| error.message)?;
    let bytes = memory.get(1).unwrap_or_default();
    let mut whole = [0; 16];
    whole[..bytes.len()].copy_from_slice(bytes);
    Ok(Constant::from_bytes(output, &whole))
}

/// Operations per element, at most, when a batch is interpreted.
const MOST: u64 = 10_000_000;

/// The scalar programs, for the reference interpreter of batches.
pub struct ScalarPrograms;

impl ExtensionMethods for ScalarPrograms {
    fn execute(&mut self, name: &str, batch: &BatchRef, instr: &Instr, memory: &mut Memory) -> Result<(), String> {
        let program = Program::parse(name)?;
        let count = instr
            .outputs()
            .first()
            .and_then(|operand| operand.as_view())
            .map_or(0, |view| batch.shape(view).iter().product::<i64>() as usize);
        let mut load = |operand: Operand, dtype: DType, count: usize| -> Result<Vec<Constant>, String> {
            Ok(with_dtype!(dtype, T => {
                memory.load::<T>(batch, operand, count)?.into_iter().map(Constant::from_value).collect()
            }))
        };
        let (given, tables) = instr.inputs().split_at(program.inputs.min(instr.inputs().len()));
        let inputs = given.iter().zip(program.input_types()).map(|(&operand, &dtype)| load(operand, dtype, count));
        let inputs = inputs.collect::<Result<Vec<_>, String>>()?;
        let tables = tables.iter().zip(&program.tables).map(|(&operand, table)| {
            let shape = operand.as_view().map_or_else(Vec::new, |view| batch.shape(view).to_vec());
            let values = load(operand, table.dtype, shape.iter().product::<i64>() as usize)?;
            Ok(Elements { shape, values })
        });
        let tables = tables.collect::<Result<Vec<_>, String>>()?;
        let mut results = vec![Vec::with_capacity(count); program.outputs];
        for at in 0..count {
            let element: Vec<Constant> = inputs.iter().map(|values| values[at]).collect();
            let outputs = program.interpret_with(&element, &tables, MOST).map_err(|stopped| match stopped {
                Stopped::Late => format!("{}: a loop does not seem to end for some elements", program.name),
                Stopped::Failed(text) => text,
            })?;
            results.iter_mut().zip(outputs).for_each(|(all, output)| all.push(output));
        }
        for ((operand, &dtype), values) in instr.outputs().iter().zip(program.output_types()).zip(results) {
            with_dtype!(dtype, T => {
                let values: Vec<T> = values.iter().map(Constant::to::<T>).collect();
                memory.store(batch, *operand, &values)?;
            });
        }
        Ok(())
    }
}
