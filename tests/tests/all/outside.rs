//! The program's memory used by arrays, and arrays' memory used by the program: in host memory, and on an engine's own
//! heap.

use bh_bytecode::{Constant, DType, Opcode};
use bh_core::abi::{Adoption, access, adopt, export, memory, status};
use bh_core::error::Result;
use bh_core::stack::Stack;
use bh_recorder::{ArrayId, Input, Location, Options, Patience, Recorder};
use bh_tests::stacks;
use bh_ve_shadow::MEMORY;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const HERE: Location<'static> = Location { file: b"program.c", line: 7 };
const VALUES: [f64; 4] = [1.0, 2.0, 3.0, 4.0];
static LAST: f64 = VALUES[3];

fn start(engines: &str) -> Arc<Recorder> {
    let text = format!("[stacks]\nit = ['filter', 'fuser', 'node', {engines}]\n");
    let config = stacks::from_text("outside.toml", &text).unwrap();
    let recorder = Recorder::new();
    recorder.start(Options::default(), move || Ok(Box::new(Stack::load(&config, Some("it"))?))).unwrap();
    recorder
}

fn count(recorder: &Recorder, name: &str) -> u64 {
    recorder.with_stack(|stack| Ok(stack.stats().get(&format!("shadow.{name}")))).unwrap().unwrap_or(0)
}

fn values(recorder: &Recorder, array: ArrayId) -> [f64; 4] {
    let mut values = [0.0; 4];
    // SAFETY: the buffer has the array's number of elements.
    unsafe { recorder.read(array, values.as_mut_ptr().cast(), None).unwrap() };
    values
}

fn filled(recorder: &Recorder) -> ArrayId {
    let array = recorder.empty(DType::F64, &[4]).unwrap();
    // SAFETY: the buffer has the array's number of elements.
    unsafe { recorder.write(array, VALUES.as_ptr().cast(), None).unwrap() };
    array
}

/// `out` becomes `a` times a number.
fn scale(recorder: &Recorder, out: ArrayId, a: ArrayId, factor: f64) {
    let inputs = [Input::Array(a), Input::Constant(Constant::from_value(factor))];
    recorder.operate(Opcode::Multiply, 0, out, &inputs, HERE).unwrap();
}

/// A new array, `a` times a number.
fn scaled(recorder: &Recorder, a: ArrayId, factor: f64) -> ArrayId {
    let inputs = [Input::Array(a), Input::Constant(Constant::from_value(factor))];
    recorder.operate_new(Opcode::Multiply, 0, None, &inputs, HERE).unwrap()
}

/// Multiplies the last two elements of an array.
fn scale_end(recorder: &Recorder, array: ArrayId, factor: f64) {
    let end = recorder.derive(array, |view| view.slice(0, Some(2), None, 1)).unwrap();
    scale(recorder, end, end, factor);
    recorder.free(end).unwrap();
}

/// Memory of the program, and how often it was released.
struct Mine {
    elements: Box<[f64; 4]>,
    released: Box<AtomicU32>,
}

