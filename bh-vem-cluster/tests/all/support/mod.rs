//! Programs written operation by operation, on in-process clusters.

#![allow(dead_code)] // each of the tests uses a part of it

pub mod sort_select;

use bh_bytecode::batch::{Extension, NO_BASE};
use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, View};
use bh_core::abi::{Adoption, adopt, memory};
use bh_core::error::Result;
use bh_core::stack::Stack;
use bh_tests::{run, stacks};
use std::collections::HashSet;
use std::ffi::c_void;
use std::ops::Sub;
use std::sync::atomic::Ordering;

/// A cluster that splits arrays of more than `small` bytes.
pub fn cluster(ranks: usize, small: u64) -> Stack {
    cluster_on("'node', 've-interp'", ranks, small)
}

/// The same above these components.
pub fn cluster_on(below: &str, ranks: usize, small: u64) -> Stack {
    cluster_with(below, ranks, small, "")
}

/// The same with further settings.
pub fn cluster_with(below: &str, ranks: usize, small: u64, more: &str) -> Stack {
    let text = format!(
        "[stacks]\nit = ['cluster', {below}]\n[components.cluster]\nranks = {ranks}\nsmall_bytes = {small}\n{more}\n"
    );
    let config = stacks::from_text("cluster.toml", &text).unwrap();
    Stack::load(&config, Some("it")).unwrap_or_else(|error| panic!("{error}"))
}

/// Two OpenCL devices on the same processor, if there is OpenCL, with keys of the cluster and of the second device.
pub fn two_devices(keys: &str, second: &str) -> Option<Stack> {
    let device = "device = 'cpu'\nplacement = 'device'\n";
    let text = format!(
        "[stacks]\nit = ['cluster', [['fuser', 'node', 'opencl', 've-cpu'], ['fuser', 'node', 'second', 've-cpu']]]\n\
         [components.cluster]\nsmall_bytes = 64\n{keys}\n\
         [components.opencl]\n{device}[components.second]\nlibrary = 'bh_ve_opencl'\n{device}{second}\n"
    );
    let config = stacks::from_text("cluster.toml", &text).unwrap();
    let loaded = Stack::load(&config, Some("it"));
    if let Err(error) = &loaded {
        assert!(error.to_string().contains("OpenCL"), "{error}");
        eprintln!("left out: {error}");
    }
    loaded.ok()
}

/// The ranks' traffic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sent {
    pub messages: u64,
    pub bytes: u64,
    /// By rank: messages and bytes.
    each: Vec<[u64; 2]>,
    /// Of the rank that sent the most.
    pub most_messages: u64,
    pub most_bytes: u64,
}

impl Sub for Sent {
    type Output = Sent;

    fn sub(self, before: Sent) -> Sent {
        let pairs = self.each.iter().zip(before.each);
        Sent::new(pairs.map(|(now, before)| [now[0] - before[0], now[1] - before[1]]).collect())
    }
}

impl Sent {
    /// The bytes of a rank.
    pub fn bytes_of(&self, rank: usize) -> u64 {
        self.each[rank][1]
    }

    fn new(each: Vec<[u64; 2]>) -> Sent {
        Sent {
            messages: each.iter().map(|sent| sent[0]).sum(),
            bytes: each.iter().map(|sent| sent[1]).sum(),
            most_messages: each.iter().map(|sent| sent[0]).max().unwrap_or(0),
            most_bytes: each.iter().map(|sent| sent[1]).max().unwrap_or(0),
            each,
        }
    }
}

/// Releases donated memory.
unsafe extern "C" fn give_back(owner: *mut c_void, _: *mut c_void) {
    // SAFETY: `owner` is the box that `given` leaked for the adoption, released once.
    drop(unsafe { Box::from_raw(owner.cast::<Vec<f64>>()) });
}

/// An array and a view of it.
pub type Part = (u32, View);

/// The arrays of a stack, and a batch under construction. Arrays created by operations die with the batch, except for
/// scalars.
pub struct Program<'a> {
    stack: &'a mut Stack,
    arrays: Vec<(Base, Vec<i64>)>,
    batch: Batch,
    passing: Vec<u32>,
}

