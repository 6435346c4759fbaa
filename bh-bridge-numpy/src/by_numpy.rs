//! Calls that NumPy's own function computes at once, on copies of little arrays whose data has been computed. Which functions these
//! are, the registry says; other calls of them go to Python.

use crate::arguments::Arguments;
use crate::array::Array;
use crate::by_class::memory_of;
use crate::call::Served;
use crate::context::{self, Shared, Stack};
use crate::create::copy_into;
use crate::error::value_error;
use crate::foreign::copied;
use crate::from_lists::is_sequence;
use crate::layout::is_ordered_as_in_c;
use crate::numpy_api::{HostArray, Order, new_array};
use crate::numpy_types::scalar_type;
use crate::scalar::{asked_by_program, numpy_scalar};
use crate::strided::{Strided, is_plain, sized};
use crate::text::intern;
use crate::ufunc::Ufunc;
use bh_bytecode::{DType, Truth, View};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::cell::Cell;
use std::sync::OnceLock;

/// The part of a function's row about calls that NumPy computes immediately.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct ByNumpy {
    /// NumPy's function.
    function: Py<PyAny>,
    /// The names of the leading arguments, which may be arrays.
    operands: Vec<String>,
    /// The most elements of an array.
    most: i64,
    /// May operands be arrays of NumPy's?
    takes_hosts: bool,
    /// The texts that options may be.
    words: Py<PyAny>,
    /// Are options given by name only?
    only_named: bool,
    /// Do all arrays have to be in the memory of this process?
    in_process: bool,
    /// Of functions that draw random numbers: the place of the argument `size`, and how many numbers the stack makes itself.
    drawn: Option<(Option<usize>, i64)>,
    /// Of sums of products: the most products of an element of each array. Texts are options, and a text comes before the arrays.
    products: Option<i64>,
    /// Of functions that write to an argument: its place, and NumPy's function that shows the memory of an array.
    changed: Option<(usize, Py<PyAny>)>,
    /// The method of NumPy's arrays that the function calls, or the function in C of a sum of products without named options.
    direct: Option<Py<PyAny>>,
}

/// The most elements that are copied under the recorder's lock.
const MOST: i64 = 1 << 16;

/// Elements of a stack of matrices for which methods of the stack are faster than LAPACK.
const STACKED: i64 = 1 << 11;

/// The deepest nesting of lists that are looked into.
const DEEPEST: usize = 4;

/// The function of Python that makes arrays of bh of those in what NumPy returned, given whether nobody else refers to that,
/// and the stack where they belong.
static LIFT: OnceLock<Py<PyAny>> = OnceLock::new();

/// Makes known what lifts results that are not little arrays.
#[pyfunction]
fn set_lift(lift: Py<PyAny>) {
    // A second call, of a reloaded package, changes nothing.
    let _ = LIFT.set(lift);
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_lift, module)?)
}

impl ByNumpy {
    /// Calls NumPy's function. `None` for calls that Python has to look at.
    pub fn serve<'py>(&self, arguments: Arguments<'_, 'py>) -> Served<'py> {
        let (py, unnamed) = (arguments.py(), arguments.unnamed().len());
        let is_operand = |name: &Bound<'py, PyAny>| self.operands.iter().any(|one| name.eq(one).unwrap_or(false));
        if !asked_by_program(py) || self.only_named && unnamed > self.operands.len() || changes(&arguments) {
            return Ok(None);
        }
        // Random draws are refused in traces, where nothing is computed.
        if let Some((size, most)) = self.drawn
            && (!draws_fewer(&arguments, size, most) || context::current(py)?.recorder.hand().is_none())
        {
            return Ok(None);
        }
        if let Some(most) = self.products
            && !is_few_products(&arguments, most)
        {
            return Ok(None);
        }
        if self.in_process && !context_of(&arguments)?.computes_little(py)? {
            return Ok(None);
        }
        let mut shown = Vec::with_capacity(arguments.all().len());
        let home = Home::default();
        for (place, object) in arguments.all().iter().enumerate() {
            let object = object.bind(py);
            let may_be_array = match place.checked_sub(unnamed) {
                None => place < self.operands.len() || self.products.is_some(),
                Some(place) => arguments.name(place).is_some_and(|name| is_operand(&name)),
            };
            let one = match may_be_array {
                _ if self.changed.as_ref().is_some_and(|changed| changed.0 == place) => self.target(&arguments)?,
                true => self.operand(object, 0, &home)?,
                false => self.is_option(object).then(|| object.clone()),
            };
            let Some(one) = one else { return Ok(None) };
            shown.push(one.unbind());
        }
        let is_direct = match self.products {
            None => unnamed > 0 && HostArray::of(shown[0].bind(py)).is_some(),
            Some(_) => arguments.named() == 0,
        };
        let function = self.direct.as_ref().filter(|_| is_direct).unwrap_or(&self.function);
        let result = arguments.with(&shown).call(function.bind(py))?;
        if self.products.is_some() && HostArray::of(&result).is_some_and(|host| !host.owns_memory()) {
            // A view of the copy has to be one of the array.
            return Ok(None);
        }
        lifted(result, home.context(py)?).map(Some)
    }

