"""Prints the minimax polynomials of coefficients.rs. Needs mpmath; takes about ten seconds."""

import struct

import mpmath
from mpmath import asin, atan, atanh, cos, erf, erfc, exp, log, mp, mpf, pi, sin, sqrt

mp.prec = 300


def remez(f, weight, low, high, degree, points=1200):
    """The polynomial p that minimises max |weight (p - f)| on [low, high], and that maximum."""
    low, high, unknowns = mpf(low), mpf(high), degree + 2
    middle, half = (low + high) / 2, (high - low) / 2
    grid = [middle - half * cos(pi * i / points) for i in range(points + 1)]
    values, weights = [f(x) for x in grid], [weight(x) for x in grid]
    nodes = [middle + half * cos(pi * (unknowns - 1 - i) / (unknowns - 1)) for i in range(unknowns)]
    for _ in range(12):
        system, right = mpmath.matrix(unknowns, unknowns), mpmath.matrix(unknowns, 1)
        for i, x in enumerate(nodes):
            for j in range(degree + 1):
                system[i, j] = x**j
            system[i, degree + 1] = (-1) ** i / weight(x)
            right[i] = f(x)
        solution = mpmath.lu_solve(system, right)
        coefficients, level = [solution[j] for j in range(degree + 1)], abs(solution[degree + 1])
        error = [w * (mpmath.polyval(coefficients[::-1], x) - v) for x, v, w in zip(grid, values, weights)]
        extrema = []
        for i, e in enumerate(error):
            if not extrema or (e > 0) != (error[extrema[-1]] > 0):
                if e != 0:
                    extrema.append(i)
            elif abs(e) > abs(error[extrema[-1]]):
                extrema[-1] = i
        largest = max(abs(e) for e in error)
        if len(extrema) < unknowns:
            break
        while len(extrema) > unknowns:
            extrema.pop(0 if abs(error[extrema[0]]) < abs(error[extrema[-1]]) else -1)
        nodes = [grid[i] for i in extrema]
        if largest / level < 1.02:
            break
    return coefficients, largest


def away_from_zero(f):
    """f, with its removable singularity at 0 stepped over."""
    tiny = mpf(10) ** -20
    return lambda x: f(x if abs(x) > tiny else tiny)


def scaled_erfc(t):
    """(1 + 2x) e^(x²) erfc(x) at t = (x - 4) / (x + 4)."""
    x = 4 * (1 + t) / (1 - t)
    if x > 30:
        fraction = mpf(0)
        for k in range(400, 0, -1):
            fraction = mpf(k) / 2 / (x + fraction)
        return (1 + 2 * x) / ((x + fraction) * sqrt(pi))
    with mpmath.workprec(320 + int(3 * x * x)):
        value = exp(x * x) * erfc(x)
    return (1 + 2 * x) * value


def even(f):
    """f as a function of the square of its argument."""
    return lambda z: f(sqrt(z))


def shortest_single(c):
    """The shortest decimal that is the same `f32` as nine digits are."""
    c = mpmath.nstr(c, 9)
    pack = lambda text: struct.pack("f", float(text))
    return next(text for text in (f"{float(c):.{digits}g}" for digits in range(1, 12)) if pack(text) == pack(c))


