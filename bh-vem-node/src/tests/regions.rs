//! Tests parts of arrays on a device: reads, writes, aliases and eviction, and loans while the program continues.

use super::fake::{Fixture, ints};
use super::{ALL_NEW, count_release};
use bh_bytecode::{Base, DType, View};
use bh_core::abi::{Adoption, ExportRequest, HOST_SPACE, HostMemory, access, adopt, export, memory, retire, status};
use bh_core::component::{Attachment, RegistryService, SharedCalls};
use bh_core::{Error, Result, strided};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// An array on the device.
struct Array(Mutex<Vec<i32>>);

/// Counts of the device, in elements.
#[derive(Default)]
struct Device {
    read: AtomicUsize,
    written: AtomicUsize,
    cloned: AtomicUsize,
    prefetched: AtomicUsize,
    dropped: AtomicUsize,
    /// Reads fail.
    broken: AtomicBool,
}

impl Attachment for Array {
    type Shared = Device;

    fn to_host(self: &Arc<Self>, device: &Device, target: &mut [u8]) -> Result<()> {
        if device.broken.load(Ordering::Relaxed) {
            return Err(Error::new(status::DEVICE, "the device is broken"));
        }
        device.read.fetch_add(target.len() / 4, Ordering::Relaxed);
        let bytes: Vec<u8> = self.0.lock().unwrap().iter().flat_map(|value| value.to_ne_bytes()).collect();
        target.copy_from_slice(&bytes);
        Ok(())
    }

    unsafe fn read(self: &Arc<Self>, device: &Device, dtype: DType, view: &View, memory: &HostMemory) -> Result<()> {
        device.read.fetch_add(view.len() as usize, Ordering::Relaxed);
        // SAFETY: the view is within the base, whose elements are the vector's, and `memory` is writable for it, as
        // [`Attachment::read`] requires.
        unsafe { strided::load(dtype, view, self.0.lock().unwrap().as_ptr().cast(), memory) };
        Ok(())
    }

    unsafe fn write(self: &Arc<Self>, device: &Device, dtype: DType, view: &View, memory: &HostMemory) -> Result<()> {
        device.written.fetch_add(view.len() as usize, Ordering::Relaxed);
        // SAFETY: the view is within the base, whose elements are the vector's, and `memory` is readable for it, as
        // [`Attachment::write`] requires.
        unsafe { strided::store(dtype, view, self.0.lock().unwrap().as_mut_ptr().cast(), memory) };
        Ok(())
    }

    fn prefetch(self: &Arc<Self>, device: &Device) {
        device.prefetched.fetch_add(1, Ordering::Relaxed);
    }

    fn duplicate(self: &Arc<Self>, device: &Device, _: DType, view: &View) -> Result<Arc<Self>> {
        device.cloned.fetch_add(view.len() as usize, Ordering::Relaxed);
        let source = self.0.lock().unwrap();
        let elements = bh_bytecode::interp::offsets(view.start(), view.shape(), view.stride());
        Ok(Arc::new(Array(Mutex::new(elements.map(|at| source[at as usize]).collect()))))
    }

