//! THE opcode table. Everything else that is known about opcodes is expanded from it.
//!
//! `for_each_opcode!(callback)` calls `callback!` once with all rows, each of the form
//!
//! ```text
//! (Variant, "name", code, Kind, inputs, signature TYPESET, scalar_function, neutral, "C expression", "documentation")
//! ```
//!
//! * *signature* says how operand types relate, over the types of TYPESET:
//!   `same` (T,…→T), `test` (T,…→bool), `abs` (T→T, complex→its real type), `part` (complex→its real type),
//!   `cast` (any→any, complex→non-complex excluded), `select` (bool,T,T→T), `reduce` (T→T, fewer axes),
//!   `masked` (T,bool→T, fewer axes; elements where the mask is false count as neutral ones),
//!   `index` (→T, from an index view), `random` (→T, from an index view and a key), `gather`, `scatter`,
//!   `scatter_mask` (index operations), `system` (no types).
//! * *scalar function* is a generic function of [`crate::scalar`] (`none` where there is none); for reductions and
//!   accumulates it combines two elements, and *neutral* names their neutral element.
//! * the *C expression* has operands `{0} {1} {2}`; names ending in `T` are functions of [`crate::c`], which completes them
//!   with the type.

/// Calls a macro with every row of the opcode table; see the module documentation for the columns.
#[macro_export]
macro_rules! for_each_opcode {
    ($callback:ident) => {
        $callback! {
            (Add, "add", 1, Elementwise, 2, same ALL, add, none, "addT({0}, {1})", "Sum; logical or for bool. Integers wrap."),
            (Subtract, "subtract", 2, Elementwise, 2, same NUMERIC, subtract, none, "subT({0}, {1})", "Difference. Integers wrap."),
            (Multiply, "multiply", 3, Elementwise, 2, same ALL, multiply, none, "mulT({0}, {1})", "Product; logical and for bool. Integers wrap."),
            (Divide, "divide", 4, Elementwise, 2, same NUMERIC, divide, none, "divideT({0}, {1})", "Quotient; integers round towards minus infinity, and division by zero gives 0."),
            (FloorDivide, "floor_divide", 5, Elementwise, 2, same REAL, floor_divide, none, "floor_divideT({0}, {1})", "Largest whole number not above the quotient; integer division by zero gives 0."),
            (Fmod, "fmod", 6, Elementwise, 2, same REAL, fmod, none, "fmodT({0}, {1})", "Remainder with the sign of the dividend (C's fmod and %); integer modulo zero gives 0."),
            (Remainder, "remainder", 7, Elementwise, 2, same REAL, remainder, none, "remainderT({0}, {1})", "Remainder with the sign of the divisor (Python's %); integer modulo zero gives 0."),
            (Power, "power", 8, Elementwise, 2, same NUMERIC, power, none, "powT({0}, {1})", "Power; integers exactly (wrapping), and a negative integer exponent truncates the true value towards 0."),
            (Powi, "powi", 9, Elementwise, 1, same NUMERIC, powi, none, "powi{p}T({0})", "Power with a constant exponent of 2 to 5: x², x²·x, x²·x², x⁴·x, in this order of products."),
            (Absolute, "absolute", 10, Elementwise, 1, abs NUMERIC, absolute, none, "absT({0})", "Absolute value; the modulus of a complex number."),
            (Sign, "sign", 11, Elementwise, 1, same NUMERIC, sign, none, "signT({0})", "-1, 0 or 1; x/|x| for complex numbers; NaN stays NaN."),
            (Conj, "conj", 12, Elementwise, 1, same COMPLEX, conj, none, "conjT({0})", "Complex conjugate."),
            (Real, "real", 13, Elementwise, 1, part COMPLEX, real, none, "realT({0})", "Real part."),
            (Imag, "imag", 14, Elementwise, 1, part COMPLEX, imag, none, "imagT({0})", "Imaginary part."),
            (Greater, "greater", 15, Elementwise, 2, test ORDERED, greater, none, "{0} > {1}", "Is the first greater?"),
            (GreaterEqual, "greater_equal", 16, Elementwise, 2, test ORDERED, greater_equal, none, "{0} >= {1}", "Is the first greater or equal?"),
            (Less, "less", 17, Elementwise, 2, test ORDERED, less, none, "{0} < {1}", "Is the first less?"),
            (LessEqual, "less_equal", 18, Elementwise, 2, test ORDERED, less_equal, none, "{0} <= {1}", "Is the first less or equal?"),
            (Equal, "equal", 19, Elementwise, 2, test ALL, equal, none, "eqT({0}, {1})", "Are they equal?"),
            (NotEqual, "not_equal", 20, Elementwise, 2, test ALL, not_equal, none, "neT({0}, {1})", "Do they differ?"),
            (LogicalAnd, "logical_and", 21, Elementwise, 2, same BOOL, bit_and, none, "{0} && {1}", "Logical and."),
            (LogicalOr, "logical_or", 22, Elementwise, 2, same BOOL, bit_or, none, "{0} || {1}", "Logical or."),
            (LogicalXor, "logical_xor", 23, Elementwise, 2, same BOOL, bit_xor, none, "{0} != {1}", "Logical exclusive or."),
            (LogicalNot, "logical_not", 24, Elementwise, 1, same BOOL, invert, none, "!{0}", "Logical not."),
            (Maximum, "maximum", 25, Elementwise, 2, same ORDERED, maximum, none, "maxT({0}, {1})", "The larger; NaN if either is NaN; the first of equal operands."),
            (Minimum, "minimum", 26, Elementwise, 2, same ORDERED, minimum, none, "minT({0}, {1})", "The smaller; NaN if either is NaN; the first of equal operands."),
            (BitwiseAnd, "bitwise_and", 27, Elementwise, 2, same BITS, bit_and, none, "{0} & {1}", "Bitwise and."),
            (BitwiseOr, "bitwise_or", 28, Elementwise, 2, same BITS, bit_or, none, "{0} | {1}", "Bitwise or."),
            (BitwiseXor, "bitwise_xor", 29, Elementwise, 2, same BITS, bit_xor, none, "{0} ^ {1}", "Bitwise exclusive or."),
            (Invert, "invert", 30, Elementwise, 1, same BITS, invert, none, "invertT({0})", "Bitwise complement; logical not for bool."),
            (LeftShift, "left_shift", 31, Elementwise, 2, same INT, left_shift, none, "shlT({0}, {1})", "Left shift; a count outside the width gives 0."),
            (RightShift, "right_shift", 32, Elementwise, 2, same INT, right_shift, none, "shrT({0}, {1})", "Right shift, arithmetic if signed; a count outside the width gives 0, or -1 for negative numbers."),
            (Cos, "cos", 33, Elementwise, 1, same INEXACT, cos, none, "cosT({0})", "Cosine of an angle in radians."),
            (Sin, "sin", 34, Elementwise, 1, same INEXACT, sin, none, "sinT({0})", "Sine of an angle in radians."),
            (Tan, "tan", 35, Elementwise, 1, same INEXACT, tan, none, "tanT({0})", "Tangent of an angle in radians."),
            (Cosh, "cosh", 36, Elementwise, 1, same INEXACT, cosh, none, "coshT({0})", "Hyperbolic cosine."),
            (Sinh, "sinh", 37, Elementwise, 1, same INEXACT, sinh, none, "sinhT({0})", "Hyperbolic sine."),
            (Tanh, "tanh", 38, Elementwise, 1, same INEXACT, tanh, none, "tanhT({0})", "Hyperbolic tangent."),
            (Arcsin, "arcsin", 39, Elementwise, 1, same INEXACT, arcsin, none, "asinT({0})", "Inverse sine, in radians."),
            (Arccos, "arccos", 40, Elementwise, 1, same INEXACT, arccos, none, "acosT({0})", "Inverse cosine, in radians."),
            (Arctan, "arctan", 41, Elementwise, 1, same INEXACT, arctan, none, "atanT({0})", "Inverse tangent, in radians."),
            (Arcsinh, "arcsinh", 42, Elementwise, 1, same INEXACT, arcsinh, none, "asinhT({0})", "Inverse hyperbolic sine."),
            (Arccosh, "arccosh", 43, Elementwise, 1, same INEXACT, arccosh, none, "acoshT({0})", "Inverse hyperbolic cosine."),
            (Arctanh, "arctanh", 44, Elementwise, 1, same INEXACT, arctanh, none, "atanhT({0})", "Inverse hyperbolic tangent."),
            (Arctan2, "arctan2", 45, Elementwise, 2, same FLOAT, arctan2, none, "atan2T({0}, {1})", "Angle of the point (second, first), in radians."),
            (Exp, "exp", 46, Elementwise, 1, same INEXACT, exp, none, "expT({0})", "e to the power x."),
            (Exp2, "exp2", 47, Elementwise, 1, same INEXACT, exp2, none, "exp2T({0})", "2 to the power x."),
            (Expm1, "expm1", 48, Elementwise, 1, same INEXACT, expm1, none, "expm1T({0})", "e to the power x, minus 1."),
            (Log, "log", 49, Elementwise, 1, same INEXACT, log, none, "logT({0})", "Natural logarithm."),
            (Log2, "log2", 50, Elementwise, 1, same INEXACT, log2, none, "log2T({0})", "Logarithm to base 2."),
            (Log10, "log10", 51, Elementwise, 1, same INEXACT, log10, none, "log10T({0})", "Logarithm to base 10."),
            (Log1p, "log1p", 52, Elementwise, 1, same INEXACT, log1p, none, "log1pT({0})", "Natural logarithm of 1 + x."),
            (Sqrt, "sqrt", 53, Elementwise, 1, same INEXACT, sqrt, none, "sqrtT({0})", "Square root."),
            (Ceil, "ceil", 54, Elementwise, 1, same FLOAT, ceil, none, "ceilT({0})", "Smallest whole number not below x."),
            (Trunc, "trunc", 55, Elementwise, 1, same FLOAT, trunc, none, "truncT({0})", "Nearest whole number towards zero."),
            (Floor, "floor", 56, Elementwise, 1, same FLOAT, floor, none, "floorT({0})", "Largest whole number not above x."),
            (Rint, "rint", 57, Elementwise, 1, same FLOAT, rint, none, "rintT({0})", "Nearest whole number, halves to even."),
            (Erf, "erf", 58, Elementwise, 1, same FLOAT, erf, none, "erfT({0})", "Error function."),
            (Erfc, "erfc", 59, Elementwise, 1, same FLOAT, erfc, none, "erfcT({0})", "Complementary error function."),
            (Isnan, "isnan", 60, Elementwise, 1, test ALL, isnan, none, "isnanT({0})", "Is it, or either part of it, NaN?"),
            (Isinf, "isinf", 61, Elementwise, 1, test ALL, isinf, none, "isinfT({0})", "Is it, or either part of it, infinite?"),
            (Isfinite, "isfinite", 62, Elementwise, 1, test ALL, isfinite, none, "isfiniteT({0})", "Is it, with all its parts, finite?"),
            (Copy, "copy", 63, Elementwise, 1, cast ALL, cast, none, "castT({0})", "Copy, converting the type. Float to integer truncates and saturates, NaN gives 0; integers wrap; to bool tests for non-zero."),
            (Cbrt, "cbrt", 65, Elementwise, 1, same FLOAT, cbrt, none, "cbrtT({0})", "Cube root, also of negative numbers."),
            (Where, "where", 64, Elementwise, 3, select ALL, select, none, "{0} ? {1} : {2}", "The second operand where the first is true, else the third."),

            (AddReduce, "add_reduce", 80, Reduction, 1, reduce ALL, add, zero, "addT({0}, {1})", "Sum over axes; any for bool."),
            (MultiplyReduce, "multiply_reduce", 81, Reduction, 1, reduce ALL, multiply, one, "mulT({0}, {1})", "Product over axes; all for bool."),
            (MinimumReduce, "minimum_reduce", 82, Reduction, 1, reduce ORDERED, minimum, highest, "minT({0}, {1})", "Smallest over axes; NaN propagates."),
            (MaximumReduce, "maximum_reduce", 83, Reduction, 1, reduce ORDERED, maximum, lowest, "maxT({0}, {1})", "Largest over axes; NaN propagates."),
            (LogicalAndReduce, "logical_and_reduce", 84, Reduction, 1, reduce BOOL, bit_and, all_ones, "{0} && {1}", "Are all true?"),
            (LogicalOrReduce, "logical_or_reduce", 85, Reduction, 1, reduce BOOL, bit_or, zero, "{0} || {1}", "Is any true?"),
            (LogicalXorReduce, "logical_xor_reduce", 86, Reduction, 1, reduce BOOL, bit_xor, zero, "{0} != {1}", "Is the number of true elements odd?"),
            (BitwiseAndReduce, "bitwise_and_reduce", 87, Reduction, 1, reduce BITS, bit_and, all_ones, "{0} & {1}", "Bitwise and over axes."),
            (BitwiseOrReduce, "bitwise_or_reduce", 88, Reduction, 1, reduce BITS, bit_or, zero, "{0} | {1}", "Bitwise or over axes."),
            (BitwiseXorReduce, "bitwise_xor_reduce", 89, Reduction, 1, reduce BITS, bit_xor, zero, "{0} ^ {1}", "Bitwise exclusive or over axes."),
            (MaskedAddReduce, "masked_add_reduce", 90, Reduction, 2, masked ALL, add, zero, "addT({0}, {1})", "Sum over axes of the elements where the mask is true; any for bool."),
            (MaskedMultiplyReduce, "masked_multiply_reduce", 91, Reduction, 2, masked ALL, multiply, one, "mulT({0}, {1})", "Product over axes of the elements where the mask is true; all for bool."),
            (MaskedMinimumReduce, "masked_minimum_reduce", 92, Reduction, 2, masked ORDERED, minimum, highest, "minT({0}, {1})", "Smallest over axes of the elements where the mask is true, of none the highest value; NaN propagates."),
            (MaskedMaximumReduce, "masked_maximum_reduce", 93, Reduction, 2, masked ORDERED, maximum, lowest, "maxT({0}, {1})", "Largest over axes of the elements where the mask is true, of none the lowest value; NaN propagates."),

            (AddAccumulate, "add_accumulate", 100, Accumulate, 1, same ALL, add, zero, "addT({0}, {1})", "Running sum along one axis."),
            (MultiplyAccumulate, "multiply_accumulate", 101, Accumulate, 1, same ALL, multiply, one, "mulT({0}, {1})", "Running product along one axis."),

            (Range, "range", 110, Generator, 1, index REAL, none, none, "castT({i})", "The index view's number start + Σ i·stride, converted from 64-bit integer with wrapping."),
            (Random, "random", 111, Generator, 2, random RANDOM, none, none, "randomT({i}, {key})", "Philox2x32-10 of the index view's number under a key: raw bits for u32 and u64, uniform in [0, 1) for floats."),

            (Gather, "gather", 120, Index, 2, gather ALL, none, none, "", "out[i] = source.flat[index[i]]; negative i64 indices count from the end; out of range is an error."),
            (Scatter, "scatter", 121, Index, 2, scatter ALL, none, none, "", "out.flat[index[i]] = value[i]; the last of duplicate indices in C order wins."),
            (ScatterAdd, "scatter_add", 122, Index, 2, scatter ALL, add, none, "", "out.flat[index[i]] += value[i]; duplicates accumulate in C order."),
            (CondScatter, "cond_scatter", 123, Index, 3, scatter_mask ALL, none, none, "", "out.flat[index[i]] = value[i] where mask[i]; other indices are not looked at."),

            (Nop, "nop", 140, System, 0, system NONE, none, none, "", "Nothing."),
            (Sync, "sync", 141, System, 0, system NONE, none, none, "", "The base's data must be in the parent's address space when the batch is done."),
            (Free, "free", 142, System, 0, system NONE, none, none, "", "Drops the base's data; the base itself stays."),
            (Discard, "discard", 143, System, 0, system NONE, none, none, "", "Drops the base: its data and what is known about it."),
        }
    };
}

