//! The stages that plan a batch, each to be run again and again on the same batch.

use bh_bytecode::planning::{Level, Planning, Work};
use bh_bytecode::{Batch, BatchRef, steps};
use bh_filter::passes;
use bh_fuser::cache::{Entry, PartitionCache};
use bh_fuser::{Algorithm, Options, Partition, Partitioner};
use bh_kernel::{SlidingWindows, Survey, TileOptions, WindowOptions};

/// Bytes that windows may keep in the cache: less than what any family's arrays take.
const CACHE: i64 = 1 << 20;

/// The names of the stages, in the order in which a batch goes through them. `linear` takes the place of `fuse` the first
/// time; `programs` is `lower` with what the CPU engine makes of it; `again` is what remains when the structure comes back.
pub const STAGES: &[&str] = &["filter", "linear", "fuse", "lower", "programs", "windows", "tiles", "again"];

/// A batch, and what its stages begin with.
pub struct Subject {
    batch: Batch,
    partition: Partition,
    partitioner: Partitioner,
    cache: PartitionCache,
}

impl Subject {
    /// Prepares a batch.
    pub fn new(batch: Batch) -> Subject {
        let mut partitioner = Partitioner::default();
        let mut cache = PartitionCache::new(1 << 30);
        let partition = partitioner.partition(&batch.as_ref(), &Options::default());
        cache.look_up(&batch.as_ref(), Planning::Auto);
        cache.insert(Entry::new(partition.clone(), Level::Full, Work::of(&batch.as_ref())));
        Subject { batch, partition, partitioner, cache }
    }

    /// The batch.
    pub fn batch(&self) -> BatchRef<'_> {
        self.batch.as_ref()
    }

    /// Kernels of the full partition.
    pub fn kernels(&self) -> usize {
        self.partition.blocks.len()
    }

    /// Instructions.
    pub fn operations(&self) -> usize {
        self.batch.instrs.len()
    }

    /// The input of one run of a stage, made outside of the measured time.
    pub fn input(&self, stage: &str) -> Option<Batch> {
        (stage == "filter").then(|| self.batch.clone())
    }

    /// Runs a stage once.
    pub fn run(&mut self, stage: &str, input: Option<Batch>) {
        let batch = self.batch.as_ref();
        match stage {
            "filter" => {
                let options = passes::Options::default();
                let mut batch = input.unwrap_or_default();
                for pass in passes::ALL {
                    (pass.run)(&mut batch, &options);
                }
            }
            "linear" | "fuse" => {
                let algorithm = if stage == "fuse" { Algorithm::Greedy } else { Algorithm::Naive };
                self.partitioner.partition(&batch, &Options { algorithm, ..Options::default() });
            }
            "lower" => {
                let batch = self.partition.apply(&batch);
                for block in 0..batch.blocks.len() as u32 {
                    bh_kernel::lower(&batch, block, bh_kernel::Runner::Vectors);
                }
            }
            "programs" => {
                bh_ve_cpu::plan_blocks(&self.partition.apply(&batch)).expect("families can be planned");
            }
            "windows" => {
                let options = WindowOptions { bytes: CACHE, stand_ins: true };
                bh_kernel::windows(&Survey::new(&self.partition.apply(&batch)), &options, &[]);
            }
            "tiles" => {
                let options = TileOptions { bytes: CACHE, small: CACHE / 32, threads: 1, kernels: None };
                bh_kernel::tilings(&Survey::new(&self.partition.apply(&batch)), &options, &SlidingWindows::default());
            }
            "again" => {
                assert!(
                    self.cache.look_up(&batch, Planning::Auto) && self.cache.found().is_some(),
                    "a known batch was not found"
                )
            }
            _ => panic!("there is no stage '{stage}'"),
        }
    }

    /// The steps that a stage takes.
    pub fn steps(&mut self, stage: &str) -> u64 {
        let input = self.input(stage);
        let before = steps::taken();
        self.run(stage, input);
        steps::taken() - before
    }
}
