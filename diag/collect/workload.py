"""Runs a program as if diag were not there: its input, output, exit status and the signals that it is sent.

The program gets a session of its own. So the terminal sends Ctrl-C to diag alone, which passes it on, once; the
program can still read from the terminal, and writes to it as before.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from diag.child import end_with_parent
from diag.collect.descendants import adopt_orphans, parent_of
from diag.errors import ToolMissing

Command = Sequence[str | Path]

_OF_TERMINAL = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""These a terminal sends to all processes of a job, data loaders too; SIGTERM is for the program alone."""
_PASSED_ON = (*_OF_TERMINAL, signal.SIGTERM)
_ECHO_S = 1.0
"""A shell and `timeout` may both send the same signal."""
_POLL_S = 0.1
_OUT, _ERR = 8, 9
_FREE_FROM = 20


@dataclass(frozen=True)
class Ended:
    status: int
    """As shells give it: 128 + n for a program that signal n ended."""
    wall_ns: int
    was_stopped: bool = False
    """Because it was overdue, and not by itself."""


def run(
    command: Command,
    *,
    environment: Mapping[str, str] | None = None,
    log: BinaryIO | None = None,
    quiet: bool = False,
    workload: Callable[[], int | None] = lambda: None,
    overdue: Callable[[], bool] = lambda: False,
) -> Ended:
    """Runs `command` to its end.

    `log`: hears what the command itself says; what `beside` has made of the workload still writes where diag does.
    `quiet`: without input, and what it writes is lost. `workload`: the process that signals are for, where it is
    known and not the command's own. `overdue`: asked now and then whether the command must be ended.
    Raises ToolMissing when it cannot be started.
    """
    adopt_orphans()
    started_ns = time.monotonic_ns()
    with _standing_by() as streams, _Signals(workload) as signals:
        try:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL if quiet else None,
                stdout=subprocess.DEVNULL if quiet else log,
                stderr=subprocess.DEVNULL if quiet else log and subprocess.STDOUT,
                start_new_session=True,
                close_fds=False,  # Python's own are closed all the same; those of _standing_by must not be
                preexec_fn=lambda: _prepare(streams if log else ()),  # noqa: PLW1509  # takes no lock
            )
        except OSError as error:
            raise ToolMissing(f"Cannot start {command[0]}: {error.strerror or error}.") from error
        signals.pass_on_to(process.pid)
        was_stopped = _wait(process, signals, overdue)
        status, left = process.returncode, workload()
        if left and not was_stopped and (keeper := parent_of(left)):
            # The profiler has gone before the workload; what started that is a child of ours now.
            status = os.waitstatus_to_exitcode(os.waitpid(keeper, 0)[1])
    return Ended(status if status >= 0 else 128 - status, time.monotonic_ns() - started_ns, was_stopped)


def beside(log_of_pid: Path, command: Command) -> list[str | Path]:
    """`command`, so that it writes where diag does although its parent writes to a log, and leaves its process id.

    A profiler would mix its own words into the output and put a pipe between the program and the terminal.
    """
    return ["/bin/sh", "-c", f'echo $$ >"$0"; exec "$@" >&{_OUT} 2>&{_ERR} {_OUT}>&- {_ERR}>&-', log_of_pid, *command]


def pid_in(log_of_pid: Path) -> int | None:
    """The process that `beside` left there, as long as it runs."""
    try:
        pid = int(log_of_pid.read_text())
    except (OSError, ValueError):
        return None
    return pid if parent_of(pid) is not None else None


@contextlib.contextmanager
def _standing_by() -> Iterator[tuple[int, int]]:
    """Copies of standard output and error, out of the way of the numbers that a shell can name."""
    sys.stdout.flush()
    sys.stderr.flush()
    copies = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _FREE_FROM) for number in (1, 2)]
    try:
        yield copies[0], copies[1]
    finally:
        for copy in copies:
            os.close(copy)


def _prepare(streams: Sequence[int]) -> None:
    """In the new process, before the program."""
    end_with_parent(signal.SIGTERM)
    for copy, number in zip(streams, (_OUT, _ERR), strict=False):
        os.dup2(copy, number, inheritable=True)


def _wait(process: subprocess.Popen[bytes], signals: _Signals, overdue: Callable[[], bool]) -> bool:
    """Whether it had to be ended."""
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_S)
            return False
        signals.deliver()
        if overdue():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return True


class _Signals:
    """Passes on what diag is sent, each once, as soon as there is somebody to send it to."""

    def __init__(self, workload: Callable[[], int | None]) -> None:
        self._workload = workload
        self._process: int | None = None
        self._waiting: list[int] = []
        self._last: dict[int, float] = {}
        self._before: dict[int, object] = {}

    def __enter__(self) -> _Signals:
        for number in _PASSED_ON:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup and background jobs want it
                self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what it was before

    def pass_on_to(self, process: int) -> None:
        self._process = process
        self.deliver()

    def deliver(self) -> None:
        while self._process and self._waiting:
            number = self._waiting.pop(0)
            with contextlib.suppress(ProcessLookupError):
                to = self._workload() or self._process
                if number in _OF_TERMINAL:
                    os.killpg(to, number)
                else:
                    os.kill(to, number)

    def _receive(self, number: int, _: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last.get(number, -_ECHO_S) >= _ECHO_S:
            self._last[number] = now
            self._waiting.append(number)
        self.deliver()
