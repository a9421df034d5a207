"""What a file is, whether it can be read here, and what to do if not."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from diag.doctor.check import Check, failed
from diag.errors import DiagError, InputError, ToolMissing
from diag.ingest import nsys_report, nsys_tables, plugin_readers
from diag.ingest.detect import UnknownKind, detect
from diag.ingest.inputs import NothingToRead, find_inputs, kinds
from diag.ingest.nsys_rep.container import Container
from diag.ingest.nsys_rep.version import report_version
from diag.ingest.settled import companions
from diag.model import units
from diag.store.case import Case
from diag.store.columns import sqlite_uri

TOPIC = "Files"

KINDS = {
    "case": "a diag case",
    "kineto": "a PyTorch profiler trace",
    "nsys-sqlite": "an Nsight Systems export",
    "nsys-report": "an Nsight Systems report",
    "nsys-stream": "a stream of Nsight Systems, which was never made a report",
    "ncu-report": "an Nsight Compute report",
    "ncu-csv": "a page of Nsight Compute in CSV",
    "ncu-text": "a page of Nsight Compute as text",
    "benchmark": "what diag calibrate or diag probe run measured",
    "flight-recorder": "a dump of PyTorch's flight recorder",
    "memory-snapshot": "a snapshot of PyTorch's allocator",
    "stack-dump": "stacks of Python threads",
    "heartbeat": "a heartbeat of a rank",
    "job-log": "a log of a distributed job",
    "nccl-ras": "a status of NCCL's RAS in JSON",
    "nccl-tests": "measured collectives",
    "topology": "the topology of a host",
    "serving-log": "the log of a serving run",
    "bench-serving": "the result of a serving benchmark of vLLM or SGLang",
    "genai-perf": "the requests of a run of GenAI-Perf",
    "aiperf": "what GenAI-Perf or AIPerf sums up of a run",
    "aiperf-records": "the requests of a run of AIPerf",
    "guidellm": "a report of guidellm",
    "metrics-page": "a page of metrics of vLLM or SGLang",
}


def about(path: Path) -> Check:
    """Looks at the beginning of a file, and at its tables where it is a database, but does not read it all."""
    try:
        if os.path.isdir(path):
            return Check(TOPIC, str(path), "ok", _of_folder(path), f"Read them together: diag report {path}")
        kind = detect(path)
        what = KINDS.get(kind) or plugin_readers.described(kind)
        said = f"{what}, {units.size(path.stat().st_size)}; {_readable(path, kind)}"
        return Check(TOPIC, str(path), "ok", said, f"Read it: diag report {path}")
    except ToolMissing as error:
        return failed(TOPIC, str(path), error, about=f"{path.name}: ", state="unreadable")
    except (UnknownKind, NothingToRead) as error:
        return failed(TOPIC, str(path), error, about=f"{path} ", state="unreadable")
    except DiagError as error:
        return failed(TOPIC, str(path), error, about=f"{path} ")


def _of_folder(folder: Path) -> str:
    return f"a folder with {kinds(find_inputs([folder]))}"


def _readable(path: Path, kind: str) -> str:
    """How it will be read. Raises DiagError when it cannot be."""
    if kind == "nsys-report":
        return _report(path)
    if kind == "nsys-stream":
        return f"{_author(path)}read by nsys {nsys_report.capable_nsys(path).release}"
    if kind == "case":
        with Case.open(path, "immutable") as case:
            return f"{units.count(len(case.sources), 'source')}"
    if kind == "nsys-sqlite":
        return _export(path)
    return "its beginning is as it should be, and nothing else was looked at"


def _report(path: Path) -> str:
    """The events that it declares. Raises InputError for damage anywhere but in the events themselves."""
    with Container(path) as report:
        declared = f"{_author(path)}{units.count(report.n_events, 'event')}"
        if not report.strings or not list(report.behind_strings()) or report.losses:
            losses = "; ".join(report.losses) or "it has neither names nor descriptions"
            raise InputError(
                f"{path} is cut short or damaged: {losses}; it declares {declared}. Copy it again; diag report reads "
                "what is whole of it."
            )
        return declared


def _author(path: Path) -> str:
    written_by = report_version(path)
    return f"written by {written_by}, " if written_by else ""


def _export(path: Path) -> str:
    """The event tables of an export. Raises InputError when it has none, or is damaged."""
    if beside := companions(path):
        return f"{beside[0].name} beside it is merged into a copy first"
    try:
        with closing(sqlite3.connect(sqlite_uri(path, "immutable"), uri=True)) as db:
            tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path} is a damaged database: {error}. Export it again.") from error
    events = [table for table in nsys_tables.EVENT_TABLES if table in tables]
    if not events:
        raise InputError(
            f"{path} is an SQLite database, but not an Nsight Systems export. Make one with: nsys export --type sqlite "
            "REPORT"
        )
    return f"it has {', '.join(events)}"
