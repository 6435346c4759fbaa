#!/usr/bin/env python3
"""A hash of the results of each function with one form, on 200,000 random and special arguments in double and in single precision.

    BH_RECORDER_REPRODUCIBLE=true [BH_STACK=cuda] benches/reproducible/functions.py

Machines and devices that print the same lines as `functions.txt` compute the same bits. NaN count as equal. The last
line says how many kernels ran on a device.
"""

import argparse
import hashlib

import bh
import numpy

UNARY = "cos sin tan cosh sinh tanh arcsin arccos arctan arcsinh arccosh arctanh exp exp2 expm1 log log2 log10 log1p sqrt cbrt".split()
SPECIAL = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0, 10.0, 20.0, 709.7, 745.2, 88.8, 104.0, 1e5, 1e22, 1e300, 1e-5, 1e-30, 1e-310, numpy.pi, numpy.inf, numpy.nan)
# The doubles and the single that are nearest to multiples of pi / 2, by their size.
HARD = (6381956970095103.0 * 2.0**797, 5319372648326541.0 * 2.0**100, 16367173.0 * 2.0**72)


def words(count, seed):
    """Random words of 64 bits (SplitMix64), the same on all machines."""
    word = (numpy.arange(1, count + 1, dtype="u8") + numpy.uint64(seed << 32)) * numpy.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word = (word ^ (word >> numpy.uint64(shift))) * numpy.uint64(factor)
    return word ^ (word >> numpy.uint64(31))


def uniform(count, seed):
    """Random numbers from 0 to 1."""
    return (words(count, seed) >> numpy.uint64(11)) * 2.0**-53


def arguments(dtype, seed):
    """Random numbers near zero, random bits, multiples of pi / 2 of all sizes, and special numbers with their neighbours, half of them negative."""
    bits = words(100_000, 10 * seed)
    bits = (bits >> numpy.uint64(1)).view("f8") if dtype == "f8" else (bits >> numpy.uint64(33)).astype("u4").view("f4")
    with numpy.errstate(all="ignore"):
        special = numpy.array(SPECIAL).astype(dtype)
        special = numpy.concatenate([special, numpy.nextafter(special, dtype_of(dtype)(0)), numpy.nextafter(special, dtype_of(dtype)(numpy.inf))])
    near = (20 * uniform(100_000, 10 * seed + 1)).astype(dtype)
    near[::7] = numpy.round(near[::7])
    near[::11] /= 20
    with numpy.errstate(all="ignore"):
        exponents = (uniform(20_000, 10 * seed + 2) * (1000 if dtype == "f8" else 126)).astype("i4")
        turns = numpy.floor(numpy.ldexp(1 + uniform(20_000, 10 * seed + 3), exponents)) * (numpy.pi / 2)
    found = numpy.concatenate([bits, near, turns.astype(dtype), numpy.array(HARD).astype(dtype), special])
    return numpy.where(uniform(found.size, 10 * seed + 4) < 0.5, found, -found)


def dtype_of(name):
    return numpy.dtype(name).type


def hashed(result):
    result = numpy.array(result)
    result[numpy.isnan(result)] = numpy.nan
    return hashlib.sha256(result.tobytes()).hexdigest()[:16]


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    numpy.seterr(all="ignore")
    for dtype in ("f8", "f4"):
        x, y = arguments(dtype, 1), arguments(dtype, 2)
        for name in UNARY:
            print(hashed(getattr(bh, name)(bh.array(x) + 0)), name, dtype)
        print(hashed(bh.power(bh.array(x) + 0, bh.array(y) + 0)), "power", dtype)
        print(hashed(bh.arctan2(bh.array(x) + 0, bh.array(y) + 0)), "arctan2", dtype)
        print(hashed(bh.arctan2(bh.array(x) * 0.5, bh.array(x[::-1].copy()) * 0.5)), "arctan2 of both signs", dtype)
        print(hashed(bh.power(abs(bh.array(y[: x.size]) % 8), bh.array(x) % 5)), "power of small numbers", dtype)
    counters = dict(bh.Stack().counters())
    print("kernels on a device:", sum(counters.get(name, 0) for name in ("opencl.kernels", "cuda.kernels")))


if __name__ == "__main__":
    main()
