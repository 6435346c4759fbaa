//! The C expression column of the opcode table, completed for element types: expressions of C99 and of the languages of devices, and
//! the functions that they call.

use crate::dtype::{DType, TypeSet};
use crate::opcode::{Kind, Opcode};
use std::collections::BTreeSet;

const FUNCTIONS: &str = include_str!("functions.h");

const C_TYPES: &str = "#include <math.h>
#include <stdint.h>
#define BH_FUNCTION static inline
#define BH_M_f32(name) name##f
#define BH_M_f64(name) name
typedef uint8_t bh_bool;
typedef int8_t bh_i8;
typedef int16_t bh_i16;
typedef int32_t bh_i32;
typedef int64_t bh_i64;
typedef uint8_t bh_u8;
typedef uint16_t bh_u16;
typedef uint32_t bh_u32;
typedef uint64_t bh_u64;
typedef float bh_f32;
typedef double bh_f64;
typedef struct { float re, im; } bh_c64;
typedef struct { double re, im; } bh_c128;
";

/// The name that a type has in the text.
pub fn type_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bh_bool",
        DType::I8 => "bh_i8",
        DType::I16 => "bh_i16",
        DType::I32 => "bh_i32",
        DType::I64 => "bh_i64",
        DType::U8 => "bh_u8",
        DType::U16 => "bh_u16",
        DType::U32 => "bh_u32",
        DType::U64 => "bh_u64",
        DType::F32 => "bh_f32",
        DType::F64 => "bh_f64",
        DType::C64 => "bh_c64",
        DType::C128 => "bh_c128",
    }
}

/// The expression of an opcode on arguments of type `input` (that of the last operand; of both elements, for reductions
/// and accumulates). The arguments are names or calls. For RANGE the argument is the index, an `bh_i64`, and for RANDOM
/// index and key, `bh_u64` and `bh_u32`; their type is `output`.
pub fn expression(opcode: Opcode, param: u16, input: DType, output: DType, args: &[&str]) -> String {
    let info = opcode.info();
    let converts = opcode == Opcode::Copy && input.is_float() && output.is_int();
    let suffix = match opcode {
        _ if converts && param == 1 => return format!("bh_wrap_{input}_{output}({})", args[0]),
        _ if converts && param == 2 && output.size() < input.size() => {
            let wide = if input == DType::F32 { DType::I32 } else { DType::I64 };
            return format!("bh_cast_{wide}_{output}(bh_cast_{input}_{wide}({}))", args[0]);
        }
        Opcode::Copy => format!("{input}_{output}"),
        Opcode::Range => format!("i64_{output}"),
        Opcode::Random => output.to_string(),
        _ => input.to_string(),
    };
    let mut text = info.expression.replace("{p}", &param.to_string());
    while let Some(at) = text.find("T(") {
        let name = text[..at].rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |before| before + 1);
        text = format!("{}bh_{}_{suffix}{}", &text[..name], &text[name..at], &text[at + 1..]);
    }
    for (index, place) in ["{i}", "{key}"].iter().enumerate() {
        text = text.replace(place, args.get(index).copied().unwrap_or_default());
    }
    for (index, arg) in args.iter().enumerate() {
        text = text.replace(&format!("{{{index}}}"), arg);
    }
    text
}

/// The neutral element of a reduction or an accumulate.
pub fn neutral(opcode: Opcode, dtype: DType) -> String {
    let (low, high) = range(dtype);
    let number = match opcode.info().neutral {
        "one" => "1".to_owned(),
        "highest" => high,
        "lowest" => low,
        "all_ones" if dtype == DType::Bool => "1".to_owned(),
        "all_ones" => format!("({})~({})0", type_name(dtype), type_name(dtype)),
        _ => "0".to_owned(),
    };
    if dtype.is_complex() { format!("bh_make_{dtype}({number}, 0)") } else { number }
}

