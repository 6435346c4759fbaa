//! The engine's promises besides right results: the same bits for every thread count, all instruction sets, indices
//! past 32 bits, deferred errors with their place, extension methods, and repeated batches.

use crate::support;

use bh_bytecode::interp::Memory;
use bh_bytecode::random::{self, program};
use bh_bytecode::text::parse;
use bh_bytecode::{Batch, Constant, Opcode};
use bh_core::Component;
use bh_core::abi::{fork, status};
use bh_fuser::{Options, Partitioner};
use bh_ve_cpu::simd::Isa;
use support::columns::column_folds;
use support::{Driver, singletons};

fn batch(text: &str) -> Batch {
    parse(&format!("bh batch 1\n{text}")).unwrap()
}

fn bytes(values: impl IntoIterator<Item = f64>) -> Vec<u8> {
    values.into_iter().flat_map(f64::to_ne_bytes).collect()
}

fn numbers(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks_exact(8).map(|chunk| f64::from_ne_bytes(chunk.try_into().unwrap())).collect()
}

/// Runs a batch, fused, and returns the bytes of some bases.
fn results(config: &[(&str, &str)], batch: &Batch, memory: &Memory, bases: &[u64]) -> Vec<Vec<u8>> {
    let tables = batch.as_ref();
    let partition = Partitioner::default().partition(&tables, &Options::default());
    let after = Driver::new(config).unwrap().run_on(&partition.apply(&tables), memory).unwrap();
    bases.iter().map(|&id| after.get(id).unwrap().to_vec()).collect()
}

/// Sums over everything, over rows and over columns, running sums, short rows, and random numbers.
const FOLDS: &str = "base b0 = f64[600000] id 1
base b1 = f64[1] id 2 born
base b2 = f64[600] id 3 born
base b3 = f64[1000] id 4 born
base b4 = f64[600000] id 5 born
base b5 = f64[200000] id 6 born
base b6 = f64[600000] id 7 born
base b7 = f64[600000] id 8 born
const c0 = u64 7
view v0 = b0 at 0 [600:1000, 1000:1]
view v1 = b1 at 0 []
view v2 = b2 at 0 [600:1]
view v3 = b3 at 0 [1000:1]
view v4 = b0 at 0 [600000:1]
view v5 = b4 at 0 [600000:1]
view v6 = b0 at 0 [200000:3, 3:1]
view v7 = b5 at 0 [200000:1]
view v8 = index at 4294967290 [600000:1]
view v9 = b6 at 0 [600000:1]
view v10 = b7 at 0 [600:1000, 1000:1]
i0: v10 = sin v0
i1: v1 = add_reduce axes(0,1) v10
i2: v2 = add_reduce axes(1) v0
i3: v3 = add_reduce axes(0) v10
i4: v5 = add_accumulate axes(0) v4
i5: v7 = multiply_reduce axes(1) v6
i6: v9 = random v8, c0
";

#[test]
fn bits_do_not_depend_on_the_thread_count() {
    let batch = batch(FOLDS);
    let mut memory = Memory::new();
    memory.insert(1, bytes((0..600_000).map(|i| (i as f64 * 0.37).sin() + 1e-3 * (i % 13) as f64)));
    let ids = [2, 3, 4, 5, 6, 7, 8];
    let one = results(&[("threads", "1")], &batch, &memory, &ids);
    for threads in ["2", "3", "16"] {
        assert!(one == results(&[("threads", threads)], &batch, &memory, &ids), "{threads} threads");
    }
    // The sums are right, too.
    let data = numbers(memory.get(1).unwrap());
    for (row, sum) in numbers(&one[1]).into_iter().enumerate() {
        let expected: f64 = data[row * 1000..][..1000].iter().sum();
        assert!((sum - expected).abs() < 1e-9, "row {row}: {sum} {expected}");
    }
}

#[test]
fn folds_have_the_bits_of_their_tree() {
    let drivers = ["1", "2", "3", "16"].map(|threads| Driver::new(&[("threads", threads), ("jit", "off")]).unwrap());
    support::tree::check_folds(&mut { drivers });
}

