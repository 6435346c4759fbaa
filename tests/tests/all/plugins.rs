//! Third-party components: an engine in C compiled against the header alone, and faulty components that the loader and
//! the host must survive.

use bh_bytecode::Opcode;
use bh_core::abi::status;
use bh_core::error::Error;
use bh_core::stack::Stack;
use bh_tests::program::{LEN, Script};
use bh_tests::{conformance, stacks};
use std::path::{Path, PathBuf};
use std::process::Command;

const LEN_: usize = LEN as usize;

/// Compiles a component from one C file of `tests/c`.
fn compile(source: &str, library: &str, flags: &[&str]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = directory.join(format!("lib{library}.so"));
    let mut command = Command::new("cc");
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared", "-ffp-contract=off"]);
    command.arg("-I").arg(stacks::root().join("bh-bridge-c/include"));
    command.args(flags).arg(stacks::root().join("tests/c").join(source)).arg("-o").arg(&file).arg("-lm");
    let output = command.output().unwrap_or_else(|error| panic!("a C compiler is needed for this test: cc: {error}"));
    assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
    file
}

fn load(text: &str) -> Result<Stack, Error> {
    Stack::load(&stacks::from_text("plugins.toml", text)?, Some("it"))
}

#[test]
fn an_engine_in_c_runs_what_it_can() {
    let library = compile("third_party.c", "third_party", &[]);
    let text = format!(
        "[stacks]\nit = ['fuser', 'node', 'third-party', 've-cpu']\n[components.third-party]\nlibrary = {:?}\n",
        library.display().to_string()
    );
    let mut stack = load(&text).unwrap();
    // One fused block of five operations, three of which the engine supports, in two runs.
    let mut script = Script::new(&stack, 6);
    script.fill(0, 3.0).op(Opcode::Add, &[1, 0, 0]).op(Opcode::Multiply, &[2, 1, 1]);
    script.op(Opcode::Subtract, &[3, 2, 0]).op(Opcode::Sqrt, &[4, 2]).op(Opcode::Divide, &[5, 4, 3]);
    script.run(&mut stack).unwrap();
    let expected = [3.0, 6.0, 36.0, 33.0, 6.0, 6.0 / 33.0];
    for (array, value) in expected.into_iter().enumerate() {
        assert_eq!(script.values(&mut stack, array).unwrap(), [value; LEN_], "array {array}");
    }
    let stats = stack.stats();
    assert_eq!(stats.get("third-party.operations"), Some(3));
    assert!(stats.get("third-party.refused_blocks") > Some(0));
    assert!(stats.get("ve-cpu.blocks") > Some(0));
    script.discard(&mut stack).unwrap();
    // It also conforms in every layout.
    let opcodes = [Opcode::Add, Opcode::Multiply, Opcode::Sqrt, Opcode::Subtract, Opcode::AddReduce];
    let summary = conformance::run_opcodes(&mut stack, &opcodes, &mut |_| {});
    assert!(summary.passed(), "{summary}\n{}", summary.failures.join("\n"));
    assert_eq!(stack.message("leaks").unwrap(), "0 arrays alive, 0 bytes of host memory");
}

/// The kit's engine in C, as built for the first version 2 of the ABI, still runs.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn an_engine_that_was_built_long_ago_runs() {
    let library = stacks::root().join("tests/abi/kit_engine_abi_2.bin");
    let text = format!(
        "[stacks]\nit = ['fuser', 'node', 'kit', 've-cpu']\n[components.kit]\nlibrary = {:?}\n",
        library.display().to_string()
    );
    let mut stack = load(&text).unwrap();
    let mut script = Script::new(&stack, 5);
    script.fill(0, 3.0).op(Opcode::Add, &[1, 0, 0]).op(Opcode::Multiply, &[2, 1, 1]).op(Opcode::Sqrt, &[3, 2]);
    script.op(Opcode::Divide, &[4, 2, 3]);
    script.run(&mut stack).unwrap();
    assert_eq!(script.values(&mut stack, 4).unwrap(), [6.0; LEN_]);
    assert_eq!(stack.stats().get("kit.instructions"), Some(3));
    script.discard(&mut stack).unwrap();
    let summary = conformance::run_opcodes(&mut stack, &[Opcode::Add, Opcode::Divide, Opcode::Sqrt], &mut |_| {});
    assert!(summary.passed(), "{summary}\n{}", summary.failures.join("\n"));
    assert_eq!(stack.message("leaks").unwrap(), "0 arrays alive, 0 bytes of host memory");
}

