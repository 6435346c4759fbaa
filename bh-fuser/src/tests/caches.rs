//! The caches: what hits, what must not.

use crate::Partitioner;
use crate::cache::{AssignmentCache, PartitionCache};
use crate::options::Options;
use crate::tests::{eager, small_programs};
use bh_bytecode::validate::partition as verify;
use bh_bytecode::{Base, Batch, BatchRef, DType, Instr, Opcode, Operand, View, base_flags, random};

/// Two updates of ten elements each: of bases of their own, or of one base.
fn updates(aliased: bool) -> Batch {
    let mut batch = Batch::default();
    let old =
        |batch: &mut Batch, id| batch.push_base(Base { flags: base_flags::LIVE_OUT, ..Base::new(id, DType::F64, 20) });
    let a = old(&mut batch, 1);
    let b = if aliased { a } else { old(&mut batch, 2) };
    let low = View::new(0, &[10], &[1]).unwrap();
    let high = View::new(10, &[10], &[1]).unwrap();
    let out = Operand::view(batch.intern_view(a, &low));
    let input = Operand::view(batch.intern_view(b, &high));
    batch.push_instr(Instr::new(Opcode::Add, &[out, out, input]));
    batch
}

fn remember(cache: &mut PartitionCache, batch: &BatchRef<'_>) -> bool {
    let hit = cache.look_up(batch);
    if !hit {
        cache.insert(Partitioner::default().partition(batch, &Options::default()));
    }
    verify(&cache.found().unwrap().apply(batch)).unwrap();
    hit
}

#[test]
fn aliased_batches_of_equal_text_are_told_apart() {
    let mut cache = PartitionCache::new(10, 1 << 20);
    assert!(!remember(&mut cache, &updates(false).as_ref()));
    assert!(!remember(&mut cache, &updates(true).as_ref()));
    assert!(remember(&mut cache, &updates(false).as_ref()));
    assert!(remember(&mut cache, &updates(true).as_ref()));
}

#[test]
fn a_cache_without_room_finds_nothing() {
    let mut cache = PartitionCache::new(0, 1 << 20);
    for _ in 0..3 {
        assert!(!remember(&mut cache, &updates(false).as_ref()));
    }
    assert_eq!(cache.entries().len(), 1);
}

#[test]
fn flags_matter_and_identities_do_not() {
    let mut cache = PartitionCache::new(10, 1 << 20);
    let mut batch = updates(false);
    assert!(!remember(&mut cache, &batch.as_ref()));
    batch.bases[0].id = 77;
    assert!(remember(&mut cache, &batch.as_ref()));
    batch.bases[0].flags |= base_flags::PINNED;
    assert!(!remember(&mut cache, &batch.as_ref()));
}

#[test]
fn random_programs_hit_the_second_time_and_memory_is_bounded() {
    let mut cache = PartitionCache::new(50, 1 << 20);
    let program = |seed| random::program(seed, &small_programs()).batch;
    for seed in 0..300 {
        remember(&mut cache, &program(seed).as_ref());
        assert!(remember(&mut cache, &program(seed).as_ref()));
        assert!(cache.entries().len() <= 50);
    }
    let mut small = PartitionCache::new(1000, 20_000);
    for seed in 0..300 {
        remember(&mut small, &program(seed).as_ref());
        assert!(small.entries().len() < 100);
    }
}

/// One step of an elimination on an n×n matrix: the rows below the pivot, minus multiples of its row.
fn elimination_step(n: i64, step: i64) -> Batch {
    let mut batch = Batch::default();
    let rest = n - step - 1;
    let matrix = batch.push_base(Base { flags: base_flags::LIVE_OUT, ..Base::new(1, DType::F64, n * n) });
    let flags = base_flags::BORN | base_flags::DIES;
    let product = batch.push_base(Base { flags, ..Base::new(2, DType::F64, rest * rest) });
    let mut view = |base, start, strides: [i64; 2]| {
        Operand::view(batch.intern_view(base, &View::new(start, &[rest, rest], &strides).unwrap()))
    };
    let column = view(matrix, (step + 1) * n + step, [n, 0]);
    let row = view(matrix, step * n + step + 1, [0, 1]);
    let square = view(matrix, (step + 1) * n + step + 1, [n, 1]);
    let product = view(product, 0, [rest, 1]);
    batch.push_instr(Instr::new(Opcode::Multiply, &[product, column, row]));
    batch.push_instr(Instr::new(Opcode::Subtract, &[square, square, product]));
    batch.push_instr(Instr::new(Opcode::Discard, &[product]));
    batch
}

