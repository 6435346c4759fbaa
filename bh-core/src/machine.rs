//! The memory and the processors that this process may use: the machine's, or the limits of a container, batch system
//! or launcher.

use crate::environment;
use crate::launcher::Launcher;
use std::fs::read_to_string;
use std::path::Path;

/// Bytes of memory that this process may use: the machine's, or its control group's limit if that is smaller.
pub fn memory() -> u64 {
    // SAFETY: `sysconf` takes a number and returns one.
    let (pages, page) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let machine = u64::try_from(pages).unwrap_or(0).saturating_mul(u64::try_from(page).unwrap_or(0));
    let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
    group_limit(&groups, Path::new("/sys/fs/cgroup")).map_or(machine, |limit| limit.min(machine))
}

/// Processors that this process may use: those that it is bound to, or its share if a launcher started several unbound
/// processes on this host.
pub fn processors() -> usize {
    let mine = std::thread::available_parallelism().map_or(1, usize::from);
    // SAFETY: `sysconf` takes a number and returns one.
    let all = usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1);
    let bound = ["OMPI_MCA_orte_bound_at_launch", "SLURM_CPUS_PER_TASK"].iter();
    let bound = bound.filter_map(|name| environment::variable(name)).next().is_some();
    Launcher::find().map_or(mine, |launcher| share(mine, all, launcher.local_size, bound))
}

/// Processes of this program on this host, which share its caches and memory bandwidth: those of the launcher, or 1.
pub fn processes() -> usize {
    Launcher::find().map_or(1, |launcher| launcher.local_size)
}

/// Outputs of at least this many bytes, summed over the processes of a host, are written with stores that bypass the
/// caches. The last-level cache is likely to keep smaller ones until they are read again: with grids of 32 MB,
/// bypassing halved the speed of a stencil; with 512 MB it gained 40%.
pub const STREAM_BYTES: u64 = 64 << 20;

/// The share of one of `local` processes, which may use `mine` of the `all` processors of the host.
fn share(mine: usize, all: usize, local: usize, bound: bool) -> usize {
    // Several processes may be bound to the same set.
    if bound { mine.min((all / local).max(1)) } else { (mine / local).max(1) }
}

/// The smallest limit of the control groups in `groups`, which has the form of `/proc/self/cgroup`, and of their
/// parents. In a container, the names may be those of the host, while the tree begins at the container's group.
fn group_limit(groups: &str, tree: &Path) -> Option<u64> {
    let mut least: Option<u64> = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        // Version 2 has one tree and no controllers here; version 1 has a tree for each controller.
        let (tree, file) = match controllers {
            "" => (tree.to_path_buf(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => (tree.join("memory"), "memory.limit_in_bytes"),
            _ => continue,
        };
        for group in Path::new(path.trim_start_matches('/')).ancestors() {
            let text = read_to_string(tree.join(group).join(file)).unwrap_or_default();
            // A group without a limit has the word "max", or a number larger than any memory.
            if let Ok(limit) = text.trim().parse::<u64>() {
                least = Some(least.map_or(limit, |least| least.min(limit)));
            }
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, remove_dir_all, write};

    #[test]
    fn this_machine_has_memory() {
        assert!(memory() > 1 << 26);
    }

    #[test]
    fn processes_of_a_host_share_its_processors() {
        assert!(processors() >= 1);
        assert_eq!(share(16, 16, 4, false), 4);
        assert_eq!(share(2, 2, 4, false), 1);
        assert_eq!(share(1, 16, 16, true), 1);
        assert_eq!(share(8, 16, 4, true), 4);
        assert_eq!(share(16, 16, 1, false), 16);
    }

    #[test]
    fn the_least_limit_on_the_way_up_counts() {
        let tree = std::env::temp_dir().join(format!("bh-groups-{}", std::process::id()));
        create_dir_all(tree.join("batch/job7/step0")).unwrap();
        create_dir_all(tree.join("memory/old")).unwrap();
        write(tree.join("batch/memory.max"), "8000000\n").unwrap();
        write(tree.join("batch/job7/memory.max"), "5000000\n").unwrap();
        write(tree.join("batch/job7/step0/memory.max"), "max\n").unwrap();
        write(tree.join("memory/old/memory.limit_in_bytes"), "3000000\n").unwrap();
        let limit = |groups| group_limit(groups, &tree);
        assert_eq!(limit("0::/batch/job7/step0\n"), Some(5_000_000));
        assert_eq!(limit("0::/batch\n"), Some(8_000_000));
        assert_eq!(limit("4:memory,hugetlb:/old/gone\n3:cpuset:/\n0::/\n"), Some(3_000_000));
        assert_eq!(limit("0::/\n"), None);
        assert_eq!(limit("no colons\n"), None);
        remove_dir_all(&tree).unwrap();
    }
}