#[test]
fn siblings_share_the_work() {
    let library = compile("third_party.c", "third_party_sibling", &[]);
    let text = format!(
        "[stacks]\nit = ['node', ['third-party', 've-cpu']]\n[components.third-party]\nlibrary = {:?}\n",
        library.display().to_string()
    );
    let mut stack = load(&text).unwrap();
    let mut script = Script::new(&stack, 4);
    script.fill(0, 3.0).op(Opcode::Add, &[1, 0, 0]).op(Opcode::Subtract, &[2, 1, 0]).op(Opcode::Sqrt, &[3, 2]);
    script.run(&mut stack).unwrap();
    assert_eq!(script.values(&mut stack, 3).unwrap(), [3f64.sqrt(); LEN_]);
    let stats = stack.stats();
    assert_eq!((stats.get("third-party.operations"), stats.get("ve-cpu.blocks")), (Some(2), Some(2)));
    script.discard(&mut stack).unwrap();
    assert_eq!(stack.message("leaks").unwrap(), "0 arrays alive, 0 bytes of host memory");
}

#[test]
fn an_engine_without_a_successor_names_what_nobody_runs() {
    let library = compile("third_party.c", "third_party_alone", &[]);
    let text = format!(
        "[stacks]\nit = ['node', 'third-party']\n[components.third-party]\nlibrary = {:?}\n",
        library.display().to_string()
    );
    let mut stack = load(&text).unwrap();
    let mut script = Script::new(&stack, 3);
    script.op(Opcode::Add, &[1, 0, 0]).op(Opcode::Subtract, &[2, 1, 0]);
    let error = script.run(&mut stack).unwrap_err();
    assert_eq!(error.status, status::UNSUPPORTED);
    let text =
        "program.c:2: no engine of the stack runs subtract on (f64, f64, f64); the last one asked was 'third-party'";
    assert_eq!(error.to_string(), text);
    assert_eq!(script.values(&mut stack, 1).unwrap(), [0.0; LEN_]);
    assert_eq!(script.values(&mut stack, 2).unwrap_err().to_string(), text);
}

/// The stack with a fake component of this number above the CPU engine.
fn fake(number: u32, stack: &str) -> (String, Result<Stack, Error>) {
    let library = compile("fakes.c", &format!("fake_{number}"), &[&format!("-DFAKE={number}")]);
    let shown = library.display().to_string();
    let loaded = load(&format!("[stacks]\nit = [{stack}]\n[components.fake]\nlibrary = {shown:?}\n"));
    (shown, loaded)
}

const BELOW_NODE: &str = "'fuser', 'node', 'fake', 've-cpu'";

fn load_error(number: u32) -> (String, Error) {
    let (library, loaded) = fake(number, BELOW_NODE);
    (library, loaded.map(|_| ()).unwrap_err())
}

#[test]
fn wrong_libraries_are_refused_with_their_name() {
    let (library, error) = load_error(1);
    assert_eq!(error.status, status::VERSION);
    assert!(error.text.contains(&format!("'{library}' was built for ABI version 1")), "{error}");
    let (library, error) = load_error(2);
    assert_eq!(error.status, status::VERSION);
    assert!(error.text.contains(&format!("'{library}' does not serve ABI version 2")), "{error}");
    let (library, error) = load_error(8);
    assert_eq!(error.status, status::VERSION);
    assert!(error.text.contains(&library) && error.text.contains("7 bytes"), "{error}");
    let (library, error) = load_error(13);
    assert_eq!(error.status, status::LIBRARY);
    assert!(error.text.contains(&library) && error.text.contains("no function"), "{error}");
    let (_, error) = load_error(4);
    assert_eq!(error.status, status::INIT);
    assert!(error.text.contains("component 'fake' could not start: the fan does not turn"), "{error}");
}

#[test]
fn what_is_no_component_is_no_component() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(directory.join("empty.c"), "int nothing_of_interest(void) { return 7; }\n").unwrap();
    let plain = directory.join("libplain.so");
    let built =
        Command::new("cc").args(["-shared", "-fPIC"]).arg(directory.join("empty.c")).arg("-o").arg(&plain).status();
    assert!(built.unwrap().success());
    let text = directory.join("libtext.so");
    std::fs::write(&text, "This is not a library.\n").unwrap();
    for (file, reason) in
        [(&plain, "is no component"), (&text, "cannot be loaded"), (&directory.join("libgone.so"), "no library")]
    {
        let stack =
            format!("[stacks]\nit = ['node', 'odd']\n[components.odd]\nlibrary = {:?}\n", file.display().to_string());
        let error = load(&stack).map(|_| ()).unwrap_err();
        assert_eq!(error.status, status::LIBRARY);
        assert!(error.text.contains(reason) && error.text.contains(&file.display().to_string()), "{error}");
        assert!(error.text.contains("plugins.toml:5"), "{error}");
    }
}

