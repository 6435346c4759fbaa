//! The ranks' meeting, before the program begins: a watch, started before MPI, ends a rank that waits too long for the others
//! and names those that came.
//!
//! Who came is seen in the system's list of processes, as MPI cannot tell before all are there: processes of the launcher that
//! have a thread of this watch. Those of other hosts are not seen.

use crate::lead::speaker::{self, Outcome};
use bh_core::environment;
use bh_core::launcher::Launcher;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{read, read_dir, read_to_string};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

/// The name of the watch's thread, by which other ranks see that this one came.
const THREAD: &str = "bh-meeting";

/// A rank waits for the others while this lives.
pub struct Meeting {
    _over: UnixStream,
}

/// A process of the job on this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Process {
    id: u32,
    /// It waits for the others.
    came: bool,
    /// It has loaded bh.
    loaded: bool,
    stopped: bool,
    /// Its command line.
    line: String,
    /// `BH_STACK`, as it was started.
    stack: String,
}

impl Meeting {
    /// Begins to wait, for so long at most.
    pub fn begin(limit: Duration, launcher: Launcher) -> Option<Meeting> {
        let (over, end) = UnixStream::pair().ok()?;
        // Without the thread, ranks wait as long as they must.
        std::thread::Builder::new().name(THREAD.into()).spawn(move || watch(limit, &launcher, &end)).ok()?;
        Some(Meeting { _over: over })
    }
}

/// Ends this process if the others do not come in time. One of those on this host says why.
fn watch(limit: Duration, launcher: &Launcher, over: &UnixStream) {
    let parent = starter(std::process::id(), launcher.rank_variable);
    let address = SocketAddr::from_abstract_name(format!("{THREAD}-{parent}")).ok();
    let say = || eprintln!("bh: rank {}: {}", launcher.rank, message(limit, launcher, &processes(launcher, parent)));
    if speaker::wait(over, limit, address.as_ref(), say) == Outcome::Said {
        // SAFETY: ends the process; its other threads are in calls that do not return.
        unsafe { libc::_exit(1) }
    }
}

/// Who came, and what is known of the others.
fn message(limit: Duration, launcher: &Launcher, ranks: &BTreeMap<usize, Vec<Process>>) -> String {
    let came = |rank: &usize| ranks.get(rank).is_some_and(|processes| processes.iter().any(|process| process.came));
    let (there, away): (Vec<usize>, Vec<usize>) = (0..launcher.size).partition(came);
    let here = launcher.local_size == launcher.size;
    let mut text = format!(
        "the {} ranks did not meet within {} s (BH_CLUSTER_MEET_SECONDS); here {} came",
        launcher.size,
        limit.as_secs(),
        list(&there)
    );
    let mut unseen = Vec::new();
    for rank in away {
        match ranks.get(&rank) {
            Some(processes) => text += &format!("; rank {rank} {}", state(processes)),
            None => unseen.push(rank),
        }
    }
    if !unseen.is_empty() {
        text += &format!(
            "; {} {}",
            list(&unseen),
            if here { "ended before" } else { "ended before, or is on another host" }
        );
    }
    text
}

/// What a rank does instead of waiting.
fn state(processes: &[Process]) -> String {
    let process = processes.iter().find(|process| process.loaded).or(processes.last()).cloned().unwrap_or_default();
    let Process { id, line, stack, .. } = &process;
    let of = if stack.is_empty() { String::new() } else { format!(", BH_STACK={stack}") };
    let what = match (process.stopped, process.loaded) {
        (true, _) => "is stopped",
        (_, true) => "uses bh, but not on a cluster's stack, or has not come so far",
        _ => "has not begun to use bh",
    };
    format!("(process {id}, '{line}'{of}) {what}")
}

/// Numbers of ranks, ranges as such.
fn list(ranks: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &rank in ranks {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => parts.push((rank, rank)),
        }
    }
    let part =
        |&(first, last): &(usize, usize)| if first == last { format!("{first}") } else { format!("{first}-{last}") };
    let text = parts.iter().map(part).collect::<Vec<_>>().join(", ");
    format!("rank{} {text}", if ranks.len() == 1 { "" } else { "s" })
}

