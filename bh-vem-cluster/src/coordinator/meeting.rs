//! The ranks' meeting before the program begins. A watchdog, started before MPI, ends a rank that waits too long for
//! the others and lists the ranks that arrived.
//!
//! MPI cannot report arrivals before all ranks are connected, so the watchdog looks for processes of the launcher that
//! have a watchdog thread. Processes on other hosts are invisible to it.

use crate::coordinator::reporter::{self, Outcome};
use bh_core::environment;
use bh_core::launcher::Launcher;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{read, read_dir, read_to_string};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

/// The watchdog thread's name, which shows other ranks that this one has arrived.
const THREAD: &str = "bh-meeting";

/// Limits the wait for the other ranks while it lives.
pub struct Meeting {
    _over: UnixStream,
}

/// A process of the job on this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Process {
    id: u32,
    /// It waits for the others: it has a watchdog thread.
    came: bool,
    /// It has loaded bh.
    loaded: bool,
    stopped: bool,
    /// Its command line.
    line: String,
    /// Its `BH_STACK` at start.
    stack: String,
}

impl Meeting {
    /// Starts the watchdog.
    pub fn begin(limit: Duration, launcher: Launcher) -> Option<Meeting> {
        let (over, end) = UnixStream::pair().ok()?;
        // Without the thread, the wait has no limit.
        std::thread::Builder::new().name(THREAD.into()).spawn(move || watch(limit, &launcher, &end)).ok()?;
        Some(Meeting { _over: over })
    }
}

/// Ends this process if the other ranks do not arrive in time. One rank of this host prints the reason.
fn watch(limit: Duration, launcher: &Launcher, over: &UnixStream) {
    let parent = starter(std::process::id(), launcher.rank_variable);
    let address = SocketAddr::from_abstract_name(format!("{THREAD}-{parent}")).ok();
    let print = || eprintln!("bh: rank {}: {}", launcher.rank, message(limit, launcher, &processes(launcher, parent)));
    if reporter::wait(over, limit, address.as_ref(), print) == Outcome::Reported {
        // SAFETY: ends the process, whose other threads are blocked in MPI.
        unsafe { libc::_exit(1) }
    }
}

/// The ranks that arrived, and the state of the others.
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

/// The state of a missing rank.
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

/// Formats rank numbers, with ranges.
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

/// The process that started this host's ranks: the nearest ancestor that is not a rank.
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
    // The name before the bracket may contain spaces and brackets.
    let mut words = text.rsplit_once(')')?.1.split_whitespace();
    Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
}

/// The environment at a process's start, as NUL-terminated entries.
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
    fn messages_name_the_ranks_that_came_and_the_state_of_the_others() {
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
        // The child runs this program's image until it has executed `sleep`.
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
