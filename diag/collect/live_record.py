"""Records what is watched into a case, as it goes: whatever ends the program, the file holds what was committed."""

from __future__ import annotations

import hashlib
import os
import platform
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from diag import __version__
from diag.errors import StorageError, UsageError
from diag.launches.live_runs import KIND
from diag.model import units
from diag.model.live import GpuReading, Snapshot
from diag.model.live_run import NS_PER_S, Step
from diag.store.case import Case
from diag.store.kept_file import copy_whole
from diag.store.lock import held
from diag.store.sqlite_errors import reported
from diag.store.work_folder import work_folder

COMMIT_NS = 5 * NS_PER_S
"""So much is lost at most when the program is killed."""

MOST_BYTES = 4 << 30
"""Of snapshots. At 1 Hz an hour of one GPU and a process with 40 threads takes some 30 MB, of 8 GPUs and 8 ranks with
150 threads each 650 MB (tests/collect/test_live_record.py counts them).
"""

SERIES: Mapping[str, tuple[str, str]] = {
    "resident_pct": ("Kernel resident", "%"),
    "memory_active_pct": ("Memory active", "%"),
    "sm_active_pct": ("SM active", "%"),
    "tensor_active_pct": ("Tensor active", "%"),
    "memory_used_bytes": ("Memory used", "bytes"),
    "sm_clock_hz": ("SM clock", "Hz"),
    "memory_clock_hz": ("Memory clock", "Hz"),
    "power_w": ("Power", "W"),
    "power_limit_w": ("Power limit", "W"),
    "temperature_c": ("Temperature", "°C"),
    "pcie_rx_bytes_per_s": ("PCIe into the GPU", "bytes/s"),
    "pcie_tx_bytes_per_s": ("PCIe out of the GPU", "bytes/s"),
    "pcie_generation": ("PCIe generation", "generation"),
    "pcie_width": ("PCIe width", "lanes"),
    "nvlink_rx_bytes": ("NVLink into the GPU", "bytes/s"),
    "nvlink_tx_bytes": ("NVLink out of the GPU", "bytes/s"),
    "ecc_corrected": ("ECC errors corrected", "errors"),
    "ecc_uncorrected": ("ECC errors not corrected", "errors"),
}
"""What of a device is a series over time as well: field, name, unit."""

COUNTERS = frozenset({"nvlink_rx_bytes", "nvlink_tx_bytes"})
"""Of them those that only grow; as a series they are rates."""


def check_target(target: Path) -> None:
    """Raises UsageError when nothing can be recorded to `target`: what exists is never replaced."""
    if os.path.lexists(target):
        raise UsageError(f"--record {target} exists. Remove it first, or choose another name.")
    if not os.path.isdir(target.absolute().parent):
        raise UsageError(f"--record {target}: there is no folder {target.parent}. Make it first, or choose another.")


