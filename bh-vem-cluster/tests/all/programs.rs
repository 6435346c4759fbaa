//! C programs on ranks under `mpirun`: unchanged programs, ways to end, programs with their own communicator, and
//! files.

use crate::launcher;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// An MPI: the name of bh's transport library, the launcher and the compiler.
type Mpi = (&'static str, &'static str, &'static str);

const IMPLEMENTATIONS: &[Mpi] =
    &[("openmpi", "mpirun.openmpi", "mpicc.openmpi"), ("mpich", "mpirun.mpich", "mpicc.mpich")];

/// The prefix to which `cargo xtask test` installed bh.
fn prefix() -> PathBuf {
    std::env::var_os("BH_TEST_PREFIX")
        .map(PathBuf::from)
        .expect("run the tests by `cargo xtask test`, which sets BH_TEST_PREFIX")
}

/// The MPIs that bh was built for. Prints the others.
fn implementations() -> Vec<Mpi> {
    let there = |name: &str| prefix().join("lib/bh").join(format!("libbh_cluster_{name}.so")).is_file();
    for (name, ..) in IMPLEMENTATIONS.iter().filter(|(name, ..)| !there(name)) {
        eprintln!("bh was built without a cluster library for {name}: left out");
    }
    IMPLEMENTATIONS.iter().copied().filter(|(name, ..)| there(name)).collect()
}

/// A compiled program, removed at the end.
struct Program(PathBuf);

impl Program {
    fn compile(compiler: &str, source: &Path) -> Program {
        let name = source.file_stem().unwrap().to_string_lossy().into_owned();
        // Several tests use the same program at the same time.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let program = std::env::temp_dir().join(format!("bh-ranks-{name}-{compiler}-{}-{number}", std::process::id()));
        let (library, plus) = (prefix().join("lib"), source.extension().is_some_and(|extension| extension == "cpp"));
        let compiled = Command::new(if plus { "g++" } else { compiler })
            .args([if plus { "-std=c++17" } else { "-std=c99" }, "-Wall", "-Wextra", "-O1", "-o"])
            .args([&program, source])
            .arg(format!("-I{}", prefix().join("include").display()))
            .arg(format!("-L{}", library.display()))
            .args(["-lbh_bridge_c", "-lm"])
            .arg(format!("-Wl,-rpath,{}", library.display()))
            .status()
            .unwrap_or_else(|error| panic!("{compiler}: {error}"));
        assert!(compiled.success(), "{} does not compile", source.display());
        Program(program)
    }

    fn example(name: &str) -> Program {
        Program::compile("cc", &Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name))
    }

    fn own(compiler: &str, name: &str) -> Program {
        Program::compile(compiler, &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name))
    }

    fn line(&self, arguments: &[&str]) -> Vec<String> {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        std::iter::once(self.0.display().to_string()).chain(arguments).collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Best effort: the file is in the temporary directory.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A launcher's command line up to the number of ranks.
fn beginning((name, launcher, _): Mpi) -> Vec<String> {
    let options = if name == "openmpi" { &["--oversubscribe", "--bind-to", "none"][..] } else { &[] };
    std::iter::once(launcher).chain(options.iter().copied()).map(str::to_owned).collect()
}

fn on_ranks(mpi: Mpi, ranks: usize, line: &[String]) -> Vec<String> {
    let mut whole = beginning(mpi);
    whole.extend(["-n".to_owned(), ranks.to_string()]);
    whole.extend_from_slice(line);
    whole
}

fn run(stack: &str, line: &[String]) -> Output {
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]).env("BH_STACK", stack).env("BH_VE_CPU_THREADS", "1");
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    launcher::output(&mut command)
}

fn said(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{}\n{out}\n{err}", output.status)
}

