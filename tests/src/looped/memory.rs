//! A program's use of its own memory and that of arrays: copies, maps, adoption, loans and pins.

use super::{Run, Seen};
use bh_bytecode::random::Rng;
use bh_bytecode::{Constant, DType, Truth};
use bh_core::abi::{Adoption, access, adopt, export, memory, status};
use bh_core::error::{Error, Result};
use bh_recorder::{ArrayId, Lent, Patience};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

impl Run<'_> {
    /// Copies numbers that depend on the round into a view.
    pub(super) fn load(&mut self, seen: Seen) -> Result<()> {
        let dtype = self.program.dtypes[seen.variable];
        let target = self.see(seen)?;
        let bytes = self.numbers(dtype, self.count(seen.shape));
        // SAFETY: `bytes` has all elements at these strides.
        unsafe { self.recorder.write(target, bytes.as_ptr(), self.user_stride(seen, dtype).as_deref())? };
        self.recorder.free(target)
    }

    /// Some of the program's memory has Fortran order.
    pub(super) fn user_stride(&self, seen: Seen, dtype: DType) -> Option<Vec<i64>> {
        let step = |stride: &mut i64, extent: i64| Some(std::mem::replace(stride, *stride * extent));
        let fortran = self.shape(seen.shape).into_iter().scan(dtype.size() as i64, step);
        (seen.window.first[0] == 2).then(|| fortran.collect())
    }

    /// Small numbers that differ in each round.
    fn numbers(&self, dtype: DType, count: i64) -> Vec<u8> {
        let number = |at: i64| Constant::from_value(((at * 7 + self.round as i64) % 11) as f64 - 2.5).cast(dtype);
        (0..count).flat_map(|at| number(at).bytes().into_iter().take(dtype.size())).collect()
    }

    /// Writes the first two elements of a view through their address.
    pub(super) fn map(&mut self, seen: Seen) -> Result<()> {
        let dtype = self.program.dtypes[seen.variable];
        let window = self.see(seen)?;
        if self.count(seen.shape) > 0 {
            let stride = self.recorder.info(window)?.view.stride().last().copied().unwrap_or(0);
            let many = self.shape(seen.shape).last().is_some_and(|&extent| extent > 1);
            let second = if many { stride as isize * dtype.size() as isize } else { 0 };
            let number = self.numbers(dtype, 1);
            let address = self.recorder.map(window, access::READ | access::WRITE)?;
            for offset in [0, second] {
                // SAFETY: the first two elements of the last axis are mapped, one stride apart.
                unsafe { std::ptr::copy_nonoverlapping(number.as_ptr(), address.offset(offset), number.len()) };
            }
            self.recorder.unmap(window)?;
        }
        self.recorder.free(window)
    }

    /// Makes a variable an array in the program's memory.
    pub(super) fn adopt(&mut self, variable: usize) -> Result<()> {
        let (shape, dtype) = (self.program.variables[variable], self.program.dtypes[variable]);
        let bytes = self.numbers(dtype, self.count(shape));
        if bytes.is_empty() {
            return Ok(());
        }
        if CHANGED.load(Ordering::Relaxed) {
            return Err(Error::new(status::EXECUTION, "memory that is immutable was changed"));
        }
        // All modes in turn, and a device's memory if there is one.
        let turn = self.round + variable as u64;
        let mode = [adopt::SHARED, adopt::DONATED, adopt::IMMUTABLE][(turn % 3) as usize];
        let kinds = if mode == adopt::SHARED { &[memory::HOST][..] } else { &[DEVICE, memory::HOST] };
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        // SAFETY: `words` has at least as many bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), words.as_mut_ptr().cast(), bytes.len()) };
        let before = (mode == adopt::IMMUTABLE).then(|| words.clone());
        let mut owned = Box::new(Owned { words, before });
        let data = owned.words.as_mut_ptr().cast();
        let owner = Box::into_raw(owned).cast();
        let mut outcome = Err(missing());
        for &kind in kinds {
            if is_missing(&outcome) {
                // SAFETY: the memory has the elements, is aligned to 8 bytes, and lives until it is released.
                outcome = unsafe {
                    let adoption = Adoption::new(data, mode, kind, Some(release), owner);
                    self.recorder.adopt_memory(dtype, &self.shape(shape), &adoption)
                };
            }
        }
        self.set(variable, outcome?)
    }

    /// Exports the memory of a variable whose elements were just read, in all modes in turn, until the end.
    pub(super) fn lend(&mut self, variable: usize, bytes: Vec<u8>) -> Result<()> {
        let array = self.array(variable)?;
        let view = self.recorder.info(array)?;
        let turn = self.round + variable as u64;
        if bytes.is_empty() || !view.view.is_contiguous() || turn.is_multiple_of(3) {
            return Ok(());
        }
        let mode = [export::SNAPSHOT, export::READ_ONLY, export::SHARED][(turn % 5 % 3) as usize];
        let mut lent = Err(missing());
        if mode != export::SHARED && view.view.len() == view.base_len {
            lent = self.recorder.lend_device(array, mode, DEVICE);
        }
        if is_missing(&lent) {
            lent = self.recorder.lend_as(array, mode, &mut Patience::endless());
        }
        let held = Held { lent: lent?, bytes, fixed: mode != export::SHARED };
        held.check()?;
        self.lent.push(held);
        Ok(())
    }

    /// Ends all exports.
    pub(super) fn end_lending(&mut self) -> Result<()> {
        for held in std::mem::take(&mut self.lent) {
            if held.fixed {
                held.check()?;
            }
            self.recorder.end_lending(&held.lent)?;
        }
        Ok(())
    }

    /// Pins a variable's memory for one statement, or until its array is dropped.
    pub(super) fn pin(&mut self, variable: usize) -> Result<()> {
        let array = self.array(variable)?;
        self.recorder.pin(array, true, false)?;
        if self.round.is_multiple_of(2) { self.recorder.pin(array, false, false) } else { Ok(()) }
    }

    /// Fills a variable's new array with numbers of all magnitudes.
    pub(super) fn fill_wildly(&self, variable: usize, array: ArrayId) -> Result<()> {
        let bytes = wild(self.program.dtypes[variable], self.count(self.program.variables[variable]), variable as u64);
        // SAFETY: `bytes` has all elements.
        unsafe { self.recorder.write(array, bytes.as_ptr(), None) }
    }
}

