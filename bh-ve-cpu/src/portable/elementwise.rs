//! Element-wise operations, one function per opcode and type.

use super::{PrimFn, get, put};
use bh_bytecode::{DType, Opcode, c64, c128, for_each_opcode, scalar, types_of};

/// Defines a primitive of one, two or three operands from an expression in them.
macro_rules! prim {
    ($a:ident: $A:ty => $body:expr) => {{
        unsafe fn run(n: usize, dst: *mut u8, a: *const u8, _: *const u8, _: *const u8) {
            for i in 0..n {
                // SAFETY: promised by the caller of the primitive.
                unsafe {
                    let $a: $A = get(a, i);
                    put(dst, i, $body);
                }
            }
        }
        Some(run as PrimFn)
    }};
    ($a:ident: $A:ty, $b:ident: $B:ty => $body:expr) => {{
        unsafe fn run(n: usize, dst: *mut u8, a: *const u8, b: *const u8, _: *const u8) {
            for i in 0..n {
                // SAFETY: promised by the caller of the primitive.
                unsafe {
                    let ($a, $b): ($A, $B) = (get(a, i), get(b, i));
                    put(dst, i, $body);
                }
            }
        }
        Some(run as PrimFn)
    }};
    ($a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty => $body:expr) => {{
        unsafe fn run(n: usize, dst: *mut u8, a: *const u8, b: *const u8, c: *const u8) {
            for i in 0..n {
                // SAFETY: promised by the caller of the primitive.
                unsafe {
                    let ($a, $b, $c): ($A, $B, $C) = (get(a, i), get(b, i), get(c, i));
                    put(dst, i, $body);
                }
            }
        }
        Some(run as PrimFn)
    }};
}

macro_rules! unary {
    ($dtype:expr, $function:ident, [$(($type:ty, $variant:ident)),*]) => {
        match $dtype {
            $(DType::$variant => prim!(x: $type => scalar::$function(x)),)*
            #[allow(unreachable_patterns, reason = "some sets hold every type")]
            _ => None,
        }
    };
}

macro_rules! binary {
    ($dtype:expr, $function:ident, [$(($type:ty, $variant:ident)),*]) => {
        match $dtype {
            $(DType::$variant => prim!(x: $type, y: $type => scalar::$function(x, y)),)*
            #[allow(unreachable_patterns, reason = "some sets hold every type")]
            _ => None,
        }
    };
}

macro_rules! select {
    ($dtype:expr, [$(($type:ty, $variant:ident)),*]) => {
        match $dtype {
            $(DType::$variant => prim!(mask: bool, x: $type, y: $type => scalar::select(mask, x, y)),)*
        }
    };
}

macro_rules! powi {
    ($dtype:expr, $exponent:expr, [$(($type:ty, $variant:ident)),*]) => {
        match ($dtype, $exponent) {
            $(
                (DType::$variant, 2) => prim!(x: $type => scalar::powi(x, 2)),
                (DType::$variant, 3) => prim!(x: $type => scalar::powi(x, 3)),
                (DType::$variant, 4) => prim!(x: $type => scalar::powi(x, 4)),
                (DType::$variant, 5) => prim!(x: $type => scalar::powi(x, 5)),
            )*
            _ => None,
        }
    };
}

/// The casts from one type to each of a list.
macro_rules! cast_to {
    ($source:ty, $output:expr, [$(($type:ty, $variant:ident)),*]) => {
        match $output {
            $(DType::$variant => prim!(x: $source => scalar::cast::<$source, $type>(x)),)*
            #[allow(unreachable_patterns, reason = "real numbers convert to every type")]
            _ => None,
        }
    };
}

macro_rules! cast_from_real {
    ($input:expr, $output:expr, [$(($type:ty, $variant:ident)),*]) => {
        match $input {
            $(DType::$variant => types_of!(ALL, cast_to, $type, $output),)*
            DType::C64 => types_of!(COMPLEX, cast_to, c64, $output),
            DType::C128 => types_of!(COMPLEX, cast_to, c128, $output),
        }
    };
}

/// One row of the opcode table: the primitive for these types.
macro_rules! row {
    (Elementwise, 1, same $set:ident, powi, $param:expr, $input:expr, $output:expr) => {
        types_of!($set, powi, $input, $param)
    };
    (Elementwise, 2, $signature:ident $set:ident, $scalar:ident, $param:expr, $input:expr, $output:expr) => {
        types_of!($set, binary, $input, $scalar)
    };
    (Elementwise, 1, cast $set:ident, $scalar:ident, $param:expr, $input:expr, $output:expr) => {
        cast($input, $output)
    };
    (Elementwise, 1, $signature:ident $set:ident, $scalar:ident, $param:expr, $input:expr, $output:expr) => {
        types_of!($set, unary, $input, $scalar)
    };
    (Elementwise, 3, select $set:ident, $scalar:ident, $param:expr, $input:expr, $output:expr) => {
        types_of!($set, select, $input)
    };
    ($($other:tt)*) => {
        None
    };
}

macro_rules! define_lookup {
    ($(($variant:ident, $name:tt, $code:tt, $kind:ident, $inputs:tt, $signature:ident $set:ident, $scalar:ident, $neutral:ident, $expression:tt, $doc:tt)),* $(,)?) => {
        /// The primitive of an element-wise opcode, for the type of its last operand and of its result.
        pub(crate) fn lookup(opcode: Opcode, param: u16, input: DType, output: DType) -> Option<PrimFn> {
            match opcode {
                $(Opcode::$variant => row!($kind, $inputs, $signature $set, $scalar, param, input, output),)*
                _ => None,
            }
        }
    };
}
for_each_opcode!(define_lookup);

fn cast(input: DType, output: DType) -> Option<PrimFn> {
    types_of!(ORDERED, cast_from_real, input, output)
}
