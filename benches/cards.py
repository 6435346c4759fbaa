#!/usr/bin/env python3
"""Programs on one card and on several cards of a host, in one process and as ranks, with CUDA and with OpenCL.

    cards.py                                        # all programs, drivers and forms on 1, 2, 4 and 8 cards, as far as there are cards
    cards.py heat sort --drivers cuda --forms gpus  # some of them
    cards.py heat=300 --device cpu --cards 1,2      # on simulated cards: OpenCL on processors, small sizes
    cards.py --suites --out DIR                     # conformance and random programs on all cards, from a staged folder

Form `gpus` is one process that splits arrays over the cards; `ranks` is one process for each card under mpirun. Strong: the same problem on
more cards. Weak: the same problem for each card. A figure is the median of some rounds, in milliseconds of a step. A factor says how many
times as fast as one card a program is (strong), or which part of its speed each card keeps (weak). `moved` are bytes that cards sent to each
other in a step, `least` those that the best distribution by rows needs. Each program is checked against its result on one card.

One process runs all programs of a driver, form and number of cards. If a program exceeds its time limit or crashes, the figure is left out,
and a new process runs the remaining programs. Results go to DIR/cards.json and DIR/cards.md after each figure.
"""

import argparse
import gc
import json
import math
import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STAGE = ROOT / ".stage"
# Steps between two reads in programs that need no value of each step.
STEPS = 10
MEANS, FEATURES = 16, 8


class Program:
    """A program, its size, how size grows with the cards, and bytes that `cards` cards of one problem exchange in a step."""

    def __init__(self, setup, size, power, least, tolerance, steps=1):
        self.setup, self.size, self.power, self.least, self.tolerance, self.steps = setup, size, power, least, tolerance, steps

    def weak(self, size, cards):
        """The size that gives each card about as much work as one card has. Large sizes have small prime factors."""
        exact = size * cards**self.power
        return round(exact) if size <= 640 or abs(exact / 64 - round(exact / 64)) < 1e-9 else round(exact / 640) * 640


def heat(np, n):
    """Jacobi steps of the mean of five points; the change is read every ten steps."""
    grid = np.zeros((n, n))
    grid[:, 0] = grid[:, -1] = grid[-1, :] = -273.15
    grid[0, :] = 40.0
    center, north, south, west, east = grid[1:-1, 1:-1], grid[:-2, 1:-1], grid[2:, 1:-1], grid[1:-1, :-2], grid[1:-1, 2:]

    def steps():
        for _ in range(STEPS):
            work = 0.2 * (center + north + south + west + east)
            delta = np.sum(np.abs(work - center))
            center[:] = work
        return delta

    return steps, lambda: np.sum(grid)


def momentum(flow, height):
    return flow * flow / height + 4.9 * height * height


