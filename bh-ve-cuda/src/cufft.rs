//! cuFFT, NVIDIA's library of Fourier transforms, which is loaded by the first question about them.

use crate::api::Address;
use crate::driver::address;
use crate::library::{Handle, Known, Loaded, NO_MEMORY, functions};
use crate::stream::Stream;
use bh_bytecode::DType;
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_device::driver::{Buffer, Direction, LinePlace, Transforms};
use std::collections::HashMap;
use std::ffi::{c_int, c_longlong};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

functions! {
    /// The library's functions.
    Functions {
        create: "cufftCreate"(*mut c_int);
        destroy: "cufftDestroy"(c_int);
        stream: "cufftSetStream"(c_int, Handle);
        property: "cufftGetProperty"(c_int, *mut c_int);
        own_room: "cufftSetAutoAllocation"(c_int, c_int);
        room: "cufftSetWorkArea"(c_int, Address);
        plan: "cufftXtMakePlanMany"(
            c_int, c_int, *mut c_longlong, *mut c_longlong, c_longlong, c_longlong, c_int, *mut c_longlong, c_longlong, c_longlong,
            c_int, c_longlong, *mut usize, c_int
        );
        run: "cufftXtExec"(c_int, Address, Address, c_int);
    }
}

/// The library.
pub(crate) const KNOWN: Known = Known { title: "cuFFT", stem: "cufft", version: |cuda| cuda - 1, needs: &[] };

/// The library of this major version of CUDA, or why there is none. It is looked for once in a process.
pub(crate) fn found(cuda: u32) -> &'static std::result::Result<Loaded<Functions>, String> {
    static FOUND: OnceLock<std::result::Result<Loaded<Functions>, String>> = OnceLock::new();
    FOUND.get_or_init(|| KNOWN.load(cuda, Functions::of, |functions| functions.property))
}

/// `CUDA_R_32F`, `CUDA_R_64F`, `CUDA_C_32F`, `CUDA_C_64F`, `CUFFT_FORWARD`, `CUFFT_INVERSE`.
const REAL_SINGLE: c_int = 0;
const REAL_DOUBLE: c_int = 1;
const SINGLE: c_int = 4;
const DOUBLE: c_int = 5;
const FORWARD: c_int = -1;
const INVERSE: c_int = 1;

/// Plans that are kept at most; beyond, all end.
const PLANS: usize = 256;

/// A plan of the library, and the bytes of its work space.
#[derive(Clone, Copy)]
struct Plan {
    handle: c_int,
    room: usize,
}

/// The library on the stream of a device, with its plans by what they are for.
pub(crate) struct Cufft {
    functions: &'static Functions,
    plans: Mutex<HashMap<Transforms, Plan>>,
    stream: Arc<Stream>,
}

/// The types of the results and of the lines.
fn dtypes(transforms: &Transforms) -> [DType; 2] {
    let (complex, real) = (transforms.dtype, transforms.dtype.real_part());
    match transforms.direction {
        Direction::Forward | Direction::Inverse => [complex, complex],
        Direction::FromReal => [complex, real],
        Direction::ToReal => [real, complex],
    }
}

/// The library's numbers of these types.
fn kinds(transforms: &Transforms) -> [c_int; 2] {
    dtypes(transforms).map(|dtype| match dtype {
        DType::F32 => REAL_SINGLE,
        DType::F64 => REAL_DOUBLE,
        DType::C64 => SINGLE,
        _ => DOUBLE,
    })
}

/// Fails unless the library's status is that all is well.
fn check(what: &str, code: c_int) -> Result<()> {
    let status = match code {
        0 => return Ok(()),
        NO_MEMORY => status::MEMORY,
        _ => status::DEVICE,
    };
    Err(Error::new(status, format!("CUDA: {what} by cuFFT failed: status {code}")))
}

impl Cufft {
    /// The library of this major version of CUDA; none if it cannot be used.
    pub(crate) fn new(stream: Arc<Stream>, cuda: u32) -> Option<Cufft> {
        let functions = &found(cuda).as_ref().ok()?.functions;
        Some(Cufft { functions, plans: Mutex::default(), stream })
    }

