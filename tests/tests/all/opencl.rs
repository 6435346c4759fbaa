//! The OpenCL engine above the CPU engine: refused blocks and returned data combine correctly. The suites of the OpenCL
//! engine alone are in its own crate.

use bh_core::stack::Stack;
use bh_tests::quick::build_quickly;
use bh_tests::{conformance, random, stacks};
use std::io::Write;

/// One conformance case in `STEP` runs, and this number of random programs.
const STEP: usize = 211;
const PROGRAMS: u64 = 20;

#[test]
fn opencl_before_the_cpu() {
    let all = std::env::var("BH_TEST_OPENCL").is_ok_and(|text| text == "all");
    let (step, programs) = if all { (1, 2000) } else { (STEP, PROGRAMS) };
    let Some(stack) = loaded("opencl") else { return };
    let (mut stack, summary) = checked(stack, step, programs);
    assert_eq!(summary.unsupported, 0, "{summary}");
    let stats = stack.stats();
    let count = |name: &str| stats.get(name).unwrap_or(0);
    let on_the_cpu = count("ve-cpu.kernels") + count("ve-cpu.kernels run at once");
    let driver = stacks::driver();
    let counts = (count(&format!("{driver}.kernels")), on_the_cpu, count(&format!("{driver}.blocks too small")));
    assert!(counts.0 > 0 && counts.1 > 0 && counts.2 > 0, "{counts:?}");
    say(format_args!("{summary}, {} kernels on the device", counts.0));
    assert_eq!(stack.message("leaks").unwrap().lines().last(), Some("0 arrays alive, 0 bytes of host memory"));
}

/// All devices of a kind and the cores, as parts of one stack. PoCL presents the processor as two devices if its
/// variable is set, as in CI.
#[test]
fn devices_and_cores_share_the_work() {
    // SAFETY: each test has a process of its own, whose other threads read the environment through `std::env`.
    unsafe { build_quickly(true) };
    let names = ["BH_TEST_DEVICES", "POCL_DEVICES"].into_iter().find_map(|name| std::env::var(name).ok());
    let devices = names.map_or(1, |names| names.split_whitespace().count());
    for peer_copies in [true, false] {
        // Explicit weights, because the default would use one of them only: they are the same processor.
        let keys = format!("[components.cluster]\npeer_copies = {peer_copies}\nweights = {:?}\n", vec![1; devices + 1]);
        let text = include_str!("../../../config/test/opencl-siblings.toml").replace("[components.cluster]\n", &keys);
        let loaded = stacks::from_text("opencl-siblings.toml", &text).and_then(|config| Stack::load(&config, None));
        let Some(mut stack) = there(loaded) else { return };
        let siblings: usize = stack.message("cluster ranks").unwrap().parse().unwrap();
        assert_eq!(siblings, devices + 1);
        let (mut stack, summary) = checked(stack, step(20 * STEP), programs(PROGRAMS / 4));
        say(format_args!("{summary}, on {siblings} siblings, peer_copies = {peer_copies}"));
        let stats = stack.stats();
        let mut copied = 0;
        for sibling in 1..=devices {
            let driver = stacks::driver();
            let label = if sibling == 1 { driver } else { format!("{driver}#{sibling}") };
            assert!(stats.get(&format!("{label}.kernels")).unwrap_or(0) > 0, "{label} ran nothing");
            copied += stats.get(&format!("{label}.peer_bytes")).unwrap_or(0);
        }
        assert_eq!(copied > 0, peer_copies && devices > 1 && stacks::driver() == "cuda", "{copied} bytes");
        assert_eq!(stack.message("leaks").unwrap().lines().last(), Some("0 arrays alive, 0 bytes of host memory"));
    }
}

/// A list of numbers selects devices, also with equal names, and their order.
#[test]
fn devices_are_chosen_by_number() {
    let Some(mut stack) = loaded("opencl") else { return };
    let several = stack.message("devices").unwrap().lines().count() > 1;
    drop(stack);
    for (wanted, numbers) in [("1,0", vec![1, 0]), ("1", vec![1]), ("0", vec![0])] {
        if numbers.contains(&1) && !several {
            say(format_args!("left out: device {wanted}, as there is one"));
            continue;
        }
        let text = format!(
            "[stacks]\nit = ['cluster', [['fuser', 'node', 'opencl*', 've-cpu']]]\n[components.opencl]\ndevice = '{wanted}'\n"
        );
        let config = stacks::from_text("devices.toml", &text).unwrap();
        let info = Stack::load(&config, Some("it")).unwrap().message("info").unwrap();
        let device = format!("{} device ", stacks::title());
        let found = info.lines().filter_map(|line| line.strip_prefix(&device)?.split(':').next()?.parse().ok());
        assert_eq!(found.collect::<Vec<usize>>(), numbers, "{info}");
    }
}

/// The stack `cluster-opencl` with two ranks in this process.
#[test]
fn ranks_of_a_cluster_have_a_device_each() {
    // SAFETY: each test has a process of its own, whose other threads read the environment through `std::env`.
    unsafe { build_quickly(true) };
    let Some(mut stack) = loaded("cluster-opencl") else { return };
    assert_eq!(stack.message("cluster ranks").unwrap(), "2");
    let (mut stack, _) = checked(stack, 20 * STEP, PROGRAMS / 4);
    let kernels = stack.stats().get(&format!("{}.kernels", stacks::driver())).unwrap_or(0);
    assert!(kernels > 0, "no kernel ran on a device");
    assert_eq!(stack.message("leaks").unwrap().lines().last(), Some("0 arrays alive, 0 bytes of host memory"));
}

/// One case of `BH_TEST_STEP`, or of this many.
fn step(otherwise: usize) -> usize {
    std::env::var("BH_TEST_STEP").map_or(otherwise, |text| text.parse().unwrap())
}

/// `BH_TEST_PROGRAMS` random programs, or this many.
fn programs(otherwise: u64) -> u64 {
    std::env::var("BH_TEST_PROGRAMS").map_or(otherwise, |text| text.parse().unwrap())
}

/// The stack, if there is a device for it.
fn loaded(name: &str) -> Option<Stack> {
    there(stacks::load(name))
}

fn there(stack: bh_core::Result<Stack>) -> Option<Stack> {
    stack
        .inspect_err(|error| {
            assert!(stacks::is_absent(error), "{error}");
            say(format_args!("left out: {error}"));
        })
        .ok()
}

/// Runs each `step`-th conformance case, and random programs.
fn checked(mut stack: Stack, step: usize, programs: u64) -> (Stack, conformance::Summary) {
    let summary = conformance::run_sample(&mut stack, bh_bytecode::Opcode::ALL, step, &mut |_| {});
    assert!(summary.passed(), "{summary}\n{}", summary.failures.join("\n"));
    let mut stacks = [stack];
    for seed in 0..programs {
        random::check_seed(&mut stacks, seed).unwrap_or_else(|error| panic!("{error}"));
    }
    let [stack] = stacks;
    (stack, summary)
}

/// Prints past the test harness's capture: skipped parts belong to the result.
fn say(text: std::fmt::Arguments<'_>) {
    let mut output = std::io::stdout();
    writeln!(output, "{text}").unwrap();
}
