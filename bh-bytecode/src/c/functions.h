// The functions that the C expressions of the opcode table call, once for each element type.
//
// A section begins with a line "//@ TYPESET name ..." and stands for one function of each name and each type of the set.
// Replaced are: $T the type, $N its short name, $F the function's name, $W the unsigned type in which arithmetic wraps,
// $R and $RN the type of a complex number's parts, $B the bits of an integer, $MIN and $MAX its range.
// BH_M_f32(sin) is the mathematical function of a type. Sections may call each other's functions in any order.

//@ INT add
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return ($T)(($W)a + ($W)b); }

//@ INT sub
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return ($T)(($W)a - ($W)b); }

//@ INT mul
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return ($T)(($W)a * ($W)b); }

//@ BOOL add
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return a | b; }

//@ BOOL mul
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return a & b; }

//@ FLOAT add
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return a + b; }

//@ FLOAT sub
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return a - b; }

//@ FLOAT mul
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return a * b; }

//@ FLOAT divide
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return a / b; }

//@ ORDERED eq
BH_FUNCTION bh_bool bh_$F_$N($T a, $T b) { return a == b; }

//@ ORDERED ne
BH_FUNCTION bh_bool bh_$F_$N($T a, $T b) { return a != b; }

//@ COMPLEX eq
BH_FUNCTION bh_bool bh_$F_$N($T a, $T b) { return a.re == b.re && a.im == b.im; }

//@ COMPLEX ne
BH_FUNCTION bh_bool bh_$F_$N($T a, $T b) { return a.re != b.re || a.im != b.im; }

//@ SIGNED divide floor_divide
BH_FUNCTION $T bh_$F_$N($T a, $T b) {
    $T d = (b == 0 || b == -1) ? 1 : b;
    $T q = a / d;
    q -= (a % d != 0) && ((a < 0) != (d < 0));
    return b == 0 ? 0 : b == -1 ? ($T)(0 - ($W)a) : q;
}

//@ UNSIGNED divide floor_divide
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return b == 0 ? 0 : a / (b == 0 ? 1 : b); }

//@ SIGNED fmod
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return (b == 0 || b == -1) ? 0 : a % ((b == 0 || b == -1) ? 1 : b); }

//@ UNSIGNED fmod remainder
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return b == 0 ? 0 : a % (b == 0 ? 1 : b); }

//@ SIGNED remainder
BH_FUNCTION $T bh_$F_$N($T a, $T b) {
    $T rest = bh_fmod_$N(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

//@ FLOAT floor_divide
BH_FUNCTION $T bh_$F_$N($T a, $T b) {
    if (b == 0) return a / b;
    $T rest = BH_M_$N(fmod)(a, b);
    $T quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
    if (quotient == 0) return BH_M_$N(copysign)(($T)0, a / b);
    $T below = BH_M_$N(floor)(quotient);
    return quotient - below > ($T)0.5 ? below + 1 : below;
}

//@ FLOAT fmod
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return BH_M_$N(fmod)(a, b); }

//@ FLOAT remainder
BH_FUNCTION $T bh_$F_$N($T a, $T b) {
    $T rest = BH_M_$N(fmod)(a, b);
    if (b == 0) return rest;
    if (rest == 0) return BH_M_$N(copysign)(($T)0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

//@ INT pow_from
BH_FUNCTION $T bh_$F_$N($T a, $T b) {
    $W base = ($W)a, result = 1;
    while (b > 0) {
        if (b & 1) result *= base;
        base *= base;
        b >>= 1;
    }
    return ($T)result;
}

//@ SIGNED pow
BH_FUNCTION $T bh_$F_$N($T a, $T b) {
    if (b < 0) return a == 1 ? 1 : a == -1 ? ((b & 1) ? -1 : 1) : 0;
    return bh_pow_from_$N(a, b);
}

//@ UNSIGNED pow
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return bh_pow_from_$N(a, b); }

//@ FLOAT pow
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return BH_M_$N(pow)(a, b); }

//@ FLOAT atan2
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return BH_M_$N(atan2)(a, b); }

