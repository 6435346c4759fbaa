//! The paper's example (its Fig. 3) under the paper's rules and cost, and under all that the fuser can do.

use crate::options::{ALGORITHMS, Algorithm, Legality, Options};
use crate::{Partitioner, cost, price};
use bh_bytecode::text;
use bh_bytecode::validate::partition as verify;

const FIG_3: &str = "bh batch 1
base b0 = f64[4] id 1 row 4 born dies
base b1 = f64[4] id 2 row 4 born dies
base b2 = f64[5] id 3 row 5 born dies
base b3 = f64[5] id 4 row 5 born dies
base b4 = f64[4] id 5 row 4 born dies
view v0 = b0 at 0 [4:1]
view v1 = b1 at 0 [4:1]
view v2 = b2 at 0 [5:1]
view v3 = b3 at 0 [5:1]
view v4 = b2 at 0 [4:1]
view v5 = b3 at 0 [4:1]
view v6 = b4 at 0 [4:1]
view v7 = b2 at 1 [4:1]
view v8 = b3 at 1 [4:1]
const c0 = f64 0.0
i0: v0 = copy c0
i1: v1 = copy c0
i2: v2 = copy c0
i3: v3 = copy c0
i4: v0 = add v0, v4
i5: v0 = copy v4
i6: v1 = add v1, v5
i7: v1 = copy v5
i8: v6 = multiply v0, v1
i9: v7 = maximum v6, v8
i10: v8 = minimum v6, v7
i11: discard v0
i12: discard v1
i13: discard v3
i14: discard v6
i15: sync v2
i16: discard v2
";

fn cost_in_elements(options: &Options) -> i64 {
    let batch = text::parse(FIG_3).unwrap();
    let partition = Partitioner::default().partition(&batch.as_ref(), options);
    let reference = batch.as_ref();
    let partitioned = partition.apply(&reference);
    verify(&partitioned).unwrap();
    price::price(&partitioned, options).total() / 8
}

fn costs(legality: Legality, renames: bool) -> Vec<(Algorithm, i64)> {
    ALGORITHMS
        .iter()
        .map(|&(_, algorithm)| {
            let options = Options {
                algorithm,
                cost: &cost::UNIQUE_VIEWS,
                legality,
                renames,
                rename_percent: 100,
                ..Options::default()
            };
            (algorithm, cost_in_elements(&options))
        })
        .collect()
}

#[test]
fn the_papers_example_costs_what_the_paper_says() {
    for (algorithm, cost) in costs(Legality::Paper, false) {
        match algorithm {
            Algorithm::Singleton => assert_eq!(cost, 86),
            Algorithm::Naive => assert_eq!(cost, 50),
            Algorithm::Greedy => assert!(cost <= 46, "{cost}"),
            Algorithm::Unintrusive => assert!(cost <= 62, "{cost}"),
            Algorithm::Optimal => assert_eq!(cost, 34),
        }
    }
}

#[test]
fn renames_make_the_papers_example_cheaper() {
    for (algorithm, cost) in costs(Legality::Full, true) {
        println!("{algorithm:?}: {cost}");
        match algorithm {
            Algorithm::Singleton => assert_eq!(cost, 86),
            Algorithm::Optimal => assert!(cost < 34, "{cost}"),
            _ => assert!(cost <= 62, "{cost}"),
        }
    }
}
