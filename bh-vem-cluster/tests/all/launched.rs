//! The suites on ranks under `mpirun`, for each MPI that bh was built for. The test program launches itself.

use crate::launcher;
use crate::support;

use bh_bytecode::{Opcode, View};
use bh_core::stack::Stack;
use bh_tests::{conformance, random, stacks};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::Program;

/// The launchers, by the name of bh's library.
const LAUNCHERS: &[(&str, &str)] = &[("openmpi", "mpirun.openmpi"), ("mpich", "mpirun.mpich")];

/// The wait of ranks if one does not arrive: long enough for the others to arrive on a loaded machine.
const MEET_SECONDS: u64 = 15;

/// A limit against hanging.
const LIMIT: Duration = Duration::from_secs(300);

/// Does the environment ask for all tests instead of a sample?
fn all() -> bool {
    std::env::var_os("BH_TEST_ALL").is_some()
}

/// The launchers whose transport library exists. Prints the others.
fn launchers() -> Vec<(&'static str, &'static str)> {
    let there = |name: &str| stacks::libraries().join(format!("libbh_cluster_{name}.so")).is_file();
    for (name, _) in LAUNCHERS.iter().filter(|(name, _)| !there(name)) {
        eprintln!("bh was built without a cluster library for {name}: left out");
    }
    LAUNCHERS.iter().copied().filter(|(name, _)| there(name)).collect()
}

