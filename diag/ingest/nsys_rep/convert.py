"""From a report to the SQLite export that `nsys export` would make of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from google.protobuf.message import DecodeError

from diag.ingest.input_file import Progress, silent
from diag.ingest.nsys_rep.calls import CallReader
from diag.ingest.nsys_rep.container import Container
from diag.ingest.nsys_rep.descriptions import described_rows
from diag.ingest.nsys_rep.diagnostics import DiagnosticReader
from diag.ingest.nsys_rep.enum_tables import enum_rows
from diag.ingest.nsys_rep.events import EventDecoder, EventReader, Rows
from diag.ingest.nsys_rep.gpu_memory import gpu_memory_readers
from diag.ingest.nsys_rep.gpu_metrics import GpuMetricsReader
from diag.ingest.nsys_rep.gpu_work import GpuWorkReader
from diag.ingest.nsys_rep.nvtx import NvtxReader
from diag.ingest.nsys_rep.processes import ProcessReader, public_strings
from diag.ingest.nsys_rep.sampling import MappingReader, SampleReader, SchedulingReader
from diag.ingest.nsys_rep.tables import READING, STRINGS, UNREAD, ExportWriter
from diag.store.sqlite_errors import reported


def write_export(report: Path, export: Path, progress: Progress = silent, *, share_stacks: bool = False) -> None:
    """Writes a new SQLite file at `export`; with each call stack once and not for every event, if they are shared.

    Raises InputError when not even the header of the events can be read, and StorageError when the disk is full.
    """
    with Container(report) as container, reported(export), ExportWriter(export) as writer:
        for table, columns in _rows(container, progress, share_stacks):
            writer.add(table, columns)


def _rows(container: Container, progress: Progress, share_stacks: bool) -> Iterator[Rows]:
    processes = ProcessReader()
    metrics = GpuMetricsReader(container.header, container.strings)
    decoder = EventDecoder([processes, *event_readers(share_stacks)], beside=[metrics])
    yield from _event_rows(container, decoder, progress)
    yield from described_rows(container)
    yield from enum_rows()
    yield STRINGS, STRINGS.by_column(public_strings(container, processes.environments))
    yield UNREAD, UNREAD.by_column(sorted(decoder.unread.items()))
    yield READING, READING.by_column([(container.n_events, decoder.n_read, "; ".join(container.losses))])


def _event_rows(container: Container, decoder: EventDecoder, progress: Progress) -> Iterator[Rows]:
    try:
        for block in container.blocks():
            yield from decoder.rows(block)
            progress(f"{container.path.name}: {decoder.n_events:,} of {container.n_events:,} events")
    except DecodeError:
        container.losses.append(f"the events behind the first {decoder.n_events:,} cannot be decoded")
    yield from decoder.rest()


def event_readers(share_stacks: bool) -> list[EventReader]:
    """One for each class of events that is understood, new for every report."""
    return [
        GpuWorkReader(),
        NvtxReader(),
        CallReader(share_stacks=share_stacks),
        *gpu_memory_readers(),
        SampleReader(share_stacks=share_stacks),
        SchedulingReader(),
        MappingReader(),
        DiagnosticReader(),
    ]
