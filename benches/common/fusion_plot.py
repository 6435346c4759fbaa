"""Draws what fusion.py measured as an SVG page: partitioning time against the size of batches, and run times by cache use."""

import math

import svg

WIDTH, MARGIN = 960, 24
LEFT, PLOT_WIDTH, PLOT_HEIGHT = 90, 520, 240
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"]
USES = {"warm": "partitions known (warm)", "cold": "first run (cold)", "none": "without partition cache"}
PROGRAM, ALGORITHM, BARS = 190, 280, 290
BAR, ROW = 4, 18


def growth_exponent(points):
    """The slope of a line through (operations, microseconds in all) on logarithmic axes, by least squares."""
    logs = [(math.log(operations), math.log(time)) for operations, time in points]
    middle = [sum(axis) / len(logs) for axis in zip(*logs)]
    spread = sum((x - middle[0]) ** 2 for x, _ in logs)
    return sum((x - middle[0]) * (y - middle[1]) for x, y in logs) / spread if spread else 0.0


def growth(programs, top):
    """Time to partition against operations; `programs` has {name: {"points": [...], "exponent": e}}. Ends where it returns."""
    points = [point for program in programs.values() for point in program["points"]]
    (x0, x1), (y0, y1) = ((min(values), max(values)) for values in zip(*points))
    floor = top + 30 + PLOT_HEIGHT
    x_of = svg.axis(x0 / 1.1, x1 * 1.1, LEFT, PLOT_WIDTH)
    y_of = svg.axis(y0 / 1.3, y1 * 1.3, floor, -PLOT_HEIGHT)
    parts = [svg.text(MARGIN, top + 14, "Time to partition a fresh batch with the greedy algorithm", 14, weight="bold")]
    for value in svg.ticks(x0 / 1.1, x1 * 1.1, 10):
        parts += [svg.line(x_of(value), floor, x_of(value), floor - PLOT_HEIGHT), svg.text(x_of(value), floor + 15, f"{value:g}", 10, "middle", svg.FAINT)]
    for value in svg.ticks(y0 / 1.3, y1 * 1.3, 8):
        parts += [svg.line(LEFT, y_of(value), LEFT + PLOT_WIDTH, y_of(value)), svg.text(LEFT - 6, y_of(value) + 4, svg.seconds(value * 1e-6), 10, "end", svg.FAINT)]
    parts.append(svg.rect(LEFT, floor - PLOT_HEIGHT, PLOT_WIDTH, PLOT_HEIGHT, stroke=svg.AXIS))
    parts.append(svg.text(LEFT + PLOT_WIDTH / 2, floor + 32, "operations of the batch", 11, "middle"))
    parts.append(svg.text(MARGIN + 6, floor - PLOT_HEIGHT / 2, "time", 11, "middle", turned=True))
    beside = LEFT + PLOT_WIDTH + 20
    parts.append(svg.text(beside, top + 42, "time ~ operations^e; most per operation", 11, colour=svg.FAINT))
    for index, (name, program) in enumerate(programs.items()):
        colour = COLOURS[index % len(COLOURS)]
        parts += svg.curve([(x_of(x), y_of(y)) for x, y in program["points"]], colour)
        most = max(time / operations for operations, time in program["points"])
        words = f"{name}: e = {program['exponent']:.2f}; {svg.seconds(most * 1e-6)}"
        parts += svg.legend(beside, top + 62 + 20 * index, [(words, colour)])
    return parts, floor + 50


def run_times(programs, top):
    """The run time of each algorithm relative to singletons that are warm: a bar for each use of the cache."""
    timed = {}
    for name, entries in programs.items():
        seconds = {algorithm: entry["seconds"] for algorithm, entry in entries.items() if "seconds" in entry}
        if "singleton" in seconds:
            unit = seconds["singleton"]["warm"]
            timed[name] = {algorithm: [of[use] / unit for use in USES] for algorithm, of in seconds.items()}
    parts = [svg.text(MARGIN, top + 14, "Run time relative to one kernel per operation (singleton, warm)", 14, weight="bold")]
    parts += svg.legend(MARGIN, top + 36, list(zip(USES.values(), COLOURS)), 190)
    values = [value for program in timed.values() for bars in program.values() for value in bars] or [1.0]
    low, high = min([0.5, *values]) / 1.5, max([2.0, *values]) * 1.5
    place = svg.axis(low, high, BARS, WIDTH - MARGIN - BARS - 40)
    first = top + 58
    end = first + sum(len(program) * ROW + 8 for program in timed.values())
    for value in svg.ticks(low, high, 12, least=5):
        parts += [svg.line(place(value), first - 6, place(value), end), svg.text(place(value), end + 15, f"{value:g}×", 10, "middle", svg.FAINT)]
    parts.append(svg.text((BARS + WIDTH - MARGIN) / 2, end + 33, "time / time of singleton (logarithmic; left of 1 is faster)", 11, "middle"))
    parts.append(svg.text(WIDTH - MARGIN, first - 10, "warm", 10, "end", svg.FAINT))
    y = first
    for name, program in timed.items():
        parts.append(svg.text(PROGRAM, y + 11, name.replace("_", " "), 11, "end", weight="bold"))
        for algorithm, bars in program.items():
            parts.append(svg.text(ALGORITHM, y + 11, algorithm, 10, "end"))
            for index, value in enumerate(bars):
                left, right = sorted((place(1), place(value)))
                parts.append(svg.rect(left, y + 1 + (BAR + 1) * index, right - left, BAR, COLOURS[index]))
            parts.append(svg.text(WIDTH - MARGIN, y + 11, f"{bars[0]:.2f}", 10, "end"))
            y += ROW
        y += 8
    parts.append(svg.line(place(1), first - 6, place(1), end, svg.INK, 1.4))
    return parts, end + 44


def page(growing, programs):
    """The whole picture as SVG text."""
    parts, top = growth(growing, 10) if growing else ([], 10)
    more, end = run_times(programs, top + 10)
    return svg.page(WIDTH, end, parts + more)
