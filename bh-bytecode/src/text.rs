//! The text form of batches, for golden tests, replay and bug reports.
//!
//! ```text
//! bh batch 1
//! base b0 = f64[100] id 17 row 10 pinned born
//! view v0 = b0 at 11 [8:10, 8:1]
//! view v1 = index at 0 [8:8, 8:1]
//! const c0 = f64 0.25
//! origin o1 = "heat.c":42
//! extension x16384 = "matmul"
//! i0: v0 = multiply v0, c0 @o1
//! i1: v2 = add_reduce axes(0,1) order(1,-0) v0
//! i2: v2 = x16384 with("axis": 1) v0
//! i3: sync v2
//! block i0 i1 contracted b1
//! rename b0 uncovered v3 v4 alias b2 v5
//! ```
//!
//! Views give the offset of their first element and, outermost dimension first, extent:stride. Reductions name the axes in the
//! order in which they take their elements, outermost first and with a sign before those that are walked backward, unless it
//! is C order; `fixed_order` in place of `order` asks for a fixed tree. Extension methods give their attributes after `with`. `#` begins a comment.
//! Printing and parsing give back the same batch, bits of floats included, if its pools are packed in the order of the
//! tables, as [`Batch`](crate::Batch)'s own functions do; other batches come back packed.

mod parse;
mod print;

pub use parse::{ParseError, parse};
pub use print::print;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Base, Batch, Constant, Extension, Instr, NO_BASE, Operand, Origin, base_flags};
    use crate::complex::Complex;
    use crate::dtype::DType;
    use crate::opcode::Opcode;
    use crate::order::AxisOrder;
    use crate::random::{Options, Rng, program};
    use crate::truth::Truth;
    use crate::view::View;

    /// A batch that uses every part of the text form.
    fn everything() -> Batch {
        let mut batch = Batch::default();
        let mut base = Base::new(17, DType::F64, 100);
        (base.row_hint, base.flags) = (10, base_flags::PINNED | base_flags::BORN);
        let grid = batch.push_base(base);
        let sum =
            batch.push_base(Base { flags: base_flags::DIES | base_flags::LIVE_OUT, ..Base::new(3, DType::F64, 1) });
        let centre = batch.push_view(grid, &View::new(11, &[8, 8], &[10, -1]).unwrap());
        let total = batch.push_view(sum, &View::default());
        batch.push_view(NO_BASE, &View::new(-5, &[8, 0], &[8, 1]).unwrap());
        let odd = f64::from_bits(0x7ff0_0000_dead_beef);
        for constant in [
            Constant::from_value(0.1f64),
            Constant::from_value(odd),
            Constant::from_value(Complex::new(-0.0f32, f32::NEG_INFINITY)),
            Constant::from_value(Truth::TRUE),
            Constant::from_value(i64::MIN),
            Constant::from_value(5e-324f64),
        ] {
            batch.push_constant(constant);
        }
        let (file, file_len) = batch.push_string("a \"b\"\\\n\u{e9}.c");
        batch.origins.push(Origin { file, file_len, line: 42 });
        batch.origins.push(Origin { file, file_len, line: 0 });
        let opcode = Opcode(Opcode::FIRST_EXTENSION + 3);
        let (name, name_len) = batch.push_string("matmul");
        batch.extensions.push(Extension { opcode, reserved: 0, name, name_len });
        let (centre, total) = (Operand::view(centre), Operand::view(total));
        batch.push_instr(Instr { origin: 2, ..Instr::new(Opcode::Multiply, &[centre, centre, Operand::constant(0)]) });
        batch.push_instr(Instr { param: 0b11, ..Instr::new(Opcode::AddReduce, &[total, centre]) });
        let order = AxisOrder::of_axes(&[(1, false), (0, true)]).map_or(0, |order| order.code());
        batch.push_instr(Instr { param: 0b11, order, ..Instr::new(Opcode::AddReduce, &[total, centre]) });
        batch.push_instr(Instr { param: 4, ..Instr::new(Opcode::Powi, &[total, total]) });
        batch.push_instr(Instr { outputs: 2, ..Instr::new(opcode, &[total, centre, centre]) });
        batch.push_attribute("axis", -1);
        batch.push_attribute("keep \"it\"", i64::MAX);
        batch.push_instr(Instr::new(Opcode::Sync, &[total]));
        batch.push_instr(Instr::new(Opcode::Nop, &[]));
        batch.push_block(&[0, 1], &[1, 0]);
        batch.push_rename(0, &[0, 0], Some((1, 0)));
        batch.push_rename(1, &[], None);
        batch.push_block(&[2, 3, 4, 5, 6], &[]);
        batch
    }

    const GOLDEN: &str = r#"bh batch 1
