#!/usr/bin/env python3
"""The programs of the papers on GPU compilers beside kernels written by hand in OpenCL, and where bh's first runs spend their time.

    BH_PREFIX=DIR benches/by_hand.py [--device gpu|cpu] [--runs N] [--json FILE] [NAME...]

Milliseconds, each the fastest of some runs. *by hand* is a run of the kernels of `gpu_papers/by_hand.cl` with the result read
back and the input on the device; *bh* is a later run, which does the same. Beside each, *kernels* is the time of the kernels alone, by
the device's clock. A *first* run begins without anything that bh or the driver kept on disk and includes the transfers of its input:
recording and planning, building (the driver's compiler, all threads together), transfers, kernels. Results must agree. Where PyTorch
finds the card, *vendor* is its product of matrices or with vectors, by cuBLAS. With `--host` the sizes of Jit4OpenCL run on the processor,
too: *cores* by bh, *numpy* by `gpu_papers/numpy_version.py` if its intermediate arrays fit in memory, *c* the forces among bodies by
`gpu_papers/forces.c`. `--prebuilt` takes `gpu_papers` from BH_BENCH_BUILD as it is.
"""

import argparse
import ctypes
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from ctypes import c_float, c_int
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import collection
import fresh
import harness
import opencl

sys.path.insert(0, str(Path(__file__).resolve().parent / "gpu_papers"))
import numpy_version

PHASES = {
    "analysis": ["recorder.record_ns", "filter.own_ns", "fuser.own_ns", "DRIVER.lower_ns"],
    "compile": ["DRIVER.build_ns"],
    "transfer": ["DRIVER.upload_ns", "DRIVER.download_ns"],
    "kernels": ["DRIVER.kernel_ns"],
}
KINDS = {"gpu": opencl.GPU, "cpu": opencl.PROCESSOR}
COLUMNS = ["numpy", "c", "cores", "by_hand", "by_hand_kernels", "vendor", "vendor_kernels", "bh", "kernels", "first"]
TOLERANCE = 1e-4


def numbers(*shape, seed, dtype=np.float32):
    """The input of the programs on bh."""
    return harness.pseudo(math.prod(shape), seed, dtype).reshape(shape)


class Plan:
    """Buffers of a program, its launches in order, and the arrays of its result."""

    def __init__(self, device):
        self.device, self.buffers, self.launches, self.results, self.starts = device, [], [], [], []

    def put(self, data):
        """A buffer with data."""
        self.buffers.append(self.device.buffer(data.nbytes))
        self.device.write(self.buffers[-1], np.ascontiguousarray(data))
        return self.buffers[-1]

    def changed(self, data):
        """A buffer that kernels change: it gets its data again before each run, which does not count."""
        self.starts.append((self.put(data), np.ascontiguousarray(data)))
        return self.starts[-1][0]

    def result(self, *shape, dtype=np.float32):
        """A buffer whose elements are read when all is done."""
        made = np.empty(shape, dtype)
        self.buffers.append(self.device.buffer(made.nbytes))
        self.results.append((self.buffers[-1], made))
        return self.buffers[-1]

    def launch(self, name, items, *arguments, group=256):
        """A kernel over items in groups."""
        kernel = self.device.kernel(name)
        self.device.arguments(kernel, *arguments)
        self.launches.append((kernel, items, group))

    def run(self):
        """Seconds of a run until the result is on the host."""
        for buffer, data in self.starts:
            self.device.write(buffer, data)
        self.device.finish()
        begin = time.perf_counter()
        for launch in self.launches:
            self.device.launch(*launch)
        for buffer, data in self.results:
            self.device.read(buffer, data)
        return time.perf_counter() - begin

    def close(self):
        """Gives the buffers back."""
        for buffer in self.buffers:
            self.device.release(buffer)


SQUARE = (16, 16)


def matmul(plan, n):
    plan.launch("matmul", (n, n), plan.put(numbers(n, n, seed=1)), plan.put(numbers(n, n, seed=2)), plan.result(n, n), c_int(n), group=SQUARE)


def coulomb(plan, n):
    plan.launch("coulomb", (n, n), plan.put(numbers(4, 4000, seed=3)), plan.result(n, n), c_int(4000), group=SQUARE)


