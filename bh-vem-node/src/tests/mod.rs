//! Tests the registry's rules through the interfaces of engines and programs.

mod fake;
mod regions;

use bh_bytecode::{Batch, Instr, Opcode, Operand, View};
use bh_core::abi::{Adoption, HOST_SPACE, ReleaseFn, access, adopt, memory, status};
use bh_core::error::Error;
use fake::{DEVICE, DeviceCopy, Fixture, ints, values};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

const ALL_NEW: u32 = access::WRITE | access::DISCARD;

#[test]
fn memory_comes_at_first_use_and_starts_as_zeros() {
    let f = Fixture::new();
    let (a, b) = (ints(1, 4), ints(2, 4));
    assert_eq!(f.fake.live(), 0);
    assert_eq!(f.values(&a).unwrap(), [0; 4]);
    f.write(&b, access::WRITE, &[5]);
    assert_eq!(f.values(&b).unwrap(), [5, 0, 0, 0]);
    assert_eq!((f.fake.live(), f.fake.count("node.allocations")), (32, 2));
    assert_eq!(f.fake.count("node.peak_bytes"), 32);
    f.write(&b, ALL_NEW, &[1, 2, 3, 4]);
    assert_eq!(f.values(&b).unwrap(), [1, 2, 3, 4]);
    assert_eq!(f.fake.count("node.allocations"), 2);
}

#[test]
fn a_loan_outlives_the_base() {
    let f = Fixture::new();
    let a = ints(1, 4);
    f.write(&a, ALL_NEW, &[1, 2, 3, 4]);
    let loan = f.engine().acquire(&a, access::READ).unwrap();
    f.registry.with(|arrays| arrays.discard(&a)).unwrap();
    assert_eq!(f.fake.live(), 16);
    // SAFETY: the loan keeps the buffer alive, which has more than three elements.
    assert_eq!(unsafe { *loan.data().cast::<i32>().add(3) }, 4);
    drop(loan);
    assert_eq!(f.fake.live(), 0);
    assert_eq!(f.registry.with(|arrays| arrays.leaks()), []);
}

#[test]
fn poison_stays_until_a_full_overwrite() {
    let f = Fixture::new();
    let a = ints(1, 2);
    let cause = Error { origin: Some(("heat.c".into(), 12)), ..Error::new(status::EXECUTION, "overflowing teapot") };
    f.engine().poison(&a, &cause);
    f.engine().poison(&a, &Error::new(status::DEVICE, "a later failure"));
    assert_eq!(f.values(&a).unwrap_err(), cause);
    assert_eq!(f.engine().acquire(&a, access::WRITE).unwrap_err(), cause);
    f.write(&a, ALL_NEW, &[1, 2]);
    assert_eq!(f.values(&a).unwrap(), [1, 2]);
}

#[test]
fn a_base_keeps_its_type_and_length() {
    let f = Fixture::new();
    f.write(&ints(1, 2), ALL_NEW, &[1, 2]);
    let error = f.values(&ints(1, 3)).unwrap_err();
    assert_eq!((error.status, error.text.as_str()), (status::ARGUMENT, "base 1 is i32[2], not i32[3]"));
}

#[test]
fn memory_runs_out_without_harm() {
    let f = Fixture::with_limit(40);
    let (a, b) = (ints(1, 8), ints(2, 8));
    f.write(&a, ALL_NEW, &[7; 8]);
    assert_eq!(f.values(&b).unwrap_err().status, status::MEMORY);
    assert_eq!(f.engine().fresh(&a).unwrap_err().status, status::MEMORY);
    assert_eq!(f.values(&a).unwrap(), [7; 8]);
    f.registry.with(|arrays| arrays.free(&a)).unwrap();
    assert_eq!(f.values(&b).unwrap(), [0; 8]);
}

#[test]
fn renames_swap_buffers_under_loans() {
    let f = Fixture::new();
    let a = ints(1, 3);
    f.write(&a, ALL_NEW, &[1, 2, 3]);
    let old = f.engine().acquire(&a, access::READ).unwrap();
    let fresh = f.engine().fresh(&a).unwrap();
    // SAFETY: the buffer has three elements.
    unsafe { fresh.data().cast::<i32>().copy_from([7, 8, 9].as_ptr(), 3) };
    f.engine().commit_rename(&a, fresh).unwrap();
    assert_eq!(f.values(&a).unwrap(), [7, 8, 9]);
    // SAFETY: the loan keeps the old buffer alive.
    assert_eq!(unsafe { *old.data().cast::<i32>() }, 1);
    drop(old);
    assert_eq!(f.fake.live(), 12);
    // A fresh buffer that is not used.
    let fresh = f.engine().fresh(&a).unwrap();
    drop(fresh);
    assert_eq!(f.fake.live(), 12);
}

