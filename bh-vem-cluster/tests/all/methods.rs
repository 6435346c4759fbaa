//! Extension methods on clusters: their traffic, and results equal to those of one rank.

use crate::support;

use bh_bytecode::{Opcode, View};
use bh_core::stack::Stack;
use bh_tests::stacks;
use support::{Program, cluster_on, cluster_with, sort_select, two_devices};

const BELOW: &str = "'fuser', 'node', 've-cpu'";

fn entry(at: i64) -> f64 {
    (at * 7 % 13) as f64 - 6.0
}

#[test]
fn lines_are_sorted_where_they_are() {
    let (rows, columns) = (24i64, 18i64);
    let expected: Vec<f64> = (0..rows)
        .flat_map(|row| {
            let mut line: Vec<f64> = (0..columns).map(|column| entry(row * columns + column)).collect();
            line.sort_by(f64::total_cmp);
            line
        })
        .collect();
    for ranks in [1, 2, 3, 7] {
        let mut stack = cluster_on(BELOW, ranks, 64);
        let mut program = Program::new(&mut stack);
        let source = program.grid(&[rows, columns], entry);
        let sorted = program.zeros(&[rows, columns]);
        program.run();
        let before = program.traffic();
        program.method("sort", program.all(sorted), &[program.all(source)]);
        program.run();
        assert_eq!((program.traffic() - before).bytes, 0, "{ranks} ranks");
        assert_eq!(program.values(sorted), expected, "{ranks} ranks");
        // Columns move to the owners of lines, except for elements that are already there.
        let turned = View::contiguous(&[rows, columns]).unwrap().transpose(&[1, 0]).unwrap();
        let lines = program.zeros(&[columns, rows]);
        let before = program.traffic();
        program.method("sort", program.all(lines), &[(source, turned)]);
        program.run();
        assert!((program.traffic() - before).bytes <= (rows * columns * 8) as u64, "{ranks} ranks");
        let found = program.values(lines);
        for column in 0..columns {
            let mut line: Vec<f64> = (0..rows).map(|row| entry(row * columns + column)).collect();
            line.sort_by(f64::total_cmp);
            assert_eq!(found[(column * rows) as usize..][..rows as usize], line, "{ranks} ranks");
        }
        program.end();
    }
}

#[test]
fn products_along_the_cut_send_one_product_from_each_rank() {
    let (rows, columns) = (70i64, 5i64);
    for (ranks, small) in [(1usize, 64), (2, 400), (3, 64), (4, 400), (7, 0)] {
        let mut stack = cluster_on(BELOW, ranks, small);
        let mut program = Program::new(&mut stack);
        let tall = program.grid(&[rows, columns], entry);
        let line = program.grid(&[rows], |at| entry(at + 3));
        program.run();
        let turned = View::contiguous(&[rows, columns]).unwrap().transpose(&[1, 0]).unwrap();
        let (square, sums) = (program.zeros(&[columns, columns]), program.zeros(&[columns]));
        let before = program.traffic();
        program.method("matmul", program.all(square), &[(tall, turned), program.all(tall)]);
        program.run();
        let sent = program.traffic() - before;
        assert!(sent.bytes <= (ranks as u64 - 1) * (columns * columns) as u64 * 8, "{ranks} ranks: {}", sent.bytes);
        program.method("matmul", program.all(sums), &[program.all(line), program.all(tall)]);
        program.run();
        let (square, sums) = (program.values(square), program.values(sums));
        let at = |row: i64, column: i64| entry(row * columns + column);
        for one in 0..columns {
            let sum: f64 = (0..rows).map(|row| entry(row + 3) * at(row, one)).sum();
            assert_eq!(sums[one as usize], sum, "{ranks} ranks");
            for two in 0..columns {
                let sum: f64 = (0..rows).map(|row| at(row, one) * at(row, two)).sum();
                assert_eq!(square[(one * columns + two) as usize], sum, "{ranks} ranks");
            }
        }
        program.end();
    }
}

/// Numbers of ranks for sorts and selections.
const RANKS: [usize; 7] = [1, 2, 3, 7, 16, 33, 64];

