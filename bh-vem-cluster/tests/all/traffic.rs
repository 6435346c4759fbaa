//! The traffic of well-known programs on clusters of several sizes, from the transport's counters.

use crate::support;

use bh_bytecode::{DType, Opcode, View};
use support::{Program, cluster, cluster_on, cluster_with, two_devices};

/// The interior of a grid with a border of one, shifted along each axis.
fn inner(shape: &[i64], moved: &[i64]) -> View {
    let mut view = View::contiguous(shape).unwrap();
    for (dim, &by) in moved.iter().enumerate() {
        view = view.slice(dim, Some(1 + by), Some(shape[dim] - 1 + by), 1).unwrap();
    }
    view
}

/// The pairs of neighbouring ranks: each rank has at least two rows.
fn pairs(ranks: u64) -> u64 {
    ranks - 1
}

/// One iteration of Jacobi's method, with the sum of changes.
fn heat(program: &mut Program, grid: u32, shape: &[i64]) -> u32 {
    let at = |moved: &[i64]| inner(shape, moved);
    let mut sum = program.binary(Opcode::Add, (grid, at(&[0, 0])), (grid, at(&[-1, 0])));
    for moved in [[0, 1], [0, -1], [1, 0]] {
        sum = program.binary(Opcode::Add, program.all(sum), (grid, at(&moved)));
    }
    let next = program.scale(sum, 0.2);
    let change = program.binary(Opcode::Subtract, program.all(next), (grid, at(&[0, 0])));
    let size = program.unary(Opcode::Absolute, program.all(change));
    let delta = program.sum(program.all(size));
    program.op(Opcode::Copy, (grid, at(&[0, 0])), &[program.all(next)]);
    delta
}

/// Generators write lines as a few long rows.
#[test]
fn a_line_that_is_written_in_a_few_rows_is_cut_between_elements() {
    let mut stack = cluster(16, 64);
    let mut program = Program::new(&mut stack);
    let (line, other) = (program.zeros(&[8192]), program.zeros(&[8192]));
    let rows = View::contiguous(&[2, 4096]).unwrap();
    let source = program.grid(&[2, 4096], |index| index as f64);
    program.run();
    program.op(Opcode::Copy, (line, rows), &[program.all(source)]);
    program.run();
    let before = program.traffic();
    program.op(Opcode::Add, program.all(other), &[program.all(line), program.all(line)]);
    program.run();
    assert_eq!((program.traffic() - before).bytes, 0, "the line lies as one of 16 ranks does");
    assert_eq!(program.values(other)[4097], 2.0 * 4097.0);
    program.end();
}

#[test]
fn heat_sends_two_rows_between_neighbours_and_one_number_from_each_rank() {
    let siblings = "[['node', 've-interp'], ['node', 've-interp'], ['fuser', 'node', 've-cpu']]";
    for (ranks, below) in
        [2, 3, 4, 7, 64].map(|ranks| (ranks, "'node', 've-interp'")).into_iter().chain([(3, siblings)])
    {
        let shape = [(4 * ranks as i64).max(24), 10];
        let mut alone = cluster(1, 64);
        let mut stack = cluster_on(below, ranks, 64);
        let mut results = Vec::new();
        for stack in [&mut alone, &mut stack] {
            let mut program = Program::new(stack);
            let grid = program.grid(&shape, |index| index as f64 % 7.0);
            program.run();
            let mut deltas = Vec::new();
            for turn in 0..4 {
                let before = program.traffic();
                let delta = heat(&mut program, grid, &shape);
                program.run();
                deltas.push(program.value(delta));
                let sent = program.traffic() - before;
                if ranks > 1 && program.ranks() > 1 && turn > 0 {
                    let (ranks, row) = (ranks as u64, shape[1] as u64 * 8);
                    assert_eq!(sent.bytes, pairs(ranks) * 2 * row + (ranks - 1) * 8, "{ranks} ranks, turn {turn}");
                    assert_eq!(sent.messages, pairs(ranks) * 2 + (ranks - 1), "{ranks} ranks, turn {turn}");
                }
            }
            results.push((deltas, program.values(grid)));
        }
        assert_eq!(results[0].1, results[1].1, "{ranks} ranks");
        for (one, many) in results[0].0.iter().zip(&results[1].0) {
            assert!((one - many).abs() <= 1e-12 * one, "{ranks} ranks: {one} and {many}");
        }
    }
}

