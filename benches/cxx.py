#!/usr/bin/env python3
"""Programs in C++ on bh beside the same on other libraries for arrays in C++: Blitz++ and Armadillo, and the hand-written twin.

    BH_PREFIX=DIR benches/cxx.py [--size small|middle|full] [--dtype f64|f32] [--runs N] [--include DIR] [--json FILE] [NAME...]

Milliseconds of processor time on one thread, as the other libraries have no more: medians of runs in turn, which tell also where
others use the machine. A library that is not there is left out (Debian: `libblitz0-dev`, `libarmadillo-dev`; `--include` names
a further folder with headers). Armadillo is used without BLAS, which these programs do not need. Results must agree.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import collection

LIBRARIES = {"blitz": "blitz/array.h", "armadillo": "armadillo"}
FLAGS = ["-std=c++17", "-O3", "-march=native", "-DNDEBUG", "-DARMA_DONT_USE_WRAPPER", "-DARMA_DONT_USE_BLAS", "-DARMA_DONT_USE_LAPACK", "-DARMA_NO_DEBUG", "-w"]
ONE_THREAD = {"BH_VE_CPU_JIT": "on", "OMP_NUM_THREADS": "1", "BH_VE_CPU_THREADS": "1"}


def there(library, include):
    """Whether the headers of a library are found."""
    words = ["g++", "-fsyntax-only", "-x", "c++", *[f"-I{folder}" for folder in include], "-include", LIBRARIES[library], "/dev/null"]
    return subprocess.run(words, capture_output=True).returncode == 0


def build(name, library, include):
    """The binary of a form, compiled if it is older than its source."""
    source, binary = collection.HERE / name / f"{library}.cpp", collection.DEFAULT_BUILD / name / library
    inputs = [source, *(collection.HERE / "common").glob("*.h*")]
    if not binary.exists() or binary.stat().st_mtime < max(path.stat().st_mtime for path in inputs):
        binary.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["g++", *FLAGS, *[f"-isystem{folder}" for folder in include], source, "-o", binary], check=True)
    return binary


def compare(program, n, iters, args, libraries):
    """The medians of one program in seconds by form, and whether all agree."""
    name, prefix = program["name"], os.environ["BH_PREFIX"]
    binaries = {"bh": collection.build_bh(name, prefix), "twin": collection.build_twin(name)}
    binaries |= {library: build(name, library, args.include) for library in libraries}
    seconds, sums = {form: [] for form in binaries}, {}
    for _ in range(args.runs):
        for form, binary in binaries.items():
            line = collection.run_once([binary], n, iters, args.dtype, environment=ONE_THREAD, limit=args.limit)
            seconds[form].append(line["processor"])
            sums[form] = line["checksum"]
    wrong = [form for form in sums if not collection.agree(sums[form], sums["twin"], program["tolerance"][args.dtype])]
    times = {form: statistics.median(values) for form, values in seconds.items()}
    shown = "  ".join(f"{form} {1e3 * value:9.2f}" for form, value in times.items())
    print(f"{name:20} n={n:<9} iters={iters:<3} {args.dtype}  {shown}  {f'DISAGREE {wrong}' if wrong else 'agree'}", flush=True)
    return times, not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--size", choices=["small", "middle", "full"], default="middle")
    parser.add_argument("--dtype", choices=["f64", "f32"], default="f64")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a run is given up")
    parser.add_argument("--include", action="append", default=[], help="a further folder with headers")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if "BH_PREFIX" not in os.environ:
        parser.error("BH_PREFIX is not set")
    libraries = [library for library in LIBRARIES if there(library, args.include)]
    rows, good = [], True
    for program in collection.chosen(parser, args.names):
        if all((collection.HERE / program["name"] / f"{library}.cpp").exists() for library in LIBRARIES):
            n, iters = collection.extent(program, args.size)
            times, agree = compare(program, n, iters, args, libraries)
            good &= agree
            rows.append({"program": program["name"], "n": n, "iters": iters, "dtype": args.dtype, "seconds": times})
    if args.json:
        args.json.write_text(json.dumps({"programs": rows}, indent=1) + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