    /// An operand as NumPy's function gets it. `None` if it is none that is little and has been computed. `home` learns of its stack.
    fn operand<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        depth: usize,
        home: &Home,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if let Ok(array) = object.cast_exact::<Array>() {
            home.meet(array.get().context);
            let is_stack = self.in_process && array.get().view.rank() > 2;
            return shown(array, if is_stack { STACKED.min(self.most) } else { self.most });
        }
        if let Some(host) = HostArray::of(object) {
            let count = host.shape().iter().product::<isize>() as i64;
            return Ok((self.takes_hosts && count <= self.most).then(|| object.clone()));
        }
        if is_sequence(object) {
            return self.sequence(object, depth, home);
        }
        if let Ok(ufunc) = object.cast::<Ufunc>() {
            return Ok(Some(ufunc.get().numpy(object.py()).clone()));
        }
        Ok(self.is_option(object).then(|| object.clone()))
    }

    /// The memory of the array that the function writes to. `None` if that is not little or not computed, or if another argument shows it.
    fn target<'py>(&self, arguments: &Arguments<'_, 'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = arguments.py();
        let Some((place, show)) = &self.changed else { return Ok(None) };
        let arrays = || arguments.all().iter().filter_map(|object| object.bind(py).cast_exact::<Array>().ok());
        let target = arguments.unnamed().get(*place).and_then(|object| object.bind(py).cast_exact::<Array>().ok());
        let Some(target) = target else { return Ok(None) };
        let this = target.get();
        // NumPy's functions refuse memory that is read-only, but for `ufunc.at`.
        let may_write = this.is_writeable() || *place == 0;
        let fits = may_write && !this.is_scalar() && !this.warns() && this.view.is_injective();
        if !fits || arrays().any(|other| !other.is(target) && other.get().shares_memory(this)) {
            return Ok(None);
        }
        if arrays().filter(|other| other.is(target)).count() > 1 {
            return Ok(None);
        }
        memory_of(show.bind(py), target)
    }

    /// A list or a tuple, in which arrays are replaced.
    fn sequence<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        depth: usize,
        home: &Home,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if depth == DEEPEST || object.len()? as i64 > self.most.min(MOST) {
            return Ok(None);
        }
        if holds_numbers(object)? {
            return Ok(Some(object.clone()));
        }
        let mut parts = Vec::new();
        for part in object.try_iter()? {
            let Some(part) = self.operand(&part?, depth + 1, home)? else { return Ok(None) };
            parts.push(part);
        }
        Ok(Some(match object.is_exact_instance_of::<PyList>() {
            true => PyList::new(object.py(), parts)?.into_any(),
            false => PyTuple::new(object.py(), parts)?.into_any(),
        }))
    }

    /// Is it an option that NumPy's function may get as it is: a number, a known text, or some numbers?
    fn is_option(&self, object: &Bound<'_, PyAny>) -> bool {
        if object.is_exact_instance_of::<PyString>() {
            return self.products.is_some() || self.words.bind(object.py()).contains(object).unwrap_or(false);
        }
        is_number(object)
            || is_sequence(object)
                && object.len().is_ok_and(|count| count as i64 <= self.most)
                && holds_numbers(object).unwrap_or(false)
    }
}

/// The stack of the first array among the operands of a call, where its results belong.
#[derive(Default)]
pub struct Home(Cell<Option<Shared>>);

impl Home {
    pub fn meet(&self, context: Shared) {
        self.0.set(self.0.get().or(Some(context)));
    }

    /// That stack, or the one of new arrays.
    pub fn context(&self, py: Python<'_>) -> PyResult<Shared> {
        self.0.get().map_or_else(|| context::current(py), Ok)
    }
}