//@ NUMERIC products_powi2
BH_FUNCTION $T bh_$F_$N($T x) { return bh_mul_$N(x, x); }

//@ NUMERIC products_powi3
BH_FUNCTION $T bh_$F_$N($T x) { return bh_mul_$N(bh_mul_$N(x, x), x); }

//@ ORDERED by_one
BH_FUNCTION $T bh_$F_$N($T x) { return x; }

//@ COMPLEX by_one
BH_FUNCTION $T bh_$F_$N($T x) { return bh_mul_$N(bh_make_$N(1, 0), x); }

//@ NUMERIC products_powi4
BH_FUNCTION $T bh_$F_$N($T x) { $T square = bh_mul_$N(x, x); return bh_by_one_$N(bh_mul_$N(square, square)); }

//@ NUMERIC products_powi5
BH_FUNCTION $T bh_$F_$N($T x) {
    $T square = bh_mul_$N(x, x);
    return bh_mul_$N(bh_mul_$N(square, square), bh_by_one_$N(x));
}

//@ ORDERED powi2 powi3 powi4 powi5
BH_FUNCTION $T bh_$F_$N($T x) { return bh_products_$F_$N(x); }

//@ COMPLEX powi2 powi3 powi4 powi5
BH_FUNCTION $T bh_$F_$N($T x) { return x.re == 0 && x.im == 0 ? bh_make_$N(0, 0) : bh_products_$F_$N(x); }

//@ SIGNED abs
BH_FUNCTION $T bh_$F_$N($T x) { return x < 0 ? ($T)(0 - ($W)x) : x; }

//@ UNSIGNED abs
BH_FUNCTION $T bh_$F_$N($T x) { return x; }

//@ FLOAT abs
BH_FUNCTION $T bh_$F_$N($T x) { return BH_M_$N(fabs)(x); }

//@ SIGNED sign
BH_FUNCTION $T bh_$F_$N($T x) { return (x > 0) - (x < 0); }

//@ UNSIGNED sign
BH_FUNCTION $T bh_$F_$N($T x) { return x != 0; }

//@ FLOAT sign
BH_FUNCTION $T bh_$F_$N($T x) { return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x; }

//@ ORDERED max
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return a >= b || a != a ? a : b; }

//@ ORDERED min
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return a <= b || a != a ? a : b; }

//@ INT invert
BH_FUNCTION $T bh_$F_$N($T x) { return ($T)~x; }

//@ BOOL invert
BH_FUNCTION $T bh_$F_$N($T x) { return !x; }

//@ SIGNED shl
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return b >= 0 && b < $B ? ($T)(($W)a << (b & ($B - 1))) : 0; }

//@ UNSIGNED shl
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return b < $B ? ($T)(($W)a << (b & ($B - 1))) : 0; }

//@ SIGNED shr
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return a >> (b >= 0 && b < $B ? b & ($B - 1) : $B - 1); }

//@ UNSIGNED shr
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return b < $B ? a >> (b & ($B - 1)) : 0; }

//@ BITS isnan isinf
BH_FUNCTION bh_bool bh_$F_$N($T x) { return 0; }

//@ BITS isfinite
BH_FUNCTION bh_bool bh_$F_$N($T x) { return 1; }

//@ FLOAT isnan
BH_FUNCTION bh_bool bh_$F_$N($T x) { return x != x; }

//@ FLOAT isinf
BH_FUNCTION bh_bool bh_$F_$N($T x) { return BH_M_$N(fabs)(x) == INFINITY; }

//@ FLOAT isfinite
BH_FUNCTION bh_bool bh_$F_$N($T x) { return BH_M_$N(fabs)(x) < INFINITY; }

//@ FLOAT signbit
BH_FUNCTION bh_bool bh_$F_$N($T x) { return signbit(x) != 0; }

//@ COMPLEX isnan isinf
BH_FUNCTION bh_bool bh_$F_$N($T x) { return bh_$F_$RN(x.re) || bh_$F_$RN(x.im); }

//@ COMPLEX isfinite
BH_FUNCTION bh_bool bh_$F_$N($T x) { return bh_$F_$RN(x.re) && bh_$F_$RN(x.im); }

