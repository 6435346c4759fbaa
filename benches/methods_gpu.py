#!/usr/bin/env python3
"""Methods on a GPU: transforms, sorts, choices, factorisations and random numbers by bh, JAX and CuPy, on arrays of the device.

    benches/methods_gpu.py [NAME...] [--scale N] [--runs N] [--systems bh,jax,cupy] [--json FILE] [--table]

Figures are milliseconds of a call, medians of `runs` calls after one that is not counted; `first` is that one. Each system
runs in a process of its own, `bh` on the stack `opencl` unless BH_STACK names another. `--scale` divides the sizes. `--table` writes the rows of the table in docs/opencl-measurements.md instead.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np


def cases(scale):
    """Names, and for each what makes its arguments on the host and what is called with a system's module and its arrays."""
    rng = np.random.default_rng(1)
    n, side = max(64, 1 << 24 >> (scale - 1).bit_length()), max(8, 4096 // scale)

    def real(*shape):
        return rng.standard_normal(shape)

    def spd(m):
        a = real(m, m)
        return a @ a.T + m * np.eye(m)

    return {
        "fft 2^24": (lambda: [real(n) + 1j * real(n)], lambda x, a: x.fft.fft(a)),
        "fft 2^24, f32": (lambda: [(real(n) + 1j * real(n)).astype("complex64")], lambda x, a: x.fft.fft(a)),
        "fft of 2^24 reals": (lambda: [real(n)], lambda x, a: x.fft.rfft(a)),
        "fft of 9,999,991": (lambda: [real(max(59, 9999991 // scale)) + 0j], lambda x, a: x.fft.fft(a)),
        "fft of 10^7": (lambda: [real(max(100, 10**7 // scale)) + 0j], lambda x, a: x.fft.fft(a)),
        "fft2 4096": (lambda: [real(side, side) + 0j], lambda x, a: x.fft.fft2(a)),
        "fftn 256^3": (lambda: [real(*[max(8, 256 // scale)] * 3) + 0j], lambda x, a: x.fft.fftn(a)),
        "65,536 ffts of 256": (lambda: [real(n // 256, 256) + 0j], lambda x, a: x.fft.fft(a)),
        "sort 2^24": (lambda: [real(n)], lambda x, a: x.sort(a)),
        "sort 2^24, f32": (lambda: [real(n).astype("float32")], lambda x, a: x.sort(a)),
        "sort 2^24, i64": (lambda: [rng.integers(0, 1 << 40, n)], lambda x, a: x.sort(a)),
        "argsort 2^24": (lambda: [real(n)], lambda x, a: x.argsort(a)),
        "4096 sorts of 4096": (lambda: [real(side, side)], lambda x, a: x.sort(a, axis=1)),
        "searchsorted 2^22 in 2^24": (lambda: [np.sort(real(n)), real(n // 4)], lambda x, a, v: x.searchsorted(a, v)),
        "cumsum 2^24": (lambda: [real(n)], lambda x, a: x.cumsum(a)),
        "a[a > 0] 2^24": (lambda: [real(n)], lambda x, a: a[a > 0]),
        "nonzero 2^24": (lambda: [real(n)], lambda x, a: x.nonzero(a > 1)[0]),
        "median 2^24": (lambda: [real(n)], lambda x, a: x.median(a)),
        "random 2^24": (lambda: [], lambda x: x.random.default_rng(1).random(n)),
        "product 4096": (lambda: [real(side, side), real(side, side)], lambda x, a, b: a @ b),
        "solve 4096": (lambda: [real(side, side), real(side)], lambda x, a, b: x.linalg.solve(a, b)),
        "solve 1024": (lambda: [real(side // 4, side // 4), real(side // 4)], lambda x, a, b: x.linalg.solve(a, b)),
        "cholesky 4096": (lambda: [spd(side)], lambda x, a: x.linalg.cholesky(a)),
        "inv 2048": (lambda: [real(side // 2, side // 2)], lambda x, a: x.linalg.inv(a)),
        "det 2048": (lambda: [real(side // 2, side // 2) / 50], lambda x, a: x.linalg.det(a)),
        "qr 4096 x 512": (lambda: [real(side, side // 8)], lambda x, a: x.linalg.qr(a)[1]),
        "distances of 2^18 points to 64 centres": (lambda: [real(n // 64, 16), real(64, 16)], lambda x, a, b: ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2)),
        "512 inverses of 32": (lambda: [real(512 // scale + 1, 32, 32)], lambda x, a: x.linalg.inv(a)),
        "512 solves of 32": (lambda: [real(512 // scale + 1, 32, 32), real(512 // scale + 1, 32, 1)], lambda x, a, b: x.linalg.solve(a, b)),
    }


def inside(system, scale, runs, names):
    """A process's figures: a line for each case."""
    if system == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        module, asarray, finish = jax.numpy, jax.numpy.asarray, jax.block_until_ready
    elif system == "cupy":
        import cupy

        module, asarray, finish = cupy, cupy.asarray, lambda _: cupy.cuda.Device().synchronize()
    else:
        import bh

        def asarray(array):
            made = bh.array(array)
            # A kernel that reads it has it brought to the device.
            made = made + made.dtype.type(0)
            bh.flush()
            return made

        def finish(results):
            bh.flush()
            for result in results if isinstance(results, (list, tuple)) else [results]:
                # An element is there when all is.
                result.flat[0].item() if result.size else None

        module = bh
    for name, (make, call) in cases(scale).items():
        if names and name not in names:
            continue
        random = name.startswith("random")
        try:
            arrays = [asarray(array) for array in make()]
            finish(arrays)
            if system == "jax" and random:
                key, size = jax.random.key(1), max(64, 1 << 24 >> (scale - 1).bit_length())
                run = lambda: jax.random.uniform(key, (size,), "float64")
            elif system == "jax" and ("nonzero" not in name and "[" not in name):
                jitted = jax.jit(lambda *arrays, call=call: call(module, *arrays))
                run = lambda: jitted(*arrays)
            else:
                run = lambda: call(module, *arrays)
            times = []
            for _ in range(runs + 1):
                begin = time.perf_counter()
                finish(run())
                times.append((time.perf_counter() - begin) * 1e3)
            found = {"first": round(times[0], 2), "call": round(statistics.median(times[1:]), 3)}
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps({"case": name, **found}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--systems", default="bh,jax,cupy")
    parser.add_argument("--inside")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    if args.inside:
        inside(args.inside, args.scale, args.runs, args.names)
        return 0
    table = {}
    for system in args.systems.split(","):
        words = [sys.executable, __file__, "--inside", system, "--scale", str(args.scale), "--runs", str(args.runs), *args.names]
        done = subprocess.run(words, capture_output=True, text=True, env={"BH_STACK": "opencl", **os.environ})
        for line in done.stdout.splitlines():
            found = json.loads(line)
            table.setdefault(found.pop("case"), {})[system] = found
        if done.returncode:
            print(f"{system}: {done.stderr.strip()[-400:]}", file=sys.stderr)
    for name, row in table.items():
        figures = [str(row.get(system, {}).get(key, "–")) for key in ("call", "first") for system in args.systems.split(",")]
        print(f"| {' | '.join([name, *figures])} |" if args.table else json.dumps({"case": name, **row}), flush=True)
    if args.json:
        args.json.write_text(json.dumps(table, indent=1) + "\n")
    return 1 if any("error" in row.get("bh", {"error": 1}) for row in table.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
