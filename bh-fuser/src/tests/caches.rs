//! The caches: what hits, what must not.

use crate::Partitioner;
use crate::cache::{AssignmentCache, Entry, PartitionCache};
use crate::emit::Partition;
use crate::options::Options;
use crate::tests::{eager, small_programs};
use bh_bytecode::planning::{Level, Planning, Work};
use bh_bytecode::text;
use bh_bytecode::validate::partition as verify;
use bh_bytecode::{Base, Batch, BatchRef, DType, Instr, Opcode, Operand, View, base_flags, random};

/// Thirty operations, each on what the one before made.
const THIRTY: &str = "bh batch 1
base b0 = f64[1000] id 1 row 10
base b1 = f64[10] id 2 row 10 born dies
base b2 = f64[10] id 3 row 10 born dies
base b3 = f64[10] id 4 row 10 born dies
base b4 = f64[10] id 5 row 10 born dies
base b5 = f64[10] id 6 row 10 born dies
base b6 = f64[10] id 7 row 10 born dies
base b7 = f64[10] id 8 row 10 born dies
base b8 = f64[10] id 9 row 10 born dies
base b9 = f64[10] id 10 row 10 born dies
base b10 = f64[10] id 11 row 10 born dies
base b11 = f64[10] id 12 row 10 born dies
base b12 = f64[10] id 13 row 10 born dies
base b13 = f64[10] id 14 row 10 born dies
base b14 = f64[10] id 15 row 10 born dies
base b15 = f64[10] id 16 row 10 born dies
base b16 = f64[10] id 17 row 10 born dies
base b17 = f64[10] id 18 row 10 born dies
base b18 = f64[10] id 19 row 10 born dies
base b19 = f64[10] id 20 row 10 born dies
base b20 = f64[10] id 21 row 10 born dies
base b21 = f64[10] id 22 row 10 born dies
base b22 = f64[10] id 23 row 10 born dies
base b23 = f64[10] id 24 row 10 born dies
base b24 = f64[10] id 25 row 10 born dies
base b25 = f64[10] id 26 row 10 born dies
base b26 = f64[10] id 27 row 10 born dies
base b27 = f64[10] id 28 row 10 born dies
base b28 = f64[10] id 29 row 10 born dies
base b29 = f64[10] id 30 row 10 born dies
base b30 = f64[10] id 31 row 10 born
view v0 = b0 at 0 [10:1]
view v1 = b1 at 0 [10:1]
view v2 = b2 at 0 [10:1]
view v3 = b3 at 0 [10:1]
view v4 = b4 at 0 [10:1]
view v5 = b5 at 0 [10:1]
view v6 = b6 at 0 [10:1]
view v7 = b7 at 0 [10:1]
view v8 = b8 at 0 [10:1]
view v9 = b9 at 0 [10:1]
view v10 = b10 at 0 [10:1]
view v11 = b11 at 0 [10:1]
view v12 = b12 at 0 [10:1]
view v13 = b13 at 0 [10:1]
view v14 = b14 at 0 [10:1]
view v15 = b15 at 0 [10:1]
view v16 = b16 at 0 [10:1]
view v17 = b17 at 0 [10:1]
view v18 = b18 at 0 [10:1]
view v19 = b19 at 0 [10:1]
view v20 = b20 at 0 [10:1]
view v21 = b21 at 0 [10:1]
view v22 = b22 at 0 [10:1]
view v23 = b23 at 0 [10:1]
view v24 = b24 at 0 [10:1]
view v25 = b25 at 0 [10:1]
view v26 = b26 at 0 [10:1]
view v27 = b27 at 0 [10:1]
view v28 = b28 at 0 [10:1]
view v29 = b29 at 0 [10:1]
view v30 = b30 at 0 [10:1]
i0: v1 = sqrt v0
i1: v2 = sqrt v1
i2: v3 = sqrt v2
i3: v4 = sqrt v3
i4: v5 = sqrt v4
i5: v6 = sqrt v5
i6: v7 = sqrt v6
i7: v8 = sqrt v7
i8: v9 = sqrt v8
i9: v10 = sqrt v9
i10: v11 = sqrt v10
i11: v12 = sqrt v11
i12: v13 = sqrt v12
i13: v14 = sqrt v13
i14: v15 = sqrt v14
i15: v16 = sqrt v15
i16: v17 = sqrt v16
i17: v18 = sqrt v17
i18: v19 = sqrt v18
i19: v20 = sqrt v19
i20: v21 = sqrt v20
i21: v22 = sqrt v21
i22: v23 = sqrt v22
i23: v24 = sqrt v23
i24: v25 = sqrt v24
i25: v26 = sqrt v25
i26: v27 = sqrt v26
i27: v28 = sqrt v27
i28: v29 = sqrt v28
i29: v30 = sqrt v29
";

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

