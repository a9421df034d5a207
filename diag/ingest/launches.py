"""Files of Nsight Compute: to each kind its reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from diag.errors import InputError
from diag.ingest.input_file import InputFile, Progress, silent
from diag.ingest.launch_records import LaunchReport
from diag.ingest.launch_store import store
from diag.ingest.ncu_output.read import read_csv, read_text
from diag.ingest.ncu_rep.read import read as read_report
from diag.store.case import Case

_READERS: Mapping[str, Callable[[Path], LaunchReport]] = {
    "ncu-report": read_report,
    "ncu-csv": read_csv,
    "ncu-text": read_text,
}

KINDS = frozenset(_READERS)

OFFICIAL = "ncu-report"
"""The kind that NVIDIA's own package reads, too."""


def opened(path: Path, kind: str) -> LaunchReport:
    """What a file of one of the kinds holds. Raises InputError when it is not what its kind says."""
    return _READERS[kind](path)


def read(file: InputFile, case: Case, *, with_ncu_report: bool = False, progress: Progress = silent) -> int:
    """Adds a file to the case, inside the caller's transaction, and returns the source's id.

    `with_ncu_report`: NVIDIA's package reads the reports (`ncu_official`). Raises InputError when the file is not what
    its kind says, or when nothing of it can be read, and ToolMissing when that package is wanted and not installed.
    """
    if with_ncu_report and file.kind == OFFICIAL:
        from diag.ingest.ncu_official.read import read as read_officially

        return store(read_officially(file.data, progress=progress), file, case, progress=progress)
    try:
        report = opened(file.data, file.kind)
    except InputError as error:
        if file.kind != OFFICIAL:
            raise
        raise InputError(f"{error} Or see whether NVIDIA's own package can read it: --with-ncu-report") from error
    return store(report, file, case, progress=progress)
