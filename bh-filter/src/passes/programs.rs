//! Elementwise operations beside a scalar program become part of it, so that what is between them needs no memory.
//!
//! *Proof.* An operation before a program whose result only the program reads moves to it: its inputs are still as it read
//! them, and nothing else changes. A program with one result, which only an operation behind it reads, moves to that one,
//! likewise. So the program never writes elements that it reads. Both fail, and lose their results, by the same causes as
//! before.

use super::Options;
use crate::analysis::{Uses, base_of, erase, output, sweep};
use crate::losses::Losses;
use bh_bytecode::batch::MAX_OPERANDS;
use bh_bytecode::methods::is_program;
use bh_bytecode::{Batch, Extension, Instr, Kind, Opcode, Operand};
use bh_scalar::Program;
use bh_scalar::fuse::{Beside, Source};
use std::cell::RefCell;

/// The numbers of programs that the pass makes, from the last one downwards, far from those of the program's methods.
const LAST: u16 = u16::MAX - 1;
const MOST: usize = 4096;

/// The programs that the pass made, by number, and what the stack below says of them.
#[derive(Default)]
pub struct Made {
    all: RefCell<Vec<(String, Answer)>>,
}

/// The stack's answer to a program.
#[derive(Clone, Copy, PartialEq)]
enum Answer {
    Unasked,
    Taken,
    Refused,
}

impl Made {
    /// Asks about programs that are new; says whether all are taken.
    pub fn announce<E>(&self, mut ask: impl FnMut(&str, Opcode) -> Result<bool, E>) -> Result<bool, E> {
        let mut taken = true;
        for (number, (text, answer)) in self.all.borrow_mut().iter_mut().enumerate() {
            if *answer == Answer::Unasked {
                *answer = if ask(text, Opcode(LAST - number as u16))? { Answer::Taken } else { Answer::Refused };
                taken &= *answer == Answer::Taken;
            }
        }
        Ok(taken)
    }

    /// The number of a program, unless the stack below refuses it.
    fn number(&self, text: &str) -> Option<Opcode> {
        let mut all = self.all.borrow_mut();
        let known = all.iter().position(|(known, _)| known == text);
        let number = known.unwrap_or(all.len());
        if known.is_none() {
            if number >= MOST {
                return None;
            }
            all.push((text.to_owned(), Answer::Unasked));
        }
        (all[number].1 != Answer::Refused).then_some(Opcode(LAST - number as u16))
    }
}

/// A call of a program, and the operation that is part of it now.
struct Grown {
    program: Program,
    operands: Vec<Operand>,
    /// Where it stands, and what goes.
    at: u32,
    gone: u32,
}

/// Runs the pass.
pub fn run(batch: &mut Batch, options: &Options) -> usize {
    if !batch.extensions.iter().any(|extension| name(batch, extension.opcode).is_some()) {
        return 0;
    }
    let mut changed = 0;
    for at in 0..batch.instrs.len() as u32 {
        if let Some(program) = call(batch, at) {
            changed += grow(batch, options, program, at);
        }
    }
    if changed > 0 {
        sweep(batch);
    }
    changed
}

/// Makes operations part of the program that is called at `at`, one after the other, and returns how many. Operations that
/// the stack below refuses stay as they were.
fn grow(batch: &mut Batch, options: &Options, mut program: Program, mut at: u32) -> usize {
    let mut before = Vec::new();
    loop {
        let (uses, mut losses) = (Uses::of(batch), Losses::of(batch));
        let grown = with_before(batch, &program, &uses, &mut losses, at);
        let Some(grown) = grown.or_else(|| with_behind(batch, &program, &uses, &mut losses, at)) else { break };
        let mut instr = Instr::new(batch.instrs[at as usize].opcode, &grown.operands);
        instr.outputs = grown.program.outputs as u8;
        instr.origin = batch.instrs[grown.at as usize].origin;
        before.extend([grown.at, grown.gone].map(|at| (at, batch.instrs[at as usize])));
        batch.instrs[grown.at as usize] = instr;
        erase(&mut batch.instrs[grown.gone as usize]);
        (program, at) = (grown.program, grown.at);
    }
    if before.is_empty() {
        return 0;
    }
    let text = program.to_string();
    let Some(opcode) = options.programs.number(&text) else {
        before.iter().rev().for_each(|(at, instr)| batch.instrs[*at as usize] = *instr);
        return 0;
    };
    if batch.as_ref().extension_name(opcode).is_none() {
        let (name, name_len) = batch.push_string(&text);
        batch.extensions.push(Extension { opcode, reserved: 0, name, name_len });
    }
    batch.instrs[at as usize].opcode = opcode;
    before.len() / 2
}

fn name(batch: &Batch, opcode: Opcode) -> Option<String> {
    let found = if opcode.is_extension() { batch.as_ref().extension_name(opcode)?.to_owned() } else { return None };
    is_program(&found).then_some(found)
}

/// The program that an instruction calls.
fn call(batch: &Batch, at: u32) -> Option<Program> {
    let instr = batch.instrs[at as usize];
    let program = Program::parse(&name(batch, instr.opcode)?).ok()?;
    let fits =
        usize::from(instr.outputs) == program.outputs && instr.inputs().len() == program.inputs + program.tables.len();
    fits.then_some(program)
}