#[test]
fn renaming_a_pinned_base_copies_into_place() {
    let f = Fixture::new();
    let a = ints(1, 2);
    f.write(&a, ALL_NEW, &[1, 2]);
    f.registry.with(|arrays| arrays.pin(&a, true)).unwrap();
    let before = f.engine().acquire(&a, access::READ).unwrap();
    let fresh = f.engine().fresh(&a).unwrap();
    // SAFETY: the buffer has two elements.
    unsafe { fresh.data().cast::<i32>().copy_from([5, 6].as_ptr(), 2) };
    f.engine().commit_rename(&a, fresh).unwrap();
    let after = f.engine().acquire(&a, access::READ).unwrap();
    assert_eq!(before.data(), after.data());
    assert_eq!(f.values(&a).unwrap(), [5, 6]);
    drop(before);
    drop(after);
    f.registry.with(|arrays| arrays.pin(&a, false)).unwrap();
    assert!(f.registry.with(|arrays| arrays.pin(&a, false)).is_err());
}

#[test]
fn aliases_are_copied_when_read_or_before_their_source_changes() {
    let f = Fixture::new();
    let (grid, work) = (ints(1, 16), ints(2, 4));
    let center = View::new(5, &[2, 2], &[4, 1]).unwrap();
    let numbers: Vec<i32> = (0..16).collect();
    f.write(&grid, ALL_NEW, &numbers);
    // Read: a copy of the region.
    f.engine().alias(&work, &grid, &center).unwrap();
    assert_eq!(f.fake.live(), 64);
    assert_eq!(f.values(&work).unwrap(), [5, 6, 9, 10]);
    assert_eq!(f.fake.live(), 80);
    // The source changes in place: the alias is copied first.
    f.engine().alias(&work, &grid, &center).unwrap();
    assert_eq!(f.fake.live(), 64);
    f.write(&grid, access::WRITE, &[100; 16]);
    assert_eq!(f.fake.live(), 80);
    assert_eq!(f.values(&work).unwrap(), [5, 6, 9, 10]);
    // The source is overwritten as a whole: the alias keeps the old buffer, without a copy.
    f.engine().alias(&work, &grid, &center).unwrap();
    f.write(&grid, ALL_NEW, &numbers);
    assert_eq!(f.fake.live(), 128);
    assert_eq!(f.values(&work).unwrap(), [100; 4]);
    assert_eq!((f.fake.live(), f.fake.count("node.alias_copies")), (80, 3));
    // The alias is overwritten: no copy.
    f.engine().alias(&work, &grid, &center).unwrap();
    f.write(&work, ALL_NEW, &[1, 2, 3, 4]);
    assert_eq!((f.values(&work).unwrap(), f.fake.count("node.alias_copies")), (vec![1, 2, 3, 4], 3));
    // The source is dropped: the alias keeps its version.
    f.engine().alias(&work, &grid, &center).unwrap();
    f.registry.with(|arrays| arrays.discard(&grid)).unwrap();
    assert_eq!(f.values(&work).unwrap(), [5, 6, 9, 10]);
}

#[test]
fn double_buffering_needs_two_buffers_and_no_copy() {
    let f = Fixture::new();
    let (grid, work) = (ints(1, 16), ints(2, 4));
    let center = View::new(5, &[2, 2], &[4, 1]).unwrap();
    for step in 0..5 {
        let old = f.engine().acquire(&grid, access::READ).unwrap();
        let fresh = f.engine().fresh(&grid).unwrap();
        // SAFETY: the buffer has 16 elements.
        unsafe { std::slice::from_raw_parts_mut(fresh.data().cast::<i32>(), 16).fill(step) };
        f.engine().commit_rename(&grid, fresh).unwrap();
        f.engine().alias(&work, &grid, &center).unwrap();
        drop(old);
        assert_eq!(f.fake.live(), 64, "the buffer before last is free again");
    }
    assert_eq!(f.fake.count("node.alias_copies"), 0);
    assert_eq!(f.values(&work).unwrap(), [4; 4]);
}

