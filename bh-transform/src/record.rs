//! Derivatives of what a recorder records: a tape in its submission, and the adjoint program recorded like any other.

use crate::adjoints::LEAST;
use crate::bounded::{Bounded, Plan};
use crate::disk::{Disk, Stored};
use crate::emit::{Emit, Place, Value, contiguous};
use crate::history::Home;
use crate::identities::ByBase;
use crate::reverse::{Progress, Sweep, lost};
use crate::rewind::{Owner, Rewind, Stage, Values};
use crate::shared::Shared;
use crate::tape::Tape;
use bh_bytecode::{Base, BatchRef, Constant, DType, Instr, Opcode, View};
use bh_core::abi::status;
use bh_core::environment;
use bh_core::{Error, Result};
use bh_recorder::{Array, ArrayId, ArrayInfo, Input, Location, Recorder, Tape as _};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A stretch of a program that is being taped, to be differentiated by some arrays' values at its begin.
pub struct Taping {
    recorder: Arc<Recorder>,
    tape: Shared<Tape>,
    number: u64,
    ended: bool,
}

impl Taping {
    /// Begins to tape what the recorder records. Each of the arguments has to be the whole of a base of its own, which nothing
    /// outside of the stretch writes.
    /// `bound`: how many bytes the derivative may take beside the program, if there is a bound, and where states go that do not fit
    /// in memory.
    pub fn begin(
        recorder: &Arc<Recorder>,
        arguments: &[ArrayId],
        bound: Option<(u64, Option<Arc<Disk>>)>,
    ) -> Result<Taping> {
        if bound.as_ref().is_some_and(|(_, disk)| disk.is_some()) && recorder.is_taped() {
            let text = "disk: a derivative inside of another derivative or of vmap keeps its states in memory";
            return Err(Error::new(status::UNSUPPORTED, text));
        }
        let bases = arguments.iter().map(|&array| recorder.info(array).map(|info| info.base));
        let follows_copies = environment::variable("BH_TAPE").is_some_and(|value| value == "all");
        let mut tape = Tape::new(bases.collect::<Result<Vec<u64>>>()?);
        tape.follows_copies = follows_copies;
        let tape = Shared::new(match bound {
            Some((bound, disk)) => tape.within(Bounded::new(bound, disk, None)),
            None => tape,
        });
        let number = recorder.begin_tape(tape.watcher(), arguments)?;
        Ok(Taping { recorder: recorder.clone(), tape, number, ended: false })
    }

    /// Lets the first values that an operation gives to a new array count as constant.
    pub fn stop(&self, array: ArrayId) -> Result<()> {
        let base = self.recorder.info(array)?.base;
        self.tape.lock().stop(base);
        Ok(())
    }

    /// Lets new arrays, each the whole of a base of its own, count as results of a function whose adjoint the caller knows. Returns
    /// the place on the tape, and which of the function's inputs depend on the arguments. Fails if the results depend on the arguments
    /// by what was recorded.
    pub fn call(&self, inputs: &[ArrayId], outputs: &[ArrayId]) -> Result<(usize, Vec<Option<Window>>)> {
        // The tape sees all that comes before.
        self.recorder.flush()?;
        let window = |&array: &ArrayId| Window::of(&self.recorder, array);
        let inputs = inputs.iter().map(window).collect::<Result<Vec<Window>>>()?;
        let outputs = outputs.iter().map(window).collect::<Result<Vec<Window>>>()?;
        let mut tape = self.tape.lock();
        if outputs.iter().any(|output| tape.depends(output.base.id)) {
            let text = "the value of a custom_vjp depends on arrays that are not among its arguments";
            return Err(Error::new(status::ARGUMENT, text));
        }
        let depending = inputs.into_iter().map(|input| tape.depends(input.base.id).then_some(input)).collect();
        outputs.iter().for_each(|output| tape.start(output.base.id));
        Ok((tape.mark(), depending))
    }

    /// Ends the stretch. `results`: arrays whose derivatives will be asked for. `later`: the program may go on before they are, so
    /// that the values of arrays that it still has are copied. Fails where an operation's derivative is not known.
    pub fn end(mut self, results: &[ArrayId], later: bool) -> Result<Pullback> {
        self.ended = true;
        self.recorder.end_tape(self.number)?;
        let mut tape = self.tape.take_all();
        let owned = |id: ArrayId| Array::new(self.recorder.clone(), id);
        let arrays: HashMap<ArrayId, Array> = tape.arrays().map(|id| (id, owned(id))).collect();
        let plan = tape.end();
        let results =
            results.iter().map(|&array| Window::of(&self.recorder, array)).collect::<Result<Vec<Window>>>()?;
        tape.check()?;
        let states = Mutex::new(Vec::new());
        let recorder = self.recorder.clone();
        let mut pullback =
            Pullback { recorder, tape, bases: ByBase::default(), states, results, plan, shared: Vec::new() };
        pullback.own(arrays, later)?;
        Ok(pullback)
    }
}