/// A program with an operation before it.
fn with_before(batch: &Batch, program: &Program, uses: &Uses, losses: &mut Losses, at: u32) -> Option<Grown> {
    let instr = batch.instrs[at as usize];
    let (own, tables) = instr.inputs().split_at(program.inputs);
    own.iter().find_map(|&operand| {
        let view = operand.as_view()?;
        let gone = uses.definition(batch, view, at)?;
        let before = batch.instrs[gone as usize];
        let made = output(&before)?;
        let is_free = before.opcode.kind() == Kind::Elementwise
            && batch.as_ref().shape(made) == batch.as_ref().shape(view)
            && uses.is_read_only_by(batch, view, at)
            && own
                .iter()
                .chain(tables)
                .all(|other| *other == operand || base_of(batch, *other) != base_of(batch, operand))
            && before
                .inputs()
                .iter()
                .all(|input| input.as_view().is_none_or(|view| !uses.changed(batch, view, gone, at)))
            && are_apart(batch, instr.outputs(), before.inputs());
        if !is_free || tables.contains(&operand) {
            return None;
        }
        let fed: Vec<usize> = (0..own.len()).filter(|input| own[*input] == operand).collect();
        let kept: Vec<Operand> = own.iter().copied().filter(|other| *other != operand).collect();
        let (sources, new) = sources(batch, &before, |input| own.iter().position(|own| *own == input))?;
        let operation = Beside {
            opcode: before.opcode,
            param: before.param,
            output: batch.as_ref().dtype(operand)?,
            operands: sources,
        };
        let inputs = [&kept[..], &new, tables].concat();
        let operands = [instr.outputs(), &inputs].concat();
        let fits = operands.len() <= MAX_OPERANDS && losses.keeps(batch, at, &inputs);
        let program = if fits { program.after(&operation, &fed).ok()? } else { return None };
        Some(Grown { program, operands, at, gone })
    })
}

/// A program with an operation behind it.
fn with_behind(batch: &Batch, program: &Program, uses: &Uses, losses: &mut Losses, at: u32) -> Option<Grown> {
    let instr = batch.instrs[at as usize];
    let result = output(&instr)?;
    let base = base_of(batch, Operand::view(result));
    let reads = |instr: &Instr| instr.inputs().iter().find(|input| base_of(batch, **input) == base).copied();
    let (behind, read) = (at + 1..batch.instrs.len() as u32)
        .find_map(|behind| Some((behind, reads(&batch.instrs[behind as usize])?)))?;
    let (view, operation) = (read.as_view()?, batch.instrs[behind as usize]);
    let (own, tables) = instr.inputs().split_at(program.inputs);
    let is_free = operation.opcode.kind() == Kind::Elementwise
        && output(&operation).is_some()
        && uses.is_read_only_by(batch, view, behind)
        && uses.definition(batch, view, behind) == Some(at)
        && batch.as_ref().shape(view) == batch.as_ref().shape(result)
        && operation.inputs().iter().all(|input| *input == read || base_of(batch, *input) != base)
        && instr.inputs().iter().all(|input| input.as_view().is_none_or(|view| !uses.changed(batch, view, at, behind)))
        && are_apart(batch, operation.outputs(), instr.inputs())
        && are_apart(batch, operation.outputs(), operation.inputs());
    if !is_free {
        return None;
    }
    let shared = |input: Operand| own.iter().position(|own| *own == input).filter(|input| !program.sets(*input));
    let (mut sources, mut new) = sources(batch, &operation, shared)?;
    // The result itself is none of the inputs.
    for (source, input) in sources.iter_mut().zip(operation.inputs()) {
        if *input == read {
            *source = Source::Result;
        }
    }
    new.retain(|input| *input != read);
    let output = batch.as_ref().dtype(operation.outputs()[0])?;
    let beside = Beside { opcode: operation.opcode, param: operation.param, output, operands: sources };
    let inputs = [own, &new, tables].concat();
    let operands = [operation.outputs(), &inputs].concat();
    let fits = operands.len() <= MAX_OPERANDS && losses.keeps_with(batch, behind, at, &inputs);
    let program = if fits { program.before(&beside).ok()? } else { return None };
    Some(Grown { program, operands, at: behind, gone: at })
}

/// Where an operation's inputs come from: inputs that the program has, or new ones, which come too.
fn sources(
    batch: &Batch,
    operation: &Instr,
    shared: impl Fn(Operand) -> Option<usize>,
) -> Option<(Vec<Source>, Vec<Operand>)> {
    let mut new = Vec::new();
    let all = operation.inputs().iter().map(|&input| {
        if let Some(own) = shared(input) {
            return Some(Source::Input(own));
        }
        let dtype = batch.as_ref().dtype(input)?;
        new.push(input);
        Some(Source::New(dtype))
    });
    let all = all.collect::<Option<Vec<_>>>()?;
    Some((all, new))
}

