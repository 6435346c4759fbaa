#!/usr/bin/env python3
"""Tests and measures the engines of devices on a machine that has a GPU, its driver and Python, but no cargo.

    cargo xtask stage                                       # where bh is built
    benches/device.py [PART...] [--driver cuda] [--out DIR] [--only NAME]   # on the machine, in the repository with the folder .stage

Parts, all without a name: `info` what the device is and what the runtime reaches; `suites` conformance and random programs
on the device; `agree` the benchmark programs, small, against the CPU engine; `bench` milliseconds of a step for each
variant of the kernels; `kernels` copies, sums and products beside the runtime's copy; `first` first calls with empty and with filled caches; `papers`
the programs of the papers on GPU compilers, cold and warm, beside the CPU engine; `placements` what each way of reading
memory less often gives the programs of one of them; `profile` where the time goes, by device times.
Figures go to DIR/device.json, kernels' texts to DIR/kernels, profiles to DIR/profile.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STAGE = ROOT / ".stage"
sys.path.insert(0, str(ROOT / "benches/common"))
import fresh

# Program, n, type, steps, milliseconds of a step that the traffic alone takes on a card that copies 4267 GB/s (None: bound
# by computing), and those of plain kernels written by hand.
TABLE = [
    ("heat_equation", 8192, "f64", 100, 0.25, 0.32),
    ("black_scholes", 33554432, "f64", 250, None, 0.40),
    ("black_scholes", 33554432, "f32", 250, None, None),
    ("shallow_water", 4096, "f64", 50, 0.19, None),
    ("stencil_27_point", 384, "f64", 50, 0.21, 0.49),
    ("nbody", 8192, "f64", 50, None, 0.21),
    ("nbody", 16384, "f32", 50, None, None),
    ("leibnitz_pi", 200000000, "f64", 100, None, None),
    ("rosenbrock", 200000000, "f64", 400, 0.38, None),
    ("game_of_life", 8192, "f64", 100, 0.25, None),
    ("small_ops", 1000, "f64", 5000, None, None),
]
MORE = ["gauss", "lu", "montecarlo_pi", "sor", "nbody_nice", "lattice_boltzmann_d3q19", "water_ice", "row_norms", "stencil_4d"]
VARIANTS = {"auto": {}, "dynamic": {"BH_OPENCL_SPECIALISE": "off"}, "fixed": {"BH_OPENCL_SPECIALISE": "on"}}
# The programs of the comparison of dynamic, fixed and selected kernels.
SELECTED = [
    ("stencil_1d", 60000000, "f64", 20, None, None),
    ("stencil_2d", 8000, "f64", 20, None, None),
    ("stencil_3d", 400, "f64", 20, None, None),
    ("stencil_4d", 80, "f64", 10, None, None),
    ("gauss", 1000, "f64", 2, None, None),
    ("lu", 1000, "f64", 2, None, None),
]
PARTS = ["info", "suites", "agree", "bench", "kernels", "variants", "first", "papers", "placements", "profile"]


def programs():
    """All programs that are staged."""
    return sorted({row[0] for row in TABLE + SELECTED} | set(MORE))


def environment(**more):
    """The environment of all that runs: the staged installation, kernels kept in a folder of their own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BH_")}
    own = {"BH_STACK": DRIVER, "BH_OPENCL_CACHE_DIR": str(CACHE), **more}
    # All drivers have the same keys.
    own = {name.replace("BH_OPENCL_", f"BH_{DRIVER.upper()}_"): value for name, value in own.items()}
    return {**kept, "LD_LIBRARY_PATH": f"{STAGE / 'lib'}:{kept.get('LD_LIBRARY_PATH', '')}", **own}


