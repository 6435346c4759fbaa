//! Faults in a stack: errors name the failing line, only dependent data is lost, and the stack continues.

use bh_bytecode::Opcode;
use bh_core::abi::status;
use bh_core::config::Config;
use bh_core::stack::Stack;
use bh_tests::program::{LEN, Script};
use bh_tests::stacks;

const LEN_: usize = LEN as usize;

fn load(text: &str) -> Stack {
    let config: Config = stacks::from_text("faults.toml", text).unwrap();
    Stack::load(&config, Some("it")).unwrap()
}

/// Scripted failures on the shadow engine, directly and below the split manager.
const FAILING: &[&str] = &[
    "[stacks]\nit = ['fuser', 'node', 'shadow']\n[components.shadow]\nfail = ['exp:1']\n\
     [components.fuser]\nalgorithm = 'singleton'\n",
    "[stacks]\nit = ['node', 'shadow']\n[components.shadow]\nfail = ['exp:1']\ndelay_us = 2000\n",
    "[stacks]\nit = ['vem-split', ['node', 'node'], 'shadow']\n[components.shadow]\nfail = ['exp:1']\n",
];

#[test]
fn a_failure_loses_only_what_depends_on_it() {
    for text in FAILING {
        let mut stack = load(text);
        let mut script = Script::new(&stack, 5);
        script.fill(0, 2.0).op(Opcode::Sqrt, &[1, 0]).op(Opcode::Exp, &[2, 0]).op(Opcode::Add, &[3, 2, 0]);
        script.op(Opcode::Multiply, &[4, 0, 0]);
        let error = script.run(&mut stack).unwrap_err();
        assert_eq!(error.to_string(), "program.c:3: scripted failure of exp", "{text}");
        // Reading a lost array gives the original error, every time; other arrays are intact.
        for _ in 0..2 {
            for lost in [2, 3] {
                let error = script.values(&mut stack, lost).unwrap_err();
                assert_eq!(error.to_string(), "program.c:3: scripted failure of exp", "{text}");
            }
        }
        assert_eq!(script.values(&mut stack, 1).unwrap(), [2f64.sqrt(); LEN_], "{text}");
        assert_eq!(script.values(&mut stack, 4).unwrap(), [4.0; LEN_], "{text}");
        // A later batch that needs it fails with the same line, and overwriting heals it.
        script.clear().op(Opcode::Sqrt, &[1, 3]).fill(2, 7.0);
        let error = script.run(&mut stack).unwrap_err();
        assert_eq!(error.to_string(), "program.c:3: scripted failure of exp", "{text}");
        assert_eq!(script.values(&mut stack, 2).unwrap(), [7.0; LEN_], "{text}");
        assert!(script.values(&mut stack, 1).is_err(), "{text}");
        script.clear().op(Opcode::Exp, &[3, 2]).op(Opcode::Add, &[1, 3, 3]);
        script.run(&mut stack).unwrap();
        assert_eq!(script.values(&mut stack, 1).unwrap(), [2.0 * 7f64.exp(); LEN_], "{text}");
        script.discard(&mut stack).unwrap();
        assert_eq!(last_line(&mut stack), "0 arrays alive, 0 bytes of host memory", "{text}");
    }
}

#[test]
fn a_failure_in_a_block_loses_only_what_depends_on_it() {
    let mut stack = load("[stacks]\nit = ['fuser', 'node', 'shadow']\n[components.shadow]\nfail = ['exp:1']\n");
    let mut script = Script::new(&stack, 5);
    script.fill(0, 2.0).op(Opcode::Sqrt, &[1, 0]).op(Opcode::Exp, &[2, 0]).op(Opcode::Add, &[3, 1, 2]).fill(4, 1.0);
    script.op(Opcode::Add, &[4, 4, 0]);
    let error = script.run(&mut stack).unwrap_err();
    assert_eq!(error.to_string(), "program.c:3: scripted failure of exp");
    for lost in [2, 3] {
        assert_eq!(script.values(&mut stack, lost).unwrap_err().to_string(), error.to_string());
    }
    for (kept, value) in [(0, 2.0), (1, 2f64.sqrt()), (4, 3.0)] {
        assert_eq!(script.values(&mut stack, kept).unwrap(), [value; LEN_]);
    }
    script.clear().fill(0, 2.0).op(Opcode::Exp, &[2, 0]);
    script.run(&mut stack).unwrap();
    assert_eq!(script.values(&mut stack, 2).unwrap(), [2f64.exp(); LEN_]);
}