#[test]
fn every_instruction_set_equals_the_oracle() {
    for isa in Isa::available() {
        let mut driver = Driver::new(&[("threads", "1"), ("isa", isa.name())]).unwrap();
        for seed in 10_000..10_300 {
            let program = program(seed, &random::Options::default());
            let oracle = program.oracle().unwrap();
            let actual = driver.run_on(&singletons(&program.batch).as_ref(), &program.memory).unwrap();
            oracle.check(&program.batch, &actual).unwrap_or_else(|error| panic!("{isa}, seed {seed}: {error}"));
        }
    }
}

#[test]
fn folds_of_columns_have_the_same_bits_with_every_instruction_set() {
    let mut drivers: Vec<(Isa, Driver)> = Isa::available()
        .map(|isa| (isa, Driver::new(&[("threads", "2"), ("isa", isa.name()), ("jit", "off")]).unwrap()))
        .collect();
    for seed in 0..600 {
        let program = column_folds(seed);
        let oracle = program.oracle().unwrap();
        let mut first: Option<Memory> = None;
        for (isa, driver) in &mut drivers {
            let actual = driver.run_on(&singletons(&program.batch).as_ref(), &program.memory).unwrap();
            oracle.check(&program.batch, &actual).unwrap_or_else(|error| panic!("{isa}, seed {seed}: {error}"));
            let first = first.get_or_insert_with(|| actual.clone());
            for base in &program.batch.bases {
                assert!(actual.get(base.id) == first.get(base.id), "{isa}, seed {seed}: identity {} differs", base.id);
            }
        }
    }
}

/// Sums of products, of squares, folds of products, and a root with a product and a quotient; the last sum takes the place of an operand.
const PRODUCTS: &str = "base b0 = f64[1003] id 1
base b1 = f64[1003] id 2
base b2 = f64[1003] id 3
base b3 = f64[1003] id 4
base b4 = f64[1003] id 5
base b5 = f64[1003] id 6
base b6 = f64[1] id 7
base b7 = f64[1003] id 11 born dies
base b8 = f64[1003] id 12 born dies
base b9 = f64[1003] id 13 born dies
base b10 = f64[1003] id 14 born dies
base b11 = f64[1003] id 15 born dies
base b12 = f64[1003] id 16 born dies
base b13 = f64[1003] id 17
const c0 = f64 0.3
view v0 = b0 at 0 [1003:1]
view v1 = b1 at 0 [1003:1]
view v2 = b2 at 0 [1003:1]
view v3 = b3 at 0 [1003:1]
view v4 = b4 at 0 [1003:1]
view v5 = b5 at 0 [1003:1]
view v6 = b6 at 0 []
view v7 = b7 at 0 [1003:1]
view v8 = b8 at 0 [1003:1]
view v9 = b9 at 0 [1003:1]
view v10 = b10 at 0 [1003:1]
view v11 = b11 at 0 [1003:1]
view v12 = b12 at 0 [1003:1]
view v13 = b13 at 0 [1003:1]
i0: v7 = multiply v0, v1
i1: v8 = multiply v2, v2
i2: v7 = add v7, v8
i3: v9 = multiply v3, v0
i4: v7 = add v9, v7
i5: v4 = add v7, c0
i6: v10 = powi exponent(2) v0
i7: v11 = multiply v1, v1
i8: v5 = add v10, v11
i9: v12 = multiply v1, v3
i10: v6 = add_reduce axes(0) v12
i11: v8 = multiply v1, v2
i12: v7 = add v0, v8
i13: v9 = multiply v3, v3
i14: v0 = add v7, v9
i15: v8 = sqrt v5
i16: v9 = multiply v5, v8
i17: v13 = divide v3, v9
";

