"""The page of the corpus: all programs with their times, and those in which bh is not the fastest with the part that takes the time."""

import math
import statistics
from collections import Counter

CALLS = ("first", "later")
TITLES = {"numpy": "NumPy", "bh": "bh", "numba": "Numba", "jax": "JAX"}


def fastest(times):
    """The form with the least time."""
    return min(times, key=times.get)


def ratios(measured, size, call, rival):
    """A rival's times over bh's, by program, where both are right."""
    out = {}
    for name, sizes in measured.items():
        times = sizes.get(size, {}).get(call, {})
        if "bh" in times and rival in times:
            out[name] = times[rival] / times["bh"]
    return out


def mean(values):
    """The geometric mean."""
    return math.exp(statistics.fmean(map(math.log, values)))


def slower(measured):
    """Where bh is not the fastest: (bh's time over the fastest, program, size, call, fastest form), the greatest loss first."""
    rows = []
    for name, sizes in measured.items():
        for size, kinds in sizes.items():
            for call in CALLS:
                times = kinds.get(call, {})
                if "bh" in times and fastest(times) != "bh":
                    rows.append((times["bh"] / times[fastest(times)], name, size, call, fastest(times)))
    return sorted(rows, reverse=True)


def summary(measured, sizes):
    """How bh does beside each rival, as a table."""
    lines = ["| beside | size | call | programs | bh is faster in | geometric mean | least |", "|---|---|---|---|---|---|---|"]
    for rival in ("numpy", "numba", "jax"):
        for size in sizes:
            for call in CALLS:
                if found := ratios(measured, size, call, rival):
                    ahead = sum(ratio >= 1 for ratio in found.values())
                    worst = min(found, key=found.get)
                    lines.append(f"| {TITLES[rival]} | {size} | {call} | {len(found)} | {ahead} | {mean(found.values()):.2f} | {found[worst]:.2f} ({worst}) |")
    return lines


def _cell(times):
    if "bh" not in times or "numpy" not in times:
        return "–"
    others = "".join(f", {TITLES[form]} {1e3 * times[form]:.3g}" for form in ("numba", "jax") if form in times)
    return f"{1e3 * times['numpy']:.3g} / {1e3 * times['bh']:.3g} = {times['numpy'] / times['bh']:.2f}{others}"


def programs(measured, sizes):
    """All programs' times."""
    heads = [f"{size}, {call}" for size in sizes for call in CALLS]
    lines = [f"| program | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for name, kinds in measured.items():
        cells = [_cell(kinds.get(size, {}).get(call, {})) for size in sizes for call in CALLS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def behind(measured, causes):
    """The programs in which bh is not the fastest."""
    rows = slower(measured)
    counted = Counter(causes[name, size, call][0] for _, name, size, call, _ in rows if (name, size, call) in causes)
    lines = [f"{count} of these calls spend most of their time in: {kind}.\n" for kind, count in counted.most_common()]
    lines += ["| bh's time over the fastest | program | size | call | fastest | where bh's time goes |", "|---|---|---|---|---|---|"]
    for loss, name, size, call, form in rows:
        lines.append(f"| {loss:.2f} | {name} | {size} | {call} | {TITLES[form]} | {causes.get((name, size, call), ('', ''))[1]} |")
    return lines


PAGE = """# A corpus of programs

{count} programs in plain NumPy, as people write them in courses, papers and suites, none of them for bh: `benches/corpus` has
them by subject, each with its source in its first lines. They run unmodified. *First* is the first call of a program in a new
process, without imports, the start of bh's stack, and input data; *later* is the median of the calls that follow. Each result is compared with NumPy's.
Write this page anew with

    benches/corpus/run.py --table docs/corpus.md

{setting}

{defects}

## Beside each rival

The mean of a rival's time over bh's time: above 1, bh is faster.

{summary}

## All programs

Milliseconds of NumPy / milliseconds of bh = how many times as fast bh is; where there is a version for Numba or JAX, its
milliseconds follow. A first call with Numba or JAX includes their compiling.

{programs}

## Where bh is not the fastest

A trace and a profile by lines say where the time goes, in another process.

{behind}
"""


def page(measured, causes, defects, sizes, setting):
    """The whole page."""
    if defects:
        wrong = "\n".join(["Defects:", "", *(f"* {name}, {size}, {TITLES[form]}: {text}" for name, size, form, text in defects)])
    else:
        wrong = "All results agree."
    join = "\n".join
    return PAGE.format(
        count=len(measured),
        setting=setting,
        defects=wrong,
        summary=join(summary(measured, sizes)),
        programs=join(programs(measured, sizes)),
        behind=join(behind(measured, causes)),
    )
