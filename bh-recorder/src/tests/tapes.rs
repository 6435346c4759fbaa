//! Tapes: they see all batches, keep bases that end, and put copies before what the program does.

use super::*;
use bh_bytecode::{Base, Batch, DType, Instr, Operand, View};

/// Operations and arrays that a tape has received.
#[derive(Default)]
struct Seen {
    operations: Vec<Opcode>,
    kept: Vec<(u64, ArrayId)>,
    copies: Vec<(u64, ArrayId)>,
    failed: Option<Error>,
}

/// Keeps what products are made of, and copies what is overwritten in place. Nothing of `secret` may be read.
#[derive(Clone)]
struct Copying {
    seen: Arc<Mutex<Seen>>,
    secret: u64,
}

impl Copying {
    fn new(secret: u64) -> Copying {
        Copying { seen: Arc::default(), secret }
    }
}

impl Tape for Copying {
    fn take(&mut self, batch: &mut Batch) -> Vec<u32> {
        let mut seen = lock(&self.seen);
        let mut kept = Vec::new();
        for instr in std::mem::take(&mut batch.instrs) {
            if instr.opcode == Opcode::Multiply {
                kept.extend(
                    instr.inputs().iter().filter_map(|input| Some(batch.views[input.as_view()? as usize].base)),
                );
            }
            if !instr.opcode.is_system() {
                seen.operations.push(instr.opcode);
            }
            if !instr.opcode.is_system() && instr.inputs().contains(&instr.operands[0]) {
                let (from, len) = (instr.operands[0], batch.views[instr.operands[0].0 as usize].len);
                let copy = batch.push_base(Base { row_hint: 1, ..Base::new(0, DType::F64, len) });
                let to = batch.push_view(copy, &View::contiguous(&[len]).unwrap());
                batch.instrs.push(Instr::new(Opcode::Copy, &[Operand::view(to), from]));
            }
            batch.instrs.push(instr);
        }
        kept.sort_unstable();
        kept.dedup();
        kept
    }

    fn receive(&mut self, kept: &[(u64, ArrayId)], made: &[(u64, ArrayId)]) {
        let mut seen = lock(&self.seen);
        seen.kept.extend(kept);
        seen.copies.extend(made);
    }

    fn depends(&self, base: u64) -> bool {
        base == self.secret
    }

    fn refusal(&self) -> &'static str {
        "secret values are read"
    }

    fn relies_on(&self, base: u64) -> bool {
        base == self.secret
    }

    fn fail(&mut self, error: Error) {
        lock(&self.seen).failed = Some(error);
    }
}

#[test]
fn a_tape_keeps_what_ends_and_copies_what_is_overwritten() {
    for eager in [false, true] {
        let (recorder, _) = context(Options { eager, ..Options::default() });
        let a = array(&recorder, &[3], &[1.0, 2.0, 3.0]);
        let tape = Copying::new(0);
        let seen = tape.seen.clone();
        let number = recorder.begin_tape(Box::new(tape), &[a]).unwrap();
        let sum = add(&recorder, a, a);
        let product = recorder.operate_new(Opcode::Multiply, 0, None, &[sum, sum].map(Input::Array), HERE).unwrap();
        recorder.free(sum).unwrap();
        recorder.operate(Opcode::Add, 0, a, &[Input::Array(a), self::number(1.0)], HERE).unwrap();
        // Data of the program comes by an operation.
        // SAFETY: there are as many numbers as elements.
        unsafe { recorder.write(a, [7.0f64, 8.0, 9.0].as_ptr().cast(), None).unwrap() };
        recorder.end_tape(number).unwrap();
        let seen = lock(&seen);
        assert_eq!(seen.operations, [Opcode::Add, Opcode::Multiply, Opcode::Add, Opcode::Copy]);
        assert!(seen.failed.is_none());
        assert_eq!(values(&recorder, seen.kept[0].1), [2.0, 4.0, 6.0]);
        assert_eq!(values(&recorder, seen.copies[0].1), [1.0, 2.0, 3.0]);
        assert_eq!(values(&recorder, product), [4.0, 16.0, 36.0]);
        assert_eq!(values(&recorder, a), [7.0, 8.0, 9.0]);
        let arrays = [seen.kept[0].1, seen.copies[0].1, product, a];
        arrays.iter().for_each(|&array| recorder.free(array).unwrap());
        recorder.sync().unwrap();
        assert_eq!((recorder.statistics().arrays, recorder.statistics().bases), (0, 0));
    }
}

#[test]
fn what_a_tape_forbids_is_refused_and_all_else_may_be_read() {
    let (recorder, _) = context(Options::default());
    let (a, b) = (array(&recorder, &[3], &[1.0; 3]), array(&recorder, &[3], &[2.0; 3]));
    let number = recorder.begin_tape(Box::new(Copying::new(recorder.info(a).unwrap().base)), &[a]).unwrap();
    assert_eq!(values(&recorder, b), [2.0; 3]);
    let sum = add(&recorder, a, b);
    assert_eq!(values(&recorder, sum), [3.0; 3]);
    let mut place = [0.0f64; 3];
    // SAFETY: there is room for all elements.
    let read = unsafe { recorder.read(a, place.as_mut_ptr().cast(), None) };
    assert!(read.unwrap_err().text.contains("secret values are read"));
    assert!(recorder.map(a, bh_core::abi::access::WRITE).is_err());
    assert!(recorder.begin_trace(&[a]).unwrap_err().text.contains("derivative"));
    recorder.end_tape(number).unwrap();
    assert_eq!(values(&recorder, a), [1.0; 3]);
}
