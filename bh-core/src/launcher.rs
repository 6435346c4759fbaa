//! What `mpirun` and its like tell the processes that they start, through variables of the environment.

use crate::environment;

/// The variables of one launcher.
struct Variables {
    library: Option<&'static str>,
    size: &'static str,
    rank: &'static str,
    local_rank: &'static str,
    local_size: &'static str,
}

/// The launchers; the first that says how many processes there are counts.
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
    Variables {
        library: None,
        size: "SLURM_NTASKS",
        rank: "SLURM_PROCID",
        local_rank: "SLURM_LOCALID",
        local_size: "SLURM_NTASKS_PER_NODE",
    },
];

/// What a launcher says about the processes that it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// The MPI that it belongs to, as in the names of bh's libraries, if that can be told.
    pub library: Option<&'static str>,
    /// The variable that says how many processes there are.
    pub variable: &'static str,
    /// How many there are.
    pub size: usize,
    /// Which of them this is, from 0.
    pub rank: usize,
    /// Which of those on this host, from 0.
    pub local_rank: usize,
    /// How many there are on this host.
    pub local_size: usize,
}

impl Launcher {
    /// The launcher of this process, if it has one.
    pub fn find() -> Option<Launcher> {
        Launcher::read(environment::variable)
    }

    /// The launcher that these variables belong to.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Option<Launcher> {
        let number = |name: &str| variable(name)?.parse::<usize>().ok();
        LAUNCHERS.iter().find_map(|names| {
            let size = number(names.size)?;
            Some(Launcher {
                library: names.library,
                variable: names.size,
                size,
                rank: number(names.rank).unwrap_or(0),
                local_rank: number(names.local_rank).unwrap_or(0),
                local_size: number(names.local_size).unwrap_or(1).max(1),
            })
        })
    }
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
        let found = read(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "5")]).unwrap();
        assert_eq!((found.library, found.variable, found.rank), (None, "SLURM_NTASKS", 5));
        assert_eq!(read(&[("SLURM_NTASKS", "many")]), None);
        assert_eq!(read(&[]), None);
    }
}
