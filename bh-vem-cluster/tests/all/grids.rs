//! Arrays on grids of ranks: the traffic of the rank that sends the most, and results equal to those of one rank.

use crate::support;

use bh_bytecode::{Opcode, View};
use bh_core::stack::Stack;
use support::{Program, cluster, cluster_with};

/// A cluster on this grid of ranks.
fn on_grid(ranks: usize, grid: &str) -> Stack {
    cluster_with("'node', 've-interp'", ranks, 64, &format!("grid = '{grid}'"))
}

/// The interior of a plane, shifted.
fn inner(shape: [i64; 2], moved: [i64; 2]) -> View {
    let view = View::contiguous(&shape).unwrap();
    let rows = view.slice(0, Some(1 + moved[0]), Some(shape[0] - 1 + moved[0]), 1).unwrap();
    rows.slice(1, Some(1 + moved[1]), Some(shape[1] - 1 + moved[1]), 1).unwrap()
}

/// One iteration of Jacobi's method, with the sum of all new values.
fn heat(program: &mut Program, plane: u32, shape: [i64; 2]) -> u32 {
    let at = |moved: [i64; 2]| inner(shape, moved);
    let mut sum = program.binary(Opcode::Add, (plane, at([0, 0])), (plane, at([-1, 0])));
    for moved in [[0, 1], [0, -1], [1, 0]] {
        sum = program.binary(Opcode::Add, program.all(sum), (plane, at(moved)));
    }
    let next = program.scale(sum, 0.25);
    let total = program.sum(program.all(next));
    program.op(Opcode::Copy, (plane, at([0, 0])), &[program.all(next)]);
    total
}

/// The result of some iterations on a plane that operations create: sums, and the bytes and messages of the heaviest
/// rank in the last iteration.
fn heated(stack: &mut Stack, shape: [i64; 2], turns: usize) -> (Vec<f64>, Vec<f64>, [u64; 2]) {
    let mut program = Program::new(stack);
    let first = program.grid(&[shape[1]], |at| (at % 7) as f64);
    let plane = program.zeros(&shape);
    let (mut sums, mut most) = (Vec::new(), [0; 2]);
    let line = program.all(first).1.broadcast_to(&shape).unwrap();
    program.op(Opcode::Copy, program.all(plane), &[(first, line)]);
    for _ in 0..turns {
        let total = heat(&mut program, plane, shape);
        let before = program.traffic();
        program.run();
        let sent = program.traffic() - before;
        most = [sent.most_bytes, sent.most_messages];
        sums.push(program.value(total));
    }
    let left = program.values(plane);
    program.end();
    (left, sums, most)
}

/// A rank sends the borders of its box in four messages, and its part of the sum.
#[test]
fn stencils_send_the_borders_of_boxes() {
    for (ranks, grid, shape) in [
        (4usize, "2x2", [16, 16]),
        (6, "2x3", [16, 18]),
        (16, "4x4", [40, 48]),
        (64, "8x8", [64, 64]),
        (1024, "32x32", [96, 96]),
        (4096, "64x64", [128, 128]),
    ] {
        let (left, sums, [bytes, messages]) = heated(&mut on_grid(ranks, grid), shape, 3);
        let lines: Vec<i64> = grid.split('x').map(|axis| axis.parse().unwrap()).collect();
        let block = [shape[0] / lines[0], shape[1] / lines[1]];
        let sides = [lines[0].min(3) - 1, lines[1].min(3) - 1];
        let least = sides[0] * block[1] + sides[1] * block[0] + 1;
        assert!(bytes <= least as u64 * 8, "{grid}: {bytes} bytes, not {}", least * 8);
        assert!(messages <= (sides[0] + sides[1] + 1) as u64, "{grid}: {messages} messages");
        let (alone, totals, _) = heated(&mut cluster(1, 64), shape, 3);
        assert_eq!(left, alone, "{grid}");
        for (one, many) in totals.iter().zip(&sums) {
            assert!((one - many).abs() <= 1e-12 * one.abs(), "{grid}: {one} and {many}");
        }
    }
}

