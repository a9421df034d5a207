"""Which `nsys` this machine has, and how to run it so that it always ends."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from diag.child import end_with_parent

NAMED_BY = "DIAG_NSYS"

_VERSION = re.compile(r"version (\d{4}(?:\.\d+)+)")
_PERCENT = re.compile(rb"(\d{1,3})% *\]")
_VERSION_TIMEOUT_S = 20.0
_POLL_S = 0.25
_TAIL_BYTES = 65536

# NVIDIA's packages, CUDA toolkit, HPC SDK, Debian's package (installed, or unpacked under /opt), conda, a user's own.
_ROOTS = (
    "/opt/nvidia/nsight-systems*/*",
    "/opt/nvidia/nsight-systems*",
    "/opt/nvidia/hpc_sdk/*/*/profilers/Nsight_Systems",
    "/opt/nsight-systems*",
    "/usr/local/nsight-systems*",
    "/usr/local/cuda*/nsight-systems*",
    "/usr/local/cuda*",
    "/usr/lib/nsight-systems",
    "/usr/local",
    "/usr",
    "$CONDA_PREFIX/nsight-systems*",
    "$CONDA_PREFIX",
    "~/nsight-systems*/*",
    "~/nsight-systems*",
    "~/.local",
)
_BINARIES = ("bin/nsys", "target-linux-*/nsys")
# Debian moves target-linux-x64 away from its sibling, so that the importer is not where nsys itself looks.
_DEBIAN_HOME = Path("/usr/lib/nsight-systems")


@dataclass(frozen=True)
class Nsys:
    """An installed nsys: its program, its version such as (2024, 6, 2, 225), and its QdstrmImporter if it has one."""

    path: Path
    version: tuple[int, ...]
    importer: Path | None

    @property
    def release(self) -> str:
        """The version as NVIDIA names it, for example `2024.6.2`."""
        return release(self.version)


@dataclass(frozen=True)
class Outcome:
    """How a program ended: its exit status (negative: killed by that signal), and the end of what it printed."""

    status: int
    output: str


def parse_version(text: str) -> tuple[int, ...]:
    """`2024.6.2.25` as (2024, 6, 2, 25)."""
    return tuple(int(part) for part in text.split("."))


def release(version: tuple[int, ...]) -> str:
    """Year, release and patch; the build number after them tells nothing about what a tool can read."""
    return ".".join(str(part) for part in version[:3])


def find_nsys() -> Nsys | None:
    """The newest nsys on this machine, or exactly the one that DIAG_NSYS names; None when none of them answers.

    An export reads what its own version or an older one wrote, so the newest opens the most files.
    """
    found = [nsys for path in _candidates() if (nsys := _inspect(path)) is not None]
    return max(found, key=lambda nsys: (nsys.version, nsys.importer is not None), default=None)


def run(command: Sequence[str | Path], *, timeout_s: float, on_percent: Callable[[int], None] | None = None) -> Outcome:
    """Run `command` without input, in a process group that never outlives this call.

    `on_percent` hears each new percentage of the program's progress bar. Raises subprocess.TimeoutExpired after
    `timeout_s`, and OSError when the program cannot be started.
    """
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=end_with_parent,  # noqa: PLW1509  # nothing here has threads yet
        )
        try:
            status = _wait(process, log.fileno(), timeout_s, on_percent)
        finally:
            _end_group(process)
        return Outcome(status, _tail(log.fileno()).decode("utf-8", "replace"))


def _candidates() -> list[Path]:
    if named := os.environ.get(NAMED_BY):
        program = shutil.which(named)
        return [Path(program)] if program else []
    first: dict[str, Path] = {}
    for path in (*_on_path(), *_in_usual_places()):
        first.setdefault(os.path.realpath(path), path)
    return [path for path in first.values() if os.access(path, os.X_OK)]


def _on_path() -> Iterator[Path]:
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if folder:
            yield Path(folder, "nsys")


def _in_usual_places() -> Iterator[Path]:
    for root in _ROOTS:
        # An unset variable stays as it is and matches nothing.
        pattern = os.path.expanduser(os.path.expandvars(root))
        for binary in _BINARIES:
            yield from (Path(path) for path in sorted(glob.glob(os.path.join(pattern, binary))))


def _inspect(path: Path) -> Nsys | None:
    try:
        outcome = run([path, "--version"], timeout_s=_VERSION_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(outcome.output)
    return Nsys(path, parse_version(match[1]), _importer(path)) if match and outcome.status == 0 else None


def _importer(nsys: Path) -> Path | None:
    """QdstrmImporter of the installation that `nsys` belongs to."""
    home = nsys.resolve().parent.parent
    homes = [home, _DEBIAN_HOME] if home.is_relative_to("/usr/lib") else [home]
    found = (path for home in homes for path in sorted(home.glob("host-linux-*/QdstrmImporter")))
    return next((path for path in found if os.access(path, os.X_OK)), None)


def _wait(
    process: subprocess.Popen[bytes], log: int, timeout_s: float, on_percent: Callable[[int], None] | None
) -> int:
    deadline = time.monotonic() + timeout_s
    last = -1
    while True:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise subprocess.TimeoutExpired(process.args, timeout_s)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(min(_POLL_S, left_s))
        seen = _PERCENT.findall(_tail(log))
        if on_percent and seen and int(seen[-1]) != last:
            last = int(seen[-1])
            on_percent(last)


def _tail(log: int) -> bytes:
    # pread: the program shares this file's offset, and seeking would move where it writes.
    return os.pread(log, _TAIL_BYTES, max(0, os.fstat(log).st_size - _TAIL_BYTES))


def _end_group(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
