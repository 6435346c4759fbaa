"""The measurements in benches/results, and how pages show them."""

import json
from functools import cache
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "results"


@cache
def read(name):
    """The content of a file of results."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def table(titles, rows):
    """A table in Markdown."""
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def number(value):
    """Three digits, as far as they say something."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
