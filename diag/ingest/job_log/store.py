"""From events to rows: repeats are counted, only so many are kept, and no secret is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from diag.ingest.input_file import InputFile
from diag.ingest.job_log.event import Event
from diag.ingest.job_log.secrets import without_secrets
from diag.ingest.rank_names import rank_of_file_name
from diag.ingest.serving.store import FoundRun, add_run, captured
from diag.ingest.stack_dump import add_threads
from diag.ingest.stack_dump_text import DumpedThread
from diag.model import units
from diag.store.case import Case

LONGEST_TEXT = 500
"""Of a line, and of each text in it."""

MOST_TRANSPORTS = 100_000
MOST_OTHERS = 100_000
"""Of one file. A job of 1,024 ranks prints some 50,000 connections of each communicator; they repeat each other."""


@dataclass
class Kept:
    """The events of a file without their repeats: `times` says how often, where it is more than once."""

    _events: dict[tuple[Any, ...], Event] = field(default_factory=dict)
    _n_transports: int = 0
    _made: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    passed_over: Counter[str] = field(default_factory=Counter)

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            thread = (event.place.host, event.place.pid, event.place.tid)
            self._made[thread] += event.kind in ("nccl.init", "nccl.init_done")
            # A thread says the same of each communicator that it makes, one after the other.
            key = (event.kind, event.place, self._made[thread], event.communicator, repr(event.fields))
            if (before := self._events.get(key)) is not None:
                self._events[key] = replace(
                    before, fields={**before.fields, "times": before.fields.get("times", 1) + 1}
                )
            elif self._has_room(event):
                self._events[key] = event
            else:
                self.passed_over[event.kind] += 1

    def _has_room(self, event: Event) -> bool:
        if event.kind == "nccl.transport":
            self._n_transports += 1
            return self._n_transports <= MOST_TRANSPORTS
        return len(self._events) - min(self._n_transports, MOST_TRANSPORTS) < MOST_OTHERS

    @property
    def events(self) -> list[Event]:
        return sorted(self._events.values(), key=lambda event: event.line)


def add_source(
    file: InputFile,
    case: Case,
    events: Sequence[Event],
    *,
    tool: str | None,
    tool_version: str | None,
    world_size: int | None = None,
    notes: Sequence[str] = (),
    threads: Sequence[DumpedThread] = (),
    runs: Sequence[FoundRun] = (),
) -> int:
    """One source with its events. It is of one rank where all lines that name a rank name the same one.

    `threads` that do not say their rank are of that one, or of the one in the file's name. `runs` are what servers
    said of themselves.
    """
    ranks = {event.place.rank for event in events} - {None}
    hosts = {event.place.host for event in events if event.kind.startswith("nccl.")} - {None}
    rank = next(iter(ranks)) if len(ranks) == 1 else None
    source_id = case.add_source(
        kind=file.kind, path=str(file.path), sha256=file.sha256, size_bytes=file.size_bytes, tool=tool,
        tool_version=tool_version, host=next(iter(hosts)) if len(hosts) == 1 else None, rank=rank,
        rank_origin=None if rank is None else "content", world_size=world_size, time_resolution_ns=1,
    )  # fmt: skip
    add_events(case, source_id, events)
    add_threads(case, source_id, threads, rank_of_file_name(str(file.path)) if rank is None else rank, None)
    for run in runs:
        add_run(case, source_id, run)
    found = {"log_event": len(events), "thread_stack": len(threads) or None}
    case.finish_source(source_id, {**found, **(captured(runs) if runs else {})}, notes)
    return source_id


def add_events(case: Case, source_id: int, events: Sequence[Event]) -> None:
    """Adds the lines of a log to a source, be it of another reader's."""
    case.insert(
        "log_event",
        [
            {
                "source_id": source_id,
                "line": event.line,
                "time_ns": event.time_ns,
                "host": event.place.host,
                "pid": event.place.pid,
                "tid": event.place.tid,
                "rank": event.place.rank,
                "device": event.place.device,
                "kind": event.kind,
                "communicator": event.communicator,
                "fields": json.dumps(_fields(event), sort_keys=True),
                "text": without_secrets(event.text)[:LONGEST_TEXT],
            }
            for event in events
        ],
    )


def _fields(event: Event) -> dict[str, Any]:
    """What the line says by name, texts without secrets."""
    said = {
        name: without_secrets(each)[:LONGEST_TEXT] if isinstance(each, str) else each
        for name, each in event.fields.items()
    }
    return said if event.place.local_rank is None else {**said, "local_rank": event.place.local_rank}


def notes_of(passed_over: Counter[str]) -> list[str]:
    return [f"{units.count(n, 'line')} of {kind} were counted and not kept" for kind, n in sorted(passed_over.items())]