/// The smallest and the largest value of a type that is not complex.
fn range(dtype: DType) -> (String, String) {
    let bits = 8 * dtype.size() as u32;
    match dtype {
        DType::Bool => ("0".into(), "1".into()),
        DType::F32 | DType::F64 | DType::C64 | DType::C128 => ("-INFINITY".into(), "INFINITY".into()),
        _ if dtype.is_signed_int() => {
            let highest = i64::MAX >> (64 - bits);
            (format!("(-{highest}L - 1)"), format!("{highest}L"))
        }
        _ => ("0".into(), format!("{}UL", u64::MAX >> (64 - bits))),
    }
}

/// A complete text of C99: the types, the functions that `text` calls, and `text`.
pub fn complete(text: &str) -> String {
    format!("{C_TYPES}\n{}\n{text}", functions(text))
}

/// The functions of this file that a text calls, directly or through others, callees first.
pub fn functions(text: &str) -> String {
    let mut known = BTreeSet::new();
    let mut result = String::new();
    add_functions(text, &mut known, &mut result);
    result
}

fn add_functions(text: &str, known: &mut BTreeSet<String>, result: &mut String) {
    for name in names(text) {
        if known.contains(name) {
            continue;
        }
        known.insert(name.to_owned());
        if let Some(function) = function(name) {
            add_functions(&function, known, result);
            result.push_str(&function);
            result.push('\n');
        }
    }
}

/// The identifiers of a text that begin with `bh_`.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| word.starts_with("bh_"))
}

/// The text of a function by its name, `bh_NAME_TYPE`, `bh_cast_TYPE_TYPE` or `bh_wrap_TYPE_TYPE`.
fn function(name: &str) -> Option<String> {
    let (stem, dtype) = name.strip_prefix("bh_")?.rsplit_once('_')?;
    let dtype = DType::from_name(dtype)?;
    if let Some(from) = stem.strip_prefix("cast_") {
        return Some(cast(DType::from_name(from)?, dtype));
    }
    if let Some(from) = stem.strip_prefix("wrap_") {
        return Some(wrap(DType::from_name(from)?, dtype));
    }
    let section = FUNCTIONS.split("//@ ").skip(1).find(|section| {
        let head = section.lines().next().unwrap_or_default();
        let mut words = head.split(' ');
        words.next().and_then(set).is_some_and(|set| set.contains(dtype)) && words.any(|word| word == stem)
    })?;
    let (_, body) = section.split_once('\n')?;
    let wrapping = if dtype.size() == 8 { "bh_u64" } else { "bh_u32" };
    let text = body.trim_end().replace("$F", stem).replace("$RN", dtype.real_part().name());
    let text = text.replace("$R", type_name(dtype.real_part())).replace("$T", type_name(dtype));
    let text = text.replace("$N", dtype.name()).replace("$W", wrapping).replace("$B", &(8 * dtype.size()).to_string());
    Some(text)
}

/// The type set of a section.
fn set(name: &str) -> Option<TypeSet> {
    Some(match name {
        "BOOL" => TypeSet::BOOL,
        "INT" => TypeSet::INT,
        "SIGNED" => TypeSet::SIGNED,
        "UNSIGNED" => TypeSet::UNSIGNED,
        "FLOAT" => TypeSet::FLOAT,
        "COMPLEX" => TypeSet::COMPLEX,
        "ORDERED" => TypeSet::ORDERED,
        "BITS" => TypeSet::BITS,
        "NUMERIC" => TypeSet::NUMERIC,
        _ => TypeSet(1 << DType::from_name(&name.to_lowercase())? as u16),
    })
}

/// The conversion function between two types; see [`crate::CastFrom`].
fn cast(from: DType, to: DType) -> String {
    let (source, target) = (type_name(from), type_name(to));
    let head = format!("BH_FUNCTION {target} bh_cast_{from}_{to}({source} x)");
    let part = to.real_part();
    let convert = |value: &str| {
        if part == DType::Bool { format!("{value} != 0") } else { format!("({})({value})", type_name(part)) }
    };
    let body = match (from.is_complex(), to.is_complex()) {
        (true, true) => format!("bh_make_{to}({}, {})", convert("x.re"), convert("x.im")),
        (true, false) => convert("x.re"),
        (false, true) => format!("bh_make_{to}({}, 0)", convert("x")),
        (false, false) if from.is_float() && to.is_int() => {
            let (low, high) = range(to);
            let bits = 8 * to.size() as u32;
            let end = if from == DType::F32 { ".0f" } else { ".0" };
            let (below, above) = if to.is_signed_int() {
                let bound = 1u128 << (bits - 1);
                (format!("-{bound}{end}"), format!("{bound}{end}"))
            } else {
                (format!("0{end}"), format!("{}{end}", 1u128 << bits))
            };
            format!("x != x ? 0 : x >= {above} ? ({target}){high} : x <= {below} ? ({target}){low} : ({target})x")
        }
        (false, false) => convert("x"),
    };
    format!("{head} {{ return {body}; }}")
}

