//! Random numbers: see `bh_bytecode::philox`.

use crate::builder::{Builder, Element, Value};
use bh_bytecode::DType;

/// The random number that belongs to a number under a key.
pub(crate) fn random<'c>(b: &Builder<'c>, number: Value<'c>, key: Value<'c>, output: DType) -> Value<'c> {
    let constant = |value: i64| b.splat(number.kind, value);
    let [low, half, multiplier, weyl] = [0xffff_ffff, 32, 0xD256_D193, 0x9E37_79B9].map(constant);
    let (mut left, mut key) = (number, key);
    let mut right = b.lshr(number, half);
    for _ in 0..10 {
        let product = b.mul(b.and(left, low), multiplier);
        let mixed = b.xor(b.lshr(product, half), right);
        left = b.xor(mixed, key);
        right = product;
        key = b.and(b.add(key, weyl), low);
    }
    let upper = b.shl(right, half);
    let lower = b.and(left, low);
    match output {
        DType::U32 => b.truncate(left, Element::I32),
        DType::F32 => {
            let bits = b.truncate(left, Element::I32);
            let shifted = b.lshr(bits, b.splat(bits.kind, 8));
            let number = b.signed_to_float(shifted, Element::F32);
            b.mul(number, b.splat(number.kind, 1.0 / (1u64 << 24) as f64))
        }
        _ => {
            let bits = b.or(upper, lower);
            if output == DType::U64 {
                return bits;
            }
            let number = b.unsigned_to_float(b.lshr(bits, constant(11)), Element::F64);
            b.mul(number, b.splat(number.kind, 1.0 / (1u64 << 53) as f64))
        }
    }
}
