//! The derivatives of scalar programs: a program that carries the tangent of each register beside it, for one input at a time.
//!
//! Each element goes the way that it goes in the program itself, so that branches and loops need no values of their own.

use super::expression::{Expression, Partial, constant};
use super::{Form, Rule, rule};
use crate::emit::{Emit, Place, Value};
use crate::reverse::{Call, Sweep};
use bh_bytecode::{Constant, DType, Opcode};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_scalar::{Arg, Compute, MOST_REGISTERS, Program, Statement};

impl<'a, E: Emit> Sweep<'a, E> {
    /// Into each input flows the sum over the outputs of their adjoints times their tangents along the input.
    pub(crate) fn program(&mut self, name: &str, calls: &[Call<'a, E::Base>]) -> Result<()> {
        let program = Program::parse(name).map_err(unknown)?;
        let wanted: Vec<usize> = calls.iter().map(|call| call.position).collect();
        let count = calls[0].instr.inputs().len();
        let inputs = (0..count).map(|at| self.input(&calls[0], at)).collect::<Result<Vec<Value<E::Base>>>>()?;
        for at in (0..program.inputs).filter(|&at| calls[0].flows(at)) {
            let tangents = tangents(&program, at, &wanted).ok_or_else(|| unknown(program.name.clone()))?.to_string();
            let outs = calls.iter().map(|call| self.fresh(call.dtype(), call.adjoint.shape()));
            let outs = outs.collect::<Result<Vec<Place<E::Base>>>>()?;
            self.emit.call(&tangents, &outs.iter().collect::<Vec<_>>(), &inputs)?;
            let to = calls[0].input(at).map_or(calls[0].dtype(), |(base, _)| base.dtype());
            for (call, out) in calls.iter().zip(outs) {
                let (dtype, shape) = (call.dtype(), call.out.1);
                let flow =
                    self.both(Opcode::Multiply, call.adjoint.clone().into(), out.into(), dtype, shape.shape())?;
                let flow = self.in_type(flow, dtype, to, shape.shape())?;
                self.flow(call, at, flow, &mut Vec::new())?;
            }
        }
        Ok(())
    }
}

fn unknown(text: String) -> Error {
    Error::new(status::UNSUPPORTED, format!("the derivative of a function of scalars is not known: {text}"))
}

/// Has a scalar program derivatives by these of its operands? Elements of tables have none.
pub(crate) fn is_known(name: &str, active: u8) -> bool {
    let Ok(program) = Program::parse(name) else { return false };
    let reads_tables = (program.inputs..8).any(|at| active >> at & 1 == 1);
    let first = (0..program.inputs).find(|at| active >> at & 1 == 1);
    let wanted: Vec<usize> =
        program.output_types().iter().enumerate().filter(|(_, dtype)| dtype.is_float()).map(|(at, _)| at).collect();
    let is_complex = program.output_types().iter().any(|dtype| dtype.is_complex());
    !reads_tables && !is_complex && first.is_none_or(|at| tangents(&program, at, &wanted).is_some())
}

/// The program whose outputs are the tangents of some outputs along one input; `None` if an operation's derivative is not known.
fn tangents(program: &Program, along: usize, wanted: &[usize]) -> Option<Program> {
    let mut registers: Vec<DType> = program.input_types().to_vec();
    registers.extend(wanted.iter().map(|&at| program.output_types()[at]));
    // The registers of the program itself, behind its inputs.
    let values = registers.len();
    registers.extend(&program.registers[program.inputs..]);
    let mut tangent = vec![None; program.registers.len()];
    for (at, dtype) in program.registers.iter().enumerate().filter(|(_, dtype)| dtype.is_float()) {
        let output = at.checked_sub(program.inputs).and_then(|output| wanted.iter().position(|&other| other == output));
        tangent[at] = Some(match output {
            Some(output) => u16::try_from(program.inputs + output).ok()?,
            None => {
                registers.push(*dtype);
                u16::try_from(registers.len() - 1).ok()?
            }
        });
    }
    let mut made = Tangents { program, values, registers, tangent };
    let seed = made.compute(Opcode::Copy, 0, made.tangent[along]?, vec![number(1.0, program.registers[along])]);
    let mut body = vec![seed];
    body.extend(made.list(&program.body)?);
    let known = Program {
        name: format!("{}_along_{along}", program.name),
        inputs: program.inputs,
        outputs: wanted.len(),
        registers: made.registers,
        tables: program.tables.clone(),
        body,
    };
    (known.registers.len() <= MOST_REGISTERS).then_some(known)
}

fn number(value: f64, dtype: DType) -> Arg {
    Arg::Constant(Constant::from_value(value).cast(dtype))
}

/// A program that is being made.
struct Tangents<'p> {
    program: &'p Program,
    /// The place of the first register of the program behind its inputs.
    values: usize,
    registers: Vec<DType>,
    /// The register with the tangent of each register.
    tangent: Vec<Option<u16>>,
}

