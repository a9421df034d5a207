"""Captures that the tests make themselves, with whatever nsys is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

ATTEMPTS = 3
"""nsys now and then loses its own agent on a busy machine ("End of file") and writes nothing."""
QUIET = ("--trace=nvtx,osrt", "--sample=none", "--cpuctxsw=none")


def capture_of(program: Path, folder: Path, command: Sequence[str | Path], *, options: Sequence[str] = QUIET) -> Path:
    """The report, or stream, that `program` profile makes of a command, alone in the new `folder`."""
    folder.mkdir()
    said = ""
    for _ in range(ATTEMPTS):
        profile = [program, "profile", *options, "--force-overwrite=true", f"--output={folder / 'run'}", *command]
        ended = subprocess.run(profile, check=False, capture_output=True, text=True, timeout=240)
        said += ended.stdout + ended.stderr
        if captures := list(folder.iterdir()):
            (capture,) = captures
            return capture
    raise AssertionError(f"nsys made no capture in {ATTEMPTS} attempts: {said}")


def annotated_program(nsys: Path, source: Path, folder: Path) -> Path:
    """A C program with NVTX events, built in a folder against the headers that nsys ships."""
    headers = next(iter(nsys.resolve().parent.parent.glob("target-linux-*/nvtx/include")), None)
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or headers is None:
        pytest.skip("building a program with NVTX ranges needs a C compiler and the NVTX headers of nsys")
    program = folder / source.stem
    subprocess.run([compiler, "-O1", "-I", headers, source, "-o", program, "-ldl", "-lpthread"], check=True)
    return program
