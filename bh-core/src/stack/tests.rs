//! Tests of stacks made of fake components.

use super::fakes::{ENGINE, FILTER, FakeEngine, FakeFilter, FakeNode, NODE, STRANGE_FILTER};
use super::*;
use crate::abi::{ABI_VERSION, ChildHandle, ComponentTable, ErrorRecord, HostTable, Status, access, kind, status};
use bh_bytecode::{Base, Batch, DType, Instr, Operand, View};
use std::ffi::c_void;
use std::ptr;

/// A config with the fake components and these stacks and sections.
fn config(text: &str) -> Config {
    Config::from_text("test.toml", text)
        .unwrap()
        .with_component("bh_node", NODE.get::<FakeNode>("bh-test", "1"))
        .with_component("bh_first", ENGINE.get::<FakeEngine>("bh-test", "1"))
        .with_component("bh_second", ENGINE.get::<FakeEngine>("bh-test", "1"))
        .with_component("bh_filter", FILTER.get::<FakeFilter>("bh-test", "1"))
        .with_component("bh_strange", STRANGE_FILTER.get::<FakeFilter>("strange", "1"))
}

fn load(text: &str) -> Stack {
    Stack::load(&config(text), None).unwrap()
}

fn load_error(text: &str) -> Error {
    Stack::load(&config(text), None).map(|_| ()).unwrap_err()
}

/// b1 = b0 + b0; b2 = b1 * b1; b3 = b2 - b0; b4 = sqrt(b0), recorded at a.c:10 and so on, and drop b1.
fn batch() -> Batch {
    let mut batch = Batch::default();
    let view = View::contiguous(&[8]).unwrap();
    for id in 0..5 {
        let base = batch.push_base(Base::new(100 + id, DType::F64, 8));
        batch.push_view(base, &view);
    }
    let (file, file_len) = batch.push_string("a.c");
    let rows: [(Opcode, &[u32]); 5] = [
        (Opcode::Add, &[1, 0, 0]),
        (Opcode::Multiply, &[2, 1, 1]),
        (Opcode::Subtract, &[3, 2, 0]),
        (Opcode::Sqrt, &[4, 0]),
        (Opcode::Discard, &[1]),
    ];
    for (index, (opcode, operands)) in rows.into_iter().enumerate() {
        let operands: Vec<Operand> = operands.iter().map(|&view| Operand::view(view)).collect();
        batch.origins.push(bh_bytecode::Origin { file, file_len, line: 10 + index as u32 });
        let mut instr = Instr::new(opcode, &operands);
        instr.origin = index as u32 + 1;
        batch.push_instr(instr);
    }
    batch
}

/// The batch with add, multiply, subtract and discard in one block that contracts b1 and b2, and the root in another.
fn fused() -> Batch {
    let mut batch = batch();
    for inner in [1, 2] {
        batch.bases[inner].flags = bh_bytecode::base_flags::BORN | bh_bytecode::base_flags::DIES;
    }
    batch.push_block(&[0, 1, 2, 4], &[1, 2]);
    batch.push_block(&[3], &[]);
    batch
}

fn read(stack: &mut Stack, base: u64) -> Result<()> {
    stack.map(&Base::new(base, DType::F64, 8), None, access::READ).map(|_| ())
}

#[test]
fn engines_always_see_blocks_and_finished_ones_retire() {
    let mut stack = load("[stacks]\ndefault = ['node', 'first']");
    assert_eq!(stack.execute(&batch().as_ref(), &[]), Ok(Ticket::DONE));
    assert_eq!(stack.message("engine").unwrap(), "[add] [multiply] [subtract] [sqrt] [discard] ");
    assert_eq!(stack.message("registry").unwrap(), "done[add] done[multiply] done[subtract] done[sqrt] done[discard]");
    assert_eq!(stack.stats().get("first.blocks"), Some(0));
    assert_eq!(stack.stats().get("node.batches"), Some(1));
}

#[test]
fn an_empty_list_means_all_blocks() {
    let mut stack = load("[stacks]\ndefault = ['node', 'first']");
    stack.execute(&fused().as_ref(), &[]).unwrap();
    assert_eq!(stack.message("engine").unwrap(), "[add multiply subtract discard-2] [sqrt] ");
    assert_eq!(stack.stats().get("first.blocks"), Some(2));
}

