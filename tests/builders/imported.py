"""Takes a synthetic export the way that every input takes: written, detected, imported into a case."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diag.ingest.importer import ImportOptions, open_inputs
from diag.store.case import Case
from tests.builders.nsys_export import NsysExport


@contextmanager
def imported(export: NsysExport, folder: Path) -> Iterator[Case]:
    path = folder / f"{len(list(folder.iterdir()))}.sqlite"
    with open_inputs([export.write(path)], ImportOptions(use_cache=False)) as case:
        yield case
