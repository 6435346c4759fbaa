//! The program's memory on every stack: adopted and pinned arrays stay in place, maps show and keep changes.

use bh_bytecode::{Base, Opcode, View};
use bh_core::abi::{Adoption, access, adopt, memory, status};
use bh_core::stack::Stack;
use bh_tests::program::{LEN, Script};
use bh_tests::stacks;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

const LEN_: usize = LEN as usize;

fn each_stack(test: impl Fn(&str, &mut Stack)) {
    for name in stacks::STACKS.iter().chain(&["interp"]) {
        let mut stack = stacks::load(name).unwrap_or_else(|error| panic!("stack {name}: {error}"));
        test(name, &mut stack);
        let leaks = stack.message("leaks").unwrap();
        assert_eq!(leaks.lines().last(), Some("0 arrays alive, 0 bytes of host memory"), "{name}");
    }
}

/// Maps a base of f64 and returns its elements.
fn mapped<'a>(stack: &mut Stack, base: &Base, mode: u32) -> &'a mut [f64] {
    let data = stack.map(base, None, mode).unwrap();
    // SAFETY: the map lasts until `unmap`, after which the tests do not use the slice.
    unsafe { std::slice::from_raw_parts_mut(data.cast(), base.len as usize) }
}

unsafe extern "C" fn count_release(argument: *mut c_void, _data: *mut c_void) {
    // SAFETY: the argument is the test's counter.
    unsafe { (*argument.cast::<AtomicUsize>()).fetch_add(1, Ordering::Relaxed) };
}

#[test]
fn adopted_memory_is_used_in_place_and_given_back() {
    each_stack(|name, stack| {
        let mut script = Script::new(stack, 3);
        let mut memory = [1.5; LEN_];
        let data = memory.as_mut_ptr();
        let released = AtomicUsize::new(0);
        let argument: *mut c_void = (&raw const released).cast_mut().cast();
        // SAFETY: the memory outlives the array, whose release is checked below.
        let adoption =
            unsafe { Adoption::new(data.cast(), adopt::SHARED, memory::HOST, Some(count_release), argument) };
        stack.adopt(&script.bases[0], &adoption).unwrap();
        script.fill(1, 2.0).op(Opcode::Add, &[2, 0, 1]).op(Opcode::Multiply, &[0, 2, 1]).op(Opcode::Sync, &[0]);
        script.run(stack).unwrap();
        let seen = mapped(stack, &script.bases[0], access::READ);
        assert_eq!((seen.as_ptr(), &seen[..]), (data.cast_const(), &[7.0; LEN_][..]), "{name}");
        stack.unmap(&script.bases[0]).unwrap();
        // The user writes between map and unmap.
        mapped(stack, &script.bases[0], access::READ | access::WRITE)[0] = -1.0;
        stack.unmap(&script.bases[0]).unwrap();
        script.clear().op(Opcode::Add, &[2, 0, 0]);
        script.run(stack).unwrap();
        assert_eq!(script.values(stack, 2).unwrap()[..2], [-2.0, 14.0], "{name}");
        assert_eq!(released.load(Ordering::Relaxed), 0, "{name}");
        script.discard(stack).unwrap();
        assert_eq!(released.load(Ordering::Relaxed), 1, "{name}");
    });
}

#[test]
fn pinned_arrays_do_not_move() {
    each_stack(|name, stack| {
        let mut script = Script::new(stack, 3);
        script.fill(0, 3.0).fill(1, 4.0);
        script.run(stack).unwrap();
        stack.pin(&script.bases[0], true).unwrap();
        let first = mapped(stack, &script.bases[0], access::READ).as_ptr();
        stack.unmap(&script.bases[0]).unwrap();
        for _ in 0..3 {
            script.clear().op(Opcode::Add, &[0, 0, 1]).op(Opcode::Sqrt, &[2, 0]);
            script.run(stack).unwrap();
        }
        let seen = mapped(stack, &script.bases[0], access::READ);
        assert_eq!((seen.as_ptr(), seen[0]), (first, 15.0), "{name}");
        stack.unmap(&script.bases[0]).unwrap();
        stack.pin(&script.bases[0], false).unwrap();
        script.discard(stack).unwrap();
    });
}

