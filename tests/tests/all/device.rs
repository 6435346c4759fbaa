//! Transfers between host memory and an engine's own heap, and data that is not transferred.

use bh_bytecode::{DType, Opcode, View};
use bh_core::abi::{HostMemory, access};
use bh_core::stack::Stack;
use bh_recorder::{Input, Location, Options, Recorder};
use bh_tests::program::{LEN, Script};
use bh_tests::stacks;

const HERE: Location<'static> = Location { file: b"program.c", line: 7 };

fn load(more: &str) -> Stack {
    let text = format!("[stacks]\nit = ['filter', 'fuser', 'node', 'shadow']\n{more}");
    Stack::load(&stacks::from_text("device.toml", &text).unwrap(), Some("it")).unwrap()
}

fn counts(stack: &Stack, names: &[&str]) -> Vec<u64> {
    names.iter().map(|name| stack.stats().get(name).unwrap_or(0)).collect()
}

#[test]
fn only_the_part_that_is_read_or_written_moves() {
    const MOVED: [&str; 4] =
        ["node.region_read_bytes", "node.region_write_bytes", "shadow.downloads", "shadow.uploads"];
    let recorder = Recorder::new();
    recorder.start(Options::default(), || Ok(Box::new(load("")))).unwrap();
    let moved = || recorder.with_stack(|stack| Ok(counts(stack, &MOVED))).unwrap();
    let given = recorder.empty(DType::F64, &[100, 10]).unwrap();
    let numbers: Vec<f64> = (0..1000).map(f64::from).collect();
    // SAFETY: the buffer has the array's number of elements.
    unsafe { recorder.write(given, numbers.as_ptr().cast(), None).unwrap() };
    let twice = |array| recorder.operate_new(Opcode::Add, 0, None, &[Input::Array(array), Input::Array(array)], HERE);
    let sum = twice(given).unwrap();
    recorder.sync().unwrap();
    // An element, a row, and a window.
    let mut bytes = 0;
    for (rows, columns) in [((3, 4), (2, 3)), ((7, 8), (0, 10)), ((20, 23), (4, 6))] {
        let cut =
            |view: &View| view.slice(0, Some(rows.0), Some(rows.1), 1)?.slice(1, Some(columns.0), Some(columns.1), 1);
        let part = recorder.derive(sum, cut).unwrap();
        let wanted: Vec<f64> = (rows.0..rows.1)
            .flat_map(|row| (columns.0..columns.1).map(move |column| (20 * row + 2 * column) as f64))
            .collect();
        let mut found = vec![0.0; wanted.len()];
        // SAFETY: the buffer has the array's number of elements.
        unsafe { recorder.read(part, found.as_mut_ptr().cast(), None).unwrap() };
        assert_eq!(found, wanted);
        bytes += 8 * wanted.len() as u64;
        assert_eq!(moved(), [bytes, 0, 0, 1]);
        recorder.free(part).unwrap();
    }
    // The device's copy is still valid, and writes go there.
    let row = recorder.derive(sum, |view| view.index(0, 5)).unwrap();
    // SAFETY: ten values for ten elements.
    unsafe { recorder.write(row, numbers.as_ptr().cast(), None).unwrap() };
    assert_eq!(moved(), [bytes, 80, 0, 1]);
    let again = twice(sum).unwrap();
    let line = recorder.derive(again, |view| view.slice(0, Some(4), Some(6), 1)).unwrap();
    let mut found = [0.0f64; 20];
    // SAFETY: the buffer has the array's number of elements.
    unsafe { recorder.read(line, found.as_mut_ptr().cast(), None).unwrap() };
    let wanted = (0..20).map(|at| if at < 10 { f64::from(4 * (40 + at)) } else { f64::from(2 * (at - 10)) });
    assert!(found.iter().copied().eq(wanted), "{found:?}");
    assert_eq!(moved(), [bytes + 160, 80, 0, 1]);
    recorder.shutdown().unwrap();
}

/// Some elements of an array.
fn part(stack: &mut Stack, script: &Script, array: usize, first: i64) -> [f64; 2] {
    let mut found = [0.0f64; 2];
    // SAFETY: `found` has space for two elements.
    let memory = unsafe { HostMemory::new(found.as_mut_ptr().cast(), &[8]) };
    stack.read(&script.bases[array], &View::new(first, &[2], &[1]).unwrap(), &memory).unwrap();
    found
}

#[test]
fn an_alias_stays_on_the_device() {
    const MOVED: [&str; 2] = ["shadow.downloads", "shadow.clones"];
    let mut stack = load("[components.shadow]\nrenames = true\n");
    let mut script = Script::new(&stack, 2);
    script.bases[0].len = LEN + 2;
    // work = grid[:-2] + grid[2:]; grid[1:-1] = work, and the program keeps work.
    let step = |script: &mut Script, fill: bool| {
        script.clear();
        let grid = |script: &mut Script, first: i64, len: i64| {
            script.batch().push_view(0, &View::new(first, &[len], &[1]).unwrap())
        };
        if fill {
            let whole = grid(script, 0, LEN + 2);
            script.fill(whole, 1.5);
        }
        let (left, middle, right) = (grid(script, 0, LEN), grid(script, 1, LEN), grid(script, 2, LEN));
        script.op(Opcode::Add, &[1, left, right]).op(Opcode::Copy, &[middle, 1]);
    };
    step(&mut script, true);
    script.run(&mut stack).unwrap();
    let residency = stack.residency(&script.bases[1]).unwrap();
    assert_eq!((residency.alias, residency.host), (1, 0), "{residency:?}");
    assert_ne!(residency.space, bh_core::abi::HOST_SPACE);
    // The alias's source is about to change.
    script.clear();
    let middle = script.batch().push_view(0, &View::new(1, &[LEN], &[1]).unwrap());
    script.op(Opcode::Multiply, &[middle, middle, middle]);
    script.run(&mut stack).unwrap();
    assert_eq!((part(&mut stack, &script, 1, 0), part(&mut stack, &script, 0, 1)), ([3.0; 2], [9.0; 2]));
    assert_eq!(counts(&stack, &MOVED), [0, 1]);
    // The host copy has the same values.
    let data = stack.map(&script.bases[1], None, access::READ).unwrap();
    // SAFETY: the map exposes all elements.
    assert!(unsafe { std::slice::from_raw_parts(data.cast::<f64>(), LEN as usize) }.iter().all(|&value| value == 3.0));
    stack.unmap(&script.bases[1]).unwrap();
    script.discard(&mut stack).unwrap();
    assert_eq!(stack.message("leaks").unwrap(), "0 arrays alive, 0 bytes of host memory");
}
