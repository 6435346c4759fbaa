//! Chains of small batches: how far nests lag and reach, which arrays are in rows of the tile, and where chains end.

use super::{ColumnOptions, TileOptions, column_tilings, model, search, tilings};
use crate::Survey;
use crate::tiling::{Reach, TileSlot, Tiling};
use crate::window::SlidingWindows;
use bh_bytecode::text::parse;
use bh_bytecode::{Batch, steps};

/// A batch with one kernel for each instruction.
fn batch(text: &str) -> Batch {
    let mut batch = parse(&format!("bh batch 1\n{text}")).unwrap();
    for index in 0..batch.instrs.len() as u32 {
        batch.push_block(&[index], &[]);
    }
    batch
}

/// Its tilings, with chains of this many kernels at most.
fn tiled(batch: &Batch, kernels: u32) -> Vec<Tiling> {
    let options = TileOptions { bytes: 4000, small: 1000, threads: 2, kernels: Some(kernels) };
    tilings(&Survey::new(&batch.as_ref()), &options, &SlidingWindows::default()).found
}

/// Three sums of the rows above and below, each of which renames the grid. Views from v3 on are the rest of the grid.
fn steps() -> Batch {
    let text = "base b0 = f64[4000] id 1 live_out
view v0 = b0 at 41 [98:40, 38:1]
view v1 = b0 at 1 [98:40, 38:1]
view v2 = b0 at 81 [98:40, 38:1]
view v3 = b0 at 0 [40:1]
view v4 = b0 at 3960 [40:1]
view v5 = b0 at 40 [98:40]
view v6 = b0 at 79 [98:40]
i0: v0 = add v1, v2
i1: v0 = add v1, v2
i2: v0 = add v1, v2
";
    let mut batch = parse(&format!("bh batch 1\n{text}")).unwrap();
    for index in 0..3 {
        batch.push_block(&[index], &[]);
        batch.push_rename(0, &[3, 4, 5, 6], None);
    }
    batch
}

#[test]
fn each_step_lags_a_row_and_reaches_a_row_further() {
    let found = tiled(&steps(), 3);
    let [tiling] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((tiling.blocks.clone(), tiling.kernels, tiling.nests.len()), (0..3, 3, 15));
    let nests = [0, 5, 10].map(|nest| &tiling.nests[nest]);
    // The last one writes the tile: its iterations begin at the second row and column.
    assert_eq!(nests[2].reach[..2], [Reach { low: -1, high: -1 }; 2]);
    assert_eq!(nests[1].reach[..2], [Reach { low: -2, high: 0 }, Reach { low: -1, high: -1 }]);
    assert_eq!(nests[0].reach[0], Reach { low: -3, high: 1 });
    assert_eq!((nests[1].late - nests[0].late, nests[2].late - nests[1].late), (1, 1));
    // Arrays between the steps are in rows of the tile.
    assert_eq!(nests[0].slots.iter().filter(|slot| **slot == TileSlot::Base(0)).count(), 2);
    assert_eq!(nests[2].slots.last(), Some(&TileSlot::Fresh(0)));
    assert_eq!((tiling.rows.len(), tiling.renames.len()), (2, 1));
    assert!(tiling.rows.iter().all(|rows| rows.kept == 2), "{:?}", tiling.rows);
    assert_eq!(tiling.area, [0..100, 0..40, 0..1]);
    let depths: Vec<u32> = tiled(&steps(), 2).iter().map(|tiling| tiling.kernels).collect();
    assert_eq!(depths, [2, 1]);
}

#[test]
fn what_is_read_and_changed_gets_a_fresh_buffer() {
    let text = "base b0 = f64[4000] id 1 live_out
base b1 = f64[4000] id 2 live_out
base b2 = f64[3800] id 3 born dies
view v0 = b0 at 41 [98:40, 38:1]
view v1 = b0 at 42 [98:40, 38:1]
view v2 = b1 at 41 [98:40, 38:1]
view v3 = b1 at 1 [98:40, 38:1]
view v4 = b2 at 0 [98:38, 38:1]
i0: v2 = add v0, v1
i1: v4 = add v2, v3
i2: v0 = add v4, v4
";
    let found = tiled(&batch(text), 16);
    let [tiling] = found.as_slice() else { panic!("{found:?}") };
    // The rest of both grids is copied, a row or column at a time; arrays that are read later go to memory at the end.
    let mut renamed: Vec<u32> = tiling.renames.iter().map(|rename| rename.base).collect();
    renamed.sort_unstable();
    assert_eq!((renamed, tiling.nests.len(), tiling.rows.len()), (vec![0, 1], 3 + 2 * 4 + 1, 2));
    let whole = tiling.nests.iter().filter(|nest| nest.stage.parameters.iterations() == 4000);
    assert_eq!(whole.map(|nest| nest.slots.as_slice()).collect::<Vec<_>>(), [[TileSlot::Rows(0), TileSlot::Fresh(1)]]);
    let writes_base = tiling.nests.iter().any(|nest| matches!(nest.slots.last(), Some(TileSlot::Base(_))));
    assert!(!writes_base, "tiles would read what others write");
}

