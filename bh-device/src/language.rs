//! The dialect in which kernels are written, and what makes it a language of a driver: C99 with functions of mathematics as
//! OpenCL C names them (`sqrt`, `fmax`, `isnan` for both floating-point types, `min`, `clamp`), the types `uchar`, `ushort`, `uint`,
//! `ulong` and `long` (of 64 bits), the numbers `INFINITY` and `NAN`, and these words, which each language defines:
//!
//! | word | meaning |
//! |---|---|
//! | `BH_KERNEL(items)` | begins a kernel for groups of so many items, before its name |
//! | `BH_FUNCTION` | begins a function that kernels call |
//! | `BH_M_f32(name)`, `BH_M_f64(name)` | a function of mathematics for a type |
//! | `BH_GLOBAL`, `BH_TO_LOCAL` | in a type: a pointer to the device's memory, to that of a group |
//! | `BH_LOCAL` | declares a variable in the memory of a group |
//! | `BH_RESTRICT` | of a parameter: no other leads to its memory |
//! | `BH_ITEM` | number of the item in its group |
//! | `BH_GROUP`, `BH_GROUPS` | number of the group, and how many there are |
//! | `BH_INDEX`, `BH_INDICES` | number of the item among those of all groups, and how many these are |
//! | `BH_BARRIER`, `BH_BARRIER_ALL` | waits for the items of the group, whose writes to the group's memory, or to all memory, are seen then |
//! | `BH_BARRIER_WARP` | waits for the items of the group whose numbers differ in the lowest five bits alone, or for all of them |
//! | `BH_COMPARE_EXCHANGE(place, old, new)` | on an `int` of the device's memory, at once; gives what was there |
//! | `BH_ATOMIC_MAX(place, value)` | likewise |
//! | `BH_ATOMIC_ADD(place, value)` | likewise, on a `uint` of the device's or a group's memory |
//! | `BH_AS(type, value)` | the bits of a value as another type of its size |
//! | `BH_SINCOS(x, place)` | the sine; the cosine goes to a variable |
//! | `BH_VECTOR(type, count)` | a type of 2 or 4 elements `s0`, `s1`, …, aligned to its size |
//!
//! The five numbers of items are of type `ulong`. Products and sums are not contracted.

use bh_bytecode::c::functions;

/// The language of a driver.
#[derive(Debug)]
pub struct Language {
    /// Defines the words of the dialect and the types of elements, `bh_i8` to `bh_c64`.
    pub prelude: &'static str,
    /// Defines `bh_f64` and `bh_c128`, for texts that use them.
    pub f64: &'static str,
    /// The beginning of a kernel in a file of the user.
    pub user_kernel: &'static str,
    /// The text that precedes such a file's own.
    pub user_prelude: &'static str,
}

impl Language {
    /// A complete text: the prelude, the functions that `text` calls, and `text`.
    pub(crate) fn complete(&self, text: &str) -> String {
        let functions = functions(text) + &crate::functions::functions(text);
        let uses_f64 = |text: &str| ["bh_f64", "bh_c128", "double"].iter().any(|name| text.contains(name));
        let f64 = if uses_f64(text) || uses_f64(&functions) { self.f64 } else { "" };
        format!("{}{f64}\n{functions}\n{text}", self.prelude)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A language for tests of texts.
    pub(crate) static PLAIN: Language =
        Language { prelude: "", f64: "typedef double bh_f64;\n", user_kernel: "kernel", user_prelude: "" };

    #[test]
    fn texts_have_double_precision_only_where_they_use_it() {
        assert!(!PLAIN.complete("bh_add_f32(a, b)").contains("double"));
        assert!(PLAIN.complete("bh_add_f64(a, b)").starts_with("typedef double"));
    }
}