#[test]
fn operations_that_share_a_pass_round_one_by_one() {
    let batch = batch(PRODUCTS);
    let array = |salt: f64| (0..1003).map(move |i| (f64::from(i) * salt).sin());
    let mut memory = Memory::new();
    let salts = [0.37, 0.41, 0.59, 0.83];
    salts.iter().zip(1..).for_each(|(&salt, id)| _ = memory.insert(id, bytes(array(salt))));
    [5, 6, 17].into_iter().for_each(|id| _ = memory.insert(id, bytes(array(1.0))));
    memory.insert(7, bytes([0.0]));
    let [a, b, c, d] = salts.map(|salt| array(salt).collect::<Vec<f64>>());
    let wanted = |function: fn(f64, f64, f64, f64) -> f64| -> Vec<f64> {
        (0..1003).map(|i| function(a[i], b[i], c[i], d[i])).collect()
    };
    for isa in Isa::available() {
        let config = [("threads", "1"), ("isa", isa.name()), ("jit", "off")];
        let found = results(&config, &batch, &memory, &[5, 6, 1, 7, 17]);
        assert_eq!(numbers(&found[0]), wanted(|a, b, c, d| a * b + c * c + d * a + 0.3), "{isa}");
        assert_eq!(numbers(&found[1]), wanted(|a, b, _, _| a * a + b * b), "{isa}");
        assert_eq!(numbers(&found[2]), wanted(|a, b, c, d| a + b * c + d * d), "{isa}");
        let far = |a: f64, b: f64| a * a + b * b;
        let wanted_pull: Vec<f64> = (0..1003).map(|i| d[i] / (far(a[i], b[i]) * far(a[i], b[i]).sqrt())).collect();
        assert_eq!(numbers(&found[4])[1..], wanted_pull[1..], "{isa}");
        let apart = Driver::new(&config).unwrap().run_on(&singletons(&batch).as_ref(), &memory).unwrap();
        assert_eq!(numbers(&found[3]), numbers(apart.get(7).unwrap()), "{isa}");
    }
}

/// An array moves on before what is made of another one takes its place; that one is made anew.
const MOVES_ON: &str = "base b0 = f64[1003] id 1
base b1 = f64[1003] id 2
base b2 = f64[1003] id 3
base b3 = f64[1003] id 4
const c0 = f64 2.0
const c1 = f64 3.0
view v0 = b0 at 0 [1003:1]
view v1 = b1 at 0 [1003:1]
view v2 = b2 at 0 [1003:1]
view v3 = b3 at 0 [1003:1]
i0: v1 = multiply v0, c0
i1: v3 = copy v2
i2: v2 = copy v1
i3: v1 = multiply v0, c1
";

#[test]
fn what_is_stored_waits_for_what_is_read_there() {
    let batch = batch(MOVES_ON);
    let mut memory = Memory::new();
    let array = |from: f64| (0..1003).map(move |i| f64::from(i) + from);
    (1..=4u8).for_each(|id| _ = memory.insert(id.into(), bytes(array(id.into()))));
    for isa in Isa::available() {
        let found = results(&[("threads", "1"), ("isa", isa.name()), ("jit", "off")], &batch, &memory, &[2, 3, 4]);
        let wanted =
            [array(1.0).map(|x| 3.0 * x).collect(), array(1.0).map(|x| 2.0 * x).collect(), Vec::from_iter(array(3.0))];
        for (found, wanted) in found.iter().zip(wanted) {
            assert_eq!(numbers(found), wanted, "{isa}");
        }
    }
}

#[test]
fn wrong_settings_are_refused() {
    for (key, value) in [
        ("threads", "none"),
        ("threads", "-1"),
        ("isa", "mmx"),
        ("affinity", "first"),
        ("windows", "on"),
        ("window_bytes", "much"),
        ("sweeps", "on"),
        ("time_tiles", "0"),
        ("time_tiles", "on"),
    ] {
        let error = Driver::new(&[(key, value)]).err().expect("refused");
        assert_eq!(error.status, status::CONFIG);
        assert!(error.text.contains(key) && error.text.contains(value), "{error}");
    }
}

/// Views past 2^32 elements; the pages in between are never touched.
#[test]
fn indices_have_64_bits() {
    let batch = batch(
        "base b0 = i8[4294968000] id 1 born
base b1 = i64[3] id 2 born
base b2 = i8[3] id 3 born
const c0 = i8 5
const c1 = i64 1
view v0 = b0 at 4294967290 [10:1]
view v1 = b0 at 1 [2:4294967294]
view v2 = b0 at 4294967290 [3:4]
view v3 = index at 4294967290 [3:4]
view v4 = b1 at 0 [3:1]
view v5 = b0 at 0 [4294968000:1]
view v6 = b2 at 0 [3:1]
i0: v0 = add v0, c0
i1: v1 = add v1, c0
i2: v4 = range v3
i3: v6 = gather v5, v4
i4: v6 = multiply v6, c0
",
    );
    let mut driver = Driver::new(&[("threads", "2")]).unwrap();
    driver.run(&singletons(&batch).as_ref()).unwrap();
    let big = driver.get(1).unwrap();
    assert_eq!(big[4294967290..4294967300], [5, 5, 5, 5, 5, 10, 5, 5, 5, 5]);
    assert_eq!((big[1], big[4294967295]), (5, 10));
    assert_eq!(driver.get(3).unwrap(), [25, 25, 25]);
}

