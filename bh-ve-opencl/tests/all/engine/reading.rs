//! How kernels read: renames, registers, tiles of local memory, vectors.

use super::{Build, check, heat};
use crate::support::{alone, count, load, load_with_groups};
use bh_bytecode::random::Program;
use bh_bytecode::{Base, DType, Instr, Opcode, Operand, View, base_flags};
use bh_tests::run;

#[test]
fn a_stencil_that_is_written_back_is_one_kernel_and_copies_of_the_border() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "specialise = 'off'\ncache_dir = ''") else { return };
    for held in [false, true] {
        let before = count(&stack, "kernels");
        check(&mut stack, &heat(held));
        // One kernel for the inside and one for the border; `work` costs none, and is read from where the inside lies.
        let kernels = count(&stack, "kernels") - before;
        assert!((1..=2).contains(&kernels), "{kernels} kernels");
    }
    assert_eq!(count(&stack, "copies on the device"), 0);
}

#[test]
fn what_is_held_keeps_its_values_when_the_array_it_lies_in_changes() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "specialise = 'off'\ncache_dir = ''") else { return };
    let mut program = heat(true);
    let flags = base_flags::LIVE_OUT | base_flags::BORN;
    let next = program.batch.push_base(Base { flags, ..Base::new(9, DType::F64, 1600) });
    let mut view =
        |base, start, len| Operand::view(program.batch.push_view(base, &View::new(start, &[len], &[1]).unwrap()));
    let (grid, all, row, last) = (view(0, 0, 1600), view(next, 0, 1600), view(0, 40, 40), view(next, 1560, 40));
    program.batch.push_instr(Instr::new(Opcode::Multiply, &[all, grid, grid]));
    program.batch.push_instr(Instr::new(Opcode::Copy, &[row, last]));
    check(&mut stack, &program);
    assert_eq!(count(&stack, "copies on the device"), 1);
}

#[test]
fn rows_that_read_what_their_neighbours_read_are_done_together() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "specialise = 'on'\ncache_dir = ''") else { return };
    // A height that is no multiple of the rows that an item does.
    let (height, width) = (259, 131);
    let mut build = Build::default();
    let (grid, out) =
        (build.base(DType::F32, (height + 2) * width, true), build.base(DType::F32, height * width, true));
    let rows: Vec<Operand> = (0..3).map(|at| build.view(grid, at * width, &[height, width - 4], &[width, 1])).collect();
    let result = build.view(out, 0, &[height, width - 4], &[width, 1]);
    build.push(Opcode::Add, &[result, rows[0], rows[1]]);
    build.push(Opcode::Add, &[result, result, rows[2]]);
    check(&mut stack, &build.program.unwrap());
}

#[test]
fn arrays_read_across_their_order_are_turned_in_tiles() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "specialise = 'off'\ncache_dir = ''") else { return };
    // Two factors that lie by columns, one of them backward, and one by rows; sides are no multiples of a tile's.
    let (height, width) = (37, 50);
    let mut build = Build::default();
    let bases = [0; 3].map(|_| build.base(DType::F32, height * width, true));
    let out = build.base(DType::F32, height * width, false);
    let shape = [height, width];
    let columns = build.view(bases[0], 0, &shape, &[1, height]);
    let backward = build.view(bases[1], height - 1, &shape, &[-1, height]);
    let rows = build.view(bases[2], 0, &shape, &[width, 1]);
    let result = build.view(out, 0, &shape, &[width, 1]);
    build.push(Opcode::Multiply, &[result, columns, rows]);
    build.push(Opcode::Subtract, &[result, result, backward]);
    check(&mut stack, &build.program.unwrap());
    assert_eq!(count(&stack, "kernels"), 1);
}

/// Sums over all pairs of the elements of two arrays, of distances and of products, along the axis `folded`.
fn pairs(rows: i64, columns: i64, folded: u16) -> Program {
    let mut build = Build::default();
    let (down, right) = (build.base(DType::F32, rows, true), build.base(DType::F32, columns + 3, true));
    let (down, right) =
        (build.view(down, 0, &[rows, columns], &[1, 0]), build.view(right, columns + 2, &[rows, columns], &[0, -1]));
    let kept = if folded == 1 { columns } else { rows };
    let temporaries: Vec<Operand> = (0..2)
        .map(|_| {
            let base = build.base(DType::F32, rows * columns, false);
            build.program().batch.bases[base as usize].flags = base_flags::BORN | base_flags::DIES;
            build.view(base, 0, &[rows, columns], &[columns, 1])
        })
        .collect();
    build.push(Opcode::Subtract, &[temporaries[0], right, down]);
    build.push(Opcode::Multiply, &[temporaries[1], temporaries[0], right]);
    for from in &temporaries {
        let base = build.base(DType::F32, kept, false);
        let result = build.view(base, 0, &[kept], &[1]);
        let instr = Instr { param: folded, ..Instr::new(Opcode::AddReduce, &[result, *from]) };
        build.program().batch.push_instr(instr);
    }
    temporaries.iter().for_each(|&temporary| build.push(Opcode::Discard, &[temporary]));
    build.program.unwrap()
}

