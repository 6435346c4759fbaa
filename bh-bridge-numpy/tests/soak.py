"""Random programs on many stacks, for as long as asked: `soak.py --minutes N --seed S --stacks NAMES --report FILE`.

Each program runs on NumPy and on every stack. A program that differs, raises or ends the process is kept, made smaller, and
written to the report with its seed, its stack and the settings. Stacks are names of `soaking/settings.py`, `all`
(all but OpenCL), `cpu`, `cluster` or `pairwise`.
"""

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from soaking import settings

HERE = Path(__file__).resolve().parent


def chosen(names):
    """The stacks that these names stand for."""
    pairs, found = settings.pairwise_stacks(), {}
    for name in names:
        groups = {"pairwise": pairs, "cpu": _named(lambda one: "cluster" not in one and "opencl" not in one), "cluster": _named(lambda one: "cluster" in one)}
        groups["all"] = {**groups["cpu"], **groups["cluster"], **pairs}
        found |= groups[name] if name in groups else {name: {**settings.NAMED, **pairs}[name]}
    return found


def _named(suits):
    return {name: value for name, value in settings.NAMED.items() if suits(name)}


class Soak:
    """The programs run and the findings so far."""

    def __init__(self, report, launcher=""):
        self.report, self.runs, self.findings, self.launcher = report, {}, [], shlex.split(launcher)

    def round(self, stacks, recorder, first, count, seconds, often=False):
        """Runs programs in a process of its own: all on the stacks that compile too, if `often`."""
        names = [name if often else f"{name}/{settings.turns(keys)}" for name, keys in stacks.items()]
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "config.toml"
            file.write_text(settings.configuration(stacks, recorder))
            command = [*self.launcher, sys.executable, "-W", "ignore", "-m", "soaking.worker", "--first", str(first), "--programs", str(count), "--seconds", str(seconds), *names]
            environment = {name: value for name, value in os.environ.items() if not name.startswith("BH_")}
            environment |= {"BH_CONFIG": str(file), "PYTHONPATH": os.pathsep.join(map(os.path.abspath, [HERE, *filter(None, sys.path)]))}
            with open(Path(directory) / "errors", "w+") as errors:
                try:
                    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=seconds + 120)
                    output, code = done.stdout, done.returncode
                except subprocess.TimeoutExpired as late:
                    output, code = (late.stdout or b"").decode(), "no end"
                errors.seek(0)
                self._note(output, code, errors.read()[-2000:], recorder)

    def _note(self, output, code, errors, recorder):
        last = None
        for line in output.splitlines():
            said = json.loads(line)
            if isinstance(said, list):
                last, stack = said, "pairwise" if said[0].startswith("pair-") else said[0]
                self.runs[stack] = self.runs.get(stack, 0) + 1
            else:
                self._found({**said, "recorder": recorder})
        if code != 0:
            if last is None:
                raise SystemExit(f"no program ran: {errors}")
            stack, seed = last
            self._found({"seed": seed, "stack": stack, "failure": f"the process ended: {code}", "errors": errors, "recorder": recorder})
        self.report.write_text(json.dumps({"runs": sum(self.runs.values()), "runs of stacks": self.runs, "findings": self.findings}, indent=1))

    def _found(self, finding):
        self.findings.append(finding)
        print(json.dumps(finding, indent=1).replace("\\n", "\n    "), flush=True)


def main():
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None, help="the first seed; a fresh one by default")
    parser.add_argument("--stacks", nargs="+", default=["all"])
    parser.add_argument("--report", type=Path, default=Path("soak.json"))
    parser.add_argument("--together", type=int, default=24, help="stacks of one process")
    parser.add_argument("--round", type=int, default=200, help="programs of one process")
    parser.add_argument("--launcher", default="", help="what starts each process, such as `mpirun -n 2`")
    parser.add_argument("--often", action="store_true", help="run stacks that compile on every program, not on a few")
    options = parser.parse_args()
    seed = random.randrange(1 << 40) if options.seed is None else options.seed
    stacks, soak = chosen(options.stacks), Soak(options.report, options.launcher)
    end, number = time.monotonic() + 60 * options.minutes, 0
    while time.monotonic() < end:
        # Each round takes the next stacks: all come up equally often, with all settings of the recorder.
        names = list(stacks)
        at = number * options.together % len(names)
        some = {name: stacks[name] for name in (names + names)[at : at + min(options.together, len(names))]}
        soak.round(some, settings.RECORDERS[number % len(settings.RECORDERS)], seed, options.round, end - time.monotonic(), options.often)
        seed += options.round
        number += 1
    for stack, count in sorted(soak.runs.items()):
        print(f"{count:>9} runs on {stack}")
    print(f"{sum(soak.runs.values())} runs, {len(soak.findings)} findings; next seed {seed}")
    return 1 if soak.findings else 0


if __name__ == "__main__":
    sys.exit(main())
