//! Gathers, scatters and matrix products between ranks: their traffic, and results equal to those of one rank.

use crate::support;

use bh_bytecode::{Opcode, View};
use support::{Program, cluster, cluster_on};

/// Numbers below a limit in no apparent order.
fn scattered(count: i64, limit: i64) -> Vec<i64> {
    (0..count).map(|at| at * 7919 % 104_729 * 31 % limit).collect()
}

#[test]
fn a_gather_sends_requests_and_elements() {
    for ranks in [2, 3, 4, 7] {
        let (len, count) = (400 * ranks as i64, 10 * ranks as i64);
        let wanted = scattered(count, len);
        let mut results = Vec::new();
        for ranks in [1, ranks] {
            let mut stack = cluster(ranks, 64);
            let mut program = Program::new(&mut stack);
            let source = program.grid(&[len], |index| 0.5 * index as f64);
            let index = program.numbers(&wanted);
            let found = program.zeros(&[count]);
            program.run();
            let before = program.traffic();
            program.op(Opcode::Gather, program.all(found), &[program.all(source), program.all(index)]);
            program.run();
            let sent = program.traffic() - before;
            if ranks > 1 {
                let owner = |at: i64, len: i64| (0..ranks as i64).find(|rank| at < len * (rank + 1) / ranks as i64);
                let far = (0..count).filter(|&at| owner(at, count) != owner(wanted[at as usize], len)).count() as u64;
                assert_eq!(sent.bytes, far * 16, "{ranks} ranks");
            }
            results.push(program.values(found));
        }
        assert_eq!(results[0], results[1], "{ranks} ranks");
        assert!(results[0].iter().zip(&wanted).all(|(&value, &index)| value == 0.5 * index as f64));
    }
}

#[test]
fn a_scatter_sends_numbers_and_values_to_the_owners() {
    for (opcode, expected) in [(Opcode::Scatter, 2.0), (Opcode::ScatterAdd, 3.0)] {
        for ranks in [2, 3, 4, 7] {
            let (len, count) = (40 * ranks as i64, 90 * ranks as i64);
            let index = scattered(count, len);
            let mut results = Vec::new();
            for ranks in [1, ranks] {
                let mut stack = cluster(ranks, 64);
                let mut program = Program::new(&mut stack);
                let target = program.grid(&[len], |_| 1.0);
                let values = program.grid(&[count], |at| 2.0 + at as f64);
                let index = program.numbers(&index);
                program.run();
                let before = program.traffic();
                program.op(opcode, program.all(target), &[program.all(values), program.all(index)]);
                program.run();
                let sent = program.traffic() - before;
                assert!(sent.bytes <= count as u64 * 16, "{ranks} ranks: {} bytes", sent.bytes);
                // The scattered array was not sent as a whole.
                assert!(sent.messages <= (ranks * ranks) as u64, "{ranks} ranks: {} messages", sent.messages);
                results.push(program.values(target));
            }
            assert_eq!(results[0], results[1], "{ranks} ranks");
            assert!(results[0].iter().any(|&value| value >= expected));
        }
    }
}

/// Indices of rows and columns that are not contiguous.
#[test]
fn indices_count_in_the_view() {
    let mut results = Vec::new();
    for ranks in [1, 3] {
        let mut stack = cluster(ranks, 0);
        let mut program = Program::new(&mut stack);
        let shape = [24, 10];
        let grid = program.grid(&shape, |index| index as f64);
        let inner = View::contiguous(&shape).unwrap().slice(0, Some(2), Some(20), 3).unwrap();
        let inner = inner.slice(1, Some(-2), Some(1), -2).unwrap();
        let index = program.numbers(&[-1, 0, 5, 7, -3, 2]);
        let found = program.zeros(&[6]);
        program.op(Opcode::Gather, program.all(found), &[(grid, inner), program.all(index)]);
        program.run();
        results.push(program.values(found));
        program.op(Opcode::Scatter, (grid, inner), &[program.all(found), program.all(index)]);
        program.run();
        results.push(program.values(grid));
    }
    assert_eq!(results[0], results[2]);
    assert_eq!(results[1], results[3]);
}

#[test]
fn an_index_out_of_range_on_one_rank_is_an_error_of_all() {
    let mut stack = cluster(3, 0);
    let mut program = Program::new(&mut stack);
    let source = program.grid(&[3000], |index| index as f64);
    let index = program.numbers(&[1, 2, 3, 4, 5, 3000]);
    let found = program.zeros(&[6]);
    program.op(Opcode::Gather, program.all(found), &[program.all(source), program.all(index)]);
    let error = program.try_run().unwrap_err();
    assert!(error.text.contains("index 3000 at position 5 is out of range for 3000 elements"), "{error}");
    assert_eq!(program.values(source)[7], 7.0);
}

