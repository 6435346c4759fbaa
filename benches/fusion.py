#!/usr/bin/env python3
"""The gain of fusion: partition costs, kernels and run times of the programs of the fusion paper's Table I by algorithm.

    BH_PREFIX=DIR BH_PARTITION_COSTS=PROGRAM benches/fusion.py [--json FILE] [--plot FILE] [--size small|middle|full] [NAME...]

PROGRAM is the built example `partition_costs` of bh-fuser. The costs are those of the batches as recorded at small size, in
bytes of the distinct views of each kernel; those of the paper's figure 3 are in elements of eight bytes. The run times are
seconds with the partition cache warm (a second run in the process), cold (the first), and without one. Size `middle` lies between
the other two; with `--processor` they are processor time, for machines that others use as well. If
BH_PARTITION_TIMES names what `cargo bench -p bh-fuser` printed, the growth of the partitioning time is reported too. The
picture goes beside the JSON file if no name is given. Greedy may cost at most 5% more than what optimal finishes with.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import collection
import fusion_plot

ALGORITHMS = ["singleton", "naive", "unintrusive", "greedy", "optimal"]
FIGURE_3 = collection.HERE / "common" / "figure3.txt"
BYTES = 8
# Steps of a program whose batches are recorded.
RECORDED_ITERATIONS = 3
# The share by which greedy may cost more than the optimum.
GREEDY_TOLERANCE = 0.05


def partition_costs(paths, *flags):
    """The example's answer for files or folders of batches."""
    program = os.environ["BH_PARTITION_COSTS"]
    words = [program, *flags, *map(str, paths)]
    run = subprocess.run(words, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"{' '.join(words)}: {run.stderr.strip()}")
    return json.loads(run.stdout)


def figure_3(flag):
    """The cost in elements by algorithm; `none` is without fusion."""
    costs = partition_costs([FIGURE_3], flag)[str(FIGURE_3)]
    return {"none" if name == "singleton" else name: entry["cost"] // BYTES for name, entry in costs.items()}


def settings(algorithm, **more):
    """The environment that chooses an algorithm; `optimal` needs a monotone cost model."""
    chosen = {"BH_FUSER_ALGORITHM": algorithm, **more}
    if algorithm == "optimal":
        chosen["BH_FUSER_COST_MODEL"] = "unique-views"
    return chosen


def recorded(program, binary):
    """Partition costs of the batches that a program records."""
    with tempfile.TemporaryDirectory() as folder:
        iters = min(program["small"][1], RECORDED_ITERATIONS)
        collection.run_once([binary], program["small"][0], iters, "f64", warm=False, environment={"BH_DUMP": folder})
        return partition_costs([folder])[folder]


def run_times(program, binary, algorithm, args):
    """Median seconds by cache use, and kernels per iteration when warm."""
    n, iters = collection.extent(program, args.size)
    result = {}
    for use, warm, more in (("warm", True, {}), ("cold", False, {}), ("none", True, {"BH_FUSER_CACHE_BYTES": "0"})):
        lines = [
            collection.run_once([binary], n, iters, "f64", warm=warm, threads=args.threads, environment=settings(algorithm, **more), limit=args.limit)
            for _ in range(args.runs)
        ]
        result[use] = statistics.median(line["processor" if args.processor else "seconds"] for line in lines)
        if use == "warm":
            result["kernels_per_iteration"] = lines[-1]["kernels"] / iters
    return result


def growth(times):
    """For each synthetic program the (operations, microseconds) of greedy partitions, and how fast they grow."""
    programs = {}
    for key, entry in times.items():
        name, _, size = key.rpartition("_")
        if "greedy_traffic" in entry and size.isdigit():
            point = (entry["ops"], entry["greedy_traffic"]["us_per_op"] * entry["ops"])
            programs.setdefault(name, []).append(point)
    return {
        name: {"exponent": fusion_plot.growth_exponent(points), "points": sorted(points)} for name, points in programs.items()
    }


def too_dear(programs):
    """Programs whose greedy partition costs too much more than a finished optimal one; prints how many finished."""
    finished = {name: entries for name, entries in programs.items() if entries["optimal"]["in_budget"]}
    excess = {name: entries["greedy"]["cost"] / max(entries["optimal"]["cost"], 1) - 1 for name, entries in finished.items()}
    worst = max(excess.values(), default=0.0)
    print(f"greedy costs at most {100 * worst:.1f}% more than the optimum of the {len(finished)} programs where that was found")
    return [name for name, more in excess.items() if more > GREEDY_TOLERANCE]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--size", choices=["small", "middle", "full"], default="small", help="size of the timed runs")
    parser.add_argument("--threads", type=int, help="threads of the timed runs")
    parser.add_argument("--processor", action="store_true", help="processor time of the runs instead of time")
    parser.add_argument("--runs", type=int, default=3, help="runs of which the median counts; 0 for costs alone, which repeat exactly")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a run is given up")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args()
    for variable in ("BH_PREFIX", "BH_PARTITION_COSTS"):
        if variable not in os.environ:
            parser.error(f"{variable} is not set")

    table = {"fig3": figure_3("--paper"), "fig3_renames": figure_3("--all-renames"), "programs": {}}
    print("figure 3, the paper's rules:  ", table["fig3"])
    print("figure 3, renames and epilogues:", table["fig3_renames"])
    print(f"{'program':24} {'algorithm':12} {'cost MB':>10} {'kernels':>8} {'us':>9}   {'warm s':>9} {'cold s':>9} {'none s':>9} {'kernels/iter':>12}")
    failed = False
    programs = [program for program in collection.chosen(parser, args.names) if "fusion" in program["source"]]
    collection.build_all(programs, os.environ["BH_PREFIX"])
    for program in programs:
        name = program["name"]
        binary = collection.build_bh(name, os.environ["BH_PREFIX"])
        entries = recorded(program, binary)
        table["programs"][name] = entries
        for algorithm in ALGORITHMS:
            entry = entries[algorithm]
            if not args.runs:
                del entry["us"]
                print(f"{name:24} {algorithm:12} {entry['cost'] / 1e6:10.3f} {entry['kernels']:8}", flush=True)
                continue
            try:
                entry["seconds"] = run_times(program, binary, algorithm, args)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failed = True
                print(f"{name} with {algorithm}: {error}", file=sys.stderr)
                continue
            times = entry["seconds"]
            figures = " ".join(f"{times[use]:9.4f}" for use in ("warm", "cold", "none"))
            print(
                f"{name:24} {algorithm:12} {entry['cost'] / 1e6:10.3f} {entry['kernels']:8} {entry['us']:9.1f}   {figures}"
                f" {times['kernels_per_iteration']:12.2f}",
                flush=True,
            )
    if "BH_PARTITION_TIMES" in os.environ:
        table["growth"] = growth(json.loads(Path(os.environ["BH_PARTITION_TIMES"]).read_text()))
        for name, program in table["growth"].items():
            print(f"partitioning time of '{name}' grows with operations^{program['exponent']:.2f}")
    if args.json:
        args.json.write_text(json.dumps(table, indent=1) + "\n")
    plot = args.plot or (args.json and args.runs and args.json.with_suffix(".svg"))
    if plot:
        plot.write_text(fusion_plot.page(table.get("growth"), table["programs"]))
    for name in too_dear(table["programs"]):
        failed = True
        print(f"{name}: greedy costs too much more than optimal", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
