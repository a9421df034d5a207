"""From a report to the SQLite export that `nsys export` would make of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from google.protobuf.message import DecodeError

from diag.ingest.input_file import Progress, silent
from diag.ingest.nsys_rep.capture import capture_rows
from diag.ingest.nsys_rep.container import Container
from diag.ingest.nsys_rep.events import EventDecoder, EventReader, Rows
from diag.ingest.nsys_rep.processes import ProcessReader, output_rows, public_strings, thread_rows
from diag.ingest.nsys_rep.session import session_rows
from diag.ingest.nsys_rep.tables import READING, STRINGS, UNREAD, ExportWriter
from diag.ingest.nsys_rep.target_info import device_rows, host_rows
from diag.ingest.nsys_rep.version import report_version


def write_export(report: Path, export: Path, progress: Progress = silent) -> None:
    """Writes a new SQLite file at `export`. Raises InputError when not even the header of the events can be read."""
    with Container(report) as container, ExportWriter(export) as writer:
        for table, rows in _rows(container, progress):
            writer.add(table, rows)


def _rows(container: Container, progress: Progress) -> Iterator[Rows]:
    processes = ProcessReader()
    decoder = EventDecoder([processes, *event_readers()])
    yield from _event_rows(container, decoder, progress)
    yield from described_rows(container)
    yield STRINGS, public_strings(container, processes.environments)
    yield UNREAD, sorted(decoder.unread.items())
    yield READING, [(container.n_events, decoder.n_read, "; ".join(container.losses))]


def _event_rows(container: Container, decoder: EventDecoder, progress: Progress) -> Iterator[Rows]:
    try:
        for block in container.blocks():
            yield from decoder.rows(block)
            progress(f"{container.path.name}: {decoder.n_events:,} of {container.n_events:,} events")
    except DecodeError:
        container.losses.append(f"the events behind the first {decoder.n_events:,} cannot be decoded")
    yield from decoder.rest()


def event_readers() -> list[EventReader]:
    """One for each class of events that is understood, new for every report."""
    return []


def described_rows(container: Container) -> Iterator[Rows]:
    """What the sections and the description of the host say beside the events: of hardware, processes, options."""
    threads, devices, *_ = (*container.behind_strings(), b"", b"")
    version = report_version(container.path)
    parts: dict[str, Callable[[], Iterable[Rows]]] = {
        "the description of the host": lambda: host_rows(container.host),
        "the times of the session": lambda: session_rows(container.host, version),
        "the options of the capture": lambda: capture_rows(container.host),
        "the names of threads": lambda: thread_rows(threads),
        "the descriptions of devices": lambda: device_rows(devices),
    }
    for what, rows in parts.items():
        try:
            yield from rows()
        except DecodeError:
            container.losses.append(f"{what} cannot be decoded")
    yield from output_rows(container)
