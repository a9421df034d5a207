"""Reader of `diag.heartbeat/1`: the last sign of life of one rank, as `diag/collect/heartbeat.py` writes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import msgspec

from diag.errors import InputError
from diag.ingest.input_file import InputFile
from diag.model.heartbeat import Heartbeat
from diag.store.case import Case

MOST_BYTES = 64 << 10

_MARK = b'"diag.heartbeat/'


def looks_like_heartbeat(head: bytes) -> bool:
    """Of any version, be it one that `read` refuses."""
    return head.lstrip()[:1] == b"{" and _MARK in head[:1024]


def read(file: InputFile, case: Case) -> int:
    """Adds a file to the case, inside the caller's transaction, and returns the source's id. Raises InputError."""
    if file.data.stat().st_size > MOST_BYTES:
        raise InputError(f"{file.path} is larger than a heartbeat can be ({MOST_BYTES >> 10} KiB). Name another file.")
    try:
        beat = msgspec.json.decode(file.data.read_bytes(), type=Heartbeat)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = str(error).rstrip(".")
        raise InputError(
            f"{file.path} is no heartbeat of diag ({said}). Copy it again from where it was made."
        ) from error
    source_id = case.add_source(
        kind=file.kind, path=str(file.path), sha256=file.sha256, size_bytes=file.size_bytes, tool="diag",
        schema_version=beat.schema, host=beat.host, rank=beat.rank, rank_origin="content", world_size=beat.world_size,
        time_resolution_ns=1,
    )  # fmt: skip
    fields = {name: value for name, value in asdict(beat).items() if name != "schema"}
    case.insert("heartbeat", [{"source_id": source_id, **fields}])
    case.finish_source(source_id, {"heartbeat": 1}, _notes(beat))
    return source_id


def _notes(beat: Heartbeat) -> Iterator[str]:
    if beat.world_size is not None and beat.rank >= beat.world_size:
        yield f"A heartbeat says that it is of rank {beat.rank} of {beat.world_size}, which no job has."
