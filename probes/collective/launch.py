"""Starts the ranks of a probe on this machine, waits for them, and leaves none behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from diag.errors import DiagError, UsageError
from diag.probes.collective.request import Request
from diag.probes.probe import Device

MOST_RANKS = 64
"""On one machine: each is a process with PyTorch in it."""
LOOK_S = 0.2
"""At the ranks, while rank 0 has nothing to tell."""
GRACE_S = 5.0
"""For the others, when one rank has failed: they notice, and say why."""


def run(request: Request, n_ranks: int, device: Device, file: Path, progress: Callable[[str], None]) -> Sequence[str]:
    """Rank 0 writes the benchmark to `file`; returns what it said, a line for each trace among it.

    Raises UsageError, and DiagError with a rank's own last words where one fails.
    """
    if not 2 <= n_ranks <= MOST_RANKS:
        raise UsageError(f"--ranks {n_ranks}: a probe runs on 2 to {MOST_RANKS} ranks of one machine.")
    with (
        tempfile.TemporaryDirectory(prefix="diag-") as folder,
        _started(request, n_ranks, device, file, Path(folder)) as ranks,
    ):
        said = list(_lines(ranks, progress))
        _wait(ranks)
        failed = [rank for rank, process in enumerate(ranks) if process.returncode]
        if failed:
            raise _failure(failed, ranks, Path(folder))
    return said


@contextmanager
def _started(
    request: Request, n_ranks: int, device: Device, file: Path, folder: Path
) -> Iterator[Sequence[subprocess.Popen[str]]]:
    """Each rank in a session of its own, so that ending it ends what it started."""
    command = [
        sys.executable, "-m", "diag.probes.collective", *request.arguments, "--device", device,
        "--rendezvous", str(folder / "rendezvous"), "--output", str(file),
    ]  # fmt: skip
    ranks: list[subprocess.Popen[str]] = []
    try:
        for rank in range(n_ranks):
            with _errors_of(folder, rank).open("w") as errors:
                ranks.append(
                    subprocess.Popen(
                        command,
                        env=_environment(rank, n_ranks),
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                        stderr=errors,
                        text=True,
                        start_new_session=True,
                    )
                )
        yield ranks
    finally:
        for process in ranks:
            with contextlib.suppress(ProcessLookupError):
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        for process in ranks:
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _environment(rank: int, n_ranks: int) -> dict[str, str]:
    """Ranks of one machine reach each other without a network."""
    place = {"RANK": rank, "WORLD_SIZE": n_ranks, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": n_ranks}
    given = {"GLOO_SOCKET_IFNAME": "lo"} | os.environ
    return {**given, **{name: str(value) for name, value in place.items()}, "PYTHONWARNINGS": "ignore"}


def _errors_of(folder: Path, rank: int) -> Path:
    return folder / f"errors-{rank}"


def _lines(ranks: Sequence[subprocess.Popen[str]], progress: Callable[[str], None]) -> Iterator[str]:
    """What rank 0 says, until it ends or another one fails."""
    out = ranks[0].stdout
    if out is None:
        return
    with selectors.DefaultSelector() as selector:
        selector.register(out, selectors.EVENT_READ)
        while not any(process.poll() for process in ranks):
            if not selector.select(LOOK_S):
                continue
            line = out.readline()
            if not line:
                return
            progress(line.rstrip())
            yield line.rstrip()


def _wait(ranks: Sequence[subprocess.Popen[str]]) -> None:
    """Until all have ended; once one has failed, the others have GRACE_S left."""
    ends: float | None = None
    for process in ranks:
        while process.poll() is None:
            if any(each.poll() for each in ranks):
                ends = ends or time.monotonic() + GRACE_S
                if time.monotonic() > ends:
                    return
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_S)


def _failure(failed: Sequence[int], ranks: Sequence[subprocess.Popen[str]], folder: Path) -> DiagError:
    """Of what all say alike, it is enough to hear the first."""
    for rank in failed:
        status = ranks[rank].returncode
        lines = _errors_of(folder, rank).read_text(errors="replace").strip().splitlines()
        if status == UsageError.exit_status and lines:
            return UsageError(lines[-1])
    lines = _errors_of(folder, failed[0]).read_text(errors="replace").strip().splitlines()
    last = lines[-1] if lines else f"status {ranks[failed[0]].returncode}"
    return DiagError(f"Rank {failed[0]} of {len(ranks)} failed: {last}")