/// Calls `callback!(args…, [types])` with the Rust element types of a type set named as in the opcode table.
#[macro_export]
macro_rules! types_of {
    (NONE, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* []) };
    (BOOL, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [(bool, Bool)]) };
    (INT, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [(i8, I8), (i16, I16), (i32, I32), (i64, I64), (u8, U8), (u16, U16), (u32, U32), (u64, U64)]) };
    (FLOAT, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [(f32, F32), (f64, F64)]) };
    (COMPLEX, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [(c64, C64), (c128, C128)]) };
    (REAL, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [(i8, I8), (i16, I16), (i32, I32), (i64, I64), (u8, U8), (u16, U16), (u32, U32), (u64, U64), (f32, F32), (f64, F64)]) };
    (NUMERIC, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [(i8, I8), (i16, I16), (i32, I32), (i64, I64), (u8, U8), (u16, U16), (u32, U32), (u64, U64), (f32, F32), (f64, F64), (c64, C64), (c128, C128)]) };
    (ORDERED, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [(bool, Bool), (i8, I8), (i16, I16), (i32, I32), (i64, I64), (u8, U8), (u16, U16), (u32, U32), (u64, U64), (f32, F32), (f64, F64)]) };
    (BITS, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [(bool, Bool), (i8, I8), (i16, I16), (i32, I32), (i64, I64), (u8, U8), (u16, U16), (u32, U32), (u64, U64)]) };
    (INEXACT, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [(f32, F32), (f64, F64), (c64, C64), (c128, C128)]) };
    (ALL, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [(bool, Bool), (i8, I8), (i16, I16), (i32, I32), (i64, I64), (u8, U8), (u16, U16), (u32, U32), (u64, U64), (f32, F32), (f64, F64), (c64, C64), (c128, C128)]) };
    (RANDOM, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [(u32, U32), (u64, U64), (f32, F32), (f64, F64)]) };
}