/// A program's output without times and the stack's name, split into texts and numbers.
fn figures(output: &Output) -> Vec<(String, Option<f64>)> {
    assert!(output.status.success(), "{}", said(output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter(|line| !line.starts_with("seconds") && !line.starts_with("stack"));
    let words = lines.flat_map(str::split_whitespace);
    words
        .map(|word| match word.parse::<f64>() {
            Ok(number) => (String::new(), Some(number)),
            Err(_) => (word.to_owned(), None),
        })
        .collect()
}

#[test]
fn unchanged_programs_give_the_same_results_without_a_cluster() {
    // The second heat program has rows long enough for posted receives.
    let programs = [
        (Program::example("heat.c"), ["200", "20"]),
        (Program::example("heat.c"), ["2500", "3"]),
        (Program::example("black_scholes.c"), ["20000", "2"]),
    ];
    for (program, arguments) in &programs {
        let line = program.line(arguments);
        let expected = figures(&run("cpu", &line));
        assert!(expected.iter().any(|(_, number)| number.is_some()));
        for mpi in implementations() {
            for ranks in [1, 2, 4] {
                let found = figures(&run("cluster", &on_ranks(mpi, ranks, &line)));
                assert_eq!(found.len(), expected.len(), "{line:?} on {ranks} ranks of {}: {found:?}", mpi.0);
                for (one, other) in expected.iter().zip(&found) {
                    let near = match (one.1, other.1) {
                        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs(),
                        _ => one.0 == other.0,
                    };
                    assert!(near, "{line:?} on {ranks} ranks of {}: {one:?} and {other:?}", mpi.0);
                }
            }
        }
    }
}

#[test]
fn programs_end_with_the_code_of_the_first_rank() {
    let program = Program::own("cc", "ends.c");
    for mpi in implementations() {
        for (way, code) in [("never", 0), ("code", 5), ("exit", 6), ("again", 0)] {
            let output = run("cluster", &on_ranks(mpi, 3, &program.line(&[way])));
            assert_eq!(output.status.code(), Some(code), "{way} with {}: {}", mpi.0, said(&output));
        }
    }
}

#[test]
fn programs_have_a_communicator_of_their_own() {
    for mpi in implementations() {
        let program = Program::own(mpi.2, "communicator.c");
        for ranks in [1, 3] {
            let output = run("cluster", &on_ranks(mpi, ranks, &program.line(&[])));
            assert!(output.status.success(), "{} ranks of {}: {}", ranks, mpi.0, said(&output));
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains(&format!("{} ranks answered", 2 * ranks)), "{}: {}", mpi.0, said(&output));
        }
    }
}

#[test]
fn ranks_save_and_load_their_own_elements() {
    let program = Program::own("cc", "files.c");
    for mpi in implementations() {
        for ranks in [1, 3] {
            let file = std::env::temp_dir().join(format!("bh-ranks-{}-{}-{ranks}.npy", std::process::id(), mpi.0));
            let output = run("cluster", &on_ranks(mpi, ranks, &program.line(&[&file.display().to_string()])));
            assert!(output.status.success(), "{} ranks of {}: {}", ranks, mpi.0, said(&output));
            let text = String::from_utf8_lossy(&output.stdout);
            assert_eq!(text, "difference 0\nsum 4.515e+07\nbytes 0\n", "{}: {}", mpi.0, said(&output));
            let bytes = std::fs::read(&file).unwrap();
            std::fs::remove_file(&file).unwrap();
            let data: Vec<f64> = bytes[bytes.len() - 2_400_000..]
                .chunks_exact(8)
                .map(|chunk| f64::from_ne_bytes(chunk.try_into().unwrap()))
                .collect();
            assert!((0..300_000).all(|at| data[at] == (at % 300 + 1) as f64));
        }
    }
}

#[test]
fn ranks_without_a_program_serve() {
    let program = Program::example("heat.c");
    let line = program.line(&["100", "5"]);
    let expected = figures(&run("cpu", &line));
    for mpi in implementations() {
        let mut whole = on_ranks(mpi, 1, &line);
        whole.extend([":", "-n", "2"].map(str::to_owned));
        whole.extend([prefix().join("bin/bh").display().to_string(), "serve".to_owned()]);
        assert_eq!(figures(&run("cluster", &whole)), expected, "{}", mpi.0);
    }
    let alone = run("cluster", &[prefix().join("bin/bh").display().to_string(), "serve".to_owned()]);
    assert!(!alone.status.success() && said(&alone).contains("rank 0 must be a program"), "{}", said(&alone));
}

#[test]
fn a_mistake_of_all_ranks_is_reported() {
    let program = Program::example("heat.c");
    for mpi in implementations() {
        for (variable, text) in [
            ("BH_CLUSTER_WEIGHTS=1,2", "'weights' must be"),
            ("BH_CLUSTER_TRANSPORT=x", "'transport' must be"),
            ("BH_CLUSTER_X=1", "BH_CLUSTER_X"),
        ] {
            let mut line = ["env".to_owned(), variable.to_owned()].to_vec();
            line.extend(program.line(&["100", "5"]));
            let output = run("cluster", &on_ranks(mpi, 3, &line));
            let told = said(&output).matches(text).count();
            // Ranks that the launcher has not ended a second later report it, too.
            assert!(
                !output.status.success() && (1..=3).contains(&told),
                "{variable} with {}: {}",
                mpi.0,
                said(&output)
            );
        }
    }
}

#[test]
fn another_program_among_the_ranks_is_named() {
    let (program, other) = (Program::example("heat.c"), Program::example("black_scholes.c"));
    for mpi in implementations() {
        let mut line = on_ranks(mpi, 1, &program.line(&["100", "5"]));
        line.extend([":", "-n", "2"].map(str::to_owned));
        line.extend(other.line(&["1000", "2"]));
        let output = run("cluster", &line);
        let text = said(&output);
        assert!(
            !output.status.success() && text.matches("the ranks differ: rank 0 has 'program: ").count() == 1,
            "{text}"
        );
    }
}

#[test]
fn a_process_alone_among_the_tasks_of_a_batch_system_works() {
    let program = Program::example("heat.c");
    let mut line = ["env", "SLURM_NTASKS=4", "SLURM_PROCID=0"].map(str::to_owned).to_vec();
    line.extend(program.line(&["100", "5"]));
    let output = run("cluster", &line);
    assert!(output.status.success() && said(&output).contains("it works alone"), "{}", said(&output));
    // Setting the transport library starts a process of its own without a launcher.
    for mpi in implementations() {
        line[1] = format!("BH_CLUSTER_TRANSPORT={}", mpi.0);
        let output = run("cluster", &line);
        assert!(output.status.success(), "{}: {}", mpi.0, said(&output));
    }
}

#[test]
fn the_profile_has_a_row_for_each_rank() {
    let program = Program::example("heat.c");
    let Some(&mpi) = implementations().first() else { return };
    let trace = std::env::temp_dir().join(format!("bh-ranks-trace-{}.json", std::process::id()));
    let mut line = vec![prefix().join("bin/bh").display().to_string()];
    line.extend(["run", "--profile", "--trace", &trace.display().to_string(), "--"].map(str::to_owned));
    line.extend(on_ranks(mpi, 3, &program.line(&["200", "20"])));
    let output = run("cluster", &line);
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    let begin = text.lines().position(|line| line.contains("compute s")).unwrap_or_else(|| panic!("{text}"));
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(begin + 1)
        .map(|line| line.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<f64>>())
        .take_while(|row| row.len() == 7)
        .collect();
    assert_eq!(rows.len(), 3, "{text}");
    for (rank, row) in rows.iter().enumerate() {
        // Rank, compute, wait, pack, messages, MB, control messages.
        assert_eq!(row[0], rank as f64, "{text}");
        assert!(row[1] > 0.0 && row[4] >= 20.0 && row[5] > 0.0, "{text}");
    }
    assert!(text.contains("imbalance"), "{text}");
    let events = std::fs::read_to_string(&trace).unwrap();
    for rank in 0..3 {
        assert!(events.contains(&format!("rank {rank}")), "rank {rank} has no events");
    }
    std::fs::remove_file(&trace).unwrap();
    assert!(!PathBuf::from(format!("{}.rank1", trace.display())).exists());
}

#[test]
fn ranks_of_hosts_without_the_folder_leave_no_figures() {
    let program = Program::example("heat.c");
    let Some(&mpi) = implementations().first() else { return };
    let mut line = beginning(mpi);
    for (part, folder) in [std::env::temp_dir(), "/there/is/no/such".into()].iter().enumerate() {
        let file = folder.join(format!("bh-ranks-figures-{}.json", std::process::id()));
        line.extend([":"].iter().take(part).map(|text| (*text).to_owned()));
        line.extend(["-n", "1", "env"].map(str::to_owned));
        line.push(format!("BH_STATS={}", file.display()));
        line.extend(program.line(&["100", "5"]));
    }
    let output = run("cluster", &line);
    assert!(output.status.success() && !said(&output).contains("/there/is"), "{}", said(&output));
    let file = std::env::temp_dir().join(format!("bh-ranks-figures-{}.json", std::process::id()));
    assert!(std::fs::read_to_string(&file).unwrap().contains("cluster.messages"));
    std::fs::remove_file(&file).unwrap();
}

/// The values of a field in traffic texts, by text and rank.
fn traffic(text: &str, field: &str) -> Vec<u64> {
    let field = format!("\"{field}\": ");
    let values = text.split(&field).skip(1);
    values.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()).collect()
}