#[test]
fn shrinking_views_find_their_assignment() {
    let mut assignments = AssignmentCache::new(10);
    let mut partitioner = Partitioner::default();
    for step in 0..20 {
        let batch = elimination_step(25, step);
        let (partition, hit) = partitioner.partition_with(&batch.as_ref(), &Options::default(), &mut assignments);
        assert_eq!(hit, step > 0, "step {step}");
        assert_eq!((partition.blocks.len(), partition.contracted.as_slice()), (1, &[1][..]));
        verify(&partition.apply(&batch.as_ref())).unwrap();
    }
}

/// A step of a stencil on the inside of an n×n grid, in place: one kernel with a rename, if the border is small.
fn stencil_step(n: i64) -> Batch {
    let mut batch = Batch::default();
    let grid = batch.push_base(Base { flags: base_flags::LIVE_OUT, ..Base::new(1, DType::F64, n * n) });
    let inside = n - 2;
    let flags = base_flags::BORN | base_flags::DIES;
    let work = batch.push_base(Base { flags, ..Base::new(2, DType::F64, inside * inside) });
    let mut view = |base, start, row| {
        Operand::view(batch.intern_view(base, &View::new(start, &[inside, inside], &[row, 1]).unwrap()))
    };
    let (north, south, center) = (view(grid, 1, n), view(grid, 2 * n + 1, n), view(grid, n + 1, n));
    let work = view(work, 0, inside);
    batch.push_instr(Instr::new(Opcode::Add, &[work, north, south]));
    batch.push_instr(Instr::new(Opcode::Copy, &[center, work]));
    batch.push_instr(Instr::new(Opcode::Discard, &[work]));
    batch
}

#[test]
fn shrinking_grids_find_their_renames_until_these_cost_too_much() {
    let mut assignments = AssignmentCache::new(10);
    let mut partitioner = Partitioner::default();
    let mut hits = Vec::new();
    for n in (5..60).rev() {
        let batch = stencil_step(n);
        let (partition, hit) = partitioner.partition_with(&batch.as_ref(), &Options::default(), &mut assignments);
        // What is remembered is what a new search finds.
        assert_eq!(partition, Partitioner::default().partition(&batch.as_ref(), &Options::default()), "n = {n}");
        verify(&partition.apply(&batch.as_ref())).unwrap();
        hits.push((hit, partition.renames.len()));
    }
    // Below a quarter of border there is a rename, above there is none; each is searched for once.
    assert_eq!(hits.iter().filter(|(hit, _)| !hit).count(), 2, "{hits:?}");
    assert_eq!((hits[1], hits[hits.len() - 1]), ((true, 1), (true, 0)));
}

#[test]
fn assignments_are_legal_for_whatever_finds_them() {
    let mut assignments = AssignmentCache::new(100_000);
    let mut partitioner = Partitioner::default();
    let (mut hits, mut renames) = (0, 0);
    for seed in 0..20_000 {
        let options = random::Options { max_instrs: 4, ..small_programs() };
        let batch = random::program(seed, &options).batch;
        let (partition, hit) = partitioner.partition_with(&batch.as_ref(), &eager(), &mut assignments);
        hits += u32::from(hit);
        renames += u32::from(hit && !partition.renames.is_empty());
        let batch = batch.as_ref();
        verify(&partition.apply(&batch)).unwrap_or_else(|text| panic!("seed {seed}, hit {hit}: {text}"));
    }
    assert!(hits > 500 && renames > 10, "{hits} hits, {renames} of them with renames");
}
