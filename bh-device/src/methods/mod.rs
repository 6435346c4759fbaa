//! Extension methods on the device: matrix products, transforms, sorts, choices, factorisations, scalar programs, and kernels of
//! the user.
//!
//! A user's kernel is a file in the driver's language with a kernel of the method's name. Its arguments are one buffer for each
//! operand, outputs first, and then `views` (in OpenCL C a `__global const long *`), which has [`RECORD`] numbers for each
//! operand: elements, offset of the first one in its buffer, dimensions, 16 extents, 16 strides. It runs with one item, or some
//! more, for each element of the first output.

mod choose;
mod decompose;
mod fourier;
mod library;
mod linear;
mod lines;
mod little;
mod order;
mod orthogonal;
mod panel;
mod program;
mod select;

use crate::code::{self, Code, KernelMemory, Placement, Placements, Target, Variant};
use crate::driver::{Driver, Libraries, Subject};
use bh_bytecode::methods::Form;
use bh_bytecode::{BatchRef, DType, MAX_RANK, Opcode, Operand};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_kernel::BufferRef;
use bh_scalar::Program;
use std::sync::Arc;

/// Numbers that describe an operand.
const RECORD: usize = 3 + 2 * MAX_RANK;

/// The methods that the device knows.
pub(crate) struct Methods {
    /// Do those that are no products run here, too?
    wanted: bool,
    /// May libraries of the device's maker do some?
    by_libraries: bool,
    driver: Arc<dyn Driver>,
    user: Vec<User>,
    /// Names of methods that users load into other components.
    elsewhere: Vec<String>,
    known: Vec<(Opcode, Known)>,
}

struct User {
    name: String,
    text: String,
}

#[derive(Clone)]
enum Known {
    Shipped(&'static Shipped),
    Program(Arc<Program>),
    User(usize),
}

/// A method of ours.
struct Shipped {
    name: &'static str,
    /// Do kernels of ours take a call, given the type of its first input?
    takes: fn(DType) -> bool,
    /// Its work on matrices.
    matrices: Matrices,
    kernels: fn(&Call<'_, '_>) -> Option<Kernels>,
}

/// How a method takes matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Matrices {
    /// It factors none.
    Any,
    /// Its kernels factor the matrices of stacks, too; a library may factor a single one.
    Stacks,
    /// Kernels and library factor single ones.
    Single,
    /// A library alone factors single ones.
    Library,
}

/// The kernels of a call, and the bytes of the memory between them.
type Kernels = (Vec<Code>, Vec<usize>);

/// A call of a method.
struct Call<'a, 'b> {
    shipped: &'static Shipped,
    batch: &'a BatchRef<'b>,
    instr: u32,
    target: &'a Target,
    variant: Variant,
    /// Does the device have double precision?
    f64: bool,
    /// Libraries that may do it.
    libraries: Option<&'a dyn Libraries>,
}

/// A method that factors no matrices.
const fn shipped(
    name: &'static str,
    takes: fn(DType) -> bool,
    kernels: fn(&Call<'_, '_>) -> Option<Kernels>,
) -> Shipped {
    Shipped { name, takes, matrices: Matrices::Any, kernels }
}

/// A method that factors matrices of floats, or, by a library, of complex numbers.
const fn factoring(name: &'static str, matrices: Matrices, kernels: fn(&Call<'_, '_>) -> Option<Kernels>) -> Shipped {
    let takes = if matches!(matrices, Matrices::Library) { |_| false } else { DType::is_float };
    Shipped { name, takes, matrices, kernels }
}

/// All of them, products first.
static SHIPPED: [Shipped; 18] = [
    shipped("matmul", |_| true, product),
    shipped("fft", |_| true, |call| fourier::transform(call, false)),
    shipped("ifft", |_| true, |call| fourier::transform(call, true)),
    shipped("rfft", |_| true, fourier::real::forward),
    shipped("irfft", |_| true, fourier::real::inverse),
    shipped("sort", order::sorts, |call| order::sort(call, false)),
    shipped("argsort", order::sorts, |call| order::sort(call, true)),
    shipped("searchsorted_left", order::sorts, |call| order::search(call, true)),
    shipped("searchsorted_right", order::sorts, |call| order::search(call, false)),
    shipped("count_nonzero", |_| true, choose::count_nonzero),
    shipped("flatnonzero", |_| true, choose::choose),
    shipped("compress", |_| true, choose::choose),
    factoring("lu", Matrices::Stacks, |call| little::or(call, "lu", linear::lu)),
    factoring("solve", Matrices::Stacks, |call| little::or(call, "solve", linear::solve)),
    factoring("cholesky", Matrices::Stacks, |call| little::or(call, "cholesky", linear::cholesky)),
    factoring("qr", Matrices::Single, orthogonal::qr),
    factoring("eigh", Matrices::Library, decompose::eigh),
    factoring("svd", Matrices::Library, decompose::svd),
];

