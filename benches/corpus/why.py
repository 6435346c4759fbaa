"""Where the time of a call on bh goes: planning, kernels, and the rest, each with the line of the program that has most of it.

Planning and kernels are events of bh's trace; the rest is Python's, of operations that are computed at once, and of NumPy's functions.
"""

import json
from collections import Counter
from pathlib import Path

# Parts of a call below this share are not worth a word.
LEAST = 0.05


def _events(trace, seconds):
    """The complete events of the last `seconds` of a trace."""
    events = [event for event in json.loads(Path(trace).read_text())["traceEvents"] if event.get("ph") == "X"]
    end = max((event["ts"] + event["dur"] for event in events), default=0)
    return events, [event for event in events if event["ts"] >= end - seconds * 1e6]


class Shares:
    """The parts of a call, as shares of its time."""

    def __init__(self, program, line, trace, seconds):
        self.program, self.text = program, Path(program.path).read_text().splitlines()
        every, events = _events(trace, seconds)
        lines = {(event["cat"], event["args"]["kernel"]): event["args"]["lines"] for event in every if "lines" in event.get("args", {})}
        kernels, engine, plans, batches = Counter(), 0.0, 0.0, 0
        for event in events:
            number = (event["cat"], event.get("args", {}).get("kernel"))
            if number[1] is not None:
                kernels[tuple(lines.get(number, ()))] += event["dur"] * 1e-6
            elif event["name"] == "execute" and event["cat"].startswith("ve"):
                engine += event["dur"] * 1e-6
                batches += 1
            elif event["name"] in ("filter", "fuse"):
                plans += event["dur"] * 1e-6
        self.batches, self.hot = batches, kernels
        self.kernels = sum(kernels.values()) / seconds
        self.planning = (plans + max(engine - sum(kernels.values()), 0.0)) / seconds
        self.rest = max(1 - self.kernels - self.planning, 0.0)
        self.lines = {int(number): taken / seconds for number, taken in line["lines"].items()}
        self.fallbacks = line["fallbacks"]

    def _shown(self, number):
        text = self.text[number - 1].strip().replace("|", "\\|").replace("`", "'")
        return f"line {number}, `{text if len(text) <= 70 else text[:69] + '…'}`"

    def _kernel(self):
        """The lines of the kernel that takes most time."""
        places, _ = self.hot.most_common(1)[0]
        own = [int(place.rpartition(":")[2]) for place in places if place.startswith(f"{self.program.path}:")]
        more = f" and {len(own) - 1} more" if len(own) > 1 else ""
        return f": {self._shown(own[-1])}{more}" if own else ""

    def __str__(self):
        parts = [(self.planning, f"planning of {self.batches} batches", "")]
        if self.hot:
            parts.append((self.kernels, "kernels", self._kernel()))
        if self.lines:
            number = max(self.lines, key=self.lines.get)
            parts.append((self.rest, "Python, operations at once and NumPy", f": most at {self._shown(number)}"))
        parts.sort(key=lambda part: -part[0])
        texts = [f"{share:.0%} {name}{where if number == 0 else ''}" for number, (share, name, where) in enumerate(parts) if share >= LEAST]
        texts += [f"left to NumPy: {name} in line {number}, {count} times" for count, name, number in self.fallbacks[:2]]
        return "; ".join(texts)

    @property
    def kind(self):
        """The largest part."""
        parts = {"planning": self.planning, "kernels": self.kernels, "Python, operations at once and NumPy": self.rest}
        return max(parts, key=parts.get)
