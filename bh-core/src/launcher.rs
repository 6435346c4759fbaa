//! The environment variables by which `mpirun` and other launchers describe their processes.

use crate::environment;
use std::time::Duration;

/// The variables of one launcher.
struct Variables {
    library: Option<&'static str>,
    size: &'static str,
    rank: &'static str,
    local_rank: &'static str,
    local_size: &'static str,
}

/// The launchers; the first one that gives the number of processes applies.
const LAUNCHERS: &[Variables] = &[
    Variables {
        library: Some("openmpi"),
        size: "OMPI_COMM_WORLD_SIZE",
        rank: "OMPI_COMM_WORLD_RANK",
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
        local_size: "OMPI_COMM_WORLD_LOCAL_SIZE",
    },
    Variables {
        library: Some("mpich"),
        size: "PMI_SIZE",
        rank: "PMI_RANK",
        local_rank: "MPI_LOCALRANKID",
        local_size: "MPI_LOCALNRANKS",
    },
    // Only the variables of a step: an allocation also has `SLURM_NTASKS`, but `srun` did not start its processes.
    Variables {
        library: None,
        size: "SLURM_STEP_NUM_TASKS",
        rank: "SLURM_PROCID",
        local_rank: "SLURM_LOCALID",
        local_size: STEP_TASKS,
    },
];

/// The number of processes of a step on each node, for example `4(x2),3`.
const STEP_TASKS: &str = "SLURM_STEP_TASKS_PER_NODE";

/// A launcher's description of its processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// The MPI of the launcher, as in the names of bh's libraries, if it can be determined.
    pub library: Option<&'static str>,
    /// The variable with the number of processes.
    pub variable: &'static str,
    /// The variable with the rank of a process.
    pub rank_variable: &'static str,
    /// The number of processes.
    pub size: usize,
    /// The rank of this process, from 0.
    pub rank: usize,
    /// The rank of this process among those on this host, from 0.
    pub local_rank: usize,
    /// The number of processes on this host.
    pub local_size: usize,
}

impl Launcher {
    /// The launcher of this process, if it has one.
    pub fn find() -> Option<Launcher> {
        Launcher::read(environment::variable)
    }

    /// The launcher that set these variables.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Option<Launcher> {
        let number = |name: &str| variable(name)?.parse::<usize>().ok();
        // Under `srun`, MPI's variables do not describe the processes of this host.
        let step = || tasks_of(&variable(STEP_TASKS)?, number("SLURM_NODEID").unwrap_or(0));
        LAUNCHERS.iter().find_map(|names| {
            let size = number(names.size)?;
            Some(Launcher {
                library: names.library,
                variable: names.size,
                rank_variable: names.rank,
                size,
                rank: number(names.rank).unwrap_or(0),
                local_rank: number(names.local_rank).or_else(|| number("SLURM_LOCALID")).unwrap_or(0),
                local_size: number(names.local_size).or_else(step).unwrap_or(1).max(1),
            })
        })
    }

    /// Whether its processes can find each other through this library of bh. Batch systems start processes for any MPI.
    pub fn runs(&self, library: &str) -> bool {
        self.size < 2
            || self.library.is_none_or(|own| own == library)
            || environment::variable("SLURM_STEP_ID").is_some()
    }

    /// The number of tasks in a batch system's allocation, if this process was not started as one of them.
    pub fn forgotten_tasks() -> Option<usize> {
        let tasks = environment::variable("SLURM_NTASKS")?.parse().ok()?;
        (tasks > 1 && Launcher::find().is_none()).then_some(tasks)
    }

    /// Waits on ranks other than 0, so that rank 0 can report an error and end all ranks: a program that fails to start
    /// usually fails with the same error on all ranks.
    pub fn let_the_first_speak() {
        if let Some(Launcher { rank: rank @ 1.., .. }) = Launcher::find() {
            std::thread::sleep(Duration::from_millis(1000 + 50 * rank.min(40) as u64));
        }
    }
}

/// The tasks of one node of a step, from a list such as `4(x2),3`.
fn tasks_of(list: &str, mut node: usize) -> Option<usize> {
    for part in list.split(',') {
        let (tasks, times) = part.split_once("(x").unwrap_or((part, "1)"));
        let times: usize = times.strip_suffix(')')?.parse().ok()?;
        if node < times {
            return tasks.parse().ok();
        }
        node -= times;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Option<Launcher> {
        Launcher::read(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn launchers_are_told_by_their_variables() {
        let found =
            read(&[("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "3"), ("SLURM_NTASKS", "9")]).unwrap();
        assert_eq!((found.library, found.size, found.rank, found.local_size), (Some("openmpi"), 4, 3, 1));
        let found = read(&[("PMI_SIZE", "2"), ("MPI_LOCALNRANKS", "2"), ("MPI_LOCALRANKID", "1")]).unwrap();
        assert_eq!((found.library, found.rank, found.local_rank, found.local_size), (Some("mpich"), 0, 1, 2));
        let step =
            [("SLURM_STEP_NUM_TASKS", "8"), ("SLURM_PROCID", "5"), (STEP_TASKS, "2(x2),4"), ("SLURM_NODEID", "2")];
        let found = read(&step).unwrap();
        assert_eq!((found.library, found.variable, found.rank), (None, "SLURM_STEP_NUM_TASKS", 5));
        assert_eq!(found.local_size, 4);
        // An allocation that did not start the process.
        assert_eq!(read(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")]), None);
        assert_eq!(read(&[("SLURM_STEP_NUM_TASKS", "many")]), None);
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn srun_says_what_is_on_a_host_where_mpi_does_not() {
        let found = read(&[("PMI_SIZE", "6"), ("PMI_RANK", "4"), (STEP_TASKS, "4,2"), ("SLURM_NODEID", "1")]).unwrap();
        assert_eq!((found.library, found.rank, found.local_size), (Some("mpich"), 4, 2));
        let tasks = |node| tasks_of("4(x2),3", node);
        assert_eq!([0, 1, 2, 3].map(tasks), [Some(4), Some(4), Some(3), None]);
        assert_eq!(tasks_of("many", 0), None);
        assert_eq!(tasks_of("4(x", 0), None);
    }
}