/// The job's processes on this host, by rank.
fn processes(launcher: &Launcher, parent: u32) -> BTreeMap<usize, Vec<Process>> {
    let mut ranks: BTreeMap<usize, Vec<Process>> = BTreeMap::new();
    let all: BTreeSet<u32> = read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for id in all {
        let variables = variables(id);
        let rank = variable(&variables, launcher.rank_variable).and_then(|rank| rank.parse().ok());
        if let Some(rank) = rank
            && starter(id, launcher.rank_variable) == parent
        {
            ranks.entry(rank).or_default().push(Process::look(id, &variables));
        }
    }
    ranks
}

impl Process {
    fn look(id: u32, variables: &[u8]) -> Process {
        let threads = read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
        let name = |path: std::path::PathBuf| read_to_string(path.join("comm")).unwrap_or_default();
        let line = read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let maps = read_to_string(format!("/proc/{id}/maps")).unwrap_or_default();
        Process {
            id,
            came: threads.into_iter().any(|thread| name(thread.path()).trim_end() == THREAD),
            loaded: ["/libbh_", "/_native.abi3.so"].iter().any(|file| maps.contains(file)),
            stopped: stat(id).is_some_and(|(state, _)| state == "T"),
            line: line.trim_end().chars().take(60).collect(),
            stack: variable(variables, "BH_STACK").unwrap_or_default(),
        }
    }
}

/// The process that started the ranks of this host: the nearest one above that is no rank itself.
fn starter(mut id: u32, rank_variable: &str) -> u32 {
    while let Some((_, parent)) = stat(id) {
        id = parent;
        if id <= 1 || variable(&variables(id), rank_variable).is_none() {
            break;
        }
    }
    id
}

/// A process's state and parent.
fn stat(id: u32) -> Option<(String, u32)> {
    let text = read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before may have spaces and brackets.
    let mut words = text.rsplit_once(')')?.1.split_whitespace();
    Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
}

/// The variables that a process was started with, each ended by NUL.
fn variables(id: u32) -> Vec<u8> {
    if environment::privileged() { Vec::new() } else { read(format!("/proc/{id}/environ")).unwrap_or_default() }
}

fn variable(variables: &[u8], name: &str) -> Option<String> {
    let mut values =
        variables.split(|&byte| byte == 0).filter_map(|text| text.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    values.next().map(|value| String::from_utf8_lossy(value).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_came_are_named_and_what_the_others_do() {
        let launcher = Launcher::read(|name| {
            ["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"].contains(&name).then(|| "6".into())
        });
        let launcher = launcher.unwrap();
        let process = |came, loaded| Process { id: 7, came, loaded, line: "./app".into(), ..Process::default() };
        let mut ranks: BTreeMap<usize, Vec<Process>> =
            (0..4).map(|rank| (rank, vec![process(false, false), process(rank < 2, rank < 3)])).collect();
        ranks.insert(5, vec![Process { stopped: true, stack: "cpu".into(), ..process(false, true) }]);
        assert_eq!(
            message(Duration::from_secs(30), &launcher, &ranks),
            "the 6 ranks did not meet within 30 s (BH_CLUSTER_MEET_SECONDS); here ranks 0-1 came; rank 2 (process 7, './app') \
             uses bh, but not on a cluster's stack, or has not come so far; rank 3 (process 7, './app') has not begun to use bh; \
             rank 5 (process 7, './app', BH_STACK=cpu) is stopped; rank 4 ended before"
        );
        let far = Launcher { local_size: 5, ..launcher };
        assert!(message(Duration::from_secs(30), &far, &ranks).ends_with("rank 4 ended before, or is on another host"));
    }

    #[test]
    fn a_process_is_seen_with_its_variables_and_its_parent() {
        let mut child = std::process::Command::new("sleep").arg("600").env("TEST_RANK", "3").spawn().unwrap();
        let own = std::process::id();
        // The child is this program until it has become the other.
        let found = (0..6000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            variable(&variables(child.id()), "TEST_RANK").as_deref() == Some("3")
        });
        assert!(found);
        assert_eq!(starter(child.id(), "TEST_RANK"), own);
        assert_eq!(
            Process::look(child.id(), b"BH_STACK=x\0"),
            Process { id: child.id(), line: "sleep 600".into(), stack: "x".into(), ..Process::default() }
        );
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