impl Tangents<'_> {
    /// A register of the program.
    fn value(&self, register: u16) -> u16 {
        let at = usize::from(register);
        if at < self.program.inputs { register } else { (at - self.program.inputs + self.values) as u16 }
    }

    fn arg(&self, arg: Arg) -> Arg {
        match arg {
            Arg::Register(register) => Arg::Register(self.value(register)),
            constant => constant,
        }
    }

    /// The tangent of an operand; `None` for one without.
    fn along(&self, arg: Arg) -> Option<Arg> {
        match arg {
            Arg::Register(register) => self.tangent[usize::from(register)].map(Arg::Register),
            Arg::Constant(_) => None,
        }
    }

    fn compute(&self, opcode: Opcode, param: u16, target: u16, args: Vec<Arg>) -> Statement {
        Statement::Compute(Compute { opcode, param, target, args })
    }

    /// The result of an operation in a new register.
    fn put(&mut self, body: &mut Vec<Statement>, opcode: Opcode, param: u16, args: Vec<Arg>, dtype: DType) -> Arg {
        self.registers.push(dtype);
        let target = (self.registers.len() - 1).min(usize::from(u16::MAX)) as u16;
        body.push(self.compute(opcode, param, target, args));
        Arg::Register(target)
    }

    fn list(&mut self, statements: &[Statement]) -> Option<Vec<Statement>> {
        let mut made = Vec::new();
        for statement in statements {
            match statement {
                Statement::Compute(compute) => self.operation(&mut made, compute)?,
                Statement::Load(load) => {
                    let mut own = load.clone();
                    own.target = self.value(load.target);
                    own.subscripts = load.subscripts.iter().map(|&arg| self.arg(arg)).collect();
                    made.push(Statement::Load(own));
                    self.clear(&mut made, load.target);
                }
                Statement::If(condition, then, orelse) => {
                    made.push(Statement::If(self.value(*condition), self.list(then)?, self.list(orelse)?));
                }
                Statement::Block(body) => made.push(Statement::Block(self.list(body)?)),
                Statement::Loop(body) => made.push(Statement::Loop(self.list(body)?)),
                Statement::Leave(block) => made.push(Statement::Leave(*block)),
            }
        }
        Some(made)
    }

    /// Gives a register a tangent of zero.
    fn clear(&self, made: &mut Vec<Statement>, register: u16) {
        if let Some(tangent) = self.tangent[usize::from(register)] {
            let zero = number(0.0, self.program.registers[usize::from(register)]);
            made.push(self.compute(Opcode::Copy, 0, tangent, vec![zero]));
        }
    }

    fn operation(&mut self, made: &mut Vec<Statement>, own: &Compute) -> Option<()> {
        let (target, args) = (self.value(own.target), own.args.iter().map(|&arg| self.arg(arg)).collect::<Vec<Arg>>());
        let along: Vec<Option<Arg>> = own.args.iter().map(|&arg| self.along(arg)).collect();
        let dtype = self.program.registers[usize::from(own.target)];
        let plain = self.compute(own.opcode, own.param, target, args.clone());
        let Some(tangent) = self.tangent[usize::from(own.target)].filter(|_| along.iter().any(Option::is_some)) else {
            // Complex numbers would lose a tangent.
            if dtype.is_complex() && along.iter().any(Option::is_some) {
                return None;
            }
            made.push(plain);
            self.clear(made, own.target);
            return Some(());
        };
        let first = own.args.iter().map(|&arg| self.program.dtype(arg)).find(|&dtype| dtype != DType::Bool);
        let zero = number(0.0, dtype);
        let found = match rule(own.opcode, None, first.unwrap_or(dtype)) {
            Rule::Zero => zero,
            Rule::Form(Form::Cast) => self.put(made, Opcode::Copy, 0, vec![along[0]?], dtype),
            Rule::Form(Form::Choice) => {
                let sides = vec![args[0], along[1].unwrap_or(zero), along[2].unwrap_or(zero)];
                self.put(made, Opcode::Where, 0, sides, dtype)
            }
            Rule::Partials(partials) => {
                let value = self.put(made, own.opcode, own.param, args.clone(), dtype);
                let known = Known { args: &args, value, power: own.param, dtype };
                let mut sum = None;
                for (partial, along) in partials.iter().zip(&along) {
                    let Some(along) = *along else { continue };
                    let term = self.term(made, &known, partial, along);
                    sum = Some(match sum {
                        None => term,
                        Some(sum) => self.put(made, Opcode::Add, 0, vec![sum, term], dtype),
                    });
                }
                let sum = sum.unwrap_or(zero);
                made.push(self.compute(Opcode::Copy, 0, target, vec![value]));
                made.push(self.compute(Opcode::Copy, 0, tangent, vec![sum]));
                return Some(());
            }
            Rule::Form(_) | Rule::Missing => return None,
        };
        made.push(plain);
        made.push(self.compute(Opcode::Copy, 0, tangent, vec![found]));
        Some(())
    }

    /// A tangent times a partial derivative. A tangent of zero stays zero, also where the derivative is infinite.
    fn term(&mut self, made: &mut Vec<Statement>, known: &Known<'_>, partial: &Partial, along: Arg) -> Arg {
        let dtype = known.dtype;
        let (opcode, factor) = match partial {
            Partial::One => return along,
            Partial::MinusOne => (Opcode::Multiply, number(-1.0, dtype)),
            Partial::Times(expression) => (Opcode::Multiply, self.evaluate(made, known, expression)),
            Partial::Over(expression) => (Opcode::Divide, self.evaluate(made, known, expression)),
        };
        let term = self.put(made, opcode, 0, vec![along, factor], dtype);
        if matches!(partial, Partial::MinusOne | Partial::Times(Expression::Input(_) | Expression::LowerPower)) {
            return term;
        }
        let zero = number(0.0, dtype);
        let is_zero = self.put(made, Opcode::Equal, 0, vec![along, zero], DType::Bool);
        self.put(made, Opcode::Where, 0, vec![is_zero, zero, term], dtype)
    }

    fn evaluate(&mut self, made: &mut Vec<Statement>, known: &Known<'_>, expression: &Expression) -> Arg {
        let dtype = known.dtype;
        match expression {
            Expression::Input(at) => known.args[usize::from(*at)],
            Expression::Output => known.value,
            Expression::Number(value) => Arg::Constant(constant(*value, dtype)),
            Expression::LowerPower => {
                let (power, x) = (known.power, known.args[0]);
                let lower = if power == 2 { x } else { self.put(made, Opcode::Powi, power - 1, vec![x], dtype) };
                self.put(made, Opcode::Multiply, 0, vec![lower, number(f64::from(power), dtype)], dtype)
            }
            Expression::Of(opcode, a) => {
                let a = self.evaluate(made, known, a);
                self.put(made, *opcode, 0, vec![a], dtype)
            }
            Expression::Both(opcode, a, b) => {
                let (a, b) = (self.evaluate(made, known, a), self.evaluate(made, known, b));
                self.put(made, *opcode, 0, vec![a, b], dtype)
            }
            Expression::Where(test, [a, b], yes, no) => {
                let (a, b) = (self.evaluate(made, known, a), self.evaluate(made, known, b));
                let (yes, no) = (self.evaluate(made, known, yes), self.evaluate(made, known, no));
                let mask = self.put(made, *test, 0, vec![a, b], DType::Bool);
                self.put(made, Opcode::Where, 0, vec![mask, yes, no], dtype)
            }
        }
    }
}