#[test]
fn bad_indices_name_their_instruction() {
    let batch = batch(
        "base b0 = f64[4] id 1
base b1 = i64[3] id 2
base b2 = f64[3] id 3 born
origin o1 = \"user.c\":17
view v0 = b0 at 0 [4:1]
view v1 = b1 at 0 [3:1]
view v2 = b2 at 0 [3:1]
i0: v2 = gather v0, v1 @o1
",
    );
    let mut memory = Memory::new();
    memory.insert(1, bytes([1.0, 2.0, 3.0, 4.0]));
    memory.insert(2, [0i64, -4, 4].into_iter().flat_map(i64::to_ne_bytes).collect());
    let mut driver = Driver::new(&[]).unwrap();
    let error = driver.run_on(&singletons(&batch).as_ref(), &memory).unwrap_err();
    assert_eq!((error.status, error.block, error.instr), (status::BOUNDS, Some(0), Some(0)));
    assert_eq!(error.to_string(), "user.c:17: gather: index 4 is out of range for 4 elements");
    memory.insert(2, [0i64, -4, 3].into_iter().flat_map(i64::to_ne_bytes).collect());
    let after = driver.run_on(&singletons(&batch).as_ref(), &memory).unwrap();
    assert_eq!(numbers(after.get(3).unwrap()), [1.0, 1.0, 4.0]);
}

/// An output past the nearest caches, which participants divide among them; indices with gaps between their rows.
#[test]
fn scatters_write_in_order_with_any_number_of_threads() {
    let index: Vec<i64> =
        (0..60_000).map(|i: i64| i * i * 7919 % 49_999 - if i % 5 == 0 { 50_000 } else { 0 }).collect();
    let mut memory = Memory::new();
    memory.insert(2, index.iter().flat_map(|number| number.to_ne_bytes()).collect());
    memory.insert(3, bytes((0..50_000).map(f64::from)));
    for opcode in ["scatter", "scatter_add"] {
        let batch = batch(&format!(
            "base b0 = f64[50000] id 1
base b1 = i64[60000] id 2
base b2 = f64[50000] id 3
view v0 = b0 at 0 [50000:1]
view v1 = b1 at 0 [200:300, 250:1]
view v2 = b2 at 0 [200:250, 250:1]
i0: v0 = {opcode} v2, v1
"
        ));
        memory.insert(1, bytes((0..50_000).map(|_| 0.5)));
        let mut expected = vec![0.5; 50_000];
        for value in 0..50_000 {
            let to = &mut expected[index[value / 250 * 300 + value % 250].rem_euclid(50_000) as usize];
            *to = value as f64 + if opcode == "scatter_add" { *to } else { 0.0 };
        }
        for threads in ["1", "2", "3", "16"] {
            let written = results(&[("threads", threads)], &batch, &memory, &[1]);
            assert!(numbers(&written[0]) == expected, "{opcode}, {threads} threads");
        }
    }
}

/// The plan of a known batch must not remember the values of constants or the identities of bases.
#[test]
fn repeated_batches_take_new_constants_and_bases() {
    let mut batch = batch(
        "base b0 = f64[3] id 1
const c0 = f64 2
view v0 = b0 at 0 [3:1]
i0: v0 = multiply v0, c0
block i0
",
    );
    let mut driver = Driver::new(&[]).unwrap();
    for (id, factor) in [(1, 2.0), (5, 3.0), (9, 4.0)] {
        batch.bases[0].id = id;
        batch.constants[0] = Constant::from_value(factor);
        driver.put(id, &bytes([1.0, 2.0, 3.0]));
        driver.run(&batch.as_ref()).unwrap();
        assert_eq!(numbers(driver.get(id).unwrap()), [factor, 2.0 * factor, 3.0 * factor]);
    }
}

