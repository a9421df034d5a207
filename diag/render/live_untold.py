"""What the live view cannot show, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from diag.model import units
from diag.model.live import Snapshot


@dataclass(frozen=True)
class Untold:
    """A thing that has no value, where, and why."""

    what: Sequence[str]  # names of fields of the reading
    where: str | None  # 'GPU 0', 'pid 12' or the path of the record; None: of the machine
    because: str


@dataclass(frozen=True)
class RecordRow:
    """What is kept of the readings in a file. `is_full`: nothing more is, for it is as long as it may be."""

    path: str
    n_bytes: int
    is_full: bool


def untold_of(now: Snapshot, record: RecordRow | None) -> list[Untold]:
    """Why things have no value: those of one place that lack the same stand together."""
    places: list[tuple[str | None, Mapping[str, str]]] = [(None, now.untold)]
    places += [(f"GPU {gpu.index}", gpu.untold) for gpu in now.gpus]
    places += [(f"pid {process.pid}", process.untold) for process in now.processes]
    found = _of_record(record)
    for where, untold in places:
        by_reason = sorted(untold.items(), key=lambda item: item[1])
        found += [
            Untold([name for name, _ in named], where, because)
            for because, named in groupby(by_reason, key=lambda item: item[1])
        ]
    return found


def _of_record(record: RecordRow | None) -> list[Untold]:
    if record is None or not record.is_full:
        return []
    because = f"It ended with {units.size(record.n_bytes)}, as much as it may hold. Begin another: diag watch --record"
    return [Untold(["record"], record.path, because)]