/// The conversion function from a float to an integer type as x86-64 has it; see [`crate::CastFrom::wrapped_from`].
fn wrap(from: DType, to: DType) -> String {
    let (source, target) = (type_name(from), type_name(to));
    let through = if to.size() < 4 || to == DType::I32 { DType::I32 } else { DType::I64 };
    let (low, middle) = (range(through).0, type_name(through));
    let end = if from == DType::F32 { ".0f" } else { ".0" };
    let half = 1u128 << (8 * through.size() - 1);
    let inside = format!("x >= -{half}{end} && x < {half}{end} ? ({middle})x : ({middle}){low}");
    let body = match to {
        DType::U64 => format!("x >= {half}{end} ? x < {}{end} ? ({target})x : 0 : ({target})({inside})", 2 * half),
        _ => format!("({target})({inside})"),
    };
    format!("BH_FUNCTION {target} bh_wrap_{from}_{to}({source} x) {{ return {body}; }}")
}

/// Does the opcode have an expression?
pub fn has_expression(opcode: Opcode) -> bool {
    !opcode.info().expression.is_empty() && !matches!(opcode.kind(), Kind::System | Kind::Extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_completed_with_types() {
        let text = |opcode, input, output, args: &[&str]| expression(opcode, 3, input, output, args);
        assert_eq!(text(Opcode::Add, DType::I8, DType::I8, &["v0", "v1"]), "bh_add_i8(v0, v1)");
        assert_eq!(text(Opcode::Powi, DType::F32, DType::F32, &["x"]), "bh_powi3_f32(x)");
        assert_eq!(text(Opcode::Copy, DType::F32, DType::U8, &["x"]), "bh_cast_f32_u8(x)");
        assert_eq!(expression(Opcode::Copy, 1, DType::F32, DType::U8, &["x"]), "bh_wrap_f32_u8(x)");
        assert_eq!(expression(Opcode::Copy, 1, DType::I32, DType::U8, &["x"]), "bh_cast_i32_u8(x)");
        let narrowed = expression(Opcode::Copy, 2, DType::F64, DType::I32, &["x"]);
        assert_eq!(narrowed, "bh_cast_i64_i32(bh_cast_f64_i64(x))");
        assert_eq!(expression(Opcode::Copy, 2, DType::F32, DType::I32, &["x"]), "bh_cast_f32_i32(x)");
        assert_eq!(text(Opcode::Where, DType::F32, DType::F32, &["m", "a", "b"]), "m ? a : b");
        assert_eq!(text(Opcode::Random, DType::U64, DType::F64, &["n", "k"]), "bh_random_f64(n, k)");
    }

    #[test]
    fn every_function_of_the_table_exists() {
        for &opcode in Opcode::ALL.iter().filter(|&&opcode| has_expression(opcode)) {
            for dtype in opcode.info().types.iter() {
                let text = expression(opcode, 2, dtype, dtype, &["a", "b", "c"]);
                for name in names(&text) {
                    assert!(function(name).is_some(), "{opcode}: {name}");
                }
            }
        }
    }

    #[test]
    fn callees_come_first_and_once() {
        let text = functions("bh_pow_c64(a, b)");
        let at = |name: &str| text.find(&format!(" {name}(")).unwrap_or_else(|| panic!("{name} in {text}"));
        assert!(at("bh_exp_c128") < at("bh_any_power_c128") && at("bh_any_power_c128") < at("bh_pow_c64"));
        assert_eq!(text.matches(" bh_make_c128(bh_f64 re").count(), 1);
    }
}
