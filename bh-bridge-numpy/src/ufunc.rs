//! Universal functions: a table says which opcode and which types serve a call. The first call with operands of some types asks
//! Python for their entry; calls that the table cannot serve go to Python.

use crate::arguments::{self, Arguments, EntryPoint};
use crate::array::Array;
use crate::by_class;
use crate::by_numpy::{self, Agrees};
use crate::composed::{Composition, composed};
use crate::context::Shared;
use crate::error::{exception, value_error};
use crate::fold::{Description, Folds, Given, plain_fold};
use crate::layout::Order;
use crate::location::with_location;
use crate::operand::{Number, Operand, classify, is_number};
use crate::record::cast_at_hand;
use crate::scalar::give;
use crate::shared_view::contiguous;
use crate::text::intern;
use crate::warning::{self, Sign};
use bh_bytecode::{Complex, Constant, DType, Opcode, View};
use bh_core::Result;
use bh_recorder::{Input, Known, Location};
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::f64::consts::PI;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The most inputs of a function that the table serves.
const INPUTS: usize = 2;

/// The operands of the opcode for a function of one operand.
#[derive(Clone, Copy)]
enum Form {
    /// The operands as they are.
    Plain,
    /// The operand twice.
    Doubled,
    /// -0 and the operand: -0 − x is the negative of every number.
    Negated,
    /// One and the operand.
    Inverted,
    /// The number of radians in a degree, and the operand.
    Radians,
    /// The number of degrees in a radian, and the operand.
    Degrees,
}

impl Form {
    const NAMES: [(&str, Form); 6] = [
        ("plain", Form::Plain),
        ("doubled", Form::Doubled),
        ("negated", Form::Negated),
        ("inverted", Form::Inverted),
        ("radians", Form::Radians),
        ("degrees", Form::Degrees),
    ];

    /// The number that comes before the operand.
    fn number(self, dtype: DType) -> Constant {
        match self {
            Form::Inverted => Constant::from_value(1u8).cast(dtype),
            Form::Radians => Constant::from_value(PI / 180.0).cast(dtype),
            Form::Degrees => Constant::from_value(180.0 / PI).cast(dtype),
            _ if dtype.is_complex() => Constant::from_value(Complex::new(-0.0f64, -0.0)).cast(dtype),
            _ => Constant::from_value(-0.0f64).cast(dtype),
        }
    }
}

/// How calls with operands of these types are recorded.
#[derive(Clone, Copy)]
struct Entry {
    opcode: Opcode,
    form: Form,
    sign: Sign,
    /// The type that all inputs are converted to.
    inputs: DType,
    output: DType,
}

/// Bit of an entry that is known; the others are its fields.
const KNOWN: u64 = 1 << 63;
/// An entry of types that Python serves.
const UNSERVED: u64 = 1;

/// Where an entry has how errors of its operation show.
const SIGNS: [Sign; 3] = [Sign::Flags, Sign::Result, Sign::Divisor];

impl Entry {
    fn pack(self) -> u64 {
        let form = (self.form as u64) << 32;
        let sign = (self.sign as u64) << 36;
        KNOWN | sign | form | u64::from(self.opcode.0) << 16 | (self.inputs as u64) << 8 | self.output as u64
    }

    fn unpack(bits: u64) -> Option<Entry> {
        if bits & KNOWN == 0 {
            return None;
        }
        let (inputs, output) = (DType::from_code((bits >> 8) as u8)?, DType::from_code(bits as u8)?);
        let (_, form) = Form::NAMES.get((bits >> 32 & 15) as usize)?;
        let sign = SIGNS[(bits >> 36 & 3) as usize];
        Some(Entry { opcode: Opcode((bits >> 16) as u16), form: *form, sign, inputs, output })
    }
}

/// The functions of Python that look up the entries of the tables.
struct Entries {
    /// `f(function, codes)`: how calls of NumPy's function with operands of these codes are recorded; None if Python serves them.
    calls: Py<PyAny>,
    /// `f(function, code)`: how arrays of the type are folded, or None.
    folds: Py<PyAny>,
}

static ENTRIES: OnceLock<Entries> = OnceLock::new();

