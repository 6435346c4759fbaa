#!/usr/bin/env python3
"""Functions of scalars with loops on a GPU: bh.vectorize beside the same loops written by hand.

    benches/scalars_gpu.py [--by cuda|opencl] [--device gpu|cpu] [--elements N] [--runs N] [--json FILE] [NAME...]

*by hand* is the time of the kernel of `scalars/by_hand.cu` alone: CUDA by CuPy, without contraction of products and sums, timed by events;
or OpenCL on the device of a kind, from launch to end. *kernel* is that of bh's kernel by the device's clock, in a process of its own as the clock
takes time, and *call* a whole call from Python, until its result is there. All are milliseconds, medians; calls of one system follow each
other, as a device takes time to go from one to another. Results must agree.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from ctypes import c_int
from pathlib import Path

import numpy

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "common"))
sys.path.insert(0, str(HERE))
import fresh
import opencl
import scalars

NAMES = ("mandelbrot", "collatz", "digit_sum", "legendre", "julia", "divisor", "newton", "bisection", "kepler")
KINDS = {"gpu": opencl.GPU, "cpu": opencl.PROCESSOR}
SOURCE = (HERE / "scalars" / "by_hand.cu").read_text()
GROUP = 256


class Cuda:
    """The kernels by CuPy."""

    def __init__(self):
        import cupy

        self.cupy, self.module = cupy, cupy.RawModule(code=SOURCE, options=("--fmad=false",))
        self.name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()

    def prepared(self, name, arrays, dtype):
        """A call that gives seconds of a kernel, and one that gives its result."""
        cupy, kernel = self.cupy, self.module.get_function(name)
        inputs, count = [cupy.asarray(array) for array in arrays], len(arrays[0])
        out = cupy.empty(count, dtype)

        def timed():
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            kernel((-(-count // GROUP),), (GROUP,), (*inputs, out, numpy.int32(count)))
            end.record()
            end.synchronize()
            return cupy.cuda.get_elapsed_time(begin, end) / 1e3

        return timed, out.get


class OpenCl:
    """The kernels by OpenCL on the device of a kind."""

    def __init__(self, kind):
        self.device = opencl.Device(SOURCE, KINDS[kind])
        self.name = self.device.name()

    def prepared(self, name, arrays, dtype):
        """As with CUDA."""
        device, count, kernel = self.device, len(arrays[0]), self.device.kernel(name)
        made = numpy.empty(count, dtype)
        buffers = [device.buffer(array.nbytes) for array in (*arrays, made)]
        for buffer, array in zip(buffers, arrays):
            device.write(buffer, array)
        device.arguments(kernel, *buffers, c_int(count))

        def timed():
            device.finish()
            begin = time.perf_counter()
            device.launch(kernel, -(-count // GROUP) * GROUP, GROUP)
            device.finish()
            return time.perf_counter() - begin

        def result():
            device.read(buffers[-1], made)
            return made

        return timed, result


def of_bh(function, arrays):
    """A call that gives its seconds, and one that gives the result."""
    import bh

    made, inputs = bh.vectorize(function), [bh.asarray(array) for array in arrays]

    def timed():
        begin = time.perf_counter()
        bh.wait(made(*inputs))
        return time.perf_counter() - begin

    return timed, lambda: numpy.asarray(made(*inputs))


def runs(call, given):
    """The median of some seconds in milliseconds, after calls that are not measured."""
    for _ in range(given.warm):
        call()
    return 1e3 * statistics.median(call() for _ in range(given.runs))


def inside(name, given):
    """Prints the milliseconds of bh's kernel, where the device's clock is on."""
    from bh import _native

    function = getattr(scalars, name)
    call, _ = of_bh(function, scalars.PROGRAMS[function][0](numpy.random.default_rng(1), given.elements))
    spent = lambda: dict(_native.Stack().counters())["opencl.kernel_ns"]

    def timed():
        before = spent()
        call()
        return (spent() - before) / 1e9

    print(runs(timed, given))


def kernel(name, given):
    """The milliseconds of bh's kernel, in a process that asks the device's clock."""
    sizes = ["--elements", given.elements, "--runs", given.runs, "--warm", given.warm, "--device", given.device]
    words = [sys.executable, __file__, "--inside", *map(str, sizes), name]
    return float(subprocess.run(words, env={**os.environ, "BH_OPENCL_PROFILE": "true"}, check=True, capture_output=True, text=True).stdout)


def measured(name, system, given):
    """The figures of a program."""
    function = getattr(scalars, name)
    arrays = scalars.PROGRAMS[function][0](numpy.random.default_rng(1), given.elements)
    call, mine = of_bh(function, arrays)
    found = mine()
    by_hand, theirs = system.prepared(name, arrays, found.dtype)
    times = {"by_hand": runs(by_hand, given), "kernel": kernel(name, given), "call": runs(call, given)}
    if not numpy.allclose(theirs(), found, rtol=1e-9, atol=1e-12):
        raise SystemExit(f"{name}: bh and the kernel by hand DISAGREE")
    return {"program": name, **times}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *NAMES])
    parser.add_argument("--by", choices=["cuda", "opencl"], default="cuda")
    parser.add_argument("--device", choices=list(KINDS), default="gpu")
    parser.add_argument("--elements", type=int, default=1 << 26)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--warm", type=int, default=5, help="calls before those that are measured")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    fresh.enable_driver()
    own = {"STACK": "opencl", "OPENCL_DEVICE": given.device, "OPENCL_PLACEMENT": "device"}
    os.environ.update({f"BH_{key}": value for key, value in own.items()})
    if given.inside:
        return inside(given.names[0], given)
    system = Cuda() if given.by == "cuda" else OpenCl(given.device)
    print(f"{system.name}, {given.elements} elements, by hand in {given.by}\n{'ms':14}{'by hand':>10}{'kernel':>10}{'call':>10}{'hand / kernel':>15}{'hand / call':>13}")
    rows = []
    for name in given.names or NAMES:
        row = measured(name, system, given)
        rows.append(row)
        hand, own, whole = (row[form] for form in ("by_hand", "kernel", "call"))
        print(f"{name:14}{hand:10.3f}{own:10.3f}{whole:10.3f}{hand / own:15.2f}{hand / whole:13.2f}", flush=True)
        if given.json:
            given.json.write_text(json.dumps({"device": system.name, "elements": given.elements, "by": given.by, "programs": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
