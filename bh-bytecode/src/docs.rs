//! The opcode table as Markdown, for the documentation.

use crate::dtype::{DType, TypeSet};
use crate::methods::{METHODS, Method};
use crate::opcode::{Info, Kind, Opcode, Signature};

/// All opcodes as Markdown, one table per kind, in the order of the table.
pub fn opcode_table() -> String {
    let mut text = String::from(
        "# Opcodes\n\n\
         Generated from the opcode table (`bh-bytecode/src/opcodes.rs`); do not edit.\n\n\
         Types: `bool`, the signed and unsigned integers of 8 to 64 bits, `f32`, `f64`, `c64`, `c128`. Operands are written outputs \
         first; T is one of the listed types. C and C++ call an operation by its name here. Where a function of \
         another language is this operation alone, its column has the name.\n",
    );
    for (kind, title) in KINDS {
        text.push_str(&format!(
            "\n## {title}\n\n| Opcode | Code | Operands | T | C# | NumPy | MiniMatlab | Meaning |\n\
             |---|---|---|---|---|---|---|---|\n"
        ));
        for opcode in Opcode::ALL.iter().filter(|opcode| opcode.kind() == kind) {
            let info = opcode.info();
            text.push_str(&format!(
                "| `{}` | {} | {} | {} | {} | {} | {} | {} |\n",
                info.name,
                opcode.0,
                operands(info),
                types(info.types),
                code(info.csharp),
                code(info.numpy),
                code(info.minimatlab),
                info.doc.replace('|', "\\|")
            ));
        }
    }
    text.push_str(
        "\n## Extension methods\n\nEngines may have others; these come with bh.\n\n\
         | Method | Operands | T | Meaning | Fails for |\n|---|---|---|---|---|\n",
    );
    for method in METHODS {
        let Method { name, operands, types, doc, fails, .. } = method;
        text.push_str(&format!("| `{name}` | {operands} | {types} | {doc} | {fails} |\n"));
    }
    text
}

const KINDS: [(Kind, &str); 6] = [
    (Kind::Elementwise, "Elementwise"),
    (Kind::Reduction, "Reductions"),
    (Kind::Accumulate, "Accumulates"),
    (Kind::Generator, "Generators"),
    (Kind::Index, "Gather and scatter"),
    (Kind::System, "Data management"),
];

/// A name as code; nothing where there is none.
fn code(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("`{name}`") }
}

/// The operands of an opcode in words.
fn operands(info: &Info) -> String {
    let inputs = |from: &str| vec![from; info.inputs as usize].join(", ");
    match info.signature {
        Signature::Same => format!("T ← {}", inputs("T")),
        Signature::Test => format!("bool ← {}", inputs("T")),
        Signature::Abs => "T, or its real type ← T".into(),
        Signature::Part => "real type of T ← T".into(),
        Signature::Cast => "any ← any, but not real ← complex".into(),
        Signature::Select => "T ← bool, T, T".into(),
        Signature::Reduce => "T ← T, along axes".into(),
        Signature::Masked => "T ← T, bool, along axes".into(),
        Signature::Product => "T ← T, T, along axes".into(),
        Signature::Index => "T ← index view".into(),
        Signature::Random => "T ← index view, key".into(),
        Signature::Gather => "T ← T, index".into(),
        Signature::Scatter => "T ← T, index (the output keeps its other elements)".into(),
        Signature::ScatterMask => "T ← T, index, bool (the output keeps its other elements)".into(),
        Signature::System => if info.opcode == Opcode::Nop { "none" } else { "a view of the base" }.into(),
        Signature::Extension => "as the method says".into(),
    }
}

/// A set of types in words.
fn types(set: TypeSet) -> String {
    let named = [
        (TypeSet::ALL, "all"),
        (TypeSet::NUMERIC, "all but bool"),
        (TypeSet::ORDERED, "all but complex"),
        (TypeSet::REAL, "integers, floats"),
        (TypeSet::BITS, "bool, integers"),
        (TypeSet::INT, "integers"),
        (TypeSet::INEXACT, "floats, complex"),
        (TypeSet::FLOAT, "floats"),
        (TypeSet::COMPLEX, "complex"),
    ];
    match named.iter().find(|(known, _)| *known == set) {
        Some((_, name)) => (*name).into(),
        None => set.iter().map(DType::name).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opcode_has_one_line() {
        let table = opcode_table();
        for opcode in Opcode::ALL {
            let cell = format!("| `{}` | {} |", opcode.name(), opcode.0);
            assert_eq!(table.matches(&cell).count(), 1, "{cell}");
        }
    }
}
