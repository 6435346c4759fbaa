//! Neutral elements of folds.

use crate::batch::Constant;
use crate::{DType, Opcode, c64, c128, scalar, types_of};

/// The neutral element of a reduction or accumulate for a type, in the first bytes.
pub fn neutral(opcode: Opcode, dtype: DType) -> [u8; 16] {
    let mut bytes = [0u8; 16];
    macro_rules! write {
        ($function:ident, [$(($type:ty, $variant:ident)),*]) => {
            match dtype {
                $(DType::$variant => crate::Element::write(scalar::$function::<$type>(), &mut bytes),)*
                #[allow(unreachable_patterns, reason = "some sets hold every type")]
                _ => {}
            }
        };
    }
    match opcode.info().neutral {
        "zero" => types_of!(ALL, write, zero),
        "one" => types_of!(ALL, write, one),
        "highest" => types_of!(ORDERED, write, highest),
        "lowest" => types_of!(ORDERED, write, lowest),
        "all_ones" => types_of!(BITS, write, all_ones),
        _ => {}
    }
    bytes
}

/// The same as a constant.
pub fn neutral_constant(opcode: Opcode, dtype: DType) -> Constant {
    Constant::from_bytes(dtype, &neutral(opcode, dtype))
}