/// Sets the functions that look up the entries of the tables.
#[pyfunction]
fn set_entries(calls: Py<PyAny>, folds: Py<PyAny>) {
    // A second call, of a reloaded package, changes nothing.
    let _ = ENTRIES.set(Entries { calls, folds });
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Ufunc>()?;
    module.add_function(wrap_pyfunction!(set_entries, module)?)
}

/// A universal function. The Python class `bh.ufunc` completes it.
#[pyclass(frozen, module = "bh._native", subclass)]
pub struct Ufunc {
    entry: EntryPoint,
    inputs: usize,
    /// NumPy's.
    numpy: Py<PyAny>,
    table: Box<[AtomicU64]>,
    folds: Folds,
    /// How the function is composed, if that is served.
    composition: Option<Composition>,
    /// Where NumPy's has the same bits.
    agrees: Agrees,
    /// The method by which the second operand of the function's operator says what the result is.
    reflected: Option<Py<PyString>>,
}

#[pymethods]
impl Ufunc {
    /// A function of `inputs` inputs, without known calls, and NumPy's; and the reflected method of its operator, if it has one.
    #[new]
    #[pyo3(signature = (inputs, numpy, reflected=None))]
    fn new(inputs: usize, numpy: Bound<'_, PyAny>, reflected: Option<Py<PyString>>) -> PyResult<Ufunc> {
        let size = if inputs <= INPUTS { 1 << (4 * inputs) } else { 0 };
        let table = (0..size).map(|_| AtomicU64::new(0)).collect();
        let name = numpy.getattr("__name__")?.extract::<String>()?;
        let (composition, agrees) = (Composition::of(&name), Agrees::of(&name));
        let (numpy, folds) = (numpy.unbind(), Folds::default());
        Ok(Ufunc { entry: ENTRY, inputs, numpy, table, folds, composition, agrees, reflected })
    }

    /// Folds the elements along axes with the function.
    #[pyo3(signature = (array, *arguments, **keywords))]
    fn reduce<'py>(
        slf: &Bound<'py, Self>,
        array: &Bound<'py, PyAny>,
        arguments: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if let Ok(own) = array.cast_exact::<Array>()
            && let Some((axis, keepdims)) = plain_fold(arguments, keywords)?
            && let Some(result) = slf.get().folded(py, own.get(), &axis, &keepdims)?
        {
            return give(py, result);
        }
        let all = PyTuple::new(py, std::iter::once(array.clone()).chain(arguments.iter()).collect::<Vec<_>>())?;
        slf.call_method("_reduce", all, keywords)
    }

    /// Calls of the older form.
    #[pyo3(signature = (*arguments, **keywords))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        arguments::with(arguments, keywords, |arguments| Ufunc::run(slf, arguments))
    }

    /// Has the objects of the class of this one called without tuples of their arguments.
    fn _enter(slf: &Bound<'_, Self>) -> PyResult<()> {
        let offset = (&raw const slf.get().entry).addr() - slf.as_ptr().addr();
        arguments::enter(&slf.get_type(), &slf.py().get_type::<Ufunc>(), offset, false)
    }
}

