//! The check `cancellation` inside of scalar programs: the same program with one more result, which says whether a sum or difference
//! in it has lost bits.

use crate::stack::backend::Backend;
use bh_bytecode::batch::MAX_OPERANDS;
use bh_bytecode::methods::is_program;
use bh_bytecode::{Base, Batch, BatchRef, Constant, DType, Extension, Instr, Opcode, Operand, View, base_flags};
use bh_core::config::Checks;
use bh_scalar::{Arg, Compute, Load, MOST_REGISTERS, Program, Statement};

/// The numbers of programs with tests, downwards, between those of the program's own methods and those of the filter.
const LAST: u16 = 0xe000;
const MOST: usize = 4096;

/// A program with tests.
#[derive(Clone, Debug)]
pub(super) struct Tested {
    pub(super) text: String,
    pub(super) opcode: Opcode,
    /// The bits that a sum or difference has to lose for a test to fail.
    pub(super) bits: u8,
}

/// The programs with tests that the stack knows; `None` for those without anything to test, and those that the stack refuses.
#[derive(Default)]
pub(super) struct TestedPrograms(Vec<(String, Checks, Option<Tested>)>);

impl TestedPrograms {
    /// The program with tests that stands for the one that an instruction calls.
    pub(super) fn of(
        &mut self,
        backend: &mut dyn Backend,
        batch: &BatchRef<'_>,
        instr: &Instr,
        checks: Checks,
    ) -> Option<Tested> {
        let name = batch.extension_name(instr.opcode).filter(|name| is_program(name))?;
        let fits = usize::from(instr.count) < MAX_OPERANDS && instr.outputs().first()?.as_view().is_some();
        if checks.cancellation.limit(DType::F64).is_none() || !fits {
            return None;
        }
        if let Some((.., tested)) = self.0.iter().find(|(text, known, _)| text == name && *known == checks) {
            return tested.clone();
        }
        if self.0.len() >= MOST {
            return None;
        }
        let opcode = Opcode(LAST - self.0.len() as u16);
        let program = Program::parse(name).ok().and_then(|program| Writer::test(program, checks));
        let known = program.and_then(|(program, bits)| {
            let text = program.to_string();
            let taken = backend.extmethod(&text, opcode).unwrap_or(false);
            taken.then_some(Tested { text, opcode, bits })
        });
        self.0.push((name.to_owned(), checks, known.clone()));
        known
    }
}

impl Tested {
    /// Makes sure that a batch names the program.
    pub(super) fn declare(&self, batch: &mut Batch) {
        if batch.as_ref().extension_name(self.opcode).is_none() {
            let (name, name_len) = batch.push_string(&self.text);
            batch.extensions.push(Extension { opcode: self.opcode, reserved: 0, name, name_len });
        }
    }

    /// The batch of one operation with this program instead of its own, and the base and the view of what it says.
    pub(super) fn instead(&self, batch: &BatchRef<'_>, id: u64) -> Option<(Batch, Base, u32)> {
        let mut batch = batch.to_owned();
        batch.forget_structure();
        let at = batch.instrs.iter().position(|instr| instr.opcode.is_extension())?;
        let shape = batch.as_ref().shape(batch.instrs[at].operands[0].as_view()?).to_vec();
        let view = View::contiguous(&shape).ok()?;
        let flags = base_flags::BORN | base_flags::LIVE_OUT;
        let base = Base { flags, ..Base::checked(id, DType::Bool, view.len())? };
        let place = batch.push_base(base);
        let view = batch.push_view(place, &view);
        let lost = Operand::view(view);
        self.declare(&mut batch);
        batch.instrs[at] = self.call(&batch.instrs[at], lost);
        Some((batch, base, view))
    }

    /// The call of this program instead of another, with one more output.
    pub(super) fn call(&self, instr: &Instr, lost: Operand) -> Instr {
        let operands: Vec<Operand> = instr.outputs().iter().chain([&lost]).chain(instr.inputs()).copied().collect();
        Instr {
            outputs: instr.outputs + 1,
            origin: instr.origin,
            param: instr.param,
            attributes: instr.attributes,
            ..Instr::new(self.opcode, &operands)
        }
    }
}

/// Writes a program anew, with tests.
struct Writer {
    /// The program, of which the registers come first.
    program: Program,
    checks: Checks,
    /// The register of the new output: those from here on move by one.
    lost: u16,
    bits: Option<u8>,
}

impl Writer {
    /// The program with tests and the fewest bits that they look for; `None` if it has no sums or differences of floats.
    fn test(mut program: Program, checks: Checks) -> Option<(Program, u8)> {
        let body = std::mem::take(&mut program.body);
        let lost = program.inputs + program.outputs;
        program.registers.insert(lost, DType::Bool);
        program.outputs += 1;
        let mut writer = Writer { program, checks, lost: lost as u16, bits: None };
        let body = writer.list(body);
        let Writer { program, bits, .. } = writer;
        (program.registers.len() <= MOST_REGISTERS).then_some(())?;
        Some((Program { body, ..program }, bits?))
    }