/// The values that the partial derivatives of an operation are made of.
struct Known<'k> {
    args: &'k [Arg],
    value: Arg,
    power: u16,
    dtype: DType,
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_scalar::random;

    fn run(program: &Program, inputs: &[f64]) -> Option<Vec<f64>> {
        let inputs: Vec<Constant> = inputs.iter().map(|&x| Constant::from_value(x)).collect();
        let values = program.interpret(&inputs, 100_000).ok()?;
        Some(values.iter().map(|value| value.to::<f64>()).collect())
    }

    /// The slope of the outputs along an input, where differences of two steps agree.
    fn slope(program: &Program, at: &[f64], along: usize) -> Option<Vec<f64>> {
        let moved = |by: f64| {
            let mut at = at.to_vec();
            at[along] += by;
            run(program, &at)
        };
        let of = |h: f64| -> Option<Vec<f64>> {
            let (a, b, c, d) = (moved(h)?, moved(-h)?, moved(2.0 * h)?, moved(-2.0 * h)?);
            Some((0..a.len()).map(|i| (8.0 * (a[i] - b[i]) - (c[i] - d[i])) / (12.0 * h)).collect())
        };
        let (coarse, fine) = (of(2e-4)?, of(5e-5)?);
        let close = |(a, b): (&f64, &f64)| a.is_finite() && (a - b).abs() <= 1e-6 * b.abs().max(1.0) && b.abs() < 1e6;
        coarse.iter().zip(&fine).all(close).then_some(fine)
    }

    #[test]
    fn tangents_of_random_programs_are_their_slopes() {
        let (mut compared, mut moving) = (0, 0);
        let types = [DType::F64, DType::Bool, DType::I64];
        for seed in 0..6000 {
            let program = random::program(seed, &[DType::F64; 2], &[DType::F64; 2], &types);
            for along in 0..2 {
                let Some(known) = tangents(&program, along, &[0, 1]) else { continue };
                known.validate().unwrap_or_else(|error| panic!("seed {seed}: {error}\n{known}"));
                assert_eq!(Program::parse(&known.to_string()).as_ref(), Ok(&known), "seed {seed}");
                let at = [0.3 + 0.01 * (seed % 97) as f64, 1.7 - 0.013 * (seed % 89) as f64];
                let Some(expected) = slope(&program, &at, along) else { continue };
                // Infinite numbers on the way leave no tangent.
                let finite = |found: &Vec<f64>| found.iter().all(|slope| slope.is_finite());
                let Some(found) = run(&known, &at).filter(finite) else { continue };
                compared += 1;
                moving += usize::from(expected.iter().any(|slope| slope.abs() > 1e-3));
                for (found, expected) in found.iter().zip(&expected) {
                    let close = (found - expected).abs() <= 1e-5 * expected.abs().max(1.0);
                    assert!(
                        close,
                        "seed {seed} along {along}: {found}, differences give {expected}\n{program}\n{known}"
                    );
                }
            }
        }
        println!("{compared} compared, {moving} with slopes");
        assert!(moving > 500, "only {moving} of {compared} programs have slopes");
    }
}
