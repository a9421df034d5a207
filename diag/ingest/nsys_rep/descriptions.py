"""What a report says beside its events: of the machine, the recording and its options, of threads and CUDA contexts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice, repeat

from google.protobuf.message import DecodeError

from diag.ingest.nsys_rep.capture import capture_rows
from diag.ingest.nsys_rep.container import Container
from diag.ingest.nsys_rep.devices import device_rows
from diag.ingest.nsys_rep.events import Rows
from diag.ingest.nsys_rep.nvtx_payloads import schema_rows
from diag.ingest.nsys_rep.processes import file_rows, stream_rows, thread_rows
from diag.ingest.nsys_rep.recording import recording_rows
from diag.ingest.nsys_rep.tables import table
from diag.ingest.nsys_rep.target_info import host_rows
from diag.ingest.nsys_rep.version import report_version

EXPORT = table("META_DATA_EXPORT", name="TEXT", value="TEXT")
"""As exports since 2023.2 or later name it; before that it was EXPORT_META_DATA."""


def described_rows(container: Container) -> Iterator[Rows]:
    """Rows of the tables that an export has beside those of events. What cannot be decoded is one of its losses.

    Also of tables that nsys began to export later than it wrote the report: what the report holds is told.
    """
    threads, devices = islice(chain(container.behind_strings(), repeat(b"")), 2)
    parts: dict[str, Callable[[], Iterable[Rows]]] = {
        "the description of the host": lambda: host_rows(container.host),
        "the times of the recording": lambda: recording_rows(container.host),
        "the options of the capture": lambda: capture_rows(container.host),
        "the names of threads": lambda: thread_rows(threads),
        "the descriptions of devices": lambda: device_rows(devices),
        "what the payloads of NVTX events mean": lambda: schema_rows(container.payload_schemas()),
    }
    for what, rows in parts.items():
        try:
            yield from rows()
        except DecodeError:
            container.losses.append(f"{what} cannot be decoded")
    yield from stream_rows(container)
    yield from file_rows(container)
    if version := report_version(container.path):
        made_by = {"EXPORT_PRODUCT_NAME": "NVIDIA Nsight Systems", "EXPORT_PRODUCT_VERSION": version}
        yield EXPORT, EXPORT.by_column(made_by.items())