    fn plans(&self) -> MutexGuard<'_, HashMap<Transforms, Plan>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plan of transforms, wherever their lines begin; the context is the thread's.
    fn plan(&self, plans: &mut HashMap<Transforms, Plan>, transforms: &Transforms) -> Result<Plan> {
        let places = transforms.places.map(|place| LinePlace { first: 0, ..place });
        // Both directions between complex numbers have one plan.
        let direction = match transforms.direction {
            Direction::Inverse => Direction::Forward,
            other => other,
        };
        let key = Transforms { places, direction, ..*transforms };
        if let Some(plan) = plans.get(&key) {
            return Ok(*plan);
        }
        if plans.len() >= PLANS {
            self.stream.finish()?;
            plans.drain().for_each(|(_, plan)| self.end(plan));
        }
        let (it, mut plan) = (self.functions, Plan { handle: 0, room: 0 });
        // SAFETY: `handle` takes the plan.
        check("making a plan", unsafe { (it.create)(&mut plan.handle) })?;
        let [to_kind, from_kind] = kinds(&key);
        let kind = to_kind.max(from_kind);
        let [to, from] = places;
        let (mut len, mut to_len, mut from_len) = (key.len, key.len, key.len);
        // SAFETY: the plan is new, the stream lives, and the places lead to one number each.
        let made = unsafe {
            check("making a plan", (it.stream)(plan.handle, self.stream.handle))
                .and_then(|()| check("making a plan", (it.own_room)(plan.handle, 0)))
                .and_then(|()| {
                    let (from_step, from_next, to_step, to_next) = (from.step, from.next, to.step, to.next);
                    let code = (it.plan)(
                        plan.handle,
                        1,
                        &mut len,
                        &mut from_len,
                        from_step,
                        from_next,
                        from_kind,
                        &mut to_len,
                        to_step,
                        to_next,
                        to_kind,
                        key.count,
                        &mut plan.room,
                        kind,
                    );
                    check("making a plan", code)
                })
        };
        made.inspect_err(|_| self.end(plan))?;
        plans.insert(key, plan);
        Ok(plan)
    }

    fn end(&self, plan: Plan) {
        // SAFETY: nobody uses the plan any more.
        unsafe { (self.functions.destroy)(plan.handle) };
    }

    /// Bytes of the work space of transforms.
    pub(crate) fn room(&self, transforms: &Transforms) -> Result<usize> {
        let _entered = self.stream.context.enter()?;
        self.plan(&mut self.plans(), transforms).map(|plan| plan.room)
    }

    /// Puts transforms into the stream: results, lines, work space.
    ///
    /// # Safety
    /// As [`bh_device::driver::Libraries::run`].
    pub(crate) unsafe fn run(&self, transforms: &Transforms, buffers: [&dyn Buffer; 3]) -> Result<()> {
        let _entered = self.stream.context.enter()?;
        let mut plans = self.plans();
        let plan = self.plan(&mut plans, transforms)?;
        let [to, from, room] = buffers.map(address);
        let [to_dtype, from_dtype] = dtypes(transforms);
        let at = |place: LinePlace, dtype: DType| place.first as Address * dtype.size() as Address;
        let (to, from) = (to + at(transforms.places[0], to_dtype), from + at(transforms.places[1], from_dtype));
        let direction = match transforms.direction {
            Direction::Forward | Direction::FromReal => FORWARD,
            Direction::Inverse | Direction::ToReal => INVERSE,
        };
        // SAFETY: the buffers have what the places lead to and the work space that the plan asks for, as `# Safety` asks; the stream
        // keeps the order of all work, and nobody else uses the plan meanwhile.
        unsafe {
            check("a transform", (self.functions.room)(plan.handle, room))?;
            check("a transform", (self.functions.run)(plan.handle, from, to, direction))
        }
    }
}

impl Drop for Cufft {
    fn drop(&mut self) {
        let plans = std::mem::take(self.plans.get_mut().unwrap_or_else(PoisonError::into_inner));
        if let Ok(_entered) = self.stream.context.enter() {
            plans.into_values().for_each(|plan| self.end(plan));
        }
    }
}
