//! Recording, running and data access are independent on real stacks: a long batch does not delay unrelated work, and
//! an engine with tickets gets batches before earlier ones have finished.

use bh_bytecode::{Constant, DType, Opcode};
use bh_core::abi::{Capabilities, capability, kind};
use bh_core::component::{Child, Component, Host, Report, Ticket};
use bh_core::config::Config;
use bh_core::error::Result;
use bh_core::export::LazyTable;
use bh_core::stack::Stack;
use bh_recorder::{ArrayId, Input, Location, Options, Recorder};
use bh_tests::stacks;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const HERE: Location<'static> = Location { file: b"program.c", line: 7 };
const VALUES: [f64; 4] = [1.0, 2.0, 3.0, 4.0];

/// A gate at which batches with EXP wait: whether one waits, and whether it is open.
static DOOR: (Mutex<(bool, bool)>, Condvar) = (Mutex::new((false, false)), Condvar::new());

/// An engine that blocks in `execute` until the test continues.
struct Gate(Child);

// SAFETY: all state is in this value, and ends with it.
unsafe impl Component for Gate {
    const NAME: &'static str = "gate";
    const KIND: u32 = kind::ENGINE;
    const KEYS: &'static [bh_core::config::Row] = &[];

    fn create(_: Host, children: Vec<Child>) -> Result<Gate> {
        Ok(Gate(children.into_iter().next().unwrap()))
    }

    fn child(&mut self) -> Option<&mut Child> {
        Some(&mut self.0)
    }

    /// The engine below retires its blocks itself.
    fn capabilities(&mut self) -> Capabilities {
        Capabilities { flags: capability::RETIRES_BLOCKS | capability::ACQUIRES_FIRST, ..Capabilities::default() }
    }

    fn execute(&mut self, batch: &bh_bytecode::BatchRef<'_>, blocks: &[u32], report: &mut Report) -> Result<Ticket> {
        if batch.instrs.iter().any(|instr| instr.opcode == Opcode::Exp) {
            let mut door = DOOR.0.lock().unwrap();
            door.0 = true;
            DOOR.1.notify_all();
            drop(DOOR.1.wait_while(door, |door| !door.1).unwrap());
        }
        self.0.execute(batch, blocks, report)
    }
}

fn start(config: Config) -> Arc<Recorder> {
    let recorder = Recorder::new();
    recorder.start(Options::default(), move || Ok(Box::new(Stack::load(&config, Some("it"))?))).unwrap();
    recorder
}

fn array(recorder: &Recorder) -> ArrayId {
    let array = recorder.empty(DType::F64, &[4]).unwrap();
    // SAFETY: the buffer has the array's number of elements.
    unsafe { recorder.write(array, VALUES.as_ptr().cast(), None).unwrap() };
    array
}

fn values(recorder: &Recorder, array: ArrayId) -> [f64; 4] {
    let mut values = [0.0; 4];
    // SAFETY: the buffer has the array's number of elements.
    unsafe { recorder.read(array, values.as_mut_ptr().cast(), None).unwrap() };
    values
}

fn operate(recorder: &Recorder, opcode: Opcode, inputs: &[ArrayId]) -> ArrayId {
    let inputs: Vec<Input> = inputs.iter().map(|&input| Input::Array(input)).collect();
    recorder.operate_new(opcode, 0, None, &inputs, HERE).unwrap()
}