/// The extent below which a matrix to be factored is little, and the number of little ones that are few.
const LITTLE: i64 = 256;
const FEW: i64 = 16;

fn product(call: &Call<'_, '_>) -> Option<Kernels> {
    let mut scratch = Vec::new();
    let fits = code::is_product(call.batch, call.instr);
    fits.then(|| code::product(call.batch, call.instr, call.target, call.variant, call.libraries, &mut scratch))
        .map(|all| (all, scratch))
}

impl Call<'_, '_> {
    /// The type in which roots of unity are computed.
    fn wide(&self) -> &'static str {
        if self.f64 { "double" } else { "float" }
    }
}

impl Methods {
    /// Those of a device; `wanted`: others than products, too.
    pub(crate) fn new(wanted: bool, placements: Placements, driver: Arc<dyn Driver>) -> Methods {
        let by_libraries = placements.has(Placement::Library);
        Methods { wanted, by_libraries, driver, user: Vec::new(), elsewhere: Vec::new(), known: Vec::new() }
    }

    /// Does the device have double precision?
    fn f64(&self) -> bool {
        self.driver.info().f64
    }

    /// Libraries that may do some.
    fn libraries(&self) -> Option<&dyn Libraries> {
        self.driver.libraries().filter(|_| self.by_libraries)
    }

    /// Libraries that factor matrices.
    fn factoring(&self) -> Option<&dyn Libraries> {
        self.libraries().filter(|libraries| libraries.has(Subject::Factors))
    }

    /// Loads a user's kernel from a file.
    pub(crate) fn load(&mut self, name: &str, file: &str) -> Result<()> {
        let text = std::fs::read_to_string(file).map_err(|why| {
            Error::new(status::FILE, format!("extension method '{name}': '{file}' cannot be read: {why}"))
        })?;
        let language = self.driver.language();
        if !text.contains(language.user_kernel) || !text.contains(name) {
            let text = format!("extension method '{name}': '{file}' has no kernel of this name");
            return Err(Error::new(status::FILE, text));
        }
        // Kernels are found by one name.
        let text = format!("{}#define {name} bh\n{text}\n", language.user_prelude);
        self.user.push(User { name: name.into(), text });
        Ok(())
    }

    /// The user has loaded a method of this name into another component, which is meant then.
    pub(crate) fn leave(&mut self, name: &str) {
        self.elsewhere.push(name.into());
    }

    /// Learns the opcode of a method; false if there is none of this name.
    pub(crate) fn announce(&mut self, name: &str, opcode: Opcode) -> bool {
        let user = self.user.iter().rposition(|method| method.name == name).map(Known::User);
        let wanted = |shipped: &&Shipped| {
            let is_here = shipped.matrices != Matrices::Library || self.factoring().is_some();
            shipped.name == name && (self.wanted || name == SHIPPED[0].name) && is_here
        };
        let here = !self.elsewhere.iter().any(|other| other == name);
        let own = SHIPPED.iter().find(wanted).filter(|_| here).map(Known::Shipped);
        let program = Program::parse(name).ok().filter(|program| self.wanted && program::is_for(program, self.f64()));
        let program = program.map(|program| Known::Program(Arc::new(program)));
        self.known.retain(|(number, _)| *number != opcode);
        let found = user.or(own).or(program);
        let is_known = found.is_some();
        self.known.extend(found.map(|known| (opcode, known)));
        is_known
    }

    fn known(&self, batch: &BatchRef<'_>, instr: u32) -> Option<&Known> {
        let opcode = batch.instrs[instr as usize].opcode;
        self.known.iter().find(|(number, _)| *number == opcode).map(|(_, known)| known)
    }

    /// Can the device run this call?
    pub(crate) fn takes(&self, batch: &BatchRef<'_>, instr: u32) -> bool {
        match self.known(batch, instr) {
            Some(Known::Shipped(shipped)) if shipped.name == SHIPPED[0].name => code::is_product(batch, instr),
            Some(Known::Shipped(shipped)) => {
                let first = batch.instrs[instr as usize].inputs().first();
                let dtype = first.and_then(|operand| batch.dtype(*operand));
                let one = parts(batch, instr).0.is_empty();
                let own = (one || shipped.matrices != Matrices::Single) && dtype.is_some_and(shipped.takes);
                let by_library = || {
                    let task = one.then(|| library::task(batch, instr, shipped.name)).flatten();
                    let room = |task| self.factoring().is_some_and(|libraries| libraries.room(&task).is_ok());
                    shipped.matrices != Matrices::Any && task.is_some_and(room)
                };
                fits(batch, instr, shipped.name) && (own || by_library())
            }
            Some(Known::Program(program)) => program::takes(batch, instr, program),
            Some(Known::User(_)) => {
                batch.instrs[instr as usize].operands().iter().all(|operand| operand.as_view().is_some())
            }
            None => false,
        }
    }