/// The same bytes as iteration by iteration, in one message between neighbours. The sums of all iterations go to the
/// first rank.
#[test]
fn iterations_of_one_batch_get_their_rows_at_once() {
    let (turns, shape) = (6, [400, 10]);
    let mut found = Vec::new();
    for (ranks, percent) in [(2, 0), (2, 6), (4, 0), (4, 6)] {
        let mut stack = cluster_with("'node', 've-interp'", ranks as usize, 64, &format!("ahead_percent = {percent}"));
        let mut program = Program::new(&mut stack);
        let grid = program.grid(&shape, |index| index as f64 % 7.0);
        program.run();
        let mut deltas = Vec::new();
        for batch in 0..3 {
            let before = program.traffic();
            let each: Vec<u32> = (0..turns).map(|_| heat(&mut program, grid, &shape)).collect();
            program.run();
            deltas.extend(each.into_iter().map(|delta| program.value(delta)));
            let sent = program.traffic() - before;
            let times = if percent == 0 { turns } else { 1 };
            let (rows, numbers) = (pairs(ranks) * 2 * times, (ranks - 1) * turns);
            if batch > 0 {
                assert_eq!(
                    sent.bytes,
                    pairs(ranks) * 2 * turns * shape[1] as u64 * 8 + numbers * 8,
                    "{ranks} {percent}"
                );
                assert!((rows..=rows + numbers).contains(&sent.messages), "{ranks} {percent}: {}", sent.messages);
            }
        }
        found.push((deltas, program.values(grid)));
        program.end();
    }
    assert!(found[0] == found[1] && found[2] == found[3]);
}

#[test]
fn an_iteration_is_one_kernel_on_each_rank_one_for_the_sum_and_a_cached_plan() {
    let (ranks, shape) = (4u64, [400, 300]);
    let mut stack = cluster_on("'fuser', 'node', 've-cpu'", ranks as usize, 64);
    let mut program = Program::new(&mut stack);
    let grid = program.grid(&shape, |index| index as f64 % 7.0);
    program.run();
    for turn in 0..6 {
        let names = ["ve-cpu.kernels", "cluster.batches planned before", "node.batches"];
        let before = names.map(|name| program.count(name));
        let delta = heat(&mut program, grid, &shape);
        program.run();
        assert!(program.value(delta) > 0.0);
        let [kernels, plans, batches] = std::array::from_fn(|place| program.count(names[place]) - before[place]);
        if turn >= 3 {
            assert_eq!((kernels, plans, batches), (ranks + 1, 1, ranks + 1), "turn {turn}");
        }
    }
}

/// Two devices on one processor exchange their borders in each iteration, and nothing else.
#[test]
fn devices_of_a_process_exchange_no_more_than_borders() {
    let Some(mut stack) = two_devices("weights = [1, 1]", "") else { return };
    let shape = [400, 300];
    let mut program = Program::new(&mut stack);
    let grid = program.grid(&shape, |index| index as f64 % 7.0);
    program.run();
    let names = ["opencl.upload_bytes", "second.upload_bytes", "opencl.download_bytes", "second.download_bytes"];
    for turn in 0..6 {
        let before = names.map(|name| program.count(name));
        let delta = heat(&mut program, grid, &shape);
        program.run();
        let moved: [u64; 4] = std::array::from_fn(|place| program.count(names[place]) - before[place]);
        assert!(program.value(delta) > 0.0);
        // A row, and the sum of the second's part.
        let row = shape[1] as u64 * 8;
        assert!(turn < 3 || moved.iter().all(|bytes| (row - 16..=row + 16).contains(bytes)), "turn {turn}: {moved:?}");
    }
}

#[test]
fn several_iterations_in_a_batch_send_no_more() {
    let (ranks, shape) = (4u64, [24, 10]);
    let mut stack = cluster(ranks as usize, 64);
    let mut program = Program::new(&mut stack);
    let grid = program.grid(&shape, |index| index as f64);
    program.run();
    for turn in 0..3 {
        let before = program.traffic();
        for _ in 0..5 {
            heat(&mut program, grid, &shape);
        }
        program.run();
        let sent = program.traffic() - before;
        if turn > 0 {
            assert_eq!(sent.bytes, 5 * (pairs(ranks) * 2 * 80 + (ranks - 1) * 8));
        }
    }
}

