//! Lanes that take the next elements when they are done. A loop would wait for the last of its lanes; here it is left when half of them
//! are done, these store their results and take other elements, and the others go on where they were. That costs some, so the first
//! elements of a call tell whether it pays: whether many lanes wait.

use super::lanes::{Mask, State};
use crate::builder::{Builder, Element, Kind, Value};
use bh_scalar::{Program, Statement};

/// Programs with more registers are too much to keep for lanes that go on.
const MOST_REGISTERS: usize = 128;

/// The way to the only loop that is in no other: the bodies of the blocks around it, and its own.
pub(super) struct Path {
    blocks: Vec<*const Statement>,
    body: *const Statement,
}

impl Path {
    /// The path to the loop of a program whose lanes may take other elements. None with tables, as their failures must come in order.
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

/// The state of a loop whose lanes take other elements, before and after it.
pub(super) struct Refill<'c> {
    pub(super) path: Path,
    /// The lanes that are in the loop from before, and their values.
    pub(super) stay: Value<'c>,
    pub(super) kept: Vec<Value<'c>>,
    /// The loop goes on while there are more lanes in it than this.
    pub(super) least: Value<'c>,
    /// The lanes that continue later, their values where an iteration begins, and the sum over iterations of active lanes beyond the
    /// number that pays.
    pub(super) left: Option<(Value<'c>, Vec<Value<'c>>, Value<'c>)>,
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

    /// Joins the lanes that reach the loop with those that are in it.
    pub(super) fn enter(&self, b: &Builder<'c>, state: &mut State<'c>, coming: Value<'c>) {
        state.active = Mask::Some(b.or(coming, self.stay));
        for (register, kept) in state.registers.iter_mut().zip(&self.kept) {
            *register = chosen(b, self.stay, *kept, *register);
        }
    }

    /// Notes the lanes that are left in the loop.
    pub(super) fn leave(&mut self, stay: Value<'c>, registers: Vec<Value<'c>>, sum: Value<'c>) {
        self.left = Some((stay, registers, sum));
    }
}

/// One value in the lanes of a mask, another one elsewhere.
fn chosen<'c>(b: &Builder<'c>, mask: Value<'c>, one: Value<'c>, other: Value<'c>) -> Value<'c> {
    b.select(if one.lanes() > mask.lanes() { b.concatenate(mask, mask) } else { mask }, one, other)
}

/// The lanes that a turn has to have so that waiting for the others costs no more than giving them other elements.
pub(super) fn worth(width: u16) -> i64 {
    i64::from(width) / 8 * 3
}

/// The lanes of a mask as the lowest bits of an integer of 64.
pub(super) fn bits<'c>(b: &Builder<'c>, mask: Value<'c>) -> Value<'c> {
    let mut mask = mask;
    while mask.lanes() < 8 {
        // No integer is as narrow as the masks of registers of 128 bits.
        mask = b.concatenate(mask, b.splat(mask.kind, 0));
    }
    b.extend(b.bitcast(mask, Kind::scalar(Element::integer(mask.lanes().into()))), Element::I64)
}

/// How many lanes a mask has.
pub(super) fn count<'c>(b: &Builder<'c>, mask: Value<'c>) -> Value<'c> {
    b.intrinsic("ctpop", &[bits(b, mask)])
}
