//! Two engines, of which one runs kernels in blocks and the other one compiles them, and the comparison of their results.

use crate::support::Driver;
use bh_bytecode::interp::Memory;
use bh_bytecode::{Batch, DType};

/// Does the machine have the instructions?
pub fn levels() -> Vec<&'static str> {
    let available = bh_ve_cpu::simd::Isa::available().map(|isa| isa.name());
    available.filter(|name| ["avx2", "avx512", "neon"].contains(name)).collect()
}

/// The keys in which engines differ: with few bytes for windows, strips have few rows; with few bytes for streams,
/// outputs bypass the caches.
pub type Keys = [(&'static str, &'static str)];

pub fn engine(isa: &str, jit: &str, keys: &Keys) -> Driver {
    let mut all = vec![("threads", "2"), ("isa", isa), ("jit", jit), ("jit_cache_dir", "")];
    all.extend(keys);
    Driver::new(&all).unwrap()
}

/// Equal bits; any NaN is as good as another, and so is any byte that is true.
pub fn same(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    let float = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
    let double = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().unwrap());
    let parts = |a: &[u8], b: &[u8], size: usize, alike: &dyn Fn(&[u8]) -> bool| {
        a.chunks(size).zip(b.chunks(size)).all(|(a, b)| a == b || (alike(a) && alike(b)))
    };
    a.len() == b.len()
        && match dtype {
            DType::F32 | DType::C64 => parts(a, b, 4, &|bytes| float(bytes).is_nan()),
            DType::F64 | DType::C128 => parts(a, b, 8, &|bytes| double(bytes).is_nan()),
            DType::Bool => parts(a, b, 1, &|bytes| bytes[0] != 0),
            _ => a == b,
        }
}

pub fn compare(batch: &Batch, blocks: &Memory, compiled: &Memory) -> Result<(), String> {
    for (index, base) in batch.bases.iter().enumerate() {
        let (Some(a), Some(b)) = (blocks.get(base.id), compiled.get(base.id)) else { continue };
        if !same(base.dtype(), a, b) {
            let size = base.dtype().size();
            let at = a.chunks(size).zip(b.chunks(size)).position(|(a, b)| a != b).unwrap_or(0);
            let (a, b) = (&a[at * size..][..size], &b[at * size..][..size]);
            return Err(format!("base {index} ({}), element {at}: blocks {a:?}, compiled {b:?}", base.dtype()));
        }
    }
    Ok(())
}

/// Runs a batch in blocks and compiled; the bits must be the same.
pub fn check_bits(drivers: &mut [Driver; 2], batch: &Batch, memory: &Memory, what: &str) {
    let [blocks, compiled] = drivers.each_mut().map(|driver| driver.run_on(&batch.as_ref(), memory).unwrap());
    if let Err(difference) = compare(batch, &blocks, &compiled) {
        panic!("{what}: {difference}");
    }
}