#[test]
fn an_alias_must_fit() {
    let f = Fixture::new();
    let (grid, work) = (ints(1, 16), ints(2, 4));
    for (start, shape) in [(0, 5), (13, 4)] {
        let view = View::new(start, &[shape], &[1]).unwrap();
        assert_eq!(f.engine().alias(&work, &grid, &view).unwrap_err().status, status::ARGUMENT);
    }
    let own = View::new(0, &[16], &[1]).unwrap();
    assert_eq!(f.engine().alias(&grid, &grid, &own).unwrap_err().status, status::ARGUMENT);
}

#[test]
fn devices_and_host_take_turns() {
    let (uploaded, written) = (DeviceCopy::new(1), DeviceCopy::new(9));
    let f = Fixture::new();
    let a = ints(1, 4);
    let (mine, other) = (f.engine().new_space(), f.engine().new_space());
    assert!(mine != HOST_SPACE && other != HOST_SPACE && mine != other);
    f.write(&a, ALL_NEW, &[1, 2, 3, 4]);
    assert!(f.engine().acquire_in(&a, mine, access::READ).unwrap().data().is_null());
    // SAFETY: the copies outlive the fixture's use of them.
    unsafe { f.engine().attach(&a, mine, uploaded.handle(), false, &DEVICE) }.unwrap();
    assert_eq!(f.values(&a).unwrap(), [1, 2, 3, 4], "the host copy is still valid");
    let loan = f.engine().acquire_in(&a, mine, access::READ).unwrap();
    assert_eq!(loan.data(), uploaded.handle());
    assert_eq!(uploaded.uses(), (0, 0));
    // The loan keeps the device copy while another device writes. SAFETY: the copies outlive the fixture's use of them.
    unsafe { f.engine().attach(&a, other, written.handle(), true, &DEVICE) }.unwrap();
    assert_eq!((uploaded.uses(), f.fake.live()), ((0, 0), 0));
    drop(loan);
    assert_eq!(uploaded.uses(), (0, 1));
    // The host reads: one download; both copies stay valid.
    assert_eq!(f.values(&a).unwrap(), [9; 4]);
    assert_eq!(f.values(&a).unwrap(), [9; 4]);
    assert_eq!((written.uses(), f.fake.count("node.to_host")), ((1, 0), 1));
    // The host writes: the device copy is dropped.
    f.write(&a, access::WRITE, &[3]);
    assert_eq!(written.uses(), (1, 1));
    assert_eq!(f.values(&a).unwrap(), [3, 9, 9, 9]);
}

#[test]
fn a_write_on_the_device_makes_the_host_stale() {
    let copy = DeviceCopy::new(6);
    let f = Fixture::new();
    let a = ints(1, 4);
    let space = f.engine().new_space();
    f.write(&a, ALL_NEW, &[1; 4]);
    // SAFETY: the copy outlives the fixture's use of it.
    unsafe { f.engine().attach(&a, space, copy.handle(), false, &DEVICE) }.unwrap();
    let loan = f.engine().acquire_in(&a, space, access::WRITE).unwrap();
    assert_eq!((loan.data(), f.fake.live()), (copy.handle(), 0));
    drop(loan);
    assert_eq!(f.values(&a).unwrap(), [6; 4]);
    // Attaching the same handle again neither drops nor duplicates it. SAFETY: the copy outlives the fixture's use of
    // it.
    unsafe { f.engine().attach(&a, space, copy.handle(), true, &DEVICE) }.unwrap();
    f.write(&a, ALL_NEW, &[2; 4]);
    assert_eq!(copy.uses(), (1, 1));
    // SAFETY: the copy outlives the fixture; this call is refused.
    let error = unsafe { f.engine().attach(&a, space + 1, copy.handle(), true, &DEVICE) }.unwrap_err();
    assert_eq!(error.status, status::ARGUMENT);
}

#[test]
fn a_failing_download_is_reported_and_sync_poisons() {
    let copy = DeviceCopy { fail: true, ..DeviceCopy::new(0) };
    let f = Fixture::new();
    let a = ints(1, 4);
    let space = f.engine().new_space();
    // SAFETY: the copy outlives the fixture's use of it.
    unsafe { f.engine().attach(&a, space, copy.handle(), true, &DEVICE) }.unwrap();
    assert_eq!(f.values(&a).unwrap_err().status, status::DEVICE);
    assert_eq!(f.values(&a).unwrap_err().status, status::DEVICE);
    f.registry.finish_block(&system_batch(Opcode::Sync, &a).as_ref(), 0);
    assert_eq!(copy.uses(), (1, 1), "lost with the first transfer that fails");
    let text = f.values(&a).unwrap_err().text;
    assert_eq!(text, "the newest copy of base 1, i32[4], cannot be read: the device is on fire");
}

