"""What a report says beside its events: of the machine, the session and its options, of threads and CUDA contexts."""

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
from diag.ingest.nsys_rep.session import session_rows
from diag.ingest.nsys_rep.tables import table
from diag.ingest.nsys_rep.target_info import host_rows
from diag.ingest.nsys_rep.version import report_version

EXPORT = table("META_DATA_EXPORT", name="TEXT", value="TEXT")
OLD_EXPORT = table("EXPORT_META_DATA", name="TEXT", value="TEXT")

_NEW_TABLES_SINCE = (2023, 2)
"""Exports of 2023.1 lack the tables of options and of files, those of 2024.6 have them; none in between was seen."""


def described_rows(container: Container) -> Iterator[Rows]:
    """Rows of the tables that an export has beside those of events. What cannot be decoded is one of its losses."""
    version = report_version(container.path)
    is_new = version is not None and tuple(map(int, version.split(".")[:2])) >= _NEW_TABLES_SINCE
    threads, devices = islice(chain(container.behind_strings(), repeat(b"")), 2)
    parts: dict[str, Callable[[], Iterable[Rows]]] = {
        "the description of the host": lambda: host_rows(container.host),
        "the times of the session": lambda: session_rows(container.host),
        "the options of the capture": lambda: capture_rows(container.host) if is_new else (),
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
    if is_new:
        yield from file_rows(container)
    if version is not None:
        table = EXPORT if is_new else OLD_EXPORT
        made_by = {"EXPORT_PRODUCT_NAME": "NVIDIA Nsight Systems", "EXPORT_PRODUCT_VERSION": version}
        yield table, table.by_column(made_by.items())