/// A universal function of one or two operands of which NumPy's has the same bits, on arrays that are little and computed, in C's order,
/// beside others and numbers. The table of types cannot serve such calls: errors of powers of whole numbers depend on their values, for
/// example. `None` for other calls.
pub fn of_few<'py, const N: usize>(py: Python<'py>, ufunc: &Ufunc, operands: [&Bound<'py, PyAny>; N]) -> Served<'py> {
    if ufunc.agrees() == Agrees::Never || !crate::shortcut::taken() || !asked_by_program(py) {
        return Ok(None);
    }
    let kinds = operands.map(Kind::of);
    if kinds.iter().any(Option::is_none) {
        return Ok(None);
    }
    let known = || kinds.iter().flatten();
    let agrees = ufunc.agrees() == Agrees::OnReal || known().all(|kind| kind.is_whole);
    let Some(home) = known().find_map(|kind| kind.home).filter(|_| agrees) else { return Ok(None) };
    let mut given = Vec::with_capacity(N);
    for (kind, object) in known().zip(operands) {
        let Some(one) = kind.shown(object)? else { return Ok(None) };
        given.push(one);
    }
    lifted(ufunc.numpy(py).call1(PyTuple::new(py, given)?)?, home).map(Some)
}

/// Which operands NumPy's universal function makes the same bits of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Agrees {
    Never,
    OnWhole,
    OnReal,
}

impl Agrees {
    /// Of the function of this name.
    pub fn of(name: &str) -> Agrees {
        // Those of the second lines are compositions here, so a call costs many operations.
        const REAL: &str = "add subtract multiply divide floor_divide remainder equal not_equal less less_equal greater greater_equal \
            copysign divmod heaviside logical_and logical_or logical_xor modf nextafter spacing";
        const WHOLE: &str = "power left_shift right_shift bitwise_and bitwise_or bitwise_xor \
            bitwise_count fmax fmin gcd lcm";
        let is_among = |names: &str| names.split(' ').any(|known| known == name);
        match () {
            () if is_among(REAL) => Agrees::OnReal,
            () if is_among(WHOLE) => Agrees::OnWhole,
            () => Agrees::Never,
        }
    }
}

/// The kind of an operand of [`of_few`].
#[derive(Clone, Copy)]
struct Kind {
    /// The stack of an array.
    home: Option<Shared>,
    is_whole: bool,
}

impl Kind {
    /// `None` for complex numbers, and for objects that Python has to look at.
    fn of(object: &Bound<'_, PyAny>) -> Option<Kind> {
        if let Ok(array) = object.cast_exact::<Array>() {
            let this = array.get();
            let fits = !this.dtype.is_complex() && !this.is_scalar() && this.view.is_contiguous();
            return fits.then_some(Kind { home: Some(this.context), is_whole: this.dtype.is_int() });
        }
        let is_whole = object.is_exact_instance_of::<PyInt>() || object.is_exact_instance_of::<PyBool>();
        let is_number = is_whole || object.is_exact_instance_of::<PyFloat>();
        is_number.then_some(Kind { home: None, is_whole })
    }

    /// The operand as NumPy's function gets it.
    fn shown<'py>(self, object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match object.cast_exact::<Array>() {
            Ok(array) => shown(array, (array.get().context.little / 8) as i64),
            Err(_) => Ok(Some(object.clone())),
        }
    }
}

/// Are fewer than `most` numbers drawn, where `size` is the place of that argument?
fn draws_fewer(arguments: &Arguments<'_, '_>, size: Option<usize>, most: i64) -> bool {
    let py = arguments.py();
    let Some(place) = size else { return true };
    let size = arguments.unnamed().get(place).map(|size| size.bind(py)).or_else(|| arguments.get(intern!(py, "size")));
    let extent = |object: &Bound<'_, PyAny>| object.extract::<i64>().ok();
    let count = match size {
        None => Some(1),
        Some(size) if size.is_none() => Some(1),
        Some(size) => match size.cast_exact::<PyTuple>() {
            Ok(shape) => shape.iter().try_fold(1i64, |count, one| count.checked_mul(extent(&one)?)),
            Err(_) => extent(size),
        },
    };
    count.is_some_and(|count| (0..most).contains(&count))
}

