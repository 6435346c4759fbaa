#!/usr/bin/env python3
"""The cost of planning: microseconds and steps for each operation, by family, stage and number of operations.

    BH_PLANNING=PROGRAM benches/planning.py [FAMILY...] [--stages A,B] [--sizes 30,100] [--json FILE] [--plot FILE]

PROGRAM is `bh-planning`. The table has the growth of each stage in each family: the exponent of the time for a whole batch
(1 is linear) and the largest time for one operation over the smallest. The JSON file is a list of
`{"family", "operations", "stage", "us_per_op", "steps_per_op", "kernels"}`; the picture goes beside it if no name is given.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import svg

COLOURS = {"filter": "#e69f00", "linear": "#009e73", "fuse": "#0072b2", "lower": "#cc79a7", "programs": "#56b4e9", "windows": "#d55e00", "again": "#666666"}
PANEL_WIDTH, PANEL_HEIGHT, A_ROW, MARGIN = 300, 210, 4, 24


def exponent(points):
    """The slope of the logarithm of the time of whole batches against that of their length."""
    if len(points) < 2:
        return float("nan")
    logs = [(math.log(count), math.log(max(time, 1e-4) * count)) for count, time in points]
    x, y = (sum(values) / len(logs) for values in zip(*logs))
    return sum((a - x) * (b - y) for a, b in logs) / sum((a - x) ** 2 for a, _ in logs)


def panel(family, curves, left, top, ranges):
    (x0, x1), (y0, y1) = ranges
    width, height, floor = PANEL_WIDTH - 62, PANEL_HEIGHT - 60, top + PANEL_HEIGHT - 36
    x_of, y_of = svg.axis(x0, x1, left + 46, width), svg.axis(y0, y1, floor, -height)
    parts = [svg.text(left + 46, top + 12, family, 12, weight="bold")]
    for value in svg.ticks(x0, x1, 5):
        parts += [svg.line(x_of(value), floor, x_of(value), floor - height), svg.text(x_of(value), floor + 13, svg.count(value), 9, "middle", svg.FAINT)]
    for value in svg.ticks(y0, y1, 6):
        parts += [svg.line(left + 46, y_of(value), left + 46 + width, y_of(value)), svg.text(left + 42, y_of(value) + 3, svg.seconds(value * 1e-6), 9, "end", svg.FAINT)]
    for stage, points in curves.items():
        parts += svg.curve([(x_of(count), y_of(min(max(time, y0), y1))) for count, time in points], COLOURS.get(stage, svg.INK))
    return parts


def picture(curves):
    counts = [count for stages in curves.values() for points in stages.values() for count, _ in points]
    times = [max(time, 0.01) for stages in curves.values() for points in stages.values() for _, time in points]
    ranges = (min(counts) / 1.2, max(counts) * 1.2), (min(times) / 1.3, max(times) * 1.3)
    width = 2 * MARGIN + A_ROW * PANEL_WIDTH
    parts = [svg.text(MARGIN, 30, "Planning: time for each operation against operations in a batch", 14, weight="bold")]
    parts += svg.legend(MARGIN, 52, list(COLOURS.items()))
    for index, (family, stages) in enumerate(curves.items()):
        left, top = MARGIN + index % A_ROW * PANEL_WIDTH, 72 + index // A_ROW * PANEL_HEIGHT
        parts += panel(family, stages, left, top, ranges)
    return svg.page(width, 72 + math.ceil(len(curves) / A_ROW) * PANEL_HEIGHT + MARGIN, parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    parser.add_argument("--stages")
    parser.add_argument("--sizes")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args()
    if "BH_PLANNING" not in os.environ:
        parser.error("BH_PLANNING is not set")
    command = [os.environ["BH_PLANNING"], *args.families]
    for option in ("stages", "sizes"):
        if getattr(args, option):
            command += [f"--{option}", getattr(args, option)]
    lines, curves = [], {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        for text in program.stdout:
            line = json.loads(text)
            lines.append(line)
            curves.setdefault(line["family"], {}).setdefault(line["stage"], []).append((line["operations"], line["us_per_op"]))
    if program.returncode:
        return program.returncode
    print(f"{'family':20} {'stage':8} {'exponent':>9} {'growth':>7}   µs for each operation, by operations")
    for family, stages in curves.items():
        for stage, points in stages.items():
            times = [max(time, 1e-3) for _, time in points]
            columns = "  ".join(f"{count}: {time:.2f}" for count, time in points)
            print(f"{family:20} {stage:8} {exponent(points):9.2f} {max(times) / times[0]:7.1f}   {columns}")
    if args.json:
        args.json.write_text(json.dumps(lines, indent=0) + "\n")
    plot = args.plot or (args.json.with_suffix(".svg") if args.json else None)
    if plot:
        plot.write_text(picture(curves))
    return 0


if __name__ == "__main__":
    sys.exit(main())