/// b1 = b0 + b0, b2 = sqrt(b1), with b0 = 8.
fn sums(stack: &Stack) -> Script {
    let mut script = Script::new(stack, 3);
    script.fill(0, 8.0).op(Opcode::Add, &[1, 0, 0]).op(Opcode::Sqrt, &[2, 1]);
    script
}

#[test]
fn a_component_without_functions_is_transparent() {
    for place in [BELOW_NODE, "'fake', 'fuser', 'node', 've-cpu'", "'fuser', 'fake', 'node', 've-cpu'"] {
        let mut stack = fake(3, place).1.unwrap();
        let script = sums(&stack);
        script.run(&mut stack).unwrap();
        assert_eq!(script.values(&mut stack, 2).unwrap(), [4.0; LEN_], "{place}");
    }
}

#[test]
fn a_failing_engine_is_reported_with_the_line_and_leaves_the_stack_alive() {
    let mut stack = fake(5, BELOW_NODE).1.unwrap();
    let script = sums(&stack);
    let error = script.run(&mut stack).unwrap_err();
    assert_eq!(error.to_string(), "program.c:1: the device fell off the bus");
    assert_eq!(script.values(&mut stack, 2).unwrap_err().to_string(), "program.c:1: the device fell off the bus");
    bh_tests::run::write(&mut stack, &script.bases[2], &1f64.to_ne_bytes().repeat(LEN_)).unwrap();
    assert_eq!(script.values(&mut stack, 2).unwrap(), [1.0; LEN_]);

    let mut stack = fake(6, BELOW_NODE).1.unwrap();
    let error = sums(&stack).run(&mut stack).unwrap_err();
    assert_eq!(error.status, status::DEVICE);
    assert!(error.text.contains("'fake'") && error.text.contains("402"), "{error}");
}

#[test]
fn batches_from_strangers_are_validated() {
    let mut stack = fake(7, "'fake', 'fuser', 'node', 've-cpu'").1.unwrap();
    let script = sums(&stack);
    let error = script.run(&mut stack).unwrap_err();
    assert_eq!(error.status, status::BATCH);
    assert!(error.text.contains("malformed batch"), "{error}");
}

#[test]
fn what_is_passed_on_without_an_address_is_refused() {
    let cases = [(9, "table 'instrs' has records"), (10, "list of blocks"), (11, "no batch"), (12, "its context")];
    for (number, text) in cases {
        let mut stack = fake(number, "'fake', 'fuser', 'node', 've-cpu'").1.unwrap();
        let script = sums(&stack);
        let error = script.run(&mut stack).unwrap_err();
        assert_eq!(error.status, status::BATCH, "{error}");
        assert!(error.text.contains(text), "fake {number}: {error}");
    }
}

fn panicking(place: &str) -> Result<Stack, Error> {
    load(&format!(
        "[stacks]\nit = ['node', 've-panicking', 've-cpu']\n[components.ve-panicking]\npanic_in = '{place}'\n"
    ))
}

#[test]
fn panics_become_errors() {
    let error = panicking("create").map(|_| ()).unwrap_err();
    assert!(error.text.contains("'ve-panicking'") && error.text.contains("the create of a test"), "{error}");
    // `bind` runs while the data manager starts.
    let error = panicking("bind").map(|_| ()).unwrap_err();
    assert!(error.text.contains("the bind of a test"), "{error}");

    let mut stack = panicking("execute").unwrap();
    let script = sums(&stack);
    let error = script.run(&mut stack).unwrap_err();
    assert_eq!(error.status, status::PANIC);
    assert!(error.text.contains("'ve-panicking' panicked") && error.text.contains("the execute of a test"), "{error}");
    assert_eq!(error.origin.as_ref().map(|(file, line)| (file.as_str(), *line)), Some(("program.c", 1)));
    assert_eq!(script.values(&mut stack, 2).unwrap_err().status, status::PANIC);

    // An engine that panics in `supports` is not used.
    let mut stack = panicking("supports").unwrap();
    let script = sums(&stack);
    script.run(&mut stack).unwrap();
    assert_eq!(script.values(&mut stack, 2).unwrap(), [4.0; LEN_]);

    let stack = panicking("destroy").unwrap();
    stack.shutdown().unwrap();
}
