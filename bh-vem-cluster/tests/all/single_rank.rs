//! Operations that run on one rank: siblings divide them among each other, with the same results and the same lost
//! arrays as in sequence.

use crate::support;

use bh_bytecode::Opcode;
use bh_bytecode::random::Rng;
use bh_core::stack::Stack;
use bh_tests::stacks;
use support::{Part, Program};

fn siblings(side_by_side: bool) -> Stack {
    let chain = "['fuser', 'node', 've-cpu']";
    let text = format!(
        "[stacks]\nit = ['cluster', [{chain}, {chain}, {chain}]]\n\
         [components.cluster]\nsmall_bytes = 64\nside_by_side = {side_by_side}\n[components.ve-cpu]\nthreads = 1\njit = 'off'\n"
    );
    let config = stacks::from_text("cluster.toml", &text).unwrap();
    Stack::load(&config, Some("it")).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn siblings_divide_operations_that_run_on_one_rank() {
    let n = 40i64;
    let sent = [false, true].map(|side_by_side| {
        let mut stack = siblings(side_by_side);
        let mut program = Program::new(&mut stack);
        let matrices: Vec<u32> =
            (0..3).map(|seed| program.grid(&[n, n], |at| ((at * 37 + seed) % 101) as f64)).collect();
        let results: Vec<[u32; 2]> = (0..3).map(|_| [program.zeros(&[n]), program.zeros(&[n, n])]).collect();
        let before = program.traffic();
        for (matrix, result) in matrices.iter().zip(&results) {
            let outputs = result.map(|array| program.all(array));
            program.method_into("eigh", &outputs, &[program.all(*matrix)]);
        }
        program.run();
        let sent = program.traffic() - before;
        let found: Vec<Vec<f64>> = results.iter().flatten().map(|array| program.values(*array)).collect();
        program.end();
        (found, [0, 1, 2].map(|rank| sent.bytes_of(rank)))
    });
    assert_eq!(sent[0].0, sent[1].0);
    let results = (n * n * 8) as u64;
    // On the first rank alone, it sends all results. Divided, each rank sends its own, and all send parts of the
    // matrices.
    assert!(sent[0].1[0] > 3 * results / 2 && sent[0].1[1] <= results + 64, "{sent:?}");
    assert!(sent[1].1.iter().all(|&bytes| bytes < 2 * results), "{:?}", sent[1].1);
    assert!(sent[1].1[2] > results, "{:?}", sent[1].1);
}

/// The data of an array, or the error that lost it.
type Left = Result<Vec<u8>, String>;

/// The arrays that a random program leaves, and separately its products, whose last bits depend on whether factors were
/// copied as a whole.
fn outcome(stack: &mut Stack, seed: u64) -> [Vec<Left>; 2] {
    let mut rng = Rng::new(seed);
    let n = rng.between(9, 24);
    let mut program = Program::new(stack);
    let mut arrays: Vec<u32> = (0..4)
        .map(|shift| program.grid(&[n, n], |at| ((at * 31 + shift * 7 + seed as i64) % 97) as f64 / 8.0 - 5.0))
        .collect();
    let (mut others, mut products) = (Vec::new(), Vec::new());
    for _ in 0..rng.between(1, 4) {
        for _ in 0..rng.between(2, 9) {
            let pick = |rng: &mut Rng, arrays: &[u32]| arrays[rng.below(arrays.len())];
            let [one, two, out] = [0; 3].map(|_| pick(&mut rng, &arrays));
            let [a, b, target] = [one, two, out].map(|array| program.all(array));
            match rng.below(7) {
                0 | 1 => {
                    let values = program.zeros(&[n]);
                    let vectors = if rng.below(2) == 0 || one == out { program.zeros(&[n, n]) } else { out };
                    let outputs = [values, vectors].map(|array| program.all(array));
                    program.method_into("eigh", &outputs, &[a]);
                    others.push(values);
                    arrays.push(vectors);
                }
                2 => {
                    let factors: [u32; 2] = [0; 2].map(|_| program.zeros(&[n, n]));
                    let outputs = factors.map(|array| program.all(array));
                    program.method_into("qr", &outputs, &[a]);
                    arrays.extend(factors);
                }
                3 => {
                    // One in three may name an element out of range.
                    let limit = if rng.below(3) == 0 { n * n + 3 } else { n * n };
                    let numbers: Vec<i64> = (0..12).map(|_| rng.between(0, limit - 1)).collect();
                    let (index, found) = (program.numbers(&numbers), program.zeros(&[12]));
                    let line: Part = (one, bh_bytecode::View::contiguous(&[n * n]).unwrap());
                    program.op(Opcode::Gather, program.all(found), &[line, program.all(index)]);
                    others.push(found);
                }
                4 => {
                    let product = program.zeros(&[n, n]);
                    program.method("matmul", program.all(product), &[a, b]);
                    products.push(product);
                }
                _ => program.op(Opcode::Add, target, &[a, b]),
            }
        }
        // The arrays below carry the batch's error.
        drop(program.try_run());
    }
    arrays.extend(others);
    [arrays, products].map(|some| {
        some.into_iter().map(|array| program.try_bytes(array).map_err(|error| error.text)).collect::<Vec<Left>>()
    })
}

fn near(one: &Left, other: &Left) -> bool {
    let (Ok(one), Ok(other)) = (one, other) else { return one == other };
    let numbers =
        |bytes: &[u8]| -> Vec<f64> { bytes.as_chunks().0.iter().map(|chunk| f64::from_ne_bytes(*chunk)).collect() };
    let (one, other) = (numbers(one), numbers(other));
    let largest = one.iter().fold(1e-300f64, |most, value| most.max(value.abs()));
    one.iter().zip(&other).all(|(one, other)| one == other || (one - other).abs() <= 1e-9 * largest)
}

#[test]
fn random_programs_leave_the_same_and_lose_the_same() {
    let programs: u64 = std::env::var("BH_TEST_PROGRAMS").map_or(60, |text| text.parse().unwrap());
    let [mut first, mut second] = [false, true].map(siblings);
    for seed in 0..programs {
        let ([one, products], [other, others]) = (outcome(&mut first, seed), outcome(&mut second, seed));
        for (number, (one, other)) in one.iter().zip(&other).enumerate() {
            assert_eq!(one, other, "seed {seed}, array {number}");
        }
        assert!(products.iter().zip(&others).all(|(one, other)| near(one, other)), "seed {seed}");
    }
}