unsafe extern "C" fn release(argument: *mut c_void, _: *mut c_void) {
    // SAFETY: the argument of `Mine::adopt`.
    unsafe { &*argument.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

impl Mine {
    fn new() -> Mine {
        Mine { elements: Box::new(VALUES), released: Box::default() }
    }

    fn adopt(&mut self, recorder: &Recorder, mode: u32, kind: u32) -> Result<ArrayId> {
        let argument = (&raw const *self.released).cast_mut().cast();
        // SAFETY: four elements, which live as long as this value; the tests wait for the release.
        unsafe {
            let adoption = Adoption::new(self.elements.as_mut_ptr().cast(), mode, kind, Some(release), argument);
            recorder.adopt_memory(DType::F64, &[4], &adoption)
        }
    }

    fn released(&self) -> u32 {
        self.released.load(Ordering::SeqCst)
    }
}

fn end(recorder: &Recorder) {
    recorder.sync().unwrap();
    let leaks = recorder.with_stack(|stack| stack.message("leaks")).unwrap();
    assert_eq!(leaks, "0 arrays alive, 0 bytes of host memory");
    recorder.shutdown().unwrap();
}

#[test]
fn donated_memory_of_a_device_is_used_where_it_lies() {
    let (recorder, mut mine) = (start("'shadow'"), Mine::new());
    let a = mine.adopt(&recorder, adopt::DONATED, MEMORY).unwrap();
    let b = scaled(&recorder, a, 2.0);
    assert_eq!((values(&recorder, a), values(&recorder, b)), (VALUES, VALUES.map(|value| 2.0 * value)));
    assert_eq!((count(&recorder, "adoptions"), count(&recorder, "uploads")), (1, 0));
    scale_end(&recorder, a, 10.0);
    assert_eq!(values(&recorder, a), [1.0, 2.0, 30.0, 40.0]);
    recorder.free(a).unwrap();
    recorder.free(b).unwrap();
    recorder.sync().unwrap();
    assert_eq!(mine.released(), 1);
    end(&recorder);
}

#[test]
fn immutable_memory_keeps_its_content() {
    for kind in [MEMORY, memory::HOST] {
        for engines in if kind == MEMORY { &["'shadow'"][..] } else { &["'shadow'", "'ve-cpu'"] } {
            let (recorder, mut mine) = (start(engines), Mine::new());
            let a = mine.adopt(&recorder, adopt::IMMUTABLE, kind).unwrap();
            let b = scaled(&recorder, a, 2.0);
            scale_end(&recorder, a, 10.0);
            assert_eq!(values(&recorder, a), [1.0, 2.0, 30.0, 40.0]);
            assert_eq!(values(&recorder, b), VALUES.map(|value| 2.0 * value));
            // Single elements that the program writes, and all at once.
            let first = recorder.derive(a, |view| view.slice(0, None, Some(1), 1)).unwrap();
            // SAFETY: one value for one element.
            unsafe { recorder.write(first, (&raw const LAST).cast(), None).unwrap() };
            assert_eq!(values(&recorder, a), [4.0, 2.0, 30.0, 40.0]);
            scale(&recorder, a, b, 0.5);
            assert_eq!(values(&recorder, a), VALUES);
            [a, b, first].into_iter().for_each(|array| recorder.free(array).unwrap());
            recorder.sync().unwrap();
            assert_eq!((mine.released(), *mine.elements), (1, VALUES), "{engines}, memory {kind}");
            end(&recorder);
        }
    }
}

#[test]
fn what_writes_first_to_immutable_memory_of_a_device_writes_elsewhere() {
    let (recorder, mut mine) = (start("'shadow'"), Mine::new());
    let a = mine.adopt(&recorder, adopt::IMMUTABLE, MEMORY).unwrap();
    let first = recorder.derive(a, |view| view.slice(0, None, Some(1), 1)).unwrap();
    // SAFETY: one value for one element.
    unsafe { recorder.write(first, (&raw const LAST).cast(), None).unwrap() };
    assert_eq!((values(&recorder, a), *mine.elements), ([4.0, 2.0, 3.0, 4.0], VALUES));
    recorder.free(first).unwrap();
    recorder.free(a).unwrap();
    recorder.sync().unwrap();
    assert_eq!((mine.released(), *mine.elements), (1, VALUES));
    end(&recorder);
}

#[test]
fn what_a_device_lends_for_reading_does_not_change() {
    let recorder = start("'shadow'");
    let given = filled(&recorder);
    let a = scaled(&recorder, given, 2.0);
    let twice = VALUES.map(|value| 2.0 * value);
    let lend = |array, mode| recorder.lend_device(array, mode, MEMORY);
    let (read_only, snapshot) = (lend(a, export::READ_ONLY).unwrap(), lend(a, export::SNAPSHOT).unwrap());
    // Data that is only in host memory is transferred.
    let written = filled(&recorder);
    let brought = lend(written, export::READ_ONLY).unwrap();
    // SAFETY: the shadow engine's handles are addresses of the elements, which are lent.
    let seen = |lent: &bh_recorder::Lent| unsafe { *lent.data.cast::<[f64; 4]>() };
    assert_eq!([seen(&read_only), seen(&snapshot), seen(&brought)], [twice, twice, VALUES]);
    assert_eq!(count(&recorder, "lendings"), 3);
    scale_end(&recorder, a, 10.0);
    assert_eq!(values(&recorder, a), [2.0, 4.0, 60.0, 80.0]);
    scale(&recorder, a, given, 7.0);
    assert_eq!(values(&recorder, a), VALUES.map(|value| 7.0 * value));
    recorder.free(written).unwrap();
    recorder.free(a).unwrap();
    recorder.sync().unwrap();
    assert_eq!([seen(&read_only), seen(&snapshot), seen(&brought)], [twice, twice, VALUES]);
    for lent in [read_only, snapshot, brought] {
        recorder.end_lending(&lent).unwrap();
        assert_eq!(recorder.end_lending(&lent).unwrap_err().status, status::HANDLE);
    }
    recorder.free(given).unwrap();
    end(&recorder);
}

#[test]
fn what_is_lent_in_host_memory_is_as_its_mode_says() {
    for engines in ["'ve-cpu'", "'shadow'"] {
        let recorder = start(engines);
        let a = filled(&recorder);
        let lend = |mode| recorder.lend_as(a, mode, &mut Patience::endless()).unwrap();
        let (read_only, snapshot) = (lend(export::READ_ONLY), lend(export::SNAPSHOT));
        scale(&recorder, a, a, 2.0);
        let shared = lend(export::SHARED);
        // SAFETY: four elements are lent.
        let seen = |lent: &bh_recorder::Lent| unsafe { *lent.data.cast::<[f64; 4]>() };
        assert_eq!([seen(&read_only), seen(&snapshot)], [VALUES; 2]);
        assert_eq!(seen(&shared), VALUES.map(|value| 2.0 * value));
        // Both sides write, and each reads the other's values.
        scale(&recorder, a, a, 2.0);
        let data = recorder.map(a, access::READ).unwrap();
        assert_eq!((data, seen(&shared)), (shared.data, VALUES.map(|value| 4.0 * value)), "{engines}");
        recorder.unmap(a).unwrap();
        // SAFETY: the elements are shared, and nothing runs on the array.
        unsafe { *shared.data.cast::<f64>() = 100.0 };
        let b = scaled(&recorder, a, 1.0);
        assert_eq!(values(&recorder, b), [100.0, 8.0, 12.0, 16.0], "{engines}");
        recorder.free(a).unwrap();
        for lent in [read_only, snapshot, shared] {
            recorder.end_lending(&lent).unwrap();
        }
        recorder.free(b).unwrap();
        end(&recorder);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let (recorder, mut mine) = (start("'shadow'"), Mine::new());
    let code = |outcome: Result<ArrayId>| outcome.unwrap_err().status;
    assert_eq!(code(mine.adopt(&recorder, adopt::SHARED, MEMORY)), status::UNSUPPORTED);
    assert_eq!(code(mine.adopt(&recorder, adopt::DONATED, memory::OPENCL)), status::UNSUPPORTED);
    assert_eq!(code(mine.adopt(&recorder, 9, MEMORY)), status::ARGUMENT);
    assert_eq!(code(mine.adopt(&recorder, 9, memory::HOST)), status::ARGUMENT);
    let a = filled(&recorder);
    let lend = |mode, kind| recorder.lend_device(a, mode, kind);
    assert_eq!(lend(export::SHARED, MEMORY).err().unwrap().status, status::UNSUPPORTED);
    assert_eq!(lend(export::READ_ONLY, memory::OPENCL).err().unwrap().status, status::UNSUPPORTED);
    assert_eq!(lend(9, MEMORY).err().unwrap().status, status::ARGUMENT);
    assert_eq!(recorder.lend_as(a, 9, &mut Patience::endless()).err().unwrap().status, status::ARGUMENT);
    recorder.free(a).unwrap();
    assert_eq!(mine.released(), 0, "what was refused stays with its owner");
    end(&recorder);
}

/// A release function may wait for another thread that uses the library: no lock is held.
#[test]
fn memory_is_given_back_with_no_lock_held() {
    struct Other {
        recorder: Arc<Recorder>,
        array: ArrayId,
        released: AtomicU32,
    }
    unsafe extern "C" fn look(argument: *mut c_void, _: *mut c_void) {
        // SAFETY: the argument given below, which lives until the end of the test.
        let other = unsafe { &*argument.cast::<Other>() };
        let reading = || {
            let more = scaled(&other.recorder, other.array, 2.0);
            other.recorder.free(more).unwrap();
            assert_eq!(values(&other.recorder, other.array), VALUES);
        };
        std::thread::scope(|scope| scope.spawn(reading).join()).unwrap();
        other.released.fetch_add(1, Ordering::SeqCst);
    }
    for (engines, kind) in [("'ve-cpu'", memory::HOST), ("'shadow'", memory::HOST), ("'shadow'", MEMORY)] {
        for mode in [adopt::SHARED, adopt::DONATED, adopt::IMMUTABLE] {
            if (mode, kind) == (adopt::SHARED, MEMORY) {
                continue;
            }
            let recorder = start(engines);
            let other = Other { recorder: recorder.clone(), array: filled(&recorder), released: AtomicU32::new(0) };
            recorder.sync().unwrap();
            let mut elements = VALUES;
            let argument = (&raw const other).cast_mut().cast();
            // SAFETY: four elements, which live until they are released.
            let a = unsafe {
                let adoption = Adoption::new(elements.as_mut_ptr().cast(), mode, kind, Some(look), argument);
                recorder.adopt_memory(DType::F64, &[4], &adoption).unwrap()
            };
            scale(&recorder, a, a, 3.0);
            recorder.free(a).unwrap();
            recorder.sync().unwrap();
            assert_eq!(other.released.load(Ordering::SeqCst), 1, "{engines}, memory {kind}, mode {mode}");
            recorder.free(other.array).unwrap();
            end(&recorder);
        }
    }
}
