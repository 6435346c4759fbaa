//! Lanes that take the next elements when they are done. A loop would wait for the last of its lanes; here it is left when half of them
//! are done, these store their results and take other elements, and the others go on where they were. That costs some, so the first
//! elements of a call tell whether it pays: whether many lanes wait.

use super::flow::{Exit, Flow, Mask, State};
use super::operation::Operations;
use super::tables::Tables;
use crate::builder::{Block, Builder, Element, Kind, Phi, Value};
use crate::complex;
use crate::memory::{pack, unpack};
use bh_bytecode::DType;
use bh_scalar::{Program, Statement};
use inkwell::IntPredicate as Int;

/// Programs with more registers are too much to keep for lanes that go on.
const MOST_REGISTERS: usize = 128;

/// The way to the only loop that is in no other: the bodies of the blocks around it, and its own.
pub(super) struct Path {
    blocks: Vec<*const Statement>,
    body: *const Statement,
}

impl Path {
    /// The path of a program whose lanes may take other elements; what tables fail with has to come in order.
    pub(super) fn of(program: &Program) -> Option<Path> {
        if !program.tables.is_empty() || program.registers.len() > MOST_REGISTERS {
            return None;
        }
        let (mut list, mut blocks) = (&program.body, Vec::new());
        loop {
            let mut with_loops = list.iter().filter(|statement| has_loops(statement));
            let only = with_loops.next()?;
            if with_loops.next().is_some() {
                return None;
            }
            match only {
                Statement::Block(body) => {
                    blocks.push(body.as_ptr());
                    list = body;
                }
                Statement::Loop(body) => return Some(Path { blocks, body: body.as_ptr() }),
                _ => return None,
            }
        }
    }
}

/// Is it a loop, or are there loops in it?
pub(super) fn has_loops(statement: &Statement) -> bool {
    matches!(statement, Statement::Loop(_)) || statement.parts().into_iter().flatten().any(has_loops)
}

/// What a loop whose lanes take other elements needs, and leaves.
pub(super) struct Refill<'c> {
    path: Path,
    /// The lanes that are in the loop from before, and what they have.
    stay: Value<'c>,
    kept: Vec<Value<'c>>,
    /// The loop goes on while there are more lanes in it than this.
    pub(super) least: Value<'c>,
    /// The lanes that go on later, what they have where a turn begins, and by how many lanes the turns had more than what is worth it.
    left: Option<(Value<'c>, Vec<Value<'c>>, Value<'c>)>,
}

impl<'c> Refill<'c> {
    /// Is it the body of a block around the loop?
    pub(super) fn is_around(&self, body: &[Statement]) -> bool {
        self.path.blocks.contains(&body.as_ptr())
    }

    /// Is it the loop's body?
    pub(super) fn is_loop(&self, body: &[Statement]) -> bool {
        self.path.body == body.as_ptr()
    }

    /// Those who come to the loop, and those who are in it.
    pub(super) fn enter(&self, b: &Builder<'c>, state: &mut State<'c>, coming: Value<'c>) {
        state.active = Mask::Some(b.or(coming, self.stay));
        for (register, kept) in state.registers.iter_mut().zip(&self.kept) {
            *register = chosen(b, self.stay, *kept, *register);
        }
    }

    /// Notes who is left in the loop.
    pub(super) fn leave(&mut self, stay: Value<'c>, registers: Vec<Value<'c>>, sum: Value<'c>) {
        self.left = Some((stay, registers, sum));
    }
}

/// What the lanes of a mask have of one value, and the others of another one.
fn chosen<'c>(b: &Builder<'c>, mask: Value<'c>, one: Value<'c>, other: Value<'c>) -> Value<'c> {
    b.select(if one.lanes() > mask.lanes() { b.concatenate(mask, mask) } else { mask }, one, other)
}

/// The lanes that a turn has to have so that waiting for the others costs no more than giving them other elements.
pub(super) fn worth(width: u16) -> i64 {
    i64::from(width) / 8 * 3
}

/// How many lanes a mask has.
pub(super) fn count<'c>(b: &Builder<'c>, mask: Value<'c>) -> Value<'c> {
    let bits = b.bitcast(mask, Kind::scalar(Element::integer(mask.lanes().into())));
    b.extend(b.intrinsic("ctpop", &[bits]), Element::I64)
}

/// Of each lane, how many lanes of a mask are before it.
fn before<'c>(b: &Builder<'c>, mask: Value<'c>) -> Value<'c> {
    let width = mask.lanes();
    let bits = b.extend(b.bitcast(mask, Kind::scalar(Element::integer(width.into()))), Element::I64);
    let lower = b.numbers(Element::I64, (0..width).map(|lane| (1 << lane) - 1));
    b.intrinsic("ctpop", &[b.and(b.broadcast(bits, width), lower)])
}