base b0 = f64[100] id 17 row 10 pinned born
base b1 = f64[1] id 3 dies live_out
view v0 = b0 at 11 [8:10, 8:-1]
view v1 = b1 at 0 []
view v2 = index at 0 [8:0, 0:0]
const c0 = f64 0.1
const c1 = f64 0x7ff00000deadbeef
const c2 = c64 -0.0 -inf
const c3 = bool true
const c4 = i64 -9223372036854775808
const c5 = f64 5e-324
origin o1 = "a \"b\"\\\né.c":42
origin o2 = "a \"b\"\\\né.c":0
extension x16387 = "matmul"
i0: v0 = multiply v0, c0 @o2
i1: v1 = add_reduce axes(0,1) v0
i2: v1 = add_reduce axes(0,1) order(1,-0) v0
i3: v1 = powi exponent(4) v1
i4: v1, v0 = x16387 with("axis": -1, "keep \"it\"": 9223372036854775807) v0
i5: sync v1
i6: nop
block i0 i1 contracted b1 b0
rename b0 uncovered v0 v0 alias b1 v0
rename b1
block i2 i3 i4 i5 i6
"#;

    #[test]
    fn the_text_is_stable_and_comes_back() {
        let batch = everything();
        assert_eq!(print(&batch.as_ref()), GOLDEN);
        assert_eq!(parse(GOLDEN).unwrap(), batch);
        assert_eq!(batch.as_ref().to_string(), GOLDEN);
    }

    #[test]
    fn comments_spaces_and_missing_labels_are_accepted() {
        let text = "bh batch 1 # version\r\n\n  base b0=i8[3]  id 5\nview v0 = b0 at 0 [ 3 : 1 ]\nv0 = add v0 , v0 # no label\n";
        let batch = parse(text).unwrap();
        assert_eq!(batch.instrs, [Instr::new(Opcode::Add, &[Operand::view(0); 3])]);
    }

    #[test]
    fn random_programs_come_back() {
        for seed in 0..300 {
            let batch = program(seed, &Options::default()).batch;
            let text = print(&batch.as_ref());
            assert_eq!(parse(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}")), batch, "seed {seed}");
        }
    }

    #[test]
    fn errors_give_line_and_column() {
        let refused = |text: &str, wanted: &str| {
            let error = parse(&format!("bh batch 1\n{text}")).unwrap_err().to_string();
            assert_eq!(error, wanted);
        };
        assert_eq!(parse("").unwrap_err().to_string(), "line 1, column 1: the text does not begin with `bh batch 1`");
        assert_eq!(parse("bh batch 2\n").unwrap_err().to_string(), "line 1, column 10: version 1 is needed, not `2`");
        refused("base b1 = f64[3] id 1", "line 2, column 6: `b0` is expected, not `b1`");
        refused("base b0 = f65[3] id 1", "line 2, column 11: there is no element type `f65`");
        refused("base b0 = f64[3 id 1", "line 2, column 17: `]` is expected, not `id`");
        refused("base b0 = f64[3] id", "line 2, column 20: a number is expected, not the end of the line");
        refused("base b0 = f64[3] id 1 pined", "line 2, column 23: there is no flag `pined`");
        refused("view v0 = c0 at 0 []", "line 2, column 11: a base or `index` is expected, not `c0`");
        refused("view v0 = index at 0 [-1:1]", "line 2, column 22: extent -1 of dimension 0 is negative");
        refused("const c0 = u8 256", "line 2, column 15: `256` is no u8");
        refused("v0 = ad v0, v0", "line 2, column 6: there is no opcode `ad`");
        refused("i1: nop", "line 2, column 1: `i0` is expected, not `i1`");
        refused("nop @o0", "line 2, column 6: origins count from 1");
        refused("origin o1 = \"x:3", "line 2, column 13: the string does not end");
        let orders = "line 2, column 32: an order of 2 axes names each of them once";
        refused("v0 = add_reduce axes(0) order(0,0) v0", &orders.replace("32", "31"));
        refused("v0 = add_reduce axes(0) order(0,x) v0", "line 2, column 33: an axis is expected, not `x`");
        refused("x16384 with(axis: 1)", "line 2, column 13: a string in quotes is expected, not `axis`");
        refused("x16384 with(\"axis\": 1", "line 2, column 22: `)` is expected, not the end of the line");
        refused("rename b0", "line 2, column 1: there is no block before the rename");
        refused("sync v0 v1", "line 2, column 9: the end of the line is expected, not `v1`");
        refused("nop ?", "line 2, column 5: `?` is not part of the text form");
    }

    #[test]
    fn broken_text_and_broken_batches_never_panic() {
        let mut rng = Rng::new(5);
        for _ in 0..3000 {
            let mut bytes = GOLDEN.as_bytes().to_vec();
            for _ in 0..3 {
                let at = rng.below(bytes.len());
                match rng.below(3) {
                    0 => bytes[at] = b" ,:=[]()@#\"\n019vbcix-"[rng.below(21)],
                    1 => drop(bytes.remove(at)),
                    _ => bytes.truncate(at.max(20)),
                }
            }
            let _ = parse(&String::from_utf8_lossy(&bytes));
        }
        let mut batch = everything();
        batch.bases[0].dtype = 99;
        batch.views[0].dims = 1000;
        batch.views[1].rank = 1 << 31;
        batch.constants[0].dtype = 77;
        batch.origins[0].file = 5000;
        batch.instrs[0].count = 200;
        batch.instrs[1].outputs = 9;
        batch.instrs[2].operands = [Operand::NONE; 8];
        batch.instrs[4].attributes = 77;
        batch.blocks[0].instrs = 77;
        batch.blocks[1].renames = 77;
        assert!(print(&batch.as_ref()).contains("type#99"));
    }
}