def step(program, n, dtype, steps, warm=True, limit=120, under=(), **more):
    """One run of a program, perhaps under another one: its line and standard error."""
    words = [*map(str, under), str(STAGE / "benches" / program), str(n), str(steps), dtype, *(["--warm"] if warm else [])]
    begin = time.perf_counter()
    try:
        run = subprocess.run(words, capture_output=True, text=True, env=environment(**more), timeout=limit)
    except subprocess.TimeoutExpired:
        return None, f"longer than {limit} s"
    if run.returncode:
        return None, run.stderr.strip()[-600:]
    return {**json.loads(run.stdout.splitlines()[-1]), "process_seconds": time.perf_counter() - begin}, run.stderr


def chosen(only, table=TABLE):
    """The rows of a table that are asked for."""
    return [row for row in table if not only or row[0] in only]


def info(out, figures, only):
    """The device, and what the runtime reaches without bh."""
    run = subprocess.run([STAGE / "bin/bh", "info"], env=environment(), capture_output=True, text=True)
    print(run.stdout + run.stderr, flush=True)
    import opencl

    figures["runtime"] = opencl.figures()
    print(" ".join(f"{name} {value:.1f}" for name, value in figures["runtime"].items()), flush=True)
    return run.returncode == 0


def suites(out, figures, only):
    """The suites on the device, with groups of few and of many items."""
    good = True
    for group in ("16", "256"):
        for name, program in (("suites", "bh-ve-opencl"), ("engine", "bh-ve-opencl"), ("opencl", "bh-tests")):
            more = {"BH_TEST_ROOT": str(ROOT), "BH_TEST_LIBRARIES": str(STAGE / "lib/bh"), "BH_TEST_DEVICE": "gpu"}
            env = environment(BH_TEST_GROUP=group, BH_TEST_DRIVER=DRIVER, **more)
            env.pop("BH_STACK"), env.pop(f"BH_{DRIVER.upper()}_CACHE_DIR")
            run = subprocess.run([STAGE / "tests" / program, f"{name}::"], env=env, cwd=out, capture_output=True, text=True)
            text = run.stdout + run.stderr
            (out / f"suite-{name}-{group}.txt").write_text(text)
            good &= run.returncode == 0
            told = [line for line in text.splitlines() if line.startswith(("test ", "left out")) or "kernels" in line or "panicked" in line]
            print(f"-- {name}, groups of {group}: {'passed' if run.returncode == 0 else 'FAILED'}", *told, sep="\n   ", flush=True)
            if run.returncode:
                print(text[-3000:], flush=True)
    return good


def agree(out, figures, only):
    """Checksums of the small sizes against the CPU engine's."""
    import collection

    good = True
    for name in programs():
        if only and name not in only:
            continue
        program = collection.PROGRAMS[name]
        n, steps = program["small"]
        for dtype in ("f64", "f32"):
            forced = {"BH_OPENCL_PLACEMENT": "device"}
            device, why = step(name, n, dtype, steps, False, **forced)
            host, _ = step(name, n, dtype, steps, False, BH_STACK="cpu")
            same = bool(device and host) and collection.agree(device["checksum"], host["checksum"], program["tolerance"][dtype])
            good &= same
            note = "" if same else f": {device and device['checksum']} is not {host and host['checksum']} {'' if device else repr(why)}"
            print(f"{name:24} {dtype} {'agrees' if same else 'DIFFERS'}{note}", flush=True)
    return good


def bench(out, figures, only):
    """Milliseconds of a step for each variant, without what the first one moves to the device: the difference of runs of
    many and of few steps, each the best of two processes."""
    return compare("bench", chosen(only), figures)


def variants(out, figures, only):
    """The same for the programs of the comparison of variants."""
    return compare("variants", chosen(only, SELECTED), figures)


