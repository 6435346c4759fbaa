#!/usr/bin/env python3
"""Ranks of a cluster against one rank, and against threads of the CPU engine.

Needs an installed bh with its library for MPI, a C and a C++ compiler (or the programs, compiled with --compile-only),
mpirun and Python. Prints a table and, with --json, writes all figures:

  python3 benches/cluster.py --prefix DIR [--ranks 1,2,4,8,16] [--repeat 3] [--quick] [--json FILE] [PROGRAM...]

strong: the same problem on more ranks (ms, and times faster than one rank, and than one thread without a cluster);
threads: the CPU engine alone with as many threads;
weak: a problem that grows with the ranks (efficiency: time of one rank / time), beside what plain copies reach;
overhead: microseconds of a repeated batch of 30 operations on few elements; a run takes some 20 seconds at most, and one that
passes --timeout is left out.
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent

# Program: n and iterations for strong scaling; for weak scaling of one rank; to which power of n the work grows.
PROGRAMS = {
    "heat_equation": ((8000, 10), (3000, 20), 2),
    "shallow_water": ((4000, 4), (1500, 8), 2),
    "nbody": ((8000, 2), (3000, 4), 2),
    "black_scholes": ((16_000_000, 3), (2_000_000, 5), 1),
    "matrix_product": ((4000, 2), (1500, 4), 3),
}
QUICK = 8  # --quick divides elements by its square


def source(name):
    """Programs that are written for clusters lie beside this file."""
    own = HERE / "cluster" / f"{name}.cpp"
    return own if own.exists() else HERE / name / "bh.cpp"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="heat_equation, shallow_water, nbody, black_scholes, matrix_product (all), overhead")
    parser.add_argument("--prefix", type=pathlib.Path, required=True, help="where bh is installed")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("/tmp/bh-bench-cluster"))
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--ranks", default="1,2,4,8,16")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each program; the fastest counts")
    parser.add_argument("--quick", action="store_true", help="small problems")
    parser.add_argument("--mpirun", default=None, help="by default mpirun.openmpi, or else mpirun")
    parser.add_argument("--stack", default="cluster")
    parser.add_argument("--threads", type=int, default=1, help="threads of each rank")
    parser.add_argument("--no-weak", action="store_true")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for one run")
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args()


class Bench:
    def __init__(self, args):
        self.args = args
        self.mpirun = args.mpirun or shutil.which("mpirun.openmpi") or shutil.which("mpirun")
        if self.mpirun is None and not args.compile_only:
            sys.exit("no mpirun")
        self.cores = len(os.sched_getaffinity(0))
        self.bind = True
        self.figures = []

    def compile(self, source, name):
        program = self.args.build / name
        if program.exists():
            return program
        self.args.build.mkdir(parents=True, exist_ok=True)
        prefix = self.args.prefix.resolve()
        compiler = ["g++", "-std=c++17"] if source.suffix == ".cpp" else ["cc", "-std=c99"]
        line = [*compiler, "-O2", "-o", str(program), str(source), f"-I{prefix}/include", f"-I{HERE}/common",
                f"-L{prefix}/lib", "-lbh_bridge_c", "-lm"]
        subprocess.run(line, check=True)
        return program

    def environment(self, **variables):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("BH_")}
        environment["LD_LIBRARY_PATH"] = f"{self.args.prefix.resolve()}/lib"
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        environment.update(variables)
        return environment

    def launch(self, ranks, line, environment):
        """Runs a line on ranks; returns what it printed. Ranks are bound to cores where that can be done."""
        openmpi = "open" in subprocess.run([self.mpirun, "--version"], capture_output=True, text=True).stdout.lower()
        options = []
        if openmpi:
            crowded = ranks * self.args.threads > self.cores
            own = ["--bind-to", "core"] if self.args.threads == 1 else ["--map-by", f"slot:PE={self.args.threads}", "--bind-to", "core"]
            options = ["--oversubscribe", "--bind-to", "none"] if crowded or not self.bind else own
        command = [self.mpirun, *options, "-n", str(ranks), *map(str, line)]
        done = self.wait(command, environment)
        if done.returncode != 0 and openmpi and self.bind:
            self.bind = False
            return self.launch(ranks, line, environment)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def wait(self, command, environment):
        """Runs a command for as long as --timeout allows. A launcher that gets a signal to end takes its ranks along."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, env=environment, **pipes) as process:
            try:
                out, err = process.communicate(timeout=self.args.timeout)
            except subprocess.TimeoutExpired:
                process.terminate()
                try:
                    process.communicate(timeout=10)
                except subprocess.TimeoutExpired:
                    process.kill()
                raise
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def seconds(self, program, size, ranks=None, threads=1):
        """The fastest of several runs, each after one that warms up, with the checksum."""
        best = None
        n, iters = size
        line = [program, n, iters, "f64", "--warm"]
        for _ in range(self.args.repeat):
            if ranks is None:
                environment = self.environment(BH_STACK="cpu", BH_VE_CPU_THREADS=str(threads))
                text = subprocess.run(list(map(str, line)), env=environment, check=True, capture_output=True, text=True,
                                      timeout=self.args.timeout).stdout
            else:
                environment = self.environment(BH_STACK=self.args.stack, BH_VE_CPU_THREADS=str(self.args.threads))
                text = self.launch(ranks, line, environment)
            found = json.loads([text for text in text.splitlines() if text.startswith("{")][-1])
            if best is None or found["seconds"] < best["seconds"]:
                best = found
        return best

    def note(self, **figures):
        self.figures.append(figures)

    def program(self, name, ranks):
        strong, weak, power = PROGRAMS[name]
        if self.args.quick:
            cut = QUICK * QUICK if power == 1 else QUICK
            strong, weak = (strong[0] // cut, strong[1]), (weak[0] // cut, weak[1])
        program = self.compile(source(name), name)
        alone = self.seconds(program, strong)
        print(f"\n{name}, n = {strong[0]}, {strong[1]} steps: one thread without a cluster {1e3 * alone['seconds']:.2f} ms")
        print(f"{'ranks':>6} {'cluster ms':>11} {'x 1 rank':>9} {'x 1 thread':>11} {'threads ms':>11} {'cluster/threads':>16}")
        first = None
        for count in ranks:
            found = self.seconds(program, strong, ranks=count)
            threads = self.seconds(program, strong, threads=count)
            first = first or found["seconds"]
            print(f"{count:>6} {1e3 * found['seconds']:>11.2f} {first / found['seconds']:>9.2f} "
                  f"{alone['seconds'] / found['seconds']:>11.2f} {1e3 * threads['seconds']:>11.2f} "
                  f"{found['seconds'] / threads['seconds']:>16.2f}", flush=True)
            near = all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(found["checksum"], alone["checksum"]))
            if not near:
                print(f"   checksums differ: {found['checksum']} and {alone['checksum']}")
            self.note(kind="strong", program=name, ranks=count, n=strong[0], iters=strong[1], seconds=found["seconds"],
                      threads_seconds=threads["seconds"], alone_seconds=alone["seconds"], equal=near)
        if self.args.no_weak:
            return
        first = None
        print(f"weak scaling from n = {weak[0]}:")
        for count in ranks:
            size = (round(weak[0] * count ** (1 / power)), weak[1])
            found = self.seconds(program, size, ranks=count)
            first = first or found["seconds"]
            work = (size[0] / weak[0]) ** power / count
            efficiency = first / found["seconds"] * work
            print(f"{count:>6} {1e3 * found['seconds']:>11.2f} ms, efficiency {efficiency:.2f}", flush=True)
            self.note(kind="weak", program=name, ranks=count, n=size[0], seconds=found["seconds"], efficiency=efficiency)

    def copies(self, ranks):
        program = self.compile(HERE / "cluster/copy.c", "copy")
        first = None
        print("\nplain copies, as many at a time:")
        for count in ranks:
            text = self.launch(count, [program, 1 << 27], self.environment())
            rate = sum(float(line.split()[0]) for line in text.splitlines() if line.strip())
            first = first or rate
            print(f"{count:>6} {rate:>9.1f} GB/s, {rate / first / count:.2f} of as many times one", flush=True)
            self.note(kind="copy", ranks=count, rate=rate, efficiency=rate / first / count)

    def overhead(self, ranks):
        program = self.compile(HERE / "cluster/batch.c", "batch")
        print("\na repeated batch of 30 operations: microseconds without and with a number that is read")
        for elements in [4000, 40000]:
            def run(text):
                return json.loads([line for line in text.splitlines() if line.startswith("{")][-1])

            local = self.environment(BH_STACK="cpu", BH_VE_CPU_THREADS="1")
            done = [str(program), str(elements)]
            base = run(subprocess.run(done, env=local, check=True, capture_output=True, text=True,
                                      timeout=self.args.timeout).stdout)
            print(f"{elements:>8} elements, no cluster: {base['batch_us']:>9.1f} {base['batch_and_read_us']:>9.1f}")
            for count in ranks:
                environment = self.environment(BH_STACK=self.args.stack, BH_VE_CPU_THREADS=str(self.args.threads))
                try:
                    found = run(self.launch(count, [program, elements], environment))
                except subprocess.TimeoutExpired:
                    print(f"{count:>8} ranks: no figures within {self.args.timeout} s", flush=True)
                    self.note(kind="overhead", ranks=count, elements=elements, alone=base, timed_out=True)
                    continue
                crowded = " (more ranks than processors)" if count > self.cores else ""
                print(f"{count:>8} ranks: {found['batch_us']:>9.1f} {found['batch_and_read_us']:>9.1f}{crowded}", flush=True)
                self.note(kind="overhead", ranks=count, alone=base, **found)


def main():
    args = arguments()
    bench = Bench(args)
    chosen = args.programs or [*PROGRAMS, "overhead"]
    unknown = [name for name in chosen if name not in PROGRAMS and name != "overhead"]
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}")
    for name in PROGRAMS:
        bench.compile(source(name), name)
    for name in ["copy", "batch"]:
        bench.compile(HERE / f"cluster/{name}.c", name)
    if args.compile_only:
        return
    ranks = [int(text) for text in args.ranks.split(",")]
    print(f"{bench.cores} processors; {bench.mpirun}")
    failed = []
    if not args.no_weak:
        bench.copies(ranks)
    for name in chosen:
        try:
            bench.overhead(ranks) if name == "overhead" else bench.program(name, ranks)
        except (RuntimeError, subprocess.SubprocessError) as error:
            failed.append(name)
            print(f"{name}: {error}", file=sys.stderr)
    if args.json:
        args.json.write_text(json.dumps(bench.figures, indent=1) + "\n")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
