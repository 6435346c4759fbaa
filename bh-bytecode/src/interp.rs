//! The reference interpreter: plain and slow, the oracle that engines are compared with.
//!
//! It executes a validated batch in stored order, one instruction at a time: it loads all inputs, computes, and stores,
//! so that no question of aliasing arises. The opcodes' functions are expanded from the opcode table.

mod dispatch;
mod extended;
mod fold;
mod index;
mod number;
#[cfg(test)]
mod tests;

use crate::batch::{Base, BatchRef, Instr, Operand};
use crate::dtype::DType;
use crate::element::Element;
use crate::opcode::Opcode;
use crate::philox::Random;
use crate::truth::Truth;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

pub use number::of_number;

/// The contents of bases, by their identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    buffers: HashMap<u64, Vec<u8>>,
}

impl Memory {
    /// No contents.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// The bytes of a base, if it has data.
    pub fn get(&self, id: u64) -> Option<&[u8]> {
        self.buffers.get(&id).map(Vec::as_slice)
    }

    /// The bytes of a base for writing, if it has data.
    pub fn get_mut(&mut self, id: u64) -> Option<&mut [u8]> {
        self.buffers.get_mut(&id).map(Vec::as_mut_slice)
    }

    /// Gives a base its data and returns what it had.
    pub fn insert(&mut self, id: u64, bytes: Vec<u8>) -> Option<Vec<u8>> {
        self.buffers.insert(id, bytes)
    }

    /// Takes a base's data away.
    pub fn remove(&mut self, id: u64) -> Option<Vec<u8>> {
        self.buffers.remove(&id)
    }

    /// The identities of the bases that have data, ascending.
    pub fn ids(&self) -> Vec<u64> {
        let mut ids: Vec<u64> = self.buffers.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// The bytes of a base, allocated as zeros when it has none yet.
    fn of_base(&mut self, base: &Base) -> Result<&mut Vec<u8>, String> {
        let size = base.bytes() as usize;
        let bytes = match self.buffers.entry(base.id) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let mut bytes = Vec::new();
                bytes
                    .try_reserve_exact(size)
                    .map_err(|_| format!("out of memory: {size} bytes for base {}", base.id))?;
                bytes.resize(size, 0);
                entry.insert(bytes)
            }
        };
        if bytes.len() == size {
            Ok(bytes)
        } else {
            Err(format!("the data of base {} has not its {size} bytes", base.id))
        }
    }

    /// The elements of an operand in C order; of a constant, `count` times its value.
    pub fn load<T: Element>(&mut self, batch: &BatchRef, operand: Operand, count: usize) -> Result<Vec<T>, String> {
        if let Some(constant) = operand.as_constant() {
            let value = batch.constants[constant as usize].value::<T>().ok_or("a constant has another type")?;
            return Ok(vec![value; count]);
        }
        let (view, base) = view_and_base(batch, operand)?;
        let bytes = self.of_base(base)?;
        let element = |offset: i64| T::read(&bytes[offset as usize * T::DTYPE.size()..]);
        Ok(offsets(batch.views[view as usize].start, batch.shape(view), batch.stride(view)).map(element).collect())
    }

    /// Stores elements in C order in a view.
    pub fn store<T: Element>(&mut self, batch: &BatchRef, operand: Operand, values: &[T]) -> Result<(), String> {
        let (view, base) = view_and_base(batch, operand)?;
        let bytes = self.of_base(base)?;
        let places = offsets(batch.views[view as usize].start, batch.shape(view), batch.stride(view));
        for (offset, value) in places.zip(values) {
            value.write(&mut bytes[offset as usize * T::DTYPE.size()..]);
        }
        Ok(())
    }
}

fn view_and_base<'a>(batch: &BatchRef<'a>, operand: Operand) -> Result<(u32, &'a Base), String> {
    let view = operand.as_view().ok_or("a view is needed, not a constant")?;
    Ok((view, batch.base_of(view).ok_or("an index view has no data")?))
}

/// The offsets of a view's elements in C order.
pub fn offsets(start: i64, shape: &[i64], stride: &[i64]) -> impl Iterator<Item = i64> + use<> {
    let (shape, stride) = (shape.to_vec(), stride.to_vec());
    let mut at = vec![0; shape.len()];
    let mut next = if shape.contains(&0) { None } else { Some(start) };
    std::iter::from_fn(move || {
        let current = next?;
        next = None;
        let mut offset = current;
        for dim in (0..shape.len()).rev() {
            if at[dim] + 1 < shape[dim] {
                at[dim] += 1;
                next = Some(offset + stride[dim]);
                break;
            }
            offset -= at[dim] * stride[dim];
            at[dim] = 0;
        }
        Some(current)
    })
}

/// Extension methods that the interpreter may call.
pub trait ExtensionMethods {
    /// Executes one instruction of the method `name` on memory; [`Memory::load`] and [`Memory::store`] help.
    fn execute(&mut self, name: &str, batch: &BatchRef, instr: &Instr, memory: &mut Memory) -> Result<(), String>;
}

/// For each instruction that adds or multiplies along axes, by its index: Σ|x| or Π|x| for each element of its output,
/// from which the tolerance of a comparison follows.
pub type Magnitudes = HashMap<usize, Vec<f64>>;

/// Why execution stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct InterpError {
    /// The instruction.
    pub instr: usize,
    /// The file and line where it was recorded, if known.
    pub origin: Option<(String, u32)>,
    /// The operation and what is wrong.
    pub message: String,
}