#[test]
fn what_nobody_reads_is_written_where_it_lives() {
    let text = "base b0 = f64[4000] id 1 live_out
base b1 = f64[4000] id 2 born live_out
view v0 = b0 at 41 [98:40, 38:1]
view v1 = b0 at 42 [98:40, 38:1]
view v2 = b1 at 41 [98:40, 38:1]
i0: v2 = add v0, v1
";
    let found = tiled(&batch(text), 16);
    assert_eq!((found[0].rows.len(), found[0].renames.len(), found[0].nests.len()), (0, 0, 1));
    assert_eq!(found[0].nests[0].slots, [TileSlot::Base(0), TileSlot::Base(0), TileSlot::Base(1)]);
}

#[test]
fn what_neighbours_both_make_is_not_written_to_memory_twice() {
    // A tile needs an element more of b2 than it has, so that its first nest makes one more of b0, too.
    let text = "base b0 = i64[372] id 1 live_out
base b1 = i64[371] id 2 live_out
base b2 = i64[371] id 3 born live_out
view v0 = b0 at 0 [371:1]
view v1 = b1 at 0 [371:1]
view v2 = b2 at 0 [371:1]
view v3 = b0 at 1 [371:1]
i0: v0 = copy v1
i1: v2 = add v1, v1
i2: v3 = copy v2
";
    let mut batch = parse(&format!("bh batch 1\n{text}")).unwrap();
    batch.push_block(&[0, 1], &[]);
    batch.push_block(&[2], &[]);
    let found = tiled(&batch, 16);
    let [tiling] = found.as_slice() else { panic!("{found:?}") };
    for nest in &tiling.nests {
        let writes = nest.stage.kernel.slots.iter().zip(&nest.slots).filter(|(slot, _)| slot.mode.writes());
        let in_memory = |slot: &TileSlot| matches!(slot, TileSlot::Base(_) | TileSlot::Fresh(_));
        assert!(!writes.into_iter().any(|(_, slot)| in_memory(slot)) || nest.reach[1].low == nest.reach[1].high);
    }
}

#[test]
fn sides_of_a_border_are_nests_of_their_own() {
    // Rows and columns of a square grid have one shape, so that they may be one kernel.
    let text = "base b0 = f64[1600] id 1 live_out
base b1 = f64[1600] id 2 live_out
base b2 = f64[1600] id 3 live_out
view v0 = b0 at 1 [38:1]
view v1 = b0 at 41 [38:1]
view v2 = b0 at 1561 [38:1]
view v3 = b0 at 1521 [38:1]
view v4 = b1 at 40 [38:40]
view v5 = b1 at 41 [38:40]
view v6 = b0 at 41 [38:40, 38:1]
view v7 = b1 at 41 [38:40, 38:1]
view v8 = b2 at 41 [38:40, 38:1]
i0: v0 = add v1, v1
i1: v2 = add v3, v3
i2: v4 = copy v5
i3: v8 = add v6, v7
";
    let mut batch = parse(&format!("bh batch 1\n{text}")).unwrap();
    batch.push_block(&[0, 1, 2], &[]);
    batch.push_block(&[3], &[]);
    let found = tiled(&batch, 16);
    let [tiling] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(tiling.blocks, 0..2);
    // Two more copy the elements of its grid that the last one does not write.
    let sides = tiling.nests.iter().filter(|nest| nest.stage.parameters.iterations() == 38);
    assert_eq!(sides.count(), 3 + 2);
    assert!(tiling.rows.iter().all(|rows| rows.kept < 3), "{:?}", tiling.rows);
}

/// Turns of a loop between two grids, each of which writes the middle of one of them.
fn between(turns: usize) -> Batch {
    let text = "base b0 = f64[1000000] id 1 live_out
base b1 = f64[1000000] id 2 live_out
view v0 = b0 at 1001 [998:1000, 998:1]
view v1 = b0 at 1 [998:1000, 998:1]
view v2 = b0 at 2001 [998:1000, 998:1]
view v3 = b1 at 1001 [998:1000, 998:1]
view v4 = b1 at 1 [998:1000, 998:1]
view v5 = b1 at 2001 [998:1000, 998:1]
";
    let turns = (0..turns).map(|turn| {
        let (to, one, other) = if turn % 2 == 0 { ("v3", "v1", "v2") } else { ("v0", "v4", "v5") };
        format!("i{turn}: {to} = add {one}, {other}\n")
    });
    batch(&(text.to_string() + &turns.collect::<String>()))
}

