"""The process beside a rank that writes its heartbeat file. `diag/collect/heartbeat.py` starts it.

It needs nothing of the rank but the page that both share, so that it goes on where the rank cannot run Python; it ends
as soon as the rank does, and is nobody's child, so that no program waits for it. It imports next to nothing.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import select
import signal
import sys
import time
from typing import Any

from diag.collect import heartbeat_page as page_of

VANISHED = "vanished without a word: killed, crashed, or left with os._exit"
REPLACED = "replaced by another program (exec)"
_DYING_MS = 5000
"""Most that a process takes to end once its files are closed: its memory is given back meanwhile."""


def main() -> None:
    told = json.loads(sys.argv[1])
    pid, descriptor = int(told["pid"]), int(told["descriptor"])
    if os.fork():
        os._exit(0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # they are for the rank, whose end is still told
        signal.signal(number, signal.SIG_IGN)
    page = memoryview(mmap.mmap(descriptor, page_of.BYTES, access=mmap.ACCESS_READ))
    watched = os.pidfd_open(pid)
    if _started(pid) != told["started"]:
        return
    _write_until_end(told, page, watched)


def _write_until_end(told: dict[str, Any], page: memoryview, watched: int) -> None:
    pid, every_ms = int(told["pid"]), max(1, int(told["every_s"] * 1000))
    poll = select.poll()
    poll.register(watched, select.POLLIN)
    is_over = False
    while not is_over:
        is_gone = bool(poll.poll(every_ms))
        is_closed = not is_gone and not _shares_page(pid, told)
        if is_closed:
            is_gone = bool(poll.poll(_DYING_MS))  # a process that dies closes its files first
        beat = page_of.read_beat(page)  # after the look at the process, which may have told its end just before
        ended = beat.ended if beat and beat.ended else VANISHED if is_gone else REPLACED if is_closed else None
        is_over = ended is not None
        written_ns, silent_ns = time.time_ns(), time.monotonic_ns() - page_of.read_alive(page)
        fields = {
            **told["rank"],
            "time_ns": written_ns - silent_ns,
            "written_ns": written_ns,
            "beat_ns": beat.beat_ns if beat and beat.beat_ns else None,
            "state": None if is_gone else _state(pid),
            "step": beat.step if beat and beat.step >= 0 else None,
            "phase": beat.phase if beat and beat.phase else None,
            "ended": ended,
        }
        _replace(told["path"], json.dumps(fields))


def _replace(path: str, text: str) -> None:
    """A reader finds the old file or the new one. A full or vanished disk is no reason to end: it may come back."""
    folder, name = os.path.split(path)
    passing = os.path.join(folder, f".{name}.new")
    try:
        with open(passing, "w", encoding="ascii") as file:
            file.write(text + "\n")
        os.replace(passing, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(passing)


def _shares_page(pid: int, told: dict[str, Any]) -> bool:
    """An exec closes the page. Where the kernel does not let one look, the rank counts as the same program."""
    try:
        return bool(os.readlink(f"/proc/{pid}/fd/{told['descriptor']}") == told["link"])
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _stat(pid: int) -> list[str]:
    """From the state on (proc(5)); the name before it may hold anything."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def _state(pid: int) -> str | None:
    try:
        return _stat(pid)[0]
    except (OSError, IndexError):
        return None


def _started(pid: int) -> str | None:
    """When a process began, in ticks: with the pid it tells it from a later one of the same number."""
    try:
        return _stat(pid)[19]
    except (OSError, IndexError):
        return None