    fn list(&mut self, statements: Vec<Statement>) -> Vec<Statement> {
        let mut all = Vec::with_capacity(statements.len());
        for statement in statements {
            match statement {
                Statement::Compute(compute) => self.compute(compute, &mut all),
                Statement::Load(Load { target, table, subscripts }) => {
                    let subscripts = subscripts.into_iter().map(|arg| self.arg(arg)).collect();
                    all.push(Statement::Load(Load { target: self.register(target), table, subscripts }));
                }
                Statement::If(condition, then, orelse) => {
                    let condition = self.register(condition);
                    all.push(Statement::If(condition, self.list(then), self.list(orelse)));
                }
                Statement::Block(body) => all.push(Statement::Block(self.list(body))),
                Statement::Loop(body) => all.push(Statement::Loop(self.list(body))),
                Statement::Leave(block) => all.push(Statement::Leave(block)),
            }
        }
        all
    }

    fn compute(&mut self, compute: Compute, all: &mut Vec<Statement>) {
        let args: Vec<Arg> = compute.args.into_iter().map(|arg| self.arg(arg)).collect();
        let compute = Compute { target: self.register(compute.target), args, ..compute };
        let dtype = self.program.dtype(Arg::Register(compute.target));
        let adds = matches!(compute.opcode, Opcode::Add | Opcode::Subtract);
        let limit = self.checks.cancellation.limit(dtype).filter(|_| adds && (dtype.is_float() || dtype.is_complex()));
        let (Some(bits), Some(&operand)) = (limit, compute.args.first()) else {
            return all.push(Statement::Compute(compute));
        };
        self.bits = Some(self.bits.map_or(bits, |known| known.min(bits)));
        let real = dtype.real_part();
        let number = |value: f64| Arg::Constant(Constant::from_value(value).cast(real));
        let result = Arg::Register(compute.target);
        // The operation may overwrite its operand.
        let operand = self.of(all, Opcode::Absolute, real, vec![operand]);
        all.push(Statement::Compute(compute));
        let size = self.of(all, Opcode::Absolute, real, vec![result]);
        let scaled = self.of(all, Opcode::Multiply, real, vec![size, number(2f64.powi(bits.into()))]);
        let small = self.of(all, Opcode::LessEqual, DType::Bool, vec![scaled, operand]);
        let some = self.of(all, Opcode::Greater, DType::Bool, vec![size, number(0.0)]);
        let both = self.of(all, Opcode::LogicalAnd, DType::Bool, vec![small, some]);
        let lost = Arg::Register(self.lost);
        let args = vec![lost, both];
        all.push(Statement::Compute(Compute { opcode: Opcode::LogicalOr, param: 0, target: self.lost, args }));
    }

    /// An operation whose result is in a new register.
    fn of(&mut self, all: &mut Vec<Statement>, opcode: Opcode, dtype: DType, args: Vec<Arg>) -> Arg {
        let target = self.program.registers.len() as u16;
        self.program.registers.push(dtype);
        all.push(Statement::Compute(Compute { opcode, param: 0, target, args }));
        Arg::Register(target)
    }

    fn arg(&self, arg: Arg) -> Arg {
        match arg {
            Arg::Register(register) => Arg::Register(self.register(register)),
            constant => constant,
        }
    }

    fn register(&self, register: u16) -> u16 {
        register + u16::from(register >= self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_scalar::random;

    #[test]
    fn programs_with_tests_have_the_same_results_and_say_what_is_lost() {
        let text =
            "program f (f64 f64) -> (f64) with (f64) { r3 = subtract r0 r1; r3 = multiply r3 f64:2; r2 = add r3 r0; }";
        let (tested, bits) =
            Writer::test(Program::parse(text).unwrap(), Checks::parse("cancellation").unwrap()).unwrap();
        assert_eq!((bits, tested.outputs), (40, 2));
        assert_eq!(Program::parse(&tested.to_string()).as_ref(), Ok(&tested), "{tested}");
        let of = |a: f64, b: f64| {
            let results = tested.interpret(&[a, b].map(Constant::from_value), 1000).unwrap();
            (results[0].to::<f64>(), results[1].to::<bh_bytecode::Truth>().get())
        };
        let near = 1.0 + 2f64.powi(-40);
        assert_eq!(of(near, 1.0), (2f64.powi(-39) + near, true));
        assert_eq!([of(1.0 + 2f64.powi(-39), 1.0).1, of(1.0, 1.0).1, of(3.0, 1.0).1], [false; 3]);
        let whole = Program::parse("program f (i64) -> (i64) with () { r1 = add r0 i64:1; }").unwrap();
        assert!(Writer::test(whole, Checks::parse("cancellation").unwrap()).is_none());
    }

    #[test]
    fn random_programs_with_tests_have_the_same_results() {
        let mut tests = 0;
        for seed in 0..200 {
            let types = [DType::F64, DType::F32];
            let program = random::program(seed, &types, &types, &random::TYPES);
            let Some((tested, _)) = Writer::test(program.clone(), Checks::parse("cancellation=1").unwrap()) else {
                continue;
            };
            assert_eq!(Program::parse(&tested.to_string()).as_ref(), Ok(&tested), "{tested}");
            let mut numbers = random::Numbers::new(seed);
            let inputs = types.map(|dtype| numbers.constant(dtype));
            let (plain, results) = (program.interpret(&inputs, 100_000), tested.interpret(&inputs, 1_000_000));
            assert_eq!(results.unwrap()[..2], plain.unwrap()[..], "{program}");
            tests += 1;
        }
        assert!(tests > 50, "{tests}");
    }
}
