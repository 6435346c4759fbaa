//! Input values: tame ones that keep sums exact enough to compare, and wild ones with all special cases.

use bh_bytecode::random::Rng;
use bh_bytecode::{Constant, DType, Truth};

/// The values of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Small numbers.
    Tame,
    /// Special values, all magnitudes, extreme integers.
    Wild,
    /// Small whole numbers.
    Whole,
    /// Indices below a length, the last of them negative for signed types.
    Indices(i64),
}

const WILD_FLOATS: &[f64] = &[
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    f64::MIN_POSITIVE,
    5e-324,
    1e-40,
    f64::MAX,
    f64::MIN,
    3.4e38,
    2147483648.0,
    -9223372036854775808.0,
    1e22,
    123456.789,
    709.0,
    -745.0,
    88.0,
    1e-9,
    std::f64::consts::PI,
    std::f64::consts::FRAC_PI_2,
];

/// One value of a type.
pub fn value(rng: &mut Rng, dtype: DType, values: Values) -> Constant {
    if dtype.is_complex() {
        let (re, im) = (value(rng, dtype.real_part(), values), value(rng, dtype.real_part(), values));
        let half = dtype.size() / 2;
        let mut bytes = [0; 16];
        bytes[..half].copy_from_slice(&re.bytes()[..half]);
        bytes[half..2 * half].copy_from_slice(&im.bytes()[..half]);
        return Constant::from_bytes(dtype, &bytes[..2 * half]);
    }
    if let Values::Indices(length) = values {
        let low = if dtype.is_signed_int() { -length } else { 0 };
        return Constant::from_value(rng.between(low, length - 1)).cast(dtype);
    }
    if values == Values::Whole && dtype.is_float() {
        return Constant::from_value(rng.between(-9, 9)).cast(dtype);
    }
    if dtype.is_float() {
        let unit = (rng.bits() >> 11) as f64 * 2f64.powi(-53);
        let number = match (values, rng.below(4)) {
            (Values::Wild, 0) => WILD_FLOATS[rng.below(WILD_FLOATS.len())],
            (Values::Wild, 1) => (unit - 0.5) * 2f64.powi(rng.between(-60, 60) as i32),
            (_, 2) => rng.between(-9, 9) as f64 / 2.0,
            _ => unit * 4.0 - 2.0,
        };
        return Constant::from_value(number).cast(dtype);
    }
    let wild = values == Values::Wild && rng.chance(30);
    let number = match rng.below(4) {
        0 if wild => i64::MIN,
        1 if wild => i64::MAX,
        2 if wild => -1,
        _ if wild => rng.bits() as i64,
        _ => rng.between(if dtype.is_signed_int() { -9 } else { 0 }, 9),
    };
    if dtype == DType::Bool {
        return Constant::from_value(Truth::from(rng.chance(50)));
    }
    if wild && rng.chance(40) {
        return extreme(rng, dtype);
    }
    Constant::from_value(number).cast(dtype)
}

/// The smallest or largest integer of a type, or one of its neighbours.
fn extreme(rng: &mut Rng, dtype: DType) -> Constant {
    let bits = 8 * dtype.size() as u32;
    let (low, high) = if dtype.is_signed_int() {
        (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits))
    } else {
        (0, (u64::MAX >> (64 - bits)) as i64)
    };
    let number = *rng.pick(&[low, high, low.wrapping_add(1), high.wrapping_sub(1)]).unwrap_or(&low);
    Constant::from_value(number).cast(dtype)
}

/// The bytes of `count` values. For booleans, every third true one is another byte than 1, because memory may contain
/// any.
pub fn fill(rng: &mut Rng, dtype: DType, count: i64, values: Values) -> Vec<u8> {
    let size = dtype.size();
    let mut bytes: Vec<u8> =
        (0..count).flat_map(|_| value(rng, dtype, values).bytes().into_iter().take(size)).collect();
    if dtype == DType::Bool {
        for byte in bytes.iter_mut().filter(|byte| **byte != 0) {
            *byte = if rng.chance(33) { rng.between(2, 255) as u8 } else { 1 };
        }
    }
    bytes
}
