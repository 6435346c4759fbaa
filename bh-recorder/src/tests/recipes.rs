//! Results that nobody asks for are not stored, and programs cannot tell.

use super::*;
use crate::Recipes;
use bh_bytecode::{Base, Batch, Packed, base_flags};

/// A context whose results stay recipes as `recipes` says.
fn lazy(recipes: Recipes) -> (Arc<Recorder>, Log) {
    context(Options { recipes, immediate_bytes: 0, ..Options::default() })
}

fn scaled(recorder: &Recorder, a: ArrayId, by: f64) -> ArrayId {
    recorder.operate_new(Opcode::Multiply, 0, None, &[Input::Array(a), number(by)], HERE).unwrap()
}

fn counts(recorder: &Recorder) -> (u64, u64) {
    let counts = recorder.statistics();
    (counts.recipes, counts.recomputed)
}

#[test]
fn what_nobody_asks_for_dies_with_its_batch() {
    let (recorder, log) = lazy(Recipes::Always);
    let a = array(&recorder, &[3], &[1.0, 2.0, 3.0]);
    let held = scaled(&recorder, a, 2.0);
    let sum = add(&recorder, held, a);
    assert_eq!(values(&recorder, sum), [3.0, 6.0, 9.0]);
    assert_eq!(counts(&recorder), (1, 0));
    let id = lock(&log.batches).last().unwrap().bases.len();
    assert_eq!(id, 3);
    // It is made once it is read, and stays as it was whatever became of what it was made of.
    assert_eq!(values(&recorder, held), [2.0, 4.0, 6.0]);
    assert_eq!(counts(&recorder), (1, 1));
    assert_eq!(values(&recorder, held), [2.0, 4.0, 6.0]);
    assert_eq!(counts(&recorder), (1, 1));
}

#[test]
fn it_is_told_which_lines_make_what_is_not_stored() {
    let (recorder, _) = lazy(Recipes::Always);
    let a = array(&recorder, &[3], &[1.0, 2.0, 3.0]);
    assert_eq!(recorder.message("recipes").unwrap(), "");
    let make = |line| {
        let at = Location { file: b"program.c", line };
        recorder.operate_new(Opcode::Multiply, 0, None, &[Input::Array(a), number(2.0)], at).unwrap()
    };
    let mut held = Vec::new();
    for _ in 0..3 {
        held.extend([make(3), make(4)]);
        let sum = add(&recorder, a, a);
        values(&recorder, sum);
    }
    values(&recorder, held[1]);
    let told = recorder.message("recipes").unwrap();
    let lines = ["program.c:3: 3 results, 72 bytes; 0 of them", "program.c:4: 3 results, 72 bytes; 1 of them"];
    assert!(lines.iter().all(|line| told.contains(line)), "{told}");
}

#[test]
fn what_a_recipe_reads_may_change_and_end() {
    let (recorder, _) = lazy(Recipes::Always);
    let a = array(&recorder, &[3], &[1.0, 2.0, 3.0]);
    let (first, second) = (scaled(&recorder, a, 2.0), scaled(&recorder, a, 3.0));
    let sum = add(&recorder, first, second);
    assert_eq!(values(&recorder, sum), [5.0, 10.0, 15.0]);
    assert_eq!(counts(&recorder), (2, 0));
    // An operation changes it: both are made before.
    recorder.operate(Opcode::Add, 0, a, &[Input::Array(a), number(10.0)], HERE).unwrap();
    assert_eq!(counts(&recorder), (2, 2));
    assert_eq!(values(&recorder, a), [11.0, 12.0, 13.0]);
    assert_eq!(values(&recorder, first), [2.0, 4.0, 6.0]);
    let third = scaled(&recorder, a, -1.0);
    let sum = add(&recorder, third, a);
    assert_eq!(values(&recorder, sum), [0.0, 0.0, 0.0]);
    // The program writes it by hand.
    let new = [7.0, 8.0, 9.0];
    // SAFETY: three elements.
    unsafe { recorder.write(a, new.as_ptr().cast(), None).unwrap() };
    assert_eq!(values(&recorder, third), [-11.0, -12.0, -13.0]);
    let fourth = scaled(&recorder, a, 0.5);
    let sum = add(&recorder, fourth, a);
    assert_eq!(values(&recorder, sum), [10.5, 12.0, 13.5]);
    // It ends.
    recorder.free(a).unwrap();
    assert_eq!(values(&recorder, fourth), [3.5, 4.0, 4.5]);
    assert_eq!(values(&recorder, second), [3.0, 6.0, 9.0]);
}