    /// Is a call done sooner by an engine of processors, though its data is here? Factors of few little matrices have many steps.
    pub(crate) fn is_little(&self, batch: &BatchRef<'_>, block: u32) -> bool {
        let instrs = batch.block_instrs(&batch.blocks[block as usize]);
        instrs.iter().any(|&instr| {
            let Some(Known::Shipped(shipped)) = self.known(batch, instr) else { return false };
            let (stack, matrix) = parts(batch, instr);
            let is_few = shipped.matrices != Matrices::Stacks || stack.iter().product::<i64>() < FEW;
            shipped.matrices != Matrices::Any && is_few && matrix.iter().all(|&extent| extent < LITTLE)
        })
    }

    /// The kernels of a call; `scratch` gets the bytes of memory between them.
    pub(crate) fn codes(
        &self,
        batch: &BatchRef<'_>,
        instr: u32,
        target: &Target,
        variant: Variant,
        scratch: &mut Vec<usize>,
    ) -> Vec<Code> {
        match self.known(batch, instr) {
            Some(Known::Shipped(shipped)) => {
                let (f64, libraries) = (self.f64(), self.libraries());
                let (codes, bytes) = kernels(&Call { shipped, batch, instr, target, variant, f64, libraries });
                *scratch = bytes;
                codes
            }
            Some(Known::Program(program)) => {
                program::kernel(batch, instr, program, target, variant).into_iter().collect()
            }
            Some(Known::User(at)) => vec![call(batch, instr, target, &self.user[*at].text)],
            None => Vec::new(),
        }
    }
}

/// The extents of the stack that the first input of a call is, and those of its matrices.
fn parts<'a>(batch: &BatchRef<'a>, instr: u32) -> (&'a [i64], &'a [i64]) {
    let first = batch.instrs[instr as usize].inputs().first().and_then(|operand| operand.as_view());
    let shape = first.map_or(&[][..], |view| batch.shape(view));
    shape.split_at(shape.len().saturating_sub(2))
}

/// Is a call as the method wants it, of views alone, and are its results in other memory than its inputs?
fn fits(batch: &BatchRef<'_>, instr: u32, name: &str) -> bool {
    let instr = &batch.instrs[instr as usize];
    let Some(views) = instr.operands().iter().map(|operand| operand.as_view()).collect::<Option<Vec<u32>>>() else {
        return false;
    };
    let base = |view: u32| batch.views[view as usize].base;
    let (outputs, inputs) = views.split_at(usize::from(instr.outputs).min(views.len()));
    let apart = |at: usize| {
        let others = inputs.iter().chain(&outputs[at + 1..]);
        others.copied().all(|other| base(other) != base(outputs[at]))
    };
    let form = |&view: &u32| {
        let dtype = batch.base_of(view)?.dtype();
        Some(Form { dtype, shape: batch.shape(view) })
    };
    let forms = |views: &[u32]| views.iter().map(form).collect::<Option<Vec<Form<'_>>>>();
    let (Some(to), Some(from)) = (forms(outputs), forms(inputs)) else { return false };
    (0..outputs.len()).all(apart) && bh_bytecode::methods::check(name, &to, &from).is_ok()
}

/// The kernels of a call of a method of ours, which the device takes.
fn kernels(call: &Call<'_, '_>) -> Kernels {
    let views = call.batch.instrs[call.instr as usize].operands();
    let empty = |operand: &Operand| operand.as_view().is_some_and(|view| call.batch.views[view as usize].len == 0);
    if call.shipped.name != SHIPPED[0].name && views.iter().all(empty) {
        return Kernels::default();
    }
    (call.shipped.kernels)(call).unwrap_or_default()
}

/// A call of a user's kernel.
fn call(batch: &BatchRef<'_>, instr: u32, target: &Target, text: &str) -> Code {
    let views = batch.instrs[instr as usize].operands().iter().filter_map(|operand| operand.as_view());
    let (mut places, mut numbers, mut items) = (Vec::new(), Vec::new(), 1);
    for (number, view) in views.enumerate() {
        let record = &batch.views[view as usize];
        places.push(KernelMemory::Of(BufferRef::Base(record.base)));
        let (shape, stride) = (batch.shape(view), batch.stride(view));
        let mut described = vec![record.len, record.start, shape.len() as i64];
        described.extend_from_slice(shape);
        described.resize(3 + MAX_RANK, 1);
        described.extend_from_slice(stride);
        described.resize(RECORD, 0);
        numbers.extend(described);
        if number == 0 {
            items = record.len.max(1);
        }
    }
    Code {
        text: text.to_owned(),
        own: 0,
        places,
        constants: Vec::new(),
        numbers,
        wide: true,
        packed: true,
        groups: (items as u64).div_ceil(target.group as u64) as usize,
        group: target.group,
        failing: Vec::new(),
        library: None,
    }
}
