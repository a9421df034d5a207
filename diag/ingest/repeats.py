"""A folder as repeats of one run: each file in it, and each folder in it, is one of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from diag.errors import InputError
from diag.ingest.detect import READABLE, UnknownKind, detect, is_other_json
from diag.ingest.input_file import Progress, silent
from diag.model.units import count

MOST_RUNS = 1_000
"""Entries of a folder that are looked at: nobody repeats a run more often."""


def runs_in(path: Path, note: Progress = silent) -> Sequence[Path]:
    """The recordings that a side of a comparison consists of, by name: a file is one, a folder holds several.

    A recording is a file that diag reads, a case, a JSON report, or a folder with the files of one run. `note` hears
    what was passed over. Raises InputError when a folder holds none, or too many.
    """
    if not path.is_dir():
        return [path]
    entries = _entries(path)
    runs = [entry for entry in entries if entry.is_dir() or _is_recording(entry)]
    if not runs:
        raise InputError(f"{path} holds no recording. diag reads: {READABLE}, and its own JSON reports.")
    if others := len(entries) - len(runs):
        note(f"{path}: {count(len(runs), 'run')}; passing over {count(others, 'other file')}.")
    return runs


def _entries(folder: Path) -> list[Path]:
    try:
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {error.strerror}.") from error
    if len(entries) > MOST_RUNS:
        raise InputError(f"{folder} holds more than {MOST_RUNS:,} files. Name a folder of repeats of one run.")
    return entries


def _is_recording(path: Path) -> bool:
    """A damaged file of a known kind is an error, as elsewhere; a file of another kind is none."""
    if not path.is_file() or not path.stat().st_size:
        return False
    try:
        return is_other_json(path) or bool(detect(path))
    except UnknownKind:
        return False