def nbody(plan, n, dtype=np.float32):
    name = "nbody" if dtype == np.float32 else "nbody_f64"
    mass, place = (plan.put(numbers(*shape, seed=seed, dtype=dtype)) for shape, seed in (((n,), 4), ((3, n), 5)))
    plan.launch(name, n, mass, place, plan.result(3, n, dtype=dtype), group=128)


def black_scholes(plan, n):
    plan.launch("black_scholes", n, plan.put(50 + 20 * numbers(n, seed=6)), plan.result(n), plan.result(n))


def mandelbrot(plan, n):
    plan.launch("mandelbrot", (n, n), plan.result(n, n), group=SQUARE)


def transpose(plan, n):
    plan.launch("transpose", (n, n), plan.put(numbers(n, n, seed=7)), plan.result(n, n), group=SQUARE)


def stencil(plan):
    plan.launch("stencil", (4096, 4096), plan.put(numbers(4096, 4096, seed=8)), plan.result(4096, 4096), group=(64, 4))


def reduce(plan):
    parts = plan.put(np.empty(1024, np.float32))
    plan.launch("reduce", 1024 * 256, plan.put(numbers(1 << 23, seed=9)), parts, c_int(1 << 23))
    plan.launch("reduce", 256, parts, plan.result(1), c_int(1024))


def vector(plan, n, *ways):
    matrix = plan.put(numbers(n, n, seed=10))
    for way, seed in zip(ways, (11, 22)):
        items = n if way == "tmv" else 256 * n
        plan.launch(way, items, matrix, plan.put(numbers(n, seed=seed)), plan.result(n), c_int(n))