#[test]
fn a_stencil_of_27_points_sends_two_planes_between_neighbours() {
    for ranks in [2, 3, 4, 7] {
        let shape = [4 * ranks as i64, 6, 5];
        let mut stack = cluster(ranks, 64);
        let mut program = Program::new(&mut stack);
        let grid = program.grid(&shape, |index| (index % 11) as f64);
        program.run();
        for turn in 0..3 {
            let before = program.traffic();
            let mut sum = None;
            for point in 0..27 {
                let moved = [point / 9 - 1, point / 3 % 3 - 1, point % 3 - 1];
                let there = (grid, inner(&shape, &moved));
                sum = Some(match sum {
                    None => program.unary(Opcode::Copy, there),
                    Some(sum) => program.binary(Opcode::Add, program.all(sum), there),
                });
            }
            let mean = program.scale(sum.unwrap(), 1.0 / 27.0);
            program.op(Opcode::Copy, (grid, inner(&shape, &[0, 0, 0])), &[program.all(mean)]);
            program.run();
            let sent = program.traffic() - before;
            if turn > 0 {
                assert_eq!(sent.bytes, pairs(ranks as u64) * 2 * 30 * 8, "{ranks} ranks, turn {turn}");
                assert_eq!(sent.messages, pairs(ranks as u64) * 2, "{ranks} ranks, turn {turn}");
            }
        }
    }
}

/// Many options, priced by a formula without neighbours, and the sum of the prices.
#[test]
fn elementwise_work_sends_one_number_from_each_rank() {
    for ranks in [2, 3, 4, 7, 1024] {
        let mut stack = cluster(ranks, 64);
        let mut program = Program::new(&mut stack);
        let spot = program.grid(&[8 * ranks as i64], |index| 1.0 + (index % 5) as f64);
        program.run();
        for _ in 0..2 {
            let before = program.traffic();
            let root = program.unary(Opcode::Sqrt, program.all(spot));
            let log = program.unary(Opcode::Log, program.all(spot));
            let price = program.binary(Opcode::Multiply, program.all(root), program.all(log));
            let sum = program.sum(program.all(price));
            program.run();
            program.value(sum);
            let sent = program.traffic() - before;
            assert_eq!(sent.bytes, 8 * (ranks as u64 - 1), "{ranks} ranks");
            assert_eq!(sent.most_bytes, 8, "{ranks} ranks: a rank sends one number");
        }
    }
}

#[test]
fn weak_scaling_is_constant_for_each_rank() {
    let mut most = Vec::new();
    for ranks in [16, 1024] {
        let shape = [4 * ranks as i64, 6];
        let mut stack = cluster(ranks, 64);
        let mut program = Program::new(&mut stack);
        let grid = program.grid(&shape, |index| index as f64 % 3.0);
        program.run();
        heat(&mut program, grid, &shape);
        program.run();
        let before = program.traffic();
        heat(&mut program, grid, &shape);
        program.run();
        let sent = program.traffic() - before;
        assert_eq!(sent.bytes, pairs(ranks as u64) * 2 * 48 + (ranks as u64 - 1) * 8);
        most.push((sent.most_bytes, sent.most_messages));
    }
    assert_eq!(most[0], most[1]);
    assert_eq!(most[0], (2 * 48 + 8, 3));
}

/// Half steps between points, then a whole step: three fields whose fluxes are never stored.
#[test]
fn fields_of_a_step_travel_in_one_message_to_each_neighbour() {
    for ranks in [2, 3, 4, 7] {
        let shape = [6 * ranks as i64, 8];
        let mut stack = cluster(ranks, 64);
        let mut program = Program::new(&mut stack);
        let fields: Vec<u32> = (0..3).map(|field| program.grid(&shape, |index| (index % (5 + field)) as f64)).collect();
        program.run();
        let whole = View::contiguous(&shape).unwrap();
        let rows = |from: i64, to: i64| {
            let inner = whole.slice(1, Some(1), Some(-1), 1).unwrap();
            inner.slice(0, Some(from), Some(shape[0] + to), 1).unwrap()
        };
        for turn in 0..3 {
            let before = program.traffic();
            let flows: Vec<u32> = fields
                .iter()
                .map(|&field| {
                    let middle = program.binary(Opcode::Add, (field, rows(1, 0)), (field, rows(0, -1)));
                    let slope = program.binary(Opcode::Subtract, (field, rows(1, 0)), (field, rows(0, -1)));
                    program.binary(Opcode::Multiply, program.all(middle), program.all(slope))
                })
                .collect();
            for (&field, &flow) in fields.iter().zip(&flows) {
                let [count, columns] = [shape[0] - 1, shape[1] - 2];
                let flow_of = |from: i64| View::new(from * columns, &[count - 1, columns], &[columns, 1]).unwrap();
                let change = program.binary(Opcode::Subtract, (flow, flow_of(1)), (flow, flow_of(0)));
                let change = program.scale(change, 0.01);
                let target = (field, rows(1, -1));
                program.op(Opcode::Add, target, &[target, program.all(change)]);
            }
            program.run();
            let sent = program.traffic() - before;
            if turn > 0 {
                assert_eq!(sent.messages, pairs(ranks as u64) * 2, "{ranks} ranks, turn {turn}");
                assert_eq!(sent.bytes, pairs(ranks as u64) * 2 * 3 * 64, "{ranks} ranks, turn {turn}");
            }
        }
    }
}

