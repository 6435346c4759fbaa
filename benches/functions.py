#!/usr/bin/env python3
"""Single calls of NumPy's functions and operators beside bh's, on arrays of some sizes: which take longer on bh?

    benches/functions.py [--elements 10000,100000] [--below 1.0] [--seconds N] [--stack NAME] [--json FILE] [PART ...]

Each call is made alone and its result read, so nothing fuses: the least that bh can gain. Times are the least of several turns;
results are compared. Calls with a part of their text named are run, or all. To compare one thread with one, set
OPENBLAS_NUM_THREADS=1 and BH_VE_CPU_THREADS=1.
"""

import argparse
import json
import math
import os
import sys
import time
import warnings

import numpy

CALLS = """
sort(x) | argsort(x) | partition(x, 10)[10] | argpartition(x, 10)[10] | lexsort((x, k)) | unique(k) | unique(x) | median(x)
percentile(x, 50) | quantile(x, [.1, .5]) | searchsorted(s, x) | digitize(x, s[::1000]) | interp(x, s, y) | isin(k, [1, 2, 3]) | setdiff1d(k, [1, 2])
histogram(x, 50)[0] | histogram2d(x, y, 20)[0] | bincount(k) | bincount(k, weights=x) | add.reduceat(x, arange(0, n, 100))
cumsum(x) | cumprod(x) | diff(x) | ediff1d(x) | gradient(x) | trapezoid(x) | maximum.accumulate(x) | convolve(x, v) | correlate(x, v)
fft.fft(x) | fft.rfft(x) | fft.fft2(M) | fft.ifft(z) | x[i] | x[b] | take(x, i) | where(b, x, y) | nonzero(b)[0] | flatnonzero(b) | argwhere(b)
choose(k % 3, [x, y, x]) | select([x > .5, x > .2], [x, y]) | x.sum() | x.mean() | x.std() | x.max() | ptp(x) | argmax(x) | count_nonzero(b)
b.any() | b.all() | M.sum(0) | M.sum(1) | var(M, axis=0) | T.sum((0, 2)) | T.mean(axis=1) | nansum(x) | nanmean(x) | average(x, weights=y)
M @ M | dot(x, y) | inner(M, M) | tensordot(M, M, 1) | matmul(T, T) | einsum('ij,jk->ik', M, M) | einsum('ij,ij->i', M, M) | outer(v, v)
kron(v, v) | cross(T[:, 0, :3], T[:, 1, :3]) | trace(M) | cov(T[:, 0, :].T) | corrcoef(T[:, 0, :].T) | linalg.norm(x) | linalg.norm(M, axis=1)
linalg.solve(D, v[:10]) | linalg.inv(D) | linalg.det(D) | linalg.cholesky(D) | linalg.qr(M)[1] | linalg.svd(M)[1] | linalg.eigvalsh(M)
linalg.solve(T + 9 * eye(10), T) | linalg.inv(T + 9 * eye(10)) | linalg.det(T) | tile(v, 100) | repeat(x, 2) | concatenate([x, y]) | stack([x, y])
vstack([x, y]) | append(x, 1.) | insert(x, 5, 1.) | delete(x, 5) | pad(M, 2) | roll(x, 3) | flip(x).copy() | rot90(M).copy() | M.T.copy()
x.reshape(-1, 10).T.copy() | T.transpose(2, 0, 1).copy() | tril(M) | meshgrid(v, v)[0] | linspace(0, 1, n) | arange(n) | zeros(n) | full(n, 2.)
eye(100) | x + y * 2 - 1 | x * y | x / y | x[::2] + y[1::2] | x[5:-5] * 2 | f * f + f | z * z | x > y | (x > .2) & (y < .5) | ~b | k // 7
k % 7 | k << 2 | k & 3 | x ** 2 | x ** y | power(f, 2.5) | sqrt(x) | cbrt(x) | exp(x) | expm1(x) | log(x) | log1p(x) | sin(x) | sinh(x) | tanh(x)
arcsin(x) | arctan2(x, y) | hypot(x, y) | floor(x) | round(x, 2) | sign(x) | modf(x)[0] | mod(x, .3) | floor_divide(x, .3) | clip(x, .2, .8)
copysign(x, y) | heaviside(x, .5) | nan_to_num(x) | isclose(x, y) | allclose(x, y) | array_equal(x, y) | abs(z) | angle(z) | conj(z) | z.real + 1
x.astype('f4') | k.astype(float) | polyval(v[:5], x) | i0(v) | sinc(x) | deg2rad(x) | packbits(b) | ravel_multi_index((k, k), (100, 100))
random.default_rng(0).random(n) | random.default_rng(0).normal(size=n) | random.default_rng(0).integers(0, 9, n)
random.default_rng(0).permutation(n) | x.tolist()
"""
CALLS = [call.strip() for line in CALLS.strip().splitlines() for call in line.split("|")]


