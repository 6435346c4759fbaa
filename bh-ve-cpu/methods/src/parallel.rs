//! The threads that methods share their work among.

/// What a method knows of the engine's threads.
pub trait Parallel {
    /// How many participants should share work of this many units, about 0.04 ns each.
    fn participants(&self, units: u64) -> usize;

    /// Runs `body` on up to `participants` threads, the calling one among them; each takes numbers of tasks below `tasks`
    /// until none is left. It begins as fast as a kernel does.
    fn run(&mut self, participants: usize, tasks: usize, body: &(dyn Fn(&mut dyn Iterator<Item = usize>) + Sync));

    /// Runs what is parallel by itself, through rayon, on the same threads; the calling one waits. `false`, without having
    /// run it, if there is only the calling thread.
    fn install(&mut self, work: &mut (dyn FnMut() + Send)) -> bool;
}
