//! The recorder on a fake stack made of the reference interpreter.

mod apart;
mod bridges;
mod checks;
mod fake;
mod fake_immediate;
mod folds;
mod handoff;
mod immediate;
mod lifetimes;
mod meaning;
mod options;
mod orders;
mod recipes;
mod tapes;
mod threads;
mod traces;

use super::*;
use bh_bytecode::{Constant, Opcode};
use bh_core::abi::status;
pub(super) use fake::{Fake, Log};

/// A started context on a fake stack, and what the stack saw.
pub(super) fn context(options: Options) -> (Arc<Recorder>, Log) {
    let log = Log::default();
    let seen = log.clone();
    let recorder = Recorder::new();
    recorder.start(options, move || Ok(Box::new(Fake::new(seen)))).unwrap();
    (recorder, log)
}

pub(super) const HERE: Location<'static> = Location { file: b"program.c", line: 7 };

pub(super) fn array(recorder: &Recorder, shape: &[i64], values: &[f64]) -> ArrayId {
    let array = recorder.empty(DType::F64, shape).unwrap();
    // SAFETY: the callers pass as many values as the shape has elements.
    unsafe { recorder.write(array, values.as_ptr().cast(), None).unwrap() };
    array
}

pub(super) fn values(recorder: &Recorder, array: ArrayId) -> Vec<f64> {
    let mut values = vec![0.0; recorder.info(array).unwrap().view.len() as usize];
    // SAFETY: as many elements as the view has.
    unsafe { recorder.read(array, values.as_mut_ptr().cast(), None).unwrap() };
    values
}

pub(super) fn number(value: f64) -> Input {
    Input::Constant(Constant::from_value(value))
}

pub(super) fn add(recorder: &Recorder, a: ArrayId, b: ArrayId) -> ArrayId {
    recorder.operate_new(Opcode::Add, 0, None, &[Input::Array(a), Input::Array(b)], HERE).unwrap()
}