#[test]
fn what_all_results_of_a_fold_read_comes_to_local_memory_and_changes_no_bit() {
    let _alone = alone();
    for (group, specialise) in [(16, "on"), (128, "off"), (128, "on")] {
        let keys =
            |placements: &str| format!("specialise = '{specialise}'\ncache_dir = ''\nplacements = '{placements}'");
        let Some(mut plain) = load_with_groups(group, "'opencl'", &keys("unroll")) else { return };
        let Some(mut tiled) = load_with_groups(group, "'opencl'", &keys("local,unroll")) else { return };
        for (rows, columns) in [(37, 1003), (300, 77), (130, 4500), (5, 9), (2000, 130)] {
            for folded in [1, 2] {
                let program = pairs(rows, columns, folded);
                check(&mut tiled, &program);
                let found = [&mut plain, &mut tiled].map(|stack| run::run(stack, &program).unwrap());
                for base in program.batch.bases.iter().filter(|base| base.flags & base_flags::LIVE_OUT != 0) {
                    assert_eq!(found[0].get(base.id), found[1].get(base.id), "{rows} {columns} {folded} {group}");
                }
            }
        }
    }
}

/// Sums of squares of what points and centres are apart, both of `axes` elements; `turned`: centres lie axis by axis.
fn distances(points: i64, centres: i64, axes: i64, turned: bool) -> Program {
    let mut build = Build::default();
    let shape = [points, centres, axes];
    let (down, right) = (build.base(DType::F64, points * axes, true), build.base(DType::F64, centres * axes, true));
    let down = build.view(down, 0, &shape, &[axes, 0, 1]);
    let right = build.view(right, 0, &shape, &if turned { [0, 1, centres] } else { [0, axes, 1] });
    let temporary = build.base(DType::F64, points * centres * axes, false);
    build.program().batch.bases[temporary as usize].flags = base_flags::BORN | base_flags::DIES;
    let temporary = build.view(temporary, 0, &shape, &[centres * axes, axes, 1]);
    build.push(Opcode::Subtract, &[temporary, down, right]);
    build.push(Opcode::Multiply, &[temporary, temporary, temporary]);
    let base = build.base(DType::F64, points * centres, false);
    let result = build.view(base, 0, &[points, centres], &[centres, 1]);
    build.program().batch.push_instr(Instr { param: 0b100, ..Instr::new(Opcode::AddReduce, &[result, temporary]) });
    build.push(Opcode::Discard, &[temporary]);
    build.program.unwrap()
}

#[test]
fn tables_that_neighbours_read_in_turn_come_to_local_memory_and_change_no_bit() {
    let _alone = alone();
    for (group, specialise) in [(16, "on"), (128, "off"), (128, "on")] {
        let keys =
            |placements: &str| format!("specialise = '{specialise}'\ncache_dir = ''\nplacements = '{placements}'");
        let Some(mut plain) = load_with_groups(group, "'opencl'", &keys("unroll")) else { return };
        let Some(mut tabled) = load_with_groups(group, "'opencl'", &keys("local,unroll")) else { return };
        for (points, centres, axes, turned) in
            [(3000, 13, 7, false), (3000, 13, 7, true), (5000, 2, 16, false), (9, 5, 3, false)]
        {
            let program = distances(points, centres, axes, turned);
            check(&mut tabled, &program);
            let found = [&mut plain, &mut tabled].map(|stack| run::run(stack, &program).unwrap());
            let result = program.batch.bases.last().unwrap().id;
            assert_eq!(found[0].get(result), found[1].get(result), "{points} {centres} {axes} {turned} {group}");
        }
    }
}

#[test]
fn elements_that_come_as_vectors_are_the_same() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "specialise = 'off'\ncache_dir = ''\nplacements = 'all'") else { return };
    // Enough elements for all items, and some that are left over; a shifted array, which is not aligned, and one element.
    let len = 200_003;
    for dtype in [DType::F64, DType::F32, DType::I16, DType::Bool] {
        let mut build = Build::default();
        let (source, shifted) = (build.base(dtype, len, true), build.base(dtype, len + 1, true));
        let (single, out) = (build.base(dtype, 1, true), build.base(dtype, len, false));
        let [source, out] = [source, out].map(|base| build.view(base, 0, &[len], &[1]));
        let (shifted, single) = (build.view(shifted, 1, &[len], &[1]), build.view(single, 0, &[len], &[0]));
        build.push(Opcode::Add, &[out, source, shifted]);
        build.push(Opcode::Multiply, &[out, out, single]);
        check(&mut stack, &build.program.unwrap());
    }
    assert_eq!(count(&stack, "kernels"), 4);
}
