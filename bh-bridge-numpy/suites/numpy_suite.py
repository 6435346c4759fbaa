"""`cargo xtask numpy-suite [numpy|cupy|scipy] [--only TEXT] [--jobs N]`: others' tests, run with bh in NumPy's place.

The tests of `numpy` are those of the installed NumPy; they are copied below the target directory, as `import numpy` means bh
only in modules that are not installed. `cupy_suite.py` and `scipy_suite.py` say where the others come from. Tests that fail with
NumPy itself does not count. `left.toml` names what is left, with its reason.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import cupy_suite
import numpy
import scipy_suite

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = "_core lib linalg fft random polynomial ma matrixlib".split()

# Files about NumPy's own build, its C interfaces and its internal parts, of which no array of bh is a part.
INTERNAL = """
_core/test_simd _core/test_simd_module _core/test_cpu_features _core/test_cpu_dispatcher _core/test_mem_policy
_core/test_limited_api _core/test_cython _core/test_hashtable _core/test_custom_dtypes _core/test_extint128 _core/test_api
_core/test_argparse _core/test_casting_unittests _core/test_conversion_utils _core/test_array_interface _core/test_nditer
_core/test_overrides _core/test_umath_accuracy _core/test_indexerrors_internal random/test_extending _core/test_multithreading
_core/test_mem_overlap _core/test_deprecations
""".split()


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(prog="cargo xtask numpy-suite", description=__doc__)
    parser.add_argument("suite", nargs="?", choices=SUITES, default="numpy", help="whose tests")
    parser.add_argument("--only", default="", help="only files in whose names this pattern is found")
    parser.add_argument("--directory", type=pathlib.Path, required=True, help="where copies and results go")
    parser.add_argument("--list", action="store_true", help="print every failing test, by cause")
    parser.add_argument("--seconds", type=int, default=900, help="the most time for a file")
    parser.add_argument("--jobs", type=int, default=1, help="files that run at a time")
    return parser.parse_args()


def prepare(directory):
    """Copies NumPy's tests with the data they read; returns the test files by their names."""
    source, tests = pathlib.Path(numpy.__file__).parent, directory / "tests"
    shutil.rmtree(tests, ignore_errors=True)
    found = {}
    for package in PACKAGES:
        shutil.copytree(source / package / "tests", tests / package, ignore=shutil.ignore_patterns("__pycache__", "__init__.py"))
        for file in sorted((tests / package).glob("test_*.py")):
            if f"{package}/{file.stem}" not in INTERNAL:
                found[f"{package}/{file.stem}"] = file
    shutil.copy(source / "conftest.py", tests / "conftest.py")
    return found


SUITES = {"numpy": prepare, "cupy": cupy_suite.prepare, "scipy": scipy_suite.prepare}


def run_file(library, file, results, seconds, tests=None):
    """The outcomes of a file's tests by name, with reasons; where a test ends the process, the others run in another one."""
    results.parent.mkdir(parents=True, exist_ok=True)
    results.unlink(missing_ok=True)
    outcomes = {}
    while True:
        before = len(outcomes)
        ended = run_process(library, file, results, seconds, tests, outcomes)
        for line in results.read_text().splitlines() if results.exists() else ():
            test, outcome, reason = json.loads(line)
            if outcome != "started" or test not in outcomes:
                outcomes[test] = ("failed" if outcome == "started" else outcome), reason
        if not ended or ended.startswith("more") or len(outcomes) == before:
            break
    if ended:
        outcomes[f"{file.name}::whole file"] = "failed", ended
    return outcomes


