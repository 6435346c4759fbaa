#!/usr/bin/env python3
"""Lime's benchmarks as task graphs: results and times beside the same functions called by NumPy, piece after piece.

    benches/graphs.py [--size small|full] [--stack NAME] [--limit MiB] [--turns N] [--json FILE] [NAME...]

The package `bh` must be importable. `stream` sends a file of ten times the memory limit (`--limit`) through a graph, and says how
much of the time its slowest stage takes alone; where BH_PREFIX names an installation, a graph in C++ does so as well. Tasks on
one stack count as one stage, as a stack does a batch at a time. The others take the processor's time for a whole graph, of
all threads, without tasks on other stacks. All are medians of turns in which all forms run.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import collection


def blocks(*arrays, by):
    """The rows of arrays in blocks, as pieces."""
    for at in range(0, len(arrays[0]), by):
        parts = tuple(array[at : at + by] for array in arrays)
        yield parts if len(parts) > 1 else parts[0]


def numbers(*shape, seed=1):
    """Numbers between 0 and 1 that repeat."""
    return np.random.default_rng(seed).random(shape)


def series(n):
    """Fourier coefficients of (x + 1)^x on [0, 2], by trapezoids."""
    x = np.linspace(0.0, 2.0, 1001)
    weights = np.where((x == 0) | (x == 2), 0.5, 1.0) * (x[1] - x[0])

    def coefficients(k):
        angles = np.pi * k[:, None] * x
        values = (x + 1.0) ** x * weights
        return (values * np.cos(angles)).sum(axis=1), (values * np.sin(angles)).sum(axis=1)

    return lambda: blocks(np.arange(float(n)), by=max(n // 8, 1)), [coefficients]


def idea_keys():
    """The 52 subkeys of IDEA for encryption, and those for decryption."""
    word, key = (1 << 128) - 1, int.from_bytes(bytes(range(7, 23)), "big")
    found = []
    while len(found) < 52:
        found += [key >> (112 - 16 * at) & 0xFFFF for at in range(8)]
        key = (key << 25 | key >> 103) & word
    found = found[:52]
    inverse = lambda value: pow(value or 65536, -1, 65537) & 0xFFFF
    negative = lambda value: -value & 0xFFFF
    back = []
    for turn in range(9):
        at = 48 - 6 * turn
        middle = (at + 1, at + 2) if turn in (0, 8) else (at + 2, at + 1)
        back += [inverse(found[at]), *(negative(found[place]) for place in middle), inverse(found[at + 3])]
        if turn < 8:
            back += found[at - 2 : at]
    return found, back


def cipher(keys):
    """IDEA with some subkeys, on four rows of 16-bit words."""

    def times(a, key):
        product = np.where(a == 0, 65536, a) * (key or 65536) % 65537
        return np.where(product == 65536, 0, product)

    def work(words):
        a, b, c, d = words
        for turn in range(8):
            k = keys[6 * turn : 6 * turn + 6]
            a, b, c, d = times(a, k[0]), (b + k[1]) & 65535, (c + k[2]) & 65535, times(d, k[3])
            e = times(a ^ c, k[4])
            f = times(((b ^ d) + e) & 65535, k[5])
            e = (e + f) & 65535
            a, b, c, d = a ^ f, c ^ f, b ^ e, d ^ e
        k = keys[48:]
        return times(a, k[0]), (c + k[1]) & 65535, (b + k[2]) & 65535, times(d, k[3])

    return work


def crypt(n):
    """IDEA: encryption and decryption, which give back what went in."""
    there, back = map(cipher, idea_keys())
    words = np.random.default_rng(1).integers(0, 65536, (n, 4))
    same = lambda out: np.stack(out)
    return lambda: (tuple(np.ascontiguousarray(part.T)) for part in blocks(words, by=max(n // 8, 1))), [there, back, same]


def mosaic(n):
    """For each tile of an image, the one of a library that is nearest to it."""
    library = np.floor(numbers(256, 64, seed=2) * 256)

    def nearest(tiles):
        return np.abs(tiles[:, None] - library).sum(axis=2).argmin(axis=1)

    return lambda: blocks(np.floor(numbers(n, 64) * 256), by=max(n // 8, 1)), [nearest]


def coulomb(n):
    """Coulomb's potential of atoms on the slices of a grid."""
    atoms = numbers(200, 4)

    def potential(z):
        x = np.arange(n) / n
        dx, dy = x[:, None] - atoms[:, 0], x[:, None] - atoms[:, 1]
        squares = dx[:, None] ** 2 + dy[None] ** 2 + (atoms[:, 2] - z) ** 2
        return (atoms[:, 3] / np.sqrt(squares)).sum(axis=2)

    return lambda: (np.array([1.5 + 0.1 * at]) for at in range(8)), [potential]


