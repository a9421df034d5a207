"""A moment of a running workload as JSON: the contract `diag.live/1` of docs/json-contract.md."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import diag
from diag.render.json_report import clear_document, finding_document, plain
from diag.render.live_untold import RecordRow
from diag.render.live_view import GpuRow, LiveView, ProcessRow, ThreadRow
from diag.rules.finding import CannotTell

SCHEMA = "diag.live/1"


def render_live_json(view: LiveView, *, is_one_line: bool = False) -> str:
    """All of it is ASCII, so that nothing in a name can act on a terminal. One line: as one of a row of documents."""
    indent = None if is_one_line else 2
    return json.dumps(plain(document(view)), indent=indent, allow_nan=False) + "\n"


def document(view: LiveView) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "diag_version": diag.__version__,
        "pid": view.pid,
        "time_ns": view.time_ns,
        "elapsed_ns": view.elapsed_ns,
        "took_ns": view.took_ns,
        "host": asdict(view.host.reading) | {"busy_cores": view.host.busy_cores},
        "gpus": [_gpu(row) for row in view.gpus],
        "processes": [_process(row) for row in view.processes],
        "stacks": [asdict(dump) for dump in view.stacks],
        "findings": [finding_document(finding) for finding in view.findings],
        "clear": [clear_document(answer) for answer in view.clear],
        "cannot_tell": [_cannot_tell(answer) for answer in view.cannot_tell],
        "untold": [asdict(each) for each in view.untold],
        "record": None if view.record is None else _record(view.record),
    }


def _record(row: RecordRow) -> dict[str, Any]:
    return {"path": row.path, "bytes": row.n_bytes, "is_full": row.is_full}


def _gpu(row: GpuRow) -> dict[str, Any]:
    reading = {key: value for key, value in asdict(row.reading).items() if key not in ("untold", "xids")}
    return reading | {
        "is_used": row.is_used,
        "nvlink_rx_bytes_per_s": row.nvlink_rx_bytes_per_s,
        "nvlink_tx_bytes_per_s": row.nvlink_tx_bytes_per_s,
        "last_xid": row.last_xid,
    }


def _process(row: ProcessRow) -> dict[str, Any]:
    # Not by asdict: it would copy a history and every thread only to throw them away.
    reading = {name: value for name, value in vars(row.reading).items() if name not in ("threads", "untold")}
    rates = {name: value for name, value in vars(row).items() if name not in ("reading", "history", "threads")}
    return reading | rates | {"threads": [_thread(thread) for thread in row.threads]}


def _thread(row: ThreadRow) -> dict[str, Any]:
    rates = {name: value for name, value in vars(row).items() if name not in ("pid", "process", "reading")}
    return vars(row.reading) | rates


def _cannot_tell(answer: CannotTell) -> dict[str, Any]:
    return {"rule": answer.rule, "subject": answer.subject.present(), "because": answer.because}
