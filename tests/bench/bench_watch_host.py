"""What it costs to watch a workload from outside: the watcher, and the workload that is watched.

Run with: make bench, or pytest -s -n 0 tests/bench/bench_watch_host.py
"""

from __future__ import annotations

import mmap
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from diag.collect.host import read_host
from diag.collect.proc import ProcessTree
from diag.collect.py_spy import find_py_spy
from diag.collect.stacks import dump
from tests.collect.watched import line, process_cpu_ns, running, tell

READ_NS = 3_000_000
AT_MOST_NS = 10_000_000  # 1 % of a core at 1 Hz
SLOWDOWN = 0.01
PAUSE_NS = 20_000_000
PAUSE_NS_PER_THREAD = 500_000  # 100,000 where nothing else wants to run

FAMILY = """
import os, sys, threading, time
n_threads, n_children, pause_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
def run():
    while True: time.sleep(pause_s)
def start(n):
    threading.stack_size(1 << 16)
    for _ in range(n): threading.Thread(target=run, daemon=True).start()
parent = os.getpid()
for _ in range(n_children):
    if os.fork() == 0:
        start(5)
        run()
start(n_threads)
print("ready", flush=True)
sys.stdin.read()
"""

WORK = """
import mmap, struct, sys, threading
file = open(sys.argv[1], "r+b")
memory = mmap.mmap(file.fileno(), 8)
for _ in range(int(sys.argv[2])): threading.Thread(target=threading.Event().wait, daemon=True).start()
print("ready", flush=True)
n = 0
while True:
    for _ in range(2000): pass
    n += 1
    struct.pack_into("q", memory, 0, n)
"""

GAPS = """
import sys, threading, time
for _ in range(int(sys.argv[1])): threading.Thread(target=threading.Event().wait, daemon=True).start()
asked = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), asked.set()), daemon=True).start()
longest = 0
last = time.monotonic_ns()
print("ready", flush=True)
while not asked.is_set():
    now = time.monotonic_ns()
    longest = max(longest, now - last)
    last = now
print(longest, flush=True)
sys.stdin.read()
"""


def cpu_ns(call: Callable[[], object]) -> int:
    started = time.thread_time_ns()
    call()
    return time.thread_time_ns() - started


@pytest.mark.parametrize(
    ("n_threads", "n_children", "pause_s", "bound_ns"),
    [
        pytest.param(150, 3, 1000.0, READ_NS, id="150 threads that sleep"),
        pytest.param(150, 3, 0.05, AT_MOST_NS, id="150 threads that run"),
        pytest.param(3000, 3, 1000.0, AT_MOST_NS, id="3000 threads that sleep"),
        pytest.param(20, 70, 1000.0, AT_MOST_NS, id="70 children"),
    ],
)
def test_what_a_reading_costs(n_threads: int, n_children: int, pause_s: float, bound_ns: int) -> None:
    with running(FAMILY, str(n_threads), str(n_children), str(pause_s)) as process:
        tree = ProcessTree(process.pid)
        first_ns = cpu_ns(tree.read)
        costs = []
        for _ in range(12):
            time.sleep(0.5)  # as in a watcher: what the processor had cached is gone
            costs.append(cpu_ns(tree.read))
        host_ns = statistics.median(cpu_ns(lambda: read_host(process.pid)) for _ in range(10))
        n_read = sum(len(each.threads) for each in tree.read())
    median_ns = statistics.median(costs)
    print(
        f"\n{n_threads} threads, {n_children} children: {median_ns / 1e6:.2f} ms a reading ({n_read} threads), "
        f"the first {first_ns / 1e6:.1f} ms; the host {host_ns / 1e6:.2f} ms",
        end="",
    )
    assert median_ns < bound_ns
    assert median_ns + host_ns < AT_MOST_NS


@pytest.mark.parametrize("n_threads", [0, 150])
def test_a_workload_that_is_read_is_not_slowed(n_threads: int, tmp_path: Path) -> None:
    """Read ten times a second in every other half second: work done per second of CPU time, and that it never waits.

    So what else the machine does, which keeps it from its core, counts for nothing.
    """
    counter = tmp_path / "counter"
    counter.write_bytes(bytes(8))
    with running(WORK, str(counter), str(n_threads)) as process, counter.open("rb") as file:
        memory = mmap.mmap(file.fileno(), 8, prot=mmap.PROT_READ)
        tree = ProcessTree(process.pid)
        waits = _waits(tree)
        ratios = [_rate(process.pid, memory, tree.read) / _rate(process.pid, memory, lambda: None) for _ in range(60)]
        waits = _waits(tree) - waits
    slowdown = 1 - statistics.median(ratios)
    error = 1.25 * statistics.stdev(ratios) / len(ratios) ** 0.5  # of a median
    print(f"\n{n_threads} more threads: slowed by {slowdown:.2%} ± {error:.2%} at 10 Hz, {waits} waits", end="")
    assert slowdown - 2 * error < SLOWDOWN
    assert error < SLOWDOWN, "too much else is going on to tell"
    assert waits == 0


def _waits(tree: ProcessTree) -> int:
    waits = tree.read()[0].threads[0].voluntary_switches
    assert waits is not None
    return waits


def _rate(pid: int, counter: mmap.mmap, read: Callable[[], object]) -> float:
    """Work done per ns of CPU time, in about half a second with five readings."""
    started_ns, before = process_cpu_ns(pid), _count(counter)
    for _ in range(5):
        read()
        time.sleep(0.1)
    return (_count(counter) - before) / (process_cpu_ns(pid) - started_ns)


def _count(counter: mmap.mmap) -> int:
    return int.from_bytes(counter[:8], "little")


@pytest.mark.skipif(find_py_spy() is None, reason="py-spy is not installed")
@pytest.mark.parametrize("n_threads", [1, 100, 400])
def test_how_long_stacks_stop_a_process(n_threads: int) -> None:
    """The longest time between two looks at the clock, in a program that does nothing else."""
    pauses: list[int] = []
    undisturbed: list[int] = []
    for _ in range(5):
        for found, is_asked in ((pauses, True), (undisturbed, False)):
            with running(GAPS, str(n_threads)) as process:
                if is_asked:
                    assert dump(process.pid).untold is None
                else:
                    time.sleep(0.05)
                tell(process)
                found.append(int(line(process)))
    least_ms, median_ms = min(pauses) / 1e6, statistics.median(pauses) / 1e6
    before_ms = statistics.median(undisturbed) / 1e6
    print(
        f"\n{n_threads} threads: {least_ms:.1f} ms at least, {median_ms:.1f} at the median, {before_ms:.1f} without",
        end="",
    )
    # The least of several: on a busy machine py-spy itself waits for a core meanwhile.
    assert min(pauses) < PAUSE_NS + n_threads * PAUSE_NS_PER_THREAD