def mri_q(n):
    """The matrix Q of a reconstruction of magnetic resonance images."""
    k = numbers(512, 4)

    def q(x):
        angles = 2 * np.pi * (x[:, None] * k[:, :3]).sum(axis=2)
        return (k[:, 3] * np.cos(angles)).sum(axis=1), (k[:, 3] * np.sin(angles)).sum(axis=1)

    return lambda: blocks(numbers(n, 3, seed=3), by=max(n // 8, 1)), [q]


def nbody(n):
    """The forces on bodies, block by block."""
    bodies = numbers(n, 4)

    def forces(block):
        apart = bodies[:, :3] - block[:, None, :3]
        distance = (apart**2).sum(axis=2) + 1e-4
        return (apart * (bodies[:, 3] / (distance * np.sqrt(distance)))[:, :, None]).sum(axis=1)

    return lambda: blocks(bodies, by=max(n // 8, 1)), [forces]


def boys(t):
    """The integral of exp(-t x²) from 0 to 1: its series, or what it tends to."""
    if t > 30:
        return 0.5 * math.sqrt(math.pi / t)
    total = term = odd = 1.0
    while term > 1e-16 * total:
        odd += 2
        term *= 2 * t / odd
        total += term
    return math.exp(-t) * total


def rpes(n):
    """Two-electron repulsion integrals of n pairs of contracted shells with each other, nine primitive pairs each."""
    import bh

    of_all = {True: np.vectorize(boys), False: bh.vectorize(boys)}
    pairs = numbers(n, 9, 5) * [2, 1, 4, 4, 4] + [0.5, 0, 0, 0, 0]

    def integrals(block):
        left, right = block[:, :, None, None], pairs[None, None]
        p, q = left[..., 0], right[..., 0]
        apart = ((left[..., 2:] - right[..., 2:]) ** 2).sum(axis=-1)
        factor = left[..., 1] * right[..., 1] / (p * q * np.sqrt(p + q))
        return (factor * of_all[type(block) is np.ndarray](p * q / (p + q) * apart)).sum(axis=(1, 3))

    return lambda: blocks(pairs, by=max(n // 8, 1)), [integrals]


PROGRAMS = {
    "series": (series, 64, 10_000), "crypt": (crypt, 1000, 400_000), "mosaic": (mosaic, 64, 8000), "coulomb": (coulomb, 16, 256),
    "mri_q": (mri_q, 64, 32_768), "nbody": (nbody, 64, 4096), "rpes": (rpes, 8, 64),
}  # fmt: skip


def flat(piece):
    """A result as one array."""
    return np.stack([np.asarray(part) for part in piece]) if isinstance(piece, tuple) else np.array(piece)


def timed(work, clock=time.perf_counter):
    """The result of the work, and its seconds."""
    begin = clock()
    return work(), clock() - begin


def directly(source, tasks):
    """The same on NumPy without a graph."""
    results = []
    for piece in source():
        for task in tasks:
            piece = task(piece)
        results.append(flat(piece))
    return results


def compare(name, size, args):
    """The times of a program both ways, after a first run; None if they disagree."""
    import bh

    source, tasks = PROGRAMS[name][0](size)
    found = []
    graph = bh.source(source)
    for position, task in enumerate(tasks):
        graph = graph >> bh.task(task, stack=args.stack if position == 0 else None)
    graph = graph >> bh.sink(lambda piece: found.append(flat(piece)))
    graph.run()
    seconds, plain = [], []
    for _ in range(args.turns):
        found.clear()
        seconds.append(timed(graph.run, time.process_time)[1])
        expected, one = timed(lambda: directly(source, tasks), time.process_time)
        plain.append(one)
    agree = all(np.allclose(mine, other, rtol=1e-9, atol=1e-12) for mine, other in zip(found, expected, strict=True))
    times = {"numpy": statistics.median(plain), "graph": statistics.median(seconds)}
    print(f"{name:9} n={size:<7} NumPy {times['numpy']:8.4f} s  graph {times['graph']:8.4f} s  {'agree' if agree else 'DISAGREE'}", flush=True)
    return {"program": name, "n": size, **times} if agree else None


def told(language, stages, whole):
    """Prints how the slowest stage compares with the whole graph, by seconds of each turn."""
    share = statistics.median(max(values) / all_of_it for *values, all_of_it in zip(*stages.values(), whole))
    shown = "  ".join(f"{name} {statistics.median(values):.3f} s" for name, values in {**stages, "all": whole}.items())
    print(f"stream in {language}: {shown}  slowest stage / all {share:.2f}", flush=True)
    return {"program": "stream", "language": language, "share": share, "all": statistics.median(whole)}


def stream(args, folder):
    """A file of ten times the memory limit through a graph, and each of its stages alone."""
    import bh

    rows = (args.limit << 20) // 32 // 64
    path = folder / "large.npy"
    made = np.lib.format.open_memmap(path, "w+", float, (320 * rows, 8))
    made[...] = 1.0
    del made
    first = lambda x: np.sqrt(x * x + 1)
    second = lambda x: (np.sin(x) * np.cos(x)).sum()
    # As many pieces as the file has, each in a place of its own: a repeated one would be in the cache.
    piece = list(np.ones((320, rows, 8)))
    source = {"source": bh.source(path, rows=rows) >> bh.sink(lambda x: None, stack="numpy")}
    if args.stack:
        tasks = {
            "first": bh.source(piece) >> bh.task(first) >> bh.sink(lambda x: None),
            "second": bh.source(piece) >> bh.task(second, stack=args.stack) >> bh.sink(float),
        }
    else:
        tasks = {"tasks": bh.source(piece) >> bh.task(first) >> bh.task(second, ahead=2) >> bh.sink(float)}
    stages = source | tasks
    whole = bh.source(path, rows=rows) >> bh.task(first) >> bh.task(second, stack=args.stack, ahead=2) >> bh.sink(float)
    seconds = {name: [] for name in stages}
    total = []
    whole.run()
    for _ in range(args.turns):
        for name, graph in stages.items():
            seconds[name].append(timed(graph.run)[1])
        total.append(timed(whole.run)[1])
    return told("Python", seconds, total)


def stream_in_cpp(args, folder):
    """The same in C++."""
    prefix, rows = Path(os.environ["BH_PREFIX"]), (args.limit << 20) // 32 // 64
    source, program, path = collection.HERE / "graphs" / "stream.cpp", folder / "stream", folder / "large"
    words = ["g++", "-std=c++17", "-O2", f"-I{prefix}/include", source, "-o", program, f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lbh_bridge_c", "-pthread"]
    subprocess.run(words, check=True)
    np.ones((320 * rows, 8)).tofile(path)
    stages, total = {}, []
    for _ in range(args.turns):
        words = [program, path, "320", str(rows), *([args.stack] if args.stack else [])]
        line = json.loads(subprocess.run(words, env=collection.environment_of(None), check=True, capture_output=True, text=True).stdout)
        total.append(line["all"])
        for name in ("source", "first", "second") if args.stack else ("source", "tasks"):
            stages.setdefault(name, []).append(line[name])
    return told("C++", stages, total)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *PROGRAMS, "stream"])
    parser.add_argument("--size", choices=["small", "full"], default="small")
    parser.add_argument("--stack", help="the stack of the first task, and of those after it")
    parser.add_argument("--limit", type=int, default=64, help="the memory limit of the stream, in MiB")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    os.environ["BH_MEMORY_LIMIT"] = f"{args.limit}MiB" if args.names == ["stream"] else os.environ.get("BH_MEMORY_LIMIT", "90%")
    rows = []
    for name in args.names or PROGRAMS:
        if name == "stream":
            with tempfile.TemporaryDirectory() as folder:
                rows.append(stream(args, Path(folder)))
                if os.environ.get("BH_PREFIX"):
                    rows.append(stream_in_cpp(args, Path(folder)))
        else:
            rows.append(compare(name, PROGRAMS[name][1 if args.size == "small" else 2], args))
    if args.json:
        args.json.write_text(json.dumps({"programs": rows}, indent=1) + "\n")
    return 0 if all(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
