//! Extension methods: the ones that come with the engine, and the user's from libraries.
//!
//! A crate of its own so that work on the engine does not compile the linear algebra again.

mod bound;
mod choose;
mod fourier;
mod linear;
mod multiply;
mod order;
mod scratch;
mod sort;
mod user;
mod view;

pub use view::{Strided, Walk};

use bh_bytecode::methods::{self, Form, Misfit};
use bh_bytecode::{DType, Opcode};
use bh_core::abi::status;
use bh_core::{Error, Host, Result};
use user::UserMethod;

/// What carries out the parts of a method side by side.
pub trait Parallel {
    /// How many participants should share work of this many units, about 0.04 ns each.
    fn participants(&self, units: u64) -> usize;

    /// Runs `body` on up to `participants` threads; each takes numbers of tasks below `tasks` until none is left.
    fn run(&mut self, participants: usize, tasks: usize, body: &(dyn Fn(&mut dyn Iterator<Item = usize>) + Sync));
}

/// The operands of a call.
struct Call<'a, 'b> {
    name: &'a str,
    outputs: &'a [Strided<'b>],
    inputs: &'a [Strided<'b>],
    /// Where work memory comes from; tests of methods that need none have none.
    memory: Option<Host>,
}

/// A method that comes with the engine.
type Shipped = fn(&mut Methods, &Call<'_, '_>, &mut dyn Parallel) -> Result<()>;

/// Names and functions of the methods that come with the engine.
const SHIPPED: &[(&str, Shipped)] = &[
    ("matmul", multiply::matmul),
    ("solve", linear::solve),
    ("lu", linear::lu),
    ("cholesky", linear::cholesky),
    ("qr", linear::qr),
    ("eigh", linear::eigh),
    ("eig", linear::eig),
    ("svd", linear::svd),
    ("fft", fourier::forward),
    ("ifft", fourier::inverse),
    ("sort", sort_any),
    ("argsort", argsort_any),
    ("searchsorted_left", order::search_left),
    ("searchsorted_right", order::search_right),
    ("count_nonzero", choose::count_nonzero),
    ("flatnonzero", choose::flatnonzero),
    ("compress", choose::compress),
];

/// Sorts complex numbers by their parts, and others side by side.
fn sort_any(methods: &mut Methods, call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    let sort = if call.inputs[0].dtype.is_complex() { order::sort } else { sort::sort };
    sort(methods, call, threads)
}

fn argsort_any(methods: &mut Methods, call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    let argsort = if call.inputs[0].dtype.is_complex() { order::argsort } else { sort::argsort };
    argsort(methods, call, threads)
}

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
    plans: fourier::Plans,
}

impl Methods {
    /// Learns the opcode of a method; `false` if there is none of this name. A method of the user wins.
    pub fn announce(&mut self, name: &str, opcode: Opcode) -> bool {
        let user = self.user.iter().rposition(|method| method.name == name).map(|at| ("", Known::User(at)));
        let shipped =
            || SHIPPED.iter().find(|(known, _)| *known == name).map(|(name, run)| (*name, Known::Shipped(*run)));
        let Some((shipped_name, known)) = user.or_else(shipped) else { return false };
        self.numbers.retain(|(number, ..)| *number != opcode);
        self.numbers.push((opcode, shipped_name, known));
        true
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
            Known::Shipped(run) => run(self, &Call { name, outputs, inputs, memory: Some(memory) }, threads),
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
        Error::new(status::MEMORY, format!("{}: out of memory: {bytes} bytes are not to be had", self.name))
    }

    /// Checks the numbers of operands.
    fn check_counts(&self, outputs: std::ops::RangeInclusive<usize>, inputs: usize) -> Result<()> {
        if outputs.contains(&self.outputs.len()) && self.inputs.len() == inputs {
            return Ok(());
        }
        let (given_out, given_in) = (self.outputs.len(), self.inputs.len());
        let text = format!("{}: {given_out} outputs and {given_in} inputs given; it takes {inputs} inputs", self.name);
        Err(Error::new(status::ARGUMENT, text))
    }

    fn shape_error<T>(&self) -> Result<T> {
        let list =
            |views: &[Strided<'_>]| views.iter().map(|view| format!("{:?}", view.shape)).collect::<Vec<_>>().join(", ");
        let text =
            format!("{}: shapes {} do not fit the output's {}", self.name, list(self.inputs), list(self.outputs));
        Err(Error::new(status::SHAPE, text))
    }

    fn type_error<T>(&self) -> Result<T> {
        let list = |views: &[Strided<'_>]| views.iter().map(|view| view.dtype.name()).collect::<Vec<_>>().join(", ");
        let text =
            format!("{}: not for inputs of {} and an output of {}", self.name, list(self.inputs), list(self.outputs));
        Err(Error::new(status::TYPE, text))
    }

    /// The one type of all operands.
    fn one_type(&self) -> Result<DType> {
        let mut types = self.outputs.iter().chain(self.inputs).map(|view| view.dtype);
        let first = types.next().unwrap_or(DType::Bool);
        if types.all(|dtype| dtype == first) { Ok(first) } else { self.type_error() }
    }
}