/// The addresses of a part of elements.
fn addresses<'c>(b: &Builder<'c>, place: Value<'c>, dtype: DType, elements: Value<'c>, number: u16) -> Value<'c> {
    let size = b.numbers(Element::I64, (0..elements.lanes()).map(|_| dtype.size() as i64));
    let first = b.byte(place, b.index(i64::from(number) * dtype.real_part().size() as i64));
    b.bytes(first, b.mul(elements, size))
}

/// Reads elements in the lanes of a mask.
fn load<'c>(b: &Builder<'c>, place: Value<'c>, dtype: DType, elements: Value<'c>, mask: Value<'c>) -> Value<'c> {
    let part = dtype.real_part();
    let read = |number| {
        let from = addresses(b, place, dtype, elements, number);
        b.gather(Kind::memory(part, mask.lanes()), from, part.size(), mask)
    };
    if dtype.is_complex() { b.concatenate(read(0), read(1)) } else { unpack(b, dtype, read(0)) }
}

/// Writes elements in the lanes of a mask.
fn store<'c>(
    b: &Builder<'c>,
    value: Value<'c>,
    (place, dtype): (Value<'c>, DType),
    elements: Value<'c>,
    mask: Value<'c>,
) {
    let parts = if dtype.is_complex() { complex::split(b, value).to_vec() } else { vec![pack(b, dtype, value)] };
    for (number, value) in (0..).zip(parts) {
        b.scatter(value, addresses(b, place, dtype, elements, number), dtype.real_part().size(), mask);
    }
}

/// Builds the code for elements of which there is at least one, behind the block at hand, and jumps to a block when all are done. Where few
/// lanes wait, others do the rest, at the end of what is built; returned is where they begin.
pub(super) fn build<'a, 'c>(
    b: &'a Builder<'c>,
    program: &'a Program,
    path: Path,
    (operations, tables): (Operations<'c>, Tables<'c>),
    (places, all, width, turns): (&[Value<'c>], Value<'c>, u16, Value<'c>),
    exit: Block<'c>,
) -> Result<(Operations<'c>, Tables<'c>, Value<'c>), String> {
    let (entry, none) = (b.current(), b.index(0));
    let [turn, rest, more] = b.blocks(["elements", "rest", "more"]);
    let zeros: Vec<Value> = program.registers.iter().map(|dtype| b.zero(Kind::registers(*dtype, width))).collect();
    let (numbers, lanes) = (b.zero(Kind::vector(Element::I64, width)), b.zero(Kind::vector(Element::Bit, width)));
    b.jump(turn);
    b.begin(turn);
    let next = b.phi(Kind::I64, &[(none, entry)]);
    let (held, stay) = (b.phi(numbers.kind, &[(numbers, entry)]), b.phi(lanes.kind, &[(lanes, entry)]));
    let kept: Vec<Phi> = zeros.iter().map(|zero| b.phi(zero.kind, &[(*zero, entry)])).collect();
    let is_first = b.compare(Int::EQ, next.value, none);
    let free = b.not(stay.value);
    let taken = b.add(b.broadcast(next.value, width), before(b, free));
    let fresh = b.and(free, b.compare(Int::SLT, taken, b.broadcast(all, width)));
    let elements = b.select(free, taken, held.value);
    let following = b.add(next.value, count(b, free));
    let is_more = b.compare(Int::SLT, following, all);
    let waits = b.and(is_more, b.not(is_first));
    let least = b.select(waits, b.index(i64::from(width) / 2), none);
    let mut registers = zeros.clone();
    for (register, &dtype) in program.input_types().iter().enumerate() {
        registers[register] = load(b, places[register], dtype, elements, fresh);
    }
    let carried = kept.iter().map(|phi| phi.value).collect();
    let mut flow = Flow::new(b, program, (operations, tables), (fresh, turns));
    flow.refill = Some(Refill { path, stay: stay.value, kept: carried, least, left: None });
    let mut state = State { registers, active: Mask::Some(fresh), exits: Vec::<Exit>::new() };
    flow.list(&mut state, &program.body)?;
    let done = match state.active {
        Mask::Some(done) => done,
        Mask::All => fresh,
        Mask::Nobody => lanes,
    };
    for (at, &dtype) in program.output_types().iter().enumerate() {
        let register = program.inputs + at;
        store(b, state.registers[register], (places[register], dtype), elements, done);
    }
    let left = flow.refill.take().and_then(|refill| refill.left);
    // Nobody may ever come to the loop.
    let (waiting, values, sum) = left.unwrap_or((lanes, zeros, none));
    // Loops that never end have been given up.
    let goes_on = b.compare(Int::SGE, b.load(Kind::I64, turns, 8), none);
    let goes_on = b.and(goes_on, b.or(is_more, b.any(waiting)));
    b.branch(goes_on, (more, exit));
    b.begin(more);
    let pays = b.or(b.not(is_first), b.compare(Int::SLT, sum, none));
    let end = b.current();
    next.add(following, end);
    held.add(elements, end);
    stay.add(waiting, end);
    kept.iter().zip(values).for_each(|(phi, value)| phi.add(value, end));
    b.branch(pays, (turn, rest));
    b.begin(rest);
    Ok((flow.operations, flow.tables, following))
}