#[test]
fn maps_nest_and_outlive_a_discard() {
    each_stack(|name, stack| {
        let mut script = Script::new(stack, 2);
        script.fill(0, 3.0);
        script.run(stack).unwrap();
        let outer = mapped(stack, &script.bases[0], access::READ);
        let inner = mapped(stack, &script.bases[0], access::READ | access::WRITE);
        assert_eq!(outer.as_ptr(), inner.as_ptr(), "{name}");
        inner[1] = 9.0;
        stack.unmap(&script.bases[0]).unwrap();
        assert_eq!(outer[..3], [3.0, 9.0, 3.0], "{name}");
        script.discard(stack).unwrap();
        assert_eq!(outer[..3], [3.0, 9.0, 3.0], "{name}");
        stack.unmap(&script.bases[0]).unwrap();
        let error = stack.unmap(&script.bases[0]).unwrap_err();
        assert!([status::ARGUMENT, status::HANDLE].contains(&error.status), "{name}: {error}");
        stack.execute(&discard_of(&script.bases[0]).as_ref(), &[]).unwrap();
    });
}

/// A batch that drops data left by a request for an unknown base.
fn discard_of(base: &Base) -> bh_bytecode::Batch {
    let mut batch = bh_bytecode::Batch::default();
    let index = batch.push_base(*base);
    let view = batch.push_view(index, &bh_bytecode::View::contiguous(&[base.len]).unwrap());
    batch.push_instr(bh_bytecode::Instr::new(Opcode::Discard, &[bh_bytecode::Operand::view(view)]));
    batch
}

#[test]
fn freed_arrays_can_be_written_again() {
    each_stack(|name, stack| {
        let mut script = Script::new(stack, 3);
        script.fill(0, 3.0).op(Opcode::Add, &[1, 0, 0]).op(Opcode::Free, &[0]).fill(0, 5.0).op(Opcode::Add, &[2, 0, 1]);
        script.run(stack).unwrap();
        assert_eq!(script.values(stack, 2).unwrap(), [11.0; LEN_], "{name}");
        script.discard(stack).unwrap();
    });
}

/// Also if independent kernels run at the same time, all of which end before the recorder.
#[test]
fn freed_arrays_live_again_from_their_next_write_on() {
    each_stack(|name, stack| {
        let mut script = Script::new(stack, 4);
        script.fill(3, 1.0).fill(0, 3.0).op(Opcode::Add, &[1, 0, 0]).op(Opcode::Free, &[0]);
        script.fill(0, 5.0).op(Opcode::Add, &[2, 0, 1]);
        script.run(stack).unwrap();
        for (array, value) in [(0, 5.0), (2, 11.0), (3, 1.0)] {
            assert_eq!(script.values(stack, array).unwrap(), [value; LEN_], "{name}");
        }
        // Without earlier work, and twice.
        script.clear().op(Opcode::Free, &[0]).fill(0, 7.0).op(Opcode::Add, &[1, 0, 0]);
        script.op(Opcode::Free, &[0]).fill(0, 9.0).op(Opcode::Free, &[1]);
        script.run(stack).unwrap();
        for (array, value) in [(0, 9.0), (1, 0.0)] {
            assert_eq!(script.values(stack, array).unwrap(), [value; LEN_], "{name}");
        }
        script.discard(stack).unwrap();
    });
}

#[test]
fn what_is_not_written_after_a_free_is_zero() {
    each_stack(|name, stack| {
        let mut script = Script::new(stack, 3);
        script.fill(0, 3.0).fill(1, 4.0);
        script.run(stack).unwrap();
        let half = View::contiguous(&[LEN / 2]).unwrap();
        script.clear().op(Opcode::Free, &[0]).op(Opcode::Free, &[1]).op(Opcode::Add, &[2, 1, 1]);
        let view = script.batch().push_view(0, &half);
        script.fill(view, 5.0);
        script.run(stack).unwrap();
        let mut expected = [5.0; LEN_];
        expected[LEN_ / 2..].fill(0.0);
        assert_eq!(script.values(stack, 0).unwrap(), expected, "{name}");
        assert_eq!(script.values(stack, 2).unwrap(), [0.0; LEN_], "{name}");
        script.discard(stack).unwrap();
    });
}
