#!/usr/bin/env python3
"""The micro-benchmarks of the report on affine loop nests in plain OpenCL, without bh.

    benches/micro.py [--device gpu|cpu] [--mib N] [--json FILE]

*global* (Fig. 1): items that are neighbours read words a stride apart, by the size of groups, GB/s of words that are used. *local*
(Figs. 2 and 6): items of a group read words of local memory a stride apart, GB/s of all groups together; with banks, even strides wait.
*unrolled* (Fig. 3): 1,024 times a number is added to a word of local memory, with the loop unrolled by a factor; billions of additions
a second. *vectors* (Tables 2 and 3): forms of a product of a matrix, or of its transpose, with a vector, GFLOP/s. The fastest of three.
"""

import argparse
import json
import sys
from ctypes import c_float, c_int
from pathlib import Path

import numpy

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "common"))
import fresh
import opencl

KINDS = {"gpu": opencl.GPU, "cpu": opencl.PROCESSOR}
STRIDES, GROUPS = (1, 2, 4, 8, 16, 32, 64), (32, 64, 128, 256, 512)
WORDS, TURNS = 8192, 512
TEXT = """
#define WORDS 8192
__kernel void strided(__global const float *a, __global float *sums, const int stride, const int each) {
    const int item = get_global_id(0), items = get_global_size(0);
    float sum = 0;
    for (int turn = 0; turn < each; ++turn) sum += a[(turn * items + item) * stride];
    sums[item] = sum;
}
__kernel void shared_words(__global float *sums, const int stride, const int turns) {
    __local float words[WORDS];
    const int item = get_local_id(0), items = get_local_size(0);
    for (int at = item; at < WORDS; at += items) words[at] = at;
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0;
    int at = item * stride % WORDS;
    for (int turn = 0; turn < turns; ++turn) {
        sum += words[at];
        at = (at + items * stride) % WORDS;
    }
    sums[get_global_id(0)] = sum;
}
#define UNROLLED(factor)                                                                                               \
    __kernel void unrolled_##factor(__global float *sums, const float number, const int turns) {                       \
        volatile __local float words[256];                                                                             \
        const int item = get_local_id(0);                                                                              \
        words[item] = item;                                                                                            \
        UNROLL(factor)                                                                                                 \
        for (int turn = 0; turn < turns; ++turn) words[item] += number;                                                \
        sums[get_global_id(0)] = words[item];                                                                          \
    }
#define UNROLL(factor) PRAGMA(unroll factor)
#define PRAGMA(text) _Pragma(#text)
UNROLLED(1) UNROLLED(2) UNROLLED(4) UNROLLED(8) UNROLLED(16) UNROLLED(32)

// A row for each item: neighbours read words a row apart.
__kernel void mv_direct(__global const float *a, __global const float *x, __global float *y, const int n) {
    const int row = get_global_id(0);
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * x[k];
    y[row] = sum;
}
// A row for each of the 32 items of a group, through a tile of local memory whose rows are WIDTH words apart.
#define MV_SHARED(name, WIDTH)                                                                                         \
    __kernel void name(__global const float *a, __global const float *x, __global float *y, const int n) {             \
        __local float tile[32 * WIDTH], part[32];                                                                      \
        const int item = get_local_id(0), first = get_group_id(0) * 32;                                                \
        float sum = 0;                                                                                                 \
        for (int at = 0; at < n; at += 32) {                                                                           \
            for (int row = 0; row < 32; ++row) tile[row * WIDTH + item] = a[(first + row) * n + at + item];            \
            part[item] = x[at + item];                                                                                 \
            barrier(CLK_LOCAL_MEM_FENCE);                                                                              \
            for (int k = 0; k < 32; ++k) sum += tile[item * WIDTH + k] * part[k];                                      \
            barrier(CLK_LOCAL_MEM_FENCE);                                                                              \
        }                                                                                                              \
        y[first + item] = sum;                                                                                         \
    }
MV_SHARED(mv_shared, 32)
MV_SHARED(mv_padded, 33)
// Four columns for each item: beside each other, or as far apart as there are items.
__kernel void tmv_blocks(__global const float *a, __global const float *x, __global float *y, const int n) {
    const int first = 4 * get_global_id(0);
    float sums[4] = {0, 0, 0, 0};
    for (int k = 0; k < n; ++k)
        for (int column = 0; column < 4; ++column) sums[column] += a[k * n + first + column] * x[k];
    for (int column = 0; column < 4; ++column) y[first + column] = sums[column];
}
__kernel void tmv_cyclic(__global const float *a, __global const float *x, __global float *y, const int n) {
    const int first = get_global_id(0), apart = get_global_size(0);
    float sums[4] = {0, 0, 0, 0};
    for (int k = 0; k < n; ++k)
        for (int column = 0; column < 4; ++column) sums[column] += a[k * n + first + column * apart] * x[k];
    for (int column = 0; column < 4; ++column) y[first + column * apart] = sums[column];
}
"""
FACTORS = (1, 2, 4, 8, 16, 32)
# Kernel, items for n rows and columns, and the size of groups.
FORMS = {
    "mv_direct": (1, 32), "mv_shared": (1, 32), "mv_padded": (1, 32), "tmv_blocks": (4, 64), "tmv_cyclic": (4, 64),
}  # fmt: skip