#[test]
fn the_first_alternative_with_a_device_takes_the_place() {
    let labels = |keys: &str| {
        let text = format!("[stacks]\ndefault = ['node', 'first|second']\n{keys}");
        let mut stack = Stack::load(&config(&text), None)?;
        stack.execute(&fused().as_ref(), &[])?;
        let stats = stack.stats();
        let ran = ["first", "second"].into_iter().filter(|name| stats.get(&format!("{name}.blocks")) == Some(2));
        Ok::<_, Error>(ran.collect::<Vec<_>>())
    };
    assert_eq!(labels(""), Ok(vec!["first"]));
    for why in ["absent", "fail"] {
        assert_eq!(labels(&format!("[components.first]\ninit = '{why}'")), Ok(vec!["second"]), "{why}");
    }
    // The last alternative is used even without a device.
    assert_eq!(labels("[components.first]\ninit = 'fail'\n[components.second]\ninit = 'absent'"), Ok(vec!["second"]));
    let none = labels("[components.first]\ninit = 'absent'\n[components.second]\ninit = 'fail'").unwrap_err();
    assert!(none.text.contains("no device found"), "{none}");
    // A mistake in the configuration is not a reason to try the next alternative.
    assert!(labels("[components.first]\ninit = 'largest'").unwrap_err().text.contains("not to its taste"));
    let each = "[stacks]\ndefault = ['node', ['first|missing*']]";
    assert!(Stack::load(&config(each), None).is_ok());
}

#[test]
fn null_slots_forward_to_the_child() {
    let empty: &'static ComponentTable = Box::leak(Box::new(creating()));
    for above in ["'empty', 'node'", "'node', 'empty'"] {
        let text = format!("[stacks]\ndefault = [{above}, 'first']\n[components.first]\nfail = 'fft'");
        let config = config(&text).with_component("bh_empty", empty);
        let mut stack = Stack::load(&config, None).unwrap();
        assert_eq!(stack.execute(&fused().as_ref(), &[0, 1]), Ok(Ticket::DONE), "{above}");
        assert_eq!(stack.message("engine").unwrap(), "[add multiply subtract discard-2] [sqrt] ", "{above}");
        assert_eq!(stack.message("registry").unwrap(), "done[add multiply subtract discard] done[sqrt]", "{above}");
        assert_eq!(read(&mut stack, 100), Ok(()));
        stack.unmap(&Base::new(100, DType::F64, 8)).unwrap();
        stack.pin(&Base::new(100, DType::F64, 8), true).unwrap();
        stack.wait(Ticket(7)).unwrap();
        assert_eq!(stack.extmethod("fft", Opcode(0x4000)), Ok(true), "{above}");
        assert_eq!(stack.extmethod("other", Opcode(0x4001)), Ok(false), "{above}");
    }
    let alone = config("[stacks]\ndefault = ['empty']").with_component("bh_empty", empty);
    let mut stack = Stack::load(&alone, None).unwrap();
    let error = stack.execute(&batch().as_ref(), &[]).unwrap_err();
    assert_eq!(
        (error.status, error.text.as_str()),
        (status::UNSUPPORTED, "no engine of the stack runs add on (f64, f64, f64); the last one asked was 'empty'")
    );
}

/// A valid engine table without functions, for tests that change one field.
fn creating() -> ComponentTable {
    unsafe extern "C" fn create(
        _: *const HostTable,
        _: *const ChildHandle,
        _: usize,
        _: *mut *mut c_void,
        _: *mut ErrorRecord,
    ) -> Status {
        status::OK
    }
    ComponentTable { create: Some(create), ..nothing() }
}

fn nothing() -> ComponentTable {
    ComponentTable::empty(kind::ENGINE, c"empty".as_ptr(), c"1".as_ptr())
}