def compare(part, table, figures):
    """Times the programs of a table in each variant."""
    rows = figures.setdefault(part, [])
    copy = figures.get("runtime", {}).get("copy_gb_s")
    print(f"copy {copy and f'{copy:.0f}'} GB/s; ms a step", flush=True)
    print(f"{'program':20} {'n':>10} type {'floor':>7} {'by hand':>7} " + " ".join(f"{name:>9}" for name in VARIANTS) + "  kernels/step", flush=True)
    for name, n, dtype, steps, floor, plain in table:
        row = {"program": name, "n": n, "dtype": dtype, "floor": floor, "plain": plain}
        failures, kernels = [], None
        for variant, keys in VARIANTS.items():
            few, times = max(1, steps // 10), {}
            for count in [few, steps, few, steps]:
                line, why = step(name, n, dtype, count, **keys)
                if line is None:
                    failures.append(f"{variant}: {why!r}")
                    break
                times[count] = min(times.get(count, math.inf), 1e3 * line["seconds"])
                kernels = line["kernels"] / count
            row[variant] = (times[steps] - times[few]) / (steps - few) if not failures else None
        rows.append(row)
        shown = [f"{value:9.4f}" if value else f"{'-':>9}" for value in (row[variant] for variant in VARIANTS)]
        known = [f"{value:7.2f}" if value else f"{'-':>7}" for value in (floor, plain)]
        print(f"{name:20} {n:10} {dtype}  {' '.join(known)} {' '.join(shown)}  {kernels}", flush=True)
        for failure in failures:
            print("   ", failure, flush=True)
    return all(row[variant] for row in rows for variant in VARIANTS)


def kernels(out, figures, only):
    """Single kernels: bandwidths of copies, sums and products with vectors, speed of products."""
    run = subprocess.run([STAGE / "benches/device", "1000", "4096"], env=environment(), capture_output=True, text=True, timeout=300)
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    figures["kernels"] = rows
    copy = figures.get("runtime", {}).get("copy_gb_s")
    for row in rows:
        unit, value = next((unit, value) for unit, value in row.items() if unit not in ("kernel", "seconds"))
        share = f", {value / copy:.0%} of the copy" if unit == "GB/s" and copy else ""
        print(f"{row['kernel']:32} {1e3 * row['seconds']:10.4f} ms {value:10.1f} {unit}{share}", flush=True)
    print(run.stderr, flush=True)
    return run.returncode == 0


def first(out, figures, only):
    """The first step in a new process: with nothing kept, and with what that has left."""
    rows = figures.setdefault("first", [])
    for name, n, dtype, *_ in chosen(only):
        with tempfile.TemporaryDirectory() as empty:
            keys = {"BH_OPENCL_CACHE_DIR": empty, "CUDA_CACHE_DISABLE": "1"}
            lines = [step(name, n, dtype, 1, False, **keys)[0] for _ in range(2)]
        if all(lines):
            cold, warm = (1e3 * line["seconds"] for line in lines)
            rows.append({"program": name, "dtype": dtype, "cold_ms": cold, "warm_ms": warm})
            print(f"{name:20} {dtype} first step: empty caches {cold:8.1f} ms, filled {warm:8.1f} ms, beyond {cold - warm:8.1f}", flush=True)
    return True


def collection(runs, *names, limit=300, **more):
    """Lines of `gpu_papers` by program."""
    words = [str(STAGE / "benches/gpu_papers"), str(runs), *names]
    run = subprocess.run(words, capture_output=True, text=True, env=environment(**more), timeout=limit)
    if run.returncode:
        print(run.stderr.strip()[-600:], flush=True)
    return {line["program"]: line for line in map(json.loads, run.stdout.splitlines())}


def papers(out, figures, only):
    """First runs with empty and with filled caches, later ones, and later ones of the CPU engine; until the result is in
    host memory."""
    names = only or []
    with tempfile.TemporaryDirectory() as empty:
        keys = {"BH_OPENCL_CACHE_DIR": empty, "CUDA_CACHE_DISABLE": "1"}
        cold, warm = (collection(runs, *names, **keys) for runs in (1, 5))
    host = collection(2, *names, BH_STACK="cpu")
    rows = figures.setdefault("papers", [])
    good = bool(warm)
    print(f"{'program':24} papers  cold ms  first ms  later ms  CPU engine ms", flush=True)
    for name, line in warm.items():
        same = math.isclose(line["checksum"], host[name]["checksum"], rel_tol=1e-4)
        good &= same
        times = [cold[name]["first"], line["first"], line["later"], host[name]["later"]]
        rows.append({"program": name, "papers": line["papers"], **dict(zip(("cold", "first", "later", "host"), times))})
        print(f"{name:24} {line['papers']:6} {' '.join(f'{1e3 * one:9.3f}' for one in times)}{'' if same else '  DIFFERS'}", flush=True)
    return good


# The programs of the paper that measures placements one by one.
PLACED = ["nbody_4096", "nbody_4096_f64", "mosaic", "coulomb_512", "mri_q", "crypt", "series_f32", "series_f64", "transpose_4096"]
PLACEMENTS = ["none", "private", "local", "local,padding", "unroll", "vector", "auto", "all"]


def placements(out, figures, only):
    """Milliseconds of later runs with each placement alone, without any, and with what is chosen by pattern."""
    names = [name for name in PLACED if not only or name in only]
    table = {}
    for choice in PLACEMENTS:
        keys = {"BH_OPENCL_PLACEMENTS": choice, "BH_OPENCL_TUNE": "off"}
        table[choice] = collection(8, *names, **keys)
    figures["placements"] = {choice: {name: line["later"] for name, line in lines.items()} for choice, lines in table.items()}
    print(f"{'program':20} " + " ".join(f"{choice:>13}" for choice in PLACEMENTS), flush=True)
    for name in names:
        print(f"{name:20} " + " ".join(f"{1e3 * table[choice][name]['later']:13.3f}" for choice in PLACEMENTS), flush=True)
    return all(len(lines) == len(names) for lines in table.values())


def profile(out, figures, only):
    """Kernels' texts and the profile of each program."""
    (out / "profile").mkdir(exist_ok=True)
    for name, n, dtype, steps, *_ in chosen(only):
        under = (STAGE / "bin/bh", "run", "--profile", "--")
        keys = {"BH_OPENCL_PROFILE": "true", "BH_OPENCL_DUMP": str(out / "kernels" / f"{name}-{dtype}")}
        with tempfile.TemporaryDirectory() as empty:
            line, text = step(name, n, dtype, steps, under=under, BH_OPENCL_CACHE_DIR=empty, **keys)
        (out / "profile" / f"{name}-{dtype}.txt").write_text(f"{line}\n{text}")
        told = [text for text in text.splitlines() if f"{DRIVER}." in text]
        print(f"-- {name} {dtype}, {steps} steps twice", *told, sep="\n   ", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--driver", choices=["opencl", "cuda"], default="opencl")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT") or "device-results"))
    parser.add_argument("--only", action="append", metavar="NAME", help="this program; may be repeated")
    parser.add_argument("--programs", action="store_true", help="print the names of the programs and leave")
    args = parser.parse_args()
    if args.programs:
        print(*programs(), "device", "gpu_papers")
        return 0
    if unknown := [part for part in args.parts if part not in PARTS]:
        parser.error(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    fresh.enable_driver()
    args.out = args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    global DRIVER
    DRIVER = args.driver
    figures, good = {"driver": DRIVER, "commit": (STAGE / "commit").read_text().strip()}, True
    for part in [part for part in PARTS if not args.parts or part in args.parts]:
        print(f"== {part}", flush=True)
        begin = time.perf_counter()
        try:
            good &= globals()[part](args.out, figures, args.only)
        except Exception as error:  # One part that cannot run says nothing of the next.
            print(f"{part}: {error}", flush=True)
            good = False
        print(f"== {part} took {time.perf_counter() - begin:.1f} s", flush=True)
        (args.out / "device.json").write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if good else 1


DRIVER = "opencl"
CACHE = Path(tempfile.mkdtemp(prefix="bh-device-"))

if __name__ == "__main__":
    try:
        sys.exit(main())
    finally:
        shutil.rmtree(CACHE, ignore_errors=True)
