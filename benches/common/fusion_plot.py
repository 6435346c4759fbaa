"""Draws what fusion.py measured as an SVG page: partitioning time against the size of batches, and run times by cache use."""

import math
from html import escape

WIDTH = 1000
LEFT = 70
GROWTH_HEIGHT = 260
COLOURS = ["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd"]
USES = ["warm", "cold", "none"]


def _text(x, y, words, size=12, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(str(words))}</text>'


def _line(x1, y1, x2, y2, colour="#cccccc"):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def growth_exponent(points):
    """The slope of a line through (operations, microseconds in all) on logarithmic axes, by least squares."""
    logs = [(math.log(operations), math.log(time)) for operations, time in points]
    middle = [sum(axis) / len(logs) for axis in zip(*logs)]
    spread = sum((x - middle[0]) ** 2 for x, _ in logs)
    return sum((x - middle[0]) * (y - middle[1]) for x, y in logs) / spread if spread else 0.0


def growth(programs, top):
    """Time to partition against operations; `programs` has {name: {"points": [...], "exponent": e}}."""
    parts = [_text(20, top + 14, "microseconds to partition a fresh batch (greedy) against its operations, both logarithmic; t ~ operations^e", 13)]
    points = [point for program in programs.values() for point in program["points"]]
    (x0, x1), (y0, y1) = ((min(logs), max(logs)) for logs in ([math.log10(point[axis]) for point in points] for axis in (0, 1)))
    x_of = lambda value: LEFT + (math.log10(value) - x0) / ((x1 - x0) or 1) * 620
    y_of = lambda value: top + 30 + (1 - (math.log10(value) - y0) / ((y1 - y0) or 1)) * (GROWTH_HEIGHT - 60)
    for operations in sorted({point[0] for point in next(iter(programs.values()))["points"]}):
        parts += [_line(x_of(operations), top + 30, x_of(operations), top + GROWTH_HEIGHT - 30)]
        parts.append(_text(x_of(operations), top + GROWTH_HEIGHT - 14, operations, 10, "middle"))
    for power in range(math.ceil(y0), math.floor(y1) + 1):
        parts += [_line(LEFT, y_of(10.0**power), LEFT + 620, y_of(10.0**power)), _text(LEFT - 6, y_of(10.0**power) + 4, f"{10.0**power:g}", 10, "end")]
    for index, (name, program) in enumerate(programs.items()):
        colour = COLOURS[index % len(COLOURS)]
        path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in program["points"])
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<rect x="720" y="{top + 34 + 20 * index}" width="12" height="12" fill="{colour}"/>')
        most = max(time / operations for operations, time in program["points"])
        parts.append(_text(738, top + 44 + 20 * index, f"{name}: e = {program['exponent']:.2f}, at most {most:.2f} per operation", 11))
    return parts


def run_times(programs, top):
    """For each program the seconds of each algorithm relative to singletons that are warm: bars by cache use."""
    parts = [_text(20, top + 14, "run time relative to `singleton` with a warm cache (shorter is faster): warm, cold, no cache", 13)]
    y = top + 30
    for name, entries in programs.items():
        timed = {algorithm: entry["seconds"] for algorithm, entry in entries.items() if "seconds" in entry}
        if "singleton" not in timed:
            continue
        unit = timed["singleton"]["warm"]
        parts.append(_text(20, y + 12, name, 11))
        for algorithm, seconds in timed.items():
            parts.append(_text(300, y + 12, algorithm, 10, "end"))
            for index, use in enumerate(USES):
                length = min(seconds[use] / unit, 3.0) * 200
                parts.append(f'<rect x="310" y="{y + 5 * index}" width="{length:.1f}" height="4" fill="{COLOURS[index]}"/>')
            parts.append(_text(925, y + 12, f"{seconds['warm'] / unit:.2f}", 10))
            y += 17
        y += 6
    return parts, y


def page(growing, programs):
    """The whole picture as SVG text."""
    parts = growth(growing, 10) if growing else []
    more, end = run_times(programs, GROWTH_HEIGHT + 30 if growing else 10)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{end + 20:.0f}" font-family="sans-serif">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, *more, "</svg>"]) + "\n"
