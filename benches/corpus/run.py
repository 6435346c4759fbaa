#!/usr/bin/env python3
"""Runs the corpus, programs in plain NumPy from many fields, on NumPy, bh, Numba and JAX, and says where bh is not the fastest.

    PYTHONPATH=PACKAGE benches/corpus/run.py [NAME...] [--rivals numpy,bh,numba,jax] [--sizes small,large] [--table FILE]

NAME is a subject, a program, or SUBJECT/PROGRAM. PACKAGE has the Python package `bh`. Each program runs in processes of its own: the
first call, and the median of later ones. Results are compared with NumPy's. A program that raises, differs or takes too long is a
defect, and the exit status is 1.
"""

import argparse
import compileall
import importlib.util
import json
import os
import pickle
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import programs
import table
import why

# The module that each form of a program needs.
NEEDS = {"numpy": "numpy", "bh": "bh", "numba": "numba", "jax": "jax"}


def environment(form, args):
    """The settings of a process: its threads, and no warnings for what bh leaves to NumPy."""
    threads = str(args.threads)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "BH_VE_CPU_THREADS")
    settings = dict(os.environ, BH_FALLBACK="silent", PYTHONDONTWRITEBYTECODE="1", **dict.fromkeys(names, threads))
    if form == "jax":
        # All run on the processor.
        settings["JAX_PLATFORMS"] = "cpu"
        settings["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'true' if args.threads > 1 else 'false'} intra_op_parallelism_threads={threads}"
    return settings


def compile_modules(form):
    """Compiles the modules of a form's package to bytecode, as installers do, so that no first call compiles those that it imports."""
    for folder in importlib.util.find_spec(NEEDS[form]).submodule_search_locations:
        compileall.compile_dir(folder, quiet=2)


def process(name, form, size, args, *words, **more):
    """The line of one process, or an error as text."""
    command = [sys.executable, str(HERE / "work.py"), name, form, size, *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment(form, args) | more, timeout=args.limit)
    except subprocess.TimeoutExpired:
        return f"no end within {args.limit} seconds"
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return (done.stderr.strip().splitlines() or [f"ended with {done.returncode} and no result"])[-1]


def forms(name, args):
    """The forms of a program that can run here."""
    return [form for form in args.rivals if programs.path(name, form).exists() and importlib.util.find_spec(NEEDS[form])]


class Measured:
    """The times of one program in one size, by call and form, and the defects."""

    def __init__(self, name, size, args):
        self.times, self.errors = {call: {} for call in table.CALLS}, {}
        self.clock = " processor" if args.clock == "processor" else ""
        taken = {form: [] for form in forms(name, args)}
        with tempfile.TemporaryDirectory(prefix="corpus-") as folder:
            # Forms follow each other closely, as others may use the machine, too.
            for number in range(args.processes):
                for form in [form for form in taken if form not in self.errors]:
                    words = ["--results", f"{folder}/{form}"] if number == 0 else []
                    line = process(name, form, size, args, "--seconds", str(args.seconds), *words)
                    if isinstance(line, str):
                        self.errors[form] = line
                    else:
                        taken[form].append(line)
            self._compare(name, folder, taken)
        for form in taken:
            if form not in self.errors:
                for call in table.CALLS:
                    self.times[call][form] = statistics.median(line[call + self.clock] for line in taken[form])

    def _compare(self, name, folder, taken):
        if "numpy" not in taken or "numpy" in self.errors:
            return
        reference = pickle.loads(Path(folder, "numpy").read_bytes())
        tolerance = programs.Program(name, "numpy").tolerance
        for form in taken:
            if form not in self.errors and (text := programs.difference(pickle.loads(Path(folder, form).read_bytes()), reference, tolerance)):
                self.errors[form] = f"DIFFERS from NumPy: {text}"


def cause(name, size, call, args):
    """Where bh's time goes: the largest part, and all parts as text."""
    with tempfile.TemporaryDirectory(prefix="corpus-") as folder:
        trace = f"{folder}/trace.json"
        words = ["--lines", call, "--calls", "0" if call == "first" else "3", "--seconds", "0"]
        line, reference = process(name, "bh", size, args, *words, BH_TRACE=trace), process(name, "numpy", size, args, *words)
        if isinstance(line, str) or isinstance(reference, str) or not Path(trace).exists():
            return "unknown", f"unknown: {line if isinstance(line, str) else reference}"
        shares = why.Shares(programs.Program(name, "numpy"), line, reference, trace)
        return shares.kind, str(shares)


def setting(args):
    """The machine, the commit, the threads and the clock, as a sentence."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())
    commit = subprocess.run(["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip() or "unknown"
    versions = []
    for form in args.rivals:
        if form != "bh" and importlib.util.find_spec(NEEDS[form]):
            versions.append(f"{table.TITLES[form]} {importlib.import_module(NEEDS[form]).__version__}")
    clock = "processor time of all threads" if args.clock == "processor" else "wall-clock time"
    return (
        f"Measured on {model} ({os.cpu_count()} cores) with {args.threads} thread{'s' if args.threads > 1 else ''}, commit {commit}, Python "
        f"{platform.python_version()}, {', '.join(versions)}; {clock}, {f'medians of {args.processes} processes' if args.processes > 1 else 'one process each'}."
        + (f" {args.note}" if args.note else "")
    )


def show(name, size, result):
    """Prints a program's line."""
    cells = []
    for call in table.CALLS:
        cells += [f"{table.TITLES[form]} {1e3 * taken:9.3f}" for form, taken in result.times[call].items()] + ["|"]
    print(f"{name:34} {size:5} {' '.join(cells[:-1])}", *(f"\n    {form}: {text}" for form, text in result.errors.items()), flush=True)


def listed(text, known):
    """The words of an option, all of them known."""
    words = text.split(",")
    if unknown := [word for word in words if word not in known]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(known)}")
    return words


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="subjects or programs; all if none is given")
    parser.add_argument("--rivals", type=lambda text: listed(text, tuple(programs.FORMS)), default=list(programs.FORMS), help="the forms to run")
    parser.add_argument("--sizes", type=lambda text: listed(text, programs.SIZES), default=list(programs.SIZES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processes", type=int, default=3, help="processes of each program, of which medians are taken")
    parser.add_argument("--seconds", type=float, default=0.5, help="how long each process repeats later calls")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a process is killed")
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall", help="processor: for machines that others use, too")
    parser.add_argument("--table", metavar="FILE", help="write the page there")
    parser.add_argument("--note", metavar="TEXT", help="a further sentence of the page, about the machine or the build")
    parser.add_argument("--json", metavar="FILE", help="write all times there, brought up to date after each program")
    parser.add_argument("--resume", action="store_true", help="go on with what the JSON file has")
    args = parser.parse_args()
    if args.resume and not args.json:
        parser.error("--resume needs --json")
    return args


class Kept:
    """The measured times, and the JSON file that is brought up to date with them."""

    def __init__(self, args):
        self.args = args
        old = json.loads(Path(args.json).read_text()) if args.resume and Path(args.json).exists() else {}
        self.measured = old.get("measured", {})
        self.defects = [tuple(row) for row in old.get("defects", [])]
        self.causes = {tuple(key): tuple(value) for key, value in old.get("causes", [])}

    def save(self):
        if self.args.json:
            rows = {"setting": setting(self.args), "measured": self.measured, "defects": self.defects, "causes": list(self.causes.items())}
            Path(self.args.json).write_text(json.dumps(rows, indent=1))

    def measure(self, name):
        """Measures a program, unless it is there."""
        if name in self.measured:
            return
        sizes = {}
        for size in self.args.sizes:
            result = Measured(name, size, self.args)
            show(name, size, result)
            sizes[size] = result.times
            self.defects += [(name, size, form, text) for form, text in result.errors.items()]
        self.measured[name] = sizes
        self.save()

    def explain(self):
        """Finds out where bh's time goes in all calls in which it is not the fastest."""
        rows = table.slower(self.measured)
        ran = any("bh" in kinds[call] for sizes in self.measured.values() for kinds in sizes.values() for call in table.CALLS)
        print("\nbh is not the fastest in:" if rows else "\nbh is the fastest everywhere." if ran else "\nThere are no times of bh.")
        for loss, name, size, call, form in rows:
            if (name, size, call) not in self.causes:
                self.causes[name, size, call] = cause(name, size, call, self.args)
                self.save()
            print(f"{loss:7.2f} times {table.TITLES[form]}: {name}, {size}, {call}: {self.causes[name, size, call][1]}", flush=True)


def main():
    args = arguments()
    if lacking := [table.TITLES[form] for form in args.rivals if not importlib.util.find_spec(NEEDS[form])]:
        print(f"not installed: {', '.join(lacking)}")
    if "bh" in args.rivals and importlib.util.find_spec(NEEDS["bh"]):
        compile_modules("bh")
    kept = Kept(args)
    for name in programs.chosen(args.names):
        kept.measure(name)
    kept.explain()
    print("", *table.summary(kept.measured, args.sizes), sep="\n")
    if args.table:
        Path(args.table).write_text(table.page(kept.measured, kept.causes, kept.defects, args.sizes, setting(args)))
    if kept.defects:
        print("\nFAILED:", *(f"{name}, {size}, {table.TITLES[form]}: {text}" for name, size, form, text in kept.defects), sep="\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
