//! THE opcode table. Everything else that is known about opcodes is expanded from it.
//!
//! `for_each_opcode!(callback)` calls `callback!` once with all rows, each of the form
//!
//! ```text
//! (Variant, "name", code, Kind, inputs, signature TYPESET, scalar_function, neutral, cost, "C expression", [names], "documentation")
//! ```
//!
//! * *signature* says how operand types relate, over the types of TYPESET:
//!   `same` (T,…→T), `test` (T,…→bool), `abs` (T→T, complex→its real type), `part` (complex→its real type),
//!   `cast` (any→any, complex→non-complex excluded), `select` (bool,T,T→T), `reduce` (T→T, fewer axes),
//!   `masked` (T,bool→T, fewer axes; elements where the mask is false count as neutral ones),
//!   `product` (T,T→T, fewer axes; the products of the two are folded),
//!   `index` (→T, from an index view), `random` (→T, from an index view and a key), `gather`, `scatter`,
//!   `scatter_mask` (index operations), `system` (no types).
//! * *scalar function* is a generic function of [`crate::scalar`] (`none` where there is none); for reductions and
//!   accumulates it combines two elements, and *neutral* names their neutral element.
//! * *cost*: how many vectorised additions one takes, roughly.
//! * the *C expression* has operands `{0} {1} {2}`; names ending in `T` are functions of [`crate::c`], which completes them
//!   with the type.
//! * *names* are what C#, NumPy and MiniMatlab call the operation, in this order; empty where they have no function that is this
//!   operation alone. C and C++ call it by its name.
//! * the *documentation* says what the elements are, units and special cases included. Shapes and types follow from the rest of
//!   the row.