/// Without a given grid, bh chooses one if it moves less: with many ranks, or with fewer rows than ranks.
#[test]
fn the_model_takes_a_grid_where_it_moves_less() {
    let below = "'fuser', 'node', 've-cpu'";
    for (ranks, shape, boxes) in [(4usize, [512i64, 512], false), (64, [2048, 2048], true), (6, [2, 3000], true)] {
        let mut found = Vec::new();
        for key in ["auto", "rows"] {
            let mut stack = cluster_with(below, ranks, 64, &format!("grid = '{key}'"));
            found.push(match shape[0] {
                2 => widest(&mut stack, shape),
                _ => heated(&mut stack, shape, 3).2[0],
            });
        }
        assert_eq!(found[0] < found[1], boxes, "{ranks} ranks: {found:?}");
    }
}

/// The most elements that any rank sends to the program, of a few long rows that operations create.
fn widest(stack: &mut Stack, shape: [i64; 2]) -> u64 {
    let mut program = Program::new(stack);
    let first = program.grid(&[shape[1]], |at| at as f64);
    let rows = program.zeros(&shape);
    let line = program.all(first).1.broadcast_to(&shape).unwrap();
    program.op(Opcode::Add, program.all(rows), &[(first, line), (first, line)]);
    let before = program.traffic();
    program.run();
    let sent = program.traffic() - before;
    assert!(program.values(rows).iter().enumerate().all(|(at, value)| *value == 2.0 * (at as i64 % shape[1]) as f64));
    program.end();
    sent.most_bytes
}

/// Forces between all pairs: a rank gets the bodies of its line and of its column, and a line adds its results.
#[test]
fn pairs_are_taken_in_squares() {
    for (ranks, grid, n) in
        [(4usize, "2x2", 12i64), (6, "2x3", 24), (16, "4x4", 64), (64, "8x8", 128), (256, "16x16", 512)]
    {
        let mut found = Vec::new();
        for (ranks, grid) in [(1, "rows"), (ranks, grid)] {
            let mut stack = on_grid(ranks, grid);
            let mut program = Program::new(&mut stack);
            let position = program.grid(&[n], |at| ((at * 37) % 101) as f64);
            let velocity = program.grid(&[n], |_| 1.0);
            program.run();
            let mut sent = program.traffic();
            for turn in 0..2 {
                sent = program.traffic();
                let row = View::new(0, &[n, n], &[0, 1]).unwrap();
                let column = View::new(0, &[n, n], &[1, 0]).unwrap();
                let distance = program.binary(Opcode::Subtract, (position, row), (position, column));
                let square = program.binary(Opcode::Multiply, program.all(distance), program.all(distance));
                let force = program.binary(Opcode::Multiply, program.all(square), program.all(distance));
                program.sum_into(program.all(velocity), program.all(force), 2);
                program.op(Opcode::Add, program.all(position), &[program.all(position), program.all(velocity)]);
                if turn == 0 {
                    let all = program.zeros(&[n]);
                    program.sum_into(program.all(all), program.all(force), 1);
                }
                program.run();
                sent = program.traffic() - sent;
            }
            found.push(program.values(position));
            if ranks > 1 {
                let lines: Vec<u64> = grid.split('x').map(|axis| axis.parse().unwrap()).collect();
                let (n, p) = (n as u64, ranks as u64);
                // It sends its own bodies to its column and its line, and its part of the sums to the others of the
                // line.
                let own = n.div_ceil(p);
                let most = own * (lines[0] + lines[1]) + n.div_ceil(lines[0]);
                assert!(sent.most_bytes <= most * 8, "{grid}: {} bytes, not {}", sent.most_bytes, most * 8);
                assert!(sent.most_messages <= 3 * (lines[0] + lines[1]), "{grid}: {}", sent.most_messages);
            }
            program.end();
        }
        for (one, many) in found[0].iter().zip(&found[1]) {
            assert!((one - many).abs() <= 1e-9 * one.abs(), "{grid}: {one} and {many}");
        }
    }
}