def shallow_water(np, n):
    """The two-step Lax-Wendroff scheme with reflecting walls; one element is read every ten steps."""
    y, x = (np.arange(n) - n // 3)[:, None].astype(np.float64), (np.arange(n) - n // 2)[None, :].astype(np.float64)
    h = 1 + 0.5 / (1 + 100 * (y * y + x * x) / (n * n))
    u, v = np.zeros_like(h), np.zeros_like(h)
    dt = 0.02

    def step():
        rows, r = np.s_[1:, 1:-1], np.s_[:-1, 1:-1]
        hx = (h[rows] + h[r]) / 2 - dt / 2 * (u[rows] - u[r])
        ux = (u[rows] + u[r]) / 2 - dt / 2 * (momentum(u[rows], h[rows]) - momentum(u[r], h[r]))
        vx = (v[rows] + v[r]) / 2 - dt / 2 * (u[rows] * v[rows] / h[rows] - u[r] * v[r] / h[r])
        columns, c = np.s_[1:-1, 1:], np.s_[1:-1, :-1]
        hy = (h[columns] + h[c]) / 2 - dt / 2 * (v[columns] - v[c])
        uy = (u[columns] + u[c]) / 2 - dt / 2 * (u[columns] * v[columns] / h[columns] - u[c] * v[c] / h[c])
        vy = (v[columns] + v[c]) / 2 - dt / 2 * (momentum(v[columns], h[columns]) - momentum(v[c], h[c]))
        inside = np.s_[1:-1, 1:-1]
        h[inside] -= dt * (ux[1:] - ux[:-1]) + dt * (vy[:, 1:] - vy[:, :-1])
        fx, fy = momentum(ux, hx), uy * vy / hy
        u[inside] -= dt * (fx[1:] - fx[:-1]) + dt * (fy[:, 1:] - fy[:, :-1])
        fx, fy = ux * vx / hx, momentum(vy, hy)
        v[inside] -= dt * (fx[1:] - fx[:-1]) + dt * (fy[:, 1:] - fy[:, :-1])
        for grid, down, across in ((h, 1, 1), (u, -1, 1), (v, 1, -1)):
            grid[0, 1:-1] = down * grid[1, 1:-1]
            grid[-1, 1:-1] = down * grid[-2, 1:-1]
            grid[1:-1, 0] = across * grid[1:-1, 1]
            grid[1:-1, -1] = across * grid[1:-1, -2]

    def steps():
        for _ in range(STEPS):
            step()
        return h[n // 3, n // 2]

    return steps, lambda: np.sum(h) + np.sum(np.abs(u)) + np.sum(np.abs(v))


def black_scholes(np, n):
    """Prices of European options; their sum is read in each step."""
    spot = 58.0 + 4.0 * np.linspace(0.0, 1.0, n)
    turn = [0]

    def normal(x):
        size = np.abs(x)
        k = 1 / (1 + 0.2316419 * size)
        series = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
        tail = 0.3989422804014327 * np.exp(-0.5 * size * size) * series
        return np.where(x < 0, tail, 1 - tail)

    def step():
        years = 0.25 - turn[0] % 300 * (0.25 / 365)
        turn[0] += 1
        spread = 0.3 * math.sqrt(years)
        d1 = (np.log(spot / 65.0) + (0.08 + 0.045) * years) / spread
        return np.sum(spot * normal(d1) - 65.0 * math.exp(-0.08 * years) * normal(d1 - spread))

    return step, step


def nbody(np, n):
    """Gravity between all pairs; one position is read every five steps."""
    axis = np.linspace(0.0, 1.0, n).astype(np.float32)
    mass = axis + np.float32(1)
    position = [np.sin(axis * np.float32(angle)) for angle in (97.0, 193.0, 389.0)]
    velocity = [np.zeros(n, np.float32) for _ in range(3)]
    dt, soft = np.float32(0.0001), np.float32(0.01)

    def steps():
        for _ in range(STEPS // 2):
            dx, dy, dz = (x[None, :] - x[:, None] for x in position)
            square = dx * dx + dy * dy + dz * dz + soft
            pull = mass[None, :] / (square * np.sqrt(square))
            for v, d in zip(velocity, (dx, dy, dz)):
                v += dt * np.sum(pull * d, axis=1)
            for x, v in zip(position, velocity):
                x += dt * v
        return position[0][n // 3]

    return steps, lambda: sum(np.sum(np.abs(v)) for v in velocity)


def factors(np, n):
    line = np.linspace(-1.0, 1.0, n).astype(np.float32)
    return np.cos(line[:, None] * np.float32(30) + line[None, :]), np.sin(line[:, None] - line[None, :] * np.float32(20))


def product(np, n):
    """A product of two matrices; one element is read."""
    a, b = factors(np, n)
    return lambda: (a @ b)[n // 2, n // 3], lambda: np.sum(np.abs(a @ b))


def renewed(np, n):
    """The same with a right factor that changes in each step."""
    a, b = factors(np, n)

    def step():
        b[:] = b * np.float32(0.9999)
        return (a @ b)[n // 2, n // 3]

    return step, lambda: np.sum(np.abs(a @ b))


def k_means(np, n):
    """A step of Lloyd's method by products; one mean is read."""
    line = np.arange(n).astype(np.float64)
    x = np.stack([np.sin(line * (0.7 + 0.1 * feature)) for feature in range(FEATURES)], axis=1)
    means = [x[:: max(1, n // MEANS)][:MEANS] * 1.0]

    def step():
        own = means[0]
        distances = (own * own).sum(1)[None, :] - 2 * (x @ own.T)
        nearest = np.argmin(distances, axis=1)
        belongs = (nearest[:, None] == np.arange(MEANS)[None, :]).astype(x.dtype)
        means[0] = (belongs.T @ x) / np.maximum(belongs.sum(0), 1)[:, None]
        return means[0][3, 5]

    return step, lambda: np.sum(np.abs(means[0]))


def fft2(np, n):
    """A complex Fourier transform of two axes; one element is read."""
    line = np.linspace(0.0, 1.0, n)
    x = np.sin(line[:, None] * 50.0) * line[None, :] + 1j * np.cos(line[None, :] * 70.0)
    return lambda: np.fft.fft2(x)[3, 5].real, lambda: np.sum(np.abs(np.fft.fft2(x)))


def sort(np, n):
    """A sort of random numbers; one element is read. The sorted array stays, as otherwise a selection of this element is enough."""
    x, kept = np.random.default_rng(1).random(n), [None]

    def step():
        kept[0] = np.sort(x)
        return kept[0][n // 3]

    return step, lambda: np.sum(kept[0][:: max(1, n // 1000)])


def columns(bytes_of_all):
    """Bytes of a redistribution: each card keeps what it has already."""
    return lambda n, cards: bytes_of_all(n) * (cards - 1) // cards


SMALL_MEANS = 8 * (MEANS * FEATURES + MEANS)
PROGRAMS = {
    "heat": Program(heat, 16384, 1 / 2, lambda n, cards: 2 * (cards - 1) * 8 * n, 1e-9, STEPS),
    "shallow_water": Program(shallow_water, 8192, 1 / 2, lambda n, cards: 6 * (cards - 1) * 8 * n, 1e-9, STEPS),
    "black_scholes": Program(black_scholes, 1 << 27, 1, lambda n, cards: 8 * (cards - 1), 1e-9),
    "nbody": Program(nbody, 65536, 1 / 2, lambda n, cards: 3 * 4 * n * (cards - 1), 1e-3, STEPS // 2),
    "product": Program(product, 16384, 1 / 3, lambda n, cards: 0, 1e-4),
    "renewed": Program(renewed, 16384, 1 / 3, lambda n, cards: 4 * n * n * (cards - 1), 1e-4),
    "k_means": Program(k_means, 1 << 24, 1, lambda n, cards: (cards - 1) * (SMALL_MEANS + 8 * MEANS * FEATURES), 1e-9),
    "fft2": Program(fft2, 8192, 1 / 2, columns(lambda n: 16 * n * n), 1e-9),
    "sort": Program(sort, 1 << 27, 1, columns(lambda n: 8 * n), 1e-12),
}
BASELINES = ("cuda", "opencl")


def work():
    """A process on some cards: measures what its input names."""
    import bh as np

    stack = np._native.Stack()  # here ranks but the first begin to serve

    def sent():
        try:
            return sum(rank["bytes"] for rank in json.loads(stack.message("cluster traffic")))
        except (RuntimeError, ValueError):
            return 0  # no cluster: one card

    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        name, size, warm, seconds, checks = line.split()
        try:
            program = PROGRAMS[name]
            begin = time.perf_counter()
            step, verify = program.setup(np, int(size))
            float(step())
            first = time.perf_counter() - begin
            value = float(step())
            check = float(verify()) if checks == "1" else None
            stack.message("finish building")
            begin = time.perf_counter()
            while True:
                float(step())
                if time.perf_counter() - begin >= float(warm):
                    break
            before, times, begin = sent(), [], time.perf_counter()
            while len(times) < 3 or (time.perf_counter() - begin < float(seconds) and len(times) < 200):
                one = time.perf_counter()
                float(step())
                times.append(1e3 * (time.perf_counter() - one) / program.steps)
            moved = (sent() - before) / len(times) / program.steps
            answer = {"ms": statistics.median(times), "best": min(times), "rounds": len(times), "first_s": first, "moved": moved, "value": value, "check": check}
        except Exception as error:  # The parent records it; other programs may run.
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        step = verify = None
        gc.collect()
        print(json.dumps(answer), flush=True)


def launcher(path):
    """The launcher's command and what it needs; none if there is none."""
    found = shutil.which(path)
    if not found:
        return None
    told = subprocess.run([found, "--version"], capture_output=True, text=True)
    more = ["--oversubscribe", "--bind-to", "none"] if "Open MPI" in told.stdout + told.stderr else []
    return [found, *more]


class Worker:
    """A process, or ranks, on some cards, with a time limit for each answer."""

    def __init__(self, command, environment, limit):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=environment, start_new_session=True
        )
        self.rest = b""
        try:
            self.answer(limit)
        except Exception:
            self.end(kill=True)
            raise

    def answer(self, limit):
        end, told = time.monotonic() + limit, self.process.stdout.fileno()
        while b"\n" not in self.rest:
            ready, _, _ = select.select([told], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise TimeoutError(f"longer than {limit:.0f} s")
            part = os.read(told, 1 << 16)
            if not part:
                self.process.wait()
                self.log.seek(0)
                raise RuntimeError(f"ended with {self.process.returncode}: {self.log.read()[-400:].strip()}")
            self.rest += part
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def ask(self, words, limit):
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()
        return self.answer(limit)

    def end(self, kill=False):
        """Ends the process; its group, as launchers have children."""
        try:
            if kill:
                os.killpg(self.process.pid, 9)
            else:
                self.process.stdin.close()
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            try:
                os.killpg(self.process.pid, 9)
            except OSError:
                pass
            self.process.wait()
        self.log.close()


class Cards:
    """The figures to measure on this host."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder, self.rows = arguments, folder, []
        self.begin = time.monotonic()
        self.launcher = launcher(arguments.mpirun)
        self.figures = {"commit": arguments.commit, "command": " ".join(sys.argv), "rows": self.rows, "left_out": []}

    def environment(self, driver, form, cards):
        """One card without a cluster; several cards as siblings or as ranks."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("BH_STACK")}
        kept |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        upper = driver.upper()
        if self.arguments.device:
            # Simulated cards: one processor as several devices, which get shares although they announce no speed.
            kept |= {f"BH_{upper}_DEVICE": self.arguments.device, "POCL_DEVICES": " ".join(["pthread"] * cards)}
            kept |= {f"BH_{upper}_PLACEMENT": "device"}
            kept |= {"BH_CLUSTER_WEIGHTS": ",".join(["1"] * cards)} if cards > 1 else {}
        else:
            kept[f"BH_{upper}_DEVICE"] = ",".join(map(str, range(cards)))
        if cards == 1:
            return kept | {"BH_STACK": driver}
        if form == "ranks":
            return kept | {"BH_STACK": f"cluster-{driver}"}
        config = self.folder / f"{driver}.toml"
        config.write_text(f'[stacks]\ncards = ["filter", "cluster", [["fuser", "node", "{driver}*", "ve-cpu"]]]\n')
        return kept | {"BH_CONFIG": str(config), "BH_STACK": "cards"}

    def worker(self, driver, form, cards):
        command = [sys.executable, __file__, "--work"]
        if form == "ranks" and cards > 1:
            command = [*self.launcher, "-n", str(cards), *command]
        return Worker(command, self.environment(driver, form, cards), self.arguments.limit)

    def time_left(self):
        return self.arguments.total - (time.monotonic() - self.begin)

    def measure(self, driver, form, cards):
        """All programs in one process, or a further one after each that has failed."""
        tasks = [(name, size, "strong") for name, size in self.arguments.programs]
        if cards > 1 and form in self.arguments.weak:
            tasks += [(name, PROGRAMS[name].weak(size, cards), "weak") for name, size in self.arguments.programs]
        worker = None
        for name, size, kind in tasks:
            row = {"program": name, "size": size, "kind": kind, "driver": driver, "form": form if cards > 1 else "one", "cards": cards}
            if self.time_left() <= 0:
                self.figures["left_out"].append(row)
                continue
            limit = min(self.arguments.limit, max(5.0, self.time_left()))
            try:
                worker = worker or self.worker(driver, form, cards)
                row |= worker.ask((name, size, self.arguments.warm, self.arguments.seconds, int(kind == "strong")), limit)
            except (TimeoutError, RuntimeError, OSError, ValueError) as error:
                row["error"] = str(error)
                if worker:
                    worker.end(kill=True)
                worker = None
            self.rows.append(self.compared(row))
            self.write()
        if worker:
            worker.end()

    def one(self, driver, name):
        """The row of one card."""
        found = (row for row in self.rows if row["cards"] == 1 and (row["driver"], row["program"]) == (driver, name) and "ms" in row)
        return next(found, None)

    def compared(self, row):
        """Adds the factor, the least bytes and whether the result agrees with that of one card."""
        program, cards, one = PROGRAMS[row["program"]], row["cards"], self.one(row["driver"], row["program"])
        row["least"] = program.least(row["size"], cards) if cards > 1 else 0
        if "ms" in row and one and cards > 1:
            # Work in units of one card's: sizes of weak problems are rounded.
            work = (row["size"] / one["size"]) ** (1 / program.power)
            row["factor"] = one["ms"] / row["ms"] * (work / cards if row["kind"] == "weak" else 1)
            if row["kind"] == "strong":
                same = [math.isclose(row[key], one[key], rel_tol=program.tolerance, abs_tol=program.tolerance) for key in ("value", "check")]
                row["agrees"] = all(same)
        shown = f"{row['ms']:10.3f} ms  moved {row['moved']:.0f} least {row['least']}" if "ms" in row else row.get("error", "no figure").replace("\n", " ")
        factor = f"  x{row['factor']:.2f}" if "factor" in row else ""
        state = "" if row.get("agrees", True) else f"  DIFFERS: {row['value']}, {row['check']} is not {one['value']}, {one['check']}"
        print(f"{row['driver']:6} {row['form']:5} {cards} {row['kind']:6} {row['program']:14} {row['size']:>10} {shown}{factor}{state}", flush=True)
        return row

    def table(self):
        """Markdown: a line for each program, driver, form and kind."""
        counts = sorted({row["cards"] for row in self.rows if row["cards"] > 1})
        heads = ["program", "cards' driver, form", "scaling", "one card, ms", *(f"{cards} cards, ms (factor)" for cards in counts), f"bytes moved in a step by {counts[-1] if counts else 1} cards (least)"]
        lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
        groups = {}
        for row in self.rows:
            if row["cards"] > 1:
                groups.setdefault((row["program"], row["driver"], row["form"], row["kind"]), {})[row["cards"]] = row
        for (name, driver, form, kind), by_cards in sorted(groups.items(), key=lambda group: (list(PROGRAMS).index(group[0][0]), group[0])):
            one, last = self.one(driver, name), by_cards[max(by_cards)]
            figures = [f"{row['ms']:.3g} ({row['factor']:.2f})" if row and "factor" in row else "–" for row in map(by_cards.get, counts)]
            moved = f"{last['moved']:,.0f} ({last['least']:,})" if "moved" in last else "–"
            lines.append("| " + " | ".join([name, f"{driver}, {form}", kind, f"{one['ms']:.3g}" if one else "–", *figures, moved]) + " |")
        return "\n".join(lines) + "\n"

    def write(self):
        self.arguments.out.mkdir(parents=True, exist_ok=True)
        (self.arguments.out / "cards.json").write_text(json.dumps(self.figures, indent=1) + "\n")
        (self.arguments.out / "cards.md").write_text(self.table())

    def suites(self):
        """The conformance suite and random programs on all cards and the cores, with each driver."""
        good, count = True, max(self.arguments.cards)
        for driver in self.arguments.drivers:
            given = {"BH_TEST_ROOT": str(ROOT), "BH_TEST_LIBRARIES": str(STAGE / "lib/bh"), "BH_TEST_DRIVER": driver, "BH_TEST_GROUP": "256"}
            given |= {"BH_TEST_DEVICE": self.arguments.device or ",".join(map(str, range(count))), "BH_TEST_DEVICES": " ".join(["card"] * count)}
            given |= {"BH_TEST_STEP": str(self.arguments.step)}
            given |= {"LD_LIBRARY_PATH": f"{STAGE / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
            command = [str(STAGE / "tests/bh-tests"), "opencl::devices_and_cores_share_the_work", "--exact"]
            limit = min(self.arguments.suite_limit, max(5.0, self.time_left()))
            try:
                run = subprocess.run(command, env={**os.environ, **given}, cwd=self.folder, capture_output=True, text=True, timeout=limit)
                code, text = run.returncode, run.stdout + run.stderr
            except (subprocess.TimeoutExpired, OSError) as error:
                code, text = 1, str(error)
            told = [line for line in text.splitlines() if "siblings" in line or line.startswith(("test ", "left out")) or "panicked" in line]
            row = {"driver": driver, "cards": count, "passed": code == 0, "step": self.arguments.step, "told": told or text[-1000:]}
            self.figures.setdefault("suites", []).append(row)
            print(f"-- suites, {driver}, {count} cards: {'passed' if code == 0 else 'FAILED'}", *(told or [text[-1000:]]), sep="\n   ", flush=True)
            good &= code == 0
            self.write()
        return good


def sized(text):
    """A program's name and size."""
    name, _, size = text.partition("=")
    if name not in PROGRAMS:
        raise argparse.ArgumentTypeError(f"unknown program {name}; there are {', '.join(PROGRAMS)}")
    return name, int(size or PROGRAMS[name].size)


def words(text):
    return [word for word in text.split(",") if word]


def present(driver):
    """How many cards a driver has."""
    code = "import bh; print(bh._native.Stack().message('devices'))"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "BH_STACK": driver}, capture_output=True, text=True)
    return sum("GPU" in line for line in done.stdout.splitlines()) if done.returncode == 0 else 0


def commit():
    """The commit of the libraries: of a package beside which it is written, of a staged folder, or of the repository."""
    for folder in [*map(Path, os.environ.get("PYTHONPATH", "").split(":")), STAGE]:
        if (folder / "commit").is_file():
            return (folder / "commit").read_text().strip()
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", type=sized, metavar="PROGRAM[=SIZE]", help=f"some of: {', '.join(PROGRAMS)}")
    parser.add_argument("--only", action="append", type=sized, metavar="PROGRAM[=SIZE]", help="this program; may be repeated")
    parser.add_argument("--drivers", type=words, default=list(BASELINES), help="default: cuda,opencl")
    parser.add_argument("--forms", type=words, default=["gpus", "ranks"], help="default: gpus,ranks")
    parser.add_argument("--cards", type=lambda text: [int(one) for one in words(text)], help="default: 1,2,4,8 up to the number of cards")
    parser.add_argument("--weak", type=words, default=["gpus"], metavar="FORMS", help="forms with problems that grow with the cards: %(default)s; '' for none")
    parser.add_argument("--device", help="key `device` of simulated cards: cpu")
    parser.add_argument("--mpirun", default="mpirun", help="the launcher of ranks: %(default)s")
    parser.add_argument("--warm", type=float, default=0.3, help="seconds before the first figure: %(default)s")
    parser.add_argument("--seconds", type=float, default=0.8, help="seconds of a figure's rounds, of which there are 3 to 200: %(default)s")
    parser.add_argument("--limit", type=float, default=45.0, help="seconds that a figure may take: %(default)s")
    parser.add_argument("--total", type=float, default=540.0, help="seconds after which the remaining figures are left out: %(default)s")
    parser.add_argument("--suites", action="store_true", help="conformance and random programs on all cards, instead of figures")
    parser.add_argument("--step", type=int, default=211, help="one conformance case in this many: %(default)s")
    parser.add_argument("--suite-limit", type=float, default=240.0, help="seconds that the suites of a driver may take: %(default)s")
    parser.add_argument("--commit", default=commit(), help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT") or "cards-results"))
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work()
        return 0
    arguments.out = arguments.out.resolve()
    arguments.programs = [*arguments.programs, *(arguments.only or [])] or [(name, program.size) for name, program in PROGRAMS.items()]
    if not arguments.device:
        sys.path.insert(0, str(ROOT / "benches/common"))
        import fresh

        fresh.enable_driver()
    if not arguments.cards:
        most = max(map(present, arguments.drivers))
        arguments.cards = [cards for cards in (1, 2, 4, 8) if cards <= max(1, most)]
    with tempfile.TemporaryDirectory() as folder:
        cards = Cards(arguments, Path(folder))
        if arguments.suites:
            return 0 if cards.suites() else 1
        if "ranks" in arguments.forms and not cards.launcher:
            print(f"no ranks: there is no {arguments.mpirun}", flush=True)
        # One card first, as the others are compared with it; then the largest numbers of cards.
        for count in sorted(arguments.cards, key=lambda count: (count > 1, -count)):
            for driver in arguments.drivers:
                for form in arguments.forms if count > 1 else ["one"]:
                    if form != "ranks" or cards.launcher:
                        cards.measure(driver, form, count)
        print(cards.table(), flush=True)
        print(f"{time.monotonic() - cards.begin:.0f} s, {len(cards.figures['left_out'])} figures left out", flush=True)
        bad = [row for row in cards.rows if "ms" not in row or not row.get("agrees", True)]
        return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