#[test]
fn tables_of_other_versions_and_damaged_ones_are_refused() {
    let refuse = |table: ComponentTable| {
        let config = config("[stacks]\ndefault = ['node', 'odd']").with_component("bh_odd", Box::leak(Box::new(table)));
        let error = Stack::load(&config, None).map(|_| ()).unwrap_err();
        (error.status, error.text)
    };
    assert_eq!(
        refuse(ComponentTable { abi_version: 99, ..nothing() }),
        (
            status::VERSION,
            "test.toml:2: library 'bh_odd' was built for ABI version 99, but this bh has ABI version 2; rebuild one of \
             them"
                .to_owned()
        )
    );
    assert_eq!(
        refuse(ComponentTable { struct_size: 8, ..nothing() }),
        (
            status::VERSION,
            "test.toml:2: library 'bh_odd' is damaged: its component table states a size of 8 bytes".to_owned()
        )
    );
    static ENDLESS: [u8; 300] = [b'x'; 300];
    for (table, what) in [
        (ComponentTable { struct_size: size_of::<ComponentTable>() - 4, ..creating() }, "damaged: its component table"),
        (ComponentTable { kind: 9, ..creating() }, "no component: its table has the unknown kind 9"),
        (ComponentTable { name: ptr::null(), ..creating() }, "its table has no name of 1 to 255 bytes"),
        (ComponentTable { name: ENDLESS.as_ptr().cast(), ..creating() }, "its table has no name of 1 to 255 bytes"),
    ] {
        let (_, text) = refuse(table);
        assert!(text.contains(what), "{text}");
    }
    assert_eq!(
        refuse(nothing()),
        (
            status::LIBRARY,
            "test.toml:2: library 'bh_odd' is no component: its table has no 'create' function".to_owned()
        )
    );
    assert!(crate::export::negotiate(99, || NODE.get::<FakeNode>("bh-test", "1")).is_null());
    assert!(!crate::export::negotiate(ABI_VERSION, || NODE.get::<FakeNode>("bh-test", "1")).is_null());
}

#[test]
fn a_component_that_cannot_start_is_named() {
    let stack = "[stacks]\ndefault = ['node', 'first']\n[components.first]\n";
    let error = load_error(&format!("{stack}init = 'fail'"));
    assert_eq!(
        (error.status, error.text.as_str()),
        (status::DEVICE, "component 'first' could not start: no device found")
    );
    let error = load_error(&format!("{stack}init = 'panic'"));
    assert_eq!(error.status, status::PANIC);
    let text = error.text;
    assert!(text.starts_with("component 'first' could not start: panicked at bh-core/src/stack/fakes.rs:"), "{text}");
    assert!(text.ends_with(": no luck"), "{text}");
    let error = load_error(&format!("{stack}largest = 3\ninit = 'largest'"));
    assert_eq!(
        error.text,
        "test.toml:4: component 'first' could not start: config key 'largest': 3 is not to its taste"
    );
    let error = load_error("[stacks]\ndefault = ['node']");
    assert_eq!(error.text, "component 'node' could not start: no engine");
}

#[test]
fn a_failed_block_poisons_what_it_writes_and_the_rest_runs() {
    for (key, code) in [("fail", status::EXECUTION), ("panic", status::PANIC)] {
        let text = format!("[stacks]\ndefault = ['node', 'first']\n[components.first]\n{key} = 'add'");
        let mut stack = load(&text);
        let error = stack.execute(&batch().as_ref(), &[]).unwrap_err();
        assert_eq!((error.status, error.origin.clone()), (code, Some(("a.c".to_owned(), 10))));
        if key == "fail" {
            assert_eq!(error.to_string(), "a.c:10: add failed");
        } else {
            assert!(error.text.starts_with("component 'first' panicked at "), "{}", error.text);
            assert!(error.text.ends_with(": cannot stand add"), "{}", error.text);
        }
        assert_eq!(stack.message("engine").unwrap(), "[add] [multiply] [subtract] [sqrt] [discard] ");
        let first = Err(error.unplaced());
        for base in [101, 102, 103] {
            assert_eq!(read(&mut stack, base), first, "what depends on the failed one reports its error");
        }
        assert_eq!((read(&mut stack, 100), read(&mut stack, 104)), (Ok(()), Ok(())));
        assert_eq!(stack.stats().get("first.failed_blocks"), Some(3));
        let retired = "done[add] done[multiply] done[subtract] done[sqrt] done[discard]";
        assert_eq!(stack.message("registry").unwrap(), retired, "arrays are dropped even after failures");
    }
}

#[test]
fn contracted_bases_of_a_failed_block_are_not_poisoned() {
    let mut stack = load("[stacks]\ndefault = ['node', 'first']\n[components.first]\nfail = 'multiply'");
    let error = stack.execute(&fused().as_ref(), &[0, 1]).unwrap_err();
    assert_eq!(error.to_string(), "a.c:11: multiply failed");
    assert_eq!((read(&mut stack, 101), read(&mut stack, 102)), (Ok(()), Ok(())));
    assert_eq!(read(&mut stack, 103).unwrap_err().to_string(), "a.c:11: multiply failed");
    assert_eq!(read(&mut stack, 104), Ok(()));
}