class Recorder:
    """A context in which `add` keeps snapshots; on leaving it the rest is written.

    Raises UsageError when `path` exists, StorageError when it cannot be written. `pid` is the watched process.
    """

    def __init__(self, path: Path, *, pid: int | None, period_ns: int, most_bytes: int = MOST_BYTES) -> None:
        check_target(path)
        self.path = path
        self.is_full = False
        """Whether the record has ended because it is as long as it may be."""
        self._pid, self._most_bytes = pid, most_bytes
        self._pending: list[tuple[Snapshot, str]] = []
        self._committed_ns: int | None = None
        self._previous: Snapshot | None = None
        self._series: dict[tuple[str, str], int] = {}
        self._n_snapshots = self._n_committed = self._n_stacks = self._n_bytes = 0
        self._source_id = _make(path, period_ns)
        self._open = ExitStack()
        self._open.enter_context(held(path, exclusive=True))  # readers take a copy meanwhile
        self._case = Case.open(path, "rw")
        self._case.db.execute("PRAGMA synchronous = NORMAL")  # a rollback journal: killed, it is as last committed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if self._pending and not isinstance(error, StorageError):
                self._commit()
        finally:
            self._case.close()
            self._open.close()

    @property
    def n_bytes(self) -> int:
        """Of the snapshots that were added."""
        return self._n_bytes

    def add(self, snapshot: Snapshot) -> None:
        """Keeps a snapshot, within COMMIT_NS also on the disk. Raises StorageError when that is full."""
        if self.is_full:
            return
        body = _encoded(snapshot)
        if self._n_bytes + len(body) > self._most_bytes:
            self.is_full = True
            self._commit(f"The record ends here: it holds {units.size(self._n_bytes)}, as much as it may.")
            return
        self._n_bytes += len(body)
        self._pending.append((snapshot, body.decode()))
        if self._committed_ns is None or snapshot.clock_ns - self._committed_ns >= COMMIT_NS:
            self._commit()

    def _commit(self, note: str | None = None) -> None:
        before = (self._n_snapshots, self._n_stacks, self._previous, dict(self._series))
        try:
            with self._case.transaction():
                for snapshot, body in self._pending:
                    self._insert(snapshot, body)
                self._tell(note)
        except KeyboardInterrupt:  # nothing of it was written; on leaving the context all of it is tried once more
            self._n_snapshots, self._n_stacks, self._previous, self._series = before
            raise
        except (StorageError, sqlite3.Error) as error:
            self.is_full = True
            why = str(error).partition(". ")[0].rstrip(".")
            raise StorageError(
                f"The record {self.path} ends after {self._n_committed} snapshots, which it still holds: it cannot be "
                f"written any more ({why}). Free some space, or choose another place for --record."
            ) from error
        self._n_committed = self._n_snapshots
        self._committed_ns = self._pending[-1][0].clock_ns if self._pending else self._committed_ns
        self._pending.clear()

    def _insert(self, snapshot: Snapshot, body: str) -> None:
        row = {"source_id": self._source_id, "pid": self._pid, "time_ns": snapshot.time_ns, "body": body}
        self._case.insert("live_snapshot", [row])
        self._case.db.executemany("INSERT INTO counter VALUES (?, ?, ?)", list(self._samples(snapshot)))
        self._n_snapshots += 1
        self._n_stacks += sum(len(dump.threads) for dump in snapshot.stacks)
        self._previous = snapshot

    def _samples(self, snapshot: Snapshot) -> Iterator[tuple[int, int, float]]:
        """Series, time and value of what a snapshot tells of its devices."""
        earlier = {gpu.uuid: gpu for gpu in self._previous.gpus} if self._previous else {}
        step = Step(self._previous, snapshot) if self._previous else None
        for gpu in snapshot.gpus:
            for field in SERIES:
                value = getattr(gpu, field)
                if field in COUNTERS:
                    before = getattr(earlier.get(gpu.uuid), field, None)
                    value = step.per_s(before, value) if step else None
                if value is not None:
                    yield self._series_of(gpu, field), snapshot.time_ns, float(value)

    def _series_of(self, gpu: GpuReading, field: str) -> int:
        key = (gpu.uuid, field)
        if key not in self._series:
            if not any(uuid == gpu.uuid for uuid, _ in self._series):
                self._case.insert("device", [_device(self._source_id, gpu)])
            name, unit = SERIES[field]
            if gpu.parent_uuid is not None:
                name = f"{name} (MIG {gpu.mig_profile or ''} {_text(gpu.uuid)})"
            row = {"source_id": self._source_id, "device": gpu.index, "name_id": self._case.intern([name])[name]}
            self._series[key] = self._case.insert_returning_id("counter_series", {**row, "unit": unit})
        return self._series[key]

    def _tell(self, note: str | None) -> None:
        facts = {"live_snapshot": self._n_snapshots, "live_stack": self._n_stacks or None}
        self._case.finish_source(self._source_id, facts, [note] if note else [])
        if not self._pending:
            return
        if not self._n_committed:  # the first snapshot of a watch tells it from any other
            digest = hashlib.sha256(self._pending[0][1].encode()).hexdigest()
            self._case.db.execute(_BEGINS, (digest, self._pending[0][0].time_ns, self._source_id))
        self._case.db.execute(_ENDS, (self._pending[-1][0].time_ns, self._n_bytes, self._source_id))


_BEGINS = "UPDATE source SET sha256 = ?, capture_start_ns = ? WHERE id = ?"
_ENDS = "UPDATE source SET capture_end_ns = ?, size_bytes = ? WHERE id = ?"


def _make(path: Path, period_ns: int) -> int:
    """A case with one source and nothing in it, at `path` whole or not at all; returns the source's id."""
    with work_folder(None) as folder:
        made = folder / "new.diag"
        with Case.create(made) as case, reported(path):
            source_id = case.add_source(
                kind=KIND, path=_text(str(path)), sha256="", size_bytes=0, tool="diag watch",
                tool_version=__version__, host=platform.node() or None, time_resolution_ns=max(1, period_ns),
            )  # fmt: skip
            case.finish_source(source_id, {"live_snapshot": 0})
        copy_whole(made, path)
    return source_id


def _device(source_id: int, gpu: GpuReading) -> Mapping[str, Any]:
    return {
        "source_id": source_id,
        "gpu_index": gpu.index,
        "uuid": _text(gpu.uuid),
        "name": _text(gpu.name),
        "mig_instance": (gpu.mig_profile or _text(gpu.uuid)) if gpu.parent_uuid is not None else None,
        "clock_hz": gpu.sm_clock_max_hz,
        "memory_bytes": gpu.memory_total_bytes,
    }


def _encoded(snapshot: Snapshot) -> bytes:
    """JSON. What is no Unicode, as in a name that is no UTF-8, is spelled out."""
    try:
        return msgspec.json.encode(snapshot)
    except UnicodeEncodeError:
        return msgspec.json.encode(_texts(msgspec.to_builtins(snapshot)))


def _texts(value: Any) -> Any:
    match value:
        case str():
            return _text(value)
        case dict():
            return {_text(key): _texts(item) for key, item in value.items()}
        case list() | tuple():
            return [_texts(item) for item in value]
        case _:
            return value


def _text(value: str) -> str:
    return value.encode("utf-8", "backslashreplace").decode()
