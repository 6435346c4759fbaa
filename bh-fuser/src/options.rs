//! The fuser's settings, and how names in a configuration become settings.

use crate::cost::{self, CostModel};
use bh_bytecode::planning::{PLANNING, Planning};
use bh_core::abi::{Capabilities, capability, status};
use bh_core::config::Key;
use bh_core::keys::fuser;
use bh_core::{Error, Host, Result};

/// How the batch is partitioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Each instruction alone.
    Singleton,
    /// In program order, a new kernel whenever the next instruction does not fit.
    Naive,
    /// The fusion that saves most first.
    Greedy,
    /// Only fusions that take no other choice away.
    Unintrusive,
    /// The cheapest partition, as far as its steps allow.
    Optimal,
}

/// Names and values of [`Algorithm`].
pub const ALGORITHMS: &[(&str, Algorithm)] = &[
    ("singleton", Algorithm::Singleton),
    ("naive", Algorithm::Naive),
    ("greedy", Algorithm::Greedy),
    ("unintrusive", Algorithm::Unintrusive),
    ("optimal", Algorithm::Optimal),
];

/// Which rules say what may share a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Legality {
    /// All that the engines can run.
    Full,
    /// Corollary 1 of the paper and equal shapes: no renames, reductions alone.
    Paper,
}

/// Names and values of [`Legality`].
pub const LEGALITIES: &[(&str, Legality)] = &[("full", Legality::Full), ("paper", Legality::Paper)];

/// The settings.
#[derive(Clone)]
pub struct Options {
    /// How to partition.
    pub algorithm: Algorithm,
    /// The cost to minimise.
    pub cost: &'static CostModel,
    /// Which rules hold.
    pub legality: Legality,
    /// May overlapping writes after reads be resolved by fresh buffers?
    pub renames: bool,
    /// A rename may copy at most this part of what the kernel writes, in percent.
    pub rename_percent: u32,
    /// The most instructions of a kernel.
    pub max_block: u32,
    /// Steps that `optimal` may take for a batch: places for an instruction that are looked at.
    pub steps: u64,
    /// How much planning batches get.
    pub planning: Planning,
    /// Do kernels start so quickly that small operations may be one each?
    pub kernels_are_cheap: bool,
    /// The cost of starting a kernel, in bytes of memory traffic.
    pub kernel_bytes: i64,
    /// Threads for `optimal`.
    pub threads: usize,
}

/// A kernel that starts within this time may be a single operation.
const CHEAP_SECONDS: f64 = 2e-6;

impl Default for Options {
    fn default() -> Options {
        Options {
            algorithm: Algorithm::Greedy,
            cost: &cost::TRAFFIC,
            legality: Legality::Full,
            renames: fuser::RENAMES.default(),
            rename_percent: fuser::RENAME_PERCENT.default(),
            max_block: fuser::MAX_BLOCK.default(),
            steps: fuser::OPTIMAL_STEPS.default(),
            planning: Planning::Auto,
            kernels_are_cheap: false,
            kernel_bytes: 16 << 10,
            threads: 2,
        }
    }
}

impl Options {
    /// Settings from a component's configuration.
    pub fn read(host: &Host) -> Result<Options> {
        let options = Options {
            algorithm: choose(host, &fuser::ALGORITHM, ALGORITHMS)?,
            cost: choose(host, &fuser::COST_MODEL, cost::MODELS)?,
            legality: choose(host, &fuser::LEGALITY, LEGALITIES)?,
            renames: host.setting(&fuser::RENAMES)?,
            rename_percent: host.setting(&fuser::RENAME_PERCENT)?,
            max_block: host.setting(&fuser::MAX_BLOCK)?.max(1),
            steps: host.setting(&fuser::OPTIMAL_STEPS)?,
            planning: choose(host, &fuser::PLANNING, &PLANNING)?,
            threads: std::thread::available_parallelism().map_or(1, |count| count.get()),
            ..Options::default()
        };
        options.check()?;
        Ok(options)
    }

    /// Refuses combinations without meaning.
    pub fn check(&self) -> Result<()> {
        if self.algorithm == Algorithm::Optimal && !self.cost.monotone {
            let names: Vec<&str> =
                cost::MODELS.iter().filter(|(_, model)| model.monotone).map(|(name, _)| *name).collect();
            let text = format!(
                "config key 'algorithm': 'optimal' needs a monotone cost model ({}), and '{}' is none",
                names.join(", "),
                self.cost.name
            );
            return Err(Error::new(status::CONFIG, text));
        }
        Ok(())
    }

    /// Takes over what the components below can do.
    pub fn adapt(&mut self, capabilities: &Capabilities) {
        self.renames &= capabilities.flags & capability::RENAMES != 0;
        if capabilities.bandwidth > 0.0 && capabilities.launch_seconds > 0.0 {
            self.kernels_are_cheap = capabilities.launch_seconds <= CHEAP_SECONDS;
            self.kernel_bytes = (capabilities.bandwidth * capabilities.launch_seconds).min(1e12) as i64;
        }
    }

    /// Is the partition looked for, so that the level of planning decides how?
    pub fn is_searched(&self) -> bool {
        self.algorithm == Algorithm::Greedy && self.legality == Legality::Full
    }

    /// All that decides how a batch is partitioned, as words for cache keys.
    pub fn key(&self) -> [u64; 4] {
        let cost = cost::MODELS.iter().position(|(name, _)| *name == self.cost.name).unwrap_or(0) as u64;
        let flags = self.algorithm as u64
            | (self.legality as u64) << 8
            | (self.renames as u64) << 16
            | cost << 24
            | (self.rename_percent as u64) << 32;
        [flags, self.max_block as u64, self.kernel_bytes as u64, self.steps]
    }
}

/// The value with the configured name.
fn choose<T: Copy>(host: &Host, key: &Key<String>, table: &[(&'static str, T)]) -> Result<T> {
    by_name(key.name(), &host.setting(key)?, table)
}

/// The value with this name; the error lists the valid names and the nearest one.
pub fn by_name<T: Copy>(key: &str, name: &str, table: &[(&'static str, T)]) -> Result<T> {
    if let Some((_, value)) = table.iter().find(|(known, _)| *known == name) {
        return Ok(*value);
    }
    let names: Vec<&str> = table.iter().map(|(known, _)| *known).collect();
    let nearest = names.iter().min_by_key(|known| distance(known, name)).copied().unwrap_or("");
    let text =
        format!("config key '{key}': unknown value '{name}'; did you mean '{nearest}'? Valid: {}", names.join(", "));
    Err(Error::new(status::CONFIG, text))
}

/// Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_list_the_valid_ones_and_the_nearest() {
        let error = by_name("algorithm", "gredy", ALGORITHMS).unwrap_err();
        assert_eq!(error.status, status::CONFIG);
        assert!(error.text.contains("did you mean 'greedy'?"), "{error}");
        assert!(error.text.contains("singleton, naive, greedy, unintrusive, optimal"), "{error}");
        let error = by_name("cost_model", "unique", cost::MODELS).unwrap_err();
        assert!(error.text.contains("unique-views, max-contraction, traffic"), "{error}");
    }

    #[test]
    fn optimal_refuses_models_that_are_not_monotone() {
        let options = Options { algorithm: Algorithm::Optimal, ..Options::default() };
        assert!(options.check().unwrap_err().text.contains("unique-views"));
        let options = Options { cost: &cost::UNIQUE_VIEWS, ..options };
        assert!(options.check().is_ok());
    }
}