QUARTER = (pi / 4 + mpf("1e-5")) ** 2
ONE = lambda x: mpf(1)
TABLE = [
    ("EXP", lambda r: (exp(r) - 1 - r) / r**2, lambda r: r * r, "-0.3475", "0.3475", (9, 5),
     "(e^r - 1 - r) / r² for |r| ≤ ln 2 / 2"),
    ("EXPM1", lambda r: (exp(r) - 1 - r) / r**2, lambda r: abs(r) + mpf("0.001"), "-0.3475", "0.3475", (10,),
     "(e^r - 1 - r) / r² for |r| ≤ ln 2 / 2, with the error relative to e^r - 1"),
    ("EXP2", lambda r: (mpf(2) ** r - 1 - r * log(2)) / r**2, lambda r: r * r, "-0.5001", "0.5001", (9, 5),
     "(2^r - 1 - r ln 2) / r² for |r| ≤ 1/2"),
    ("LOG", even(lambda s: (2 * atanh(s) / s - 2) / s**2), lambda z: z / 2, 0, "0.02946", (6, 3),
     "(2 artanh(s)/s - 2) / z, z = s², for s = f/(2+f), 1 + f in [√½, √2]"),
    ("LOG_DD", even(lambda s: ((2 * atanh(s) / s - 2) / s**2 - mpf(2) / 3) / s**2), lambda z: z * z / 2, 0, "0.02946", (7,),
     "((2 artanh(s)/s - 2) / z - 2/3) / z, as [`LOG`], for sums that carry a low part"),
    ("SIN", even(lambda r: (sin(r) / r - 1) / r**2), lambda z: z, 0, QUARTER, (5, 3),
     "(sin(r)/r - 1) / z, z = r², for |r| ≤ π/4"),
    ("COS", even(lambda r: (cos(r) - 1 + r**2 / 2) / r**4), lambda z: z * z, 0, QUARTER, (5, 3),
     "(cos(r) - 1 + z/2) / z², z = r², for |r| ≤ π/4"),
    ("ASIN", even(lambda x: (asin(x) / x - 1) / x**2), lambda z: z, 0, "0.25", (12, 6),
     "(arcsin(x)/x - 1) / z, z = x² ≤ 1/4"),
    ("ATAN", even(lambda t: (atan(t) / t - 1) / t**2), lambda z: z, 0, "0.1717", (11, 5),
     "(arctan(t)/t - 1) / z, z = t², for |t| ≤ tan(π/8)"),
    ("ERF", even(lambda x: erf(x) / x - 1), ONE, 0, 1, (12, 8),
     "erf(x)/x - 1 as a polynomial in x² ≤ 1"),
    ("ERFCX", scaled_erfc, ONE, (mpf("0.99") - 4) / (mpf("0.99") + 4), "0.75", (20, 11),
     "(1 + 2x) e^(x²) erfc(x) as a polynomial in (x - 4)/(x + 4), for 1 ≤ x ≤ 28"),
]

SINGLE_TABLE = [
    ("EXP_F32", lambda r: (exp(r) - 1 - r) / r**2, lambda r: r * r, "-0.3475", "0.3475", 4,
     "(e^r - 1 - r) / r² for |r| ≤ ln 2 / 2 in `f32` lanes"),
    ("LOG_F32", lambda f: (log(1 + f) - f + f * f / 2) / f**3, lambda f: f * f, "-0.29290", "0.41422", 8,
     "(log(1 + f) - f + f²/2) / f³ for 1 + f in [√½, √2] in `f32` lanes"),
]

if __name__ == "__main__":
    for name, f, weight, low, high, degrees, text in TABLE:
        for degree, suffix in zip(degrees, ("", "_SINGLE")):
            points = 500 if name == "ERFCX" else 1200
            found, largest = remez(away_from_zero(f), away_from_zero(weight), low, high, degree, points)
            print(f"/// {text}; error 2^{float(mpmath.log(largest, 2)):.1f}.")
            print(f"pub(crate) const {name}{suffix}: [f64; {degree + 1}] = [")
            print("".join(f"    {float(c)!r},\n" for c in found) + "];\n")
    for name, f, weight, low, high, degree, text in SINGLE_TABLE:
        found, largest = remez(away_from_zero(f), away_from_zero(weight), low, high, degree)
        print(f"/// {text}; error 2^{float(mpmath.log(largest, 2)):.1f}.")
        print(f"pub(crate) const {name}: [f32; {degree + 1}] = [")
        print("".join(f"    {shortest_single(c)},\n" for c in found) + "];\n")