def run_process(library, file, results, seconds, tests, known):
    """Runs a file's tests but those whose outcomes are known; why the process ended early, or nothing."""
    environment = dict(os.environ, BH_SUITE_LIBRARY=library, BH_SUITE_RESULTS=str(results), BH_FALLBACK="silent")
    # Tests that need more memory are skipped, here as on NumPy.
    environment["NPY_AVAILABLE_MEM"] = "1GB"
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE), environment.get("PYTHONPATH", "")])
    if tests is not None:
        environment["BH_SUITE_TESTS"] = str(results.with_suffix(".tests"))
        results.with_suffix(".tests").write_text(json.dumps(tests))
    if known:
        environment["BH_SUITE_SKIPPED"] = str(results.with_suffix(".skipped"))
        results.with_suffix(".skipped").write_text(json.dumps(list(known)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "suite_plugin", "-p", "no:cacheprovider", "--tb=short", file.name]
    command += ["-m", os.environ["BH_SUITE_MARKS"]] if "BH_SUITE_MARKS" in os.environ else []
    try:
        process = subprocess.run(command, cwd=file.parent, env=environment, capture_output=True, text=True, timeout=seconds)
        return "" if process.returncode in (0, 1, 5) else f"the process ended with {process.returncode}: {process.stderr[-200:]}"
    except subprocess.TimeoutExpired:
        return f"more than {seconds} seconds"


def fail_too(tests, name, file, options):
    """Those of the tests that fail on NumPy; its outcomes are kept for the next run."""
    kept = options.directory / "numpy" / f"{name.replace('/', '.')}.kept"
    outcomes = json.loads(kept.read_text()) if kept.exists() else {}
    unknown = [test for test in tests if test not in outcomes]
    if unknown:
        found = run_file("numpy", file, kept.with_suffix(".json"), options.seconds, unknown)
        outcomes |= {test: found.get(test, ("passed",))[0] for test in unknown}
        kept.write_text(json.dumps(outcomes))
    return {test for test in tests if outcomes[test] == "failed"}


def cause_of(reason):
    """A failure's reason without what differs from test to test."""
    first = " ".join(reason.partition(" @ ")[0].split())[:160]
    return re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?(e[+-]?\d+)?", "N", first)


def left():
    """The tests that are left, as (pattern of names, reason)."""
    table = tomllib.loads((HERE / "left.toml").read_text())
    return [(re.compile(pattern), entry["reason"]) for entry in table["left"] for pattern in entry["tests"]]


def reason_for(test, known):
    """Why a test is left, if it is named."""
    return next((why for pattern, why in known if pattern.search(test)), None)


def table(totals, failures):
    """The rows of docs/conformance.md for each file that has failures: its tests, those named in `left.toml`, and the others."""
    known, named, others = left(), collections.Counter(), collections.Counter()
    for test in failures:
        (named if reason_for(test, known) else others)[test.partition("::")[0]] += 1
    rows = [(name, total, named[name], others[name]) for name, total in totals.items() if named[name] or others[name]]
    clean = [total for name, total in totals.items() if not named[name] and not others[name]]
    rows.append((f"{len(clean)} files without a failure", sum(clean), 0, 0))
    rows.append((f"all {len(totals)} files", sum(totals.values()), named.total(), others.total()))
    lines = ["| file | tests | named in `left.toml` | others |", "|---|---|---|---|"]
    lines += [f"| {f'`{name}`' if name in totals else name} | {total} | {few} | {rest} |" for name, total, few, rest in rows]
    return "\n".join(lines) + "\n"


def report(counts, failures, options):
    """Prints counts, what is left by reason, and the other failures by cause."""
    known, named, causes = left(), collections.Counter(), collections.defaultdict(list)
    for test, reason in sorted(failures.items()):
        why = reason_for(test, known)
        if why:
            named[why] += 1
        else:
            causes[cause_of(reason)].append((test, reason))
    print(f"\n{counts['passed']} passed, {counts['failed']} failed on NumPy too, {counts['skipped']} skipped; on bh only")
    print(f"{sum(named.values())} failed for the reasons in left.toml, {sum(map(len, causes.values()))} for others")
    for why, count in named.most_common():
        print(f"{count:5} {why}")
    print()
    for cause, tests in sorted(causes.items(), key=lambda item: -len(item[1])):
        print(f"{len(tests):5} {cause}")
        for test, reason in tests if options.list else tests[:2]:
            print(f"        {test}  {reason.rpartition(' @ ')[2]}")


def ran(files, options):
    """Each file's outcomes, and which of its failures NumPy has too, as the files end; the longest begin first."""

    def both(name):
        outcomes = run_file("bh", files[name], options.directory / "bh" / f"{name.replace('/', '.')}.json", options.seconds)
        failed = [test for test, (outcome, _) in outcomes.items() if outcome == "failed"]
        return name, outcomes, fail_too(failed, name, files[name], options)

    begun = sorted(files, key=lambda name: -files[name].stat().st_size) if options.jobs > 1 else files
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(both, name) for name in begun]):
            yield future.result()


def main():
    """Runs the files, each in a process of its own."""
    options = arguments()
    options.directory = options.directory.resolve() / options.suite
    options.directory.mkdir(parents=True, exist_ok=True)
    # Without a file that makes this the root of the tests, pytest leaves out the fixtures of folders above theirs.
    (options.directory / "pytest.ini").write_text("[pytest]\n")
    counts, failures, totals = collections.Counter(), {}, {}
    files = {name: file for name, file in SUITES[options.suite](options.directory).items() if re.search(options.only, name)}
    for name, outcomes, both in ran(files, options):
        failed = {test: reason for test, (outcome, reason) in outcomes.items() if outcome == "failed"}
        counts.update(outcome for test, (outcome, _) in outcomes.items() if test not in failed)
        counts["failed"] += len(both)
        totals[name] = len(outcomes)
        failures |= {f"{name}::{test.partition('::')[2] or test}": why for test, why in failed.items() if test not in both}
        print(f"{name}: {len(failed) - len(both)} of {len(outcomes)} fail on bh only", flush=True)
    report(counts, failures, options)
    (options.directory / "failures.json").write_text(json.dumps(failures, indent=0))
    (options.directory / "table.md").write_text(table({name: totals[name] for name in files}, failures))


if __name__ == "__main__":
    main()
