"""One run of one fault, or of its healthy twin: from the start of the ranks to the last file that is kept."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diag.errors import StorageError
from diag.probes.faults.hang.evidence import StackTool, keep_files, keep_stacks
from diag.probes.faults.hang.fault import DidNotHappen, HangFault
from diag.probes.faults.hang.folders import Folders
from diag.probes.faults.hang.rank import be_rank
from diag.probes.faults.hang.ranks import Exit, Ranks, started
from diag.probes.faults.hang.standing import heartbeat_of, wait_until, wait_until_it_hangs

TRUTH_SCHEMA = "diag.hang-truth/1"


@dataclass(frozen=True)
class Ran:
    """`exits`: of the ranks that ended by themselves. `took_s`: until the evidence was there."""

    exits: Mapping[int, Exit]
    took_s: float


def run(fault: HangFault, into: Path, *, is_sick: bool, stacks: StackTool) -> Ran:
    """Leaves the evidence in `into`, which must not exist, and what was wrong in `into`.truth.json.

    Raises DidNotHappen, where the job went another way, and StorageError.
    """
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="diag-hang-") as live:
        folders = Folders(Path(live, "ranks"), into)
        try:
            folders.make()
            exits = _watched(fault, folders, is_sick, stacks)
        except OSError as error:
            raise StorageError(f"{into} cannot be written ({error.strerror}). Name another folder: -o") from error
    truth_of(into).write_text(json.dumps(truth(fault, is_sick, exits), indent=1) + "\n")
    return Ran(exits, time.monotonic() - start)


def truth_of(into: Path) -> Path:
    """The file beside the evidence that says what was wrong."""
    return into.with_name(f"{into.name}.truth.json")


def _watched(fault: HangFault, folders: Folders, is_sick: bool, stacks: StackTool) -> Mapping[int, Exit]:
    everybody = range(fault.world_size)
    dumps = [folders.dump(rank) for rank in everybody]
    with started(fault.world_size, lambda rank: be_rank(fault, rank, is_sick=is_sick, folders=folders)) as ranks:
        if is_sick:
            wait_until_it_hangs(fault, ranks, folders)
            keep_files(folders, dumps, "dumps")
        if not is_sick or fault.fails:
            folders.gate.touch()
            _wait_for_ends(ranks, folders)
        if not is_sick:
            _check_health(ranks)
            keep_files(folders, dumps, "dumps")
        elif not fault.fails:
            keep_stacks(folders, ranks, stacks)
        keep_files(folders, [folders.heartbeat(rank) for rank in everybody], "heartbeats")
        return ranks.exits()


def _wait_for_ends(ranks: Ranks, folders: Folders) -> None:
    """Until all ranks have ended, and the last heartbeat of each says so."""
    everybody = range(len(ranks.pids))
    wait_until(lambda: len(ranks.exits()) == len(everybody), "some ranks still ran")
    wait_until(
        lambda: all((beat := heartbeat_of(folders, rank)) is not None and beat.ended for rank in everybody),
        "some heartbeats did not say that their rank had ended",
    )


def _check_health(ranks: Ranks) -> None:
    exits = ranks.exits()
    if any(exits.values()):
        raise DidNotHappen(f"A healthy rank failed (exit by rank: {dict(exits)}). Their logs say why.")


def truth(fault: HangFault, is_sick: bool, exits: Mapping[int, Exit]) -> dict[str, Any]:
    """For tests: nothing of diag reads it."""
    return {
        "schema": TRUTH_SCHEMA,
        "fault": fault.name,
        "idea": fault.idea,
        "is_sick": is_sick,
        "world_size": fault.world_size,
        "faulty": fault.faulty if is_sick else [],
        "alike": fault.alike if is_sick else [],
        "cause": fault.cause if is_sick else None,
        "exits": exits,
    }