/// Is nothing written that is read?
fn are_apart(batch: &Batch, outputs: &[Operand], inputs: &[Operand]) -> bool {
    outputs.iter().all(|output| inputs.iter().all(|input| base_of(batch, *input) != base_of(batch, *output)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::interp::{Interpreter, Memory};
    use bh_bytecode::validate::validate;
    use bh_bytecode::{Base, Constant, DType, View, base_flags};
    use bh_scalar::ScalarPrograms;

    const METHOD: Opcode = Opcode(Opcode::FIRST_EXTENSION);
    const COUNT: i64 = 5;
    const NAME: &str = "program f (i64) -> (i64) with (bool) \
        { block { loop { r2 = less r0 i64:40; if r2 { } else { leave 0 } r0 = multiply r0 i64:3; r1 = add r1 i64:1; } } }";

    /// Arrays a, b, c, t, u, d, of which t and u are dropped at the end, and t = a · b; u = f(t); d = u − c.
    struct Case {
        batch: Batch,
        views: Vec<Operand>,
    }

    fn case(changes: impl Fn(&mut Batch, &[Operand])) -> Case {
        let mut batch = Batch::default();
        let mut views = Vec::new();
        for at in 0..6 {
            let mut base = Base::new(at + 1, DType::I64, COUNT);
            let is_temporary = at == 3 || at == 4;
            base.flags = if is_temporary { base_flags::BORN | base_flags::DIES } else { base_flags::LIVE_OUT };
            let base = batch.push_base(base);
            views.push(Operand::view(batch.push_view(base, &View::contiguous(&[COUNT]).unwrap())));
        }
        let [a, b, c, t, u, d] = views[..] else { unreachable!() };
        batch.push_instr(Instr::new(Opcode::Multiply, &[t, a, b]));
        batch.push_instr(Instr::new(METHOD, &[u, t]));
        changes(&mut batch, &views);
        batch.push_instr(Instr::new(Opcode::Subtract, &[d, u, c]));
        for operand in [t, u] {
            let mut drop = Instr::new(Opcode::Discard, &[operand]);
            drop.outputs = 0;
            batch.push_instr(drop);
        }
        let (name, name_len) = batch.push_string(NAME);
        batch.extensions.push(Extension { opcode: METHOD, reserved: 0, name, name_len });
        validate(&batch.as_ref()).unwrap();
        Case { batch, views }
    }

    /// The array d, and how many instructions the pass changed. The results have to be those of the batch as it was.
    fn check(case: &Case) -> (usize, Batch) {
        let run = |batch: &Batch| {
            let mut memory = Memory::new();
            for base in &batch.bases {
                let values = (0..COUNT).map(|at| at + 2 * base.id as i64);
                memory.insert(base.id, values.flat_map(i64::to_ne_bytes).collect());
            }
            let extensions = Some(&mut ScalarPrograms as _);
            Interpreter { memory: &mut memory, extensions, magnitudes: None }.execute(&batch.as_ref()).unwrap();
            [1, 2, 3, 6].map(|id| memory.get(id).unwrap().to_vec())
        };
        let (options, mut made) = (Options::default(), case.batch.clone());
        let changed = super::run(&mut made, &options);
        validate(&made.as_ref()).unwrap();
        assert_eq!(run(&made), run(&case.batch));
        (changed, made)
    }

    #[test]
    fn operations_before_and_behind_are_part_of_a_program() {
        let case = case(|_, _| ());
        let (changed, made) = check(&case);
        assert_eq!(changed, 2);
        let [program, ..] = made.instrs[..] else { panic!("nothing is left") };
        let [a, b, c, _, _, d] = case.views[..] else { unreachable!() };
        assert_eq!(program.operands(), [d, a, b, c]);
        assert!(made.instrs.iter().skip(1).all(|instr| instr.opcode.kind() == Kind::System));
    }

    #[test]
    fn what_is_read_elsewhere_or_changes_meanwhile_stays() {
        // The result of the first operation is read again; then that of the program.
        let read = |which: usize| {
            case(move |batch, views| _ = batch.push_instr(Instr::new(Opcode::Add, &[views[5], views[which], views[2]])))
        };
        assert_eq!(check(&read(3)).0, 1);
        assert_eq!(check(&read(4)).0, 1);
        // c changes before d is made of it, which is the operation's own matter; b changes before that, which f would not see.
        let change = |which: usize| {
            case(move |batch, views| {
                let one = Operand::constant(batch.push_constant(Constant::from_value(1i64)));
                _ = batch.push_instr(Instr::new(Opcode::Add, &[views[which], views[which], one]));
            })
        };
        assert_eq!(check(&change(2)).0, 2);
        assert_eq!(check(&change(1)).0, 1);
    }

    #[test]
    fn what_the_stack_refuses_is_not_made_again() {
        let (options, Case { batch, .. }) = (Options::default(), case(|_, _| ()));
        let mut made = batch.clone();
        assert_eq!(super::run(&mut made, &options), 2);
        let refuse = |options: &Options| options.programs.announce::<()>(|_, _| Ok(false)).unwrap();
        assert!(!refuse(&options) && refuse(&options));
        assert_eq!(super::run(&mut batch.clone(), &options), 0);
    }
}
