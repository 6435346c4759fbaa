//! Tests of the allocator.

use super::*;

fn memory(limit: usize, cache: usize) -> Memory {
    Memory::new(MemorySettings { limit, cache, huge_pages: true })
}

#[test]
fn classes_cover_their_sizes_and_waste_little() {
    for bytes in (1..20_000).chain([1 << 20, (1 << 20) + 1, (1 << 33) - 1, (1 << 33) + 1]) {
        let class = class_of(bytes).unwrap();
        assert!(class >= bytes && class_of(class) == Some(class), "{bytes} -> {class}");
        assert!(class - bytes <= (bytes / 8).max(PAGE), "{bytes} -> {class}");
    }
    assert_eq!(class_of(0), Some(64));
    assert_eq!(class_of(usize::MAX), None);
}

#[test]
fn buffers_are_aligned_and_reused() {
    let memory = memory(usize::MAX, 1 << 30);
    for bytes in [0, 1, 64, 65, 4095, 4096, 5000, 1 << 20, 9 << 20] {
        let first = memory.alloc(bytes, false).unwrap();
        assert_eq!(first as usize % 64, 0, "{bytes}");
        // SAFETY: just allocated with this size.
        unsafe {
            ptr::write_bytes(first, 1, bytes);
            memory.free(first, bytes);
        }
        let second = memory.alloc(bytes, true).unwrap();
        assert_eq!(first, second, "{bytes}");
        // SAFETY: the buffer has this many initialised bytes.
        assert!(unsafe { std::slice::from_raw_parts(second, bytes) }.iter().all(|&byte| byte == 0));
        // SAFETY: just allocated with this size.
        unsafe { memory.free(second, bytes) };
    }
    let usage = memory.usage();
    assert_eq!(
        (usage.in_use, usage.allocations, usage.cache_hits, usage.refused),
        (0, 18, 12, 0),
        "sizes up to 64 share a class"
    );
    assert_eq!(memory.release_cache(), usage.cached);
    assert_eq!(memory.usage().cached, 0);
}

#[test]
fn large_buffers_begin_at_different_places_of_the_caches() {
    let memory = memory(usize::MAX, 0);
    for bytes in [160 << 10, 5 << 20] {
        let buffers: Vec<_> = (0..64).map(|_| memory.alloc(bytes, false).unwrap()).collect();
        let mut places: Vec<usize> = buffers.iter().map(|&buffer| buffer as usize % (1 << 19)).collect();
        places.sort_unstable();
        places.dedup();
        // Tests that run in parallel take some as well.
        assert!(places.len() > 32, "{bytes} bytes: {places:?}");
        let lines = buffers[..12].iter().map(|&buffer| buffer as usize % 4096);
        let lines: std::collections::HashSet<usize> = lines.collect();
        assert!(lines.len() > 6, "{bytes} bytes: {lines:?}");
        for buffer in buffers {
            // SAFETY: allocated above with this size.
            unsafe { memory.free(buffer, bytes) };
        }
    }
}

#[test]
fn the_cache_is_bounded_and_drops_the_oldest() {
    let memory = memory(usize::MAX, 100 << 10);
    let buffers: Vec<_> = (0..3).map(|_| memory.alloc(40 << 10, false).unwrap()).collect();
    for &buffer in &buffers {
        // SAFETY: allocated above with this size.
        unsafe { memory.free(buffer, 40 << 10) };
    }
    assert_eq!(memory.usage().cached, 80 << 10);
    assert_eq!(memory.alloc(40 << 10, false), Some(buffers[2]));
    assert_eq!(memory.alloc(40 << 10, false), Some(buffers[1]));
    for &buffer in &buffers[1..] {
        // SAFETY: allocated above with this size.
        unsafe { memory.free(buffer, 40 << 10) };
    }
    let large = memory.alloc(200 << 10, false).unwrap();
    // SAFETY: as above.
    unsafe { memory.free(large, 200 << 10) };
    assert_eq!(memory.usage().cached, 80 << 10, "a buffer larger than the cache is not kept");
}

#[test]
fn the_limit_refuses_and_makes_the_cache_give_way() {
    let memory = memory(1 << 20, 1 << 20);
    let first = memory.alloc(600 << 10, false).unwrap();
    assert_eq!(memory.alloc(600 << 10, false), None);
    // SAFETY: allocated above with this size.
    unsafe { memory.free(first, 600 << 10) };
    assert!(memory.usage().cached > 0);
    let second = memory.alloc(1 << 20, false).expect("the cached buffer gives way");
    assert_eq!((memory.usage().cached, memory.usage().refused), (0, 1));
    // SAFETY: as above.
    unsafe { memory.free(second, 1 << 20) };
    memory.set_limit(0);
    assert_eq!((memory.alloc(1, false), memory.usage().cached), (None, 0));
    memory.set_limit(usize::MAX);
    assert_eq!(memory.alloc(usize::MAX / 2, false), None, "more than the system has is refused, not fatal");
    assert_eq!(memory.alloc(usize::MAX, false), None);
    assert_eq!(memory.usage().in_use, 0);
}

#[test]
fn threads_share_it() {
    let memory = memory(usize::MAX, 1 << 20);
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let memory = &memory;
            scope.spawn(move || {
                for round in 0..2000 {
                    let bytes = (thread * 997 + round * 61) % 9000;
                    let data = memory.alloc(bytes, false).unwrap();
                    // SAFETY: the buffer has this many bytes and is ours until it is freed.
                    unsafe {
                        ptr::write_bytes(data, thread as u8, bytes);
                        assert!((0..bytes).all(|index| *data.add(index) == thread as u8));
                        memory.free(data, bytes);
                    }
                }
            });
        }
    });
    assert_eq!(memory.usage().in_use, 0);
}