/// The kind of the shadow engine's memory, whose handles are addresses.
const DEVICE: u32 = memory::FIRST_PRIVATE + 1;

fn missing() -> Error {
    Error::new(status::UNSUPPORTED, "the stack has no such memory")
}

fn is_missing<T>(outcome: &Result<T>) -> bool {
    outcome.as_ref().is_err_and(|error| error.status == status::UNSUPPORTED)
}

/// Exported memory, and its content at the time.
pub(super) struct Held {
    lent: Lent,
    bytes: Vec<u8>,
    /// Must the content stay?
    fixed: bool,
}

impl Held {
    fn check(&self) -> Result<()> {
        // SAFETY: as many bytes are lent in C order, until the export ends.
        let seen = unsafe { std::slice::from_raw_parts(self.lent.data.cast_const(), self.bytes.len()) };
        if seen == self.bytes { Ok(()) } else { Err(Error::new(status::EXECUTION, "what is lent has other bytes")) }
    }
}

/// Adopted memory, and its required final content.
struct Owned {
    words: Vec<u64>,
    before: Option<Vec<u64>>,
}

/// Was immutable memory changed?
static CHANGED: AtomicBool = AtomicBool::new(false);

/// Takes adopted memory back.
unsafe extern "C" fn release(argument: *mut c_void, _: *mut c_void) {
    // SAFETY: `Box::into_raw` gave this pointer, and this is called once.
    let owned = unsafe { Box::from_raw(argument.cast::<Owned>()) };
    if owned.before.is_some_and(|before| before != owned.words) {
        CHANGED.store(true, Ordering::Relaxed);
    }
}

/// The bytes of numbers of a type: half of them of all magnitudes, the others near 1 or special.
fn wild(dtype: DType, count: i64, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let real = dtype.real_part();
    let parts = dtype.size() / real.size();
    let special = [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324, 1e-45];
    let one = |rng: &mut Rng| match rng.below(100) {
        0..8 => Constant::from_value(special[rng.below(special.len())]).cast(real),
        8..50 => Constant::from_value(rng.between(-3000, 3000) as f64 / 1000.0).cast(real),
        _ if real == DType::Bool => Constant::from_value(Truth::from(rng.chance(50))),
        _ => Constant::from_bytes(real, &rng.bits().to_ne_bytes()),
    };
    (0..count as usize * parts).flat_map(|_| one(&mut rng).bytes().into_iter().take(real.size())).collect()
}