#[test]
fn what_is_written_in_its_place_is_read_and_stored_once() {
    let batch = between(4);
    let found = tiled(&batch, 16);
    let [tiling] = found.as_slice() else { panic!("{found:?}") };
    let moved = |slot: TileSlot| {
        let nests = tiling.nests.iter().filter(|nest| nest.stage.parameters.iterations() > 4000);
        nests.filter(|nest| nest.slots.contains(&slot)).count()
    };
    // The first step reads its grid where it is, the last one writes the fresh buffer, and one copy stores the other grid.
    assert_eq!([TileSlot::Base(0), TileSlot::Base(1)].map(moved), [1, 0]);
    assert_eq!([TileSlot::Fresh(0), TileSlot::Fresh(1)].map(moved), [1, 1]);
    // A column has the same place in a line of all rows.
    assert!(tiling.rows.iter().all(|rows| rows.left % 8 == 0), "{:?}", tiling.rows);
}

#[test]
fn what_the_cache_holds_anyway_is_not_tiled() {
    let batch = between(8);
    let declines = |bytes: i64| {
        let options = TileOptions { bytes, small: 32 << 10, threads: 2, kernels: None };
        tilings(&Survey::new(&batch.as_ref()), &options, &SlidingWindows::default()).found.is_empty()
    };
    assert_eq!([declines(1 << 20), declines(16 << 20)], [false, true]);
}

/// Iterations of a loop that makes its grids anew: a sum of neighbours, which it adds to a grid that stays.
fn anew(turns: usize) -> Batch {
    let mut text = String::from("base b0 = f64[1000000] id 1 live_out\nbase b1 = f64[1000000] id 2 live_out\n");
    let mut instrs = String::new();
    let base = |turn: usize| if turn == 0 { 0 } else { turn + 1 };
    for turn in 1..=turns {
        let lives = if turn == turns { "live_out" } else { "dies" };
        text += &format!("base b{} = f64[1000000] id {} born {lives}\n", base(turn), turn + 10);
    }
    text += "view v0 = b1 at 1001 [998:1000, 998:1]\n";
    let mut views = 1;
    for turn in 0..=turns {
        for start in [1001, 1, 2001] {
            text += &format!("view v{views} = b{} at {start} [998:1000, 998:1]\n", base(turn));
            views += 1;
        }
        if turn < turns {
            let (own, next) = (3 * turn + 1, 3 * turn + 4);
            instrs += &format!("i{}: v{next} = add v{}, v{}\n", 2 * turn, own + 1, own + 2);
            instrs += &format!("i{}: v0 = add v0, v{next}\n", 2 * turn + 1);
        }
    }
    batch(&(text + &instrs))
}

#[test]
fn a_search_of_one_turn_holds_for_the_others() {
    let large = TileOptions { bytes: 1 << 20, small: 32 << 10, threads: 2, kernels: None };
    for batch in [between(60), between(61), anew(40)] {
        let batch = batch.as_ref();
        let windows = SlidingWindows::default();
        for options in [large, TileOptions { threads: 64, ..large }, TileOptions { kernels: Some(5), ..large }] {
            let survey = Survey::new(&batch);
            // Lowering takes steps, too, once.
            survey.grids();
            let model = model::Running::new(&options, &windows);
            let search = |shared: bool| {
                let before = steps::taken();
                let (found, declined) = search(&survey, &model, options.kernels, shared);
                let found: Vec<_> = found.iter().map(|it| (it.chain.first..it.chain.end, it.size.tile)).collect();
                (found, declined, steps::taken() - before)
            };
            let (shared, alone) = (search(true), search(false));
            assert_eq!((&shared.0, &shared.1), (&alone.0, &alone.1));
            assert!(shared.2 <= alone.2);
        }
    }
}

#[test]
fn declined_chains_end_with_the_batch() {
    for turns in 4..12 {
        let batch = between(turns);
        let options = TileOptions { bytes: 16 << 10, small: 32 << 10, threads: 8, kernels: None };
        let declined = tilings(&Survey::new(&batch.as_ref()), &options, &SlidingWindows::default()).declined;
        assert!(!declined.is_empty());
        assert!(declined.iter().all(|(blocks, _)| blocks.end as usize <= batch.blocks.len()), "{declined:?}");
    }
}

#[test]
fn turns_that_repeat_cost_the_search_nothing() {
    let looked = |turns: usize| {
        let (batch, windows) = (between(turns), SlidingWindows::default());
        let options = TileOptions { bytes: 1 << 20, small: 32 << 10, threads: 2, kernels: None };
        let before = steps::taken();
        tilings(&Survey::new(&batch.as_ref()), &options, &windows);
        steps::taken() - before
    };
    // The rest of the last chain is searched.
    assert!(looked(400) < 2 * looked(100));
}

