"""Which measured ceilings a report goes by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diag.cli.terminal import note

if TYPE_CHECKING:
    from diag.model.benchmark import Benchmark

NONE = "none"


def chosen(option: str | None) -> Sequence[Benchmark]:
    """Those of a file, or none, as `--ceilings` says; all that the user keeps where it is not given."""
    from diag.errors import InputError, StorageError
    from diag.ingest import benchmark, calibrations

    if option == NONE:
        return ()
    if option is not None:
        path = Path(option)
        if not path.is_file():
            raise InputError(f"--ceilings {option} is no file. Write one with: diag calibrate -o FILE")
        return (benchmark.load(path),)
    try:
        return tuple(calibrations.kept(lambda error: note(str(error))))
    except (OSError, StorageError):  # a home that cannot be read: reports do without
        return ()
