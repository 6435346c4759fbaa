"""Programs that are interrupted: `python -m soaking.interrupts FIRST COUNT` prints those that do not end by a KeyboardInterrupt.

Each runs in a process of its own and gets a SIGINT while it computes or waits. No time is measured: a program that has not ended after
a minute hangs.
"""

import os
import random
import signal
import subprocess
import sys
import time

BEGIN = "import numpy, bh, bh as np\n"
# Statements that work without end, and those that wait for it.
WORK = (
    "x = np.ones(3_000_000)\nfor _ in range({n}): x = np.sin(x) + np.exp(-x)",
    "f = bh.vectorize(endless)\nx = f(np.arange(100_000.0))",
    "x = np.linalg.eigvals(np.random.default_rng(0).random(({n}, {n}))).real",
    "x = np.ones((1500, 1500))\nfor _ in range({n}): x = x @ x / 1500",
    "x = np.sort(np.random.default_rng(0).random(3_000_000))\nfor _ in range({n}): x = np.sort(x[::-1] * 1.0)",
)
WAITS = ("numpy.asarray(x)", "x.sum().item()", "float(x[0])", "x.tolist()", "repr(x)", "bh.wait(x)", "bh.flush()", "memoryview(x)", "bool((x > 0).all())", "np.nonzero(x)", "x.copy().tobytes()", "print(x)")
ENDLESS = "def endless(x):\n    while x < 1e30:\n        x = x * 1.0000001 - x * 1e-7\n    return x\n"


def program(seed):
    """The text of a program."""
    chance = random.Random(seed)
    work = chance.choice(WORK).replace("{n}", str(chance.choice((400, 1200))))
    return f"{BEGIN}{ENDLESS}print('ready', flush=True)\nwhile True:\n" + "".join(f"    {line}\n" for line in [*work.splitlines(), chance.choice(WAITS)])


def difference(seed):
    """The error of the program of a seed; none if it ends as asked."""
    text, chance = program(seed), random.Random(seed)
    command = [sys.executable, "-c", text]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    if started.stdout.readline() != "ready\n":
        return started.communicate()[1]
    time.sleep(chance.uniform(0, 2))
    started.send_signal(signal.SIGINT)
    try:
        _, errors = started.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        started.kill()
        started.communicate()
        return "it goes on"
    return None if started.returncode == -signal.SIGINT and "KeyboardInterrupt" in errors else f"{started.returncode}: {errors[-500:]}"


def differences(first, count):
    """The programs of these seeds that do not end: seeds, texts, and what they do."""
    for seed in range(first, first + count):
        found = difference(seed)
        if found:
            yield seed, program(seed), found


if __name__ == "__main__":
    for finding in differences(*map(int, sys.argv[1:3])):
        print(*finding, sep="\n    ")
