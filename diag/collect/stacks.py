"""What the Python threads of a process are doing at one moment. Never continuous: each look stops all of them."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from diag.collect.access import ptrace_scope, why_not_traced
from diag.collect.proc_files import content, fields, parse_stat
from diag.collect.proc_process import stat_of
from diag.collect.py_spy import NoAnswer, ask, find_py_spy
from diag.model.live import Frame, StackDump, ThreadStack
from diag.model.py_spy import PySpyThread

TIMEOUT_S = 5.0
"""A thread that the kernel does not let go (state D) cannot be stopped, and all others wait for it until then."""

_PYTHON = re.compile(r"python[\d.]*[a-z]*( \(deleted\))?")
_FORBIDDEN = re.compile(r"permission denied|not permitted|os error (1|13)\b", re.IGNORECASE)


_ANSWER = msgspec.json.Decoder(list[PySpyThread])


def dump(pid: int, *, py_spy: Path | None = None, timeout_s: float = TIMEOUT_S) -> StackDump:
    """The stacks of all Python threads of process `pid`, or why there are none. Blocks, if need be for `timeout_s`."""
    time_ns, started_ns = time.time_ns(), time.monotonic_ns()
    threads: list[ThreadStack] = []
    untold = None
    try:
        threads = _threads(pid, py_spy or find_py_spy(), timeout_s)
    except NoAnswer as error:
        untold = str(error) if error.said is None else _why(pid, error.said)
    return StackDump(pid, time_ns, threads, time.monotonic_ns() - started_ns, untold)


def is_python(pid: int) -> bool:
    """Whether a process seems to run Python: by its program, else by the libraries that it has loaded.

    Of a process that may not be looked into its name decides.
    """
    try:
        program = Path(os.readlink(f"/proc/{pid}/exe")).name
        return bool(_PYTHON.fullmatch(program)) or b"libpython" in content(f"/proc/{pid}/maps")
    except OSError:
        stat = stat_of(pid)
        return stat is not None and stat.state != "Z" and bool(_PYTHON.fullmatch(stat.name))


def _threads(pid: int, py_spy: Path | None, timeout_s: float) -> list[ThreadStack]:
    if py_spy is None:
        raise NoAnswer("py-spy is not installed: pip install 'gpu-diag[live]'")
    stat = stat_of(pid)
    if stat is None or stat.state == "Z":
        raise NoAnswer(f"There is no process {pid} any more.")
    answer = ask(py_spy, pid, timeout_s=timeout_s, is_stopped=stat.state in "Tt")
    try:
        told = _ANSWER.decode(answer)
    except msgspec.DecodeError as error:
        raise NoAnswer(f"{py_spy} gave an answer of an unknown form: pip install --upgrade py-spy") from error
    tids = _tids_here(pid)
    return [_stack(pid, thread, tids.get(thread.os_thread_id or 0)) for thread in told]


def _stack(pid: int, thread: PySpyThread, tid: int | None) -> ThreadStack:
    # Of a thread in another container py-spy, which looks for it under its number there, says that it runs.
    is_known = tid == thread.os_thread_id
    return ThreadStack(
        pid=pid,
        tid=tid,
        name=thread.thread_name,
        frames=[Frame(frame.name, frame.filename, frame.line) for frame in thread.frames],
        holds_gil=thread.owns_gil,
        is_running=thread.active and (is_known or _runs(pid, tid)),
    )


def _runs(pid: int, tid: int | None) -> bool:
    try:
        return parse_stat(content(f"/proc/{pid}/task/{tid}/stat")).state == "R"
    except OSError:
        return False


def _tids_here(pid: int) -> Mapping[int, int]:
    """By the number that a thread has in its own container, which is the one that Python knows, its number here."""
    here = {}
    with contextlib.suppress(OSError):
        for tid in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                numbers = fields(content(f"/proc/{pid}/task/{tid}/status")).get(b"NSpid", tid.encode()).split()
                here[int(numbers[-1])] = int(tid)
    return here


def _why(pid: int, said: str) -> str:
    """Why py-spy, which said that, failed, in a sentence that says what to do."""
    stat = stat_of(pid)
    if stat is None or stat.state == "Z":
        return f"Process {pid} has ended."
    if _FORBIDDEN.search(said):
        return why_not_traced(pid, ptrace_scope())
    if not is_python(pid):
        return f"Process {pid} does not run Python."
    lines = [line.strip() for line in said.partition("Stack backtrace:")[0].splitlines()]
    causes = "; ".join(line.removeprefix("Error: ") for line in lines if line not in ("", "Caused by:"))
    return f"py-spy failed ({causes[:300] or 'it said nothing'}). Try again, or: pip install --upgrade py-spy"
