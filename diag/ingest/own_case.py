"""A case that belongs to the user and is to be changed: on a copy, which takes its name when it is whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diag.errors import StorageError, UsageError
from diag.ingest.input_file import Progress, silent
from diag.ingest.settled import companions
from diag.store.case import SCHEMA_VERSION, Case
from diag.store.kept_file import written_alone
from diag.store.migrations import up_to_date
from diag.store.sqlite_errors import reported
from diag.store.work_folder import work_folder


@contextmanager
def changed(path: Path, note: Progress = silent) -> Iterator[Case]:
    """The case at `path` to write to; a new one, without any input, where there is none.

    Whoever reads the case meanwhile goes on reading the one before, and an error inside leaves that as it was. A case
    of an older schema is of today's afterwards, which `note` hears. Raises InputError for a file that is no case,
    StorageError when it cannot be written or another diag writes it, and UsageError where no file can be.
    """
    path = path.resolve()  # a link stays a link
    _check_place(path)
    with written_alone(path), work_folder(path.parent) as folder, reported(path):
        copy = _copied(path, folder, note) if path.exists() else _made(folder)
        with Case.open(copy, "rw") as case, case.transaction():
            yield case
        try:
            os.replace(copy, path)
        except OSError as error:
            raise StorageError(f"Cannot write {path}: {error.strerror}.") from error


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise UsageError(f"{path} is a folder. Name a file in it, for example: {path / 'log.diag'}")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}. Make it first, or choose another name.")
    if not os.access(path.parent, os.W_OK | os.X_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise StorageError(f"You may not write {path}. Copy it to where you may, and name the copy.")


def _made(folder: Path) -> Path:
    path = folder / "new.diag"
    Case.create(path).close()
    return path


def _copied(path: Path, folder: Path, note: Progress) -> Path:
    if beside := companions(path):
        raise StorageError(
            f"{path} was left by a diag that was killed, with {beside[0].name} beside it. "
            f"Make a whole one of the two with: diag report {path} -o NEW"
        )
    newer = up_to_date(path, folder)
    Case.open(newer, "immutable").close()  # refuses what is no case
    copy = folder / "new.diag"
    try:
        if newer == path:
            shutil.copyfile(path, copy)
        else:
            os.replace(newer, copy)
            note(f"{path} was of an older schema, and is of schema {SCHEMA_VERSION} from now on.")
        shutil.copymode(path, copy)
    except OSError as error:
        raise StorageError(f"Cannot copy {path}: {error.strerror}. Free some space.") from error
    return copy