/// The entry of calls.
///
/// # Safety
/// `ufunc` must be an object of this class, and the arguments be as [`Arguments::new`] asks: this is called by Python
/// only.
unsafe fn call_ufunc(
    py: Python<'_>,
    ufunc: *mut ffi::PyObject,
    all: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> PyResult<*mut ffi::PyObject> {
    // SAFETY: the object is a universal function, and the arguments are those of Python's call, which outlives them, as
    // `# Safety` asks.
    let (ufunc, arguments) =
        unsafe { (Borrowed::from_ptr(py, ufunc).cast_unchecked::<Ufunc>(), Arguments::new(py, all, count, names)) };
    Ufunc::run(&ufunc, arguments).map(Bound::into_ptr)
}

const ENTRY: EntryPoint =
    pyo3::impl_::trampoline::get_trampoline_function!(fastcall_cfunction_with_keywords, call_ufunc);

impl Ufunc {
    /// Is it a function of two operands?
    pub fn takes_two(&self) -> bool {
        self.inputs == 2
    }

    /// NumPy's function.
    pub fn numpy<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.numpy.bind(py)
    }

    /// The method by which the second operand of the function's operator says what the result is.
    pub fn reflected(&self) -> Option<&Py<PyString>> {
        self.reflected.as_ref()
    }

    /// Where NumPy's function has the same bits.
    pub fn agrees(&self) -> Agrees {
        self.agrees
    }

    /// Any call.
    #[inline]
    fn run<'py>(slf: &Bound<'py, Self>, arguments: Arguments<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let (py, this, all, named) = (slf.py(), slf.get(), arguments.unnamed(), arguments.named());
        if all.len() == this.inputs && named == 0 {
            if all.iter().all(|object| is_number(object.bind(py))) {
                // Of numbers NumPy makes numbers.
                return arguments.call(this.numpy.bind(py));
            }
            if let Some(result) = this.call_list(py, all)? {
                return give(py, result);
            }
            let copies = crate::foreign::arguments(py, all, crate::context::current(py).ok());
            if let Some(copies) = &copies
                && let Some(result) = this.call_list(py, copies)?
            {
                return give(py, result);
            }
            let by_numpy = match copies.as_deref().unwrap_or(all) {
                [a] => by_numpy::of_few(py, this, [a.bind(py)])?,
                [a, b] => by_numpy::of_few(py, this, [a.bind(py), b.bind(py)])?,
                _ => None,
            };
            if let Some(result) = by_numpy {
                return Ok(result);
            }
            if let Some(result) = by_class::universal(py, this, all, true)? {
                return Ok(result);
            }
        } else if all.len() + named == this.inputs + 1 {
            let (inputs, rest) = all.split_at(this.inputs.min(all.len()));
            let out = rest.first().map(|out| out.bind(py)).or_else(|| arguments.get(intern!(py, "out")));
            let out = out.and_then(|out| out.cast_exact::<Array>().ok());
            if let Some(out) = out
                && this.call_with_output(py, inputs, out.get())?
            {
                return Ok(out.clone().into_any());
            }
        }
        slf.call_method("_call", arguments.as_objects()?, None)
    }
}

impl Ufunc {
    /// Records a reduction along axes. `None` if the call needs Python.
    pub fn folded(&self, py: Python<'_>, array: &Array, axis: &Given<'_>, keep: &Given<'_>) -> PyResult<Option<Array>> {
        let learn = |code: DType| -> PyResult<Option<Description>> {
            let Some(entries) = ENTRIES.get() else { return Ok(None) };
            entries.folds.bind(py).call1((&self.numpy, code as u8))?.extract()
        };
        let Some((result, axes)) = self.folds.reduce(py, array, axis, keep, learn)? else { return Ok(None) };
        if warning::flags() != 0 {
            warning::of_fold(py, &self.numpy, array, axes, &result)?;
        }
        Ok(Some(result))
    }

    /// Records a call into a new array. `None` if the call needs Python.
    #[inline]
    pub fn call<'py, const N: usize>(
        &self,
        py: Python<'py>,
        arguments: [&Bound<'py, PyAny>; N],
    ) -> PyResult<Option<Array>> {
        let Some(call) = self.prepare(py, arguments)? else {
            let composition = self.composition.filter(|_| !warning::errors_asked() && crate::shortcut::taken());
            let composed = composition.map(|composition| composed(composition, [arguments[0], arguments[N - 1]]));
            return composed.unwrap_or(Ok(None));
        };
        let sign = call.entry.sign;
        let result = call.record_new(py)?;
        if sign != Sign::Flags || warning::flags() != 0 {
            warning::of_call(py, &self.numpy, &arguments, sign, &result)?;
        }
        Ok(Some(result))
    }

    /// As [`Ufunc::call`], of any number of arguments.
    #[inline]
    pub fn call_list(&self, py: Python<'_>, arguments: &[Py<PyAny>]) -> PyResult<Option<Array>> {
        match (self.inputs, arguments) {
            (1, [a]) => self.call(py, [a.bind(py)]),
            (2, [a, b]) => self.call(py, [a.bind(py), b.bind(py)]),
            _ => Ok(None),
        }
    }

