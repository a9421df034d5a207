"""From what the user names to the files that are read: folders are looked into, and nothing is read twice."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from diag.errors import InputError, UsageError
from diag.ingest import live_record, nsys_report, plugin_readers
from diag.ingest.detect import READABLE, UnknownKind, detect, is_begun_data
from diag.ingest.input_file import Progress, silent
from diag.ingest.kinds import NAMES
from diag.ingest.unread import KIND as UNREAD
from diag.ingest.unread import is_for_a_rank
from diag.launches.live_runs import KIND as LIVE
from diag.model.units import count

DEEPEST = 8
"""Folders inside folders that are looked into."""

MOST_FILES = 20_000
"""Files of a folder that are looked at: a home or a whole disk is no folder of traces."""


class NothingToRead(InputError):
    """A folder that holds no report or trace."""


@dataclass(frozen=True)
class Input:
    path: Path
    kind: str
    in_folder: bool = False  # found there, not named by the user
    unread: str | None = None  # why nothing of it can be read


def find_inputs(named: Sequence[Path], note: Progress = silent, *, tolerant: bool = False) -> list[Input]:
    """The inputs behind the names, in their order; a folder stands for the reports and traces that lie in it.

    A file named twice is one input. `note` hears what was found in each folder and what was passed over. Raises
    InputError when one cannot be read or a folder has none, and UsageError when a case stands beside other inputs,
    unless it is the record of a watch.
    `tolerant`: a file that cannot be read is an input that says why, and an empty folder is noted, as long as there is
    anything else; what does not exist is an error also then, as a wrong name is soon put right.
    """
    found: dict[tuple[int, int], Input] = {}
    errors: list[InputError] = []
    for path in named:
        behind: list[Input] = []
        try:
            behind = _in_folder(path, note, tolerant) if os.path.isdir(path) else [Input(path, detect(path))]
        except NothingToRead as error:
            if not tolerant:
                raise
            errors.append(error)
        except InputError as error:
            if not tolerant or not os.path.isfile(path):
                raise
            errors.append(error)
            behind = [Input(path, UNREAD, unread=_why(path, error))]
        for given in behind:
            stat = given.path.stat()
            found.setdefault((stat.st_dev, stat.st_ino), given)
    inputs = list(found.values())
    if errors and all(given.unread for given in inputs):
        raise errors[0]
    for empty in errors:
        if isinstance(empty, NothingToRead):
            note(str(empty))
    if len(inputs) > 1:
        inputs = [replace(given, kind=LIVE) if _is_record(given) else given for given in inputs]
    if len(inputs) > 1 and any(given.kind == "case" for given in inputs):
        raise UsageError("A case cannot be mixed with other inputs. Import all the original files together instead.")
    return inputs


def _is_record(given: Input) -> bool:
    return given.kind == "case" and live_record.is_record(given.path)


def _why(path: Path, error: InputError) -> str:
    """In a sentence, without the list of all that diag reads."""
    return f"{path} is {error.what}." if isinstance(error, UnknownKind) else str(error)


def _in_folder(folder: Path, note: Progress, tolerant: bool) -> list[Input]:
    """By name. Files of other kinds may lie there, too, but a damaged one of a known kind is an error, or `unread`."""
    looked_at = [_known(file, tolerant) for file in _files(folder, note)]
    found = [given for given in looked_at if isinstance(given, Input)]
    others = Counter(what for what in looked_at if isinstance(what, str))
    traces = [given for given in found if given.kind != "case"]
    known = {(given.kind, given.path.with_suffix("")) for given in traces}
    inputs = [given for given in traces if (_READ_INSTEAD.get(given.kind), given.path.with_suffix("")) not in known]
    twins = Counter(given.kind for given in traces) - Counter(given.kind for given in inputs)
    n_cases = len(found) - len(traces)
    if not inputs:
        cases = f", but for {count(n_cases, 'diag case')}: name one of them" if n_cases else ""
        passed = "; ".join(
            f"{count(number, 'file')} ({'each ' if number > 1 else ''}{what})" for what, number in others.most_common()
        )
        passed = f" It holds {passed}." if passed else ""
        raise NothingToRead(f"{folder} is a folder without anything to read{cases}.{passed} diag reads: {READABLE}.")
    passed_over = {
        "already exported report": twins["nsys-report"],
        "printed page": twins["ncu-csv"] + twins["ncu-text"],
        "diag case": n_cases,
        "other file": others.total(),
    }
    skipped = ", ".join(count(number, what) for what, number in passed_over.items() if number)
    note(f"{folder}: reading {kinds(inputs)}{f'; passing over {skipped}' if skipped else ''}.")
    return inputs


_READ_INSTEAD = {"nsys-report": "nsys-sqlite", "ncu-csv": "ncu-report", "ncu-text": "ncu-report"}
"""Of two files in a folder that differ in their suffix alone, the kind that is read."""


def kinds(inputs: Sequence[Input]) -> str:
    """How many of each kind.

    >>> kinds([Input(Path("a"), "kineto"), Input(Path("b"), "kineto"), Input(Path("c"), "nsys-report")])
    '2 PyTorch traces, 1 Nsight Systems report'
    """
    numbers = Counter(given.kind for given in inputs)
    names = {**NAMES, **(plugin_readers.names() if numbers.keys() - NAMES.keys() else {})}
    return ", ".join(count(numbers[kind], name) for kind, name in names.items() if numbers[kind])


def _files(folder: Path, note: Progress) -> Iterator[Path]:
    """The files of a folder and of those in it, by name, none hidden. Links are followed, but into no folder twice."""
    seen = {_identity(folder)}
    n_files = 0
    waiting = [(folder, 0)]
    while waiting:
        place, depth = waiting.pop()
        inside = []
        for entry in _entries(place, None if place is folder else note):
            if entry.name.startswith("."):
                continue
            if entry.is_file():
                n_files += 1
                if n_files > MOST_FILES:
                    raise InputError(f"{folder} holds more than {MOST_FILES:,} files. Name the folder of the traces.")
                yield entry
            elif entry.is_dir() and depth < DEEPEST and (identity := _identity(entry)) not in seen:
                seen.add(identity)
                inside.append((entry, depth + 1))
        waiting += reversed(inside)


def _entries(folder: Path, note: Progress | None) -> list[Path]:
    """What lies in a folder, by name. One that cannot be read is an error, or noted where there is a `note`."""
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        said = f"{folder} cannot be read: {error.strerror}."
        if note is None:
            raise InputError(said) from error
        note(said)
        return []


def _identity(folder: Path) -> tuple[int, int]:
    stat = folder.stat()
    return stat.st_dev, stat.st_ino


def _known(file: Path, tolerant: bool) -> Input | str:
    """The file as an input, or what else it is; an empty one is damaged only if its name says what it should be."""
    is_of_rank = tolerant and is_for_a_rank(file)
    if not file.stat().st_size and not is_of_rank and file.suffix not in (*nsys_report.SUFFIXES, ".sqlite"):
        return "empty"
    try:
        given = Input(file, detect(file), in_folder=True)
        return replace(given, kind=LIVE) if _is_record(given) else given
    except UnknownKind as error:
        if is_of_rank and is_begun_data(file):
            return Input(file, UNREAD, in_folder=True, unread=_why(file, error))
        return error.what
    except InputError as error:
        if not tolerant:
            raise
        return Input(file, UNREAD, in_folder=True, unread=_why(file, error))
