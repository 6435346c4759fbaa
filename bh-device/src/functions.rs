//! Functions in their one form, which has the same bits on all engines: texts of the operations of the processor's vectors.

use bh_bytecode::c::type_name;
use bh_bytecode::opcode::SAME_BITS;
use bh_bytecode::{DType, Opcode};
use std::collections::{BTreeSet, HashMap};
use std::sync::{LazyLock, Mutex, PoisonError};

/// The prefix of the names of such functions.
const PREFIX: &str = "bh_same_";

/// Bodies that were written, by opcode and type; `None` for functions that have no text.
type Bodies = HashMap<(Opcode, DType), Option<String>>;

static BODIES: LazyLock<Mutex<Bodies>> = LazyLock::new(Mutex::default);

/// The body of a function.
fn body(opcode: Opcode, dtype: DType) -> Option<String> {
    let mut bodies = BODIES.lock().unwrap_or_else(PoisonError::into_inner);
    bodies.entry((opcode, dtype)).or_insert_with(|| bh_vector::text::body(opcode, dtype)).clone()
}

/// Does a function of these numbers have a text? It computes in double precision.
pub(crate) fn has(opcode: Opcode, dtype: DType) -> bool {
    body(opcode, dtype).is_some()
}

/// [`bh_bytecode::c::expression`], with the one form of functions where the parameter asks for it.
pub(crate) fn expression(opcode: Opcode, param: u16, input: DType, output: DType, args: &[&str]) -> String {
    if opcode.has_variants() && param == SAME_BITS {
        return format!("{PREFIX}{}_{input}({})", opcode.name(), args.join(", "));
    }
    bh_bytecode::c::expression(opcode, param, input, output, args)
}

/// The functions in their one form that a text calls.
pub(crate) fn functions(text: &str) -> String {
    let names: BTreeSet<&str> = text
        .match_indices(PREFIX)
        .map(|(at, _)| {
            let name = &text[at + PREFIX.len()..];
            &name[..name.find('(').unwrap_or(name.len())]
        })
        .collect();
    names.into_iter().filter_map(function).collect()
}

/// The text of a function, by the part of its name after the prefix: its opcode and its type.
fn function(name: &str) -> Option<String> {
    let (opcode, dtype) = name.rsplit_once('_')?;
    let dtype = [DType::F32, DType::F64].into_iter().find(|known| known.to_string() == dtype)?;
    let opcode = Opcode::from_name(opcode)?;
    let number = type_name(dtype);
    let second = if opcode.info().inputs > 1 { format!(", {number} y") } else { String::new() };
    let body = body(opcode, dtype)?;
    Some(format!("BH_FUNCTION {number} {PREFIX}{name}({number} x{second}) {{\n{body}}}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_a_text_calls_are_written_once() {
        let call = expression(Opcode::Exp, SAME_BITS, DType::F32, DType::F32, &["a"]);
        assert_eq!(call, "bh_same_exp_f32(a)");
        let power = expression(Opcode::Power, SAME_BITS, DType::F64, DType::F64, &["a", "b"]);
        let text = functions(&format!("{call} + {call} + {power}"));
        assert_eq!(text.matches("BH_FUNCTION").count(), 2);
        assert!(text.contains("BH_FUNCTION bh_f64 bh_same_power_f64(bh_f64 x, bh_f64 y) {"), "{text}");
        assert!(has(Opcode::Log, DType::F32) && has(Opcode::Sin, DType::F64) && !has(Opcode::Exp, DType::C64));
    }
}