#[test]
fn chains_end_at_folds_and_where_rows_are_columns() {
    let text = "base b0 = f64[1600] id 1 live_out
base b1 = f64[1600] id 2 born live_out
base b2 = f64[1600] id 3 born live_out
base b3 = f64[1] id 4 born live_out
view v0 = b0 at 0 [40:40, 39:1]
view v1 = b1 at 0 [40:40, 39:1]
view v2 = b1 at 0 [39:1, 40:40]
view v3 = b2 at 0 [39:40, 40:1]
view v4 = b3 at 0 []
view v5 = b2 at 0 [1600:1]
i0: v1 = add v0, v0
i1: v3 = add v2, v2
i2: v4 = add_reduce axes(0) v5
";
    let blocks: Vec<_> = tiled(&batch(text), 16).into_iter().map(|tiling| tiling.blocks).collect();
    assert_eq!(blocks, [0..1, 1..2]);
}

#[test]
fn items_keep_rows_of_their_column_and_share_what_others_read() {
    let options =
        ColumnOptions { items: 16, each: 4, groups: 4, local_bytes: 1 << 16, least_bytes: 0, kernels: Some(3) };
    let (found, _) = column_tilings(&Survey::new(&steps().as_ref()), &options);
    let [found] = found.as_slice() else { panic!("{found:?}") };
    // Rows above and below are of the item's own column, so that no turn is lost and nothing is in local memory.
    assert_eq!((found.tiling.kernels, found.margin, found.square), (3, [0, 0], [16, 1]));
    assert!(found.arrays.iter().all(|array| array.shared.is_none() && array.own.high - array.own.low == 2));
    let text = "base b0 = f64[4000] id 1 live_out
base b1 = f64[4000] id 2 live_out
view v0 = b0 at 41 [98:40, 38:1]
view v1 = b0 at 40 [98:40, 38:1]
view v2 = b0 at 42 [98:40, 38:1]
view v3 = b1 at 41 [98:40, 38:1]
view v4 = b1 at 40 [98:40, 38:1]
view v5 = b1 at 42 [98:40, 38:1]
i0: v3 = add v1, v2
i1: v0 = add v4, v5
i2: v3 = add v1, v2
";
    let (found, _) = column_tilings(&Survey::new(&batch(text).as_ref()), &options);
    let [found] = found.as_slice() else { panic!("{found:?}") };
    // Columns beside are computed a turn before: the copy from memory, and each of the three, which begin a row below it.
    let late: Vec<i64> = found.tiling.nests.iter().map(|nest| nest.late).collect();
    let reads = found.nests.iter().zip(&found.tiling.nests).filter(|(_, nest)| nest.slots.len() == 3);
    assert!(reads.into_iter().all(|(nest, _)| nest.near[..2].iter().all(|near| near[1].abs() == 1)), "{found:?}");
    assert_eq!((found.margin, late.iter().max().unwrap() - late.iter().min().unwrap()), ([1, 0], 4));
    assert!(found.arrays.iter().all(|array| array.shared.is_some()));
}

#[test]
fn items_have_an_element_of_a_column_each_in_three_dimensions() {
    // Sums of neighbours along all three axes between two grids, and a side of the first one.
    let text = "base b0 = f64[27000] id 1 live_out
base b1 = f64[27000] id 2 live_out
view v0 = b0 at 931 [28:900, 28:30, 28:1]
view v1 = b0 at 930 [28:900, 28:30, 28:1]
view v2 = b0 at 901 [28:900, 28:30, 28:1]
view v3 = b0 at 31 [28:900, 28:30, 28:1]
view v4 = b1 at 931 [28:900, 28:30, 28:1]
view v5 = b1 at 930 [28:900, 28:30, 28:1]
view v6 = b1 at 901 [28:900, 28:30, 28:1]
view v7 = b0 at 0 [30:900, 30:30]
view v8 = b0 at 1 [30:900, 30:30]
i0: v4 = add v1, v2
i1: v7 = copy v8
i2: v0 = add v5, v6
i3: v4 = add v1, v3
";
    let options =
        ColumnOptions { items: 64, each: 4, groups: 4, local_bytes: 1 << 16, least_bytes: 0, kernels: Some(4) };
    let (found, _) = column_tilings(&Survey::new(&batch(text).as_ref()), &options);
    let [found] = found.as_slice() else { panic!("{found:?}") };
    // The second grid lies a column and an element apart from the first, so that its sums are of elements up to two beside.
    assert_eq!((found.tiling.kernels, found.margin, found.square), (4, [2, 2], [16, 16]));
    let beside = |axis: usize| found.nests.iter().flat_map(|nest| &nest.near).any(move |near| near[axis] != 0);
    assert!(beside(1) && beside(2), "{:?}", found.nests);
    assert_eq!(found.nests.iter().filter(|nest| nest.thin).count(), 1);
}
