//! Golden tests: a block in, its loop nests out.

use crate::{Runner, describe, lower};
use bh_bytecode::text::parse;

#[track_caller]
fn golden(batch: &str, expected: &str) {
    let batch = parse(&format!("bh batch 1\n{batch}")).unwrap();
    let actual = describe(&lower(&batch.as_ref(), 0, Runner::Vectors));
    assert_eq!(actual, expected.trim_start_matches('\n'), "\n{actual}");
}

/// The heat equation: one grid read, one written, the work array nowhere, the sum of changes in the same nest.
#[test]
fn stencil_with_rename_and_sum() {
    golden(
        "base b0 = f64[36] id 1
base b1 = f64[16] id 2 born dies
base b2 = f64[16] id 3 born dies
base b3 = f64[1] id 4
const c0 = f64 0.5
view v0 = b0 at 7 [4:6, 4:1]
view v1 = b0 at 1 [4:6, 4:1]
view v2 = b1 at 0 [4:4, 4:1]
view v3 = b2 at 0 [4:4, 4:1]
view v4 = b3 at 0 []
view v5 = b0 at 0 [1:0, 6:1]
i0: v2 = add v0, v1
i1: v2 = multiply v2, c0
i2: v3 = subtract v2, v0
i3: v4 = add_reduce axes(0,1) v3
i4: v0 = copy v2
block i0 i1 i2 i3 i4 contracted b1 b2
rename b0 uncovered v5
",
        "
for [reduced 4] [reduced 4]
  s0: read f64 unit base0 + 7 [6, 1]
  s1: read f64 unit base0 + 1 [6, 1]
  s2: result f64 broadcast base3 + 0 [0, 0]
  s3: write f64 unit fresh0 + 7 [6, 1]
  v0 f64 = load s0
  v1 f64 = load s1
  v2 f64 = add v0 v1
  v3 f64 = multiply v2 c0
  v4 f64 = subtract v3 v0
  add_reduce s2 v4
  store s3 v3
",
    );
}

/// Expand, then reduce: the box is never stored, and the consumers of the sums run over the kept axis.
#[test]
fn expansion_with_epilogue() {
    golden(
        "base b0 = f64[100] id 1
base b1 = f64[10000] id 2 born dies
base b2 = f64[100] id 3 born dies
base b3 = f64[100] id 4
const c0 = f64 0.25
view v0 = b0 at 0 [100:1, 100:0]
view v1 = b0 at 0 [100:0, 100:1]
view v2 = b1 at 0 [100:100, 100:1]
view v3 = b2 at 0 [100:1]
view v4 = b3 at 0 [100:1]
i0: v2 = subtract v1, v0
i1: v3 = add_reduce axes(1) v2
i2: v3 = multiply v3, c0
i3: v4 = add v4, v3
block i0 i1 i2 i3 contracted b1 b2
",
        "
temporary0: f64 x 100
for [100] [reduced 100]
  s0: read f64 unit base0 + 0 [0, 1]
  s1: read f64 broadcast base0 + 0 [1, 0]
  s2: result f64 broadcast temporary0 + 0 [1, 0]
  v0 f64 = load s0
  v1 f64 = load s1
  v2 f64 = subtract v0 v1
  add_reduce s2 v2
for [100]
  s0: read f64 unit temporary0 + 0 [1]
  s1: read f64 unit base3 + 0 [1]
  s2: write f64 unit base3 + 0 [1] = s1
  v0 f64 = load s0
  v1 f64 = multiply v0 c0
  v2 f64 = load s1
  v3 f64 = add v2 v1
  store s2 v3
",
    );
}

/// A transposed copy between transposed arrays is one line in memory.
#[test]
fn memory_order() {
    golden(
        "base b0 = i32[12] id 1
base b1 = i32[12] id 2
view v0 = b0 at 0 [3:1, 4:3]
view v1 = b1 at 11 [3:-1, 4:-3]
i0: v1 = add v1, v0
i1: v0 = copy v1
block i0
",
        "
for [12]
  s0: read i32 strided base1 + 11 [-1]
  s1: read i32 unit base0 + 0 [1]
  s2: write i32 strided base1 + 11 [-1] = s0
  v0 i32 = load s0
  v1 i32 = load s1
  v2 i32 = add v0 v1
  store s2 v2
",
    );
}

