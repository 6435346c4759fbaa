#!/usr/bin/env python3
"""The time that each optimisation saves, and its lines of code: programs as they are and with one optimisation switched off, in pairs.

    BH_PREFIX=DIR benches/ablation.py [NAME...] [--threads 1,16] [--compiler on,off] [--turns N] [--at A] [--off NAME]...
                                      [--also NAME:VARIABLE=VALUE[;VARIABLE=VALUE]]... [--workers N] [--prebuilt]
                                      [--json FILE] [--table FILE]
    benches/ablation.py --summary FILE... [--table FILE]

A figure is the time without the optimisation, in units of the time with it: the median of the pairs. Programs run at a size
between the catalog's `small` (`--at 0`) and `full` (`--at 1`). All forms of a program stay in memory and run in turns; those
of a group share the plain form's run of the same turn. `--workers` does several programs side by side, on a machine with
processors for all of them. `loops` are those of `loops/bh.cpp`; `python` are the programs of `common/recorded.py`, which need no
BH_PREFIX. `--check` runs two programs, or those that are named, at their smallest sizes and looks at the checksums alone.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import collection
import turns

# The filter's passes in their order; each has a switch.
PASSES = ["simplify", "collect", "reduction-chain", "matmul", "common", "copies", "pieces", "programs", "dead-code"]
# The variables that switch an optimisation off.
SWITCHES = {
    "windows": {"BH_VE_CPU_WINDOWS": "off"},
    "super-instructions": {"BH_VE_CPU_SUPERINSTRUCTIONS": "off"},
    "non-temporal": {"BH_VE_CPU_STREAM_BYTES": "none"},
    "divider": {"BH_VE_CPU_DIVIDER": "fast"},
    "direct planning": {"BH_VE_CPU_PLANNING": "full", "BH_FUSER_PLANNING": "full"},
    "immediate work": {"BH_RECORDER_IMMEDIATE_BYTES": "0"},
    "recipes": {"BH_RECORDER_RECIPES": "off"},
    "renames": {"BH_FUSER_RENAMES": "false"},
    "time tiles": {"BH_VE_CPU_TIME_TILES": "off"},
    "scalar programs": {"BH_RECORDER_PROGRAMS": "false"},
    **{f"pass {name}": {"BH_FILTER_PASSES": ",".join(other for other in PASSES if other != name)} for name in PASSES},
}
# The sources that an optimisation could go with, from the top of the repository.
SOURCES = {
    "windows": ["bh-kernel/src/window"],
    "super-instructions": ["bh-ve-cpu/src/block/superinstructions.rs", "bh-ve-cpu/src/block/sums.rs", *(f"bh-ve-cpu/vector/src/prims/{name}.rs" for name in ("fused", "sum", "quotient"))],
    "non-temporal": ["bh-ve-cpu/jit/src/non_temporal.rs"],
    "divider": ["bh-ve-cpu/jit/src/plan/divider.rs", "bh-ve-cpu/jit/src/division"],
    "direct planning": ["bh-ve-cpu/src/engine/machine/direct.rs", "bh-ve-cpu/src/engine/machine/held.rs"],
    "immediate work": ["bh-recorder/src/immediate", "bh-ve-cpu/src/engine/immediate.rs", "bh-ve-cpu/src/engine/index.rs"],
    "recipes": ["bh-recorder/src/batch/recipes"],
    "renames": ["bh-fuser/src/rename.rs"],
    "time tiles": ["bh-kernel/src/tiles"],
    "scalar programs": ["bh-scalar/src", "bh-ve-cpu/src/programs", "bh-ve-cpu/jit/src/program", "bh-bridge-numpy/python/bh/_jit/scalar/registers.py"],
    **{f"pass {name}": [f"bh-filter/src/passes/{name.replace('-', '_')}"] for name in PASSES},
}
# Programs of one group: the number that memory has room for at once.
GROUP = 12
LOOPS, PYTHON = "loops", "python"
# Elements of a side, and runs of each loop, the first of which does not count.
LOOP_SIZE, LOOP_RUNS = 300, 4
# The same for the programs of Python.
SIDE, RUNS = 2000, 5
# An optimisation is worth its code where it saves this much on this number of programs.
SAVES, PROGRAMS = 1.03, 2
CHECKED = ["heat_equation", "row_norms"]


def extra(text):
    """A switch of the command line."""
    name, _, settings = text.partition(":")
    return name, dict(setting.split("=", 1) for setting in settings.split(";"))


def lines_of(switch):
    """Lines of the sources of a switch, without tests; None for one of the command line, or if the sources are not here."""
    top, count = collection.HERE.parent, 0
    if switch not in SOURCES or not (top / "bh-kernel").exists():
        return None
    for name in SOURCES[switch]:
        file = next(path for path in (top / name, top / f"{name}.rs") if path.exists())
        files = [file] if file.is_file() else [path for path in file.rglob("*.rs") if "tests" not in (path.stem, path.parent.name)]
        count += sum(len(path.read_text().partition("#[cfg(test)]")[0].splitlines()) for path in files)
    return count


def size_of(program, at):
    """[n, iterations] of a program between its small and its full size."""
    (small, few), (full, many) = program["small"], program["full"]
    n = round(small * (full / small) ** at)
    return max(n // 2 * 2, small), few if at == 0 else many


class Measurer:
    """Runs programs with some switches."""

    def __init__(self, args, switches, scratch):
        self.args, self.switches, self.scratch = args, switches, scratch
        self.prefix = os.environ.get("BH_PREFIX")

    def environment(self, switch, compiler):
        """The environment of a form; each has compiled kernels of its own."""
        cache = self.scratch / switch.replace(" ", "-")
        own = {"BH_VE_CPU_JIT": compiler, "BH_VE_CPU_JIT_CACHE_DIR": str(cache)}
        return own | self.switches.get(switch, {})

    def groups(self):
        """The switches in groups, each of them after the plain form."""
        names = list(self.switches)
        return [["plain", *names[first : first + GROUP]] for first in range(0, len(names), GROUP)]

    def program(self, program, threads, compiler, group):
        """The pairs of some switches of a program: seconds with each, and of the plain form in the same turn."""
        binary = collection.build_bh(program["name"], self.prefix, prebuilt=self.args.prebuilt)
        n, iters = size_of(program, self.args.at)
        forms, pairs, sums = {}, {name: [] for name in group}, {}
        try:
            for name in group:
                own = {"threads": threads, "limit": self.args.limit, "environment": self.environment(name, compiler)}
                forms[name] = turns.Turns([binary], n, iters, self.args.dtype, **own)
            for turn in range(self.args.turns):
                for name in group[:: -1 if turn % 2 else 1]:
                    time.sleep(turns.REST)
                    line = forms[name].run()
                    pairs[name].append(line["seconds"])
                    sums[name] = line["checksum"]
        finally:
            for form in forms.values():
                form.close()
        tolerance = program["tolerance"][self.args.dtype]
        agree = {name: collection.agree(sums["plain"], sums[name], tolerance) for name in group}
        return self.rows(program["name"], threads, compiler, pairs, agree)

    def command(self, name):
        """The command of many programs that print a line each."""
        if name == PYTHON:
            return [sys.executable, str(collection.HERE / "common" / "recorded.py"), str(self.args.side), str(RUNS)]
        return [str(collection.build_bh(LOOPS, self.prefix, prebuilt=self.args.prebuilt)), str(self.args.loop_size), str(LOOP_RUNS)]

    def listed(self, program, threads, compiler, group):
        """The same for all programs of such a command."""
        command, times, sums, rows = self.command(program), {}, {}, []
        for _ in range(self.args.turns):
            for name in group:
                environment = dict(collection.environment_of(threads), **self.environment(name, compiler))
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
                for line in map(json.loads, done.stdout.splitlines()):
                    seconds = line["processor" if self.args.processor and program == PYTHON else "later"]
                    times.setdefault(line["loop"], {}).setdefault(name, []).append(seconds)
                    sums.setdefault(line["loop"], {})[name] = [line["checksum"]]
        for loop, pairs in times.items():
            agree = {name: collection.agree(sums[loop]["plain"], sums[loop][name], 1e-9) for name in group}
            rows += self.rows(loop, threads, compiler, pairs, agree)
        return rows

    def rows(self, program, threads, compiler, pairs, agree):
        """The rows of a group."""
        plain = pairs.pop("plain")
        return [
            {
                "program": program, "switch": name, "threads": threads, "compiler": compiler, "agree": agree[name],
                "seconds": statistics.median(plain), "ratio": statistics.median(off / on for off, on in zip(seconds, plain)),
                "least": min(off / on for off, on in zip(seconds, plain)),
            }  # fmt: skip
            for name, seconds in pairs.items()
        ]


def summary(rows):
    """For each switch, and each way to run, how many programs it saves how much; the best first."""
    titles = "switched off | lines | compiler | threads | programs at least 3% slower | at least 3% faster, by name | slowest without it"
    lines = [f"| {titles} |", "|---" * 7 + "|"]
    ways = sorted({(row["switch"], row["compiler"], row["threads"]) for row in rows})
    for way in ways:
        own = sorted((row for row in rows if (row["switch"], row["compiler"], row["threads"]) == way), key=lambda row: -row["ratio"])
        slower = [row for row in own if row["ratio"] >= SAVES]
        faster = [row for row in own if row["ratio"] <= 1 / SAVES]
        named = [", ".join(f"{row['program']} {row['ratio']:.2f}" for row in some) for some in (faster[::-1], own[:3])]
        switch, compiler, threads = way
        lines.append(f"| {switch} | {lines_of(switch) or ''} | {compiler} | {threads} | {len(slower)} of {len(own)} | {' | '.join(named)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"programs of the catalog, {LOOPS} and {PYTHON}; all without a name")
    parser.add_argument("--threads", default=f"1,{os.cpu_count()}")
    parser.add_argument("--compiler", default="on,off")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--at", type=float, default=0.75, help="where the size lies between small and full")
    parser.add_argument("--loop-size", type=int, default=LOOP_SIZE)
    parser.add_argument("--side", type=int, default=SIDE, help=f"of the grids of {PYTHON}")
    parser.add_argument("--processor", action="store_true", help=f"compare the processor times of {PYTHON}, on a busy machine")
    parser.add_argument("--dtype", choices=["f64", "f32"], default="f64")
    parser.add_argument("--off", action="append", choices=list(SWITCHES), default=[])
    parser.add_argument("--also", action="append", type=extra, default=[], help="a further switch, by variables of the environment")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a run is given up")
    parser.add_argument("--prebuilt", action="store_true", help="take the programs that are there")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--summary", nargs="+", type=Path, help="files of earlier runs to sum up")
    args = parser.parse_args()
    if args.summary:
        rows = [row for file in args.summary for row in map(json.loads, file.read_text().splitlines())]
        print(text := summary(rows), end="")
        if args.table:
            args.table.write_text(text)
        return 0
    if args.check:
        args.names = args.names or [*CHECKED, LOOPS]
        args.at, args.turns, args.threads, args.compiler, args.loop_size, args.side = 0, 1, "2", "off", 20, 40
    listed = [name for name in (LOOPS, PYTHON) if not args.names or name in args.names]
    catalog = [name for name in args.names if name not in listed]
    programs = collection.chosen(parser, catalog) if catalog or not args.names else []
    if "BH_PREFIX" not in os.environ and (programs or LOOPS in listed):
        parser.error("BH_PREFIX must name the directory that bh is installed in")
    chosen = {name: SWITCHES[name] for name in args.off} if args.off or args.also else SWITCHES
    rows, failed = [], False
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(args.workers) as pool:
        measurer = Measurer(args, chosen | dict(args.also), Path(scratch))
        tasks = {}
        for threads in map(int, args.threads.split(",")):
            for compiler in args.compiler.split(","):
                for group in measurer.groups():
                    for name in listed:
                        tasks[pool.submit(measurer.listed, name, threads, compiler, group)] = name
                    for program in programs:
                        tasks[pool.submit(measurer.program, program, threads, compiler, group)] = program["name"]
        for task in as_completed(tasks):
            name = tasks[task]
            try:
                found = task.result()
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                print(f"{name}: {error}", file=sys.stderr, flush=True)
                failed = True
                continue
            rows += found
            failed |= not all(row["agree"] for row in found)
            for row in found:
                differs = "" if row["agree"] else "  RESULTS DIFFER"
                if args.check and not differs:
                    continue
                print(f"{row['program']:24} {row['switch']:20} {row['threads']:3} {row['compiler']:4} {row['ratio']:6.3f}{differs}", flush=True)
            if args.json:
                with args.json.open("a") as file:
                    file.writelines(json.dumps(row) + "\n" for row in found)
    text = summary(rows)
    if not args.check:
        print(text, end="")
    if args.table:
        args.table.write_text(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
