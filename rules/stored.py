"""Reports kept in the case: the same rules on the same part of the same trace need not be run twice."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from diag import __version__, plugins
from diag.errors import DiagError
from diag.rules.analysis import AnalysisOptions, analyse, digest_of
from diag.rules.engine import rules
from diag.rules.finding import Finding
from diag.rules.report import Report
from diag.store.case import Case


def report_of(case: Case, options: AnalysisOptions) -> Report:
    """The stored report, or a new one, which is then stored if the case may be written."""
    key = _fingerprint(options)
    body = case.value("SELECT CAST(body AS BLOB) FROM report WHERE fingerprint = ?", (key,))
    if body is not None:
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(body, type=Report, dec_hook=_decode)
    report = analyse(case, options)
    if case.writable:
        with suppress(sqlite3.OperationalError):  # the disk is full or another process writes: the report is not lost
            case.db.execute("INSERT OR REPLACE INTO report VALUES (?, ?, ?)", (key, _scope(options), _encoded(report)))
    return report


def keep_only(path: Path, options: AnalysisOptions) -> None:
    """Drops from a case that the user keeps all reports but the one just shown; others may have other thresholds."""
    with Case.open(path, "rw") as case:
        case.db.execute("DELETE FROM report WHERE fingerprint <> ?", (_fingerprint(options),))


def _scope(options: AnalysisOptions) -> str:
    parts = (
        f"window {options.window}" if options.window else None,
        f"range {options.range_name}" if options.range_name else None,
        # A path may hold bytes that are no text; the case keeps it as text.
        f"thresholds {os.fsencode(options.thresholds).decode('utf-8', 'backslashreplace')}"
        if options.thresholds
        else None,
    )
    return ", ".join(filter(None, parts)) or "whole trace"


def stored_finding(cases: Iterable[Path], finding_id: str) -> Finding | None:
    """A finding by its id from the reports that these cases keep; cases that cannot be read are passed over."""
    for path in cases:
        with suppress(DiagError), Case.open(path) as case:
            if found := finding_in(case, finding_id):
                return found
    return None


def finding_in(case: Case, finding_id: str) -> Finding | None:
    """A finding by its id from the reports that a case keeps, of whatever part of the trace."""
    for (body,) in case.db.execute("SELECT CAST(body AS BLOB) FROM report"):
        with suppress(msgspec.DecodeError):
            report = msgspec.json.decode(body, type=Report, dec_hook=_decode)
            if found := next((finding for finding in report.findings if finding.id == finding_id), None):
                return found
    return None


def _encoded(report: Report) -> str:
    """With the findings' ids and severities, which follow from the rest but which SQL cannot work out."""
    body = msgspec.to_builtins(report, enc_hook=_encode)
    for raw, finding in zip(body["findings"], report.findings, strict=True):
        raw |= {"id": finding.id, "severity": finding.severity}
    return msgspec.json.encode(body).decode()


def _encode(value: object) -> list[Any]:
    if isinstance(value, np.ndarray):  # the extent of a finding, which only matters while findings are compared
        return []
    raise TypeError(f"{type(value)} cannot be kept in a report")


def _decode(kind: type, value: object) -> object:
    return np.empty(0, np.int64) if getattr(kind, "__origin__", kind) is np.ndarray else value


def _fingerprint(options: AnalysisOptions) -> str:
    return digest_of(__version__, digest_of_code(), options.asked)


JUDGING = (
    "diag.rules",
    "diag.timeline",
    "diag.launches",
    "diag.ranks",
    "diag.serving",
    "diag.model",
    "diag.model.data",
    "diag.store",
)
"""Packages that a report depends on."""


@cache
def digest_of_code() -> str:
    """Digest of everything that a report depends on, so that an edited rule is run again, be it of a plug-in."""
    digest = hashlib.sha256()
    for package in JUDGING:
        for file in sorted(resources.files(package).iterdir(), key=lambda file: file.name):
            if file.name.endswith((".py", ".toml")):
                digest.update(file.read_bytes())
    for plugin in plugins.installed(plugins.RULES):
        digest.update(plugin.digest.encode())
        digest.update(repr(list(rules())).encode())  # it may want for another package, which comes or goes
    return digest.hexdigest()