fn last_line(stack: &mut Stack) -> String {
    stack.message("leaks").unwrap().lines().last().unwrap_or_default().to_owned()
}

#[test]
fn an_index_out_of_range_is_reported_with_its_line() {
    for name in stacks::STACKS.iter().chain(&["interp"]) {
        let mut stack = stacks::load(name).unwrap();
        let mut script = Script::new(&stack, 4);
        // Indices 0, 2, 4, …: half of them are past the end of the source.
        script.bases[1].dtype = bh_bytecode::DType::I64 as u8;
        script.clear().fill(0, 1.5).op(Opcode::Add, &[3, 0, 0]);
        let indices: Vec<u8> = (0..LEN).flat_map(|index| (2 * index).to_ne_bytes()).collect();
        bh_tests::run::write(&mut stack, &script.bases[1], &indices).unwrap();
        script.op(Opcode::Gather, &[2, 0, 1]);
        let error = script.run(&mut stack).unwrap_err();
        assert_eq!(error.origin, Some(("program.c".into(), 3)), "{name}: {error}");
        let again = script.values(&mut stack, 2).unwrap_err();
        assert_eq!(again.to_string(), error.to_string(), "{name}");
        assert_eq!(script.values(&mut stack, 3).unwrap(), [3.0; LEN_], "{name}");
        script.discard(&mut stack).unwrap();
    }
}

#[test]
fn memory_that_runs_out_is_an_error_and_not_the_end() {
    // The split stack has two nodes, with half of the array each.
    for (name, bytes) in [("cpu", 8_388_608), ("split", 4_194_304)] {
        let file = stacks::root().join("config/test").join(format!("{name}.toml"));
        let text = std::fs::read_to_string(file).unwrap() + "\n[memory]\nlimit = '1MiB'\n";
        let mut stack = Stack::load(&stacks::from_text("small.toml", &text).unwrap(), Some(name)).unwrap();
        let mut script = Script::new(&stack, 2);
        script.bases[0].len = 1 << 20;
        script.bases[1].len = 1 << 10;
        script.bases.iter_mut().for_each(|base| base.row_hint = base.len);
        script.clear();
        // Fill both as wholes; the views follow the lengths.
        for array in 0..2u32 {
            let base = script.bases[array as usize];
            let view = bh_bytecode::View::contiguous(&[base.len]).unwrap();
            let place = script.batch().push_view(array, &view);
            script.fill(place, 1.0);
        }
        let error = script.run(&mut stack).unwrap_err();
        assert_eq!(error.status, status::MEMORY, "{name}: {error}");
        let wanted = format!("program.c:1: copy: out of memory: cannot allocate {bytes} bytes of host memory");
        assert!(error.to_string().starts_with(&wanted), "{name}: {error}");
        assert!(error.text.ends_with(&format!("(f64[{}], {bytes} bytes)", bytes / 8)), "{name}: {error}");
        assert_eq!(script.values(&mut stack, 0).unwrap_err().status, status::MEMORY, "{name}");
        assert_eq!(script.values(&mut stack, 1).unwrap(), [1.0; 1 << 10], "{name}");
    }
}

#[test]
fn scripts_of_the_shadow_engine_are_checked() {
    for (keys, message) in [
        ("fail = 'expp:1'", "config key 'fail': 'expp:1' is not of the form 'opcode:number', as in 'exp:2'"),
        ("fail = 'exp:0'", "config key 'fail': 'exp:0' is not of the form 'opcode:number', as in 'exp:2'"),
        ("refuse = 1.5", "config key 'refuse': 1.5 is not between 0 and 1"),
        ("refuse = 0.5", "ve-shadow refuses blocks ('refuse' > 0) but no engine follows it"),
    ] {
        let text = format!("[stacks]\nit = ['node', 'shadow']\n[components.shadow]\n{keys}\n");
        let config = stacks::from_text("shadow.toml", &text).unwrap();
        let error = Stack::load(&config, Some("it")).map(|_| ()).unwrap_err();
        assert!(error.text.ends_with(message), "{error}");
    }
    let config = stacks::from_text("split.toml", "[stacks]\nit = ['vem-split', 'node', 'shadow']\n").unwrap();
    let error = Stack::load(&config, Some("it")).map(|_| ()).unwrap_err();
    assert!(error.text.ends_with("vem-split needs two stacks below it (a list of siblings), not 1"), "{error}");
}