/// Values with many duplicates, zeros of both signs, and some NaNs.
fn uneven(at: i64) -> f64 {
    match at * 2_654_435_761 % 101 {
        0 => f64::NAN,
        1 => -f64::NAN,
        2..20 => 0.0,
        20..30 => -0.0,
        rest => (rest * rest % 37) as f64 - 18.0 + (at % 3) as f64 * 0.5,
    }
}

fn in_order(a: f64, b: f64) -> std::cmp::Ordering {
    a.is_nan().cmp(&b.is_nan()).then(a.total_cmp(&b))
}

/// Every element moves at most once, to its owner. Other traffic grows only with the number of ranks.
#[test]
fn a_line_is_sorted_by_all_ranks() {
    type Value = fn(i64) -> f64;
    let values: [Value; 4] = [uneven, |at| at as f64, |at| -at as f64, |_| 7.0];
    for ranks in RANKS {
        for (number, value) in values.into_iter().enumerate() {
            let length = [1000i64, 4099, 640, 130][number];
            let mut stack = cluster_on(BELOW, ranks, 64);
            let mut program = Program::new(&mut stack);
            let source = program.grid(&[length], value);
            let (sorted, order) = (program.zeros(&[length]), program.whole(&[length]));
            program.run();
            let before = program.traffic();
            program.method("sort", program.all(sorted), &[program.all(source)]);
            program.run();
            let sent = program.traffic() - before;
            let own = (length as u64).div_ceil(ranks as u64) * 8;
            assert!(sent.most_bytes <= own && sent.messages <= (ranks * (ranks - 1)) as u64, "{ranks}: {sent:?}");
            assert!(value(1) != 1.0 || sent.bytes == 0, "{ranks} ranks move what is in order");
            let found: Vec<u64> = program.values(sorted).into_iter().map(f64::to_bits).collect();
            let mut wanted: Vec<f64> = (0..length).map(value).collect();
            wanted.sort_by(|a, b| in_order(*a, *b));
            assert_eq!(found, wanted.iter().map(|value| value.to_bits()).collect::<Vec<_>>(), "{ranks} ranks");

            let before = program.traffic();
            program.method("argsort", program.all(order), &[program.all(source)]);
            program.run();
            assert!((program.traffic() - before).most_bytes <= 2 * own, "{ranks} ranks");
            let mut wanted: Vec<i64> = (0..length).collect();
            let rank = |a: f64, b: f64| a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
            wanted.sort_by(|a, b| rank(value(*a), value(*b)));
            assert_eq!(program.whole_values(order), wanted, "{ranks} ranks");
            assert_eq!(program.count("cluster.operations brought to one rank"), 0);

            // The reversed line is first sent to the owners of the result.
            let backwards = View::contiguous(&[length]).unwrap().reverse(0).unwrap();
            program.method("argsort", program.all(order), &[(source, backwards)]);
            program.run();
            let mut wanted: Vec<i64> = (0..length).collect();
            wanted.sort_by(|a, b| rank(value(length - 1 - *a), value(length - 1 - *b)));
            assert_eq!(program.whole_values(order), wanted, "{ranks} ranks");
            program.end();
        }
    }
}