/// The command line of a test of this program on this many ranks.
fn launch((name, program): (&str, &str), ranks: usize, test: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    if name == "openmpi" {
        command.args(["--oversubscribe", "--bind-to", "none"]);
    }
    command.args(["-n", &ranks.to_string()]).arg(std::env::current_exe().unwrap());
    command.args([&format!("launched::{test}"), "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.envs(variables.iter().copied());
    launcher::output(&mut command)
}

fn said(output: &Output) -> String {
    format!(
        "{}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Settings with which devices also get little work.
const DEVICE: &str = "[components.opencl]\ndevice = 'cpu'\ngroup = 16\nplacement = '64 8'\n\
                      cache_dir = ''\nwhile_building = 'off'\n";

/// A cluster of the launched ranks that splits arrays of more than `small` bytes. With `TEST_DEVICE`, for manual runs,
/// each rank has a device.
fn cluster(small: u64, more: &str) -> Stack {
    let on_device = std::env::var_os("TEST_DEVICE").is_some();
    let below = match siblings() {
        _ if on_device => "'fuser', 'node', 'opencl', 've-cpu'".to_owned(),
        1 => "'node', 've-interp'".to_owned(),
        count => format!("[{}]", vec!["['node', 've-interp']"; count].join(", ")),
    };
    // The stack's name determines the tolerance against the oracle.
    let (device, it) = if on_device { (DEVICE, "opencl-ranks") } else { ("", "it") };
    let text =
        format!("[stacks]\n{it} = ['cluster', {below}]\n{device}[components.cluster]\nsmall_bytes = {small}\n{more}\n");
    let config = stacks::from_text("cluster.toml", &text).unwrap();
    Stack::load(&config, Some(it)).unwrap_or_else(|error| panic!("{error}"))
}

/// The stacks of each process.
fn siblings() -> usize {
    std::env::var("TEST_SIBLINGS").map_or(1, |count| count.parse().unwrap())
}

fn ranks_of(stack: &mut Stack) -> usize {
    stack.message("cluster traffic").unwrap().lines().count()
}

#[test]
#[ignore = "run on ranks by the tests below"]
fn suites_of_a_rank() {
    let variable = |name: &str| std::env::var(name).unwrap().parse::<usize>().unwrap();
    let (ranks, step, programs) = (variable("TEST_RANKS"), variable("TEST_STEP"), variable("TEST_PROGRAMS") as u64);
    let ranks = ranks * siblings();
    // Uneven shares for several stacks.
    let weights = (0..ranks).map(|rank| (1 + rank % 3).to_string()).collect::<Vec<_>>().join(", ");
    let weights = if siblings() > 1 { format!("weights = [{weights}]\n") } else { String::new() };
    let mut stack = cluster(16, &format!("{weights}part_bytes = 64"));
    assert_eq!(ranks_of(&mut stack), ranks);
    let summary = conformance::run_sample(&mut stack, Opcode::ALL, step, &mut |_| {});
    let shown: Vec<&str> = summary.failures.iter().take(10).map(String::as_str).collect();
    assert!(summary.passed(), "{ranks} ranks: {summary}\n{}", shown.join("\n"));
    assert_eq!(summary.unsupported, 0, "{ranks} ranks: {summary}");
    // Two contexts at the same time, with different settings.
    let mut stacks = [stack, cluster(0, "overlap_rows = 0")];
    for seed in 0..programs {
        if let Err(error) = random::check_seed(&mut stacks, seed) {
            panic!("{error}");
        }
    }
    for stack in &mut stacks {
        assert_eq!(stack.message("leaks").unwrap().lines().last(), Some("0 arrays alive, 0 bytes of host memory"));
    }
    println!("{ranks} ranks: {summary}, {programs} random programs");
}

#[test]
#[ignore = "run on ranks by the test below"]
fn rows_of_a_rank() {
    let text = "[stacks]\nit = ['cluster', 'fuser', 'node', 've-cpu']\nalone = ['fuser', 'node', 've-cpu']\n\
                [components.cluster]\nsmall_bytes = 64\n";
    let config = stacks::from_text("cluster.toml", text).unwrap();
    let [mut stack, mut plain] = ["it", "alone"].map(|name| Stack::load(&config, Some(name)).unwrap());
    let ranks = ranks_of(&mut stack);
    support::sort_select::compare(&mut stack, &mut plain, 0..if all() { 1000 } else { 60 });
    println!("{ranks} ranks put elements in a row");
}

/// Runs a test on these numbers of ranks with each launcher, and checks the text that ranks print.
fn on_ranks(numbers: [usize; 2], test: &str, told: &str) {
    for launcher in launchers() {
        for ranks in numbers {
            let output = launch(launcher, ranks, test, &[]);
            assert!(output.status.success(), "{ranks} ranks with {}: {}", launcher.0, said(&output));
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(text.contains(&format!("{ranks} ranks {told}")), "{}", said(&output));
        }
    }
}

#[test]
fn methods_on_ranks_sort_and_select() {
    on_ranks([2, 5], "rows_of_a_rank", "put");
}

#[test]
fn suites_on_ranks_equal_the_oracle() {
    let (step, programs) = if all() { ("1", "3000") } else { ("40", "60") };
    for launcher in launchers() {
        for ranks in 1..=4 {
            let count = ranks.to_string();
            let variables = [("TEST_RANKS", count.as_str()), ("TEST_STEP", step), ("TEST_PROGRAMS", programs)];
            let output = launch(launcher, ranks, "suites_of_a_rank", &variables);
            assert!(output.status.success(), "{} ranks with {}: {}", ranks, launcher.0, said(&output));
            let count = String::from_utf8_lossy(&output.stdout).matches("random programs").count();
            // The same program would run as one rank in each process if the cluster did not connect.
            assert_eq!(count, 1, "{} ranks with {}: {}", ranks, launcher.0, said(&output));
        }
    }
}

#[test]
fn suites_on_siblings_of_ranks_equal_the_oracle() {
    let (step, programs) = if all() { ("1", "3000") } else { ("40", "60") };
    for launcher in launchers() {
        let given = [("TEST_RANKS", "2"), ("TEST_SIBLINGS", "3"), ("TEST_STEP", step), ("TEST_PROGRAMS", programs)];
        let output = launch(launcher, 2, "suites_of_a_rank", &given);
        assert!(output.status.success(), "{}: {}", launcher.0, said(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("6 ranks: "), "{}: {}", launcher.0, said(&output));
    }
}

#[test]
#[ignore = "run on ranks by the test below"]
fn operations_of_one_rank() {
    let limit = libc::rlimit { rlim_cur: 6 << 30, rlim_max: 6 << 30 };
    // SAFETY: `limit` lives through the call, which only reads it.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
    let mut stack = cluster(16, "");
    let mut program = Program::new(&mut stack);
    let (target, source) = (program.grid(&[100_000], |_| 0.0), program.grid(&[150, 150], |at| at as f64));
    // Each row spans both ranks, and there are more boxes than are worth their kernels.
    let crossed = View::new(0, &[150, 150], &[301, 300]).unwrap();
    for copies in 1..=40 {
        for _ in 0..2 {
            (0..copies).for_each(|_| program.op(Opcode::Copy, (target, crossed), &[program.all(source)]));
            program.run();
        }
    }
    assert_eq!(program.values(target)[301 + 2 * 300], 152.0);
    assert_eq!(program.count("cluster.operations brought to one rank"), 40 * 41);
    assert!(program.count("cluster.batches planned before") > 30);
    println!("all turns");
}

/// The other ranks' memory does not grow with the number of iterations.
#[test]
fn operations_of_one_rank_may_come_often() {
    for launcher in launchers() {
        let output = launch(launcher, 2, "operations_of_one_rank", &[]);
        assert!(output.status.success(), "{}: {}", launcher.0, said(&output));
        assert!(said(&output).contains("all turns"), "{}", said(&output));
    }
}

/// Over TCP between two network name spaces. Needs root, so it only runs with all tests.
#[test]
fn ranks_of_two_hosts_equal_the_oracle() {
    if !all() || !launchers().iter().any(|(name, _)| *name == "openmpi") {
        return;
    }
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/two_hosts.sh");
    let mut command = Command::new(script);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.arg(std::env::current_exe().unwrap());
    command.args(["launched::suites_of_a_rank", "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.envs([("TEST_RANKS", "2"), ("TEST_STEP", "20"), ("TEST_PROGRAMS", "300")]);
    command.env("BH_TEST_LIBRARIES", stacks::libraries());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("2 ranks: it: ok"), "{}", said(&output));
}

/// The progress of a job's ranks, as files in a shared folder.
struct Events(PathBuf);

impl Events {
    /// Creates a folder for a job.
    fn new() -> Events {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("bh-ranks-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Events(folder)
    }

    /// The folder of this rank's job.
    fn of_job() -> Events {
        Events(std::env::var("TEST_EVENTS").unwrap().into())
    }

    fn happens(&self, event: &str) {
        std::fs::write(self.0.join(event), format!("{}\n", std::process::id())).unwrap();
    }

    /// Waits for an event; returns the process id of the rank that recorded it.
    fn wait(&self, event: &str) -> u32 {
        let process = || std::fs::read_to_string(self.0.join(event)).ok()?.strip_suffix('\n')?.parse().ok();
        until(event, process)
    }

    /// Synchronises ranks 0 and 2.
    fn meet(&self, rank: usize) {
        self.happens(&format!("rank {rank} is here"));
        self.wait_for_meeting();
    }

    fn wait_for_meeting(&self) {
        for other in [0, 2] {
            self.wait(&format!("rank {other} is here"));
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if std::env::var_os("TEST_EVENTS").is_none() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

fn until<T>(event: &str, mut it: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = it() {
            return found;
        }
        assert!(begin.elapsed() < LIMIT, "'{event}' does not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
#[ignore = "run on ranks by the tests below"]
fn a_rank_that_fails() {
    let rank = bh_core::launcher::Launcher::find().unwrap().rank;
    let events = Events::of_job();
    match std::env::var("TEST_FAULT").unwrap().as_str() {
        // One rank has different settings.
        "settings" => drop(cluster(if rank == 2 { 32 } else { 16 }, "")),
        // A rank is killed while the others wait for it.
        "killed" => {
            if rank == 1 {
                std::thread::spawn(move || {
                    events.wait("programs run");
                    // SAFETY: signals this process.
                    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
                });
                drop(cluster(16, ""));
                return;
            }
            let mut stacks = [cluster(16, "")];
            for seed in 0..u64::MAX {
                random::check_seed(&mut stacks, seed).unwrap();
                if seed == 3 {
                    events.happens("programs run");
                }
            }
        }
        // A rank ends before it creates a cluster, and the launcher notices before the others begin.
        "gone" if rank == 1 => events.happens("rank 1 ends"),
        "gone" => {
            let process = events.wait("rank 1 ends");
            until("rank 1 has ended", || (!PathBuf::from(format!("/proc/{process}")).exists()).then_some(()));
            events.meet(rank);
            drop(cluster(16, &format!("meet_seconds = {MEET_SECONDS}")));
        }
        // A rank uses bh without a cluster.
        "away" if rank == 1 => {
            let _other =
                Stack::load(&stacks::from_text("other.toml", "[stacks]\nit = ['node', 've-interp']\n").unwrap(), None);
            events.happens("rank 1 is elsewhere");
            // Until the launcher ends this process.
            std::thread::sleep(LIMIT);
        }
        "away" => {
            events.wait("rank 1 is elsewhere");
            events.meet(rank);
            drop(cluster(16, &format!("meet_seconds = {MEET_SECONDS}")));
        }
        // A rank arrives late, but within the limit.
        "late" => {
            if rank == 1 {
                events.wait_for_meeting();
                // The others are usually waiting by now.
                std::thread::sleep(Duration::from_secs(1));
            } else {
                events.meet(rank);
            }
            drop(cluster(16, &format!("meet_seconds = {}", LIMIT.as_secs())));
            println!("all came");
        }
        "code" => {
            let transport =
                std::env::var("TEST_TRANSPORT").map_or(String::new(), |name| format!("transport = '{name}'"));
            let _stack = cluster(16, &transport);
            std::process::exit(7);
        }
        other => panic!("fault '{other}'"),
    }
}

/// Runs ranks of which one fails in this way.
fn fail(launcher: (&str, &str), ranks: usize, fault: &str, more: &[(&str, &str)]) -> Output {
    let events = Events::new();
    let variables = [("TEST_FAULT", fault), ("TEST_EVENTS", events.0.to_str().unwrap())];
    launch(launcher, ranks, "a_rank_that_fails", &[&variables, more].concat())
}

#[test]
fn ranks_end_together_when_one_fails() {
    let faults = [("settings", "the ranks differ"), ("killed", "9"), ("code", "")];
    for launcher in launchers() {
        for (fault, message) in faults {
            let output = fail(launcher, 3, fault, &[]);
            let said = said(&output);
            assert!(!output.status.success(), "{fault} with {}: {said}", launcher.0);
            assert!(said.contains(message), "{fault} with {}: {said}", launcher.0);
            // No rank has waited in vain for the others to end.
            assert!(!said.contains("do not end"), "{fault} with {}: {said}", launcher.0);
            if fault == "code" {
                assert_eq!(output.status.code(), Some(7), "{}: {said}", launcher.0);
            }
        }
    }
}

#[test]
fn ranks_that_do_not_come_are_named() {
    let faults = [("gone", Some("rank 1 ")), ("away", Some("uses bh, but not on a cluster's stack")), ("late", None)];
    let check = |launcher: (&str, &str), fault: &str, missing: Option<&str>| {
        let output = fail(launcher, 3, fault, &[]);
        let said = said(&output);
        let Some(missing) = missing else {
            assert!(output.status.success() && said.contains("all came"), "{said}");
            return;
        };
        assert!(!output.status.success(), "{fault} with {}: {said}", launcher.0);
        let message = format!("did not meet within {MEET_SECONDS} s");
        let told: Vec<&str> = said.lines().filter(|line| line.contains(&message)).collect();
        assert!(told.len() == 1 && told[0].contains("here ranks 0, 2 came"), "{fault} with {}: {said}", launcher.0);
        assert!(told[0].contains(missing), "{fault} with {}: {said}", launcher.0);
    };
    // All at the same time, as they only wait.
    std::thread::scope(|scope| {
        for (launcher, (fault, missing)) in launchers().into_iter().flat_map(|one| faults.map(|fault| (one, fault))) {
            scope.spawn(move || check(launcher, fault, missing));
        }
    });
}

/// Under another MPI's launcher, each process finds itself alone.
#[test]
fn the_wrong_launcher_is_named() {
    let [first, second] = match launchers()[..] {
        [first, second] => [first, second],
        _ => return,
    };
    for (launcher, other) in [(first, second), (second, first)] {
        let output = fail(launcher, 2, "code", &[("TEST_TRANSPORT", other.0)]);
        let said = said(&output);
        assert!(!output.status.success(), "{said}");
        assert!(said.contains("wrong mpirun"), "{said}");
    }
}