fn system_batch(opcode: Opcode, base: &bh_bytecode::Base) -> Batch {
    let mut batch = Batch::default();
    let index = batch.push_base(*base);
    let view = batch.push_view(index, &View::contiguous(&[base.len]).unwrap());
    batch.push_instr(Instr::new(opcode, &[Operand::view(view)]));
    batch.push_block(&[0], &[]);
    batch
}

#[test]
fn blocks_sync_free_and_discard() {
    let copy = DeviceCopy::new(8);
    let f = Fixture::new();
    let (a, contracted) = (ints(1, 4), ints(2, 4));
    let space = f.engine().new_space();
    // SAFETY: the copy outlives the fixture's use of it.
    unsafe { f.engine().attach(&a, space, copy.handle(), true, &DEVICE) }.unwrap();
    f.registry.finish_block(&system_batch(Opcode::Sync, &a).as_ref(), 0);
    assert_eq!((copy.uses(), f.fake.live()), ((1, 0), 16));
    f.registry.finish_block(&system_batch(Opcode::Free, &a).as_ref(), 0);
    assert_eq!((copy.uses(), f.fake.live()), ((1, 1), 0));
    assert_eq!(f.values(&a).unwrap(), [0; 4]);
    f.registry.finish_block(&system_batch(Opcode::Discard, &a).as_ref(), 0);
    f.registry.finish_block(&system_batch(Opcode::Discard, &contracted).as_ref(), 0);
    assert_eq!(f.fake.live(), 0);
    // A block that does not exist is ignored.
    f.registry.finish_block(&system_batch(Opcode::Discard, &a).as_ref(), 7);
}

unsafe extern "C" fn count_release(argument: *mut c_void, data: *mut c_void) {
    assert!(!data.is_null());
    // SAFETY: the argument is the test's counter.
    unsafe { (*argument.cast::<AtomicUsize>()).fetch_add(1, Ordering::Relaxed) };
}

fn shared(data: *mut c_void, release: Option<ReleaseFn>, argument: *mut c_void) -> Adoption {
    // SAFETY: the tests adopt memory of the base's size, or an empty base.
    unsafe { Adoption::new(data, adopt::SHARED, memory::HOST, release, argument) }
}

#[test]
fn adopted_memory_stays_in_place_until_discarded() {
    let copy = DeviceCopy::new(5);
    let f = Fixture::new();
    let (a, work) = (ints(1, 4), ints(2, 2));
    let mut memory = [1, 2, 3, 4];
    let released = AtomicUsize::new(0);
    let argument: *mut c_void = (&raw const released).cast_mut().cast();
    let data = memory.as_mut_ptr();
    f.registry.with(|arrays| arrays.adopt(&a, &shared(data.cast(), Some(count_release), argument))).unwrap();
    assert!(f.registry.with(|arrays| arrays.adopt(&a, &shared(data.cast(), None, ptr::null_mut()))).is_err());
    assert_eq!(f.values(&a).unwrap(), [1, 2, 3, 4]);
    f.engine().alias(&work, &a, &View::new(1, &[2], &[1]).unwrap()).unwrap();
    let loan = f.engine().acquire(&a, ALL_NEW).unwrap();
    assert_eq!(loan.data(), data.cast());
    drop(loan);
    assert_eq!(f.values(&work).unwrap(), [2, 3]);
    // A device writes; the next read transfers the data to the same place.
    let space = f.engine().new_space();
    // SAFETY: the copy outlives the fixture's use of it.
    unsafe { f.engine().attach(&a, space, copy.handle(), true, &DEVICE) }.unwrap();
    let loan = f.engine().acquire(&a, access::READ).unwrap();
    assert_eq!(loan.data(), data.cast());
    drop(loan);
    f.registry.with(|arrays| arrays.discard(&a)).unwrap();
    assert_eq!(released.load(Ordering::Relaxed), 1);
    assert_eq!(memory, [5; 4]);
    let error =
        f.registry.with(|arrays| arrays.adopt(&a, &shared(ptr::null_mut(), None, ptr::null_mut()))).unwrap_err();
    assert_eq!(error.status, status::ARGUMENT);
}