/// Selected elements move only if the result is cut differently.
#[test]
fn masks_choose_where_elements_are() {
    let (rows, columns) = (131i64, 3i64);
    type Chosen = fn(i64) -> bool;
    let masks: [Chosen; 4] = [|at| at % 3 == 1, |at| at < 40, |_| true, |at| at % 100 == 99];
    for ranks in RANKS {
        for chosen in masks {
            let mut stack = cluster_on(BELOW, ranks, 64);
            let mut program = Program::new(&mut stack);
            let source = program.grid(&[rows, columns], entry);
            let mask = program.truths(&[rows, columns], chosen);
            let wanted: Vec<i64> = (0..rows * columns).filter(|at| chosen(*at)).collect();
            let (values, numbers) = (program.zeros(&[wanted.len() as i64]), program.whole(&[wanted.len() as i64]));
            program.run();
            let before = program.traffic();
            program.method("compress", program.all(values), &[program.all(mask), program.all(source)]);
            program.run();
            let sent = program.traffic() - before;
            // The mask is cut in rows like the array.
            assert!(sent.bytes <= wanted.len() as u64 * 8, "{ranks} ranks: {sent:?}");
            program.method(
                "flatnonzero",
                program.all(numbers),
                &[(mask, View::contiguous(&[rows * columns]).unwrap())],
            );
            program.run();
            let found = program.values(values);
            assert_eq!(found, wanted.iter().map(|at| entry(*at)).collect::<Vec<_>>(), "{ranks} ranks");
            assert_eq!(program.whole_values(numbers), wanted, "{ranks} ranks");
            assert!(ranks == 64 || program.count("cluster.operations brought to one rank") == 0, "{ranks} ranks");
            // A result of the wrong size is an error on all ranks without other effects.
            let short = program.zeros(&[wanted.len() as i64 - 1]);
            program.method("compress", program.all(short), &[program.all(mask), program.all(source)]);
            assert!(program.try_run().is_err(), "{ranks} ranks");
            assert_eq!(program.values(source)[5], entry(5));
            program.end();
        }
    }
}

/// Ranks send their sums, or the parts of sums that others own, and no elements.
#[test]
fn sums_into_few_places_are_made_where_the_elements_are() {
    let length = 2000i64;
    let place = |at: i64| at * at % 11;
    for ranks in RANKS {
        // On one rank, and distributed.
        for small in [256, 0] {
            let mut stack = cluster_on(BELOW, ranks, small);
            let mut program = Program::new(&mut stack);
            let places = program.numbers(&(0..length).map(place).collect::<Vec<_>>());
            let value = |at: i64| entry(at) as i64;
            let values = program.numbers(&(0..length).map(value).collect::<Vec<_>>());
            let sums = program.numbers(&(0..11).collect::<Vec<_>>());
            program.run();
            let before = program.traffic();
            program.op(Opcode::ScatterAdd, program.all(sums), &[program.all(values), program.all(places)]);
            program.run();
            let sent = program.traffic() - before;
            assert!(
                sent.most_bytes <= 11 * 8 * 2 && sent.bytes <= (ranks as u64 - 1) * 11 * 8 * 2,
                "{ranks}: {sent:?}"
            );
            let mut wanted: Vec<i64> = (0..11).collect();
            (0..length).for_each(|at| wanted[place(at) as usize] += value(at));
            assert_eq!(program.whole_values(sums), wanted, "{ranks} ranks");
            assert_eq!(program.count("cluster.operations brought to one rank"), 0);
            let wrong = program.numbers(&(0..length).map(|at| if at == 1777 { 11 } else { 0 }).collect::<Vec<_>>());
            program.op(Opcode::ScatterAdd, program.all(sums), &[program.all(values), program.all(wrong)]);
            assert!(program.try_run().is_err(), "{ranks} ranks");
            program.end();
        }
    }
}

/// The product of two matrices by rows.
fn product(left: &[f64], right: &[f64], [rows, inner, columns]: [usize; 3]) -> Vec<f64> {
    let at = |place: usize| {
        let (row, column) = (place / columns, place % columns);
        (0..inner).map(|k| left[row * inner + k] * right[k * columns + column]).sum()
    };
    (0..rows * columns).map(at).collect()
}

fn near(found: &[f64], wanted: &[f64]) -> bool {
    found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-9)
}

fn turned(matrix: &[f64], [rows, columns]: [usize; 2]) -> Vec<f64> {
    (0..rows * columns).map(|place| matrix[place % rows * columns + place / rows]).collect()
}