/// Subtracts the mean of all elements.
#[test]
fn reductions_to_all_ranks_take_few_messages_of_each() {
    for ranks in [2u64, 3, 4, 7, 16, 64, 256] {
        let shape = [4 * ranks as i64, 3];
        let mut stack = cluster(ranks as usize, 64);
        let mut program = Program::new(&mut stack);
        let grid = program.grid(&shape, |index| index as f64 % 7.0);
        program.run();
        for _ in 0..2 {
            let before = program.traffic();
            let sum = program.sum(program.all(grid));
            let mean = program.scale(sum, 1.0 / (shape[0] * shape[1]) as f64);
            let spread = program.all(mean).1.broadcast_to(&shape).unwrap();
            let rest = program.binary(Opcode::Subtract, program.all(grid), (mean, spread));
            let none = program.sum(program.all(rest));
            program.run();
            let sent = program.traffic() - before;
            // Up the tree and down for the mean, and up once more for the sum.
            assert_eq!(sent.messages, 3 * (ranks - 1), "{ranks} ranks");
            let steps = u64::from(ranks.next_power_of_two().ilog2().div_ceil(2));
            assert!(sent.most_messages <= 2 + 3 * steps, "{ranks} ranks: {} messages", sent.most_messages);
            assert!(program.value(none).abs() < 1e-9);
        }
    }
}

/// Creates an array in one of several ways; also returns the bytes that this sent.
fn begun(program: &mut Program, how: &str, shape: [i64; 2]) -> (u32, u64) {
    let value = |at: i64| ((at * 7919) % 1009) as f64;
    let before = program.traffic();
    let array = match how {
        "memory" => program.grid(&shape, value),
        "given away" => program.given(&shape, value),
        _ => {
            let array = program.zeros(&shape);
            let len = shape[0] * shape[1];
            match how {
                "zeros" => program.fill(program.all(array), 0.0),
                "a range" => program.range((array, View::contiguous(&[len]).unwrap())),
                "random numbers" => {
                    // Generators write lines as long rows, from numbers of rows and of columns.
                    let rows = [len / 512, 512];
                    let (row, column) =
                        (program.grid(&rows[..1], |at| at as f64), program.grid(&rows[1..], |at| at as f64));
                    let [up, across] = [[1, 0], [0, 1]].map(|stride| View::new(0, &rows, &stride).unwrap());
                    let mut sum = program.binary(Opcode::Multiply, (row, up), (column, across));
                    for _ in 0..6 {
                        let more = program.binary(Opcode::Add, (row, up), (column, across));
                        sum = program.binary(Opcode::Subtract, program.all(sum), program.all(more));
                    }
                    let root = program.unary(Opcode::Sin, program.all(sum));
                    program.op(Opcode::Copy, (array, View::contiguous(&rows).unwrap()), &[program.all(root)]);
                }
                other => panic!("'{other}'"),
            }
            array
        }
    };
    program.run();
    (array, (program.traffic() - before).bytes)
}