fn refused(text: &str) -> String {
    let config = stacks::from_text("settings", text).unwrap();
    match Stack::load(&config, Some("it")) {
        Ok(_) => panic!("{text} is taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn unknown_algorithms_cost_models_and_passes_name_the_valid_ones() {
    let fuser = |key: &str, value: &str| {
        refused(&format!("[stacks]\nit = ['fuser', 'node', 've-cpu']\n[components.fuser]\n{key} = '{value}'\n"))
    };
    let text = fuser("algorithm", "gredy");
    assert!(text.contains("'gredy'") && text.contains("did you mean 'greedy'?"), "{text}");
    assert!(text.contains("singleton, naive, greedy, unintrusive, optimal"), "{text}");
    let text = fuser("cost_model", "bytes");
    assert!(text.contains("'bytes'") && text.contains("unique-views, max-contraction, traffic"), "{text}");
    let text = refused("[stacks]\nit = ['filter', 'node', 've-cpu']\n[components.filter]\npasses = 'simplfy'\n");
    assert!(text.contains("unknown pass 'simplfy'") && text.contains("simplify, collect,"), "{text}");
}

#[test]
fn wrong_values_of_keys_name_the_right_ones() {
    let isas: Vec<&str> = bh_ve_cpu::simd::Isa::available().map(|isa| isa.name()).collect();
    let isas = format!("auto or an instruction set of this processor ({})", isas.join(", "));
    for (component, key, value, form) in [
        ("filter", "reassociate", "yes", "true or false"),
        ("fuser", "renames", "2", "true or false"),
        ("fuser", "rename_percent", "-1", "a whole number from 0 to 4294967295"),
        ("fuser", "cache_bytes", "1K", "a whole number from 0"),
        ("node", "leak_report", "all", "true or false"),
        ("ve-cpu", "fast_math", "on", "true or false"),
        ("ve-cpu", "threads", "1025", "a number of threads from 1 to 1024, or auto"),
        ("ve-cpu", "isa", "mmx", &isas),
        ("ve-cpu", "divider", "none", "auto, slow, fast, wide or unknown"),
        ("ve-cpu", "windows", "on", "auto or off"),
        ("ve-cpu", "window_bytes", "0", "auto or a size from 1 to 281474976710656 bytes, like 768KiB or 64MiB"),
        ("ve-cpu", "stream_bytes", "1MB", "auto or a size from 0 to 18446744073709551615 bytes, like 768KiB or 64MiB"),
        ("ve-cpu", "planning", "none", "auto, direct or full"),
        ("ve-cpu", "jit", "true", "auto, on or off"),
        ("ve-cpu", "jit_kernels", "many", "a whole number from 0"),
    ] {
        let text = refused(&format!(
            "[stacks]\nit = ['filter', 'fuser', 'node', 've-cpu']\n[components.{component}]\n{key} = '{value}'\n"
        ));
        let wanted = format!("config key '{key}' must be {form}, not '{value}'");
        assert!(text.ends_with(&wanted), "{text}");
        assert!(text.starts_with("settings:"), "{text}");
    }
}

/// Runs one operation on a stack with partitions on disk; returns the cache's hits and misses.
fn run_with_partitions(directory: &std::path::Path) -> [u64; 2] {
    let mut stack = load(&format!(
        "[stacks]\nit = ['fuser', 'node', 've-cpu']\n[components.fuser]\nplanning = 'full'\ncache_dir = '{}'\n",
        directory.display()
    ));
    let mut script = Script::new(&stack, 2);
    script.fill(0, 2.0).op(Opcode::Add, &[1, 0, 0]).run(&mut stack).unwrap();
    assert_eq!(script.values(&mut stack, 1).unwrap()[0], 4.0);
    let counts = ["fuser.cache_hits", "fuser.cache_misses"].map(|name| stack.stats().get(name).unwrap_or(0));
    script.discard(&mut stack).unwrap();
    stack.shutdown().unwrap();
    counts
}

#[test]
fn a_corrupt_partition_cache_is_ignored_and_rebuilt() {
    let directory = std::env::temp_dir().join(format!("bh-partitions-{}", std::process::id()));
    assert_eq!(run_with_partitions(&directory), [0, 1]);
    assert_eq!(run_with_partitions(&directory), [1, 0]);
    let file = std::fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    assert_eq!(run_with_partitions(&directory), [0, 1]);
    assert_eq!(run_with_partitions(&directory), [1, 0]);
    std::fs::remove_dir_all(directory).unwrap();
}