/// Calls an extension method on contiguous f64 arrays of these shapes, outputs first.
fn call(driver: &mut Driver, name: &str, arrays: &[(&str, &str)], inputs: &[Vec<u8>]) -> bh_core::Result<Vec<Vec<u8>>> {
    let opcode = Opcode(Opcode::FIRST_EXTENSION + 1);
    assert!(driver.engine.extmethod(name, opcode).unwrap(), "{name}");
    let mut text = String::new();
    for (index, (dtype, _)) in arrays.iter().enumerate() {
        text += &format!("base b{index} = {dtype}[64] id {}\n", index + 1);
    }
    for (index, (_, view)) in arrays.iter().enumerate() {
        text += &format!("view v{index} = b{index} at 0 {view}\n");
    }
    let mut batch = batch(&text);
    let operands: Vec<_> = (0..arrays.len() as u32).map(bh_bytecode::Operand::view).collect();
    let mut instr = bh_bytecode::Instr::new(opcode, &operands);
    let outputs = arrays.len() - inputs.len();
    instr.outputs = outputs as u8;
    batch.push_instr(instr);
    let mut memory = Memory::new();
    for (index, (dtype, _)) in arrays.iter().enumerate() {
        let size = bh_bytecode::DType::from_name(dtype).unwrap().size();
        let mut data = index.checked_sub(outputs).map_or(Vec::new(), |input| inputs[input].clone());
        data.resize(64 * size, 0);
        memory.insert(index as u64 + 1, data);
    }
    let after = driver.run_on(&singletons(&batch).as_ref(), &memory)?;
    Ok((0..outputs as u64).map(|id| after.get(id + 1).unwrap().to_vec()).collect())
}

fn close(actual: &[f64], expected: &[f64]) {
    for (actual, expected) in actual.iter().zip(expected) {
        assert!((actual - expected).abs() < 1e-12, "{actual} {expected}");
    }
}

#[test]
fn matrix_methods() {
    let mut driver = Driver::new(&[("threads", "2")]).unwrap();
    let a = bytes([4.0, 1.0, 1.0, 3.0]);
    let square = ("f64", "[2:2, 2:1]");
    let product =
        call(&mut driver, "matmul", &[square, square, ("f64", "[2:1, 2:2]")], &[a.clone(), a.clone()]).unwrap();
    close(&numbers(&product[0]), &[17.0, 7.0, 7.0, 10.0]);
    let product =
        call(&mut driver, "matmul", &[("f64", "[2:1]"), square, ("f64", "[2:1]")], &[a.clone(), bytes([1.0, 2.0])]);
    close(&numbers(&product.unwrap()[0]), &[6.0, 7.0]);
    let whole: Vec<u8> = [1i32, 2, 3, 4].into_iter().flat_map(i32::to_ne_bytes).collect();
    let int = ("i32", "[2:2, 2:1]");
    let product = call(&mut driver, "matmul", &[int, int, int], &[whole.clone(), whole]).unwrap();
    assert_eq!(product[0][..16], [7i32, 10, 15, 22].into_iter().flat_map(i32::to_ne_bytes).collect::<Vec<_>>());
    let solution =
        call(&mut driver, "solve", &[("f64", "[2:1]"), square, ("f64", "[2:1]")], &[a.clone(), bytes([6.0, 7.0])]);
    close(&numbers(&solution.unwrap()[0]), &[1.0, 2.0]);
    let factor = call(&mut driver, "cholesky", &[square, square], std::slice::from_ref(&a)).unwrap();
    close(&numbers(&factor[0]), &[2.0, 0.0, 0.5, 2.75f64.sqrt()]);
    let rows = bytes([0.0, 2.0, 1.0, 1.0]);
    let factors = call(&mut driver, "lu", &[square, ("i64", "[2:1]"), square], &[rows]).unwrap();
    close(&numbers(&factors[0]), &[1.0, 1.0, 0.0, 2.0]);
    assert_eq!(factors[1][..16], [1i64, 0].into_iter().flat_map(i64::to_ne_bytes).collect::<Vec<_>>());
    let wrong = call(&mut driver, "matmul", &[square, square, ("f64", "[3:1]")], &[a.clone(), a.clone()]).unwrap_err();
    assert_eq!((wrong.status, wrong.instr), (status::SHAPE, Some(0)), "{wrong}");
    let wrong = call(&mut driver, "solve", &[square, int, square], &[a.clone(), a]).unwrap_err();
    assert_eq!(wrong.status, status::TYPE, "{wrong}");
    let singular =
        call(&mut driver, "solve", &[("f64", "[2:1]"), square, ("f64", "[2:1]")], &[bytes([0.0; 4]), bytes([1.0; 2])]);
    assert_eq!(singular.unwrap_err().status, status::EXECUTION);
}