#[test]
fn products_send_the_right_factor_once_to_each_rank() {
    let (rows, inner, columns) = (24i64, 20i64, 18i64);
    let entry = |at: i64| (at % 13) as f64 - 6.0;
    let mut expected = vec![0.0; (rows * columns) as usize];
    for at in 0..rows * columns {
        let (row, column) = (at / columns, at % columns);
        expected[at as usize] =
            (0..inner).map(|middle| entry(row * inner + middle) * entry(middle * columns + column)).sum();
    }
    for ranks in [1, 2, 3, 4, 7] {
        let mut stack = cluster_on("'fuser', 'node', 've-cpu'", ranks, 64);
        let mut program = Program::new(&mut stack);
        let left = program.grid(&[rows, inner], entry);
        let right = program.grid(&[inner, columns], entry);
        let product = program.zeros(&[rows, columns]);
        program.run();
        let before = program.traffic();
        program.method("matmul", program.all(product), &[program.all(left), program.all(right)]);
        program.run();
        let sent = program.traffic() - before;
        if ranks > 1 {
            assert_eq!(sent.bytes, (ranks as u64 - 1) * (inner * columns) as u64 * 8, "{ranks} ranks");
        }
        assert_eq!(program.values(product), expected, "{ranks} ranks");
    }
}

/// On a grid, each rank gets the rows of its line and some columns of the right factor, and sends its block to the
/// owners.
#[test]
fn products_on_many_ranks_move_the_least_of_all_grids() {
    let entry = |at: i64| (at % 13) as f64 - 6.0;
    for (ranks, [rows, inner, columns], line) in [
        (4u64, [16i64, 16, 64], 2u64),
        (9, [36, 36, 36], 3),
        (16, [48, 48, 48], 4),
        (12, [24, 36, 48], 4),
        (16, [50, 45, 70], 4),
        (64, [128, 128, 128], 8),
        (256, [256, 256, 256], 16),
    ] {
        let mut expected = vec![0.0; (rows * columns) as usize];
        for at in 0..rows * columns {
            let (row, column) = (at / columns, at % columns);
            expected[at as usize] =
                (0..inner).map(|middle| entry(row * inner + middle) * entry(middle * columns + column)).sum();
        }
        let mut stack = cluster_on("'fuser', 'node', 've-cpu'", ranks as usize, 64);
        let mut program = Program::new(&mut stack);
        let left = program.grid(&[rows, inner], entry);
        let right = program.grid(&[inner, columns], entry);
        let product = program.zeros(&[rows, columns]);
        program.run();
        let before = program.traffic();
        program.method("matmul", program.all(product), &[program.all(left), program.all(right)]);
        program.run();
        let sent = program.traffic() - before;
        let [m, k, n] = [rows as u64, inner as u64, columns as u64];
        let least = m * k * (line - 1) + k * n * (ranks - 1) / line + m * n * (line - 1) / line;
        if [m, k].iter().all(|extent| extent % ranks == 0) && n % line == 0 {
            assert_eq!(sent.bytes, least * 8, "{ranks} ranks");
        } else {
            assert!(sent.bytes < (ranks - 1) * k * n * 8, "{ranks} ranks: {}", sent.bytes);
        }
        assert_eq!(program.values(product), expected, "{ranks} ranks");
        program.end();
    }
}

/// Every rank has a part of each sum, and no rank has a box of the target.
#[test]
fn sums_into_scattered_places_leave_nothing_behind() {
    let (count, n) = (6i64, 200i64);
    for ranks in [2, 3, 4] {
        let mut stack = cluster(ranks, 0);
        let mut program = Program::new(&mut stack);
        let source = program.grid(&[count, n, n], |at| (at % 11) as f64);
        let sums = program.zeros(&[2 * n * n]);
        let scattered = View::new(0, &[n, n], &[n + 1, n]).unwrap();
        program.sum_into((sums, scattered), program.all(source), 1);
        program.run();
        let found = program.values(sums);
        for at in 0..n * n {
            let expected: i64 = (0..count).map(|layer| (layer * n * n + at) % 11).sum();
            assert_eq!(found[(at / n * (n + 1) + at % n * n) as usize], expected as f64, "{ranks} ranks");
        }
        program.end();
    }
}
