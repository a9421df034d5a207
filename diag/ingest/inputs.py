"""From what the user names to the files that are read: folders are looked into, and nothing is read twice."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from diag.errors import InputError, UsageError
from diag.ingest import nsys_report
from diag.ingest.detect import READABLE, UnknownKind, detect


@dataclass(frozen=True)
class Input:
    path: Path
    kind: str


def find_inputs(named: Sequence[Path]) -> list[Input]:
    """The inputs behind the names, in their order; a folder stands for the reports and traces that lie in it.

    A file named twice is one input. Raises InputError when one cannot be read or a folder has none, and UsageError
    when a case stands beside other inputs.
    """
    found: dict[tuple[int, int], Input] = {}
    for path in named:
        for item in _in_folder(path) if os.path.isdir(path) else [Input(path, detect(path))]:
            stat = item.path.stat()
            found.setdefault((stat.st_dev, stat.st_ino), item)
    inputs = list(found.values())
    if len(inputs) > 1 and any(item.kind == "case" for item in inputs):
        raise UsageError("A case cannot be mixed with other inputs. Import all the original files together instead.")
    return inputs


def _in_folder(folder: Path) -> list[Input]:
    """By name. Files of other kinds may lie there, too, but a damaged one of a known kind is an error."""
    found = list(_known(_files(folder)))
    exported = {item.path.stem for item in found if item.kind == "nsys-sqlite"}
    inputs = [item for item in found if item.kind != "nsys-report" or item.path.stem not in exported]
    if not inputs:
        raise InputError(f"{folder} is a folder without anything to read. diag reads: {READABLE}.")
    return inputs


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {error.strerror}.") from error


def _known(files: Sequence[Path]) -> Iterator[Input]:
    for file in files:
        if file.stat().st_size or file.suffix in (*nsys_report.SUFFIXES, ".sqlite"):
            try:
                kind = detect(file)
            except UnknownKind:
                continue
            if kind != "case":
                yield Input(file, kind)
