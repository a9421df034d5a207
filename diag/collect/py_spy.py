"""py-spy, asked once, so that it always ends and never leaves a process stopped.

Each look stops every thread of the process, for 0.1 ms times their number (`tests/bench/bench_watch_host.py`). Its
`--nonblocking`, which stops none, is no way out: under Python 3.11 to 3.13 between 40 and 90 % of the stacks of a
program at work were put together from calls of different moments, and before 3.11 threads have no numbers then.
Arguments and local variables are not asked for: they may hold secrets.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

MAX_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 16


class NoAnswer(Exception):
    """Says why; `said`: what py-spy itself wrote about it."""

    def __init__(self, why: str, said: str | None = None) -> None:
        super().__init__(why)
        self.said = said


def find_py_spy() -> Path | None:
    """The one that was installed with diag, else the first on PATH."""
    beside = Path(sys.executable).with_name("py-spy")
    found = shutil.which(beside) or shutil.which("py-spy")
    return Path(found) if found else None


def ask(py_spy: Path, pid: int, *, timeout_s: float, is_stopped: bool) -> bytes:
    """What `py-spy dump --json` prints of process `pid`. Raises NoAnswer.

    `is_stopped`: by SIGSTOP or the like. Nothing moves then, and py-spy cannot stop it once more.
    """
    command: list[str | Path] = [py_spy, "dump", "--json", "--pid", str(pid)]
    if is_stopped:
        command.append("--nonblocking")
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C would end it while it holds the threads
        )
    except OSError as error:
        raise NoAnswer(f"Cannot start {py_spy}: {error.strerror or error}.") from error
    was_killed = True
    with process:
        try:
            answer, said = _output(process, timeout_s)
            was_killed = process.returncode is None
        finally:
            process.kill()
            process.wait()
            if was_killed and not is_stopped:
                _let_go(pid)
    if process.returncode != 0:
        raise NoAnswer("py-spy failed.", said.decode("utf-8", "replace"))
    return answer


def _output(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[bytes, bytes]:
    """Standard output and error of a process that has ended then."""
    deadline = time.monotonic() + timeout_s
    assert process.stdout
    assert process.stderr
    parts: dict[int, list[bytes]] = {process.stdout.fileno(): [], process.stderr.fileno(): []}
    n_bytes = 0
    with selectors.DefaultSelector() as selector:
        for file in parts:
            selector.register(file, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise NoAnswer(f"py-spy had no answer within {timeout_s:g} s and was ended. Try again.")
            for key, _ in ready:
                part = os.read(key.fd, _CHUNK_BYTES)
                parts[key.fd].append(part)
                n_bytes += len(part)
                if not part:
                    selector.unregister(key.fd)
            if n_bytes > MAX_BYTES:
                raise NoAnswer(f"The stacks take more than {MAX_BYTES >> 20} MB and were left out.")
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout_s)
    answer, said = parts.values()
    return b"".join(answer), b"".join(said)


def _let_go(pid: int) -> None:
    """What a tracer stopped and did not release stays stopped when that is killed (ptrace(2), "Death under ptrace").
    One that ends by itself has let go: then nothing is sent, as a program may do something on SIGCONT.

    SIGCONT also takes back stops that have not come to pass yet.
    """
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGCONT)