impl Drop for Taping {
    fn drop(&mut self) {
        if !self.ended {
            // A stretch that failed: its arrays go with the tape.
            let _ = self.recorder.end_tape(self.number);
            let tape = self.tape.take_all();
            tape.arrays().for_each(|array| self.recorder.free_later(array));
        }
    }
}

/// A view of a base of the program, by what adjoints are found by.
#[derive(Clone)]
pub struct Window {
    base: Base,
    view: View,
}

impl Window {
    pub(crate) fn of(recorder: &Recorder, array: ArrayId) -> Result<Window> {
        let ArrayInfo { dtype, view, base, base_len, .. } = recorder.info(array)?;
        Ok(Window { base: Base::new(base, dtype, base_len), view: view.canonical() })
    }

    /// The identity of the base.
    pub fn base(&self) -> u64 {
        self.base.id
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// Elements of the base.
    pub(crate) fn base_len(&self) -> i64 {
        self.base.len
    }
}

/// Takes adjoints of a stretch's results back to its arguments.
pub struct Pullback {
    recorder: Arc<Recorder>,
    tape: Tape,
    /// The arrays that hold the values the tape needs, by the bases of the program.
    bases: ByBase<Arc<Array>>,
    /// States of a program that runs again.
    states: Mutex<Vec<Stage<Arc<Array>, Stored>>>,
    results: Vec<Window>,
    plan: Option<Plan>,
    /// Arrays of states that the program has, too.
    shared: Vec<Owner<Arc<Array>>>,
}

/// A way back through a stretch.
pub struct Way {
    progress: Progress<Arc<Array>>,
    /// For a program that runs again.
    rewind: Option<Rewind<Arc<Array>, Stored>>,
    /// Grids of fewer elements are added to box by box.
    least: i64,
}

/// From how many elements on a grid is added to in one pass: none with `BH_ADJOINTS=boxes`, which switches that off.
fn least() -> i64 {
    let is_off = environment::variable("BH_ADJOINTS").is_some_and(|value| value == "boxes");
    if is_off { i64::MAX } else { LEAST }
}

impl Way {
    /// How many units have run again so far, without those before their own adjoints.
    pub fn runs(&self) -> u64 {
        self.rewind.as_ref().map_or(0, |rewind| rewind.runs)
    }
}

impl Pullback {
    /// Takes the arrays of the tape over. `later`: of those that the program can still change, copies are kept.
    fn own(&mut self, mut arrays: HashMap<ArrayId, Array>, later: bool) -> Result<()> {
        let held = self.tape.held.iter().filter_map(|(&base, &array)| Some((base, array?)));
        let saved = self.tape.saved.iter().filter_map(|saved| Some((saved.base, saved.array?)));
        for (base, id) in held.chain(saved) {
            let Some(array) = arrays.remove(&id) else { continue };
            self.bases.insert(base, Arc::new(self.safe(array, later)?.0));
        }
        let Some(bounded) = self.tape.bounded.as_ref().filter(|bounded| !bounded.keeps_all) else { return Ok(()) };
        let mut known: HashMap<ArrayId, Owner<Arc<Array>>> = HashMap::new();
        let mut states = Vec::new();
        for (at, (unit, on_disk)) in bounded.history.places().into_iter().enumerate() {
            let (mut values, mut stored) = (Values::new(), HashMap::new());
            for (base, home) in bounded.history.state(at) {
                let id = match home {
                    Home::Array(id) => id,
                    Home::Stored(part) => {
                        stored.insert(base.id, (base, part));
                        continue;
                    }
                };
                if let Some(array) = arrays.remove(&id) {
                    let (array, is_shared) = self.safe(array, later)?;
                    let array = Owner::new(Arc::new(array));
                    // A second owner keeps what the program has from being written.
                    self.shared.extend(is_shared.then(|| array.clone()));
                    known.insert(id, array);
                }
                values.extend(known.get(&id).map(|array| (base.id, (base, array.clone()))));
            }
            states.push(Stage { unit: unit as usize, values, stored, on_disk, is_own: false });
        }
        self.states = Mutex::new(states);
        Ok(())
    }

