"""Processes that a test will interrupt."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


def start(command: Sequence[str | bytes | Path], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A process that minds SIGINT, also where the tests themselves were started in the background.

    A shell without job control lets background commands ignore it, and children inherit that.
    """
    return subprocess.Popen(
        command,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # no threads are involved
    )


def wait_until(met: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Waits for a condition for as long as the process lives."""
    while not met():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def has_open(process: subprocess.Popen[bytes], suffix: str) -> bool:
    """Whether the process holds a file open whose name ends so."""
    folder = Path("/proc") / str(process.pid) / "fd"
    try:
        return any(str(link.readlink()).endswith(suffix) for link in folder.iterdir())
    except OSError:  # the process or the file is gone by now
        return False


def minds(process: subprocess.Popen[bytes], number: signal.Signals) -> bool:
    """Whether the process has a handler of its own for the signal. Python itself has one for SIGINT alone."""
    try:
        status = (Path("/proc") / str(process.pid) / "status").read_text()
    except OSError:  # it is gone by now
        return False
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def ended(pid: int, *, within_s: float = 10.0) -> bool:
    """Whether a process that is not our child ends in time; one that only waits to be reaped has ended."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            if (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False
