//! The checks `nan`, `inf` and `nan-all` of operations that run one by one: no result is worse than what it is made of. NaN is worse than an infinity, and that than a finite
//! number.

use super::elements::index_text;
use super::marks::{Class, Events, Marks, allowed, each_class, operation};
use super::name;
use crate::stack::backend::Backend;
use bh_bytecode::{BatchRef, Kind, Opcode};
use bh_core::abi::status;
use bh_core::config::Checks;
use bh_core::error::{Error, Result};

/// How bad each element of an operation's results may be.
pub(super) struct Limit(Marks);

impl Limit {
    /// The limit that the inputs of the batch's operation set, before it runs; `None` if it only moves numbers.
    pub(super) fn of(backend: &mut dyn Backend, batch: &BatchRef<'_>) -> Option<Limit> {
        let instr = operation(batch)?;
        let moves = instr.opcode.kind() == Kind::Index && instr.opcode != Opcode::ScatterAdd;
        if moves { None } else { allowed(backend, batch, &Events::new()).map(Limit) }
    }

    /// Compares the results with the limit, after the operation ran.
    pub(super) fn check(&self, backend: &mut dyn Backend, batch: &BatchRef<'_>, checks: Checks) -> Result<()> {
        let Some(instr) = operation(batch) else { return Ok(()) };
        for view in instr.outputs().iter().filter_map(|operand| operand.as_view()) {
            let mut first: Option<(usize, String, Class)> = None;
            let (mut position, mut count) = (0usize, 0u64);
            let seen = each_class(backend, batch, view, &mut |_, class, value| {
                if is_wanted(class, checks) && class > self.0.at(position).class {
                    count += 1;
                    first.get_or_insert_with(|| (position, value(), class));
                }
                position += 1;
            });
            if let (Some(()), Some((position, value, class))) = (seen, first) {
                let text = format!(
                    "{}: element {} of the result is {value}, {}; elements like that: {count}",
                    name(batch, instr),
                    index_text(batch.shape(view), position),
                    made_of(class),
                );
                return Err(Error::new(status::CHECK, text));
            }
        }
        Ok(())
    }
}

/// Do the checks look for numbers of this class?
pub(super) fn is_wanted(class: Class, checks: Checks) -> bool {
    match class {
        Class::Finite => false,
        Class::Infinite => checks.inf || checks.nan_all,
        Class::Nan => checks.nan || checks.nan_all,
    }
}

/// The words in messages about the inputs of a result that is worse than all of them.
pub(super) fn made_of(class: Class) -> &'static str {
    match class {
        Class::Nan => "but no NaN went into it",
        _ => "but only finite numbers went into it",
    }
}
