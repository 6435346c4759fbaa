"""Shared by the NumPy programs: arguments, timing, inputs, checksums and output."""

import argparse
import json
import time

import numpy as np

PRIME = 100019
WEIGHT_PERIOD = 97
_CHUNK = WEIGHT_PERIOD * 10_000
_WEIGHTS = 1.0 + (np.arange(_CHUNK) % WEIGHT_PERIOD) / WEIGHT_PERIOD


def pseudo(count, seed, dtype):
    """The input formula, `count` values in [0, 1): cubes modulo a prime, which repeat after PRIME elements."""
    root = (np.arange(min(count, PRIME), dtype=np.int64) + seed * 33391) % PRIME
    period = (root * root % PRIME * root % PRIME / PRIME).astype(dtype)
    return np.resize(period, count)


def checksum(array):
    """Sum of weight * |value| in f64, in C order."""
    flat = np.ascontiguousarray(array).reshape(-1)
    total = 0.0
    for begin in range(0, flat.size, _CHUNK):
        chunk = np.abs(flat[begin : begin + _CHUNK].astype(np.float64))
        total += float(chunk @ _WEIGHTS[: chunk.size])
    return total


def _positive(text):
    value = int(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("must be a positive whole number")
    return value


def main(name, setup, run):
    """Runs `run(setup(n, dtype), iters)`, which returns the list of checksums as a function to call after timing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("n", type=_positive)
    parser.add_argument("iters", type=_positive)
    parser.add_argument("dtype", choices=["f64", "f32"])
    parser.add_argument("--warm", action="store_true", help="run once untimed before the timed run")
    args = parser.parse_args()
    dtype = np.float64 if args.dtype == "f64" else np.float32
    if args.warm:
        run(setup(args.n, dtype), args.iters)()
    state = setup(args.n, dtype)
    start, processor_start = time.perf_counter(), time.process_time()
    result = run(state, args.iters)
    # Where `numpy` is a system that records, the work has to be done by now.
    getattr(np, "flush", lambda: None)()
    seconds, processor = time.perf_counter() - start, time.process_time() - processor_start
    print(
        json.dumps(
            {
                "bench": name,
                "n": args.n,
                "iters": args.iters,
                "dtype": args.dtype,
                "threads": 1,
                "stack": "numpy",
                "seconds": seconds,
                "processor": processor,
                "checksum": [float(value) for value in result()],
            }
        )
    )