#[test]
fn fourier_transforms() {
    let mut driver = Driver::new(&[]).unwrap();
    let (line, complex) = (("f64", "[2:4, 4:1]"), ("c128", "[2:4, 4:1]"));
    let input = bytes([1.0, 2.0, 3.0, 4.0, 0.0, 1.0, 0.0, 0.0]);
    let transformed = call(&mut driver, "fft", &[complex, line], std::slice::from_ref(&input)).unwrap().remove(0);
    let expected = [10.0, 0.0, -2.0, 2.0, -2.0, 0.0, -2.0, -2.0, 1.0, 0.0, 0.0, -1.0, -1.0, 0.0, 0.0, 1.0];
    close(&numbers(&transformed), &expected);
    let back = call(&mut driver, "ifft", &[complex, complex], &[transformed]).unwrap().remove(0);
    let real: Vec<f64> = numbers(&back).into_iter().step_by(2).take(8).collect();
    close(&real, &numbers(&input));
    let half = ("c128", "[2:3, 3:1]");
    let transformed = call(&mut driver, "rfft", &[half, line], std::slice::from_ref(&input)).unwrap().remove(0);
    let expected = [10.0, 0.0, -2.0, 2.0, -2.0, 0.0, 1.0, 0.0, 0.0, -1.0, -1.0, 0.0];
    close(&numbers(&transformed), &expected);
    let back = call(&mut driver, "irfft", &[line, half], &[transformed]).unwrap().remove(0);
    close(&numbers(&back), &numbers(&input));
}

/// A method of the user in a library of C.
#[test]
fn methods_from_libraries() {
    const SOURCE: &str = r#"
#include <stdint.h>
typedef struct { void *data; const int64_t *shape; const int64_t *stride; uint32_t rank; uint32_t dtype; } array;
int32_t twice(const array *outs, uintptr_t out_count, const array *ins, uintptr_t in_count, void *error) {
    (void)error;
    if (out_count != 1 || in_count != 1 || ins->rank != 1 || ins->dtype != 10) return 202;
    for (int64_t i = 0; i < ins->shape[0]; i++)
        ((double *)outs->data)[i * outs->stride[0]] = 2 * ((const double *)ins->data)[i * ins->stride[0]];
    return 0;
}
"#;
    let folder = std::env::temp_dir().join(format!("bh-ve-cpu-method-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, library) = (folder.join("method.c"), folder.join("method.so"));
    std::fs::write(&source, SOURCE).unwrap();
    let compiler =
        std::process::Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(compiler.unwrap().success());
    let mut driver = Driver::new(&[]).unwrap();
    let message = format!("extmethod-library ve-cpu twice {}", library.display());
    assert!(!driver.engine.message(&message).unwrap().is_empty());
    let line = ("f64", "[3:2]");
    let doubled = call(&mut driver, "twice", &[("f64", "[3:1]"), line], &[bytes([1.0, 0.0, 2.0, 0.0, 3.0])]).unwrap();
    close(&numbers(&doubled[0]), &[2.0, 4.0, 6.0]);
    let wrong = call(&mut driver, "twice", &[("i64", "[3:1]"), ("i64", "[3:1]")], &[vec![]]).unwrap_err();
    assert_eq!(wrong.status, status::TYPE);
    assert!(driver.engine.message("extmethod-library ve-cpu missing /nowhere.so").is_err());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn messages_change_the_threads() {
    let mut driver = Driver::new(&[("threads", "2")]).unwrap();
    assert_eq!(driver.engine.message("threads").unwrap(), "2");
    assert_eq!(driver.engine.message("threads 3").unwrap(), "ok");
    for moment in [fork::BEFORE, fork::PARENT, fork::BEFORE, fork::CHILD] {
        driver.engine.fork(moment).unwrap();
    }
    assert_eq!(driver.engine.message("threads").unwrap(), "3");
    assert!(driver.engine.message("threads many").is_err());
    assert_eq!(driver.engine.message("leaks").unwrap(), "");
}
