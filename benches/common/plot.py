"""Draws benchmark results as an SVG page: speed relative to the twins, and time per iteration against size."""

import math

import svg

WIDTH, MARGIN = 960, 24
LABEL = 264
BAR, GAP = 9, 10
COLOURS = {"bh": "#0072b2", "numpy": "#e69f00", "twin": "#666666"}
NAMES = {"bh": "bh", "numpy": "NumPy", "twin": "hand-written twin"}
PANEL_WIDTH, PANEL_HEIGHT, PANELS_A_ROW = 304, 200, 3


def bars(rows, top):
    """Bars from 1, the twin's speed, on a logarithmic axis. Returns the drawing and where it ends."""
    speeds = []
    for row in rows:
        twin = row["twin_seconds"]
        of = {form: twin / row[key] for form, key in (("bh", "seconds"), ("numpy", "numpy_seconds")) if twin and row[key]}
        speeds.append((row, of))
    values = [value for _, of in speeds for value in of.values()]
    low, high = min([0.5, *values]) / 1.6, max([2.0, *values]) * 1.6
    place = svg.axis(low, high, LABEL, WIDTH - MARGIN - LABEL)
    threads = sorted({row["threads"] for row in rows})
    of_threads = f", {', '.join(map(str, threads))} threads" if threads else ""
    parts = [svg.text(MARGIN, top + 14, f"Speed relative to the hand-written twin{of_threads}", 14, weight="bold")]
    parts += svg.legend(MARGIN, top + 36, [(NAMES[form], COLOURS[form]) for form in ("bh", "numpy")])
    first = top + 62
    end = first + len(speeds) * (2 * BAR + GAP) + 4
    for value in svg.ticks(low, high, 12, least=5):
        parts += [svg.line(place(value), first - 6, place(value), end), svg.text(place(value), end + 15, f"{value:g}×", 10, "middle", svg.FAINT)]
    parts.append(svg.text((LABEL + WIDTH - MARGIN) / 2, end + 33, "twin's time / time (logarithmic; right of 1 is faster)", 11, "middle"))
    for index, (row, of) in enumerate(speeds):
        y = first + index * (2 * BAR + GAP)
        parts.append(svg.text(LABEL - 10, y + BAR + 3, f"{row['bench'].replace('_', ' ')}, n = {svg.count(row['n'])}, {row['dtype']}", 11, "end"))
        for offset, (form, value) in enumerate(of.items()):
            left, right = sorted((place(1), place(value)))
            parts.append(svg.rect(left, y + offset * BAR, right - left, BAR - 1, COLOURS[form]))
            words = f"{value:#.2g}" if value < 0.1 else f"{value:.2f}"
            x, anchor = (right + 4, "start") if value >= 1 else (left - 4, "end")
            parts.append(svg.text(x, y + offset * BAR + BAR - 1.5, words, 9, anchor))
    parts.append(svg.line(place(1), first - 6, place(1), end, svg.INK, 1.4))
    return parts, end + 44


def panel(name, curve, left, top):
    """Time per iteration against size, both logarithmic."""
    parts = [svg.text(left + 46, top + 12, name.replace("_", " "), 12, weight="bold")]
    points = [point for line in curve.values() for point in line]
    if not points:
        return parts
    (x0, x1), (y0, y1) = ((min(values), max(values)) for values in zip(*points))
    (x0, x1), (y0, y1) = (x0 / 1.15, x1 * 1.15), (y0 / 1.4, y1 * 1.4)
    width, height, floor = PANEL_WIDTH - 62, PANEL_HEIGHT - 68, top + PANEL_HEIGHT - 46
    x_of, y_of = svg.axis(x0, x1, left + 46, width), svg.axis(y0, y1, floor, -height)
    for value in svg.ticks(x0, x1, 5):
        parts += [svg.line(x_of(value), floor, x_of(value), floor - height), svg.text(x_of(value), floor + 13, svg.count(value), 9, "middle", svg.FAINT)]
    for value in svg.ticks(y0, y1, 6):
        parts += [svg.line(left + 46, y_of(value), left + 46 + width, y_of(value)), svg.text(left + 42, y_of(value) + 3, svg.seconds(value), 9, "end", svg.FAINT)]
    parts.append(svg.rect(left + 46, floor - height, width, height, stroke=svg.AXIS))
    parts.append(svg.text(left + 46 + width / 2, floor + 27, "n", 10, "middle"))
    for form, line in curve.items():
        parts += svg.curve([(x_of(size), y_of(seconds)) for size, seconds in line], COLOURS[form])
    return parts


def page(rows, curves):
    """The whole picture as SVG text."""
    parts, top = bars(rows, 10)
    if curves:
        parts.append(svg.text(MARGIN, top + 20, "Time per iteration against size n", 14, weight="bold"))
        parts += svg.legend(MARGIN, top + 42, [(NAMES[form], COLOURS[form]) for form in ("bh", "twin")])
        top += 60
    for index, (name, curve) in enumerate(curves.items()):
        row, column = divmod(index, PANELS_A_ROW)
        parts += panel(name, curve, MARGIN + column * PANEL_WIDTH, top + row * PANEL_HEIGHT)
    return svg.page(WIDTH, top + math.ceil(len(curves) / PANELS_A_ROW) * PANEL_HEIGHT + 10, parts)
