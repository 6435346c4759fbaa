#!/usr/bin/env python3
"""Programs in functional style on NumPy, bh, JAX and CuPy in one run: values, first calls and later steps.

    benches/functional/run.py [NAME...] [--systems LIST] [--size little|large] [--runs N] [--json FILE]

Systems: `numpy`, `bh` (the stack `cpu`), `bh-cuda`, `bh-opencl`, `jax` (on the processor), `jax-gpu`, `cupy`; `bh` must be importable.
Each program runs in a process of its own for each system, with empty caches. `first` is the first step's time, arrays on the
device; `step` is the median of `--runs` measurements of as many steps as take some .2 s. JAX takes `jit` of a step and
`jax_default_matmul_precision = "highest"`. The figures are milliseconds; values are compared with NumPy's after three steps.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
SYSTEMS = ("numpy", "bh", "bh-cuda", "bh-opencl", "jax", "jax-gpu", "cupy")
CACHES = ("XDG_CACHE_HOME", "CUDA_CACHE_PATH", "CUPY_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR")
# The least duration of a measurement, in seconds, and the steps after which values are compared.
LEAST, STEPS = 0.2, 3


def prepared(system, program):
    """Functions that move a state to the system, run a step, and wait for a state."""
    if system.startswith("jax"):
        import jax

        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_default_matmul_precision", "highest")
        return jax.numpy.asarray, jax.jit(lambda *state: program.step(jax.numpy, *state)), jax.block_until_ready
    if system == "cupy":
        import cupy

        return cupy.asarray, lambda *state: program.step(cupy, *state), lambda _: cupy.cuda.Device().synchronize()
    if system == "numpy":
        import numpy

        return numpy.array, lambda *state: program.step(numpy, *state), lambda _: None
    import bh

    # A copy lies where the stack computes.
    return lambda array: bh.asarray(array) + bh.zeros((), array.dtype), lambda *state: program.step(bh, *state), lambda _: bh.flush()


def inside(system, name, size, runs, file):
    """A process's figures, and the values after some steps as a file."""
    import numpy
    from programs import PROGRAMS

    program = PROGRAMS[name]
    move, step, wait = prepared(system, program)
    first_state = program.start(numpy.random.default_rng(5), getattr(program, size))
    state = tuple(move(array) for array in first_state)
    wait(state)
    begin = time.perf_counter()
    new = step(*state)
    wait(new)
    found = {"first": (time.perf_counter() - begin) * 1e3, "step": []}
    for _ in range(STEPS - 1):
        new = step(*new)
    # Copies: a NumPy array over bh's memory would keep what a program passes on unchanged in host memory.
    numpy.savez(file, *(array.get() if system == "cupy" else numpy.array(array) for array in new))

    def several(count):
        new = state
        begin = time.perf_counter()
        for _ in range(count):
            new = step(*new)
        wait(new)
        return time.perf_counter() - begin

    count = 1
    for warm in range(6):
        took = several(count)
        if system.startswith("bh-") and warm < 3:
            from bh import _native

            _native.Stack().message("finish building")
        elif took < LEAST:
            count = min(1000, max(count + 1, int(count * 1.2 * LEAST / took)))
    found["step"] = [several(count) / count * 1e3 for _ in range(runs)]
    return found


def process(system, name, size, runs, file):
    """Runs `inside` in a process of its own with empty caches."""
    with tempfile.TemporaryDirectory(prefix="functional-") as caches:
        env = {**os.environ, **{key: f"{caches}/{key}" for key in CACHES}}
        for key in CACHES:
            os.makedirs(env[key], mode=0o700)
        env |= {"BH_STACK": {"bh": "cpu"}.get(system, system[3:])} if system.startswith("bh") else {}
        env |= {"JAX_PLATFORMS": "cpu"} if system == "jax" else {}
        words = [sys.executable, __file__, "--inside", system, name, size, str(runs), file]
        done = subprocess.run(words, capture_output=True, text=True, env=env)
    if done.returncode:
        return {"error": done.stderr.strip()[-300:]}
    return json.loads(done.stdout.splitlines()[-1])


def difference(file, other):
    """The largest difference of two files' arrays, by the largest element; none if they have other shapes."""
    import numpy

    with numpy.load(file) as one, numpy.load(other) as two:
        if [a.shape for a in one.values()] != [b.shape for b in two.values()]:
            return None
        return max(float(numpy.max(numpy.abs(one[k] - two[k])) / max(1e-300, numpy.max(numpy.abs(two[k])))) for k in one if one[k].dtype != bool)


def compare(name, systems, size, runs):
    """A program's figures on each system."""
    row = {"program": name, "size": size}
    with tempfile.TemporaryDirectory() as folder:
        files = {system: f"{folder}/{system}.npz" for system in systems}
        for system in systems:
            row[system] = process(system, name, size, runs, files[system])
            if "error" not in row[system]:
                row[system]["step"] = statistics.median(row[system]["step"])
                if os.path.exists(files[systems[0]]):
                    row[system]["difference"] = difference(files[system], files[systems[0]])
    return row


def mean(ratios):
    return statistics.geometric_mean(ratios) if ratios else None


def main():
    if sys.argv[1:2] == ["--inside"]:
        system, name, size, runs, file = sys.argv[2:]
        print(json.dumps(inside(system, name, size, int(runs), file)))
        return 0
    from programs import PROGRAMS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--systems", type=lambda text: text.split(","), default=["numpy", "bh", "jax"], help="some of " + ", ".join(SYSTEMS))
    parser.add_argument("--size", choices=("little", "large"), default="large")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = []
    for name in args.names or PROGRAMS:
        row = compare(name, args.systems, args.size, args.runs)
        rows.append(row)
        cells = []
        for system in args.systems:
            found = row[system]
            far = found.get("difference")
            cells.append(f"{system} {found['step']:.4g} (first {found['first']:.3g}, {'other shapes' if far is None else f'{far:.0e}'})" if "step" in found and "first" in found else f"{system} failed: {found.get('error')}")
        print(f"{name}: " + "; ".join(cells), flush=True)
        if args.json:
            args.json.write_text(json.dumps({"programs": rows}, indent=1) + "\n")
    own = [system for system in args.systems if system.startswith("bh")]
    for system in own:
        for rival in (rival for rival in args.systems if not rival.startswith("bh")):
            both = [row for row in rows if "step" in row[system] and "step" in row[rival] and row[rival]["step"]]
            ratios = {key: mean([row[rival][key] / row[system][key] for row in both]) for key in ("step", "first")}
            if both:
                print(f"{rival}'s time over {system}'s, geometric means of {len(both)}: step {ratios['step']:.2f}, first {ratios['first']:.2f}")
    wrong = [row["program"] for row in rows for system in own if (row[system].get("difference") or 0) > 1e-3 or "error" in row[system]]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
