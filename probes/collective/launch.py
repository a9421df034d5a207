"""Starts the ranks of a job on this machine, waits for them, and leaves none behind."""

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

from diag.child import end_with_parent
from diag.errors import DiagError, UsageError
from diag.probes.collective.request import Request
from diag.probes.probe import Device

MOST_RANKS = 64
"""On one machine: each is a process with PyTorch in it."""
NOTE = "note: "
"""Before what rank 0 has to say at the end, not meanwhile."""
LOOK_S = 0.2
"""Between two looks at the ranks, while rank 0 has nothing to tell."""
GRACE_S = 5.0
"""For the others, when one rank has failed: they notice, and say why."""

Processes = Sequence[subprocess.Popen[str]]


def run(request: Request, n_ranks: int, device: Device, file: Path, progress: Callable[[str], None]) -> Sequence[str]:
    """Rank 0 writes the benchmark to `file`; returns what it has to note. Raises as `together` does."""
    command = [sys.executable, "-m", "diag.probes.collective", *request.arguments]
    notes: list[str] = []
    for line in together([*command, "--device", device, "--output", str(file)], n_ranks):
        if line.startswith(NOTE):
            notes.append(line.removeprefix(NOTE))
        else:
            progress(line)
    return notes


def check_number(n_ranks: int) -> None:
    """Raises UsageError."""
    if not 2 <= n_ranks <= MOST_RANKS:
        raise UsageError(f"--ranks {n_ranks}: a probe runs on 2 to {MOST_RANKS} ranks of one machine.")


def together(command: Sequence[str], n_ranks: int) -> Iterator[str]:
    """What rank 0 of a command says, line by line; the command is given a file for `--rendezvous`.

    Raises UsageError for a number of ranks that there cannot be and for what a rank calls wrong usage, DiagError with
    its own last words where one fails.
    """
    check_number(n_ranks)
    with tempfile.TemporaryDirectory(prefix="diag-") as name:
        folder = Path(name)
        with _started([*command, "--rendezvous", str(folder / "rendezvous")], n_ranks, folder) as ranks:
            yield from _lines(ranks)
            _wait(ranks)
            failed = {rank: each.returncode for rank, each in enumerate(ranks) if each.returncode}
        if failed:
            raise _failure(failed, n_ranks, folder)


@contextmanager
def _started(command: Sequence[str], n_ranks: int, folder: Path) -> Iterator[Processes]:
    """Each rank in a session of its own, so that ending it ends what it started."""
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
                        preexec_fn=end_with_parent,  # noqa: PLW1509  # takes no lock
                    )
                )
        yield ranks
    finally:
        for process in ranks:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        for process in ranks:
            with process:  # waits for it, and closes what it wrote to
                pass


def _environment(rank: int, n_ranks: int) -> dict[str, str]:
    """Ranks of one machine reach each other without a network."""
    place = {"RANK": rank, "WORLD_SIZE": n_ranks, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": n_ranks}
    return {"GLOO_SOCKET_IFNAME": "lo", **os.environ, **{name: str(value) for name, value in place.items()}}


def _errors_of(folder: Path, rank: int) -> Path:
    return folder / f"errors-{rank}"


def _lines(ranks: Processes) -> Iterator[str]:
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
            yield line.rstrip("\n")


def _wait(ranks: Processes) -> None:
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


def _failure(failed: dict[int, int], n_ranks: int, folder: Path) -> DiagError:
    """Of several that fail, the one that was ended by a signal, or that ends as diag does: the others only noticed."""
    first = min(failed, key=lambda rank: (failed[rank] > 0, failed[rank] not in (2, 3), rank))
    status = failed[first]
    last = _last_words(_errors_of(folder, first))
    if status < 0:
        ended = f"Rank {first} of {n_ranks} was ended by {signal.Signals(-status).name}"
        return DiagError(f"{ended}{last and f' after it said: {last}'}. Run it once more.")
    last = last or f"it said nothing, and its status is {status}."
    return UsageError(last) if status == UsageError.exit_status else DiagError(f"Rank {first} of {n_ranks}: {last}")


def _last_words(errors: Path) -> str:
    lines = errors.read_text(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""
