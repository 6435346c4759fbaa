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
mod parallel;
mod scratch;
mod stacks;
mod user;
mod view;

pub use at_once::AtOnce;
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

/// A method that comes with the engine.
#[derive(Clone, Copy)]
enum Shipped {
    Plain(Plain),
    /// It may run at once, beside batches: its bits do not depend on the number of threads.
    AtOnce(Plain),
    /// As `AtOnce`, with plans that are kept.
    Planned(fn(&Plans, &Call<'_, '_>, &mut dyn Parallel) -> Result<()>),
}

/// Names and functions of the methods that come with the engine.
const SHIPPED: &[(&str, Shipped)] = &[
    ("matmul", Shipped::AtOnce(multiply::matmul)),
    ("solve", Shipped::Plain(linear::solve)),
    ("lu", Shipped::Plain(linear::lu)),
    ("lu_panel", Shipped::Plain(linear::lu_panel)),
    ("cholesky", Shipped::Plain(linear::cholesky)),
    ("qr", Shipped::Plain(linear::qr)),
    ("eigh", Shipped::Plain(linear::eigh)),
    ("eig", Shipped::Plain(linear::eig)),
    ("svd", Shipped::Plain(linear::svd)),
    ("solve_or_doubt", Shipped::Plain(little::solve)),
    ("inv_or_doubt", Shipped::Plain(little::inverse)),
    ("det_or_doubt", Shipped::Plain(little::det)),
    ("fft", Shipped::Planned(fourier::forward)),
    ("ifft", Shipped::Planned(fourier::inverse)),
    ("rfft", Shipped::Planned(fourier::real::forward)),
    ("irfft", Shipped::Planned(fourier::real::inverse)),
    ("sort", Shipped::AtOnce(order::sort)),
    ("argsort", Shipped::AtOnce(order::argsort)),
    ("searchsorted_left", Shipped::AtOnce(order::search_left)),
    ("searchsorted_right", Shipped::AtOnce(order::search_right)),
    ("count_nonzero", Shipped::AtOnce(choose::count_nonzero)),
    ("flatnonzero", Shipped::AtOnce(choose::flatnonzero)),
    ("compress", Shipped::AtOnce(choose::compress)),
];

#[derive(Clone, Copy)]
enum Known {
    Shipped(Shipped),
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
        let shipped =
            || SHIPPED.iter().find(|(known, _)| *known == name).map(|(name, run)| (*name, Known::Shipped(*run)));
        let Some((shipped_name, known)) = user.or_else(shipped) else { return false };
        self.at_once.learn(name, opcode, matches!(known, Known::Shipped(_)));
        self.numbers.retain(|(number, ..)| *number != opcode);
        self.numbers.push((opcode, shipped_name, known));
        true
    }

    /// What runs methods at once.
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
        match known {
            Known::User(at) => self.user[at].run(outputs, inputs),
            Known::Shipped(shipped) => {
                let call = Call { name, outputs, inputs, memory: Some(memory) };
                match shipped {
                    Shipped::Plain(run) => stacks::each(&call, run, threads),
                    Shipped::AtOnce(run) => run(&call, threads),
                    Shipped::Planned(run) => run(self.at_once.plans(), &call, threads),
                }
            }
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
