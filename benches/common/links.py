"""Hosts on one machine: network namespaces whose links have a rate and a delay of their own (Linux, as root).

Kernels often lack `netem`, so packets pass a process here: every host has a TUN device, and a packet leaves its host when the
link has sent those before it, and arrives a delay later.
"""

import contextlib
import ctypes
import fcntl
import heapq
import itertools
import os
import select
import signal
import struct
import subprocess
import sys
import time

NET = "10.77.0"
# Bytes of a packet; links of clusters have as much.
MTU = 9000
CLONE_NEWNET = 0x40000000
TUNSETIFF, TUN, NO_PACKET_INFO = 0x400454CA, 0x0001, 0x1000
# A link holds this many seconds of packets; others are lost, and TCP sends them again.
QUEUE = 0.25


def name(host):
    return f"bhhost{host}"


def address(host):
    return f"{NET}.{host + 1}"


def _command(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def _enter(space):
    """Moves this thread to a network namespace (`os.setns` is as old as Python 3.12)."""
    if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def _device(host):
    """The file of a TUN device that lies in the host's namespace."""
    with open(f"/var/run/netns/{name(host)}") as there, open("/proc/self/ns/net") as here:
        _enter(there)
        try:
            tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"wire", TUN | NO_PACKET_INFO))
        finally:
            _enter(here)
    inside = ("ip", "-n", name(host))
    _command(*inside, "link", "set", "lo", "up")
    _command(*inside, "link", "set", "wire", "mtu", str(MTU), "up")
    _command(*inside, "addr", "add", f"{address(host)}/24", "dev", "wire")
    return tun


def _forward(devices, rate, delay):
    """Passes packets on for ever: `rate` in bytes a second, `delay` in seconds."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    order, due, free = itertools.count(), [], dict.fromkeys(devices, 0.0)
    while True:
        wait = max(0.0, due[0][0] - time.perf_counter()) if due else None
        ready, _, _ = select.select(devices, [], [], wait)
        now = time.perf_counter()
        for device in ready:
            packet = os.read(device, MTU + 64)
            target = packet[19] - 1 if packet[0] >> 4 == 4 else -1
            if 0 <= target < len(devices) and free[device] < now + QUEUE:
                free[device] = max(now, free[device]) + len(packet) / rate
                heapq.heappush(due, (free[device] + delay, next(order), devices[target], packet))
        while due and due[0][0] <= time.perf_counter():
            _, _, target, packet = heapq.heappop(due)
            with contextlib.suppress(BlockingIOError):
                os.write(target, packet)


@contextlib.contextmanager
def hosts(count, rate, delay):
    """`count` hosts whose links send `rate` bytes a second, `delay` seconds away from each other; gone at the end."""
    made, switch = [], 0
    try:
        for host in range(count):
            _command("ip", "netns", "add", name(host))
            made.append(host)
        devices = [_device(host) for host in made]
        switch = os.fork()
        if not switch:
            _forward(devices, rate, delay)
        for device in devices:
            os.close(device)
        yield made
    finally:
        if switch:
            os.kill(switch, signal.SIGKILL)
            os.waitpid(switch, 0)
        for host in made:
            _command("ip", "netns", "del", name(host))


def on(host, words):
    """The command that runs `words` on a host, under its name."""
    return ["ip", "netns", "exec", name(host), "unshare", "--uts", "sh", "-c", f'hostname {name(host)}; exec "$@"', "sh", *words]


def launcher(count, ranks=1):
    """What starts `ranks` ranks of Open MPI on each of the hosts."""
    agent = f"{sys.executable} {os.path.abspath(__file__)}"
    network = ["--mca", "btl", "tcp,self", "--mca", "plm_rsh_agent", agent, "--mca", "btl_tcp_if_include", f"{NET}.0/24", "--mca", "oob_tcp_if_include", f"{NET}.0/24"]
    where = ",".join(f"{address(host)}:{ranks}" for host in range(count))
    return on(0, ["mpirun", *network, "--host", where, "-n", str(count * ranks), "--bind-to", "none"])


if __name__ == "__main__":
    # As the remote shell of mpirun: the address of a host, and a command for its shell.
    target = next(index for index, word in enumerate(sys.argv) if word.startswith(f"{NET}."))
    words = on(int(sys.argv[target].rpartition(".")[2]) - 1, ["sh", "-c", " ".join(sys.argv[target + 1 :])])
    os.execvp(words[0], words)