/// Are the arguments without names a text and then arrays, with at most `most` products of an element of each?
fn is_few_products(arguments: &Arguments<'_, '_>, most: i64) -> bool {
    let py = arguments.py();
    let [text, arrays @ ..] = arguments.unnamed() else { return false };
    if arrays.len() == 1 && text.bind(py).extract::<&str>().is_ok_and(only_moves) {
        return false;
    }
    let products = arrays.iter().try_fold(1i64, |products, object| {
        products.checked_mul(object.bind(py).cast_exact::<Array>().ok()?.get().len())
    });
    text.bind(py).is_exact_instance_of::<PyString>()
        && !arrays.is_empty()
        && products.is_some_and(|products| products <= most)
}

/// Does a sum of products of one array add nothing? Its result is a view then.
fn only_moves(text: &str) -> bool {
    let letters = |text: &'_ str| text.chars().filter(char::is_ascii_alphabetic).collect::<Vec<_>>();
    match text.split_once("->") {
        Some((from, to)) => letters(from).into_iter().all(|letter| to.contains(letter)),
        None => letters(text).into_iter().all(|letter| text.matches(letter).count() == 1),
    }
}

/// Has the call options by which NumPy's function would change an argument, or that NumPy does not know?
fn changes(arguments: &Arguments<'_, '_>) -> bool {
    let py = arguments.py();
    arguments.named() > 0
        && (arguments.get(intern!(py, "copy")).is_some()
            || arguments.get(intern!(py, "out")).is_some_and(|out| !out.is_none())
            || arguments.get(intern!(py, "descending")).is_some())
}

/// The context of the first array among the arguments, or that of new arrays.
fn context_of(arguments: &Arguments<'_, '_>) -> PyResult<Shared> {
    let py = arguments.py();
    let found =
        arguments.all().iter().find_map(|object| Some(object.bind(py).cast_exact::<Array>().ok()?.get().context));
    found.map_or_else(|| context::current(py), Ok)
}

/// Is it a number of Python or NumPy, or None?
fn is_number(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_none()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyComplex>()
        || matches!(scalar_type(object), Some(DType::F64 | DType::I64 | DType::Bool))
}