impl fmt::Display for InterpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((file, line)) = &self.origin {
            write!(f, "{file}:{line}: ")?;
        }
        write!(f, "instruction {}: {}", self.instr, self.message)
    }
}

/// Executes batches on a memory.
pub struct Interpreter<'a> {
    /// The contents of the bases.
    pub memory: &'a mut Memory,
    /// The extension methods that are known.
    pub extensions: Option<&'a mut dyn ExtensionMethods>,
    /// Where to note the magnitudes of reductions and accumulates.
    pub magnitudes: Option<&'a mut Magnitudes>,
}

/// Executes a validated batch in stored order, without extension methods.
pub fn execute(batch: &BatchRef, memory: &mut Memory) -> Result<(), InterpError> {
    Interpreter { memory, extensions: None, magnitudes: None }.execute(batch)
}

impl Interpreter<'_> {
    /// Executes a validated batch in stored order. After an error the memory is as the instructions before left it.
    pub fn execute(&mut self, batch: &BatchRef) -> Result<(), InterpError> {
        for (index, instr) in batch.instrs.iter().enumerate() {
            self.execute_instr(batch, index).map_err(|message| InterpError {
                instr: index,
                origin: batch.origin(instr).map(|(file, line)| (file.to_string(), line)),
                message: format!("{}: {message}", batch.operation_name(instr.opcode)),
            })?;
        }
        Ok(())
    }

    /// Executes the instruction with this index.
    pub fn execute_instr(&mut self, batch: &BatchRef, index: usize) -> Result<(), String> {
        let instr = &batch.instrs[index];
        if instr.opcode.is_extension() {
            let name = batch.extension_name(instr.opcode).ok_or("the extension method has no name")?;
            let methods = self.extensions.as_deref_mut().ok_or("extension methods are not available here")?;
            return methods.execute(name, batch, instr, self.memory);
        }
        let magnitudes = self.magnitudes.as_deref_mut();
        dispatch::execute(&mut Step { batch, index, instr, memory: self.memory, magnitudes })
    }
}

/// The execution of one instruction.
struct Step<'a, 'b> {
    batch: &'a BatchRef<'b>,
    index: usize,
    instr: &'a Instr,
    memory: &'a mut Memory,
    magnitudes: Option<&'a mut Magnitudes>,
}

impl Step<'_, '_> {
    /// The shape of an operand that is a view.
    fn shape(&self, at: usize) -> &[i64] {
        self.instr.operands[at].as_view().map_or(&[], |view| self.batch.shape(view))
    }

    /// The number of elements of an operand that is a view.
    fn count(&self, at: usize) -> usize {
        self.shape(at).iter().product::<i64>() as usize
    }

    /// The elements of an operand; constants take the number of elements of operand `like`.
    fn load<T: Element>(&mut self, at: usize, like: usize) -> Result<Vec<T>, String> {
        let count = self.count(like);
        self.memory.load(self.batch, self.instr.operands[at], count)
    }

    fn store<T: Element>(&mut self, values: &[T]) -> Result<(), String> {
        self.memory.store(self.batch, self.instr.operands[0], values)
    }

    fn unary<A: Element, R: Element>(&mut self, function: impl Fn(A) -> R) -> Result<(), String> {
        let values: Vec<R> = self.load(1, 0)?.into_iter().map(function).collect();
        self.store(&values)
    }

    fn binary<A: Element, R: Element>(&mut self, function: impl Fn(A, A) -> R) -> Result<(), String> {
        let (a, b) = (self.load(1, 0)?, self.load(2, 0)?);
        let values: Vec<R> = a.into_iter().zip(b).map(|(a, b)| function(a, b)).collect();
        self.store(&values)
    }

    fn select<T: Element>(&mut self) -> Result<(), String> {
        let mask: Vec<Truth> = self.load(1, 0)?;
        let (a, b): (Vec<T>, Vec<T>) = (self.load(2, 0)?, self.load(3, 0)?);
        let values: Vec<T> =
            mask.iter().zip(a.iter().zip(&b)).map(|(&mask, (&a, &b))| crate::scalar::select(mask, a, b)).collect();
        self.store(&values)
    }

    /// The numbers of the index view that is operand 1.
    fn indices(&self) -> Result<impl Iterator<Item = i64> + use<>, String> {
        let view = self.instr.operands[1].as_view().ok_or("an index view is needed")?;
        Ok(offsets(self.batch.views[view as usize].start, self.batch.shape(view), self.batch.stride(view)))
    }

    fn range<T: Element>(&mut self) -> Result<(), String> {
        let values: Vec<T> = self.indices()?.map(T::cast_from).collect();
        self.store(&values)
    }

    fn random<T: Random>(&mut self) -> Result<(), String> {
        let key = self.instr.operands[2].as_constant().ok_or("a constant key is needed")?;
        let key = self.batch.constants[key as usize].cast(DType::U64).bits[0] as u32;
        let values: Vec<T> = self.indices()?.map(|index| T::random(index as u64, key)).collect();
        self.store(&values)
    }

    fn system(&mut self) -> Result<(), String> {
        if matches!(self.instr.opcode, Opcode::Free | Opcode::Discard) {
            let (_, base) = view_and_base(self.batch, self.instr.operands[0])?;
            self.memory.remove(base.id);
        }
        Ok(())
    }
}
