"""Reports and streams of Nsight Systems as the SQLite exports that are read: made by diag itself, or by nsys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from diag.ingest import nsys_report
from diag.ingest.input_file import Bounds, Progress, silent
from diag.ingest.inputs import Input

KINDS = ("nsys-report", "nsys-stream")
"""Of the inputs that can be converted."""


@dataclass(frozen=True)
class Conversion:
    export: Path
    losses: Sequence[str] = ()
    """What of the report is lost, a phrase each; nsys does not say."""


def converted(
    given: Input,
    folder: Path,
    *,
    with_nsys: bool = False,
    share_stacks: bool = False,
    bounds: Bounds = Bounds(),
    progress: Progress = silent,
) -> Conversion:
    """A new export in `folder`; an nsys makes it if `with_nsys`, and makes a report of a stream in any case.

    `share_stacks`: each call stack once and not for every event, in a column that only diag reads. Raises InputError
    when the file cannot be read, StorageError when the disk is full, and ToolMissing without the nsys that is needed.
    """
    # Only here: whoever reads a cached case need not wait for NumPy, protobuf and Arrow to load.
    from diag.ingest.nsys_rep.convert import write_export

    if with_nsys:
        return Conversion(nsys_report.exported(given.path, folder, progress=progress))
    report = nsys_report.imported(given.path, folder, progress=progress) if given.kind == "nsys-stream" else given.path
    export = folder / nsys_report.export_name(given.path)
    losses = write_export(report, export, progress, share_stacks=share_stacks, most_bytes=bounds.plain_bytes)
    return Conversion(export, losses)