#[test]
fn an_engine_that_does_not_name_the_block_loses_all_of_the_call() {
    let sections = "[components.first]\nfail = 'sqrt'\nunnamed = true";
    let mut stack = load(&format!("[stacks]\ndefault = ['node', 'first']\n{sections}"));
    let error = stack.execute(&fused().as_ref(), &[0, 1]).unwrap_err();
    assert_eq!(error.to_string(), "a.c:13: sqrt failed");
    assert!(read(&mut stack, 103).is_err() && read(&mut stack, 104).is_err());
}

#[test]
fn refused_blocks_are_split_and_go_to_the_next_engine() {
    let two = "[stacks]\ndefault = ['node', 'first', 'second']\n[components.first]\n";
    let cases = [
        // The cut is crossed by b2, so only b1 stays contracted.
        ("refuse = 'subtract'", fused(), "[add multiply-1] [sqrt] ", "[subtract discard] "),
        ("refuse = 'multiply'", fused(), "[add] [subtract discard] [sqrt] ", "[multiply] "),
        ("refuse = 'add,multiply,subtract'", fused(), "[sqrt] ", "[add multiply subtract discard-2] "),
        ("refuse = 'sqrt'", fused(), "[add multiply subtract discard-2] ", "[sqrt] "),
        ("largest = 1", fused(), "[add] [multiply] [subtract] [discard] [sqrt] ", ""),
        ("refuse = 'add,sqrt'", batch(), "[multiply] [subtract] [discard] ", "[add] [sqrt] "),
    ];
    for (keys, batch, first, second) in cases {
        let mut stack = load(&format!("{two}{keys}"));
        assert_eq!(stack.execute(&batch.as_ref(), &[]), Ok(Ticket::DONE), "{keys}");
        // The first engine's log is empty after it was read, so the question reaches the second one.
        assert_eq!(stack.message("engine").unwrap(), first, "{keys}");
        assert_eq!(stack.message("engine").unwrap(), second, "{keys}");
    }
}

#[test]
fn blocks_with_reductions_or_renames_are_split_into_single_operations() {
    let two = "[stacks]\ndefault = ['node', 'first', 'second']\n[components.first]\nrefuse = 'sqrt'";
    let mut renamed = batch();
    renamed.push_block(&[0, 1, 2, 3, 4], &[1, 2]);
    renamed.push_rename(3, &[], None);
    let mut reduced = batch();
    let rank0 = View::contiguous(&[]).unwrap();
    let base = reduced.push_base(Base::new(105, DType::F64, 1));
    let result = reduced.push_view(base, &rank0);
    let mut sum = Instr::new(Opcode::AddReduce, &[Operand::view(result), Operand::view(2)]);
    sum.param = u16::MAX;
    reduced.push_instr(sum);
    reduced.push_block(&[0, 1, 5, 2, 3], &[]);
    for (batch, first) in
        [(renamed, "[add] [multiply] [subtract] "), (reduced, "[add] [multiply] [add_reduce] [subtract] ")]
    {
        let mut stack = load(two);
        stack.execute(&batch.as_ref(), &[]).unwrap();
        assert_eq!(stack.message("engine").unwrap(), first);
        assert!(stack.message("engine").unwrap().starts_with("[sqrt"));
    }
}

#[test]
fn blocks_of_which_an_engine_takes_nothing_are_passed_on_whole() {
    let mut stack = load(
        "[stacks]\ndefault = ['node', 'first', 'second']\n[components.first]\nrefuse = 'add,add_reduce,multiply,subtract'",
    );
    let mut reduced = batch();
    let base = reduced.push_base(Base::new(105, DType::F64, 1));
    let result = reduced.push_view(base, &View::contiguous(&[]).unwrap());
    let mut sum = Instr::new(Opcode::AddReduce, &[Operand::view(result), Operand::view(2)]);
    sum.param = u16::MAX;
    reduced.push_instr(sum);
    reduced.push_block(&[0, 1, 5, 2, 4], &[1, 2]);
    reduced.push_block(&[3], &[]);
    stack.execute(&reduced.as_ref(), &[]).unwrap();
    assert_eq!(stack.message("engine").unwrap(), "[sqrt] ");
    assert_eq!(stack.message("engine").unwrap(), "[add multiply add_reduce subtract discard-2] ");
}