#[test]
fn a_batch_that_runs_keeps_nobody_from_what_does_not_need_it() {
    static TABLE: LazyTable = LazyTable::new();
    let text = "[stacks]\nit = ['fuser', 'node', 'gate', 've-cpu']\n";
    let config = stacks::from_text("apart.toml", text).unwrap();
    let recorder = start(config.with_component("bh_gate", TABLE.get::<Gate>("test", "1")));
    let finished = array(&recorder);
    let sum = operate(&recorder, Opcode::Add, &[finished, finished]);
    recorder.sync().unwrap();
    let slow = operate(&recorder, Opcode::Exp, &[finished]);
    let (runner, own) = (recorder.clone(), finished);
    let running = std::thread::spawn(move || runner.sync());
    drop(DOOR.1.wait_while(DOOR.0.lock().unwrap(), |door| !door.0).unwrap());
    // The batch is in the engine now. If one of the following calls waits for it, the time limit reports the hang.
    let (sender, receiver) = channel();
    let user = recorder.clone();
    let using = std::thread::spawn(move || {
        let more = operate(&user, Opcode::Multiply, &[sum, sum]);
        let read = (values(&user, own), values(&user, sum));
        let new = array(&user);
        user.pin(new, true, false).unwrap();
        user.pin(new, false, false).unwrap();
        let mapped = user.map(sum, bh_core::abi::access::READ).unwrap();
        // SAFETY: the map exposes four elements until it ends.
        let first = unsafe { *mapped.cast::<f64>() };
        user.unmap(sum).unwrap();
        static mut MEMORY: [f64; 4] = VALUES;
        // SAFETY: static memory that nothing else uses.
        let adopted = unsafe { user.adopt(DType::F64, &[4], (&raw mut MEMORY).cast(), None, std::ptr::null_mut()) };
        user.free(new).unwrap();
        let still = !DOOR.0.lock().unwrap().1;
        sender.send((more, read, first, adopted.unwrap(), still)).unwrap();
    });
    let (more, read, first, adopted, still) = receiver.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(still, "the batch was still running");
    assert_eq!(read, (VALUES, VALUES.map(|value| 2.0 * value)));
    assert_eq!(first, 2.0);
    DOOR.0.lock().unwrap().1 = true;
    DOOR.1.notify_all();
    using.join().unwrap();
    running.join().unwrap().unwrap();
    let near = |(found, exact): (f64, f64)| (found - exact).abs() < 1e-12 * exact;
    assert!(values(&recorder, slow).into_iter().zip(VALUES.map(f64::exp)).all(near));
    assert_eq!(values(&recorder, more), VALUES.map(|value| 4.0 * value * value));
    assert_eq!(values(&recorder, adopted), VALUES);
    recorder.shutdown().unwrap();
    // The stack's previous interface no longer works.
    assert!(recorder.map(sum, bh_core::abi::access::READ).is_err());
}

#[test]
fn batches_are_queued_behind_a_slow_ticket() {
    let text = "[stacks]\nit = ['node', 'shadow']\n[components.shadow]\ndelay_us = 300000\ndelay_every = 1\n";
    let recorder = start(stacks::from_text("apart.toml", text).unwrap());
    let first = array(&recorder);
    let two = Input::Constant(Constant::from_value(2.0));
    let mut last = first;
    for _ in 0..3 {
        last = recorder.operate_new(Opcode::Multiply, 0, None, &[Input::Array(last), two], HERE).unwrap();
        recorder.flush().unwrap();
    }
    assert_eq!(values(&recorder, first), VALUES);
    assert_eq!(values(&recorder, last), VALUES.map(|value| 8.0 * value));
    let most = recorder.with_stack(|stack| Ok(stack.stats().get("shadow.most tickets"))).unwrap();
    assert!(most >= Some(2), "{most:?} tickets were open at a time");
    recorder.shutdown().unwrap();
}

#[test]
fn messages_arrive_at_another_rank_while_an_engine_computes() {
    let recorder = Recorder::new();
    let config = stacks::config("split").unwrap();
    recorder.start(Options::default(), move || Ok(Box::new(Stack::load(&config, Some("split"))?))).unwrap();
    let grid = recorder.empty(DType::F64, &[64, 16]).unwrap();
    let given: Vec<f64> = (0..64 * 16).map(f64::from).collect();
    // SAFETY: the buffer has the array's number of elements.
    unsafe { recorder.write(grid, given.as_ptr().cast(), None).unwrap() };
    for round in 0..5 {
        let sum = operate(&recorder, Opcode::Add, &[grid, grid]);
        let mut found = vec![0.0; given.len()];
        // SAFETY: the buffer has the array's number of elements.
        unsafe { recorder.read(sum, found.as_mut_ptr().cast(), None).unwrap() };
        assert!(found.iter().zip(&given).all(|(found, given)| *found == 2.0 * given), "round {round}");
        recorder.free(sum).unwrap();
    }
    let arrived = recorder.with_stack(|stack| Ok(stack.stats().get("split.messages while computing"))).unwrap();
    assert!(arrived >= Some(5), "{arrived:?} messages arrived while the first rank computed");
    recorder.shutdown().unwrap();
}