#[test]
fn generators_and_gathers() {
    golden(
        "base b0 = f32[6] id 1
base b1 = i64[4] id 2 born dies
base b2 = f32[4] id 3
const c0 = u64 9
view v0 = b0 at 0 [2:3, 3:1]
view v1 = b1 at 0 [4:1]
view v2 = b2 at 0 [4:1]
view v3 = index at 5 [4:-1]
i0: v1 = range v3
i1: v2 = gather v0, v1
i2: v2 = add v2, v2
i3: sync v2
block i0 i1 i2 i3 contracted b1
",
        "
for [4]
  s0: index i64 strided numbers + 5 [-1]
  s1: write f32 unit base2 + 0 [1]
  v0 i64 = range s0
  v1 f32 = gather g0 v0
  v2 f32 = add v1 v1
  store s1 v2
",
    );
}

/// Kernels of other sizes and constants are equal; kernels of other structure are not.
#[test]
fn kernels_hold_no_sizes() {
    let program = |n: i64, value: f64, opcode: &str| {
        let text = format!(
            "bh batch 1\nbase b0 = f64[{n}] id 1\nconst c0 = f64 {value}\nview v0 = b0 at 0 [{n}:1]\n\
             i0: v0 = {opcode} v0, c0\nblock i0\n"
        );
        let batch = parse(&text).unwrap();
        match lower(&batch.as_ref(), 0, Runner::Vectors) {
            super::Lowered::Loops(mut stages, _) => stages.remove(0),
            other => panic!("{other:?}"),
        }
    };
    let (a, b) = (program(10, 0.5, "add"), program(1000, 3.5, "add"));
    assert_eq!(a.kernel, b.kernel);
    assert_ne!(a.parameters, b.parameters);
    assert_ne!(a.kernel, program(10, 0.5, "multiply").kernel);
}

/// The columns of blocks of 2 × 2 elements move inside of these: each access keeps its stride along each dimension.
#[test]
fn a_longer_dimension_moves_inside_of_short_ones() {
    let lengthened = |extents: [i64; 4], opcode: &str| {
        let [a, b, c, d] = extents;
        let all = a * b * c * d;
        let text = format!(
            "bh batch 1\nbase b0 = f64[{all}] id 1\nbase b1 = f64[{all}] id 2\n\
             view v0 = b1 at 0 [{a}:{}, {b}:{}, {c}:{d}, {d}:1]\nview v1 = b0 at 0 [{a}:{}, {b}:{d}, {c}:{}, {d}:1]\n\
             view v2 = b1 at 0 [{a}:{}, {b}:{}, {c}:{d}]\ni0: {opcode} v1\nblock i0\n",
            b * c * d,
            c * d,
            b * c * d,
            b * d,
            b * c * d,
            c * d
        );
        let batch = parse(&text).unwrap();
        match lower(&batch.as_ref(), 0, Runner::Vectors) {
            super::Lowered::Loops(mut stages, _) => {
                super::schedule::lengthen(&mut stages[0]);
                let parameters = stages.remove(0).parameters;
                (parameters.extents, parameters.strides)
            }
            other => panic!("{other:?}"),
        }
    };
    let (extents, strides) = lengthened([3, 20, 2, 2], "v0 = copy");
    assert_eq!((extents, strides), (vec![3, 2, 2, 20], vec![80, 40, 1, 2, 80, 2, 1, 4]));
    // The outer dimension, if only that is long.
    assert_eq!(lengthened([40, 3, 2, 2], "v0 = copy").0, [3, 2, 2, 40]);
    // Blocks of enough elements, and dimensions that are too short or too long, stay; so do those of folds.
    for extents in [[3, 20, 8, 6], [3, 15, 2, 2], [3, 4000, 2, 2]] {
        assert_eq!(lengthened(extents, "v0 = copy").0, extents);
    }
    assert_eq!(lengthened([3, 20, 2, 20], "v2 = add_reduce axes(3)").0, [3, 20, 2, 20]);
}

#[test]
fn data_management_alone_is_nothing() {
    golden(
        "base b0 = f64[3] id 1
view v0 = b0 at 0 [3:1]
i0: sync v0
i1: free v0
block i0 i1
",
        "nothing\n",
    );
}
