"""Processes that a test watches from outside. They say on standard output when they are as the test needs them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).with_name("programs")
NOBODY = 65534
_PATIENCE_S = 30.0


@contextlib.contextmanager
def running(
    program: str, *arguments: str, env: Mapping[str, str] | None = None, prefix: Sequence[str] = ()
) -> Iterator[subprocess.Popen[str]]:
    """A Python program, one of PROGRAMS by its name or else its text, from when it printed a line until the block ends.

    Each further line that it prints is read with `line`, and written to with `tell`.
    """
    run = [str(PROGRAMS / program)] if program.endswith(".py") else ["-c", program]
    process = subprocess.Popen(
        [*prefix, sys.executable, *run, *arguments],
        env={**os.environ, **(env or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            line(process)
            yield process
        finally:
            # Its children too, but for those that went into a session of their own.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)


def line(process: subprocess.Popen[str]) -> str:
    """The next line that the program prints, which it must."""
    assert process.stdout
    text = process.stdout.readline()
    assert text, f"the program ended with {process.wait()}"
    return text.strip()


def tell(process: subprocess.Popen[str]) -> None:
    """Writes an empty line to the program."""
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def wait_for(met: Callable[[], bool]) -> None:
    """Returns as soon as it is so; fails if it is not for long."""
    deadline = time.monotonic() + _PATIENCE_S
    while not met():
        assert time.monotonic() < deadline, "it never came to pass"
        time.sleep(0.01)


def process_cpu_ns(pid: int) -> int:
    """CPU time that all threads of a process took, by its own clock (clock_getcpuclockid(3)) and not by /proc."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def line_of(program: str, marker: str) -> int:
    """Number of the one line of a program that has this in it."""
    lines = (PROGRAMS / program).read_text("utf-8").splitlines()
    (number,) = (n for n, text in enumerate(lines, 1) if marker in text)
    return number


def as_nobody(ask: Callable[[], Any], *, before: Callable[[], None] = lambda: None) -> Any:
    """What a user without rights gets for an answer; as JSON. `before`: run with all rights still."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            before()
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            os.write(writer, json.dumps(ask()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with open(reader, "rb") as file:
        answer = file.read()
    assert os.waitpid(pid, 0)[1] == 0
    return json.loads(answer)
