#!/usr/bin/env python3
"""Functions of many operations on small arrays: NumPy, bh, `bh.jit`, and Numba and JAX where they are installed.

    python benches/jit.py [--operations 250] [--elements 10 100 1000 4096 100000] [--threads 1]

Prints microseconds a call, the median of repeated runs of each system in turn. A call's results are waited for.
"""

import argparse
import os
import statistics
import time


def source(operations):
    """A function of two arrays of an equation of state's kind: polynomials of polynomials."""
    lines = ["def f(np, a, b, dt):", "    x = a * 0.25 + b"]
    for number in range((operations - 4) // 5):
        lines.append(f"    y = (x * {1 + number % 7}e-3 + a) * {0.5 + number % 3 / 8} - b")
        lines.append("    x = x + y * dt" if number % 2 else "    x = np.maximum(y, x) * 0.5 + dt")
    return "\n".join(lines + ["    return x, y * 2"]) + "\n"


def systems(f):
    """Pairs of a name and a function of (elements) that gives a call to be timed, which waits for its results."""
    import numpy

    def plain(np, wait, call=f):
        def prepare(a, b):
            a, b = np.asarray(a).copy(), np.asarray(b).copy()
            return lambda: wait(call(np, a, b, 0.125))

        return prepare

    yield "numpy", plain(numpy, lambda results: None)
    import bh

    def finish(results):
        bh.wait(*results)

    yield "bh", plain(bh, finish)
    jitted = bh.jit(lambda a, b, dt: f(bh, a, b, dt), traced="dt")
    yield "bh.jit", plain(bh, finish, lambda np, a, b, dt: jitted(a, b, dt))
    try:
        import jax

        jax.config.update("jax_enable_x64", True)
        compiled = jax.jit(lambda a, b, dt: f(jax.numpy, a, b, dt))
        yield "jax.jit", plain(jax.numpy, lambda results: results[0].block_until_ready(), lambda np, a, b, dt: compiled(a, b, dt))
    except ImportError:
        pass
    try:
        import numba

        scope = {"np": numpy}
        exec(source(OPERATIONS).replace("f(np, ", "f("), scope)
        fast = numba.njit(fastmath=False)(scope["f"])
        yield "numba", plain(numpy, lambda results: None, lambda np, a, b, dt: fast(a, b, dt))
    except ImportError:
        pass


def timed(call, seconds):
    """Seconds a call, of as many as fit."""
    begin, calls = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        call()
        calls += 1
    return (time.perf_counter() - begin) / calls


def main():
    global OPERATIONS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=250)
    parser.add_argument("--elements", type=int, nargs="+", default=[10, 100, 1000, 4096, 100_000])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.2)
    given = parser.parse_args()
    for name in ("BH_VE_CPU_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = str(given.threads)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if given.threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    OPERATIONS = given.operations
    scope = {}
    exec(source(OPERATIONS), scope)
    import numpy

    all_systems = list(systems(scope["f"]))
    print(f"{'elements':>9}" + "".join(f"{name:>12}" for name, _ in all_systems))
    for elements in given.elements:
        values = numpy.random.default_rng(1).random((2, elements))
        calls = [prepare(*values) for _, prepare in all_systems]
        for call in calls:
            timed(call, given.seconds)
        runs = [[timed(call, given.seconds) for call in calls] for _ in range(5)]
        medians = [statistics.median(run[at] for run in runs) for at in range(len(calls))]
        print(f"{elements:9}" + "".join(f"{1e6 * seconds:12.1f}" for seconds in medians), flush=True)


if __name__ == "__main__":
    main()
