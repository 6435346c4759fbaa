//! Runs launchers such as `mpirun` with a time limit.
//!
//! Open MPI's launcher (4.1 with PMIx 4.2) sometimes hangs after a rank has failed: all of its ranks have ended, and it
//! joins a PMIx thread that waits for a lock (`PMIx_server_finalize`). That is no error of the ranks, so the run is
//! repeated.

use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The time limit of a test program.
const LIMIT: Duration = Duration::from_secs(400);
/// The pause between two checks of a launcher.
const PAUSE: Duration = Duration::from_millis(2);
/// The consecutive checks that must find a launcher asleep after all of its ranks have ended, before it counts as hung.
const LOOKS: usize = 2500;
/// The hung runs that count as an error.
const TRIES: usize = 3;

/// How a launcher ended.
enum End {
    Itself(Output),
    /// It hung after all of its ranks had ended.
    Stuck,
}

/// The output and exit status of a command.
///
/// # Panics
/// If it cannot start, or exceeds the time limit.
pub fn output(command: &mut Command) -> Output {
    for _ in 0..TRIES {
        match attempt(command) {
            End::Itself(output) => return output,
            End::Stuck => eprintln!("the launcher stood still after its ranks had ended: once more"),
        }
    }
    panic!("{command:?} stood still {TRIES} times after its ranks had ended");
}

fn attempt(command: &mut Command) -> End {
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let out = all_of(child.stdout.take().unwrap());
    let err = all_of(child.stderr.take().unwrap());
    let (begin, mut looks) = (Instant::now(), 0);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return End::Itself(Output { status, stdout: out.join().unwrap(), stderr: err.join().unwrap() });
        }
        looks = if sleeps_with_zombies(child.id()) { looks + 1 } else { 0 };
        if looks > LOOKS {
            kill(&mut child);
            return End::Stuck;
        }
        if begin.elapsed() > LIMIT {
            // Launchers end their ranks after SIGTERM. SAFETY: signals a child that was not waited for, so its id is
            // still valid.
            unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
            for _ in 0..LOOKS {
                thread::sleep(PAUSE);
                if child.try_wait().unwrap().is_some() {
                    break;
                }
            }
            kill(&mut child);
            let said = [out.join().unwrap(), err.join().unwrap()].concat();
            panic!("{command:?} did not end within {LIMIT:?}:\n{}", String::from_utf8_lossy(&said));
        }
        thread::sleep(PAUSE);
    }
}

fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn all_of(mut stream: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut text = Vec::new();
        stream.read_to_end(&mut text).unwrap();
        text
    })
}

/// Is a process asleep, with children that have all ended?
fn sleeps_with_zombies(parent: u32) -> bool {
    let threads: Vec<_> = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten().collect();
    let lists =
        threads.iter().map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    let children: Vec<String> =
        lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
    let is_in = |status: std::path::PathBuf, state: char| {
        let status = std::fs::read_to_string(status).unwrap_or_default();
        status.lines().any(|line| line.starts_with("State:") && line.contains(&format!("\t{state} ")))
    };
    !children.is_empty()
        && children.iter().all(|child| is_in(format!("/proc/{child}/status").into(), 'Z'))
        && threads.iter().all(|thread| is_in(thread.path().join("status"), 'S'))
}