/// The bytes that a use of an array sends.
fn used(program: &mut Program, use_of_it: &str, array: u32, shape: [i64; 2]) -> u64 {
    let [rows, columns] = shape;
    let all = program.all(array);
    let target = match use_of_it {
        "row sums" | "column sums" => program.zeros(&[if use_of_it == "row sums" { rows } else { columns }]),
        "a transpose" => program.zeros(&[columns, rows]),
        "a product" => program.zeros(&[rows, 2]),
        "transforms of rows" => program.array_of(DType::C128, &shape),
        "halves of transforms of rows" => program.array_of(DType::C128, &[rows, columns / 2 + 1]),
        _ => program.zeros(&shape),
    };
    let target = program.all(target);
    let factor = program.grid(&[columns, 2], |at| at as f64);
    program.run();
    let before = program.traffic();
    match use_of_it {
        "sorted rows" => program.method("sort", target, &[all]),
        "row sums" => program.sum_into(target, all, 2),
        "column sums" => program.sum_into(target, all, 1),
        "a product" => program.method("matmul", target, &[all, program.all(factor)]),
        "a multiple" => program.op(Opcode::Add, target, &[all, all]),
        "a transpose" => program.op(Opcode::Copy, target, &[(array, all.1.transpose(&[1, 0]).unwrap())]),
        "transforms of rows" => program.method("fft", target, &[all]),
        "halves of transforms of rows" => program.method("rfft", target, &[all]),
        "a stencil" => {
            let at = |moved: [i64; 2]| (array, inner(&shape, &moved));
            let sum = program.binary(Opcode::Add, at([-1, 0]), at([1, 0]));
            let sum = program.binary(Opcode::Add, program.all(sum), at([0, 1]));
            program.op(Opcode::Add, (target.0, inner(&shape, &[0, 0])), &[program.all(sum), at([0, -1])]);
        }
        other => panic!("'{other}'"),
    }
    program.run();
    (program.traffic() - before).bytes
}

/// Arrays begin in rows, regardless of how they are created. Their first use sends the elements that rows require, in
/// separate batches or in one. Donated memory moves to the ranks with its first use, once.
#[test]
fn the_first_use_of_an_array_sends_what_rows_must() {
    let (ranks, shape) = (16u64, [4096i64, 128]);
    let all = (shape[0] * shape[1]) as u64 * 8;
    let others = all / ranks * (ranks - 1);
    let [rows, columns] = shape.map(|extent| extent as u64 * 8);
    for how in ["zeros", "a range", "random numbers", "memory", "given away"] {
        for (use_of_it, most) in [
            ("sorted rows", 0),
            ("row sums", 0),
            ("column sums", columns * (ranks - 1)),
            ("a product", columns * 2 * (ranks - 1)),
            ("a multiple", 0),
            ("a stencil", pairs(ranks) * 2 * columns),
            ("transforms of rows", 0),
            ("halves of transforms of rows", 0),
            ("a transpose", others),
        ] {
            let mut stack = cluster_on("'fuser', 'node', 've-cpu'", ranks as usize, 64);
            let mut program = Program::new(&mut stack);
            let (array, made) = begun(&mut program, how, shape);
            // All ranks get the operands: numbers of rows and of columns.
            let sources = ranks * (rows + 512 * 8);
            let first = if how == "memory" { others } else { 0 } + if how == "random numbers" { sources } else { 0 };
            assert!(made <= first, "{how}: {made} bytes, not {first}");
            let moves = if how == "given away" { others } else { 0 };
            let sent = used(&mut program, use_of_it, array, shape);
            assert!(sent <= most + moves, "{use_of_it} of {how}: {sent} bytes, not {}", most + moves);
            let again = used(&mut program, use_of_it, array, shape);
            assert!(again <= most, "{use_of_it} of {how}, again: {again} bytes, not {most}");
            program.end();
        }
    }
}

/// Small uses of donated memory move only the elements in use.
#[test]
fn adopted_memory_stays_until_ranks_have_read_as_much() {
    let (ranks, shape) = (8u64, [64i64, 64]);
    let mut stack = cluster(ranks as usize, 64);
    let mut program = Program::new(&mut stack);
    let array = program.given(&shape, |at| at as f64);
    let first = View::contiguous(&[1, 64]).unwrap();
    let results: Vec<u32> = (0..40).map(|_| program.zeros(&[1, 64])).collect();
    let (mut sent, mut most) = (0, 0);
    for &result in &results {
        let before = program.traffic();
        program.op(Opcode::Add, program.all(result), &[(array, first), (array, first)]);
        program.run();
        let now = (program.traffic() - before).bytes;
        (sent, most) = (sent + now, most.max(now));
        assert_eq!(program.values(result)[63], 126.0);
    }
    let all = 64 * 64 * 8;
    assert!(most <= all && sent <= 2 * all, "{sent} bytes, {most} at most");
    assert_eq!(program.values(array)[4095], 4095.0);
    program.end();
}
