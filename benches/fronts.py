#!/usr/bin/env python3
"""The papers' programs in .NET and in MiniMatlab against their C++ versions: equal to the last bit, and how fast.

    benches/fronts.py LIBRARIES OUT --check [--prefix DIR]           # small sizes: compares the results
    benches/fronts.py LIBRARIES OUT [NAME...] [--runs N] [--json FILE]   # full size: runs in turns, medians of the times

LIBRARIES is a folder of cargo's with libbh_bridge_c.so, the components, and examples/twin (MiniMatlab); OUT is where programs
are built. With --prefix, a .NET program is run beside an installed library too. `cargo xtask bench fronts` sees to all.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Sizes and steps whose results are compared, and those that are timed.
PROGRAMS = {
    "heat": ([(3, 5), (300, 30)], (4000, 20)),
    "black_scholes": ([(1, 1), (100000, 5)], (4000000, 5)),
    "nbody": ([(200, 5)], (4000, 5)),
    "nbody_collisions": ([(1, 1), (200, 5)], (4000, 5)),
    "shallow_water": ([(150, 20)], (2000, 10)),
    "knn": ([(10, 1), (3000, 2)], (20000, 2)),
}
SECONDS = 120


def build(libraries, out, dotnet):
    """Compiles the C++ versions, and the .NET library with its programs."""
    out.mkdir(parents=True, exist_ok=True)
    link = out / "libbh_bridge_c.so.0"
    link.unlink(missing_ok=True)
    link.symlink_to(libraries / "libbh_bridge_c.so")
    include = ROOT / "bh-bridge-c/include"
    source = ROOT / "benches/fronts/twins.cpp"
    command = ["g++", "-std=c++17", "-O1", "-Wno-return-type", f"-I{include}", "-o", out / "twins", source]
    subprocess.run([*command, f"-L{libraries}", "-lbh_bridge_c"], check=True)
    if dotnet:
        subprocess.run([ROOT / "bh-bridge-cil/build", out, "examples"], check=True)


def commands(libraries, out, name, dotnet):
    """The command lines of a program, without size and steps."""
    found = {"C++": [out / "twins", name]}
    if dotnet:
        found[".NET"] = ["mono", "--debug", out / f"{name}.exe"]
    source = ROOT / f"bh-minimatlab/examples/{name}.m"
    if source.exists():
        found["MiniMatlab"] = [libraries / "examples/twin", source]
    return found


def run(command, size, steps, **environment):
    """The output of a program, and the seconds that it reports for its main part."""
    line = [*map(str, command), str(size), str(steps)]
    given = {name: str(value) for name, value in environment.items() if value}
    environment = {name: value for name, value in os.environ.items() if name not in environment} | given
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=SECONDS)
    seconds = [float(text.split()[1]) for text in done.stderr.splitlines() if text.startswith("seconds ")]
    if done.returncode or len(seconds) != 1:
        sys.exit(f"{' '.join(line)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout, seconds[0]


def check(libraries, out, dotnet, prefix, paths):
    """Compares the results of all front ends at small sizes."""
    for name, (sizes, _) in PROGRAMS.items():
        for size, steps in sizes:
            results = {
                front: run(command, size, steps, **paths)[0]
                for front, command in commands(libraries, out, name, dotnet).items()
            }
            for front, result in results.items():
                if result != results["C++"] or not result:
                    sys.exit(f"{name} {size} {steps}: {front} prints\n{result}and C++\n{results['C++']}")
    if prefix and dotnet:
        # Beside the installed library, by the assembly of the package, and without symbols, so without lines.
        bare = out / "bare"
        bare.mkdir(exist_ok=True)
        shutil.copy(out / "heat.exe", bare)
        package = subprocess.run([ROOT / "bh-bridge-cil/pack.py", out], check=True, capture_output=True, text=True).stdout.strip()
        with zipfile.ZipFile(package) as file:
            (bare / "Bh.dll").write_bytes(file.read("lib/net472/Bh.dll"))
        installed = run(["mono", bare / "heat.exe"], 100, 10, LD_LIBRARY_PATH=prefix / "lib", BH_LIBRARY_PATH=None)
        if installed[0] != run([out / "twins", "heat"], 100, 10, **paths)[0]:
            sys.exit("heat differs from C++ beside the installed library")
    for front, count in Counter(front for name in PROGRAMS for front in commands(libraries, out, name, dotnet)).items():
        print(f"{count} programs are equal to the last bit in {front}")


def measure(libraries, out, dotnet, names, runs, paths):
    """Median seconds by program and front end, and the speed relative to C++."""
    rows = []
    for name in names or PROGRAMS:
        size, steps = PROGRAMS[name][1]
        chosen = commands(libraries, out, name, dotnet)
        taken = {front: [] for front in chosen}
        for _ in range(runs):
            for front, command in chosen.items():
                taken[front].append(run(command, size, steps, **paths)[1])
        pairs = {front: [a / b for a, b in zip(taken["C++"], taken[front])] for front in chosen}
        for front in chosen:
            row = {"program": name, "size": size, "steps": steps, "front": front, "runs": runs}
            row |= {"seconds": statistics.median(taken[front]), "speed": statistics.median(pairs[front])}
            rows.append(row)
            print(f"{name:14} {size:8} {steps:4}  {front:10} {row['seconds']:8.4f} s  {row['speed']:5.2f}x", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--prefix", type=Path)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    libraries, out = args.libraries.resolve(), args.out.resolve()
    unknown = set(args.names) - set(PROGRAMS)
    if unknown:
        parser.error(f"there is no program {', '.join(sorted(unknown))}; there are {', '.join(PROGRAMS)}")
    dotnet = bool(shutil.which("mono") and shutil.which("mcs"))
    if not dotnet:
        print("mono is not installed: .NET is left out")
    build(libraries, out, dotnet)
    paths = {"LD_LIBRARY_PATH": f"{libraries}:{out}", "BH_LIBRARY_PATH": libraries}
    if args.check:
        check(libraries, out, dotnet, args.prefix, paths)
        return
    rows = measure(libraries, out, dotnet, args.names, args.runs, paths)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