//@ FLOAT cos sin tan cosh sinh tanh asin acos atan asinh atanh exp exp2 expm1 log log2 log10 log1p sqrt cbrt ceil trunc floor rint erf erfc
BH_FUNCTION $T bh_$F_$N($T x) { return BH_M_$N($F)(x); }

//@ FLOAT acosh
BH_FUNCTION $T bh_$F_$N($T x) { return x < 1 ? ($T)NAN : BH_M_$N(acosh)(x); }

//@ COMPLEX make
BH_FUNCTION $T bh_$F_$N($R re, $R im) { $T z; z.re = re; z.im = im; return z; }

//@ COMPLEX add
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return bh_make_$N(a.re + b.re, a.im + b.im); }

//@ COMPLEX sub
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return bh_make_$N(a.re - b.re, a.im - b.im); }

//@ COMPLEX mul
BH_FUNCTION $T bh_$F_$N($T a, $T b) {
    return bh_make_$N(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}

//@ COMPLEX divide
BH_FUNCTION $T bh_$F_$N($T a, $T b) {
    if (BH_M_$RN(fabs)(b.re) >= BH_M_$RN(fabs)(b.im)) {
        if (b.re == 0 && b.im == 0) {
            $R zero = BH_M_$RN(fabs)(b.re);
            return bh_make_$N(a.re / zero, a.im / zero);
        }
        $R ratio = b.im / b.re;
        $R scale = 1 / (b.re + b.im * ratio);
        return bh_make_$N((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale);
    }
    $R ratio = b.re / b.im;
    $R scale = 1 / (b.im + b.re * ratio);
    return bh_make_$N((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale);
}

//@ COMPLEX reciprocal
BH_FUNCTION $T bh_$F_$N($T z) {
    if (BH_M_$RN(fabs)(z.im) <= BH_M_$RN(fabs)(z.re)) {
        $R ratio = z.im / z.re, divisor = z.re + z.im * ratio;
        return bh_make_$N(1 / divisor, -ratio / divisor);
    }
    $R ratio = z.re / z.im, divisor = z.re * ratio + z.im;
    return bh_make_$N(ratio / divisor, -1 / divisor);
}

//@ C64 abs
BH_FUNCTION $R bh_$F_$N($T z) {
    if (bh_isinf_f32(z.re) || bh_isinf_f32(z.im)) return INFINITY;
    bh_f64 a = z.re, b = z.im;
    return (bh_f32)BH_M_f64(sqrt)(a * a + b * b);
}

//@ C128 abs
BH_FUNCTION $R bh_$F_$N($T z) { return BH_M_f64(hypot)(z.re, z.im); }

//@ COMPLEX sign
BH_FUNCTION $T bh_$F_$N($T z) {
    $R modulus = bh_abs_$N(z);
    if (modulus != modulus) return bh_make_$N(NAN, NAN);
    if (modulus == 0) return bh_make_$N(0, 0);
    if (modulus < INFINITY) return bh_make_$N(z.re / modulus, z.im / modulus);
    if (!bh_isinf_$RN(z.re)) return bh_make_$N(0, BH_M_$RN(copysign)(($R)1, z.im));
    if (!bh_isinf_$RN(z.im)) return bh_make_$N(BH_M_$RN(copysign)(($R)1, z.re), 0);
    return bh_make_$N(NAN, NAN);
}

//@ COMPLEX conj
BH_FUNCTION $T bh_$F_$N($T z) { return bh_make_$N(z.re, -z.im); }

//@ COMPLEX real
BH_FUNCTION $R bh_$F_$N($T z) { return z.re; }

//@ COMPLEX imag
BH_FUNCTION $R bh_$F_$N($T z) { return z.im; }

//@ C64 cos sin tan cosh sinh tanh asin acos atan asinh acosh atanh exp exp2 expm1 log log2 log10 log1p sqrt
BH_FUNCTION $T bh_$F_$N($T z) { return bh_cast_c128_c64(bh_$F_c128(bh_cast_c64_c128(z))); }

//@ C64 any_power
BH_FUNCTION $T bh_$F_$N($T a, $T b) {
    return bh_cast_c128_c64(bh_any_power_c128(bh_cast_c64_c128(a), bh_cast_c64_c128(b)));
}

//@ C128 exp_polar
BH_FUNCTION $T bh_$F_$N(bh_f64 x, bh_f64 y, bh_f64 factor) {
    bh_f64 s = BH_M_f64(sin)(y), c = BH_M_f64(cos)(y);
    if (BH_M_f64(fabs)(x) < 700.0) {
        bh_f64 scale = BH_M_f64(exp)(x) * factor;
        return bh_make_c128(scale * c, scale * s);
    }
    bh_f64 root = BH_M_f64(exp)(x * 0.5);
    return bh_make_c128(root * c * factor * root, root * s * factor * root);
}

//@ C128 exp
BH_FUNCTION $T bh_$F_$N($T z) {
    bh_f64 x = z.re, y = z.im;
    int finite = bh_isfinite_f64(y);
    if (y == 0) return bh_make_c128(BH_M_f64(exp)(x), y);
    if (x == INFINITY) {
        return finite ? bh_make_c128(x * BH_M_f64(cos)(y), x * BH_M_f64(sin)(y)) : bh_make_c128(x, NAN);
    }
    if (x == -INFINITY) {
        bh_f64 s = finite ? BH_M_f64(sin)(y) : y, c = finite ? BH_M_f64(cos)(y) : 0;
        return bh_make_c128(BH_M_f64(copysign)(0.0, c), BH_M_f64(copysign)(0.0, s));
    }
    if (x != x || !finite) return bh_make_c128(NAN, NAN);
    return bh_exp_polar_c128(x, y, 1.0);
}

//@ C128 log_modulus
BH_FUNCTION bh_f64 bh_$F_$N($T z) {
    bh_f64 x = BH_M_f64(fabs)(z.re), y = BH_M_f64(fabs)(z.im), modulus = BH_M_f64(hypot)(x, y);
    if (modulus >= 0.7 && modulus < 1.45) {
        bh_f64 large = x > y ? x : y, small = x > y ? y : x, a = large * large, b = small * small;
        bh_f64 errors = BH_M_f64(fma)(large, large, -a) + BH_M_f64(fma)(small, small, -b);
        return BH_M_f64(log1p)(((a - 1.0) + b) + errors) * 0.5;
    }
    if (modulus == INFINITY && x < INFINITY && y < INFINITY) {
        return BH_M_f64(log)(BH_M_f64(hypot)(x * 0.5, y * 0.5)) + 0.693147180559945309417;
    }
    if (modulus != 0 && modulus < 1e-290) {
        bh_f64 scale = 4.149515568880992958512e180;
        return BH_M_f64(log)(BH_M_f64(hypot)(x * scale, y * scale)) - 600 * 0.693147180559945309417;
    }
    return BH_M_f64(log)(modulus);
}

//@ C128 log
BH_FUNCTION $T bh_$F_$N($T z) { return bh_make_c128(bh_log_modulus_c128(z), BH_M_f64(atan2)(z.im, z.re)); }

//@ C128 log10
BH_FUNCTION $T bh_$F_$N($T z) {
    $T w = bh_log_c128(z);
    return bh_make_c128(w.re * 0.43429448190325182765, w.im * 0.43429448190325182765);
}

//@ C128 sqrt
BH_FUNCTION $T bh_$F_$N($T z) {
    bh_f64 x = z.re, y = z.im;
    if (x == 0 && y == 0) return bh_make_c128(0, y);
    if (bh_isinf_f64(y)) return bh_make_c128(INFINITY, y);
    if (x != x) return bh_make_c128(NAN, NAN);
    if (x == INFINITY) return bh_make_c128(x, y != y ? y : BH_M_f64(copysign)(0.0, y));
    if (x == -INFINITY) return bh_make_c128(y != y ? y : 0, BH_M_f64(copysign)((bh_f64)INFINITY, y));
    if (y != y) return bh_make_c128(NAN, NAN);
    bh_f64 ax = BH_M_f64(fabs)(x), ay = BH_M_f64(fabs)(y), largest = ax > ay ? ax : ay, scale = 1, unscale = 1;
    if (largest > 2.2e307) {
        scale = 0.0625, unscale = 4;
    } else if (largest < 1e-290) {
        scale = 324518553658426726783156020576256.0, unscale = 5.5511151231257827021e-17;
    }
    x *= scale, y *= scale;
    bh_f64 root = BH_M_f64(sqrt)((BH_M_f64(fabs)(x) + BH_M_f64(hypot)(x, y)) * 0.5);
    bh_f64 other = BH_M_f64(fabs)(y) / (2 * root);
    bh_f64 re = x >= 0 ? root : other, im = BH_M_f64(copysign)(x >= 0 ? other : root, y);
    return bh_make_c128(re * unscale, im * unscale);
}

//@ C128 sinh
BH_FUNCTION $T bh_$F_$N($T z) {
    bh_f64 x = z.re, y = z.im;
    int finite = bh_isfinite_f64(y);
    if (y == 0) return bh_make_c128(BH_M_f64(sinh)(x), y);
    if (bh_isfinite_f64(x)) {
        if (!finite) return bh_make_c128(x == 0 ? x : NAN, NAN);
        if (BH_M_f64(fabs)(x) < 22.0) {
            return bh_make_c128(BH_M_f64(sinh)(x) * BH_M_f64(cos)(y), BH_M_f64(cosh)(x) * BH_M_f64(sin)(y));
        }
        $T value = bh_exp_polar_c128(BH_M_f64(fabs)(x), y, 0.5);
        return bh_make_c128(x < 0 ? -value.re : value.re, value.im);
    }
    if (x != x) return bh_make_c128(NAN, NAN);
    return finite ? bh_make_c128(x * BH_M_f64(cos)(y), INFINITY * BH_M_f64(sin)(y)) : bh_make_c128(INFINITY, NAN);
}

//@ C128 cosh
BH_FUNCTION $T bh_$F_$N($T z) {
    bh_f64 x = z.re, y = z.im;
    int finite = bh_isfinite_f64(y);
    if (y == 0) return bh_make_c128(BH_M_f64(cosh)(x), x != x ? y : BH_M_f64(copysign)(1.0, x) * y);
    if (bh_isfinite_f64(x)) {
        if (!finite) return bh_make_c128(NAN, x == 0 ? 0 : NAN);
        if (BH_M_f64(fabs)(x) < 22.0) {
            return bh_make_c128(BH_M_f64(cosh)(x) * BH_M_f64(cos)(y), BH_M_f64(sinh)(x) * BH_M_f64(sin)(y));
        }
        $T value = bh_exp_polar_c128(BH_M_f64(fabs)(x), y, 0.5);
        return bh_make_c128(value.re, x < 0 ? -value.im : value.im);
    }
    if (x != x) return bh_make_c128(NAN, NAN);
    return finite ? bh_make_c128(INFINITY * BH_M_f64(cos)(y), x * BH_M_f64(sin)(y)) : bh_make_c128(INFINITY, NAN);
}

//@ C128 tanh
BH_FUNCTION $T bh_$F_$N($T z) {
    bh_f64 x = z.re, y = z.im;
    int finite = bh_isfinite_f64(y);
    if (x != x) return bh_make_c128(x, y == 0 ? y : NAN);
    if (bh_isinf_f64(x)) {
        bh_f64 s = finite ? BH_M_f64(sin)(y) : y, c = finite ? BH_M_f64(cos)(y) : 1;
        return bh_make_c128(BH_M_f64(copysign)(1.0, x), BH_M_f64(copysign)(0.0, s * c));
    }
    if (!finite) return bh_make_c128(x == 0 ? x : NAN, NAN);
    if (BH_M_f64(fabs)(x) >= 22.0) {
        bh_f64 decay = BH_M_f64(exp)(-BH_M_f64(fabs)(x));
        return bh_make_c128(BH_M_f64(copysign)(1.0, x), 4 * BH_M_f64(sin)(y) * BH_M_f64(cos)(y) * decay * decay);
    }
    bh_f64 t = BH_M_f64(tan)(y), beta = 1 + t * t, s = BH_M_f64(sinh)(x), rho = BH_M_f64(sqrt)(1 + s * s);
    bh_f64 denominator = 1 + beta * s * s;
    return bh_make_c128(beta * rho * s / denominator, t / denominator);
}

//@ C128 swap
BH_FUNCTION $T bh_$F_$N($T z) { return bh_make_c128(z.im, z.re); }

//@ C128 sin
BH_FUNCTION $T bh_$F_$N($T z) { return bh_swap_c128(bh_sinh_c128(bh_swap_c128(z))); }

//@ C128 cos
BH_FUNCTION $T bh_$F_$N($T z) { return bh_cosh_c128(bh_make_c128(-z.im, z.re)); }

//@ C128 tan
BH_FUNCTION $T bh_$F_$N($T z) { return bh_swap_c128(bh_tanh_c128(bh_swap_c128(z))); }

//@ C128 exp2
BH_FUNCTION $T bh_$F_$N($T z) {
    bh_f64 x = z.re, y = z.im;
    if (y == 0) return bh_make_c128(BH_M_f64(exp2)(x), y);
    bh_f64 angle = y * 0.693147180559945309417;
    if (!bh_isfinite_f64(x) || !bh_isfinite_f64(y) || BH_M_f64(fabs)(x) >= 700.0) {
        return bh_exp_c128(bh_make_c128(x * 0.693147180559945309417, angle));
    }
    bh_f64 scale = BH_M_f64(exp2)(x);
    return bh_make_c128(scale * BH_M_f64(cos)(angle), scale * BH_M_f64(sin)(angle));
}

//@ C128 expm1
BH_FUNCTION $T bh_$F_$N($T z) {
    bh_f64 x = z.re, y = z.im;
    if (!bh_isfinite_f64(x) || !bh_isfinite_f64(y) || BH_M_f64(fabs)(x) >= 22.0) {
        $T power = bh_exp_c128(z);
        return bh_make_c128(power.re - 1, power.im);
    }
    bh_f64 sine = BH_M_f64(sin)(y * 0.5);
    bh_f64 re = BH_M_f64(expm1)(x) * BH_M_f64(cos)(y) - 2 * sine * sine;
    return bh_make_c128(re, y == 0 ? y : BH_M_f64(exp)(x) * BH_M_f64(sin)(y));
}

//@ C128 log2
BH_FUNCTION $T bh_$F_$N($T z) {
    $T w = bh_log_c128(z);
    return bh_make_c128(w.re * 1.44269504088896340736, w.im * 1.44269504088896340736);
}

//@ C128 log1p
BH_FUNCTION $T bh_$F_$N($T z) {
    bh_f64 x = z.re, y = z.im, angle = BH_M_f64(atan2)(y, 1 + x);
    if (BH_M_f64(fabs)(x) < 0.5 && BH_M_f64(fabs)(y) < 0.5) {
        bh_f64 a = x * x, b = y * y, errors = BH_M_f64(fma)(x, x, -a) + BH_M_f64(fma)(y, y, -b);
        return bh_make_c128(BH_M_f64(log1p)((2 * x + (a + b)) + errors) * 0.5, angle);
    }
    return bh_make_c128(bh_log_modulus_c128(bh_make_c128(1 + x, y)), angle);
}

//@ C128 is_large
BH_FUNCTION int bh_$F_$N($T z) { return BH_M_f64(fabs)(z.re) > 1e150 || BH_M_f64(fabs)(z.im) > 1e150; }

//@ C128 log_of_double
BH_FUNCTION bh_f64 bh_$F_$N($T z) { return bh_log_modulus_c128(z) + 0.693147180559945309417; }

//@ C128 acos
BH_FUNCTION $T bh_$F_$N($T z) {
    if (bh_is_large_c128(z)) {
        bh_f64 angle = BH_M_f64(atan2)(BH_M_f64(fabs)(z.im), z.re);
        return bh_make_c128(angle, -BH_M_f64(copysign)(bh_log_of_double_c128(z), z.im));
    }
    if (z.re == 0 && z.im != z.im) return bh_make_c128(1.57079632679489661923, NAN);
    $T minus = bh_sqrt_c128(bh_make_c128(1 - z.re, -z.im)), plus = bh_sqrt_c128(bh_make_c128(1 + z.re, z.im));
    bh_f64 sine = plus.re * minus.im - plus.im * minus.re;
    return bh_make_c128(2 * BH_M_f64(atan2)(minus.re, plus.re), BH_M_f64(asinh)(sine));
}

//@ C128 asinh
BH_FUNCTION $T bh_$F_$N($T z) {
    if (bh_is_large_c128(z)) {
        bh_f64 angle = BH_M_f64(atan2)(z.im, BH_M_f64(fabs)(z.re));
        return bh_make_c128(BH_M_f64(copysign)(bh_log_of_double_c128(z), z.re), angle);
    }
    if (z.re != z.re && z.im == 0) return z;
    bh_f64 x = z.im, y = -z.re;
    $T minus = bh_sqrt_c128(bh_make_c128(1 - x, -y)), plus = bh_sqrt_c128(bh_make_c128(1 + x, y));
    bh_f64 re = BH_M_f64(atan2)(x, minus.re * plus.re - minus.im * plus.im);
    bh_f64 im = BH_M_f64(asinh)(minus.re * plus.im - minus.im * plus.re);
    return bh_make_c128(-im, re);
}

//@ C128 asin
BH_FUNCTION $T bh_$F_$N($T z) { return bh_swap_c128(bh_asinh_c128(bh_swap_c128(z))); }

//@ C128 acosh
BH_FUNCTION $T bh_$F_$N($T z) {
    if (bh_is_large_c128(z)) return bh_make_c128(bh_log_of_double_c128(z), BH_M_f64(atan2)(z.im, z.re));
    if (z.re == 0 && z.im != z.im) return bh_make_c128(NAN, 1.57079632679489661923);
    $T below = bh_sqrt_c128(bh_make_c128(z.re - 1, z.im)), above = bh_sqrt_c128(bh_make_c128(z.re + 1, z.im));
    bh_f64 re = below.re * above.re + below.im * above.im;
    return bh_make_c128(BH_M_f64(asinh)(re), 2 * BH_M_f64(atan2)(below.im, above.re));
}

//@ C128 atanh
BH_FUNCTION $T bh_$F_$N($T z) {
    bh_f64 x = BH_M_f64(fabs)(z.re), y = z.im, right = BH_M_f64(copysign)(1.57079632679489661923, y);
    if (bh_isinf_f64(x) || bh_isinf_f64(y)) {
        return bh_make_c128(BH_M_f64(copysign)(0.0, z.re), y != y ? y : right);
    }
    if (x == 0 && y != y) return z;
    if (x != x || y != y) return bh_make_c128(NAN, NAN);
    if (x > 1e150 || BH_M_f64(fabs)(y) > 1e150) {
        bh_f64 modulus = BH_M_f64(hypot)(x, y);
        return bh_make_c128(BH_M_f64(copysign)(x / modulus / modulus, z.re), right);
    }
    bh_f64 re;
    if (x == 1 && BH_M_f64(fabs)(y) < 1e-150) {
        re = 0.5 * (0.693147180559945309417 - BH_M_f64(log)(BH_M_f64(fabs)(y)));
    } else {
        re = 0.25 * BH_M_f64(log1p)(4 * x / ((1 - x) * (1 - x) + y * y));
    }
    bh_f64 im = 0.5 * BH_M_f64(atan2)(2 * y, (1 - x) * (1 + x) - y * y);
    return bh_make_c128(BH_M_f64(copysign)(re, z.re), im);
}

//@ C128 atan
BH_FUNCTION $T bh_$F_$N($T z) { return bh_swap_c128(bh_atanh_c128(bh_swap_c128(z))); }


//@ COMPLEX whole_power
BH_FUNCTION $T bh_$F_$N($T base, unsigned int exponent) {
    $T result = bh_make_$N(1, 0);
    for (;;) {
        if (exponent & 1) result = bh_mul_$N(result, base);
        exponent >>= 1;
        if (exponent == 0) return result;
        base = bh_mul_$N(base, base);
    }
}

//@ C128 corner
BH_FUNCTION $T bh_$F_$N($T z) {
    if (!bh_isinf_c128(z)) {
        return bh_make_c128(z.re != z.re ? BH_M_f64(copysign)(0.0, z.re) : z.re, z.im != z.im ? BH_M_f64(copysign)(0.0, z.im) : z.im);
    }
    bh_f64 re = bh_isinf_f64(z.re) ? 1.0 : 0.0, im = bh_isinf_f64(z.im) ? 1.0 : 0.0;
    return bh_make_c128(BH_M_f64(copysign)(re, z.re), BH_M_f64(copysign)(im, z.im));
}

//@ C128 full_product
BH_FUNCTION $T bh_$F_$N($T a, $T b) {
    $T product = bh_mul_c128(a, b);
    if (product.re == product.re || product.im == product.im) return product;
    int infinite = bh_isinf_c128(a) || bh_isinf_c128(b) || bh_isinf_f64(a.re * b.re) || bh_isinf_f64(a.im * b.im)
        || bh_isinf_f64(a.re * b.im) || bh_isinf_f64(a.im * b.re);
    if (!infinite) return product;
    $T u = bh_corner_c128(a), v = bh_corner_c128(b);
    return bh_make_c128(INFINITY * (u.re * v.re - u.im * v.im), INFINITY * (u.re * v.im + u.im * v.re));
}

//@ C128 any_power
BH_FUNCTION $T bh_$F_$N($T a, $T b) { return bh_exp_c128(bh_full_product_c128(b, bh_log_c128(a))); }

//@ COMPLEX pow
BH_FUNCTION $T bh_$F_$N($T a, $T b) {
    if (b.re == 0 && b.im == 0) return bh_make_$N(1, 0);
    if (a.re == 0 && a.im == 0) {
        $R value = b.re > 0 ? 0 : NAN;
        return bh_make_$N(value, value);
    }
    if (b.im == 0 && BH_M_$RN(trunc)(b.re) == b.re && BH_M_$RN(fabs)(b.re) < 100) {
        if (b.re == 1) return a;
        if (b.re == 2) return bh_powi2_$N(a);
        if (b.re == 3) return bh_powi3_$N(a);
        $T power = bh_whole_power_$N(a, (unsigned int)BH_M_$RN(fabs)(b.re));
        return b.re < 0 ? bh_divide_$N(bh_make_$N(1, 0), power) : power;
    }
    return bh_any_power_$N(a, b);
}

//@ U64 philox
BH_FUNCTION bh_u64 bh_$F_$N(bh_u64 index, bh_u32 key) {
    bh_u32 left = (bh_u32)index, right = (bh_u32)(index >> 32);
    for (int round = 0; round < 10; round++) {
        bh_u64 product = (bh_u64)left * 0xD256D193u;
        left = (bh_u32)(product >> 32) ^ key ^ right;
        right = (bh_u32)product;
        key += 0x9E3779B9u;
    }
    return (bh_u64)right << 32 | left;
}

//@ U64 random
BH_FUNCTION $T bh_$F_$N(bh_u64 index, bh_u32 key) { return bh_philox_u64(index, key); }

//@ U32 random
BH_FUNCTION $T bh_$F_$N(bh_u64 index, bh_u32 key) { return (bh_u32)bh_philox_u64(index, key); }

//@ F64 random
BH_FUNCTION $T bh_$F_$N(bh_u64 index, bh_u32 key) {
    return (bh_f64)(bh_philox_u64(index, key) >> 11) * 1.1102230246251565404e-16;
}

//@ F32 random
BH_FUNCTION $T bh_$F_$N(bh_u64 index, bh_u32 key) {
    return (bh_f32)((bh_u32)bh_philox_u64(index, key) >> 8) * 5.9604644775390625e-8f;
}