    /// An array whose values stay: a copy, if the program may go on before they are read. Does the program have it, too?
    fn safe(&self, array: Array, later: bool) -> Result<(Array, bool)> {
        let is_shared = !self.recorder.is_only_handle(array.id())?;
        if !later || !is_shared {
            return Ok((array, is_shared));
        }
        let dtype = self.recorder.info(array.id())?.dtype;
        let inputs = [Input::Array(array.id())];
        let copy = self.recorder.operate_new(Opcode::Copy, 0, Some(dtype), &inputs, Location::UNKNOWN)?;
        Ok((Array::new(self.recorder.clone(), copy), false))
    }

    /// The derivative's use of memory, if there is a bound.
    pub fn plan(&self) -> Option<Plan> {
        self.plan
    }

    /// Has the stretch changed the argument that was on this base?
    pub fn has_changed(&self, base: u64) -> bool {
        self.tape.has_written(base)
    }

    /// Begins a way back with adjoints of all results in their order, which have the types and shapes of the results. `once`: there is
    /// no other way back, so that values may go as they are used.
    pub fn begin(&self, adjoints: &[ArrayId], once: bool) -> Result<Way> {
        if adjoints.len() != self.results.len() {
            let text = format!("{} adjoints given for {} results", adjoints.len(), self.results.len());
            return Err(Error::new(status::ARGUMENT, text));
        }
        let mut way = Way { progress: Progress::of(&self.tape), rewind: self.rewind(once), least: least() };
        for (result, &adjoint) in self.results.iter().zip(adjoints) {
            if self.tape.depends(result.base.id) {
                self.add(&mut way, result, adjoint)?;
            }
        }
        Ok(way)
    }

    /// Adds an adjoint to that of a view, where the way is.
    pub fn add(&self, way: &mut Way, to: &Window, adjoint: ArrayId) -> Result<()> {
        let info = self.recorder.info(adjoint)?;
        if (info.dtype, info.view.shape()) != (to.base.dtype(), to.view.shape()) {
            let (dtype, shape, own) = (info.dtype, info.view.shape(), to.view.shape());
            let text = format!(
                "an adjoint has type {dtype} and shape {shape:?}, but what it belongs to has type {} and shape {own:?}",
                to.base.dtype()
            );
            return Err(Error::new(status::SHAPE, text));
        }
        let own = Arc::new(Array::new(self.recorder.clone(), self.recorder.duplicate(adjoint)?));
        let place = Place { base: own, dtype: info.dtype, view: info.view.canonical() };
        self.sweep(way, |sweep| sweep.add(&to.base, &to.view, place.into()))
    }

    /// Goes back to a place on the tape, as [`Taping::call`] returns it; 0 is its begin.
    pub fn run_to(&self, way: &mut Way, place: usize) -> Result<()> {
        let (segments, units) = self.tape.place(place);
        let Some(rewind) = &mut way.rewind else { return self.sweep(way, |sweep| sweep.run_to(segments)) };
        let Some(bounded) = &self.tape.bounded else { return Ok(()) };
        let mut emit = Emitter { disk: bounded.disk().cloned(), ..Emitter::new(&self.recorder) };
        rewind.run_to(&mut emit, &bounded.history, &mut way.progress, way.least, units)
    }

    fn rewind(&self, once: bool) -> Option<Rewind<Arc<Array>, Stored>> {
        let bounded = self.tape.bounded.as_ref().filter(|bounded| !bounded.keeps_all)?;
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stages = if once { std::mem::take(&mut *states) } else { states.clone() };
        stages.iter_mut().for_each(|stage| stage.is_own = once);
        Some(Rewind::new(stages, bounded.history.units.len(), bounded.levels()))
    }

    /// The adjoint of the whole of a base, flat, where the way is; `None` if no result depends on it. It is zero from here on.
    pub fn take(&self, way: &mut Way, base: u64) -> Result<Option<Array>> {
        let mut found = None;
        self.sweep(way, |sweep| sweep.take_result(base).map(|taken| found = taken))?;
        found.map(|array| array.duplicate()).transpose()
    }

    fn sweep(&self, way: &mut Way, f: impl FnOnce(&mut Sweep<'_, Emitter>) -> Result<()>) -> Result<()> {
        let mut emit = Emitter::new(&self.recorder);
        let bases = |base: u64| self.bases.get(&base).cloned();
        let progress = std::mem::replace(&mut way.progress, Progress::of(&self.tape));
        let mut sweep = Sweep::new(&mut emit, &self.tape, &bases, progress, way.least);
        let done = f(&mut sweep);
        way.progress = sweep.progress;
        done
    }
}

/// Records a transformed program.
pub(crate) struct Emitter {
    recorder: Arc<Recorder>,
    place: Option<(Vec<u8>, u32)>,
    /// Where values may be stored.
    disk: Option<Arc<Disk>>,
}

impl Emitter {
    pub(crate) fn new(recorder: &Arc<Recorder>) -> Emitter {
        Emitter { recorder: recorder.clone(), place: None, disk: None }
    }