impl Program<'_> {
    pub fn new(stack: &mut Stack) -> Program<'_> {
        Program { stack, arrays: Vec::new(), batch: Batch::default(), passing: Vec::new() }
    }

    fn array(&mut self, shape: &[i64]) -> u32 {
        self.array_of(DType::F64, shape)
    }

    /// An array with data.
    pub fn grid(&mut self, shape: &[i64], value: impl Fn(i64) -> f64) -> u32 {
        let array = self.array(shape);
        let base = self.arrays[array as usize].0;
        let bytes: Vec<u8> = (0..base.len).flat_map(|index| value(index).to_ne_bytes()).collect();
        run::write(self.stack, &base, &bytes).unwrap();
        array
    }

    /// An array in donated memory.
    pub fn given(&mut self, shape: &[i64], value: impl Fn(i64) -> f64) -> u32 {
        let array = self.array(shape);
        let base = self.arrays[array as usize].0;
        let data = Box::leak(Box::new((0..base.len).map(value).collect::<Vec<f64>>()));
        let (address, owner) = (data.as_mut_ptr().cast(), std::ptr::from_mut(data).cast());
        // SAFETY: the memory has the base's elements, and lives until `give_back` releases it.
        let adoption = unsafe { Adoption::new(address, adopt::DONATED, memory::HOST, Some(give_back), owner) };
        self.stack.adopt(&base, &adoption).unwrap();
        array
    }

    /// All of an array.
    pub fn all(&self, array: u32) -> Part {
        (array, View::contiguous(&self.arrays[array as usize].1).unwrap())
    }

    /// An array without a write.
    pub fn zeros(&mut self, shape: &[i64]) -> u32 {
        self.array(shape)
    }

    /// An array of any type with this data.
    pub fn data(&mut self, dtype: DType, shape: &[i64], bytes: &[u8]) -> u32 {
        let array = self.array_of(dtype, shape);
        run::write(self.stack, &self.arrays[array as usize].0, bytes).unwrap();
        array
    }

    /// The data of an array.
    pub fn bytes(&mut self, array: u32) -> Vec<u8> {
        run::read(self.stack, &self.arrays[array as usize].0).unwrap()
    }

    /// An array of any type without a write.
    pub fn array_of(&mut self, dtype: DType, shape: &[i64]) -> u32 {
        let id = self.stack.services().base_ids().fetch_add(1, Ordering::Relaxed);
        let len: i64 = shape.iter().product();
        let row = shape.iter().skip(1).product();
        self.arrays.push((Base { row_hint: row, ..Base::new(id, dtype, len) }, shape.to_vec()));
        self.arrays.len() as u32 - 1
    }

    /// An array of whole numbers without a write.
    pub fn whole(&mut self, shape: &[i64]) -> u32 {
        self.array_of(DType::I64, shape)
    }

    /// An array of truth values.
    pub fn truths(&mut self, shape: &[i64], value: impl Fn(i64) -> bool) -> u32 {
        let bytes: Vec<u8> = (0..shape.iter().product()).map(|index| u8::from(value(index))).collect();
        self.data(DType::Bool, shape, &bytes)
    }

    /// An array of whole numbers.
    pub fn numbers(&mut self, values: &[i64]) -> u32 {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        self.data(DType::I64, &[values.len() as i64], &bytes)
    }

    fn operand(&mut self, (array, view): &Part) -> Operand {
        let base = self.arrays[*array as usize].0;
        let known = self.batch.bases.iter().position(|other| other.id == base.id);
        let index = known.map_or_else(|| self.batch.push_base(base), |index| index as u32);
        Operand::view(self.batch.intern_view(index, view))
    }

    /// Sets all elements to one number.
    pub fn fill(&mut self, output: Part, value: f64) {
        let constant = self.batch.push_constant(Constant::from_value(value));
        let operands = [self.operand(&output), Operand::constant(constant)];
        self.batch.push_instr(Instr::new(Opcode::Copy, &operands));
    }

    /// Sets elements to their numbers.
    pub fn range(&mut self, output: Part) {
        let index = self.batch.push_view(NO_BASE, &View::contiguous(output.1.shape()).unwrap());
        let operands = [self.operand(&output), Operand::view(index)];
        self.batch.push_instr(Instr::new(Opcode::Range, &operands));
    }

    /// An operation on these views.
    pub fn op(&mut self, opcode: Opcode, output: Part, inputs: &[Part]) {
        let mut operands = vec![self.operand(&output)];
        for input in inputs {
            operands.push(self.operand(input));
        }
        self.batch.push_instr(Instr::new(opcode, &operands));
    }

    /// An extension method on these views.
    pub fn method(&mut self, name: &str, output: Part, inputs: &[Part]) {
        self.method_into(name, &[output], inputs);
    }

    /// The same with several outputs.
    pub fn method_into(&mut self, name: &str, outputs: &[Part], inputs: &[Part]) {
        const NAMES: &str = "matmul sort argsort compress flatnonzero qr svd lu cholesky solve eigh fft rfft";
        let number = NAMES.split(' ').position(|known| known == name).expect("it is among these") as u16;
        let opcode = Opcode(Opcode::FIRST_EXTENSION + number);
        assert!(self.stack.extmethod(name, opcode).unwrap(), "no method '{name}'");
        if !self.batch.extensions.iter().any(|known| known.opcode == opcode) {
            let (name, name_len) = self.batch.push_string(name);
            self.batch.extensions.push(Extension { opcode, reserved: 0, name, name_len });
        }
        let parts = [&outputs[1..], inputs].concat();
        self.op(opcode, outputs[0], &parts);
        self.batch.instrs.last_mut().unwrap().outputs = outputs.len() as u8;
    }

    fn passing(&mut self, shape: &[i64]) -> u32 {
        let array = self.array(shape);
        self.passing.push(array);
        array
    }

    pub fn unary(&mut self, opcode: Opcode, input: Part) -> u32 {
        let array = self.passing(input.1.shape());
        self.op(opcode, self.all(array), &[input]);
        array
    }

    pub fn binary(&mut self, opcode: Opcode, left: Part, right: Part) -> u32 {
        let array = self.passing(left.1.shape());
        self.op(opcode, self.all(array), &[left, right]);
        array
    }

    /// A multiple of an array.
    pub fn scale(&mut self, array: u32, factor: f64) -> u32 {
        let shape = self.arrays[array as usize].1.clone();
        let result = self.passing(&shape);
        let constant = self.batch.push_constant(Constant::from_value(factor));
        let operands = [self.operand(&self.all(result)), self.operand(&self.all(array)), Operand::constant(constant)];
        self.batch.push_instr(Instr::new(Opcode::Multiply, &operands));
        result
    }

    /// The sum of all elements, in an array that outlives the batch.
    pub fn sum(&mut self, input: Part) -> u32 {
        let rank = input.1.rank();
        let result = self.array(&[]);
        self.op(Opcode::AddReduce, self.all(result), &[input]);
        self.batch.instrs.last_mut().unwrap().param = (1 << rank) - 1;
        result
    }

    /// The sum along some axes into a view.
    pub fn sum_into(&mut self, output: Part, input: Part, axes: u16) {
        self.op(Opcode::AddReduce, output, &[input]);
        self.batch.instrs.last_mut().unwrap().param = axes;
    }

    /// Runs the batch, and drops the arrays that its operations created.
    pub fn run(&mut self) {
        let used: HashSet<u64> = self.batch.bases.iter().map(|base| base.id).collect();
        for array in std::mem::take(&mut self.passing) {
            if used.contains(&self.arrays[array as usize].0.id) {
                let operand = self.operand(&self.all(array));
                self.batch.push_instr(Instr::new(Opcode::Discard, &[operand]));
            }
        }
        self.try_run().unwrap();
    }

    /// Runs the batch.
    pub fn try_run(&mut self) -> Result<()> {
        let ticket = self.stack.execute(&self.batch.as_ref(), &[]);
        let outcome = ticket.and_then(|ticket| self.stack.wait(ticket));
        self.batch.clear();
        outcome
    }

    /// Drops all arrays, and checks that no rank keeps memory.
    pub fn end(mut self) {
        let parts: Vec<Part> = (0..self.arrays.len() as u32).map(|array| self.all(array)).collect();
        for part in parts {
            let operand = self.operand(&part);
            self.batch.push_instr(Instr::new(Opcode::Discard, &[operand]));
        }
        self.try_run().unwrap();
        let text = self.stack.message("leaks").unwrap();
        let alive = text.lines().filter(|line| line.contains("arrays alive"));
        assert!(alive.clone().count() > 0 && alive.clone().all(|line| line.starts_with("0 arrays")), "{text}");
    }

    /// A counter of the stack.
    pub fn count(&self, name: &str) -> u64 {
        self.stack.services().stats().snapshot().get(name).unwrap_or_else(|| panic!("no counter '{name}'"))
    }

    pub fn values(&mut self, array: u32) -> Vec<f64> {
        let bytes = run::read(self.stack, &self.arrays[array as usize].0).unwrap();
        bytes.chunks_exact(8).map(|chunk| f64::from_ne_bytes(chunk.try_into().unwrap())).collect()
    }

    pub fn whole_values(&mut self, array: u32) -> Vec<i64> {
        let bytes = run::read(self.stack, &self.arrays[array as usize].0).unwrap();
        bytes.chunks_exact(8).map(|chunk| i64::from_ne_bytes(chunk.try_into().unwrap())).collect()
    }

    pub fn value(&mut self, array: u32) -> f64 {
        self.values(array)[0]
    }

    /// The data of an array, unless it is lost.
    pub fn try_bytes(&mut self, array: u32) -> Result<Vec<u8>> {
        run::read(self.stack, &self.arrays[array as usize].0)
    }

    /// The one element of an array, unless it is lost.
    pub fn try_value(&mut self, array: u32) -> Result<f64> {
        let bytes = run::read(self.stack, &self.arrays[array as usize].0)?;
        Ok(f64::from_ne_bytes(bytes.try_into().unwrap()))
    }

    pub fn ranks(&mut self) -> usize {
        self.traffic().each.len()
    }

    /// The bytes and messages that the ranks have sent.
    pub fn traffic(&mut self) -> Sent {
        let text = self.stack.message("cluster traffic").unwrap();
        let number = |line: &str, key: &str| -> u64 {
            let after = line.split(&format!("\"{key}\": ")).nth(1).unwrap();
            after.split([',', '}']).next().unwrap().parse().unwrap()
        };
        Sent::new(text.lines().map(|line| [number(line, "messages"), number(line, "bytes")]).collect())
    }
}
