"""Reader of `diag.serving-log/1`: what `diag probe serve` and the engine wrote down, one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec.structs import astuple

from diag.errors import InputError
from diag.ingest.input_file import LATEST_NS, InputFile
from diag.ingest.serving.documents import Left, check_runs
from diag.ingest.serving.store import FoundRun, add_source
from diag.model.served import served
from diag.model.serving_log import SCHEMA, Header, Record, RequestRecord, StepRecord
from diag.store.case import Case

KIND = "serving-log"

LONGEST_LINE = 16 << 20
"""A request of a million output tokens has one time for each."""

MOST_COUNTED = 1 << 40
"""Of tokens, blocks and sequences."""

MOST_BYTES = 1 << 30
"""Seven hours of an engine with 100 steps a second."""

_MARK = b'"diag.serving-log/'


def looks_like_serving_log(head: bytes) -> bool:
    """Of any version, be it one that `read` refuses."""
    return head.lstrip()[:1] == b"{" and _MARK in head[:1024]


@dataclass
class _Run:
    header: Header
    requests: list[RequestRecord] = field(default_factory=list)
    steps: list[StepRecord] = field(default_factory=list)


def read(file: InputFile, case: Case) -> int:
    """Adds a file to the case, inside the caller's transaction, and returns the source's id. Raises InputError."""
    left = Left()
    runs = _runs(file.data, left)
    first = runs[0].header
    return add_source(
        case,
        file,
        [_found(run) for run in runs],
        left.notes(),
        tool="diag",
        tool_version=first.diag_version,
        schema_version=first.schema,
        host=first.host,
        is_cut=int(left.is_cut),
    )


def _runs(path: Path, left: Left) -> Sequence[_Run]:
    runs: list[_Run] = []
    for record in _records(path, left):
        if isinstance(record, Header):
            _check(record, path)
            runs.append(_Run(record))
            check_runs(len(runs), path)
        elif not runs:
            raise InputError(f"{path} does not begin with the header of a serving log. Copy it again, whole.")
        elif not is_possible(record):
            left.add("Records whose times or counts cannot be, left out")
        elif isinstance(record, RequestRecord):
            runs[-1].requests.append(record)
        else:
            runs[-1].steps.append(record)
    if not runs:
        raise InputError(f"{path} holds no whole line of a serving log. Was the run interrupted at once?")
    return runs


def _check(header: Header, path: Path) -> None:
    """Raises InputError for one that is not read, or states what cannot be."""
    if header.schema != SCHEMA:
        raise InputError(f"{path} has schema {header.schema}, this diag reads {SCHEMA}. Update diag.")
    started_ns, counts = header.started_unix_ns or 0, (header.load.n_requests or 0, header.load.concurrency or 0)
    is_possible_load = abs(started_ns) <= LATEST_NS and all(0 <= each <= MOST_COUNTED for each in counts)
    if not (is_possible_load and _can_be_stored(header)):
        raise InputError(f"A header in {path} states a time or a number that cannot be. Copy it again.")


def _can_be_stored(header: Header) -> bool:
    """As JSON, whose integers msgspec writes from -2^63 to 2^64 - 1."""
    parts = [part for part in (header, header.load, header.engine) if part is not None]
    return all(-(1 << 63) <= value < 1 << 64 for part in parts for value in astuple(part) if isinstance(value, int))


def _records(path: Path, left: Left) -> Iterator[Record]:
    """A line that is no record is counted; the last one may be cut, as the writer was killed."""
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"{path} is larger than a serving log can be ({MOST_BYTES >> 20:,} MiB). Split it by runs.")
    decoder = msgspec.json.Decoder(Record)
    with path.open("rb") as file:
        while line := file.readline(LONGEST_LINE + 1):
            if not line.strip():
                continue
            try:
                yield decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                if len(line) > LONGEST_LINE:
                    raise InputError(f"{path} has a line of over {LONGEST_LINE >> 20} MiB: no serving log.") from error
                if line.endswith(b"\n"):
                    left.add("Lines that are no record of a serving log, left out")
                else:
                    left.is_cut = True


def is_possible(record: RequestRecord | StepRecord) -> bool:
    """Whether times follow each other and counts are counts: figures are worked out from them unasked."""
    if isinstance(record, StepRecord):
        times = [record.start_ns, record.end_ns]
        parts = (record.schedule_ns, record.model_ns, record.sample_ns, record.output_ns)
        if any(part is not None and not 0 <= part <= record.end_ns - record.start_ns for part in parts):
            return False
    else:
        sent = (record.intended_ns, record.sent_ns)
        times = [time for time in (*sent, *record.token_ns, record.ended_ns) if time is not None]
        engine = [time for time in (record.queued_ns, record.scheduled_ns) if time is not None]
        if abs(record.priority or 0) > MOST_COUNTED or not _follow(engine):
            return False
        if record.token_counts and len(record.token_counts) != len(record.token_ns):
            return False
    return _follow(times) and all(0 <= count <= MOST_COUNTED for count in _counts(record))


def _follow(times: Sequence[int]) -> bool:
    return all(abs(time) <= LATEST_NS for time in times) and all(a <= b for a, b in pairwise(times))


def _counts(record: RequestRecord | StepRecord) -> Iterator[int]:
    for name in record.__struct_fields__:
        if name in _COUNTED and (value := getattr(record, name)) is not None:
            yield value
    if isinstance(record, RequestRecord):
        yield from record.token_counts


_COUNTED = frozenset(
    name
    for kind in (RequestRecord, StepRecord)
    for name in kind.__struct_fields__
    if name.endswith(("_tokens", "_blocks")) or name.startswith("n_") or name in ("padded_rows", "number")
)


def _found(run: _Run) -> FoundRun:
    header = run.header
    in_order = sorted(run.requests, key=lambda each: (each.sent_ns is None, each.sent_ns or 0))
    return FoundRun(
        label=header.label,
        backend=header.backend,
        model=header.model,
        started_unix_ns=header.started_unix_ns,
        load=header.load,
        engine=header.engine,
        requests=[served(record, number) for number, record in enumerate(in_order)],
        steps=sorted(run.steps, key=lambda step: (step.number, step.start_ns)),
    )