#[test]
fn what_no_engine_takes_is_an_error_of_that_operation() {
    let mut stack = load("[stacks]\ndefault = ['node', 'first']\n[components.first]\nrefuse = 'multiply'");
    let error = stack.execute(&batch().as_ref(), &[]).unwrap_err();
    assert_eq!(
        (error.status, error.to_string().as_str()),
        (
            status::UNSUPPORTED,
            "a.c:11: no engine of the stack runs multiply on (f64, f64, f64); the last one asked was 'first'"
        )
    );
    assert_eq!(read(&mut stack, 103).unwrap_err().status, status::UNSUPPORTED);
    assert_eq!((read(&mut stack, 101), read(&mut stack, 104)), (Ok(()), Ok(())));
}

#[test]
fn a_failing_filter_is_left_out_and_reported() {
    for (mode, code) in [("fail", status::FILE), ("panic", status::PANIC)] {
        let text = format!("[stacks]\ndefault = ['filter', 'node', 'first']\n[components.filter]\nmode = '{mode}'");
        let quiet = vec![("BH_LOG".to_owned(), "off".to_owned())];
        let mut stack = Stack::load(&config(&text).with_environment(quiet), None).unwrap();
        let error = stack.execute(&fused().as_ref(), &[]).unwrap_err();
        assert_eq!((error.status, error.origin.clone()), (code, Some(("a.c".to_owned(), 10))));
        assert_eq!(stack.message("engine").unwrap(), "[add multiply subtract discard-2] [sqrt] ");
        assert_eq!(read(&mut stack, 103), Ok(()));
    }
    let failing = "[stacks]\ndefault = ['filter', 'node', 'first']\n[components.first]\nfail = 'add'";
    let mut stack = load(failing);
    assert!(stack.execute(&fused().as_ref(), &[]).is_err());
    assert_eq!(stack.message("engine").unwrap(), "[add multiply subtract discard-2] [sqrt] ", "runs once");
}

#[test]
fn batches_from_strange_components_are_validated() {
    let text = "[stacks]\ndefault = ['strange', 'node', 'first']\n[components.strange]\nmode = ";
    let quiet = vec![("BH_LOG".to_owned(), "off".to_owned())];
    let mut stack = Stack::load(&config(&format!("{text}'spoil'")).with_environment(quiet), None).unwrap();
    let error = stack.execute(&batch().as_ref(), &[]).unwrap_err();
    assert_eq!(error.status, status::BATCH);
    assert!(error.text.starts_with("the component above 'node' passed on a malformed batch: "), "{}", error.text);
    assert_eq!(stack.message("engine").unwrap(), "");
    let mut stack = load(&format!("{text}'pass'"));
    assert_eq!(stack.execute(&batch().as_ref(), &[]), Ok(Ticket::DONE));
}

#[test]
fn siblings_have_instances_and_counters_of_their_own() {
    let text = "[stacks]\ndefault = ['filter', 'node', ['first', ['second', 'third']]]\n\
                [components.third]\nlibrary = 'bh_first'\nfail = 'sqrt'";
    let stack = load(text);
    let shown: Vec<String> =
        stack.components().iter().map(|c| format!("{}{} {}", " ".repeat(c.depth), c.label, c.name)).collect();
    assert_eq!(
        shown,
        [
            "filter fake-filter",
            " node fake-node",
            "  first fake-engine",
            "  second fake-engine",
            "   third fake-engine"
        ]
    );
    let twice = load("[stacks]\ndefault = ['filter', ['node', 'node'], 'first']");
    let labels: Vec<String> = twice.components().into_iter().map(|component| component.label).collect();
    assert_eq!(labels, ["filter", "node", "first", "node#2", "first#2"]);
}

#[test]
fn calls_keep_the_components_of_their_stack_alive() {
    let stack = Stack::load(&config("[stacks]\ndefault = ['filter', 'node', 'first']"), None).unwrap();
    let links = Arc::downgrade(&stack.links);
    let base = Base::new(1, DType::F64, 1);
    let calls = SharedTop { links: Arc::clone(&stack.links), thread: None };
    let here = SharedTop { links: Arc::clone(&stack.links), thread: Some(std::thread::current().id()) };
    let evaluating = EvaluatingCalls(Arc::clone(&stack.links));
    stack.shutdown().unwrap();
    calls.pin(&base, true).unwrap();
    here.pin(&base, true).unwrap();
    let there = std::thread::scope(|scope| scope.spawn(|| here.pin(&base, true)).join().unwrap());
    assert_eq!(there.unwrap_err().status, status::UNSUPPORTED, "on another thread than its own");
    assert_eq!(evaluating.map(&base, None, access::READ).unwrap_err().status, status::UNSUPPORTED);
    drop((calls, here));
    assert!(links.upgrade().is_some());
    drop(evaluating);
    assert!(links.upgrade().is_none());
}