def best(device, kernel, items, group):
    """Seconds of a kernel, the least of three."""
    return min(device.seconds(lambda: device.launch(kernel, items, group), 1) for _ in range(3))


def of_memory(device, words):
    """GB/s by stride and size of groups."""
    kernel, items = device.kernel("strided"), min(1 << 19, words // 64)
    source, sums = device.buffer(4 * words), device.buffer(4 * items)
    rows = []
    for stride in STRIDES:
        # The whole array is gone through, of which one word in a stride is used.
        each = max(words // items // stride, 1)
        device.arguments(kernel, source, sums, c_int(stride), c_int(each))
        used = 4 * items * each
        rows.append({"stride": stride, "gb_s": [used / best(device, kernel, items, group) / 1e9 for group in GROUPS]})
        print(f"global, stride {stride:3}: " + " ".join(f"{value:8.1f}" for value in rows[-1]["gb_s"]), flush=True)
    device.release(source), device.release(sums)
    return rows


def of_groups(device, words):
    """GB/s of local memory by stride."""
    kernel, items = device.kernel("shared_words"), min(1 << 17, words)
    sums = device.buffer(4 * items)
    rows = []
    for stride in sorted({*range(1, 18), 24, 31, 32, 33}):
        device.arguments(kernel, sums, c_int(stride), c_int(TURNS))
        rows.append({"stride": stride, "gb_s": 4 * items * TURNS / best(device, kernel, items, 256) / 1e9})
        print(f"local, stride {stride:3}: {rows[-1]['gb_s']:10.1f}", flush=True)
    device.release(sums)
    return rows


def of_loops(device, items):
    """Billions of additions a second by the factor of unrolling."""
    sums, turns = device.buffer(4 * items), 1024
    rows = []
    for factor in FACTORS:
        kernel = device.kernel(f"unrolled_{factor}")
        device.arguments(kernel, sums, c_float(1.5), c_int(turns))
        rows.append({"factor": factor, "billions": items * turns / best(device, kernel, items, 256) / 1e9})
        print(f"unrolled by {factor:3}: {rows[-1]['billions']:10.1f}", flush=True)
    device.release(sums)
    return rows


def of_vectors(device, sides):
    """GFLOP/s of each form, by the side of the matrix; the forms agree."""
    rows = []
    for n in sides:
        matrix, x = numpy.ones((n, n), numpy.float32), (numpy.arange(n) % 7).astype(numpy.float32)
        buffers = [device.buffer(data.nbytes) for data in (matrix, x, x)]
        device.write(buffers[0], matrix), device.write(buffers[1], x)
        row = {"n": n}
        for name, (columns, group) in FORMS.items():
            kernel, found = device.kernel(name), numpy.zeros(n, numpy.float32)
            device.arguments(kernel, *buffers, c_int(n))
            row[name] = 2 * n * n / best(device, kernel, n // columns, group) / 1e9
            device.read(buffers[2], found)
            if not (found == x.sum()).all():
                raise SystemExit(f"{name} of {n}: wrong result")
        rows.append(row)
        print(f"{n}: " + " ".join(f"{name} {row[name]:.1f}" for name in FORMS), flush=True)
        for buffer in buffers:
            device.release(buffer)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=list(KINDS), default="gpu")
    parser.add_argument("--mib", type=int, default=2048, help="the array that is read")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    fresh.enable_driver()
    device = opencl.Device(TEXT, KINDS[args.device])
    words = args.mib << 18
    print(f"{device.name()}, {args.mib} MiB; global by groups of {', '.join(map(str, GROUPS))}")
    found = {"device": device.name(), "mib": args.mib, "groups": GROUPS, "global": of_memory(device, words), "local": of_groups(device, words)}
    sides = [1024 * thousands for thousands in (4, 5, 6, 7, 8)] if args.mib >= 256 else [256]
    found |= {"unrolled": of_loops(device, min(1 << 17, words)), "vectors": of_vectors(device, sides)}
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