/// Calls a macro with every row of the opcode table; see the module documentation for the columns.
#[macro_export]
macro_rules! for_each_opcode {
    ($callback:ident) => {
        $callback! {
            (Add, "add", 1, Elementwise, 2, same ALL, add, none, 1, "addT({0}, {1})", ["Add", "add", ""], "Sum; logical or for bool. Integers wrap."),
            (Subtract, "subtract", 2, Elementwise, 2, same NUMERIC, subtract, none, 1, "subT({0}, {1})", ["Subtract", "subtract", ""], "Difference. Integers wrap."),
            (Multiply, "multiply", 3, Elementwise, 2, same ALL, multiply, none, 1, "mulT({0}, {1})", ["Multiply", "multiply", ""], "Product; logical and for bool. Integers wrap."),
            (Divide, "divide", 4, Elementwise, 2, same NUMERIC, divide, none, 5, "divideT({0}, {1})", ["Divide", "divide", ""], "Quotient; integers round towards minus infinity, and division by zero gives 0."),
            (FloorDivide, "floor_divide", 5, Elementwise, 2, same REAL, floor_divide, none, 10, "floor_divideT({0}, {1})", ["FloorDivide", "floor_divide", ""], "Largest whole number not above the quotient; integer division by zero gives 0."),
            (Fmod, "fmod", 6, Elementwise, 2, same REAL, fmod, none, 10, "fmodT({0}, {1})", ["Modulo", "fmod", ""], "Remainder with the sign of the dividend (C's fmod and %); integer modulo zero gives 0."),
            (Remainder, "remainder", 7, Elementwise, 2, same REAL, remainder, none, 10, "remainderT({0}, {1})", ["Remainder", "remainder", ""], "Remainder with the sign of the divisor (Python's %); integer modulo zero gives 0."),
            (Power, "power", 8, Elementwise, 2, same NUMERIC, power, none, 40, "powT({0}, {1})", ["Power", "power", ""], "Power; integers exactly (wrapping), and a negative integer exponent truncates the true value towards 0."),
            (Powi, "powi", 9, Elementwise, 1, same NUMERIC, powi, none, 1, "powi{p}T({0})", ["", "", ""], "Power with a constant exponent of 2 to 5: x², x²·x, x²·x², x⁴·x, in this order of products. Of complex numbers as `power`: fourth and fifth powers have a product by one, and 0 of any signs gives 0."),
            (Absolute, "absolute", 10, Elementwise, 1, abs NUMERIC, absolute, none, 1, "absT({0})", ["Abs", "absolute", "abs"], "Absolute value; the modulus of a complex number."),
            (Sign, "sign", 11, Elementwise, 1, same NUMERIC, sign, none, 1, "signT({0})", ["Sign", "sign", "sign"], "-1, 0 or 1; x/|x| for complex numbers; NaN stays NaN."),
            (Conj, "conj", 12, Elementwise, 1, same COMPLEX, conj, none, 1, "conjT({0})", ["Conjugate", "conjugate", ""], "Complex conjugate."),
            (Real, "real", 13, Elementwise, 1, part COMPLEX, real, none, 1, "realT({0})", ["", "", ""], "Real part."),
            (Imag, "imag", 14, Elementwise, 1, part COMPLEX, imag, none, 1, "imagT({0})", ["", "", ""], "Imaginary part."),
            (Greater, "greater", 15, Elementwise, 2, test ORDERED, greater, none, 1, "{0} > {1}", ["Greater", "greater", ""], "Is the first greater?"),
            (GreaterEqual, "greater_equal", 16, Elementwise, 2, test ORDERED, greater_equal, none, 1, "{0} >= {1}", ["GreaterOrEqual", "greater_equal", ""], "Is the first greater or equal?"),
            (Less, "less", 17, Elementwise, 2, test ORDERED, less, none, 1, "{0} < {1}", ["Less", "less", ""], "Is the first less?"),
            (LessEqual, "less_equal", 18, Elementwise, 2, test ORDERED, less_equal, none, 1, "{0} <= {1}", ["LessOrEqual", "less_equal", ""], "Is the first less or equal?"),
            (Equal, "equal", 19, Elementwise, 2, test ALL, equal, none, 1, "eqT({0}, {1})", ["Equal", "equal", ""], "Are they equal?"),
            (NotEqual, "not_equal", 20, Elementwise, 2, test ALL, not_equal, none, 1, "neT({0}, {1})", ["NotEqual", "not_equal", ""], "Do they differ?"),
            (LogicalAnd, "logical_and", 21, Elementwise, 2, same BOOL, bit_and, none, 1, "{0} && {1}", ["", "logical_and", ""], "Logical and."),
            (LogicalOr, "logical_or", 22, Elementwise, 2, same BOOL, bit_or, none, 1, "{0} || {1}", ["", "logical_or", ""], "Logical or."),
            (LogicalXor, "logical_xor", 23, Elementwise, 2, same BOOL, bit_xor, none, 1, "{0} != {1}", ["", "logical_xor", ""], "Logical exclusive or."),
            (LogicalNot, "logical_not", 24, Elementwise, 1, same BOOL, invert, none, 1, "!{0}", ["", "logical_not", ""], "Logical not."),
            (Maximum, "maximum", 25, Elementwise, 2, same ORDERED, maximum, none, 1, "maxT({0}, {1})", ["Maximum", "maximum", ""], "The larger; NaN if either is NaN; the first of equal operands."),
            (Minimum, "minimum", 26, Elementwise, 2, same ORDERED, minimum, none, 1, "minT({0}, {1})", ["Minimum", "minimum", ""], "The smaller; NaN if either is NaN; the first of equal operands."),
            (BitwiseAnd, "bitwise_and", 27, Elementwise, 2, same BITS, bit_and, none, 1, "{0} & {1}", ["BitwiseAnd", "bitwise_and", ""], "Bitwise and."),
            (BitwiseOr, "bitwise_or", 28, Elementwise, 2, same BITS, bit_or, none, 1, "{0} | {1}", ["BitwiseOr", "bitwise_or", ""], "Bitwise or."),
            (BitwiseXor, "bitwise_xor", 29, Elementwise, 2, same BITS, bit_xor, none, 1, "{0} ^ {1}", ["BitwiseXor", "bitwise_xor", ""], "Bitwise exclusive or."),
            (Invert, "invert", 30, Elementwise, 1, same BITS, invert, none, 1, "invertT({0})", ["Invert", "invert", ""], "Bitwise complement; logical not for bool."),
            (LeftShift, "left_shift", 31, Elementwise, 2, same INT, left_shift, none, 1, "shlT({0}, {1})", ["LeftShift", "left_shift", ""], "Left shift; a count outside the width gives 0."),
            (RightShift, "right_shift", 32, Elementwise, 2, same INT, right_shift, none, 1, "shrT({0}, {1})", ["RightShift", "right_shift", ""], "Right shift, arithmetic if signed; a count outside the width gives 0, or -1 for negative numbers."),
            (Cos, "cos", 33, Elementwise, 1, same INEXACT, cos, none, 15, "cosT({0})", ["Cos", "cos", "cos"], "Cosine of an angle in radians."),
            (Sin, "sin", 34, Elementwise, 1, same INEXACT, sin, none, 15, "sinT({0})", ["Sin", "sin", "sin"], "Sine of an angle in radians."),
            (Tan, "tan", 35, Elementwise, 1, same INEXACT, tan, none, 15, "tanT({0})", ["Tan", "tan", "tan"], "Tangent of an angle in radians."),
            (Cosh, "cosh", 36, Elementwise, 1, same INEXACT, cosh, none, 15, "coshT({0})", ["Cosh", "cosh", "cosh"], "Hyperbolic cosine."),
            (Sinh, "sinh", 37, Elementwise, 1, same INEXACT, sinh, none, 15, "sinhT({0})", ["Sinh", "sinh", "sinh"], "Hyperbolic sine."),
            (Tanh, "tanh", 38, Elementwise, 1, same INEXACT, tanh, none, 15, "tanhT({0})", ["Tanh", "tanh", "tanh"], "Hyperbolic tangent."),
            (Arcsin, "arcsin", 39, Elementwise, 1, same INEXACT, arcsin, none, 15, "asinT({0})", ["Asin", "arcsin", "asin"], "Inverse sine, in radians."),
            (Arccos, "arccos", 40, Elementwise, 1, same INEXACT, arccos, none, 15, "acosT({0})", ["Acos", "arccos", "acos"], "Inverse cosine, in radians."),
            (Arctan, "arctan", 41, Elementwise, 1, same INEXACT, arctan, none, 15, "atanT({0})", ["Atan", "arctan", "atan"], "Inverse tangent, in radians."),
            (Arcsinh, "arcsinh", 42, Elementwise, 1, same INEXACT, arcsinh, none, 15, "asinhT({0})", ["Asinh", "arcsinh", "asinh"], "Inverse hyperbolic sine."),
            (Arccosh, "arccosh", 43, Elementwise, 1, same INEXACT, arccosh, none, 15, "acoshT({0})", ["Acosh", "arccosh", "acosh"], "Inverse hyperbolic cosine."),
            (Arctanh, "arctanh", 44, Elementwise, 1, same INEXACT, arctanh, none, 15, "atanhT({0})", ["Atanh", "arctanh", "atanh"], "Inverse hyperbolic tangent."),
            (Arctan2, "arctan2", 45, Elementwise, 2, same FLOAT, arctan2, none, 15, "atan2T({0}, {1})", ["Atan2", "arctan2", ""], "Angle of the point (second, first), in radians."),
            (Exp, "exp", 46, Elementwise, 1, same INEXACT, exp, none, 15, "expT({0})", ["Exp", "exp", "exp"], "e to the power x."),
            (Exp2, "exp2", 47, Elementwise, 1, same INEXACT, exp2, none, 15, "exp2T({0})", ["Exp2", "exp2", ""], "2 to the power x."),
            (Expm1, "expm1", 48, Elementwise, 1, same INEXACT, expm1, none, 15, "expm1T({0})", ["Expm1", "expm1", "expm1"], "e to the power x, minus 1."),
            (Log, "log", 49, Elementwise, 1, same INEXACT, log, none, 15, "logT({0})", ["Log", "log", "log"], "Natural logarithm."),
            (Log2, "log2", 50, Elementwise, 1, same INEXACT, log2, none, 15, "log2T({0})", ["Log2", "log2", "log2"], "Logarithm to base 2."),
            (Log10, "log10", 51, Elementwise, 1, same INEXACT, log10, none, 15, "log10T({0})", ["Log10", "log10", "log10"], "Logarithm to base 10."),
            (Log1p, "log1p", 52, Elementwise, 1, same INEXACT, log1p, none, 15, "log1pT({0})", ["Log1p", "log1p", "log1p"], "Natural logarithm of 1 + x."),
            (Sqrt, "sqrt", 53, Elementwise, 1, same INEXACT, sqrt, none, 5, "sqrtT({0})", ["Sqrt", "sqrt", "sqrt"], "Square root."),
            (Ceil, "ceil", 54, Elementwise, 1, same FLOAT, ceil, none, 1, "ceilT({0})", ["Ceiling", "ceil", "ceil"], "Smallest whole number not below x."),
            (Trunc, "trunc", 55, Elementwise, 1, same FLOAT, trunc, none, 1, "truncT({0})", ["Truncate", "trunc", "fix"], "Nearest whole number towards zero."),
            (Floor, "floor", 56, Elementwise, 1, same FLOAT, floor, none, 1, "floorT({0})", ["Floor", "floor", "floor"], "Largest whole number not above x."),
            (Rint, "rint", 57, Elementwise, 1, same FLOAT, rint, none, 1, "rintT({0})", ["Round", "rint", ""], "Nearest whole number, halves to even."),
            (Erf, "erf", 58, Elementwise, 1, same FLOAT, erf, none, 25, "erfT({0})", ["Erf", "", "erf"], "Error function."),
            (Erfc, "erfc", 59, Elementwise, 1, same FLOAT, erfc, none, 25, "erfcT({0})", ["Erfc", "", "erfc"], "Complementary error function."),
            (Isnan, "isnan", 60, Elementwise, 1, test ALL, isnan, none, 1, "isnanT({0})", ["IsNaN", "isnan", "isnan"], "Is it, or either part of it, NaN?"),
            (Isinf, "isinf", 61, Elementwise, 1, test ALL, isinf, none, 1, "isinfT({0})", ["IsInfinity", "isinf", "isinf"], "Is it, or either part of it, infinite?"),
            (Isfinite, "isfinite", 62, Elementwise, 1, test ALL, isfinite, none, 1, "isfiniteT({0})", ["IsFinite", "isfinite", "isfinite"], "Is it, with all its parts, finite?"),
            (Copy, "copy", 63, Elementwise, 1, cast ALL, cast, none, 1, "castT({0})", ["", "", ""], "Copy, converting the type. Float to integer truncates; numbers beyond the integer type follow the key `casts` of the recorder. Integers wrap; to bool tests for non-zero."),
            (Cbrt, "cbrt", 65, Elementwise, 1, same FLOAT, cbrt, none, 15, "cbrtT({0})", ["Cbrt", "cbrt", "cbrt"], "Cube root, also of negative numbers."),
            (Reciprocal, "reciprocal", 66, Elementwise, 1, same COMPLEX, reciprocal, none, 5, "reciprocalT({0})", ["", "reciprocal", ""], "1/x; of zero, both parts are NaN."),
            (Signbit, "signbit", 67, Elementwise, 1, test FLOAT, signbit, none, 1, "signbitT({0})", ["IsNegative", "signbit", ""], "Is the sign bit set? Also of -0 and NaN."),
            (Where, "where", 64, Elementwise, 3, select ALL, select, none, 1, "{0} ? {1} : {2}", ["", "", ""], "The second operand where the first is true, else the third."),

            (AddReduce, "add_reduce", 80, Reduction, 1, reduce ALL, add, zero, 1, "addT({0}, {1})", ["Sum", "", ""], "Sum over axes; any for bool."),
            (MultiplyReduce, "multiply_reduce", 81, Reduction, 1, reduce ALL, multiply, one, 1, "mulT({0}, {1})", ["Product", "", ""], "Product over axes; all for bool."),
            (MinimumReduce, "minimum_reduce", 82, Reduction, 1, reduce ORDERED, minimum, highest, 1, "minT({0}, {1})", ["Min", "", ""], "Smallest over axes; NaN propagates."),
            (MaximumReduce, "maximum_reduce", 83, Reduction, 1, reduce ORDERED, maximum, lowest, 1, "maxT({0}, {1})", ["Max", "", ""], "Largest over axes; NaN propagates."),
            (LogicalAndReduce, "logical_and_reduce", 84, Reduction, 1, reduce BOOL, bit_and, all_ones, 1, "{0} && {1}", ["", "", ""], "Are all true?"),
            (LogicalOrReduce, "logical_or_reduce", 85, Reduction, 1, reduce BOOL, bit_or, zero, 1, "{0} || {1}", ["", "", ""], "Is any true?"),
            (LogicalXorReduce, "logical_xor_reduce", 86, Reduction, 1, reduce BOOL, bit_xor, zero, 1, "{0} != {1}", ["", "", ""], "Is the number of true elements odd?"),
            (BitwiseAndReduce, "bitwise_and_reduce", 87, Reduction, 1, reduce BITS, bit_and, all_ones, 1, "{0} & {1}", ["", "", ""], "Bitwise and over axes."),
            (BitwiseOrReduce, "bitwise_or_reduce", 88, Reduction, 1, reduce BITS, bit_or, zero, 1, "{0} | {1}", ["", "", ""], "Bitwise or over axes."),
            (BitwiseXorReduce, "bitwise_xor_reduce", 89, Reduction, 1, reduce BITS, bit_xor, zero, 1, "{0} ^ {1}", ["", "", ""], "Bitwise exclusive or over axes."),
            (MaskedAddReduce, "masked_add_reduce", 90, Reduction, 2, masked ALL, add, zero, 1, "addT({0}, {1})", ["", "", ""], "Sum over axes of the elements where the mask is true; any for bool."),
            (MaskedMultiplyReduce, "masked_multiply_reduce", 91, Reduction, 2, masked ALL, multiply, one, 1, "mulT({0}, {1})", ["", "", ""], "Product over axes of the elements where the mask is true; all for bool."),
            (MaskedMinimumReduce, "masked_minimum_reduce", 92, Reduction, 2, masked ORDERED, minimum, highest, 1, "minT({0}, {1})", ["", "", ""], "Smallest over axes of the elements where the mask is true, of none the highest value; NaN propagates."),
            (MaskedMaximumReduce, "masked_maximum_reduce", 93, Reduction, 2, masked ORDERED, maximum, lowest, 1, "maxT({0}, {1})", ["", "", ""], "Largest over axes of the elements where the mask is true, of none the lowest value; NaN propagates."),
            (Contract, "contract", 94, Reduction, 2, product ALL, add, zero, 1, "addT({0}, {1})", ["", "", ""], "Sum over axes of the products of elements at the same places, in an order of the engine's own; logical or of logical and for bool. Integers wrap."),

            (AddAccumulate, "add_accumulate", 100, Accumulate, 1, same ALL, add, zero, 1, "addT({0}, {1})", ["CumulativeSum", "", ""], "Running sum along one axis."),
            (MultiplyAccumulate, "multiply_accumulate", 101, Accumulate, 1, same ALL, multiply, one, 1, "mulT({0}, {1})", ["CumulativeProduct", "", ""], "Running product along one axis."),

            (Range, "range", 110, Generator, 1, index REAL, none, none, 1, "castT({i})", ["", "", ""], "The index view's number start + Σ i·stride, converted from 64-bit integer with wrapping."),
            (Random, "random", 111, Generator, 2, random RANDOM, none, none, 1, "randomT({i}, {key})", ["", "", ""], "Philox2x32-10 of the index view's number under a key: raw bits for u32 and u64, uniform in [0, 1) for floats."),

            (Gather, "gather", 120, Index, 2, gather ALL, none, none, 1, "", ["", "", ""], "out[i] = source.flat[index[i]]; negative i64 indices count from the end; out of range is an error."),
            (Scatter, "scatter", 121, Index, 2, scatter ALL, none, none, 1, "", ["", "", ""], "out.flat[index[i]] = value[i]; the last of duplicate indices in C order wins."),
            (ScatterAdd, "scatter_add", 122, Index, 2, scatter ALL, add, none, 1, "", ["", "", ""], "out.flat[index[i]] += value[i]; duplicates accumulate in C order."),
            (CondScatter, "cond_scatter", 123, Index, 3, scatter_mask ALL, none, none, 1, "", ["", "", ""], "out.flat[index[i]] = value[i] where mask[i]; other indices are not looked at."),

            (Nop, "nop", 140, System, 0, system NONE, none, none, 1, "", ["", "", ""], "Nothing."),
            (Sync, "sync", 141, System, 0, system NONE, none, none, 1, "", ["", "", ""], "The base's data must be in the parent's address space when the batch is done."),
            (Free, "free", 142, System, 0, system NONE, none, none, 1, "", ["", "", ""], "Drops the base's data; the base itself stays."),
            (Discard, "discard", 143, System, 0, system NONE, none, none, 1, "", ["", "", ""], "Drops the base: its data and what is known about it."),
        }
    };
}

