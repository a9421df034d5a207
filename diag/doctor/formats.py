"""Which input formats can be read here, and with what."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from diag.doctor.check import Check
from diag.ingest.ncu_official import package as ncu_report
from diag.ingest.nsys_tool import NAMED_BY, Nsys
from diag.store.case import SCHEMA_VERSION

TOPIC = "What can be read here"

OLDEST_SQLITE = (3, 38, 0)
"""STRICT tables came with 3.37.0, the operators -> and ->> with 3.38.0 (sqlite.org, release history)."""

_GET_NSYS = (
    "Install it (developer.nvidia.com/nsight-systems, `apt-get install nsight-systems-cli` from NVIDIA's repository, "
    "or a CUDA toolkit), or run `QdstrmImporter --input-file STREAM` where the stream was made and open the .nsys-rep."
)


def exports(sqlite_version: tuple[int, ...] = sqlite3.sqlite_version_info) -> Check:
    name = "Nsight Systems exports (.sqlite)"
    version = ".".join(map(str, sqlite_version))
    if sqlite_version < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        fix = "Use a Python that comes with a newer one."
        return Check(TOPIC, name, "broken", f"this Python has SQLite {version}; {oldest} is needed", fix)
    return Check(TOPIC, name, "ok", f"built in, with SQLite {version}; schemas 2.9 (2022) to 3.25 (2026) were tried")


def kineto() -> Check:
    return Check(TOPIC, "PyTorch profiler traces (.json, .json.gz)", "ok", "built in")


def recorder_dumps() -> Check:
    name = "Dumps of PyTorch's flight recorder"
    return Check(
        TOPIC, name, "ok", "built in, as pickles and JSON, versions 1.1 to 2.10; those of 2.9 and 2.10 were tried"
    )


def cases() -> Check:
    return Check(TOPIC, "diag cases (.diag)", "ok", f"built in; schema {SCHEMA_VERSION}")


def reports() -> Check:
    name = "Nsight Systems reports (.nsys-rep, .qdrep)"
    return Check(TOPIC, name, "ok", "built in; reports of nsys 2021.1 to 2024.6 were tried")


def streams(nsys: Nsys | None, environment: Mapping[str, str]) -> Check:
    """Streams were never made a report, which an nsys of the version that wrote them must do."""
    name = "Nsight Systems streams (.qdstrm)"
    if nsys is None:
        if named := environment.get(NAMED_BY):
            fix = f"Correct or unset {NAMED_BY}."
            return Check(TOPIC, name, "missing", f"{NAMED_BY} names {named}, which does not answer `--version`", fix)
        return Check(TOPIC, name, "missing", "they need an nsys with its QdstrmImporter, and none was found", _GET_NSYS)
    if nsys.importer is None:
        fix = "Install the full Nsight Systems, not its command line alone; a stream wants the version that wrote it."
        return Check(TOPIC, name, "missing", f"nsys {nsys.release} comes without QdstrmImporter", fix)
    return Check(TOPIC, name, "ok", f"by {nsys.importer}, version {nsys.release}: streams of that version")


def profiles() -> Check:
    name = "Nsight Compute reports (.ncu-rep) and what ncu printed"
    return Check(TOPIC, name, "ok", "built in; reports of ncu 2021.2 to 2025.2 were tried")


def ncu_report_package(version: str | None, *, is_offered: bool) -> Check:
    """NVIDIA's own reader of the reports of Nsight Compute, which diag does not need."""
    name = "NVIDIA's reader of .ncu-rep (ncu-report)"
    if version is not None:
        return Check(TOPIC, name, "ok", f"{version}; it reads them with --with-ncu-report, as a check")
    if not is_offered:
        return Check(TOPIC, name, "missing", "published for Linux on x86-64 only; diag reads the reports itself")
    return Check(TOPIC, name, "missing", "not installed; diag reads the reports itself", ncu_report.GET_IT)
