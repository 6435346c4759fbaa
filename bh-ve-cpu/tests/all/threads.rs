//! The engine's threads: as many as configured, the same ones for kernels and methods, and none that stay.

use crate::support;

use bh_bytecode::interp::Memory;
use bh_bytecode::text::parse;
use bh_core::Component;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use support::{Driver, singletons};

/// How many threads of each name the process has, but for those that tests run on.
fn threads() -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        // A thread may end meanwhile.
        if let Ok(name) = std::fs::read_to_string(task.unwrap().path().join("comm"))
            && !name.starts_with("threads::")
            && !name.starts_with("all-")
            // An emulator's own.
            && !name.starts_with("qemu-")
        {
            *found.entry(name.trim_end().to_owned()).or_default() += 1;
        }
    }
    found
}

/// Waits until there are these threads: new ones have no names yet, and the system may take a moment to forget those that
/// have been joined.
fn become_threads(wanted: usize) {
    let all: BTreeMap<String, usize> = (0..wanted).map(|number| (format!("bh-ve-cpu-{number}"), 1)).collect();
    let begin = Instant::now();
    while threads() != all {
        assert!(begin.elapsed() < Duration::from_secs(120), "{:?}, not {all:?}", threads());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A map and a fold that are worth sharing, and each method that shares its work: matrices of 200 rows, lines of 40,000.
const PROGRAM: &str = "bh batch 1
base b0 = f64[40000] id 1
base b1 = f64[40000] id 2 born
base b2 = f64[40000] id 3 born
base b3 = i64[200] id 4 born
base b4 = c128[40000] id 5 born
base b5 = f64[1] id 6 born
base b6 = f64[4000000] id 7 born
view v0 = b0 at 0 [200:200, 200:1]
view v1 = b1 at 0 [200:200, 200:1]
view v2 = b2 at 0 [200:200, 200:1]
view v3 = b3 at 0 [200:1]
view v4 = b0 at 0 [40000:1]
view v5 = b1 at 0 [40000:1]
view v6 = b4 at 0 [200:200, 200:1]
view v7 = b5 at 0 []
view v8 = b6 at 0 [100:40000, 40000:1]
view v9 = b0 at 0 [100:0, 40000:1]
";

#[test]
fn kernels_and_methods_have_the_same_threads() {
    become_threads(0);
    let methods = ["matmul", "lu", "sort", "fft"];
    let mut driver = Driver::new(&[("threads", "4"), ("jit", "off")]).unwrap();
    let mut opcodes = Vec::new();
    for (number, name) in (1..).zip(methods) {
        let opcode = bh_bytecode::Opcode(bh_bytecode::Opcode::FIRST_EXTENSION + number);
        assert!(driver.engine.extmethod(name, opcode).unwrap());
        opcodes.push(opcode);
    }
    let mut batch = parse(&format!("{PROGRAM}i0: v8 = sin v9\ni1: v7 = add_reduce axes(0,1) v8\n")).unwrap();
    let views: [(&[u32], usize); 4] = [(&[2, 0, 0], 1), (&[1, 3, 0], 2), (&[5, 4], 1), (&[6, 0], 1)];
    for (&opcode, (views, outputs)) in opcodes.iter().zip(views) {
        let operands: Vec<_> = views.iter().map(|&view| bh_bytecode::Operand::view(view)).collect();
        let mut instr = bh_bytecode::Instr::new(opcode, &operands);
        instr.outputs = outputs as u8;
        batch.push_instr(instr);
    }
    let mut memory = Memory::new();
    let value = |at: u64| ((at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64;
    memory.insert(1, (0..40_000).flat_map(|at| value(at).to_ne_bytes()).collect());
    for _ in 0..3 {
        driver.run_on(&singletons(&batch).as_ref(), &memory).unwrap();
        become_threads(4);
    }
    assert_eq!(driver.engine.message("threads 2").unwrap(), "ok");
    driver.run_on(&singletons(&batch).as_ref(), &memory).unwrap();
    become_threads(2);
    drop(driver);
    become_threads(0);
}
