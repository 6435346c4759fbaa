//! NVIDIA's libraries for work on the device, each loaded by the first question about its subject.

use crate::api::Address;
use crate::cublas::{self, Cublas};
use crate::cufft::{self, Cufft};
use crate::cusolver::{self, Cusolver};
use crate::driver::address;
use crate::stream::Stream;
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_device::driver::{self, Buffer, Factors, Subject, Task};
use std::ffi::c_int;
use std::sync::{Arc, OnceLock};

/// The libraries on the stream of a device.
pub(crate) struct Libraries {
    stream: Arc<Stream>,
    /// The major version of CUDA that they are for.
    cuda: u32,
    products: OnceLock<Option<Cublas>>,
    factors: OnceLock<Option<Cusolver>>,
    transforms: OnceLock<Option<Cufft>>,
}

impl Libraries {
    pub(crate) fn new(stream: Arc<Stream>, cuda: u32) -> Libraries {
        let (products, factors, transforms) = Default::default();
        Libraries { stream, cuda, products, factors, transforms }
    }

    fn products(&self) -> Option<&Cublas> {
        self.products.get_or_init(|| Cublas::new(self.stream.clone(), self.cuda)).as_ref()
    }

    fn factors(&self) -> Option<&Cusolver> {
        self.factors.get_or_init(|| Cusolver::new(self.stream.clone(), self.cuda)).as_ref()
    }

    /// Solves systems whose matrix is a triangle, which the host has to know; false if it is none, or the task is another one.
    ///
    /// # Safety
    /// As [`driver::Libraries::run`].
    unsafe fn substitute(&self, task: &Task, buffers: &[&dyn Buffer]) -> Result<bool> {
        let &Task::Factors { dtype, rows, of: Factors::Lu { sides: sides @ 1.. }, .. } = task else { return Ok(false) };
        let Some(products) = self.products() else { return Ok(false) };
        let (Ok(n), Ok(sides), &[matrix, numbers, ..]) = (c_int::try_from(rows), c_int::try_from(sides), buffers)
        else {
            return Ok(false);
        };
        // SAFETY: the task has three numbers, and right sides behind the matrix.
        unsafe {
            let [_, above, below] = self.stream.read(numbers)?;
            if above != 0 && below != 0 {
                return Ok(false);
            }
            let matrix = address(matrix);
            let right = matrix + (rows * rows) as Address * dtype.size() as Address;
            products.substitute(dtype, [n, sides], above == 0, [matrix, right])?;
        }
        Ok(true)
    }

    fn transforms(&self) -> Option<&Cufft> {
        self.transforms.get_or_init(|| Cufft::new(self.stream.clone(), self.cuda)).as_ref()
    }
}

/// The error of a task that no library does.
fn missing() -> Error {
    Error::new(status::UNSUPPORTED, "CUDA: there is no library for a task")
}

impl driver::Libraries for Libraries {
    fn has(&self, subject: Subject) -> bool {
        match subject {
            Subject::Products => self.products().is_some(),
            Subject::Factors => self.factors().is_some(),
            Subject::Transforms => self.transforms().is_some(),
        }
    }

    fn told(&self) -> Vec<String> {
        let products = cublas::KNOWN.told(cublas::found(self.cuda));
        let factors = cusolver::KNOWN.told(cusolver::found(self.cuda));
        vec![products, factors, cufft::KNOWN.told(cufft::found(self.cuda))]
    }

    fn room(&self, task: &Task) -> Result<usize> {
        match task {
            Task::Product(_) => Ok(0),
            Task::Factors { of, .. } => {
                // The library that substitutes is loaded while kernels are built, too.
                if matches!(of, Factors::Lu { sides: 1.. }) {
                    self.products();
                }
                self.factors().ok_or_else(missing)?.room(task)
            }
            Task::Transforms(transforms) => self.transforms().ok_or_else(missing)?.room(transforms),
        }
    }

    unsafe fn run(&self, task: &Task, buffers: &[&dyn Buffer]) -> Result<()> {
        match task {
            Task::Product(product) => {
                let &[out, left, right] = buffers else { return Err(missing()) };
                // SAFETY: as `# Safety` asks.
                unsafe { self.products().ok_or_else(missing)?.multiply(product, [out, left, right]) }
            }
            // SAFETY: as `# Safety` asks.
            Task::Factors { .. } => unsafe {
                match self.substitute(task, buffers)? {
                    true => Ok(()),
                    false => self.factors().ok_or_else(missing)?.run(task, buffers),
                }
            },
            Task::Transforms(transforms) => {
                let &[to, from, room] = buffers else { return Err(missing()) };
                // SAFETY: as `# Safety` asks.
                unsafe { self.transforms().ok_or_else(missing)?.run(transforms, [to, from, room]) }
            }
        }
    }
}