    fn location(&self) -> Location<'_> {
        self.place.as_ref().map_or(Location::UNKNOWN, |(file, line)| Location { file, line: *line })
    }

    /// Calls `f` with inputs, whose handles end afterwards.
    fn with_inputs<R>(&self, inputs: &[Value<Arc<Array>>], f: impl FnOnce(&[Input]) -> Result<R>) -> Result<R> {
        let mut handles = Vec::with_capacity(inputs.len());
        let mut all = Vec::with_capacity(inputs.len());
        for input in inputs {
            all.push(match input {
                Value::Number(constant) => Input::Constant(*constant),
                Value::Place(place) => {
                    let handle = self.window(place)?;
                    let id = handle.id();
                    handles.push(handle);
                    Input::Array(id)
                }
            });
        }
        f(&all)
    }

    fn window(&self, place: &Place<Arc<Array>>) -> Result<Array> {
        let id = self.recorder.window(place.base.id(), &place.view)?;
        Ok(Array::new(self.recorder.clone(), id))
    }
}

impl Emit for Emitter {
    type Base = Arc<Array>;
    type Stored = Stored;

    fn same(a: &Arc<Array>, b: &Arc<Array>) -> bool {
        Arc::ptr_eq(a, b)
    }

    fn base(&mut self, dtype: DType, len: i64) -> Result<Arc<Array>> {
        let id = self.recorder.empty(dtype, &[len])?;
        Ok(Arc::new(Array::new(self.recorder.clone(), id)))
    }

    fn store(&mut self, array: &Arc<Array>, of: &Base) -> Result<Stored> {
        let disk = self.disk.as_ref().ok_or_else(lost)?;
        Ok(Arc::new(disk.store(&self.recorder, array.id(), of)?.into()))
    }

    fn load(&mut self, stored: &Stored, of: &Base) -> Result<Arc<Array>> {
        stored.get().ok_or_else(lost)?.load(&self.recorder, of).map(Arc::new)
    }

    fn operate(
        &mut self,
        opcode: Opcode,
        param: u16,
        out: &Place<Arc<Array>>,
        inputs: &[Value<Arc<Array>>],
    ) -> Result<()> {
        self.with_inputs(inputs, |inputs| {
            self.recorder.operate_in(opcode, param, (out.base.id(), &out.view), inputs, self.location())
        })
    }

    fn generate(
        &mut self,
        opcode: Opcode,
        out: &Place<Arc<Array>>,
        numbers: &View,
        key: Option<Constant>,
    ) -> Result<()> {
        let out = self.window(out)?;
        self.recorder.generate(opcode, out.id(), numbers, key, self.location())
    }

    fn call(&mut self, method: &str, outs: &[&Place<Arc<Array>>], inputs: &[Value<Arc<Array>>]) -> Result<()> {
        let opcode = self.recorder.extension(method)?;
        let outs = outs.iter().map(|out| self.window(out)).collect::<Result<Vec<Array>>>()?;
        let ids: Vec<ArrayId> = outs.iter().map(Array::id).collect();
        self.with_inputs(inputs, |inputs| self.recorder.call_extension(opcode, &ids, inputs, self.location()))
    }

    fn repeat(
        &mut self,
        tables: &BatchRef<'_>,
        instr: &Instr,
        outputs: &[Arc<Array>],
        inputs: &[(u32, Arc<Array>)],
    ) -> Result<()> {
        let outputs: Vec<ArrayId> = outputs.iter().map(|array| array.id()).collect();
        let inputs: Vec<(u32, ArrayId)> = inputs.iter().map(|(base, array)| (*base, array.id())).collect();
        self.recorder.repeat(tables, instr, &outputs, &inputs)
    }

    fn flush(&mut self) -> Result<()> {
        self.recorder.flush()
    }

    fn locate(&mut self, origin: Option<(&str, u32)>) {
        let last = self.place.take();
        self.place = origin.map(|(file, line)| match last {
            Some((last, _)) if last == file.as_bytes() => (last, line),
            _ => (file.as_bytes().to_vec(), line),
        });
    }
}

/// A handle of a flat array under a shape, which the caller frees.
pub fn shaped(recorder: &Recorder, array: &Array, shape: &[i64]) -> Result<ArrayId> {
    recorder.window(array.id(), &contiguous(shape)?)
}
