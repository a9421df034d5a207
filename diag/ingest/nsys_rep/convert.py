"""From a report to the SQLite export that `nsys export` would make of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from diag.ingest.input_file import Bounds, Progress, Step, silent
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
from diag.ingest.nsys_rep.processes import ProcessReader
from diag.ingest.nsys_rep.sampling import MappingReader, SampleReader, SchedulingReader
from diag.ingest.nsys_rep.strings import STRING_COLUMNS, named_strings
from diag.ingest.nsys_rep.tables import READING, STRINGS, UNREAD, ExportWriter


def write_export(
    report: Path,
    export: Path,
    progress: Progress = silent,
    *,
    share_stacks: bool = False,
    most_bytes: int = Bounds.plain_bytes,
) -> Sequence[str]:
    """Writes a new SQLite file at `export`; with each call stack once and not for every event, if they are shared.

    Returns what of the report is lost, a phrase each. Raises InputError when not even the header of the events can be
    read or they unpack to more than `most_bytes`, and StorageError when the disk is full.
    """
    with Container(report) as container, ExportWriter(export) as writer:
        metrics = GpuMetricsReader(container.header, container.strings)
        decoder = EventDecoder([ProcessReader(), *event_readers(share_stacks)], beside=[metrics])
        events = _event_rows(container, decoder, progress, most_bytes)
        for table, columns in chain(events, described_rows(container), enum_rows()):
            writer.add(table, columns)
        named = writer.integers_in(STRING_COLUMNS)
        writer.add(STRINGS, STRINGS.by_column(named_strings(container.strings, named)))
        writer.add(UNREAD, UNREAD.by_column(sorted(decoder.unread.items())))
        losses = [*container.losses, *decoder.losses]
        n_lost = max(container.n_events - decoder.n_events, 0) + decoder.n_damaged
        are_names_lost = int(bool(named) and not container.strings)
        reading = (container.n_events, decoder.n_read, n_lost, are_names_lost, "; ".join(losses))
        writer.add(READING, READING.by_column([reading]))
        return losses


def _event_rows(container: Container, decoder: EventDecoder, progress: Progress, most_bytes: int) -> Iterator[Rows]:
    for block in container.blocks(most_bytes):
        yield from decoder.rows(block)
        done = decoder.n_events / max(container.n_events, 1)
        progress(Step(f"{container.path.name}: {decoder.n_events:,} of {container.n_events:,} events", done))
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