/// Are all elements of a list or tuple numbers?
fn holds_numbers(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    for part in object.try_iter()? {
        if !is_number(&part?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The dimensions of a view from the outermost in memory to the innermost. `None` if elements are repeated or interleaved so that this is
/// not certain, and for Fortran's order: NumPy's functions ask whether an array has that without gaps, as its copy would.
fn axes_in_memory(view: &View) -> Option<Vec<usize>> {
    let mut axes: Vec<usize> = (0..view.rank()).collect();
    let step = |axis: usize| view.stride()[axis].abs();
    axes.sort_by_key(|&axis| std::cmp::Reverse(step(axis)));
    let several = || axes.iter().copied().filter(|&axis| view.shape()[axis] > 1);
    let is_certain = several().map(step).chain([0]).is_sorted_by(|outer, inner| outer > inner);
    let in_fortran = several().is_sorted_by(|outer, inner| outer > inner);
    (is_certain && !in_fortran).then_some(axes)
}

/// A copy of an array of at most `most` elements, as one of NumPy with the same order of dimensions in memory. `None` if its data is
/// not computed yet.
pub fn shown<'py>(array: &Bound<'py, Array>, most: i64) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (py, this) = (array.py(), array.get());
    if !is_plain(this) || this.view.is_empty() || this.len() > most.min(MOST) {
        return Ok(None);
    }
    if this.is_scalar() {
        let value = this.context.recorder.hand().and_then(|hand| hand.value(this.store(), this.view.start()));
        return value.map(|value| numpy_scalar(py, &value)).transpose();
    }
    if this.view.is_contiguous() && this.dtype != DType::Bool && this.here().is_some() {
        let made = new_array(py, this.numpy_dtype(py)?, this.view.shape(), Order::C)?;
        // Nobody else uses a little array while this thread is attached, so its elements are copied without the lock.
        let from = this.here().and_then(|here| this.context.recorder.look_here(here, this.view.start()));
        let Some(from) = from else { return Ok(None) };
        if let Some(to) = HostArray::of(&made) {
            // SAFETY: their elements lie side by side in both, which are as long.
            unsafe { std::ptr::copy_nonoverlapping(from, to.data(), this.len() as usize * this.dtype.size()) };
        }
        return Ok(Some(made));
    }
    let in_fortran = this.is_in_fortran();
    let order = if in_fortran { Order::Fortran } else { Order::C };
    let axes = match in_fortran || is_ordered_as_in_c(&this.view) {
        true => (0..this.view.rank()).collect(),
        false => match axes_in_memory(&this.view) {
            Some(axes) => axes,
            None => return Ok(None),
        },
    };
    let view = this.view.transpose(&axes).map_err(value_error)?;
    let made = new_array(py, this.numpy_dtype(py)?, view.shape(), order)?;
    let Some(to) = HostArray::of(&made).map(|host| host.data()) else { return Ok(None) };
    let Some(hand) = this.context.recorder.hand() else { return Ok(None) };
    // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
    let Some(from) = (unsafe { Strided::of(&hand, this) }) else { return Ok(None) };
    // SAFETY: as above, for the same elements.
    let from = unsafe { Strided::at(from.data(), &view, this.dtype.size()) };
    let count = this.len() as usize;
    match (this.dtype, in_fortran) {
        // Any byte but 0 is true, and NumPy's truth values are 0 and 1.
        (DType::Bool, _) => truths_into(from, in_fortran, to),
        // SAFETY: their elements lie side by side in both, which are as long.
        (dtype, true) => unsafe { std::ptr::copy_nonoverlapping(from.data(), to, count * dtype.size()) },
        (dtype, false) => sized!(dtype, copy_into(from, to)),
    }
    drop(hand);
    if axes.is_sorted() {
        return Ok(Some(made));
    }
    let mut places = vec![0; axes.len()];
    axes.iter().enumerate().for_each(|(place, &axis)| places[axis] = place);
    made.call_method1(intern!(py, "transpose"), (places,)).map(Some)
}

/// Copies truth values to `to`, which has room for all of them, in the order of memory or in that of C.
fn truths_into(from: Strided<'_>, in_memory: bool, to: *mut u8) {
    // SAFETY: they are addresses of truth values, and there is room for as many.
    let put = |(place, at): (usize, *const Truth)| unsafe { to.add(place).write(u8::from((*at).get())) };
    match in_memory {
        true => (0..from.view().len() as usize)
            .map(|place| (place, from.data().cast::<Truth>().wrapping_add(place)))
            .for_each(put),
        false => from.addresses::<Truth>().enumerate().for_each(put),
    }
}

/// NumPy's result, with arrays of bh on a stack in the places of its arrays.
pub fn lifted<'py>(result: Bound<'py, PyAny>, home: Shared) -> PyResult<Bound<'py, PyAny>> {
    let py = result.py();
    if let Some(host) = HostArray::of(&result) {
        // A part of a larger array stays one.
        let copy = if host.is_plain() { copied(home, &result) } else { None };
        return match copy {
            Some(array) => Ok(array.into_any()),
            None => {
                let is_alone = host.is_alone();
                lifted_by_python(result, is_alone, home)
            }
        };
    }
    if let Ok(parts) = result.cast_exact::<PyTuple>() {
        let parts = parts.iter().map(|part| lifted(part, home)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyTuple::new(py, parts)?.into_any());
    }
    if let Ok(parts) = result.cast::<PyTuple>()
        && result.hasattr(intern!(py, "_fields"))?
    {
        let parts = parts.iter().map(|part| lifted(part, home)).collect::<PyResult<Vec<_>>>()?;
        return result.get_type().call1(PyTuple::new(py, parts)?);
    }
    let has_parts =
        result.is_instance_of::<PyTuple>() || result.is_instance_of::<PyList>() && !holds_only_numbers(&result)?;
    if has_parts { lifted_by_python(result, false, home) } else { Ok(result) }
}

/// Are there only numbers in a list, also in lists in it?
fn holds_only_numbers(list: &Bound<'_, PyAny>) -> PyResult<bool> {
    for part in list.try_iter()? {
        let part = part?;
        let is_plain = is_number(&part) || part.is_exact_instance_of::<PyList>() && holds_only_numbers(&part)?;
        if !is_plain {
            return Ok(false);
        }
    }
    Ok(true)
}

fn lifted_by_python<'py>(result: Bound<'py, PyAny>, is_alone: bool, home: Shared) -> PyResult<Bound<'py, PyAny>> {
    match LIFT.get() {
        Some(lift) => lift.bind(result.py()).call1((&result, is_alone, Stack::of(home))),
        None => Ok(result),
    }
}
