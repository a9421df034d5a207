"""Takes a synthetic input the way that every input takes: written, detected, imported into a case."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, Self

from diag.ingest.importer import ImportOptions, open_inputs
from diag.store.case import Case


class Recorded(Protocol):
    """A file that a builder makes."""

    def write(self, path: Path) -> Path: ...

    def backwards(self) -> Self:
        """The same with its rows in the opposite order."""
        ...


@contextmanager
def imported(recorded: Recorded, folder: Path) -> Iterator[Case]:
    path = folder / f"{len(list(folder.iterdir()))}.input"
    with open_inputs([recorded.write(path)], ImportOptions(use_cache=False)) as case:
        yield case
