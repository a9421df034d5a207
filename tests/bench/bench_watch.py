"""`diag watch` at one reading a second: its share of a core, picture included, and by how much a workload is slower.

Run with: pytest -s tests/bench/bench_watch.py; DIAG_BENCH_S is how long the share is measured (60 s).
"""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import statistics
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

DIAG = Path(sys.executable).with_name("diag")
MEASURED_S = float(os.environ.get("DIAG_BENCH_S", "60"))
MOST_SHARE = 0.01
MOST_SLOWDOWN = 0.01
PAIRS = 20

SEVERAL = """
import multiprocessing, threading, time
def busy():
    while True:
        sum(range(2000)); time.sleep(0.05)
def work():
    for _ in range(7):
        threading.Thread(target=busy, daemon=True).start()
    busy()
if __name__ == "__main__":
    for _ in range(4):
        multiprocessing.Process(target=work, daemon=True).start()
    print("started", flush=True)
    busy()
"""
"""Five processes and 33 threads that wake up 20 times a second each."""

FIXED_WORK = """
import sys, time
print("started", flush=True); sys.stdin.readline()
wall, cpu = time.perf_counter(), time.process_time()
total = 0
for i in range(30_000_000):
    total += i & 7
print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)
"""


@contextmanager
def workload(program: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # its children, too
        process.communicate()


@contextmanager
def watched(pid: int, columns: int = 80, lines: int = 24) -> Iterator[int]:
    """`diag watch` of a process in a terminal of its own, once its picture is there; gives its own pid."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen([DIAG, "watch", str(pid)], stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    is_drawn = threading.Event()
    reader = threading.Thread(target=_drain, args=(master, is_drawn))
    reader.start()
    try:
        assert is_drawn.wait(30)
        yield process.pid
    finally:
        process.terminate()
        process.wait()
        reader.join()
        os.close(master)


def _drain(master: int, is_drawn: threading.Event) -> None:
    seen = b""
    while True:
        try:
            read = os.read(master, 65_536)
        except OSError:  # as Linux says that nobody writes any more
            return
        seen = seen[-100:] + read
        if b"PROCESS" in seen:
            is_drawn.set()


def cpu_s(pid: int) -> float:
    """User and system time of a process and the children that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (200, 60)])
def test_its_share_of_a_core(columns: int, lines: int) -> None:
    with workload(SEVERAL) as process, watched(process.pid, columns, lines) as pid:
        time.sleep(5)  # not a wait: what is measured begins when the start is over
        before_s, started_s = cpu_s(pid), time.monotonic()
        time.sleep(MEASURED_S)
        share = (cpu_s(pid) - before_s) / (time.monotonic() - started_s)
    print(f"\n{columns}×{lines}: {share:.2%} of a core at one reading a second, 5 processes with 33 threads")
    assert share < MOST_SHARE


def test_it_does_not_slow_a_workload_down() -> None:
    """Runs with and without it take turns, in both orders, so that what else the machine does meets both alike."""
    slower_wall, slower_cpu = [], []
    for at in range(PAIRS):
        times = {is_watched: _run_fixed_work(is_watched=is_watched) for is_watched in (at % 2 == 0, at % 2 == 1)}
        (wall_s, of_cpu_s), (watched_wall_s, watched_cpu_s) = times[False], times[True]
        slower_wall.append(watched_wall_s / wall_s - 1)
        slower_cpu.append(watched_cpu_s / of_cpu_s - 1)
    for name, slower in (("wall", slower_wall), ("CPU", slower_cpu)):
        low, median, high = statistics.quantiles(slower, n=4)
        print(f"\n{name} time with it: {median:+.2%} (quartiles {low:+.2%} to {high:+.2%}, {PAIRS} pairs)")
    assert statistics.median(slower_cpu) < MOST_SLOWDOWN


def _run_fixed_work(*, is_watched: bool) -> tuple[float, float]:
    with workload(FIXED_WORK) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if not is_watched:
            return _times(process)
        with watched(process.pid):
            return _times(process)


def _times(process: subprocess.Popen[str]) -> tuple[float, float]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    wall_s, of_cpu_s = process.stdout.readline().split()
    return float(wall_s), float(of_cpu_s)