/// Ranks send their triangles up a tree, and squares return. The tall output stays in place.
#[test]
fn tall_matrices_are_factored_by_rows() {
    let value = |at: i64| (at * at * 31 % 1009) as f64 / 500.0 - 1.0;
    for ranks in RANKS {
        // The small factors are on one rank, and distributed.
        for (columns, small) in [(3usize, 128), (5, 64)] {
            let rows = 9 * ranks + 20;
            let mut stack = cluster_on(BELOW, ranks, small);
            let mut program = Program::new(&mut stack);
            let [m, n] = [rows as i64, columns as i64];
            let source = program.grid(&[m, n], value);
            let original = program.values(source);
            let (q, r) = (program.zeros(&[m, n]), program.zeros(&[n, n]));
            let (u, s, vh, alone) =
                (program.zeros(&[m, n]), program.zeros(&[n]), program.zeros(&[n, n]), program.zeros(&[n]));
            program.run();
            let before = program.traffic();
            program.method_into("qr", &[program.all(q), program.all(r)], &[program.all(source)]);
            program.run();
            let sent = program.traffic() - before;
            // Up, down, and to the owners of the small factor.
            let square = (columns * columns * 8) as u64;
            assert!(sent.bytes <= (2 * (ranks as u64 - 1) + 1) * square, "{ranks} ranks: {sent:?}");
            assert!(ranks < 33 || sent.most_messages <= 3 * 7 + 5, "{ranks} ranks: {sent:?}");
            let (first, second) = (program.values(q), program.values(r));
            assert!(near(&product(&first, &second, [rows, columns, columns]), &original), "{ranks} ranks");
            let unit: Vec<f64> = (0..columns * columns).map(|at| f64::from(at % (columns + 1) == 0)).collect();
            let across = product(&turned(&first, [rows, columns]), &first, [columns, rows, columns]);
            assert!(near(&across, &unit), "{ranks} ranks");
            assert!((0..columns).all(|row| second[row * columns..][..row].iter().all(|below| *below == 0.0)));

            program.method_into("svd", &[u, s, vh].map(|array| program.all(array)), &[program.all(source)]);
            program.method("svd", program.all(alone), &[program.all(source)]);
            program.run();
            let (left, values, right) = (program.values(u), program.values(s), program.values(vh));
            let scaled: Vec<f64> = left.iter().enumerate().map(|(at, value)| value * values[at % columns]).collect();
            assert!(near(&product(&scaled, &right, [rows, columns, columns]), &original), "{ranks} ranks");
            let across = product(&turned(&left, [rows, columns]), &left, [columns, rows, columns]);
            assert!(near(&across, &unit), "{ranks} ranks");
            assert!(near(&program.values(alone), &values) && values.is_sorted_by(|a, b| a >= b));
            assert_eq!(program.count("cluster.operations brought to one rank"), 0, "{ranks} ranks");
            program.end();
        }
    }
}

#[test]
fn random_sorts_and_selections_equal_those_of_one_rank() {
    let variable = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (programs, first) = (variable("BH_TEST_PROGRAMS", 700), variable("BH_TEST_FIRST", 0));
    let mut plain = cluster_on(BELOW, 1, 64);
    let mut stacks: Vec<Stack> = (2..9)
        .map(|ranks: usize| {
            let shares = ["1", "0", "2", "0.5", "3", "0.1", "1", "0.7"][..ranks].join(", ");
            let weights = if ranks.is_multiple_of(2) { format!("weights = [{shares}]") } else { String::new() };
            cluster_with(BELOW, ranks, [0, 64, 200][ranks % 3], &weights)
        })
        .collect();
    stacks.extend(
        [true, false].map(|within| siblings_that_sort(&format!("weights = [2, 1, 3]\npeer_copies = {within}"))),
    );
    for seed in first..first + programs {
        let place = (seed % stacks.len() as u64) as usize;
        sort_select::compare(&mut stacks[place], &mut plain, seed..seed + 1);
    }
}

/// Three siblings of one process.
fn siblings_that_sort(keys: &str) -> Stack {
    let text = format!(
        "[stacks]\nit = ['cluster', [[{BELOW}], [{BELOW}], [{BELOW}]]]\n[components.cluster]\nsmall_bytes = 64\n{keys}\n"
    );
    let config = stacks::from_text("cluster.toml", &text).unwrap();
    Stack::load(&config, Some("it")).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn sorts_of_two_devices_equal_those_of_one_rank() {
    let mut plain = cluster_on(BELOW, 1, 64);
    let Some(mut stack) = two_devices("peer_copies = true", "") else { return };
    sort_select::compare(&mut stack, &mut plain, 0..10);
}