/// Calls `callback!(args…, [types])` with the Rust element types of a type set named as in the opcode table.
#[macro_export]
macro_rules! types_of {
    (NONE, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* []) };
    (BOOL, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [($crate::Truth, Bool)]) };
    (INT, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [(i8, I8), (i16, I16), (i32, I32), (i64, I64), (u8, U8), (u16, U16), (u32, U32), (u64, U64)]) };
    (FLOAT, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [(f32, F32), (f64, F64)]) };
    (COMPLEX, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [(c64, C64), (c128, C128)]) };
    (REAL, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [(i8, I8), (i16, I16), (i32, I32), (i64, I64), (u8, U8), (u16, U16), (u32, U32), (u64, U64), (f32, F32), (f64, F64)]) };
    (NUMERIC, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [(i8, I8), (i16, I16), (i32, I32), (i64, I64), (u8, U8), (u16, U16), (u32, U32), (u64, U64), (f32, F32), (f64, F64), (c64, C64), (c128, C128)]) };
    (ORDERED, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [($crate::Truth, Bool), (i8, I8), (i16, I16), (i32, I32), (i64, I64), (u8, U8), (u16, U16), (u32, U32), (u64, U64), (f32, F32), (f64, F64)]) };
    (BITS, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [($crate::Truth, Bool), (i8, I8), (i16, I16), (i32, I32), (i64, I64), (u8, U8), (u16, U16), (u32, U32), (u64, U64)]) };
    (INEXACT, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [(f32, F32), (f64, F64), (c64, C64), (c128, C128)]) };
    (ALL, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [($crate::Truth, Bool), (i8, I8), (i16, I16), (i32, I32), (i64, I64), (u8, U8), (u16, U16), (u32, U32), (u64, U64), (f32, F32), (f64, F64), (c64, C64), (c128, C128)]) };
    (RANDOM, $callback:ident $(, $arg:tt)*) => { $callback!($($arg,)* [(u32, U32), (u64, U64), (f32, F32), (f64, F64)]) };
}
