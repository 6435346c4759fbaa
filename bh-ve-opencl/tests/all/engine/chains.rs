//! Chains of kernels that run tile by tile.

use super::{Build, check};
use crate::support::{alone, count, load};
use bh_bytecode::random::Program;
use bh_bytecode::{DType, Opcode};

/// Two grids that are made of each other in turn, in place: rows of one are read before they change, and after.
#[test]
fn chains_run_tile_by_tile() {
    let _alone = alone();
    let keys = "small_bytes = 0\nsmall_operations = 0\ncache_dir = ''\nwhile_building = 'off'\ntime_tiles = '4'";
    let Some(mut stack) = load("'opencl'", keys) else { return };
    for dtype in [DType::F64, DType::C64] {
        let before = (count(&stack, "tilings"), count(&stack, "kernels in tiles"));
        check(&mut stack, &two_grids(dtype));
        let after = (count(&stack, "tilings"), count(&stack, "kernels in tiles"));
        assert_eq!((after.0 - before.0, after.1 - before.1), (2, 6), "{dtype}");
    }
}

/// The same in three dimensions, where items have elements of planes: neighbours along all axes, and two sides of the border.
#[test]
fn chains_of_planes_run_tile_by_tile() {
    let _alone = alone();
    let keys = "small_bytes = 0\nsmall_operations = 0\ncache_dir = ''\nwhile_building = 'off'\ntime_tiles = '6'";
    let Some(mut stack) = load("'opencl'", keys) else { return };
    for (dtype, n) in [(DType::F64, 40), (DType::I16, 21)] {
        let before = count(&stack, "kernels in tiles");
        check(&mut stack, &two_cubes(dtype, n));
        assert!(count(&stack, "kernels in tiles") >= before + 4, "{dtype}");
    }
}

/// Each cube is made of the neighbours of the other one's elements in turn, four times, and two of its sides of what lies beside.
fn two_cubes(dtype: DType, n: i64) -> Program {
    let mut build = Build::default();
    let cubes = [0, 1].map(|_| build.base(dtype, n * n * n, true));
    for turn in 0..4 {
        let (from, to) = (cubes[turn % 2], cubes[(turn + 1) % 2]);
        let middle = n * n + n + 1;
        let mut inner = |base, by| build.view(base, middle + by, &[n - 2, n - 2, n - 2], &[n * n, n, 1]);
        let inside = inner(to, 0);
        let [up, down, left, right, before, behind] = [-n * n, n * n, -n, n, -1, 1].map(|by| inner(from, by));
        build.push(Opcode::Subtract, &[inside, up, down]);
        for [one, other] in [[left, right], [before, behind]] {
            build.push(Opcode::Add, &[inside, inside, one]);
            build.push(Opcode::Subtract, &[inside, inside, other]);
        }
        let mut side = |start, step| build.view(to, start, &[n, n], &[n * n, step]);
        let [first, second, front, behind] = [side(0, 1), side(n, 1), side(n * n - n, 1), side(n * n - 2 * n, 1)];
        build.push(Opcode::Copy, &[first, second]);
        build.push(Opcode::Copy, &[front, behind]);
    }
    build.program.unwrap()
}

/// Each grid is made of the other one in turn, three times.
fn two_grids(dtype: DType) -> Program {
    let mut build = Build::default();
    let n = 40;
    let grids = [0, 1].map(|_| build.base(dtype, n * n, true));
    for turn in 0..6 {
        let (from, to) = (grids[turn % 2], grids[(turn + 1) % 2]);
        let mut inner = |base, start| build.view(base, start, &[n - 2, n - 2], &[n, 1]);
        let step = [inner(to, n + 1), inner(from, n), inner(from, 2 * n + 1)];
        build.push(Opcode::Subtract, &step);
    }
    build.program.unwrap()
}