#[test]
fn shallow_water_sends_a_row_of_each_field_to_each_neighbour_in_one_message() {
    let program = Program::own("g++", "shallow_water.cpp");
    let config = std::env::temp_dir().join(format!("bh-ranks-shallow-{}.toml", std::process::id()));
    for ranks in [2usize, 3, 4, 7] {
        let stack = "[stacks]\nsimulated = ['filter', 'cluster', 'fuser', 'node', 've-cpu']\n";
        // Iterations of a batch send rows one by one, or all of their rows at once.
        for (steps, percent, times) in [(1u64, 0, 1), (5, 0, 5), (5, 50, 1)] {
            let keys = format!("ranks = {ranks}\nsmall_bytes = 64\nahead_percent = {percent}\n");
            std::fs::write(&config, format!("{stack}[components.cluster]\n{keys}")).unwrap();
            let (n, line) = (12 * ranks as u64, program.line(&[&(12 * ranks).to_string(), &steps.to_string()]));
            let mut command = Command::new(&line[0]);
            command
                .args(&line[1..])
                .env("BH_CONFIG", &config)
                .env("BH_STACK", "simulated")
                .env("BH_VE_CPU_THREADS", "1");
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", said(&output));
            let text = String::from_utf8_lossy(&output.stdout);
            let [messages, bytes] = ["messages", "bytes"].map(|field| traffic(&text, field));
            assert_eq!((messages.len(), bytes.len()), (5 * ranks, 5 * ranks), "{text}");
            // The first batch also creates the initial fields.
            for turn in 1..4 {
                for rank in 0..ranks {
                    let neighbours = if rank == 0 || rank == ranks - 1 { 1 } else { 2 };
                    let sent = |of: &[u64]| of[(turn + 1) * ranks + rank] - of[turn * ranks + rank];
                    let wanted = (neighbours * times, neighbours * steps * 3 * n * 8);
                    assert_eq!(
                        (sent(&messages), sent(&bytes)),
                        wanted,
                        "rank {rank} of {ranks}, {steps} steps, {percent}%"
                    );
                }
            }
        }
    }
    std::fs::remove_file(&config).unwrap();
}