#[test]
fn what_is_overwritten_in_the_batch_is_copied_before() {
    let (recorder, log) = lazy(Recipes::Always);
    let a = array(&recorder, &[2], &[1.0, 2.0]);
    let held = scaled(&recorder, a, 2.0);
    recorder.operate(Opcode::Add, 0, a, &[Input::Array(a), Input::Array(held)], HERE).unwrap();
    let later = scaled(&recorder, a, 10.0);
    recorder.operate(Opcode::Add, 0, a, &[Input::Array(a), number(1.0)], HERE).unwrap();
    // It ends in the batch, which has other data of it then.
    let sum = add(&recorder, a, a);
    recorder.free(a).unwrap();
    assert_eq!(values(&recorder, sum), [8.0, 14.0]);
    assert_eq!(counts(&recorder), (2, 0));
    let copies = lock(&log.batches).last().unwrap().instrs.iter().filter(|it| it.opcode == Opcode::Copy).count();
    assert_eq!(copies, 2);
    assert_eq!(values(&recorder, held), [2.0, 4.0]);
    assert_eq!(values(&recorder, later), [30.0, 60.0]);
    assert_eq!(counts(&recorder), (2, 2));
}

#[test]
fn only_little_is_copied() {
    for (len, made) in [(1 << 13, [0, 0, 1, 2, 3]), (1 << 14, [0; 5])] {
        let (recorder, _) = lazy(Recipes::Auto);
        let line = array(&recorder, &[1, len], &vec![1.0; len as usize]);
        let column = array(&recorder, &[16, 1], &[1.0; 16]);
        let mut last = None;
        for (turn, made) in made.into_iter().enumerate() {
            let width = if len > 1 << 13 { 8 } else { 16 };
            let column = recorder.derive(column, |view| view.slice(0, Some(0), Some(width), 1)).unwrap();
            let held = add(&recorder, line, column);
            recorder.operate(Opcode::Add, 0, line, &[Input::Array(line), number(1.0)], HERE).unwrap();
            let sum = recorder.operate_new(Opcode::AddReduce, 3, None, &[Input::Array(held)], HERE).unwrap();
            let value = recorder.read_scalar(sum).unwrap().to::<f64>();
            assert_eq!(value, (2.0 + turn as f64) * (len * width) as f64);
            recorder.free(sum).unwrap();
            if let Some(last) = last.replace(held) {
                recorder.free(last).unwrap();
            }
            assert_eq!(counts(&recorder).0, made, "{len} {turn}");
        }
        assert_eq!(values(&recorder, last.unwrap())[7], 6.0);
    }
}

#[test]
fn recipes_keep_no_more_than_they_save() {
    let (recorder, log) = lazy(Recipes::Always);
    let a = array(&recorder, &[4, 2], &[1.0; 8]);
    let held = recorder.operate_new(Opcode::AddReduce, 1, None, &[Input::Array(a)], HERE).unwrap();
    let twice = scaled(&recorder, a, 2.0);
    let sum = add(&recorder, held, held);
    assert_eq!(values(&recorder, sum), [8.0, 8.0]);
    assert_eq!(counts(&recorder), (2, 0));
    // Of what only recipes keep, each has its share.
    recorder.free(a).unwrap();
    assert_eq!(counts(&recorder), (2, 1));
    recorder.free(twice).unwrap();
    assert_eq!(values(&recorder, held), [4.0, 4.0]);
    assert!(lock(&log.batches).last().unwrap().bases.iter().any(|base| base.bytes() == 64));
    assert_eq!(counts(&recorder), (2, 1));
}

