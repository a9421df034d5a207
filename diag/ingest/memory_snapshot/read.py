"""Reader of snapshots of PyTorch's allocator, in a worker that the kernel bounds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from diag.errors import InputError
from diag.ingest.input_file import InputFile, instant
from diag.ingest.memory_snapshot.history import Answer, History, Refusal
from diag.ingest.memory_snapshot.worker import SHORT_OF_MEMORY
from diag.ingest.recorder.limits import Limits
from diag.ingest.stack_dump import rank_in_name
from diag.model import units
from diag.store.case import Case

LIMITS = Limits(file_bytes=1 << 30, answer_bytes=512 << 20, memory_bytes=8 << 30, cpu_s=300)
"""A million events with their stacks take 150 MB in a file, and 1.5 GB in a process."""

_DECODER: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
_WORKER = "diag.ingest.memory_snapshot.worker"
_MOST_BYTES = 1 << 53


def read(file: InputFile, case: Case, *, limits: Limits = LIMITS) -> int:
    """Adds a file to the case, inside the caller's transaction, and returns the source's id. Raises InputError."""
    answer = _asked(file, limits)
    if isinstance(answer, Refusal):
        raise InputError(
            f"{file.path} cannot be read as a memory snapshot: {answer.because}. Write it again with "
            "torch.cuda.memory._dump_snapshot(FILE)."
        )
    rank = rank_in_name(file.path)
    source_id = case.add_source(
        kind=file.kind, path=str(file.path), sha256=file.sha256, size_bytes=file.size_bytes, tool="PyTorch", rank=rank,
        rank_origin=None if rank is None else "file name", is_cut=int(answer.is_cut), time_resolution_ns=1000,
    )  # fmt: skip
    process_id = case.insert_returning_id("process", {"source_id": source_id, "pid": 0, "name": None})
    case.db.executemany(_INSERT, _rows(answer, source_id, process_id))
    n_events = len(answer.device) - answer.operation.count("state")
    case.finish_source(source_id, {"allocation": n_events or None, "memory_history": n_events}, _notes(answer))
    return source_id


def _asked(file: InputFile, limits: Limits) -> Answer:
    # -P: the folder that diag happens to run in is no place to import from.
    command = [sys.executable, "-P", "-m", _WORKER, msgspec.json.encode(limits).decode(), os.fspath(file.data)]
    nothing = subprocess.DEVNULL
    ended = subprocess.run(command, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing, check=False)
    if ended.returncode:
        return Refusal(_why(ended.returncode, limits))
    try:
        return _DECODER.decode(ended.stdout)
    except msgspec.DecodeError:
        return Refusal("what reads it gave no whole answer")


def _why(status: int, limits: Limits) -> str:
    if status == SHORT_OF_MEMORY:
        return f"it takes more memory than {units.size(limits.memory_bytes)} to read"
    if status == -signal.SIGXCPU:
        return f"it takes more than {limits.cpu_s} s of a processor to read"
    return f"what reads it ended with {status}"


def _rows(of: History, source_id: int, process_id: int) -> Iterator[tuple[Any, ...]]:
    columns = zip(
        of.device, of.stream, of.time_ns, of.operation, of.address, of.n_bytes, of.allocated_bytes, of.reserved_bytes,
        of.phase, strict=True,
    )  # fmt: skip
    for device, stream, time_ns, operation, address, n_bytes, allocated, reserved, phase in columns:
        if instant(time_ns) is None or max(n_bytes, allocated, reserved) > _MOST_BYTES or n_bytes < 0:
            continue
        # Addresses of the upper half do not fit into SQLite's integers, nor do they matter.
        at = address if 0 <= address < 1 << 63 else None
        stream_id = stream if abs(stream) < 1 << 62 else None
        yield (
            source_id, process_id, device, stream_id, time_ns, operation, at, n_bytes, allocated, reserved, phase
        )  # fmt: skip


def _notes(of: History) -> Iterator[str]:
    if of.is_cut:
        yield "The history begins with memory allocated already: peaks before it are not known."
    if "state" in of.operation:
        yield (
            "The snapshot has no history of a device, only its last moment. Record one before the run: "
            "torch.cuda.memory._record_memory_history()."
        )
    if not of.has_times:
        yield "The history has no times: events are numbered in their place."
    if of.ooms:
        yield f"{units.count(len(of.ooms), 'allocation')} failed; the largest asked for {units.size(max(of.ooms))}."


_INSERT = """
    INSERT INTO allocation (source_id, process_id, device, stream, time_ns, operation, memory, address, bytes,
                            allocated_bytes, reserved_bytes, phase)
    VALUES (?, ?, ?, ?, ?, ?, 'device', ?, ?, ?, ?, ?)
"""
