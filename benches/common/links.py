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
import socket
import struct
import sys
import time

NET = "10.77.0"
# Bytes of a packet; links of clusters have as much.
MTU = 9000
CLONE_NEWNET, CLONE_NEWUTS = 0x40000000, 0x04000000
TUNSETIFF, TUN, NO_PACKET_INFO = 0x400454CA, 0x0001, 0x1000
# Requests about the devices of a network, and the flag of those in use.
SET_ADDRESS, SET_MASK, SET_MTU, GET_FLAGS, SET_FLAGS, UP = 0x8916, 0x891C, 0x8922, 0x8913, 0x8914, 0x1
WIRE = b"wire"
# The variable of the environment with the files of the hosts' namespaces.
SPACES = "LINKS_SPACES"
# A link holds this many seconds of packets; others are lost, and TCP sends them again.
QUEUE = 0.25


def name(host):
    return f"bhhost{host}"


def address(host):
    return f"{NET}.{host + 1}"


def _enter(space):
    """Moves this thread to a network namespace (`os.setns` is as old as Python 3.12)."""
    if ctypes.CDLL(None, use_errno=True).setns(space, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def _unshare(kind):
    if ctypes.CDLL(None, use_errno=True).unshare(kind):
        raise OSError(ctypes.get_errno(), "unshare")


def _made(host):
    """A new namespace with a TUN device of the host's address: the files of both."""
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    _unshare(CLONE_NEWNET)
    try:
        space = os.open("/proc/self/ns/net", os.O_RDONLY)
        tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", WIRE, TUN | NO_PACKET_INFO))
        with socket.socket() as control:
            for key, number in ((SET_ADDRESS, address(host)), (SET_MASK, "255.255.255.0")):
                fcntl.ioctl(control, key, struct.pack("16sHH4s16x", WIRE, socket.AF_INET, 0, socket.inet_aton(number)))
            fcntl.ioctl(control, SET_MTU, struct.pack("16si20x", WIRE, MTU))
            for device in (b"lo", WIRE):
                flags = struct.unpack("16sh22x", fcntl.ioctl(control, GET_FLAGS, struct.pack("16s24x", device)))[1]
                fcntl.ioctl(control, SET_FLAGS, struct.pack("16sh22x", device, flags | UP))
        return space, tun
    finally:
        _enter(here)
        os.close(here)


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
    spaces, devices, switch = [], [], 0
    try:
        for host in range(count):
            space, device = _made(host)
            spaces.append(space)
            devices.append(device)
        switch = os.fork()
        if not switch:
            _forward(devices, rate, delay)
        for device in devices:
            os.close(device)
        # Other processes find the namespaces by the files of this one.
        os.environ[SPACES] = ",".join(f"/proc/{os.getpid()}/fd/{space}" for space in spaces)
        yield
    finally:
        os.environ.pop(SPACES, None)
        if switch:
            os.kill(switch, signal.SIGKILL)
            os.waitpid(switch, 0)
        for space in spaces:
            os.close(space)


def on(host, words):
    """The command that runs `words` on a host, under its name."""
    return [sys.executable, os.path.abspath(__file__), "--on", str(host), *words]


def _become(host):
    """Moves this process to a host, under its name."""
    space = os.open(os.environ[SPACES].split(",")[host], os.O_RDONLY)
    _enter(space)
    os.close(space)
    _unshare(CLONE_NEWUTS)
    socket.sethostname(name(host))


def launcher(count, ranks=1):
    """The command that starts `ranks` ranks of Open MPI on each of the hosts. They may be more than the cores that Open MPI finds."""
    agent = f"{sys.executable} {os.path.abspath(__file__)}"
    network = ["--mca", "btl", "tcp,self", "--mca", "plm_rsh_agent", agent, "--mca", "btl_tcp_if_include", f"{NET}.0/24", "--mca", "oob_tcp_if_include", f"{NET}.0/24"]
    where = ",".join(f"{address(host)}:{ranks}" for host in range(count))
    return on(0, ["mpirun", *network, "--host", where, "-n", str(count * ranks), "--bind-to", "none", "--oversubscribe"])


if __name__ == "__main__":
    if sys.argv[1] == "--on":
        host, words = int(sys.argv[2]), sys.argv[3:]
    else:
        # As the remote shell of mpirun: the address of a host, and a command for its shell.
        target = next(index for index, word in enumerate(sys.argv) if word.startswith(f"{NET}."))
        host, words = int(sys.argv[target].rpartition(".")[2]) - 1, ["sh", "-c", " ".join(sys.argv[target + 1 :])]
    _become(host)
    os.execvp(words[0], words)