#[test]
fn in_place_updates_are_part_of_a_recipe() {
    let (recorder, _) = lazy(Recipes::Always);
    let a = array(&recorder, &[4], &[1.0, 2.0, 3.0, 4.0]);
    let held = scaled(&recorder, a, 2.0);
    let part = recorder.derive(held, |view| view.slice(0, Some(1), Some(3), 1)).unwrap();
    recorder.operate(Opcode::Subtract, 0, part, &[Input::Array(part), number(1.0)], HERE).unwrap();
    let inner = scaled(&recorder, held, 10.0);
    recorder.operate(Opcode::Add, 0, held, &[Input::Array(held), Input::Array(a)], HERE).unwrap();
    let sum = add(&recorder, held, inner);
    assert_eq!(values(&recorder, sum), [23.0, 35.0, 58.0, 92.0]);
    assert_eq!(counts(&recorder), (2, 0));
    // `inner` was made of an earlier state of `held`.
    assert_eq!(values(&recorder, inner), [20.0, 30.0, 50.0, 80.0]);
    assert_eq!(values(&recorder, part), [5.0, 8.0]);
    assert_eq!(values(&recorder, held), [3.0, 5.0, 8.0, 12.0]);
}

#[test]
fn everything_is_made_where_everything_is_asked_for() {
    for finish in [Recorder::sync, Recorder::flush] {
        let (recorder, _) = lazy(Recipes::Always);
        let a = array(&recorder, &[2], &[1.0, 2.0]);
        let held = scaled(&recorder, a, 2.0);
        finish(&recorder).unwrap();
        assert_eq!(counts(&recorder), (0, 0));
        let more = scaled(&recorder, held, 2.0);
        let sum = add(&recorder, more, a);
        values(&recorder, sum);
        assert_eq!(counts(&recorder), (1, 0));
        finish(&recorder).unwrap();
        assert_eq!(counts(&recorder), (1, 1));
        assert_eq!(values(&recorder, more), [4.0, 8.0]);
    }
}

/// One turn of a loop: a large result with a name, of which a sum is read.
fn turn(recorder: &Recorder, a: ArrayId, by: f64) -> (ArrayId, f64) {
    let held = scaled(recorder, a, by);
    let sum = recorder.operate_new(Opcode::AddReduce, 1, None, &[Input::Array(held)], HERE).unwrap();
    let value = recorder.read_scalar(sum).unwrap().to::<f64>();
    recorder.free(sum).unwrap();
    (held, value)
}

#[test]
fn who_was_dropped_unread_stays_a_recipe_until_asked_for() {
    let (recorder, _) = lazy(Recipes::Auto);
    let len = 1 << 17;
    let a = array(&recorder, &[len], &vec![1.0; len as usize]);
    let mut last = None;
    let mut made = Vec::new();
    for step in 0..6 {
        let (held, sum) = turn(&recorder, a, f64::from(step));
        assert_eq!(sum, f64::from(step) * len as f64);
        if let Some(last) = last.replace(held) {
            recorder.free(last).unwrap();
        }
        made.push(counts(&recorder).0);
    }
    // The first is stored; that nobody looked at it is known in the turn after the next.
    assert_eq!(made, [0, 0, 1, 2, 3, 4]);
    assert_eq!(values(&recorder, last.unwrap())[..2], [5.0, 5.0]);
    assert_eq!(counts(&recorder), (4, 1));
    // From now on it is stored.
    let (held, _) = turn(&recorder, a, 7.0);
    assert_eq!((counts(&recorder), values(&recorder, held)[0]), ((4, 1), 7.0));
}