def dct(plan):
    plan.launch("dct8x8", ((1 << 21) // 8, 8), plan.put(numbers(1 << 21, seed=12)), plan.result(1 << 21), group=(8, 8))


def fdtd(plan):
    n = 2048
    ex, ey = (plan.changed(numbers(n, n, seed=seed)) for seed in (13, 14))
    hz = plan.result(n, n)
    plan.starts.append((hz, numbers(n, n, seed=15)))
    for step in range(20):
        plan.launch("electric", (n, n), ex, ey, hz, c_float(step), group=(64, 4))
        plan.launch("magnetic", (n, n), ex, ey, hz, group=(64, 4))


def mri_q(plan):
    plan.launch("mri_q", 32768, plan.put(numbers(4, 2048, seed=16)), plan.put(numbers(3, 32768, seed=17)), plan.result(2, 32768), c_int(2048), group=128)


def mri_fhd(plan):
    samples, voxels, phi, data = (plan.put(numbers(*shape, seed=seed)) for shape, seed in (((3, 2048), 16), ((3, 32768), 17), ((2, 2048), 23), ((2, 2048), 24)))
    plan.launch("mri_fhd", 32768, samples, voxels, phi, data, plan.result(2, 32768), c_int(2048), group=128)


def mosaic(plan):
    image, library = (plan.put((256 * numbers(1024, 256, seed=seed)).astype(np.int32)) for seed in (18, 19))
    distance = plan.put(np.empty((1024, 1024), np.int32))
    plan.launch("apart", (1024, 1024), image, library, distance, group=SQUARE)
    plan.launch("nearest", 1024, distance, plan.result(1024, dtype=np.int64), c_int(1024), group=64)


def crypt(plan):
    n = 375000
    text = plan.put((65536 * numbers(4, n, seed=20)).astype(np.uint32))
    key = plan.put((65535 * harness.pseudo(52, 21, np.float64)).astype(np.uint32) + np.uint32(1))
    plan.launch("crypt", -(-n // 256) * 256, text, key, plan.result(4, n, dtype=np.uint32), c_int(n))


def series(plan, dtype):
    points = np.arange(1000) * (2.0 / 999)
    height = plan.put((points.astype(dtype) + 1) ** points.astype(dtype))
    plan.launch(f"series_f{8 * np.dtype(dtype).itemsize}", 10240, height, plan.result(2, 10000, dtype=dtype), c_int(10000), c_int(1000))


def rpes(plan):
    scales = [(0.5, 2), (0, np.float32(1) / 9), (0, 4), (0, 4), (0, 4)]
    sides = [plan.put(np.float32(least) + np.float32(scale) * numbers(1024 * 9, seed=70 + part)) for part, (least, scale) in enumerate(scales)]
    plan.launch("rpes", (1024, 1024), *sides, plan.result(1024, 1024), group=SQUARE)


SQUARES = {"nbody": (128, 256, 512, 768), "black_scholes": (1024, 2048, 4096)}
SIDES = {"coulomb": (128, 256, 512), "mandelbrot": (1024, 2048, 4096), "matmul": (1024, 4096), "transpose": (4096, 2048)}
SIZED = {"nbody": nbody, "black_scholes": black_scholes, "coulomb": coulomb, "mandelbrot": mandelbrot, "matmul": matmul, "transpose": transpose}
PROGRAMS = {
    **{f"{name}_{side}": lambda plan, name=name, side=side: SIZED[name](plan, side) for name, sides in SIDES.items() for side in sides},
    **{f"{name}_{side}x{side}": lambda plan, name=name, side=side: SIZED[name](plan, side * side) for name, sides in SQUARES.items() for side in sides},
    "nbody_4096": lambda plan: nbody(plan, 4096), "nbody_4096_f64": lambda plan: nbody(plan, 4096, np.float64),
    "stencil_5_point": stencil, "reduce": reduce, "mvm_15m": lambda plan: vector(plan, 3924, "mv"), "dct8x8": dct,
    "mv_8192": lambda plan: vector(plan, 8192, "mv"), "tmv_8192": lambda plan: vector(plan, 8192, "tmv"),
    "mvt_8192": lambda plan: vector(plan, 8192, "mv", "tmv"), "fdtd_2d": fdtd, "mri_q": mri_q, "mri_fhd": mri_fhd, "mosaic": mosaic,
    "crypt": crypt, "series_f32": lambda plan: series(plan, np.float32), "series_f64": lambda plan: series(plan, np.float64), "rpes": rpes,
}  # fmt: skip

# n, and the products: of two matrices, of the matrix or of its transpose with a vector.
LIBRARY = {
    "matmul_1024": (1024, ["mm"]), "matmul_4096": (4096, ["mm"]), "mvm_15m": (3924, ["mv"]),
    "mv_8192": (8192, ["mv"]), "tmv_8192": (8192, ["tmv"]), "mvt_8192": (8192, ["mv", "tmv"]),
}  # fmt: skip


def hand_written(device, name, runs):
    """The fastest of some runs and the fastest of their kernels, in seconds, and the checksum."""
    plan = Plan(device)
    try:
        PROGRAMS[name](plan)
        plan.run()
        device.kernel_seconds()
        times = [(plan.run(), device.kernel_seconds()) for _ in range(runs)]
        return *map(min, zip(*times)), sum(harness.checksum(data) for _, data in plan.results)
    finally:
        plan.close()


def vendor(name, runs):
    """The fastest of some runs of the vendor's library with the result read back, and of its kernels; None where it has none."""
    try:
        import torch
    except ImportError:
        return None, None
    if name not in LIBRARY or not torch.cuda.is_available():
        return None, None
    n, products = LIBRARY[name]
    a, b = (torch.from_numpy(numbers(n, n, seed=seed)).cuda() for seed in (1, 2))
    x, z = (torch.from_numpy(numbers(n, seed=seed)).cuda() for seed in (11, 22))
    factors = [(a.T if product == "tmv" else a, b if product == "mm" else vector) for product, vector in zip(products, (x, z))]
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def run():
        torch.cuda.synchronize()
        begin = time.perf_counter()
        start.record()
        results = [left @ right for left, right in factors]
        end.record()
        for result in results:
            result.cpu()
        return time.perf_counter() - begin, start.elapsed_time(end) / 1e3

    run()
    return map(min, zip(*(run() for _ in range(runs))))


def on_the_host(name):
    """Seconds of a run of the NumPy version, or for bodies beyond its memory of the C version; None where there is neither."""
    kind, _, side = name.rpartition("_")
    if kind not in numpy_version.PROGRAMS or name == "nbody_4096":
        return None, None
    side = int(side.split("x")[0])
    program, held = numpy_version.PROGRAMS[kind]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    inputs = {}

    def kept(*shape, seed):
        return inputs.setdefault((shape, seed), numbers(*shape, seed=seed))

    if held(side) > numpy_version.SHARE_OF_MEMORY * memory:
        return None, forces_in_c(side * side) if kind == "nbody" else None
    program(kept, side)
    begin = time.perf_counter()
    program(kept, side)
    return time.perf_counter() - begin, forces_in_c(side * side) if kind == "nbody" else None


def forces_in_c(n):
    """Seconds of the forces among n bodies in C with OpenMP on all cores."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "forces.so"
        words = ["-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC", "-lm"]
        subprocess.run(["gcc", *words, "-o", str(library), str(collection.HERE / "gpu_papers" / "forces.c")], check=True)
        forces = ctypes.CDLL(str(library)).forces
    mass, place, force = numbers(n, seed=4), numbers(3, n, seed=5), np.zeros((3, n), np.float32)
    begin = time.perf_counter()
    forces(ctypes.c_long(n), *(ctypes.c_void_p(data.ctypes.data) for data in (mass, place, force)))
    return time.perf_counter() - begin


def of_bh(name, runs, args, **more):
    """The line of a program on bh, in a process without anything kept."""
    counters = [counter.replace("DRIVER", args.driver) for group in PHASES.values() for counter in group]
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, **fresh.environment(args.device, empty, counters, args.driver), "LD_LIBRARY_PATH": collection.environment_of(None)["LD_LIBRARY_PATH"], **more}
        words = [str(collection.DEFAULT_BUILD / "gpu_papers" / "bh"), str(runs), name]
        run = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=args.limit)
    if run.returncode:
        raise RuntimeError(run.stderr.strip()[-500:])
    return json.loads(run.stdout)


def row(device, name, args):
    """The figures of one program, in seconds."""
    seconds, hand_kernels, sums = hand_written(device, name, args.runs)
    line = of_bh(name, args.runs + 1, args)
    first, last = (
        {phase: sum(counted[counter.replace("DRIVER", args.driver)] for counter in group) / 1e9 for phase, group in PHASES.items()}
        for counted in line["counters"]
    )
    library, library_kernels = vendor(name, args.runs)
    found = {"program": name, "papers": line["papers"], "by_hand": seconds, "by_hand_kernels": hand_kernels}
    found |= {"vendor": library, "vendor_kernels": library_kernels, "bh": line["later"], "kernels": last["kernels"]}
    sums = [sums]
    if args.host and "J" in line["papers"]:
        cores = of_bh(name, 2, args, BH_STACK="cpu")
        found |= {"cores": cores["later"], **dict(zip(("numpy", "c"), on_the_host(name)))}
        sums.append(cores["checksum"])
    found |= {"first": line["first"], "phases": first}
    shown = "  ".join(f"{1e3 * (found.get(column) or math.nan):9.3f}" for column in COLUMNS)
    agree = all(math.isclose(value, line["checksum"], rel_tol=TOLERANCE) for value in sums)
    print(f"{name:24} {shown}  {'  '.join(f'{1e3 * value:9.3f}' for value in first.values())}", "" if agree else f"  DIFFER: {sums} and {line['checksum']}", flush=True)
    return found, agree


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--device", choices=list(KINDS), default="gpu")
    parser.add_argument("--driver", choices=["opencl", "cuda"], default="opencl", help="of bh")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a run is given up")
    parser.add_argument("--prebuilt", action="store_true")
    parser.add_argument("--host", action="store_true", help="the sizes of Jit4OpenCL on the processor as well: bh, NumPy, C")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if unknown := set(args.names) - set(PROGRAMS):
        parser.error(f"no program {unknown.pop()!r}; there are {', '.join(PROGRAMS)}")
    if "BH_PREFIX" not in os.environ:
        parser.error("BH_PREFIX is not set")
    fresh.enable_driver()
    collection.build_bh("gpu_papers", os.environ["BH_PREFIX"], prebuilt=args.prebuilt)
    source = (collection.HERE / "gpu_papers" / "by_hand.cl").read_text()
    device = opencl.Device(source, KINDS[args.device], timed=True)
    print(f"{'ms':24} {'  '.join(f'{title[-9:]:>9}' for title in (*COLUMNS, *PHASES))}", flush=True)
    rows, good = [], True
    for name in args.names or PROGRAMS:
        found, agree = row(device, name, args)
        rows.append(found)
        good &= agree
        if args.json:
            args.json.write_text(json.dumps({"device": device.name(), "driver": args.driver, "programs": rows}, indent=1) + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