#[test]
fn a_mapped_base_survives_its_discard() {
    let f = Fixture::new();
    let a = ints(1, 4);
    f.write(&a, ALL_NEW, &[1, 2, 3, 4]);
    let loan = f.registry.lend(&a, HOST_SPACE, access::READ).unwrap();
    f.registry.with(|arrays| arrays.mapped(1, &loan));
    f.registry.with(|arrays| arrays.discard(&a)).unwrap();
    // SAFETY: the map keeps the memory alive.
    assert_eq!(unsafe { *loan.data.cast::<i32>() }, 1);
    f.registry.with(|arrays| arrays.unmap(&a)).unwrap();
    assert_eq!(f.fake.live(), 0);
    assert_eq!(f.registry.with(|arrays| arrays.unmap(&a)).unwrap_err().status, status::ARGUMENT);
}

#[test]
fn many_threads_share_a_registry() {
    let copies: Vec<DeviceCopy> = (0..8).map(DeviceCopy::new).collect();
    let f = Fixture::new();
    let space = f.engine().new_space();
    for (id, copy) in copies.iter().enumerate() {
        // SAFETY: the copies outlive the fixture.
        unsafe { f.engine().attach(&ints(id as u64, 64), space, copy.handle(), true, &DEVICE) }.unwrap();
    }
    let engine = f.engine();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..400u64 {
                    let id = round % 8;
                    assert_eq!(values(&engine, &ints(id, 64)).unwrap(), [id as i32; 64]);
                }
            });
        }
    });
    assert!(copies.iter().all(|copy| copy.uses() == (1, 0)));
    assert_eq!(f.registry.with(|arrays| arrays.leaks()).len(), 8);
}

#[test]
fn rehearsals_count_and_change_nothing() {
    let f = Fixture::new();
    let (a, b, c) = (ints(1, 16), ints(2, 8), ints(3, 32));
    f.write(&a, ALL_NEW, &[1; 16]);
    let (live, peak) = (f.fake.live(), f.fake.count("node.peak_bytes"));
    let (_, tally) = f.registry.rehearse(u64::MAX, || {
        drop(f.engine().acquire(&b, ALL_NEW).unwrap());
        let fresh = f.engine().fresh(&a).unwrap();
        assert!(fresh.data().is_null());
        f.engine().commit_rename(&a, fresh).unwrap();
        // A lazy copy gets memory when its base changes.
        f.engine().alias(&b, &a, &View::contiguous(&[8]).unwrap()).unwrap();
        drop(f.engine().acquire(&a, access::WRITE).unwrap());
        f.registry.with(|arrays| arrays.discard(&a)).unwrap();
        drop(f.engine().acquire(&c, ALL_NEW).unwrap());
    });
    // The second `a` beside the first one and `b` is the peak; `b` and `c` take less.
    assert_eq!((tally.peak(), tally.refused()), (96, 0));
    assert_eq!((f.fake.live(), f.fake.count("node.peak_bytes")), (live, peak));
    assert_eq!(f.values(&a).unwrap(), [1; 16]);
    assert_eq!(f.registry.with(|arrays| arrays.leaks()).len(), 1);
}

#[test]
fn rehearsals_find_out_what_does_not_fit() {
    let f = Fixture::new();
    let (a, b) = (ints(1, 16), ints(2, 16));
    f.write(&a, ALL_NEW, &[1; 16]);
    let (_, tally) = f.registry.rehearse(64, || {
        drop(f.engine().acquire(&b, ALL_NEW).unwrap());
        assert_eq!(f.engine().fresh(&a).unwrap_err().status, status::MEMORY);
        // Freed memory is available again.
        f.registry.with(|arrays| arrays.discard(&a)).unwrap();
        drop(f.engine().fresh(&b).unwrap());
    });
    assert_eq!((tally.peak(), tally.refused()), (64, 1));
    // Other threads' calls are not part of the rehearsal.
    let engine = f.engine();
    let take = || drop(engine.acquire(&b, ALL_NEW).unwrap());
    let (_, tally) = f.registry.rehearse(0, || std::thread::scope(|scope| scope.spawn(take).join().unwrap()));
    assert_eq!((tally.refused(), f.fake.live()), (0, 128));
}
