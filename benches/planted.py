#!/usr/bin/env python3
"""Ten programs with a planted NaN, infinity, overflow or cancellation: times without and with the check that finds it, where nothing is planted.

    benches/planted.py [--size N] [--rounds N]

Times are the least processor times of a process for each program. `bh-bridge-numpy/tests/test_planted.py` plants the bad numbers.
"""

import argparse
import linecache
import os
import subprocess
import sys
import tempfile
import time

RANKS = """
[stacks]
default = "simulated"
simulated = ["filter", "cluster", "fuser", "node", "ve-cpu"]
[components.cluster]
ranks = 3
small_bytes = 1024
"""

DEVICE = {"BH_STACK": "opencl", "BH_OPENCL_DEVICE": "cpu", "BH_OPENCL_PLACEMENT": "device"}

# The check, variables, and the text, whose marked line makes the first bad number if `plant` holds.
PROGRAMS = {
    "in place": (
        "nan",
        {},
        """
a = np.linspace(1, 3, size)
a *= 2
if plant: a[size // 2] = -4
np.sqrt(a, out=a)  # here
a += 1
""",
    ),
    "in a tile": (
        "nan",
        {"BH_VE_CPU_TIME_TILES": "8"},
        """
side = int(size ** 0.5)
u = np.ones((side, side))
if plant: u[side // 2, side // 3] = -9
for step in range(24):
    v = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    u[1:-1, 1:-1] = np.sqrt(v)  # here
""",
    ),
    "on a rank": (
        "overflow",
        {"BH_CONFIG": RANKS},
        """
a = np.arange(size)
b = a * 3
if plant: b[-3] = 2**62
c = b + b  # here
d = c - a
""",
    ),
    "on a device": (
        "inf",
        DEVICE,
        """
a = np.linspace(1, 2, size)
if plant: a[7] = 0
b = 1 / a  # here
c = b * 2
""",
    ),
    "in a function of scalars": (
        "nan",
        {},
        """
def grown(x):
    n = 0
    while n < 30 and x > 0.1:
        x = x * x
        n += 1
    return x - x

a = np.linspace(0.5, 0.9, size)
if plant: a[3] = 1.5
b = np.vectorize(grown, otypes=[float])(a)  # here
""",
    ),
    "in a loop of 1,000 turns": (
        "cancellation",
        {},
        """
a = np.linspace(1, 1.5, size)
total = np.zeros(size)
for turn in range(1_000):
    b = a + 0.5 ** (turn / 20)
    c = b - a if plant else b + a  # here
    total += c
""",
    ),
    "masked": (
        "nan",
        {},
        """
a = np.linspace(1, 3, size)
a[6] = -5
if plant: a[5] = -1
b = np.zeros(size)
np.sqrt(a, out=b, where=a > -2)  # here
b += 1
""",
    ),
    "in a fold": (
        "nan",
        {},
        """
a = np.ones((size // 100, 100))
a[3, 5] = np.inf
if plant: a[3, 7] = -np.inf
total = a.sum(axis=1)  # here
mean = total / 100
""",
    ),
    "in a product": (
        "nan",
        {},
        """
side = int(size ** 0.4)
a, b = np.ones((side, side)), np.ones((side, side))
a[3, 5] = np.inf
if plant: b[5, 7] = 0
c = a @ b  # here
""",
    ),
    "after a cast": (
        "inf",
        {},
        """
a = np.linspace(1, 2, size)
if plant: a[9] = 1e200
b = a.astype("f4")  # here
c = b * b
""",
    ),
}


def environment(name, folder):
    """The variables of a program, as a process needs them; a configuration becomes a file of a folder."""
    variables = dict(PROGRAMS[name][1])
    if text := variables.pop("BH_CONFIG", None):
        variables["BH_CONFIG"] = os.path.join(folder, "planted.toml")
        with open(variables["BH_CONFIG"], "w") as file:
            file.write(text)
    return {**os.environ, **variables}


def place(name):
    """The number of the marked line."""
    return 1 + next(number for number, line in enumerate(PROGRAMS[name][2].splitlines()) if line.endswith("# here"))


def execute(name, size, plant):
    """Runs a program to the end of its work."""
    import bh

    text = PROGRAMS[name][2]
    # Functions of scalars are read from their source.
    linecache.cache["planted.py"] = (len(text), None, text.splitlines(True), "planted.py")
    names = {"np": bh, "size": size, "plant": plant}
    exec(compile(text, "planted.py", "exec"), names)
    # Results that nobody reads may never be computed.
    bh.wait(*(value for value in names.values() if isinstance(value, bh.ndarray)))
    bh.flush()


def measure(name, size, rounds):
    """The least times without and with the check, in milliseconds."""
    import bh

    least = {}
    for turn in range(2 * rounds + 4):
        bh.check(*([PROGRAMS[name][0]] if turn % 2 else []))
        begin = time.process_time()
        execute(name, size, False)
        elapsed = time.process_time() - begin
        bh.check()
        # The first of each plan and compile.
        if turn > 3:
            least[turn % 2] = min(least.get(turn % 2, elapsed), elapsed)
    return least[0] * 1e3, least[1] * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(*measure(options.only, options.size, options.rounds))
        return
    print(f"{'program':26} {'check':13} {'without':>9} {'with':>9}  ratio   (ms, {options.size} elements)")
    with tempfile.TemporaryDirectory() as folder:
        for name, (check, *_) in PROGRAMS.items():
            command = [sys.executable, __file__, "--size", str(options.size), "--rounds", str(options.rounds), "--only", name]
            done = subprocess.run(command, env=environment(name, folder), capture_output=True, text=True)
            if done.returncode:
                print(f"{name:26} {check:13} {done.stderr.splitlines()[-1]}")
                continue
            without, checked = map(float, done.stdout.split())
            print(f"{name:26} {check:13} {without:9.2f} {checked:9.2f}  {checked / without:5.2f}", flush=True)


if __name__ == "__main__":
    main()