    /// Records a call into the array that the user gave. `false` if the call needs Python.
    fn call_with_output(&self, py: Python<'_>, arguments: &[Py<PyAny>], out: &Array) -> PyResult<bool> {
        match (self.inputs, arguments) {
            _ if !out.is_writeable() || out.warns() || out.is_scalar() => Ok(false),
            (1, [a]) => self.call_into(py, [a.bind(py)], out),
            (2, [a, b]) => self.call_into(py, [a.bind(py), b.bind(py)], out),
            _ => Ok(false),
        }
    }

    /// Records a call into an array. `false` if the call needs Python.
    pub fn call_into<'py, const N: usize>(
        &self,
        py: Python<'py>,
        arguments: [&Bound<'py, PyAny>; N],
        out: &Array,
    ) -> PyResult<bool> {
        match self.prepare(py, arguments)? {
            Some(call)
                if out.link.is_none() && call.entry.output == out.dtype && std::ptr::eq(call.context, out.context) =>
            {
                let sign = call.entry.sign;
                // Functions tell of errors by their operands, of which the result replaces none of these.
                let kept = if sign == Sign::Result { warning::kept(arguments, out)? } else { None };
                match call.record_into(py, out) {
                    // Elements that share memory are Python's.
                    Err(_) if !out.view.is_injective() => return Ok(false),
                    done => done?,
                }
                match kept {
                    Some(kept) => warning::of_call(py, &self.numpy, &kept.each_ref(), sign, out)?,
                    None if sign == Sign::Flags && warning::flags() == 0 => (),
                    None => warning::of_call_into(py, &self.numpy, arguments[N - 1], sign, out)?,
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    #[inline]
    fn prepare<'a, const N: usize>(
        &self,
        py: Python<'_>,
        arguments: [&'a Bound<'_, PyAny>; N],
    ) -> PyResult<Option<Call<'a, N>>> {
        if !crate::shortcut::taken() || warning::errors_asked() {
            return Ok(None);
        }
        let (mut place, mut first) = (0, None::<Shared>);
        let mut arrays = [None; N];
        let mut given = [const { Number::Bool(false) }; N];
        for (at, argument) in arguments.into_iter().enumerate() {
            let code = match classify(argument) {
                Some((code, Operand::Array(array))) => {
                    if first.is_some_and(|first| !std::ptr::eq(first, array.context)) {
                        return Ok(None);
                    }
                    first = Some(array.context);
                    arrays[at] = Some(array);
                    code
                }
                Some((code, Operand::Number(number))) => {
                    given[at] = number;
                    code
                }
                None => return Ok(None),
            };
            place = place << 4 | usize::from(code);
        }
        let (Some(context), Some(entry)) = (first, self.entry_at::<N>(py, place)?) else { return Ok(None) };
        let mut numbers = [const { Constant { bits: [0; 2], dtype: 0, reserved: [0; 7] } }; N];
        for at in 0..N {
            if arrays[at].is_none() {
                let Some(number) = given[at].constant(entry.inputs) else { return Ok(None) };
                numbers[at] = number;
            }
        }
        Ok(Some(Call { entry, arrays, numbers, context }))
    }

    /// The entry at a place of the table, which is four bits for the code of each of `N` operands.
    #[inline]
    fn entry_at<const N: usize>(&self, py: Python<'_>, place: usize) -> PyResult<Option<Entry>> {
        match self.table.get(place).map(|entry| entry.load(Ordering::Relaxed)) {
            Some(0) => self.learn::<N>(py, place),
            bits => Ok(bits.and_then(Entry::unpack)),
        }
    }

    /// Asks Python for an entry.
    #[cold]
    fn learn<const N: usize>(&self, py: Python<'_>, place: usize) -> PyResult<Option<Entry>> {
        let Some(entries) = ENTRIES.get() else { return Ok(None) };
        let codes = PyTuple::new(py, (0..N).map(|at| place >> (4 * (N - 1 - at)) & 15))?;
        let found: Option<(String, u8, u8, String)> = entries.calls.bind(py).call1((&self.numpy, codes))?.extract()?;
        let wrong = || PyValueError::new_err("no such opcode, type or form");
        let entry = match found {
            None => None,
            Some((opcode, inputs, output, form)) => {
                let opcode = Opcode::from_name(&opcode).ok_or_else(wrong)?;
                let form = Form::NAMES.into_iter().find(|(name, _)| *name == form).ok_or_else(wrong)?.1;
                let inputs = DType::from_code(inputs).ok_or_else(wrong)?;
                let output = DType::from_code(output).ok_or_else(wrong)?;
                Some(Entry { opcode, form, sign: warning::sign_of(opcode, inputs), inputs, output })
            }
        };
        self.table[place].store(entry.map_or(UNSERVED, Entry::pack), Ordering::Relaxed);
        Ok(entry)
    }
}

/// A call that the table serves.
struct Call<'a, const N: usize> {
    entry: Entry,
    arrays: [Option<&'a Array>; N],
    /// Those operands that are no arrays.
    numbers: [Constant; N],
    context: Shared,
}

impl<const N: usize> Call<'_, N> {
    fn arrays(&self) -> impl Iterator<Item = (usize, &Array)> {
        self.arrays.iter().enumerate().filter_map(|(position, array)| array.map(|array| (position, array)))
    }

    /// The shape that the operands broadcast to: a view of it in C order from element 0.
    #[inline]
    fn shape(&self) -> PyResult<Arc<View>> {
        let mut shape: Option<Arc<View>> = None;
        for (_, array) in self.arrays() {
            shape = Some(match shape {
                None => array.view.shared(),
                Some(other) if other.shape() == array.view.shape() => other,
                Some(other) => broadcast(&other, &array.view)?,
            });
        }
        match shape {
            Some(view) if is_plain(&view) => Ok(view),
            Some(view) => contiguous(view.shape()).map_err(value_error),
            None => Ok(Arc::default()),
        }
    }

    /// Records the call by `record`, which gets the inputs in the type of the entry.
    #[inline]
    fn record<R>(&self, py: Python<'_>, record: impl FnOnce(&[Input], Location<'_>) -> Result<R>) -> PyResult<R> {
        let mut inputs = self.numbers.map(Input::Constant);
        self.arrays().for_each(|(position, array)| inputs[position] = Input::Array(array.id()));
        let recorded = with_location(py, |place| {
            let recorder = &self.context.recorder;
            let mut temporaries = [None; N];
            let mut converted = Ok(());
            for (position, array) in self.arrays() {
                if array.dtype != self.entry.inputs {
                    let from = [Input::Array(array.id())];
                    match recorder.operate_new(Opcode::Copy, 0, Some(self.entry.inputs), &from, place) {
                        Ok(id) => (inputs[position], temporaries[position]) = (Input::Array(id), Some(id)),
                        Err(error) => converted = Err(error),
                    }
                }
            }
            let number = || Input::Constant(self.entry.form.number(self.entry.inputs));
            let result = converted.and_then(|()| match self.entry.form {
                Form::Plain => record(&inputs, place),
                Form::Doubled => record(&[inputs[0]; 2], place),
                _ => record(&[number(), inputs[0]], place),
            });
            temporaries.into_iter().flatten().for_each(|temporary| recorder.free_later(temporary));
            result
        });
        recorded.map_err(exception)
    }