#[test]
fn results_that_would_fill_the_memory_begin_as_recipes() {
    // Two results of 1 MiB in memory of 8 or of 32.
    for (max_bytes, [first, later]) in [(4 << 20, [2, 4]), (16 << 20, [0, 0])] {
        let (recorder, _) = context(Options { max_bytes, immediate_bytes: 0, ..Options::default() });
        let len = 1 << 17;
        let a = array(&recorder, &[len], &vec![1.0; len as usize]);
        let mut held = Vec::new();
        for (step, made) in [(1.0, first), (2.0, later)] {
            held = vec![scaled(&recorder, a, step), scaled(&recorder, a, 10.0 * step)];
            let both = add(&recorder, held[0], held[1]);
            let sum = recorder.operate_new(Opcode::AddReduce, 1, None, &[Input::Array(both)], HERE).unwrap();
            recorder.free(both).unwrap();
            assert_eq!(recorder.read_scalar(sum).unwrap().to::<f64>(), 11.0 * step * len as f64);
            assert_eq!(counts(&recorder), (made, 0));
        }
        // One that is asked for is made, and stored from then on.
        assert_eq!(values(&recorder, held[1])[..2], [20.0, 20.0]);
        assert_eq!(counts(&recorder), (later, u64::from(later > 0)));
    }
}

#[test]
fn small_results_and_those_of_other_modes_are_stored() {
    for (recipes, len) in [(Recipes::Off, 1 << 17), (Recipes::Auto, 1000)] {
        let (recorder, _) = lazy(recipes);
        let a = array(&recorder, &[len], &vec![1.0; len as usize]);
        for step in 0..4 {
            let (held, _) = turn(&recorder, a, f64::from(step));
            recorder.free(held).unwrap();
        }
        assert_eq!(counts(&recorder), (0, 0));
    }
}

#[test]
fn nothing_is_left_of_recipes_that_end() {
    let (recorder, _) = lazy(Recipes::Always);
    let before = recorder.statistics();
    let a = array(&recorder, &[3], &[1.0, 2.0, 3.0]);
    let held = scaled(&recorder, a, 2.0);
    let sum = add(&recorder, held, a);
    values(&recorder, sum);
    for one in [a, held, sum] {
        recorder.free(one).unwrap();
    }
    recorder.sync().unwrap();
    let after = recorder.statistics();
    assert_eq!((after.arrays, after.bases), (before.arrays, before.bases));
    assert_eq!(counts(&recorder), (1, 0));
}

