//! The threads that methods share their work among, and what each of them may write.

use std::marker::PhantomData;
use std::ops::Range;

/// A method's access to the engine's threads.
///
/// # Safety
/// `run` hands every number of a task out once, and returns when all of them are done. Of a call, one object of this kind is
/// in use.
pub unsafe trait Parallel {
    /// How many participants should share work of this many units, about 0.04 ns each.
    fn participants(&self, units: u64) -> usize;

    /// Runs `body` on up to `participants` threads, the calling one among them; each takes numbers of tasks below `tasks`
    /// until none is left. It begins as fast as a kernel does.
    fn run(&mut self, participants: usize, tasks: usize, body: &(dyn Fn(&mut dyn Iterator<Item = usize>) + Sync));

    /// Runs what is parallel by itself, through rayon, on the same threads; the calling one waits. `false`, without having
    /// run it, if there is only the calling thread.
    fn install(&mut self, work: &mut (dyn FnMut() + Send)) -> bool;
}

/// Numbers of elements that one participant may write, and nobody else while it has this. Only this module makes them.
pub struct Share<'a> {
    numbers: Range<i64>,
    set: PhantomData<&'a mut ()>,
}

impl Share<'_> {
    /// The numbers.
    pub fn numbers(&self) -> Range<i64> {
        self.numbers.clone()
    }

    /// Panics if not all of these are in the share.
    pub(crate) fn check(&self, numbers: Range<i64>) {
        let Range { start, end } = self.numbers;
        assert!(start <= numbers.start && numbers.end <= end, "{numbers:?} are not all in {start}..{end}");
    }
}

/// A function that takes shares until none is left.
pub type Body<'a> = &'a (dyn for<'s> Fn(&mut dyn Iterator<Item = Share<'s>>) + Sync);

/// A function that takes shares with their places among all.
pub type PlacedBody<'a> = &'a (dyn for<'s> Fn(&mut dyn Iterator<Item = (usize, Share<'s>)>) + Sync);

/// Shares the numbers between neighbouring `borders` out.
pub fn share_between(threads: &mut dyn Parallel, participants: usize, borders: &[i64], body: PlacedBody<'_>) {
    assert!(borders.is_sorted(), "shares would overlap");
    threads.run(participants, borders.len().saturating_sub(1), &|tasks| {
        body(&mut tasks.map(|task| (task, Share { numbers: borders[task]..borders[task + 1], set: PhantomData })));
    });
}

/// Shares the numbers below `count` out, `each` at a time.
pub fn share(threads: &mut dyn Parallel, participants: usize, (count, each): (i64, i64), body: Body<'_>) {
    let shares = (count as u64).div_ceil(each.max(1) as u64) as usize;
    threads.run(participants, shares, &|tasks| {
        let numbers = |task: usize| task as i64 * each..((task as i64 + 1) * each).min(count);
        body(&mut tasks.map(|task| Share { numbers: numbers(task), set: PhantomData }));
    });
}

/// All numbers, for the calling thread alone.
pub(crate) fn all(_: &mut dyn Parallel) -> Share<'_> {
    Share { numbers: 0..i64::MAX, set: PhantomData }
}

/// Runs `work`, which is parallel by itself, on rayon's threads if there are several: its second argument says so. It has all
/// numbers.
pub(crate) fn install(threads: &mut dyn Parallel, work: &mut (dyn FnMut(&mut Share<'_>, bool) + Send)) {
    let mut all = Share { numbers: 0..i64::MAX, set: PhantomData };
    if !threads.install(&mut || work(&mut all, true)) {
        work(&mut all, false);
    }
}