#[test]
fn statistics_and_trace_are_written_at_the_end() {
    let directory = std::env::temp_dir().join(format!("bh-stack-test-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let variables = vec![("BH_TRACE".to_owned(), file("t-%p.json")), ("BH_STATS".to_owned(), file("s.json"))];
    let config = config("[stacks]\ndefault = ['filter', 'node', 'first']").with_environment(variables);
    let mut stack = Stack::load(&config, None).unwrap();
    stack.execute(&batch().as_ref(), &[]).unwrap();
    let stats = stack.stats();
    let own: u64 = ["filter", "node", "first"].iter().map(|name| stats.get(&format!("{name}.own_ns")).unwrap()).sum();
    assert_eq!(stats.get("filter.execute_ns"), Some(own), "times add up");
    assert!(own > 0);
    stack.shutdown().unwrap();
    let json =
        |name: String| -> serde_json::Value { serde_json::from_str(&std::fs::read_to_string(name).unwrap()).unwrap() };
    assert_eq!(json(file("s.json"))["node.batches"], 1);
    let trace = json(file(&format!("t-{}.json", std::process::id())));
    let events = trace["traceEvents"].as_array().unwrap();
    let categories: Vec<&str> = events.iter().map(|event| event["cat"].as_str().unwrap()).collect();
    assert_eq!(categories, ["first", "node", "filter"], "inner events end first");
    std::fs::remove_dir_all(&directory).unwrap();

    let nowhere = vec![("BH_STATS".to_owned(), "/no/such/place/s.txt".to_owned())];
    let config = config_of_one().with_environment(nowhere);
    assert_eq!(
        Stack::load(&config, None).unwrap().shutdown().unwrap_err().text,
        "the statistics cannot be written to '/no/such/place/s.txt': No such file or directory (os error 2)"
    );
    let mut stack = Stack::load(&config_of_one(), None).unwrap();
    stack.execute(&batch().as_ref(), &[]).unwrap();
    assert_eq!(stack.stats().get("node.own_ns"), Some(0), "nobody asked for times");
}

#[test]
fn a_program_that_is_watched_writes_while_it_runs() {
    let directory = std::env::temp_dir().join(format!("bh-watch-test-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let watched = |seconds: &str| {
        let variables = [("BH_TRACE", file("t.json")), ("BH_STATS", file("s.json")), ("BH_WATCH", seconds.to_owned())];
        config_of_one().with_environment(variables.map(|(name, value)| (name.to_owned(), value)).to_vec())
    };
    let mut stack = Stack::load(&watched("0.01"), None).unwrap();
    stack.execute(&batch().as_ref(), &[]).unwrap();
    let read = |name: &str| -> serde_json::Value {
        let text = std::fs::read_to_string(file(name)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    };
    let begin = std::time::Instant::now();
    while read("s.json")["node.batches"] != 1 || read("t.json")["traceEvents"].as_array().is_none_or(|it| it.len() < 2)
    {
        assert!(begin.elapsed().as_secs() < 60, "nothing is written");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    stack.shutdown().unwrap();
    assert!(read("s.json")["node.own_ns"].as_u64() > Some(0), "the end has the last word");
    std::fs::remove_dir_all(&directory).unwrap();
    for wrong in ["soon", "-1", "0", "nan", "1e300"] {
        let text = Stack::load(&watched(wrong), None).err().unwrap().text;
        assert_eq!(text, format!("environment variable BH_WATCH: '{wrong}' is no number of seconds"));
    }
}

fn config_of_one() -> Config {
    config("[stacks]\ndefault = ['node', 'first']")
}

#[test]
fn tickets_of_several_engines_become_one() {
    let text = "[stacks]\ndefault = ['node', 'first', 'second']\n[components.first]\nrefuse = 'multiply'\nticket = 7\n\
                [components.second]\nticket = 7";
    let mut stack = load(text);
    let ticket = stack.execute(&batch().as_ref(), &[]).unwrap();
    assert_ne!(ticket, Ticket::DONE);
    assert_eq!(stack.message("registry").unwrap(), "", "such engines retire blocks themselves");
    assert_eq!(stack.wait(ticket), Ok(()));
    assert_eq!(stack.message("engine").unwrap(), "[add] [subtract] [sqrt] [discard] wait7 wait7 ");
    assert_eq!(stack.message("engine").unwrap(), "[multiply] wait7 ");
    assert_eq!(stack.wait(ticket), Ok(()), "a ticket counts once");
}

#[test]
fn errors_of_tickets_have_lines_though_the_batch_is_gone() {
    let mut stack = load("[stacks]\ndefault = ['node', 'first']\n[components.first]\nticket = 11");
    let ticket = {
        let batch = batch();
        stack.execute(&batch.as_ref(), &[]).unwrap()
    };
    let line = batch().as_ref().origin(&batch().instrs[1]).map(|(file, line)| (file.to_owned(), line));
    let error = stack.wait(ticket).unwrap_err();
    assert_eq!((error.text.as_str(), error.instr, line.is_some()), ("lost the device", None, true));
    assert_eq!(error.origin, line);
}

#[test]
fn work_of_engines_that_do_not_retire_blocks_is_waited_for() {
    let text = "[stacks]\ndefault = ['node', 'first']\n[components.first]\nticket = ";
    let mut stack = load(&format!("{text}8"));
    assert_eq!(stack.execute(&fused().as_ref(), &[]), Ok(Ticket::DONE));
    assert_eq!(stack.message("engine").unwrap(), "[add multiply subtract discard-2] [sqrt] wait8 ");
    assert_eq!(stack.message("registry").unwrap(), "done[add multiply subtract discard] done[sqrt]");
    let mut stack = load(&format!("{text}9"));
    assert_eq!(stack.execute(&fused().as_ref(), &[]).unwrap_err().to_string(), "a.c:10: lost the device");
    assert!(read(&mut stack, 103).is_err() && read(&mut stack, 104).is_err());
}

/// b0 is freed twice and written after the first FREE only; b1 is freed and not used again.
fn reuse() -> Batch {
    let mut batch = batch();
    for (opcode, operands) in [
        (Opcode::Free, &[0][..]),
        (Opcode::Sync, &[0]),
        (Opcode::Cos, &[4, 3]),
        (Opcode::Sin, &[0, 3]),
        (Opcode::Exp, &[2, 0]),
        (Opcode::Free, &[0]),
        (Opcode::Tan, &[3, 2]),
    ] {
        let operands: Vec<Operand> = operands.iter().map(|&view| Operand::view(view)).collect();
        batch.push_instr(Instr::new(opcode, &operands));
    }
    batch
}

#[test]
fn freed_bases_are_retired_before_they_are_used_again() {
    let text = "[stacks]\ndefault = ['node', 'first']\n[components.first]\n";
    // The host waits for such engines in each call, so the log shows where calls end.
    let mut stack = load(&format!("{text}ticket = 8"));
    assert_eq!(stack.execute(&reuse().as_ref(), &[]), Ok(Ticket::DONE));
    let log = "[add] [multiply] [subtract] [sqrt] [discard] [free] [sync] [cos] wait8 [sin] [exp] [free] [tan] wait8 ";
    assert_eq!(stack.message("engine").unwrap(), log);
    let retired = "done[add] done[multiply] done[subtract] done[sqrt] done[discard] done[free] done[sync] done[cos] \
                   done[sin] done[exp] done[free] done[tan]";
    assert_eq!(stack.message("registry").unwrap(), retired);
    // After a failure the rest runs, in the same calls.
    let mut stack = load(&format!("{text}fail = 'sqrt,exp'"));
    assert_eq!(stack.execute(&reuse().as_ref(), &[]).unwrap_err().to_string(), "a.c:13: sqrt failed");
    assert_eq!(stack.message("engine").unwrap(), log.replace("wait8 ", ""));
    assert_eq!(stack.message("registry").unwrap(), retired);
    // Engines that retire blocks get them all in one call.
    let mut stack = load(&format!("{text}ticket = 7"));
    let ticket = stack.execute(&reuse().as_ref(), &[]).unwrap();
    assert_eq!(stack.message("engine").unwrap(), log.replace("wait8 ", ""));
    stack.wait(ticket).unwrap();
}
