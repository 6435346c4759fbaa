//! Shared by MiniMatlab's tests: an interpreter with captured output, and random programs with Octave's answers.
#![allow(dead_code, reason = "no test needs all of it")]

pub mod generate;
pub mod octave;

use bh_conformance::stacks;
use bh_core::stack::Stack;
use bh_minimatlab::Interpreter;
use bh_recorder::{Options, Recorder};
use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

/// The output of a program.
#[derive(Clone, Default)]
pub struct Output(Rc<RefCell<Vec<u8>>>);

impl Output {
    /// The text since the last call.
    pub fn take(&self) -> String {
        String::from_utf8(self.0.take()).expect("programs print UTF-8")
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// An interpreter on the stack for processors.
pub fn interpreter() -> (Interpreter, Output) {
    let config = stacks::config("cpu").expect("the config of the stack");
    let recorder = Recorder::new();
    let start = recorder.start(Options::default(), move || Ok(Box::new(Stack::load(&config, Some("cpu"))?)));
    start.expect("the stack starts");
    let output = Output::default();
    (Interpreter::new(recorder, Box::new(output.clone())), output)
}