def names(np, n):
    """The names in calls: functions of a module, and its arrays of about `n` elements, the same for each module."""
    rng, array = numpy.random.default_rng(1), np.asarray
    side = math.isqrt(n)
    made = {name: getattr(np, name) for name in dir(numpy) if not name.startswith("_") and hasattr(np, name)} | {"abs": np.abs, "n": n}
    made |= {name: array(rng.random(n)) for name in "xy"} | {"v": array(rng.random(50)), "s": array(numpy.sort(rng.random(n)))}
    made |= {"i": array(rng.integers(0, n, n)), "k": array(rng.integers(0, 100, n)), "b": array(rng.random(n) > 0.5)}
    made |= {"z": array(rng.random(n) + 1j * rng.random(n)), "f": array(rng.random(n).astype("f4"))}
    made |= {"M": array(rng.random((side, side))), "T": array(rng.random((n // 100, 10, 10))), "D": array(rng.random((10, 10)) / 9 + numpy.eye(10) * 5)}
    return made | {"D": made["D"] @ made["D"].T}


def read(result):
    """The elements of a result in NumPy's memory."""
    return [read(one) for one in result] if isinstance(result, (tuple, list)) and len(result) < 9 else numpy.asarray(result)


def least(code, given, seconds):
    """The result of a call, and the least seconds that it takes."""
    best, turns, begin = math.inf, 0, time.perf_counter()
    while turns < 3 or time.perf_counter() - begin < seconds and turns < 1000:
        start = time.perf_counter()
        result = read(eval(code, given))
        best, turns = min(best, time.perf_counter() - start), turns + 1
    return result, best


def alike(mine, reference):
    """Are results the same, but for rounding?"""
    if isinstance(reference, list):
        return len(mine) == len(reference) and all(map(alike, mine, reference))
    same_type = mine.dtype == reference.dtype and mine.shape == reference.shape
    return same_type and numpy.allclose(mine, reference, rtol=1e-4 if mine.dtype.itemsize == 4 else 1e-9, atol=1e-9, equal_nan=True)


def main():
    numbers = lambda text: list(map(int, text.split(",")))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=numbers, default=[10000, 100000])
    parser.add_argument("--below", type=float, default=1.0, help="prints calls with a smaller ratio of times, NumPy's to bh's")
    parser.add_argument("--seconds", type=float, default=0.05, help="for each call and module, at most")
    parser.add_argument("--stack", help="the stack to run on, instead of BH_STACK's")
    parser.add_argument("--json")
    parser.add_argument("parts", nargs="*", metavar="PART")
    args = parser.parse_args()
    if args.stack:
        os.environ["BH_STACK"] = args.stack
    os.environ.setdefault("BH_FALLBACK", "silent")
    warnings.simplefilter("ignore")
    import bh

    rows, failed = [], False
    for n in args.elements:
        theirs, mine = names(numpy, n), names(bh, n)
        found = []
        for call in CALLS:
            if args.parts and not any(part in call for part in args.parts):
                continue
            code = compile(call, call, "eval")
            (reference, numpys), (result, own) = least(code, theirs, args.seconds), least(code, mine, args.seconds)
            if not alike(result, reference):
                failed = True
                print(f"{call} of {n} elements differs", file=sys.stderr)
            found.append({"elements": n, "call": call, "numpy": numpys, "bh": own, "ratio": numpys / own})
        print(f"{n} elements, {len(found)} calls: geometric mean {math.exp(sum(math.log(row['ratio']) for row in found) / max(len(found), 1)):.2f}")
        for row in sorted(found, key=lambda row: row["ratio"]):
            if row["ratio"] < args.below:
                print(f"{row['ratio']:6.2f} {row['call']:40} NumPy {row['numpy'] * 1e6:9.1f} us, bh {row['bh'] * 1e6:9.1f} us")
        rows += found
    if args.json:
        with open(args.json, "w") as file:
            json.dump(rows, file, indent=1)
    sys.exit(failed)


if __name__ == "__main__":
    main()
