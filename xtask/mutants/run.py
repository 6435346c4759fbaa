#!/usr/bin/env python3
"""Wakes mutants one by one and runs their crate's tests until one fails or hangs; needs Python alone, and no cargo.

`cargo xtask mutants --stage DIR` puts it beside the test programs. Run it in the repository: DIR/run.py --out RESULTS.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
# A test program that takes more seconds than this without a mutant is left out.
LONGEST = 75
# A test hangs if it takes this many times as long as without a mutant, and this many seconds more.
TIMES, SECONDS = 3, 5


class Place:
    """Processors that one worker has to itself, as far as there are enough: two, so that threads have something to do."""

    def __init__(self, workers):
        self.all = sorted(os.sched_getaffinity(0))
        self.workers = workers
        self.own = threading.local()
        self.next = iter(range(1 << 30))

    def cores(self):
        if not hasattr(self.own, "at"):
            self.own.at = next(self.next)
        first = self.own.at * max(1, len(self.all) // self.workers)
        return {self.all[(first + k) % len(self.all)] for k in range(2)}


def run_test(test, mutant, place, limit):
    """Runs one test program; returns how it ended ("passed", "hung", or what failed) and its seconds."""
    scratch = tempfile.mkdtemp(prefix="mutant-")
    environment = {
        **os.environ,
        "BH_TEST_LIBRARIES": str(HERE / "lib"),
        "BH_TEST_ROOT": os.getcwd(),
        "RUST_TEST_THREADS": "2",
        "RUST_BACKTRACE": "0",
        "HOME": scratch,
        "TMPDIR": scratch,
        "XDG_CACHE_HOME": scratch,
        "BH_MUTANT": str(mutant),
        **test.get("environment", {}),
    }
    command = [str(HERE / "tests" / test["program"]), "-q", *filter(None, [test["filter"]])]
    for name in test.get("skip", []):
        command += ["--skip", name]
    cores = place.cores()
    begin = time.monotonic()
    with open(os.path.join(scratch, "output"), "w+b") as output:
        process = subprocess.Popen(
            command, cwd=test["folder"], env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True, preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
        try:
            code = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            code = None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    shutil.rmtree(scratch, ignore_errors=True)
    seconds = time.monotonic() - begin
    if code is None:
        return "hung", seconds
    if code == 0:
        return "passed", seconds
    failed = re.findall(r"^---- (\S+) stdout ----", text, re.M) or [f"ended with {code}"]
    return ", ".join(failed[:3]), seconds


def baseline(tests, place, workers):
    """The seconds of each test without a mutant, all at once as later; tests that fail here are left out."""
    seconds = {}
    unique = {test["test"]: test for test in tests}
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        runs = {name: pool.submit(run_test, test, 0, place, LONGEST) for name, test in unique.items()}
        for name, future in sorted(runs.items(), key=lambda item: item[0]):
            outcome, taken = future.result()
            print(f"{name:32} {taken:6.1f} s {'' if outcome == 'passed' else 'LEFT OUT: ' + outcome}", flush=True)
            if outcome == "passed":
                seconds[name] = taken
    return seconds


def wake(mutant, tests, seconds, place, end):
    """Runs a mutant's tests, the shortest first."""
    result = {**mutant, "outcome": "survived", "seconds": 0.0}
    mine = [test for test in tests if test["crate"] == mutant["crate"] and test["test"] in seconds]
    for test in sorted(mine, key=lambda test: seconds[test["test"]]):
        if time.monotonic() > end:
            return {**result, "outcome": "not run"}
        without = seconds[test["test"]]
        limit = max(TIMES * without, without + SECONDS)
        outcome, taken = run_test(test, mutant["number"], place, max(1, min(limit, end - time.monotonic())))
        if outcome == "hung" and taken < limit:
            return {**result, "outcome": "not run"}
        result["seconds"] = round(result["seconds"] + taken, 2)
        if outcome != "passed":
            return {**result, "outcome": "hung" if outcome == "hung" else "killed", "by": test["test"], "what": outcome}
    return result


def read_unchanged(path):
    """Mutants that change nothing, by key: unindented lines, each followed by an indented reason."""
    reasons, waiting = {}, []
    for line in path.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line[0].isspace():
            reasons.update((key, line.strip()) for key in waiting)
            waiting = []
        else:
            waiting.append(line.strip())
    return reasons


def summary(results, reasons):
    """A table by crate, and what survived."""
    lines = ["| crate | mutants | killed | of them hung | change nothing | survived |", "|---|---|---|---|---|---|"]
    names = sorted({result["crate"] for result in results})
    for name in [*names, None]:
        mine = [result for result in results if name in (None, result["crate"])]
        count = lambda *which: sum(result["outcome"] in which for result in mine)
        listed = sum(result["outcome"] == "survived" and result["key"] in reasons for result in mine)
        lines.append(
            f"| {name or 'all'} | {len(mine) - count('not run')} | {count('killed', 'hung')} | {count('hung')} "
            f"| {listed} | {count('survived') - listed} |"
        )
    killed = sorted(result["seconds"] for result in results if result["outcome"] in ("killed", "hung"))
    if killed:
        median, most = killed[len(killed) // 2], killed[len(killed) * 95 // 100]
        lines += ["", f"Killed after {median:.1f} s (median), {most:.1f} s (95 of 100), {killed[-1]:.1f} s (the last)."]
    lines += ["", "Survived:", ""]
    for result in results:
        if result["outcome"] == "survived" and result["key"] not in reasons:
            lines.append(f"{result['number']:4} line {result['line']:4} {result['key']}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="where the results go")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--minutes", type=float, default=1e4, help="mutants that have not ended by then are not counted")
    parser.add_argument("--mutants", help="numbers, separated by commas")
    given = parser.parse_args()
    plan = json.loads((HERE / "plan.json").read_text())
    end = time.monotonic() + 60 * given.minutes
    tree = pathlib.Path(plan["tree"])
    if not tree.exists():
        # Test programs know some files by the folder that they were built in.
        tree.parent.mkdir(parents=True, exist_ok=True)
        tree.symlink_to(os.getcwd())
    place = Place(given.jobs)
    chosen = {int(number) for number in given.mutants.split(",")} if given.mutants else None
    mutants = [mutant for mutant in plan["mutants"] if chosen is None or mutant["number"] in chosen]
    crates = {mutant["crate"] for mutant in mutants}
    tests = [test for test in plan["tests"] if test["crate"] in crates]
    seconds = baseline(tests, place, given.jobs)
    # Crates with long tests first, so that the last ones to end are short.
    most = {name: sum(seconds.get(test["test"], 0) for test in tests if test["crate"] == name) for name in crates}
    mutants.sort(key=lambda mutant: -most[mutant["crate"]])
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        runs = [pool.submit(wake, mutant, tests, seconds, place, end) for mutant in mutants]
        results = [run.result() for run in runs]
    results.sort(key=lambda result: result["number"])
    given.out.mkdir(parents=True, exist_ok=True)
    report = {"tests": seconds, "mutants": results}
    (given.out / "mutants.json").write_text(json.dumps(report, indent=1) + "\n")
    text = summary(results, read_unchanged(HERE / "unchanged.txt"))
    (given.out / "mutants.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
