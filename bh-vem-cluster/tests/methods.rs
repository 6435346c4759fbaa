//! Extension methods on clusters: what they send, and that they give what one rank does.

mod support;

use bh_bytecode::View;
use support::{Program, cluster_on};

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
        // Columns come to the ranks that have them as lines: all but those that stay.
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