/// Options with all planning there is.
fn full(options: Options) -> Options {
    Options { planning: Planning::Always(Level::Full), ..options }
}

fn remember(cache: &mut PartitionCache, batch: &BatchRef<'_>) -> bool {
    let hit = cache.look_up(batch, Planning::Always(Level::Full));
    if !hit {
        let partition = Partitioner::default().partition(batch, &Options::default());
        cache.insert(Entry::new(partition, Level::Full, Work::of(batch)));
    }
    verify(&cache.found().unwrap().apply(batch)).unwrap();
    hit
}

#[test]
fn aliased_batches_of_equal_text_are_told_apart() {
    let mut cache = PartitionCache::new(1 << 20);
    assert!(!remember(&mut cache, &updates(false).as_ref()));
    assert!(!remember(&mut cache, &updates(true).as_ref()));
    assert!(remember(&mut cache, &updates(false).as_ref()));
    assert!(remember(&mut cache, &updates(true).as_ref()));
}

#[test]
fn what_is_foretold_counts_once() {
    let mut cache = PartitionCache::new(1 << 20);
    let batch = updates(false);
    assert!(!cache.foretell(&batch.as_ref(), Planning::Auto));
    let partition = Partitioner::default().partition(&batch.as_ref(), &Options::default());
    cache.insert(Entry::new(partition, Level::Linear, Work::of(&batch.as_ref())));
    for before in 0..2 {
        cache.foretell(&batch.as_ref(), Planning::Auto);
        assert_eq!(cache.seen(), before);
        cache.foretell(&batch.as_ref(), Planning::Auto);
        cache.look_up(&batch.as_ref(), Planning::Auto);
        assert_eq!(cache.seen(), before);
    }
    cache.look_up(&batch.as_ref(), Planning::Auto);
    assert_eq!(cache.seen(), 2);
}

/// A partition of one kernel with everything that a partition can have.
fn renaming() -> (Batch, Partition) {
    let batch = stencil_step(59);
    let partition = Partitioner::default().partition(&batch.as_ref(), &Options::default());
    assert_eq!((partition.blocks.len(), partition.contracted.len(), partition.renames.len()), (1, 1, 1));
    (batch, partition)
}

/// The name of a kind of damage, and the function that does it.
type Damage<'a> = (&'a str, &'a dyn Fn(&mut Partition));

#[test]
fn partitions_from_files_are_refused_if_they_are_none_of_the_batch() {
    let (batch, good) = renaming();
    let found = |partition: Partition| {
        let mut cache = PartitionCache::new(1 << 20);
        cache.look_up(&batch.as_ref(), Planning::Auto);
        let work = Work::of(&batch.as_ref());
        cache.insert(Entry { foreign: true, ..Entry::new(partition, Level::Full, work) });
        cache.look_up(&batch.as_ref(), Planning::Auto)
    };
    assert!(found(good.clone()));
    let damages: [Damage<'_>; 12] = [
        ("an instruction twice", &|it| it.block_instrs[0] = it.block_instrs[1]),
        ("an instruction that is not there", &|it| it.block_instrs[0] = 99),
        ("an instruction less", &|it| {
            it.block_instrs.pop();
        }),
        ("a block of fewer instructions", &|it| it.blocks[0].instr_count -= 1),
        ("a block that begins later", &|it| it.blocks[0].instrs += 1),
        ("a block of more contracted bases", &|it| it.blocks[0].contracted_count += 1),
        ("a block of more renames", &|it| it.blocks[0].rename_count += 1),
        ("a contracted base that is not there", &|it| it.contracted[0] = 2),
        ("a renamed base that is not there", &|it| it.renames[0].base = 2),
        ("an alias that is not there", &|it| it.renames[0].alias = 2),
        ("a view that is not there", &|it| it.renames[0].alias_view = 1000),
        ("more uncovered views than there are", &|it| it.renames[0].uncovered_count += 1),
    ];
    for (what, damage) in damages {
        let mut bad = good.clone();
        damage(&mut bad);
        assert!(!found(bad), "{what}");
    }
}

