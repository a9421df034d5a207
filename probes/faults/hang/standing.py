"""When a job hangs: all ranks stand where the fault makes them stand, and nothing moves from one dump to the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from diag.model.heartbeat import Heartbeat
from diag.probes.faults.hang.fault import DidNotHappen, HangFault, Place
from diag.probes.faults.hang.folders import Folders
from diag.probes.faults.hang.ranks import Exit, Ranks

DEADLINE_S = 60.0
POLL_S = 0.02
STILL_LOOKS = 3
"""Looks in a row that find the same, each after every rank has written its files anew."""
SILENT_NS = 4_000_000_000
"""For how long a rank whose GIL is held must have run no Python: eight times as long as its heartbeat lets pass."""


@dataclass(frozen=True)
class Look:
    """What is seen of one rank."""

    place: Place
    dump: bytes
    dumped_ns: int  # when the dump was written
    beat_ns: int  # when the heartbeat was written
    silent_ns: int  # for how long no Python had run then

    def is_of_same(self, before: Look) -> bool:
        return (self.place, self.dump) == (before.place, before.dump)

    def is_newer(self, before: Look, *, holds_gil: bool) -> bool:
        """A rank whose GIL is held writes no more dumps; its heartbeat is written by a process beside it."""
        return self.beat_ns > before.beat_ns and (holds_gil or self.dumped_ns > before.dumped_ns)


_HEARTBEAT = msgspec.json.Decoder(Heartbeat)


def heartbeat_of(folders: Folders, rank: int) -> Heartbeat | None:
    try:
        return _HEARTBEAT.decode(folders.heartbeat(rank).read_bytes())
    except FileNotFoundError:
        return None


def wait_until_it_hangs(fault: HangFault, ranks: Ranks, folders: Folders) -> None:
    """Raises DidNotHappen when a rank ends before, or none of it comes to pass in time."""
    deadline = time.monotonic() + DEADLINE_S
    last: Mapping[int, Look] = {}
    still = 0
    while still < STILL_LOOKS:
        _check(ranks.exits(), deadline, last)
        time.sleep(POLL_S)
        looks = {rank: look for rank in range(fault.world_size) if (look := _look(folders, rank)) is not None}
        if not _stands(fault, looks):
            last, still = {}, 0
        elif not last or not all(look.is_of_same(last[rank]) for rank, look in looks.items()):
            last, still = looks, 0
        elif all(look.is_newer(last[rank], holds_gil=rank in fault.holds_gil) for rank, look in looks.items()):
            last, still = looks, still + 1


def wait_until(is_met: Callable[[], bool], what: str) -> None:
    """Raises DidNotHappen, which says what was waited for."""
    deadline = time.monotonic() + DEADLINE_S
    while not is_met():
        if time.monotonic() > deadline:
            raise DidNotHappen(f"After {DEADLINE_S:.0f} s {what}. Run it again where less else runs.")
        time.sleep(POLL_S)


def _look(folders: Folders, rank: int) -> Look | None:
    beat = heartbeat_of(folders, rank)
    dump = folders.dump(rank)
    if beat is None or not dump.exists():
        return None
    dumped_ns = dump.stat().st_mtime_ns
    silent_ns = beat.written_ns - beat.time_ns
    return Look((beat.step, beat.phase or ""), dump.read_bytes(), dumped_ns, beat.written_ns, silent_ns)


def _stands(fault: HangFault, looks: Mapping[int, Look]) -> bool:
    return all(rank in looks and looks[rank].place in places for rank, places in fault.stands_at.items()) and all(
        looks[rank].silent_ns > SILENT_NS for rank in fault.holds_gil
    )


def _check(exits: Mapping[int, Exit], deadline: float, last: Mapping[int, Look]) -> None:
    if exits:
        raise DidNotHappen(f"Ranks ended before the job hung (exit by rank: {dict(exits)}). Their logs say why.")
    if time.monotonic() > deadline:
        seen = {rank: look.place for rank, look in last.items()}
        raise DidNotHappen(f"The job did not hang within {DEADLINE_S:.0f} s ({seen}). Run it again.")
