"""Draws benchmark results as an SVG page: bars of speed relative to the twins, and time per iteration against size."""

import math
from html import escape

WIDTH = 1000
LABEL = 230
BAR = 14
COLOURS = {"bh": "#1f77b4", "numpy": "#ff7f0e", "twin": "#555555"}
PANEL_WIDTH, PANEL_HEIGHT, PANELS_A_ROW = 240, 180, 4


def _text(x, y, words, size=12, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(str(words))}</text>'


def _line(x1, y1, x2, y2, colour="#cccccc"):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def bars(rows, top):
    """Horizontal bars on a logarithmic axis: 1 is the twin's speed. Returns the drawing and its height."""
    speeds = []
    for row in rows:
        twin = row["twin_seconds"]
        of = {form: twin / row[key] if twin and row[key] else None for form, key in (("bh", "seconds"), ("numpy", "numpy_seconds"))}
        speeds.append((f"{row['bench']} {row['dtype']} n={row['n']}", of))
    values = [value for _, of in speeds for value in of.values() if value] or [1.0]
    low, high = math.floor(math.log10(min(*values, 0.1))), math.ceil(math.log10(max(*values, 1.01)))
    place = lambda value: LABEL + (math.log10(value) - low) / (high - low) * (WIDTH - LABEL - 60)
    height = 40 + len(speeds) * (2 * BAR + 8)
    parts = [_text(LABEL, top + 14, "speed relative to the hand-written twin (longer is faster; blue bh, orange NumPy)", 13)]
    for power in range(low, high + 1):
        x = place(10.0**power)
        parts += [_line(x, top + 24, x, top + height, "#000000" if power == 0 else "#cccccc"), _text(x + 2, top + 34, f"{10.0**power:g}", 10)]
    for index, (label, of) in enumerate(speeds):
        y = top + 40 + index * (2 * BAR + 8)
        parts.append(_text(LABEL - 6, y + BAR + 4, label, 11, "end"))
        for offset, (form, value) in enumerate(of.items()):
            if not value:
                continue
            end = place(value)
            parts.append(f'<rect x="{LABEL}" y="{y + offset * BAR}" width="{max(end - LABEL, 1):.1f}" height="{BAR - 2}" fill="{COLOURS[form]}"/>')
            parts.append(_text(end + 4, y + offset * BAR + BAR - 4, f"{value:.2f}", 10))
    return parts, height


def panel(name, curve, left, top):
    """Time per iteration against size, both logarithmic."""
    points = [point for line in curve.values() for point in line]
    parts = [_text(left, top + 12, name, 12)]
    if not points:
        return parts
    (x0, x1), (y0, y1) = ((min(logs), max(logs)) for logs in ([math.log10(point[axis]) for point in points] for axis in (0, 1)))
    width, height = PANEL_WIDTH - 50, PANEL_HEIGHT - 60
    x_of = lambda size: left + 10 + (math.log10(size) - x0) / ((x1 - x0) or 1) * width
    y_of = lambda seconds: top + 20 + height - (math.log10(seconds) - y0) / ((y1 - y0) or 1) * height
    parts.append(f'<rect x="{left + 5}" y="{top + 18}" width="{width + 10}" height="{height + 4}" fill="none" stroke="#cccccc"/>')
    parts.append(_text(left + 5, top + height + 36, f"n {10**x0:.0f} to {10**x1:.0f}, {10**y0:.1e} to {10**y1:.1e} s", 10))
    for form, line in curve.items():
        path = " ".join(f"{x_of(size):.1f},{y_of(seconds):.1f}" for size, seconds in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[form]}" stroke-width="2"/>')
    return parts


def page(rows, curves):
    """The whole picture as SVG text."""
    parts, height = bars(rows, 10)
    top = height + 40
    parts.append(_text(20, top, "seconds per iteration against size (both axes logarithmic; blue bh, grey twin)", 13))
    top += 15
    for index, (name, curve) in enumerate(curves.items()):
        parts += panel(name, curve, 20 + index % PANELS_A_ROW * PANEL_WIDTH, top + index // PANELS_A_ROW * PANEL_HEIGHT)
    total = top + math.ceil(len(curves) / PANELS_A_ROW) * PANEL_HEIGHT + 20
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{total:.0f}" font-family="sans-serif">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"]) + "\n"
