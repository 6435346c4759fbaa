//! Sort keys: integers in the order of elements, for every type.

use bh_bytecode::DType;

/// The comparison of a type's elements.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    pub dtype: DType,
    /// Equal values have equal keys: zeros of both signs, and all NaNs. Otherwise keys have the order of bits.
    pub by_value: bool,
}

/// The key of a floating-point number. `infinity`: the bits of infinity; `sign`: the sign bit.
fn of_float(bits: u64, infinity: u64, sign: u64, by_value: bool) -> u64 {
    let magnitude = bits & (sign - 1);
    if by_value && magnitude > infinity {
        return sign | (sign - 1);
    }
    if by_value && magnitude == 0 {
        return of_float(sign, infinity, sign, false) + 1;
    }
    let key = |bits: u64| if bits & sign == 0 { bits | sign } else { !bits & (sign | (sign - 1)) };
    // Negative NaNs would sort below all numbers; they move to the end.
    let below = key(infinity | sign);
    match (magnitude > infinity, bits & sign == 0) {
        (false, _) => key(bits) - below,
        (true, false) => key(infinity) - below + 1 + key(bits),
        (true, true) => key(bits),
    }
}

fn word<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut word = [0; N];
    word.copy_from_slice(&bytes[..N]);
    word
}

impl Keys {
    /// An element's key, at most [`Keys::highest`].
    pub fn of(self, element: &[u8]) -> u64 {
        let signed = |value: u64, bits: u32| value ^ 1 << (bits - 1);
        match self.dtype {
            DType::Bool => u64::from(element[0] != 0),
            DType::U8 => u64::from(element[0]),
            DType::U16 => u64::from(u16::from_ne_bytes(word(element))),
            DType::U32 => u64::from(u32::from_ne_bytes(word(element))),
            DType::I8 => signed(u64::from(element[0]), 8),
            DType::I16 => signed(u64::from(u16::from_ne_bytes(word(element))), 16),
            DType::I32 => signed(u64::from(u32::from_ne_bytes(word(element))), 32),
            DType::I64 => signed(u64::from_ne_bytes(word(element)), 64),
            DType::F32 => {
                let bits = u64::from(u32::from_ne_bytes(word(element)));
                of_float(bits, u64::from(f32::INFINITY.to_bits()), 1 << 31, self.by_value)
            }
            DType::F64 => of_float(u64::from_ne_bytes(word(element)), f64::INFINITY.to_bits(), 1 << 63, self.by_value),
            _ => u64::from_ne_bytes(word(element)),
        }
    }

    /// The highest key.
    pub fn highest(self) -> u64 {
        u64::MAX >> (64 - 8 * self.dtype.size().min(8))
    }

    /// How many of the sorted elements have keys up to `number`.
    pub fn up_to(self, elements: &[u8], number: u64) -> usize {
        let size = self.dtype.size();
        let (mut low, mut high) = (0, elements.len() / size);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.of(&elements[middle * size..]) <= number { low = middle + 1 } else { high = middle }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_order_of_elements() {
        let nan = f64::NAN.to_bits();
        let ascending = [
            f64::NEG_INFINITY,
            -1e300,
            -1.0,
            -f64::from_bits(1),
            -0.0,
            0.0,
            f64::from_bits(1),
            1.5,
            f64::INFINITY,
            f64::from_bits(nan | 1 << 63 | 1),
            f64::from_bits(nan | 1 << 63),
            f64::from_bits(nan),
            f64::from_bits(nan | 1),
        ];
        let keys = Keys { dtype: DType::F64, by_value: false };
        let found: Vec<u64> = ascending.iter().map(|value| keys.of(&value.to_ne_bytes())).collect();
        assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{found:x?}");
        let keys = Keys { by_value: true, ..keys };
        let found: Vec<u64> = ascending.iter().map(|value| keys.of(&value.to_ne_bytes())).collect();
        assert!(found[4] == found[5] && found[9..].iter().all(|key| *key == keys.highest()));
        assert!(found[3] < found[4] && found[5] < found[6] && found[8] < found[9]);
        let single = Keys { dtype: DType::F32, by_value: false };
        let values = [f32::NEG_INFINITY, -2.5, -0.0, 0.0, 3.0, f32::INFINITY, -f32::NAN, f32::NAN];
        let found: Vec<u64> = values.iter().map(|value| single.of(&value.to_ne_bytes())).collect();
        assert!(found.windows(2).all(|pair| pair[0] < pair[1]) && found[7] <= single.highest(), "{found:x?}");
        let whole = Keys { dtype: DType::I16, by_value: false };
        let values = [i16::MIN, -300, -1, 0, 1, 255, i16::MAX];
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let counts = values.map(|value| whole.up_to(&bytes, whole.of(&value.to_ne_bytes())));
        assert_eq!(counts, [1, 2, 3, 4, 5, 6, 7]);
    }
}
