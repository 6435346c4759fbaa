//! Extension methods: the ones that come with the engine, and the user's from libraries.
//!
//! A crate of its own so that work on the engine does not compile the linear algebra again.

mod at_once;
mod bound;
mod choose;
pub mod contract;
mod fourier;
mod linear;
mod little;
mod matvec;
mod multiply;
mod order;
#[cfg(target_arch = "x86_64")]
mod panels;
mod parallel;
mod scratch;
mod stacks;
mod user;
mod view;

pub use at_once::{Alone, AtOnce, PRODUCTS};
pub use parallel::{Parallel, Share, share, share_between};
pub use view::{Layout, Strided, ViewMut, ViewRef, walk};

use bh_bytecode::Opcode;
use bh_bytecode::methods::{self, Form, Misfit};
use bh_core::abi::status;
use bh_core::{Error, Host, Result};
use fourier::Plans;
use std::sync::Arc;
use user::UserMethod;

/// The operands of a call.
struct Call<'a, 'b> {
    name: &'a str,
    outputs: &'a [Strided<'b>],
    inputs: &'a [Strided<'b>],
    /// Where work memory comes from; tests of methods that need none have none.
    memory: Option<Host>,
}

/// A method that takes nothing of the engine but its threads.
type Plain = fn(&Call<'_, '_>, &mut dyn Parallel) -> Result<()>;

/// A method that may run at once, beside batches: its bits do not depend on the number of threads.
#[derive(Clone, Copy)]
enum Beside {
    Plain(Plain),
    /// With plans that are kept.
    Planned(fn(&Plans, &Call<'_, '_>, &mut dyn Parallel) -> Result<()>),
}

/// Methods that come with the engine and run in batches only. The unit tests name neither this table nor the next one, so that the
/// libraries for linear algebra and for transforms are not compiled for them.
const IN_BATCHES: &[(&str, Plain)] = &[
    ("solve", linear::solve),
    ("lu", linear::lu),
    ("lu_panel", linear::lu_panel),
    ("cholesky", linear::cholesky),
    ("qr", linear::qr),
    ("eigh", linear::eigh),
    ("eig", linear::eig),
    ("svd", linear::svd),
    ("solve_or_doubt", little::solve),
    ("inv_or_doubt", little::inverse),
    ("det_or_doubt", little::det),
];

/// Methods that come with the engine and may run beside batches, too.
const BESIDE: &[(&str, Beside)] = &[
    ("matmul", Beside::Plain(multiply::matmul)),
    ("fft", Beside::Planned(fourier::forward)),
    ("ifft", Beside::Planned(fourier::inverse)),
    ("rfft", Beside::Planned(fourier::real::forward)),
    ("irfft", Beside::Planned(fourier::real::inverse)),
    ("sort", Beside::Plain(order::sort)),
    ("argsort", Beside::Plain(order::argsort)),
    ("searchsorted_left", Beside::Plain(order::search_left)),
    ("searchsorted_right", Beside::Plain(order::search_right)),
    ("count_nonzero", Beside::Plain(choose::count_nonzero)),
    ("flatnonzero", Beside::Plain(choose::flatnonzero)),
    ("compress", Beside::Plain(choose::compress)),
];

/// The entry of this name.
fn named<T: Copy>(table: &[(&'static str, T)], name: &str) -> Option<(&'static str, T)> {
    table.iter().copied().find(|(known, _)| *known == name)
}

#[derive(Clone, Copy)]
enum Known {
    InBatches(Plain),
    Beside(Beside),
    User(usize),
}

/// The methods that the engine knows.
#[derive(Default)]
pub struct Methods {
    user: Vec<UserMethod>,
    numbers: Vec<(Opcode, &'static str, Known)>,
    at_once: Arc<AtOnce>,
}

impl Methods {
    /// Learns the opcode of a method; `false` if there is none of this name. A method of the user wins.
    pub fn announce(&mut self, name: &str, opcode: Opcode) -> bool {
        let user = self.user.iter().rposition(|method| method.name == name).map(|at| ("", Known::User(at)));
        let shipped = || {
            let in_batches = || named(IN_BATCHES, name).map(|(name, run)| (name, Known::InBatches(run)));
            named(BESIDE, name).map(|(name, run)| (name, Known::Beside(run))).or_else(in_batches)
        };
        let Some((shipped_name, known)) = user.or_else(shipped) else { return false };
        self.at_once.learn(name, opcode, matches!(known, Known::Beside(_)));
        self.numbers.retain(|(number, ..)| *number != opcode);
        self.numbers.push((opcode, shipped_name, known));
        true
    }

    /// The runner of immediate methods.
    pub fn at_once(&self) -> Arc<AtOnce> {
        Arc::clone(&self.at_once)
    }

    /// Does the engine have the method with this opcode?
    pub fn knows(&self, opcode: Opcode) -> bool {
        self.numbers.iter().any(|(number, ..)| *number == opcode)
    }

    /// The most work memory that the method with this opcode asks its host for; 0 for methods of the user, which take their own.
    pub fn work_bytes(&self, opcode: Opcode, inputs: &[Form<'_>], threads: usize) -> usize {
        let known = self.numbers.iter().find(|(number, ..)| *number == opcode);
        known.map_or(0, |&(_, name, _)| bound::work_bytes(name, inputs, threads))
    }

    /// Loads a method of the user: the function `name` of a library.
    pub fn load(&mut self, name: &str, library: &str) -> Result<()> {
        self.user.push(UserMethod::load(name, library)?);
        Ok(())
    }

    /// Runs the method with this opcode on `outputs` outputs and the rest as inputs; work memory comes from `memory`.
    pub fn run(
        &mut self,
        opcode: Opcode,
        operands: &[Strided<'_>],
        outputs: usize,
        memory: Host,
        threads: &mut dyn Parallel,
    ) -> Result<()> {
        let Some(&(_, name, known)) = self.numbers.iter().find(|(number, ..)| *number == opcode) else {
            return Err(Error::new(status::UNSUPPORTED, format!("the CPU engine does not know {opcode}")));
        };
        let (outputs, inputs) = operands.split_at(outputs.min(operands.len()));
        let call = Call { name, outputs, inputs, memory: Some(memory) };
        match known {
            Known::User(at) => self.user[at].run(outputs, inputs),
            Known::InBatches(run) => stacks::each(&call, run, threads),
            Known::Beside(Beside::Plain(run)) => run(&call, threads),
            Known::Beside(Beside::Planned(run)) => run(self.at_once.plans(), &call, threads),
        }
    }
}

impl Call<'_, '_> {
    /// Checks numbers, types and shapes of the operands.
    fn check(&self) -> Result<()> {
        fn forms<'s>(views: &'s [Strided<'_>]) -> Vec<Form<'s>> {
            views.iter().map(|view| Form { dtype: view.dtype, shape: view.shape }).collect()
        }
        methods::check(self.name, &forms(self.outputs), &forms(self.inputs)).map_err(|misfit| match misfit {
            Misfit::Count(text) => Error::new(status::ARGUMENT, text),
            Misfit::Type(text) => Error::new(status::TYPE, text),
            Misfit::Shape(text) => Error::new(status::SHAPE, text),
        })
    }

    /// That the matrix library, or whatever else a method is made of, will find memory.
    fn no_memory(&self, bytes: usize) -> Error {
        Error::new(status::MEMORY, format!("{}: out of memory: cannot allocate {bytes} bytes", self.name))
    }
}
