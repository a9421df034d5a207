"""The document `diag.live/1`, as `diag.render.live_json` writes it."""

from __future__ import annotations

from typing import Literal

from diag.model.live import GpuReading, HostReading, ProcessReading, StackDump, ThreadReading
from diag.render.contract.record import fields_of, many, record
from diag.render.contract.report_document import CLEAR, FINDING_OF_ANY, SUBJECT
from diag.render.live_untold import RecordRow, Untold
from diag.render.live_view import GpuRow, HostRow, LiveView, ProcessRow, ThreadRow
from diag.rules.finding import CannotTell

HOST = record("Host", fields_of(HostReading), fields_of(HostRow, "busy_cores"))

GPU = record(
    "Gpu",
    fields_of(GpuReading, without=("untold", "xids")),
    fields_of(GpuRow, "is_used", "nvlink_rx_bytes_per_s", "nvlink_tx_bytes_per_s", "last_xid"),
)

THREAD = record("Thread", fields_of(ThreadReading), fields_of(ThreadRow, without=("pid", "process", "reading")))

PROCESS = record(
    "Process",
    fields_of(ProcessReading, without=("threads", "untold")),
    fields_of(ProcessRow, without=("reading", "history", "threads")),
    threads=many(THREAD),
)

LIVE = record(
    "Live",
    {"schema": Literal["diag.live/1"], "diag_version": str},
    fields_of(LiveView, "pid", "time_ns", "elapsed_ns", "took_ns"),
    host=HOST,
    gpus=many(GPU),
    processes=many(PROCESS),
    stacks=many(StackDump),
    findings=many(record("LiveFinding", FINDING_OF_ANY)),
    clear=many(CLEAR),
    cannot_tell=many(record("LiveCannotTell", fields_of(CannotTell, "rule", "because"), subject=SUBJECT)),
    untold=many(Untold),
    record=record("LiveRecord", fields_of(RecordRow, "path", "is_full"), bytes=int) | None,
)