    /// Calls `f` with what the opcode is given, if what it does, on `elements` elements, may be little.
    #[inline]
    fn at_hand<R>(&self, elements: i64, f: impl FnOnce(Opcode, &[Known<'_>]) -> Option<R>) -> Option<R> {
        let Entry { opcode, form, inputs, output, .. } = self.entry;
        if elements as u64 * output.size() as u64 > self.context.little {
            return None;
        }
        let mut converted = [const { None }; N];
        for (position, array) in self.arrays() {
            if array.dtype != inputs {
                converted[position] = Some(cast_at_hand(array, inputs)?);
            }
        }
        let mut known = [Known::Number(&self.numbers[0]); N];
        for (position, array) in self.arrays() {
            let array = converted[position].as_ref().unwrap_or(array);
            known[position] = Known::Part(array.store(), &array.view);
        }
        for (position, number) in
            self.numbers.iter().enumerate().filter(|(position, _)| self.arrays[*position].is_none())
        {
            known[position] = Known::Number(number);
        }
        match form {
            Form::Plain => f(opcode, &known),
            Form::Doubled => f(opcode, &[known[0]; 2]),
            _ => f(opcode, &[Known::Number(&form.number(inputs)), known[0]]),
        }
    }

    #[inline]
    fn record_new(&self, py: Python<'_>) -> PyResult<Array> {
        match Order::of(&self.arrays) {
            None => self.record_plain(py),
            Some(order) => self.record_in(py, &order),
        }
    }

    /// Records the call into a new array with an order in memory other than C's.
    #[cold]
    fn record_in(&self, py: Python<'_>, order: &Order) -> PyResult<Array> {
        // Broadcasting errors are reported for the operands as they are.
        self.shape()?;
        let mut turned = [const { None }; N];
        for (position, array) in self.arrays() {
            turned[position] = Some(order.turned(array)?);
        }
        let arrays = turned.each_ref().map(Option::as_ref);
        order.back(Call { arrays, ..*self }.record_plain(py)?)
    }

    /// Records the call into a new array in C order.
    #[inline]
    fn record_plain(&self, py: Python<'_>) -> PyResult<Array> {
        let view = self.shape()?;
        let Entry { opcode, output, .. } = self.entry;
        let recorder = &self.context.recorder;
        let made = |opcode, known: &[Known<'_>]| recorder.make_at_hand(opcode, output, known, view.shape());
        if let Some(id) = self.at_hand(view.len(), made) {
            return Ok(Array::result(self.context, id, output, view));
        }
        let id = self.record(py, |inputs, place| recorder.operate_new(opcode, 0, Some(output), inputs, place))?;
        Ok(Array::result(self.context, id, output, view))
    }

    fn record_into(&self, py: Python<'_>, out: &Array) -> PyResult<()> {
        let shape = self.shape()?;
        if shape.shape() != out.view.shape() {
            check_output(&shape, &out.view)?;
        }
        let recorder = &self.context.recorder;
        let changed = |opcode, known: &[Known<'_>]| recorder.change_at_hand(opcode, (out.store(), &out.view), known);
        if self.at_hand(out.len(), changed).is_some() {
            return Ok(());
        }
        self.record(py, |inputs, place| recorder.operate(self.entry.opcode, 0, out.id(), inputs, place))
    }
}

/// Is this the view that a new array of its shape has?
#[inline]
fn is_plain(view: &View) -> bool {
    let mut step = 1i64;
    view.start() == 0
        && view.shape().iter().zip(view.stride()).rev().all(|(&extent, &stride)| {
            let plain = stride == step;
            step = step.saturating_mul(extent.max(1));
            plain
        })
}

/// Shapes as NumPy writes them in this message.
pub fn shown(view: &View) -> String {
    let extents: Vec<String> = view.shape().iter().map(i64::to_string).collect();
    format!("({}{})", extents.join(","), if view.rank() == 1 { "," } else { "" })
}

/// The shape that two shapes broadcast to, as a view of it.
#[cold]
pub fn broadcast(a: &View, b: &View) -> PyResult<Arc<View>> {
    let rank = a.rank().max(b.rank());
    let extent = |view: &View, dim: usize| (dim + view.rank()).checked_sub(rank).map_or(1, |own| view.shape()[own]);
    let mut shape = Vec::with_capacity(rank);
    for dim in 0..rank {
        match (extent(a, dim), extent(b, dim)) {
            (x, y) if x == y || y == 1 => shape.push(x),
            (1, y) => shape.push(y),
            _ => {
                let text = format!("operands could not be broadcast together with shapes {} {} ", shown(a), shown(b));
                return Err(PyValueError::new_err(text));
            }
        }
    }
    contiguous(&shape).map_err(value_error)
}

#[cold]
fn check_output(inputs: &View, out: &View) -> PyResult<()> {
    let fits = broadcast(inputs, out).is_ok_and(|both| both.shape() == out.shape());
    if fits {
        return Ok(());
    }
    let text = format!(
        "non-broadcastable output operand with shape {} doesn't match the broadcast shape {}",
        shown(out),
        shown(&*broadcast(inputs, out)?)
    );
    Err(PyValueError::new_err(text))
}