#[test]
fn a_cache_without_room_finds_nothing() {
    let mut cache = PartitionCache::new(0);
    for _ in 0..3 {
        assert!(!remember(&mut cache, &updates(false).as_ref()));
    }
    assert_eq!((cache.entries().count(), cache.bytes()), (0, 0));
}

#[test]
fn flags_matter_and_identities_do_not() {
    let mut cache = PartitionCache::new(1 << 20);
    let mut batch = updates(false);
    assert!(!remember(&mut cache, &batch.as_ref()));
    batch.bases[0].id = 77;
    assert!(remember(&mut cache, &batch.as_ref()));
    batch.bases[0].flags |= base_flags::PINNED;
    assert!(!remember(&mut cache, &batch.as_ref()));
}

#[test]
fn random_programs_hit_the_second_time_and_memory_is_bounded() {
    let mut cache = PartitionCache::new(400 << 10);
    let program = |seed| random::program(seed, &small_programs()).batch;
    for seed in 0..300 {
        remember(&mut cache, &program(seed).as_ref());
        assert!(remember(&mut cache, &program(seed).as_ref()));
        assert!(cache.bytes() <= 400 << 10);
    }
}

#[test]
fn ten_thousand_batches_in_a_cycle_are_found_from_the_second_round_on() {
    // The component's default size.
    let mut cache = PartitionCache::new(64 << 20);
    let mut batch = text::parse(THIRTY).unwrap();
    let mut partitioner = Partitioner::default();
    for round in 0..2 {
        for number in 0..10_000 {
            batch.bases[0].len = 1000 + number;
            let hit = cache.look_up(&batch.as_ref(), Planning::Always(Level::Full));
            assert_eq!(hit, round == 1, "batch {number}");
            if !hit {
                let partition = partitioner.partition(&batch.as_ref(), &Options::default());
                cache.insert(Entry::new(partition, Level::Full, Work::of(&batch.as_ref())));
            }
        }
    }
}

#[test]
fn levels_rise_as_batches_come_again() {
    let mut cache = PartitionCache::new(1 << 20);
    let mut assignments = AssignmentCache::new(1 << 20);
    let mut partitioner = Partitioner::default();
    let batch = updates(false);
    let mut levels = Vec::new();
    for _ in 0..20 {
        if !cache.look_up(&batch.as_ref(), Planning::Auto) {
            let seen = cache.seen();
            let (entry, _) = partitioner.partition_with(&batch.as_ref(), &Options::default(), &mut assignments, seen);
            levels.push((seen, entry.level));
            cache.insert(entry);
        }
    }
    // A batch of ten elements is worth no search until it is clear that it repeats often.
    assert_eq!(levels, [(0, Level::Linear), (15, Level::Full)]);
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
    let mut assignments = AssignmentCache::new(1 << 20);
    let mut partitioner = Partitioner::default();
    for step in 0..20 {
        let batch = elimination_step(25, step);
        let (entry, hit) = partitioner.partition_with(&batch.as_ref(), &full(Options::default()), &mut assignments, 0);
        let partition = entry.partition;
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
    let mut assignments = AssignmentCache::new(1 << 20);
    let mut partitioner = Partitioner::default();
    let mut hits = Vec::new();
    for n in (5..60).rev() {
        let batch = stencil_step(n);
        let (entry, hit) = partitioner.partition_with(&batch.as_ref(), &full(Options::default()), &mut assignments, 0);
        let partition = entry.partition;
        // The remembered partition is the one that a new search finds.
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
    let mut assignments = AssignmentCache::new(100 << 20);
    let mut partitioner = Partitioner::default();
    let (mut hits, mut renames) = (0, 0);
    for seed in 0..20_000 {
        let options = random::Options { max_instrs: 4, ..small_programs() };
        let batch = random::program(seed, &options).batch;
        let (entry, hit) = partitioner.partition_with(&batch.as_ref(), &full(eager()), &mut assignments, 0);
        let partition = entry.partition;
        hits += u32::from(hit);
        renames += u32::from(hit && !partition.renames.is_empty());
        let batch = batch.as_ref();
        verify(&partition.apply(&batch)).unwrap_or_else(|text| panic!("seed {seed}, hit {hit}: {text}"));
    }
    assert!(hits > 500 && renames > 10, "{hits} hits, {renames} of them with renames");
}
