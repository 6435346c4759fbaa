"""Where the time of a call on bh goes: planning, kernels, and the rest, and the line that loses most beside NumPy.

Planning and kernels are events of bh's trace; the rest is Python's, of operations that are computed at once, and of NumPy's functions.
A profile by lines charges recorded work to the line that waits for it.
"""

import json
from collections import Counter
from pathlib import Path

# Parts of a call below this share are not worth a word.
LEAST = 0.05
REST = "Python, operations at once and NumPy"


def _events(trace, seconds):
    """The complete events of the last `seconds` of a trace."""
    events = [event for event in json.loads(Path(trace).read_text())["traceEvents"] if event.get("ph") == "X"]
    end = max((event["ts"] + event["dur"] for event in events), default=0)
    return events, [event for event in events if event["ts"] >= end - seconds * 1e6]


class Shares:
    """The parts of a call, as shares of its time."""

    def __init__(self, program, line, reference, trace):
        seconds = line["first"]
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
        self.excess = {int(number): taken - reference["lines"].get(number, 0.0) for number, taken in line["lines"].items()}
        self.lost = line["first processor"] - reference["first processor"]
        self.fallbacks = line["fallbacks"]

    def _shown(self, number):
        text = self.text[number - 1].strip().replace("|", "\\|").replace("`", "'")
        return f"line {number}, `{text if len(text) <= 70 else text[:69] + '…'}`"

    def _kernel(self):
        """The lines of the kernel that takes most time."""
        places, _ = self.hot.most_common(1)[0]
        own = [int(place.rpartition(":")[2]) for place in places if place.startswith(f"{self.program.path}:")]
        more = f" and {len(own) - 1} more" if len(own) > 1 else ""
        return f" (most: {self._shown(own[-1])}{more})" if own else ""

    def _behind(self):
        """The line that loses most beside NumPy, if it is a part of the loss that counts."""
        number = max(self.excess, key=self.excess.get, default=None)
        if number is None or self.excess[number] < LEAST * max(self.lost, 0.0) or self.excess[number] <= 0:
            return []
        of = f" of {1e3 * self.lost:.3g}" if self.lost > self.excess[number] else ""
        return [f"{1e3 * self.excess[number]:.3g}{of} ms are lost at {self._shown(number)}"]

    def __str__(self):
        parts = [(self.planning, f"planning of {self.batches} batches"), (self.rest, REST)]
        if self.hot:
            parts.append((self.kernels, f"kernels{self._kernel()}"))
        parts.sort(key=lambda part: -part[0])
        texts = self._behind() + [f"{share:.0%} {name}" for share, name in parts if share >= LEAST]
        texts += [f"left to NumPy: {name} in line {number}, {count} times" for count, name, number in self.fallbacks[:2]]
        return "; ".join(texts)

    @property
    def kind(self):
        """The largest part."""
        parts = {"planning": self.planning, "kernels": self.kernels, REST: self.rest}
        return max(parts, key=parts.get)
