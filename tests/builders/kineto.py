"""PyTorch traces read straight into a case, without detection and cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diag.ingest import kineto
from diag.ingest.input_file import Bounds, InputFile
from diag.store.case import Case


@contextmanager
def imported(path: Path, folder: Path, bounds: Bounds | None = None) -> Iterator[Case]:
    file = InputFile(path, path, "kineto", "0" * 64, path.stat().st_size)
    with Case.create(folder / "test.diag") as case:
        with case.transaction():
            assert kineto.read(file, case, bounds=bounds or Bounds()) == 1
        yield case