    fn detached(self: Arc<Self>, device: &Device) {
        device.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Device {
    /// Attaches a copy of a base.
    fn attach(&self, f: &Fixture, base: &Base, space: u32, values: &[i32], exclusive: bool) {
        let array = Arc::new(Array(Mutex::new(values.to_vec())));
        // SAFETY: the tests' devices outlive their registries.
        unsafe { f.engine().attach_copy(base, space, array, exclusive, self) }.unwrap();
    }

    /// Puts a base's only data on the device.
    fn put(&self, f: &Fixture, base: &Base, space: u32, values: &[i32]) {
        self.attach(f, base, space, values, true);
    }

    fn counts(&self) -> [usize; 3] {
        [&self.read, &self.written, &self.cloned].map(|count| count.load(Ordering::Relaxed))
    }
}

/// The elements of a view, read by the program.
fn window(f: &Fixture, base: &Base, view: &View) -> Vec<i32> {
    let mut found = vec![0i32; view.len() as usize];
    let mut stride: Vec<i64> = view
        .shape()
        .iter()
        .rev()
        .scan(4, |step, extent| {
            let own = *step;
            *step *= extent;
            Some(own)
        })
        .collect();
    stride.reverse();
    // SAFETY: `found` has space for all elements, packed.
    let memory = unsafe { HostMemory::new(found.as_mut_ptr().cast(), &stride) };
    f.engine().read(base, view, &memory).unwrap();
    found
}

fn sixteen() -> Vec<i32> {
    (0..16).collect()
}

#[test]
fn a_read_moves_what_it_reads_and_a_write_what_it_writes() {
    let (device, f) = (Device::default(), Fixture::new());
    let (a, space) = (ints(1, 16), f.engine().new_space());
    device.put(&f, &a, space, &sixteen());
    assert_eq!(window(&f, &a, &View::new(5, &[], &[]).unwrap()), [5]);
    assert_eq!(window(&f, &a, &View::new(1, &[2, 3], &[4, 1]).unwrap()), [1, 2, 3, 5, 6, 7]);
    assert_eq!(window(&f, &a, &View::new(15, &[4], &[-5]).unwrap()), [15, 10, 5, 0]);
    assert_eq!(device.counts(), [11, 0, 0]);
    assert_eq!((f.fake.count("node.region_read_bytes"), f.fake.count("node.to_host"), f.fake.live()), (44, 0, 0));
    let value = [100i32, 200];
    // SAFETY: `value` has two elements.
    let memory = unsafe { HostMemory::new(value.as_ptr().cast_mut().cast(), &[4]) };
    f.engine().write(&a, &View::new(5, &[2], &[1]).unwrap(), &memory).unwrap();
    assert_eq!(window(&f, &a, &View::new(4, &[4], &[1]).unwrap()), [4, 100, 200, 7]);
    assert_eq!((device.counts(), f.fake.live()), ([15, 2, 0], 0), "the array never left the device");
    let outside = f.engine().read(&a, &View::new(15, &[2], &[1]).unwrap(), &memory).unwrap_err();
    assert_eq!(outside.status, status::BOUNDS);
    let found = f.engine().residency(&a);
    assert_eq!((found.host, found.spaces, found.space), (0, 1, space));
}

#[test]
fn aliases_stay_on_the_device_until_somebody_needs_them() {
    let (device, f) = (Device::default(), Fixture::new());
    let (grid, work, space) = (ints(1, 16), ints(2, 4), f.engine().new_space());
    let center = View::new(5, &[2, 2], &[4, 1]).unwrap();
    device.put(&f, &grid, space, &sixteen());
    // The program reads: only the alias's elements are transferred.
    f.engine().alias(&work, &grid, &center).unwrap();
    assert_eq!((device.counts(), f.fake.live()), ([0, 0, 0], 0));
    assert_eq!(f.values(&work).unwrap(), [5, 6, 9, 10]);
    assert_eq!((device.counts(), f.fake.live()), ([4, 0, 0], 16));
    // The device needs it: a copy there.
    f.engine().alias(&work, &grid, &center).unwrap();
    assert!(!f.engine().acquire_in(&work, space, access::READ).unwrap().data().is_null());
    assert_eq!((device.counts(), f.fake.live()), ([4, 0, 4], 0));
    // The source changes in place: the alias is copied first.
    f.engine().alias(&work, &grid, &center).unwrap();
    let loan = f.engine().acquire_in(&grid, space, access::WRITE).unwrap();
    // SAFETY: the handle is one of the device's arrays.
    unsafe { &*loan.data().cast::<Array>() }.0.lock().unwrap().fill(7);
    drop(loan);
    assert_eq!((f.values(&work).unwrap(), device.counts()), (vec![5, 6, 9, 10], [8, 0, 8]));
    // The source is overwritten as a whole or dropped: the alias keeps its version, without a copy.
    f.engine().alias(&work, &grid, &center).unwrap();
    let claimed = f.engine().acquire_in(&grid, space, ALL_NEW).unwrap();
    assert!(claimed.data().is_null(), "the engine has to use other memory");
    drop(claimed);
    device.put(&f, &grid, space, &sixteen());
    assert_eq!((f.values(&work).unwrap(), device.counts()[2]), (vec![7; 4], 8));
    f.engine().alias(&work, &grid, &center).unwrap();
    f.engine().retire(&grid, retire::DISCARD).unwrap();
    assert_eq!(f.values(&work).unwrap(), [5, 6, 9, 10]);
    f.engine().retire(&work, retire::DISCARD).unwrap();
    assert_eq!(f.registry.with(|arrays| arrays.leaks()), []);
    assert_eq!(f.fake.count("node.to_host_bytes"), 4 * 16);
}

#[test]
fn eviction_writes_back_what_is_only_there() {
    let (device, f) = (Device::default(), Fixture::new());
    let (a, part, space) = (ints(1, 4), ints(2, 2), f.engine().new_space());
    let whole = View::contiguous(&[4]).unwrap();
    f.write(&a, ALL_NEW, &[1, 2, 3, 4]);
    device.attach(&f, &a, space, &[1, 2, 3, 4], false);
    f.engine().detach(&a, space).unwrap();
    assert_eq!((device.dropped.load(Ordering::Relaxed), device.counts()), (1, [0; 3]), "the host has it too");
    device.put(&f, &a, space, &[1, 2, 3, 4]);
    device.put(&f, &part, space, &[8, 9]);
    f.engine().alias(&ints(3, 4), &a, &whole).unwrap();
    let loan = f.engine().acquire_in(&part, space, access::READ).unwrap();
    assert_eq!(f.engine().detach(&part, space).unwrap_err().status, status::DEVICE, "it is lent");
    drop(loan);
    // The elements that aliases need are transferred as well.
    f.engine().detach(&a, space).unwrap();
    let found = f.engine().residency(&a);
    assert_eq!((found.host, found.spaces, f.values(&ints(3, 4)).unwrap()), (1, 0, vec![1, 2, 3, 4]));
    device.broken.store(true, Ordering::Relaxed);
    assert_eq!(f.engine().detach(&part, space).unwrap_err().status, status::DEVICE, "it cannot be written back");
    assert_eq!(f.engine().residency(&part).spaces, 1, "so its only copy stays");
}

#[test]
fn syncs_begin_a_transfer_and_do_not_wait() {
    let (device, f) = (Device::default(), Fixture::new());
    let (a, space) = (ints(1, 4), f.engine().new_space());
    device.put(&f, &a, space, &[1, 2, 3, 4]);
    f.engine().retire(&a, retire::SYNC).unwrap();
    assert_eq!((device.prefetched.load(Ordering::Relaxed), device.counts(), f.fake.live()), (1, [0; 3], 0));
    assert_eq!(f.engine().retire(&a, 9).unwrap_err().status, status::ARGUMENT);
    f.engine().retire(&a, retire::FREE).unwrap();
    assert_eq!(f.values(&a).unwrap(), [0; 4]);
}

#[test]
fn syncs_wait_where_the_program_reads_without_asking() {
    let (device, f) = (Device::default(), Fixture::new());
    let (a, space) = (ints(1, 4), f.engine().new_space());
    f.write(&a, ALL_NEW, &[0; 4]);
    f.registry.with(|arrays| arrays.pin(&a, true)).unwrap();
    let data = f.engine().acquire(&a, access::READ).unwrap().data().cast::<[i32; 4]>();
    device.put(&f, &a, space, &[1, 2, 3, 4]);
    f.engine().retire(&a, retire::SYNC).unwrap();
    // SAFETY: pinned memory stays in place, and nothing else uses it.
    assert_eq!(unsafe { *data }, [1, 2, 3, 4]);
    f.registry.with(|arrays| arrays.pin(&a, false)).unwrap();
}

#[test]
fn donated_memory_may_move_and_immutable_memory_is_copied_first() {
    let (device, f) = (Device::default(), Fixture::new());
    let (given, fixed, space) = (ints(1, 4), ints(2, 4), f.engine().new_space());
    let mut memories = [[1, 2, 3, 4], [5, 6, 7, 8]];
    let released = AtomicUsize::new(0);
    let argument: *mut c_void = (&raw const released).cast_mut().cast();
    let [first, second] = memories.each_mut().map(|memory| memory.as_mut_ptr().cast());
    let take = |data, mode| {
        // SAFETY: the memories outlive the fixture's use of them.
        unsafe { Adoption::new(data, mode, memory::HOST, Some(count_release), argument) }
    };
    SharedCalls::adopt(&*f.registry, &given, &take(first, adopt::DONATED)).unwrap();
    SharedCalls::adopt(&*f.registry, &fixed, &take(second, adopt::IMMUTABLE)).unwrap();
    let unknown = SharedCalls::adopt(&*f.registry, &ints(3, 4), &take(first, 7)).unwrap_err();
    assert_eq!(unknown.status, status::ARGUMENT);
    assert_eq!(f.engine().acquire(&given, access::READ).unwrap().data(), first);
    // A device writes: the donated memory is released.
    device.put(&f, &given, space, &[9; 4]);
    assert_eq!(released.load(Ordering::Relaxed), 1);
    // Writing to a part of the immutable array changes a copy.
    f.write(&fixed, access::WRITE, &[50]);
    assert_eq!((f.values(&fixed).unwrap(), released.load(Ordering::Relaxed)), (vec![50, 6, 7, 8], 2));
    assert_eq!(memories[1], [5, 6, 7, 8]);
}

#[test]
fn what_is_lent_for_reading_does_not_change() {
    let f = Fixture::new();
    let a = ints(1, 2);
    f.write(&a, ALL_NEW, &[1, 2]);
    // SAFETY: each loan keeps two elements alive.
    let seen = |data: *mut c_void| unsafe { [*data.cast::<i32>(), *data.cast::<i32>().add(1)] };
    let stable = f.engine().acquire(&a, access::READ | access::STABLE).unwrap();
    f.write(&a, access::WRITE, &[3]);
    assert_eq!((seen(stable.data()), f.values(&a).unwrap()), ([1, 2], vec![3, 2]));
    assert_eq!(f.fake.live(), 16);
    drop(stable);
    assert_eq!(f.fake.live(), 8);
    let lend = |mode| SharedCalls::export_data(&*f.registry, &a, &ExportRequest::new(mode, memory::HOST)).unwrap();
    let (read_only, snapshot) = (lend(export::READ_ONLY), lend(export::SNAPSHOT));
    assert_eq!(f.engine().acquire(&a, access::READ).unwrap().data(), read_only.data);
    f.write(&a, ALL_NEW, &[7, 8]);
    assert_eq!((seen(read_only.data), seen(snapshot.data)), ([3, 2], [3, 2]));
    let shared = lend(export::SHARED);
    f.write(&a, ALL_NEW, &[9, 10]);
    assert_eq!(seen(shared.data), [9, 10]);
    // Stable loans of writable memory are copies.
    let stable = f.engine().acquire(&a, access::READ | access::STABLE).unwrap();
    assert_ne!(stable.data(), shared.data);
    drop(stable);
    for lent in [read_only, snapshot, shared] {
        SharedCalls::end_export(&*f.registry, &a, lent.token).unwrap();
        assert_eq!(SharedCalls::end_export(&*f.registry, &a, lent.token).unwrap_err().status, status::HANDLE);
    }
    assert_eq!(f.fake.live(), 8);
    assert!(SharedCalls::export_data(&*f.registry, &a, &ExportRequest::new(9, memory::HOST)).is_err());
    assert!(SharedCalls::export_data(&*f.registry, &a, &ExportRequest::new(0, memory::OPENCL)).is_err());
}

#[test]
fn a_loan_ends_once() {
    let f = Fixture::new();
    let a = ints(1, 2);
    f.write(&a, ALL_NEW, &[1, 2]);
    let loan = f.registry.lend(&a, HOST_SPACE, access::READ).unwrap();
    let fresh = RegistryService::fresh(&*f.registry, &a).unwrap();
    assert_eq!(RegistryService::commit_rename(&*f.registry, &a, loan.token).unwrap_err().status, status::HANDLE);
    for token in [loan.token, loan.token, fresh.token, 77] {
        RegistryService::release(&*f.registry, token);
    }
    RegistryService::drop_fresh(&*f.registry, loan.token);
    assert_eq!(f.fake.count("node.wrong_releases"), 4);
    assert_eq!(f.values(&a).unwrap(), [1, 2], "the base still has its own reference");
    RegistryService::drop_fresh(&*f.registry, fresh.token);
    assert_eq!(f.fake.live(), 8);
}