#[test]
fn what_is_copied_into_an_array_is_copied_back() {
    let (recorder, _) = lazy(Recipes::Always);
    let grid = array(&recorder, &[3, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    let inner = recorder.derive(grid, |view| view.slice(0, Some(1), Some(3), 1)).unwrap();
    let above = recorder.derive(grid, |view| view.slice(0, Some(0), Some(2), 1)).unwrap();
    for _ in 0..3 {
        let work = add(&recorder, inner, above);
        recorder.operate(Opcode::Copy, 0, inner, &[Input::Array(work)], HERE).unwrap();
        let before = counts(&recorder);
        let first = recorder.derive(grid, |view| view.index(0, 0)).unwrap();
        let sum = add(&recorder, first, first);
        assert_eq!(values(&recorder, sum), [2.0, 4.0, 6.0]);
        assert_eq!(counts(&recorder), (before.0 + 1, before.1));
        assert_eq!(values(&recorder, work), values(&recorder, inner));
        assert_eq!(counts(&recorder), (before.0 + 1, before.1 + 1));
    }
    // A change of the grid comes too late for it.
    let work = add(&recorder, inner, above);
    recorder.operate(Opcode::Copy, 0, inner, &[Input::Array(work)], HERE).unwrap();
    let sum = add(&recorder, above, above);
    values(&recorder, sum);
    let wanted = values(&recorder, inner);
    recorder.operate(Opcode::Copy, 0, grid, &[number(0.0)], HERE).unwrap();
    assert_eq!(values(&recorder, work), wanted);
}

/// Turns of a loop that change an array, with names for what they make. Batches as the stack saw them.
fn turns(recipes: Recipes, count: u32) -> (Vec<f64>, Vec<Batch>) {
    let (recorder, log) = context(Options { recipes, max_instructions: 40, immediate_bytes: 0, ..Options::default() });
    let a = array(&recorder, &[4], &[1.0, 2.0, 3.0, 4.0]);
    let mut names: [Option<ArrayId>; 2] = [None; 2];
    let line = |line| Location { file: b"program.c", line };
    for _ in 0..count {
        for (at, (name, by)) in (1..).zip(names.iter_mut().zip([0.5, 0.25])) {
            let made =
                recorder.operate_new(Opcode::Multiply, 0, None, &[Input::Array(a), number(by)], line(at)).unwrap();
            if let Some(old) = name.replace(made) {
                recorder.free(old).unwrap();
            }
        }
        for (at, name) in (3..).zip(names.into_iter().flatten()) {
            recorder.operate(Opcode::Subtract, 0, a, &[Input::Array(a), Input::Array(name)], line(at)).unwrap();
        }
    }
    let found = values(&recorder, a);
    names.into_iter().flatten().for_each(|name| recorder.free(name).unwrap());
    recorder.shutdown().unwrap();
    let batches = lock(&log.batches).clone();
    (found, batches)
}

#[test]
fn a_cut_batch_waits_for_what_the_next_turn_drops() {
    let (found, batches) = turns(Recipes::Auto, 60);
    let (wanted, stored) = turns(Recipes::Off, 60);
    assert_eq!(found, wanted);
    let left = |batches: &[Batch]| -> Vec<usize> {
        let born = |base: &&Base| base.has(base_flags::BORN) && !base.has(base_flags::DIES);
        batches[1..batches.len() - 2].iter().map(|batch| batch.bases.iter().filter(born).count()).collect()
    };
    assert!(batches.len() > 6 && left(&batches).iter().all(|&left| left == 0), "{:?}", left(&batches));
    assert!(left(&stored).iter().all(|&left| left == 2));
    for pair in batches[2..batches.len() - 2].windows(2) {
        let [first, second] = [0, 1].map(|at| Packed::new(&pair[at].as_ref()));
        assert_eq!(first.words_before_constants(), second.words_before_constants());
    }
}

#[test]
fn who_asks_for_something_of_a_waiting_batch_gets_it() {
    let line = |line| Location { file: b"program.c", line };
    for asked in 0..40 {
        let (recorder, _) = context(Options { max_instructions: 12, immediate_bytes: 0, ..Options::default() });
        let a = array(&recorder, &[2], &[0.0, 1.0]);
        let mut name = None;
        for turn in 0..40 {
            let made = recorder.operate_new(Opcode::Add, 0, None, &[Input::Array(a), number(1.0)], line(1)).unwrap();
            if let Some(old) = name.replace(made) {
                recorder.free(old).unwrap();
            }
            if turn == asked {
                let last = f64::from(turn);
                assert_eq!(values(&recorder, made), [last + 1.0, last + 2.0]);
                assert_eq!(values(&recorder, a), [last, last + 1.0]);
            }
            recorder.operate(Opcode::Add, 0, a, &[Input::Array(a), number(1.0)], line(2)).unwrap();
            recorder.operate(Opcode::Multiply, 0, a, &[Input::Array(a), number(1.0)], line(3)).unwrap();
        }
        assert_eq!(values(&recorder, name.unwrap()), [40.0, 41.0]);
        assert_eq!(values(&recorder, a), [40.0, 41.0]);
        assert_eq!(recorder.statistics().pending, 0);
    }
}
