#!/usr/bin/env python3
"""Ranks on several hosts, which are network namespaces of this machine with links of a chosen rate and delay (Linux, as root).

    benches/hosts.py [PROGRAM[=SIZE]...] [--hosts 2] [--gigabits 1] [--delays 0,0.2,1] [--rounds N] [--json FILE]

The package `bh` must be importable, and mpirun be Open MPI's. Figures are milliseconds of a step whose value is read: of one
rank without links, and for each delay (milliseconds, one way) of a rank a host as bh runs, and without one of its ways to need
links less: `send each` iteration its rows of neighbours (ahead_percent = 0), `wait` for rows before anything is computed
(overlap_bytes without end), factors of products in `parts`, of which none stays (keep_bytes = 0). A program has the ways that concern it. `link` is the time of a message there and back, and
the rate that TCP reaches. All hosts share this machine's cores: compare ways, not numbers of hosts.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import links
import ranks

SIZES = {"heat": 1000, "turns": 1000, "water": 700, "product": 600, "black_scholes": 1000}
WAYS = {
    "bh": {},
    "send each": {"BH_CLUSTER_AHEAD_PERCENT": "0"},
    "wait": {"BH_CLUSTER_OVERLAP_BYTES": str(1 << 40)},
    "parts": {"BH_CLUSTER_KEEP_BYTES": "0"},
}
# The ways that concern a program besides bh's own.
NEIGHBOURS, FACTORS = ["send each", "wait"], ["parts"]
CONCERNED = {"heat": NEIGHBOURS, "turns": NEIGHBOURS, "water": NEIGHBOURS, "product": FACTORS, "renewed": FACTORS}
PORT, MESSAGES, BYTES = 7117, 20, 1 << 24


def answer():
    """The other end of the measurement of a link: sends back single bytes, then counts the bytes of a stream."""
    with socket.create_server(("", PORT)) as server:
        print("ready", flush=True)
        peer, _ = server.accept()
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(MESSAGES):
            peer.sendall(peer.recv(1))
        left = BYTES
        while left:
            left -= len(peer.recv(min(left, 1 << 20)))
        peer.sendall(b"x")


def ask(address):
    """Seconds of a byte there and back, and bytes a second."""
    with socket.create_connection((address, PORT)) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        times = []
        for _ in range(MESSAGES):
            begin = time.perf_counter()
            peer.sendall(b"x")
            peer.recv(1)
            times.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        peer.sendall(bytes(BYTES))
        peer.recv(1)
        print(json.dumps([statistics.median(times), BYTES / (time.perf_counter() - begin)]))


def link():
    """The round trip and the rate between the first two hosts."""
    this = [sys.executable, __file__]
    with subprocess.Popen(links.on(1, [*this, "--answer"]), stdout=subprocess.PIPE, text=True) as other:
        other.stdout.readline()
        asked = subprocess.run(links.on(0, [*this, "--ask", links.address(1)]), check=True, capture_output=True, text=True)
    return json.loads(asked.stdout)


def step(prefix, name, size, rounds, **variables):
    """The least milliseconds of a step."""
    printed = ranks.run(prefix, ["--work", name, size, rounds, 1, 0], script=ranks.__file__, BH_VE_CPU_THREADS="1", **variables)
    return 1e3 * min(json.loads(printed.splitlines()[-1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", type=ranks.sized, metavar="PROGRAM[=SIZE]", help=f"some of: {', '.join(ranks.PROGRAMS)}")
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--gigabits", type=float, default=1.0, help="rate of a link in Gbit/s")
    parser.add_argument("--delays", type=lambda text: [float(one) for one in text.split(",")], default=[0.0, 0.2, 1.0], help="milliseconds, one way")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--ask", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.answer:
        return answer()
    if args.ask:
        return ask(args.ask)
    if os.geteuid():
        parser.error("namespaces of networks need root")
    programs = args.programs or list(SIZES.items())
    alone = {name: step([], name, size, args.rounds, BH_STACK="cpu") for name, size in programs}
    rows = []
    for delay in args.delays:
        with links.hosts(args.hosts, args.gigabits * 1e9 / 8, delay / 1e3):
            trip, rate = link()
            print(f"delay {delay} ms: link {1e3 * trip:.2f} ms there and back, {8e-9 * rate:.2f} Gbit/s", flush=True)
            for name, size in programs:
                ways = ["bh", *CONCERNED.get(name, [])]
                found = {way: step(links.launcher(args.hosts), name, size, args.rounds, BH_STACK="cluster", **WAYS[way]) for way in ways}
                print(f"  {name:>14} {size:>6}  one rank {alone[name]:9.2f}  " + "  ".join(f"{way} {ms:9.2f}" for way, ms in found.items()), flush=True)
                rows.append({"program": name, "size": size, "delay": delay, "trip": trip, "rate": rate, "alone": alone[name], "ways": found})
    if args.json:
        args.json.write_text(json.dumps({"hosts": args.hosts, "gigabits": args.gigabits, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
