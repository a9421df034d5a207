"""A report of Nsight Systems as the SQLite export that `nsys export` makes of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from diag.export.target import whole_file
from diag.ingest import nsys_report
from diag.ingest.input_file import Progress, silent
from diag.ingest.inputs import Input
from diag.ingest.nsys_rep.convert import write_export

KINDS = ("nsys-report", "nsys-stream")
"""Of the inputs that can be exported so."""


def write(report: Input, target: Path, *, with_nsys_export: bool = False, progress: Progress = silent) -> None:
    """Writes the export to `target`, which is whole or absent. Raises what reading the report raises, StorageError."""
    with whole_file(target) as part:
        if report.kind == "nsys-report" and not with_nsys_export:
            write_export(report.path, part, progress)
            return
        with tempfile.TemporaryDirectory(prefix=".diag-", dir=part.parent) as folder:
            os.replace(nsys_report.exported(report.path, Path(folder), progress=progress), part)
