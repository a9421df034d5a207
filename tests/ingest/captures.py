"""Captures that the tests make themselves, with whatever nsys is installed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

ATTEMPTS = 3
"""nsys now and then loses its own agent on a busy machine: it ends without a file, or it never ends."""
LONGEST_S = 60.0
QUIET = ("--trace=nvtx,osrt", "--sample=none", "--cpuctxsw=none")


class NoCapture(AssertionError):
    """However often it was tried, nsys wrote nothing."""


def capture_of(
    program: Path,
    folder: Path,
    command: Sequence[str | Path],
    *,
    options: Sequence[str] = QUIET,
    longest_s: float = LONGEST_S,
    attempts: int = ATTEMPTS,
) -> Path:
    """The report, or stream, that `program` profile makes of a command, alone in the new `folder`."""
    folder.mkdir()
    log = folder.with_suffix(".log")
    profile = [program, "profile", *options, "--force-overwrite=true", f"--output={folder / 'run'}", *command]
    for _ in range(attempts):
        with log.open("ab") as said:  # no pipe: the agent, which may outlive nsys, would keep it open
            has_ended = _run(profile, said.fileno(), longest_s)
        captures = list(folder.iterdir())
        if has_ended and captures:
            (capture,) = captures
            return capture
        for half_written in captures:
            half_written.unlink()
    raise NoCapture(f"nsys made no capture in {attempts} attempts: {log.read_text()}")


def annotated_program(nsys: Path, source: Path, folder: Path) -> Path:
    """A C program with NVTX events, built in a folder against the headers that nsys ships."""
    headers = next(iter(nsys.resolve().parent.parent.glob("target-linux-*/nvtx/include")), None)
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or headers is None:
        pytest.skip("building a program with NVTX ranges needs a C compiler and the NVTX headers of nsys")
    program = folder / source.stem
    subprocess.run([compiler, "-O1", "-I", headers, source, "-o", program, "-ldl", "-lpthread"], check=True)
    return program


def _run(profile: Sequence[str | Path], output: int, longest_s: float) -> bool:
    """Whether nsys ended by itself."""
    with subprocess.Popen(profile, stdin=subprocess.DEVNULL, stdout=output, stderr=output) as nsys:
        try:
            nsys.wait(longest_s)
            return True
        except subprocess.TimeoutExpired:
            nsys.kill()
            return False
        finally:
            _end_agent(nsys.pid)


def _end_agent(nsys: int) -> None:
    """The agent is a process of its own, and carries the number of its nsys in its arguments."""
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = cmdline.read_bytes().split(b"\0")
            if b"--start-agent" in words and any(word.endswith(b"-%d" % nsys) for word in words):
                os.kill(int(cmdline.parent.name), signal.SIGKILL)
