#!/usr/bin/env python3
"""How fast a device reads its memory and the groups' own memory, by stride and by the size of groups, in plain OpenCL.

    benches/micro.py [--device gpu|cpu] [--mib N] [--json FILE]

Figures 2 and 3 of the report on affine loop nests. *global*: items that are neighbours read words a stride apart, GB/s of words that
are used. *local*: items of a group read words of local memory a stride apart, GB/s of all groups together; with banks, even
strides wait. The fastest of three.
"""

import argparse
import json
import sys
from ctypes import c_int
from pathlib import Path

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
"""


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
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
