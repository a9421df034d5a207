"""Files of Nsight Compute: to each kind its reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

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


def opened(path: Path, kind: str) -> LaunchReport:
    """What a file of one of the kinds holds. Raises InputError when it is not what its kind says."""
    return _READERS[kind](path)


def read(file: InputFile, case: Case, *, progress: Progress = silent) -> int:
    """Adds a file to the case, inside the caller's transaction, and returns the source's id.

    Raises InputError when it is not what its kind says, or when nothing of it can be read.
    """
    return store(opened(file.data, file.kind), file, case, progress=progress)
