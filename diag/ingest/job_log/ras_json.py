"""Reader of 'nccl-ras': what `ncclras -f json` prints (NCCL 2.28.7 and newer).

The events are those of the text (`ras_text`), but for what that leaves out: of each operation all ranks by their count.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from diag.errors import InputError
from diag.ingest.input_file import InputFile
from diag.ingest.job_log.event import Event, Place
from diag.ingest.job_log.prefix import date_of
from diag.ingest.job_log.store import add_source
from diag.store.case import Case

MOST_BYTES = 256 << 20
"""Of a file: a job of 16,384 ranks in ten communicators each has 80 MB."""

MOST_OPERATIONS = 64

Small = Annotated[int, msgspec.Meta(ge=-1, le=1 << 31)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
Text = Annotated[str, msgspec.Meta(max_length=300)]

IN_PROGRESS = 7
"""ncclInProgress; 0 is ncclSuccess, everything else an error (nccl.h)."""

ERRORS = {
    1: "Unhandled CUDA error",
    2: "System error",
    3: "Internal error",
    4: "Invalid argument",
    5: "Invalid usage",
    6: "Remote process error",
}


class RankState(msgspec.Struct):
    init_state: Small = 0
    async_error: Small = 0
    finalize_called: bool = False
    destroy_flag: bool = False
    abort_flag: bool = False

    @property
    def name(self) -> str:
        """In the words of the text."""
        if self.abort_flag:
            return "ABORT"
        if self.finalize_called or self.destroy_flag:
            return "FINALIZE"
        return "RUNNING" if self.init_state == 0 else "INIT"

    @property
    def errors(self) -> set[int]:
        return {self.init_state, self.async_error} - {0, IN_PROGRESS}


class Rank(msgspec.Struct):
    rank: Small
    host: Text = ""
    pid: Small = -1
    cuda_dev: Small = -1
    status: RankState = msgspec.field(default_factory=RankState)
    collective_counts: dict[Text, Count] = {}


class MissingState(msgspec.Struct):
    unresponsive: bool = False
    considered_dead: bool = False


class MissingRank(msgspec.Struct):
    rank: Small
    host: Text = ""
    pid: Small = -1
    cuda_dev: Small = -1
    status: MissingState = msgspec.field(default_factory=MissingState)


class Communicator(msgspec.Struct):
    hash: Text
    size: Small
    ranks: list[Rank] = []
    missing_ranks: list[MissingRank] = []

    def has(self, rank: int) -> bool:
        """NCCL writes -1 for a number that it does not know."""
        return 0 <= rank < self.size or (rank >= 0 and self.size < 0)

    @property
    def known(self) -> list[Rank]:
        return [each for each in self.ranks if self.has(each.rank)]


class Status(msgspec.Struct):
    nccl_version: Text
    communicators: list[Communicator]
    timestamp: Text = ""


_MARK = re.compile(rb'"communicators(?:_count)?"\s{0,20}:')


def looks_like_ras(head: bytes) -> bool:
    return head.lstrip()[:1] == b"{" and b'"nccl_version"' in head and _MARK.search(head) is not None


def load(path: Path) -> Status:
    """Raises InputError when the file is too large, no such file, or holds what cannot be."""
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"{path} is larger than any status of NCCL ({MOST_BYTES >> 20} MiB). Name another file.")
    try:
        return msgspec.json.decode(path.read_bytes(), type=Status)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = str(error).rstrip(".")
        raise InputError(f"{path} is no status of NCCL's RAS ({said}). Write it again: ncclras -v -f json") from error


def read(file: InputFile, case: Case) -> int:
    """Adds a file to the case, inside the caller's transaction, and returns the source's id."""
    status = load(file.data)
    return add_source(file, case, list(events_of(status)), tool="ncclras", tool_version=status.nccl_version)


def events_of(status: Status) -> Iterator[Event]:
    time_ns = date_of(status.timestamp)
    for number, communicator in enumerate(status.communicators, 1):
        for event in _of_communicator(communicator):
            kind, fields, place = event
            text = f"communicator {communicator.hash}: {kind.removeprefix('nccl.ras.')}"
            yield Event(number, kind, fields, text, place, time_ns, communicator.hash)


Said = tuple[str, Mapping[str, object], Place]


def _of_communicator(of: Communicator) -> Iterator[Said]:
    states: defaultdict[str, list[int]] = defaultdict(list)
    errors: defaultdict[int, list[int]] = defaultdict(list)
    known = of.known
    for rank in known:
        states[rank.status.name].append(rank.rank)
        for error in rank.status.errors:
            errors[error].append(rank.rank)
    status = max(states, key=lambda name: len(states[name]), default="NOCOMM")
    yield "nccl.ras.group", {"ranks_per_comm": of.size, "ranks": len(known), "status": status}, Place()
    if len(states) > 1:
        for name, members in states.items():
            yield "nccl.ras.status", {"status": name, "n_ranks": len(members), "members": members}, Place()
    for code, members in errors.items():
        said = ERRORS.get(code, f"error {code}")
        yield "nccl.ras.error", {"error": said, "n_ranks": len(members), "members": members}, Place()
    yield from _counts(known)
    for missing in of.missing_ranks:
        if not of.has(missing.rank):
            continue
        fields = {
            "member": missing.rank,
            "is_dead": missing.status.considered_dead,
            "answers": not missing.status.unresponsive,
        }
        yield "nccl.ras.missing", fields, Place(missing.host or None, missing.pid, device=missing.cuda_dev)


def _counts(known: Sequence[Rank]) -> Iterator[Said]:
    """Where ranks differ in how many of an operation they have launched: each count, with the ranks that have it."""
    operations = sorted({op for rank in known for op in rank.collective_counts})[:MOST_OPERATIONS]
    for op in operations:
        by_count: defaultdict[int, list[int]] = defaultdict(list)
        for rank in known:
            by_count[rank.collective_counts.get(op, 0)].append(rank.rank)
        if len(by_count) > 1:
            for count, members in sorted(by_count.items(), key=lambda pair: -len(pair[1])):
                fields = {"op": op, "operation": count, "n_ranks": len(members), "members": members}
                yield "nccl.ras.count", fields, Place()
