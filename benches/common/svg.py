"""The parts that both pictures share: marks, logarithmic axes, legends, and the page around them."""

import math
from html import escape

GRID, AXIS, INK, FAINT = "#dddddd", "#888888", "#222222", "#666666"
UNITS = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]


def text(x, y, words, size=11, anchor="start", colour=INK, weight="normal", turned=False):
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    style = f'font-size="{size}" text-anchor="{anchor}" fill="{colour}" font-weight="{weight}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}{turn}>{escape(str(words))}</text>'


def line(x1, y1, x2, y2, colour=GRID, width=1.0):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def rect(x, y, width, height, fill="none", stroke="none"):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}" stroke="{stroke}"/>'


def curve(points, colour):
    """A line through points on the page, with a mark on each."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    marks = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>' for x, y in points]
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>', *marks]


def legend(x, y, entries, step=90):
    """Names of colours, side by side."""
    parts = []
    for index, (name, colour) in enumerate(entries):
        parts += [rect(x + index * step, y - 9, 10, 10, colour), text(x + index * step + 15, y, name, 11)]
    return parts


def ticks(low, high, most, least=3):
    """Round numbers from `low` to `high` for a logarithmic axis: powers of ten, and more if these are less than `least`."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = []
    for factors in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        denser = [factor * 10.0**power for power in powers for factor in factors]
        denser = [value for value in denser if low * 0.999 <= value <= high * 1.001]
        if found and len(denser) > most:
            break
        found = denser
        if len(found) >= least:
            break
    return found[:: math.ceil(len(found) / most)] if found else []


def axis(low, high, start, length):
    """Where a number lies on a logarithmic axis; an axis of one number is widened."""
    if low == high:
        low, high = low / 2, high * 2
    scale = length / (math.log10(high) - math.log10(low))
    return lambda value: start + (math.log10(value) - math.log10(low)) * scale


def seconds(value):
    """A time with its unit: 20 µs."""
    size, unit = next(((size, unit) for size, unit in UNITS if value >= size * 0.9995), UNITS[-1])
    return f"{value / size:.3g} {unit}"


def count(value):
    """A number of elements: 500, 20k, 4M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def page(width, height, parts):
    """The whole picture."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:.0f}" viewBox="0 0 {width} {height:.0f}"'
    return "\n".join([f'{head} font-family="Helvetica, Arial, sans-serif">', rect(0, 0, width, height, "white"), *parts, "</svg>"]) + "\n"
