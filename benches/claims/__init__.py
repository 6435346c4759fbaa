"""The papers' claims beside bh's figures: the tables at the top of the pages in docs/papers.

A claim is a tuple: the claim with its place in the paper, the paper's figure, bh's, whether both are for the same size (or which), the
command, and where bh's figure comes from: a file of benches/results (`gpu`) or a part of one (`gpu/placements`), or the commit that put the figure on a page. bh's figures come from the
files, so that they follow a new measurement.
"""

import hashlib
import json

from figures import RESULTS, number, read, table

YES = "yes"
# Figures of the paper that its text does not repeat.
PLOT = "a plot without numbers"
NOT_MEASURED = "not measured"


def missing(claim, paper, reason):
    """A claim without a figure of bh, and why: it was not measured, or there is nothing to measure it on."""
    return claim, paper, *((NOT_MEASURED, "–") if reason == NOT_MEASURED else ("–", reason)), "–", "–"


def row(name, part, **keys):
    """The row of a part of a file of results whose fields have these values."""
    rows = read(name) if part is None else read(name)[part]
    return next(one for one in rows if all(one[key] == value for key, value in keys.items()))


def listed(values, digits=number):
    """Numbers as a list: `1, 2 and 3`."""
    words = [digits(value) for value in values]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def spread(values):
    """The least and the greatest of some numbers."""
    values = list(values)
    return f"{number(min(values))} to {number(max(values))}"


def percent(share):
    """A share as a whole number of percent."""
    return f"{100 * share:.0f}%".replace("-", "−")


def commit(source):
    """The commit of results: the one that the file names, or the one recorded for its present content. Other sources are commits themselves."""
    name = source.split("/")[0]
    if not (RESULTS / f"{name}.json").exists():
        return source
    found = read(name)
    if isinstance(found, dict) and "commit" in found:
        return found["commit"]
    known = json.loads((RESULTS.parent / "claims/commits.json").read_text()).get(source, {})
    return known["commit"] if known.get("content") == content(source) else "not recorded"


def content(source):
    """A hash of the content of a file of results, or of a part of it."""
    name, *parts = source.split("/")
    found = read(name)
    for part in parts:
        found = found[part]
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16]


def made(claims):
    """The table of some claims."""
    rows = [(*cells, f"`{command}`" if command != "–" else command, commit(source)) for *cells, command, source in claims]
    return table(["claim", "the paper's figure", "bh's figure", "same size?", "command", "commit"], rows)


def counted(papers):
    """The table of how many claims of each paper have a figure, by name of the paper."""
    rows = []
    for name, claims in papers.items():
        same = [size.split(";")[0].split(",")[0] == YES for _, _, _, size, command, _ in claims if command != "–"]
        unmeasured = sum(mine == NOT_MEASURED for _, _, mine, *_ in claims)
        rows.append([name, *map(str, (len(claims), sum(same), len(same) - sum(same), unmeasured, len(claims) - len(same) - unmeasured))])
    return table(["page", "claims", "the paper's size, some with exceptions", "another size", "not measured", "no figure possible"], rows)
