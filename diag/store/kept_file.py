"""Files that the user wants kept: whole or absent, and never in the place of something else."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from diag.errors import StorageError, UsageError
from diag.store.case import APPLICATION_ID, Case
from diag.store.experiments import carry_over, log_in
from diag.store.lock import held

_ID_OFFSET = 68
"""Of the application id in the header of an SQLite file, section 1.3 of its file format."""


def is_case(head: bytes) -> bool:
    """Whether a file that begins with `head`, 72 bytes or more, is a case of any version."""
    return head[:16] == b"SQLite format 3\x00" and head[_ID_OFFSET:][:4] == APPLICATION_ID.to_bytes(4, "big")


def check_target(target: Path, inputs: Iterable[Path]) -> None:
    """Raises UsageError when a case must not be written to `target`: only another case is ever replaced."""
    if any(target == file or (os.path.exists(target) and target.samefile(file)) for file in inputs):
        raise UsageError(f"-o {target} is an input; inputs are never changed. Choose another name.")
    if os.path.isdir(target):
        raise UsageError(f"-o {target} is a folder. Name a file in it, for example: -o {target / 'run.diag'}")
    if not os.path.isdir(target.parent):
        raise UsageError(f"-o {target}: there is no folder {target.parent}. Make it first, or choose another name.")
    if os.path.exists(target) and not (target.is_file() and _may_be_replaced(target)):
        raise UsageError(f"-o {target} exists and is not a diag case. Remove it first, or choose another name.")


def _may_be_replaced(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            head = opened.read(_ID_OFFSET + 4)
    except OSError:
        return False
    return not head or is_case(head)


def copy_whole(source: Path, target: Path, finish: Callable[[Path], None] = lambda _: None) -> None:
    """Copies a case under a temporary name, which `finish` may still change, so that `target` is whole or absent.

    The experiment log of a case in whose place it comes lives on in it: nobody can make that anew. What killed
    processes left beside it is removed on the way. Raises StorageError, and InputError for a log that cannot be read.
    """
    with ExitStack() as stack:
        try:
            with _new_part(target.parent, stack) as copy, source.open("rb") as original:
                shutil.copyfileobj(original, copy, 1 << 20)
            part = Path(copy.name)
            finish(part)
            # One after the other: each takes over the log of the one before.
            with held(target.parent, exclusive=True), written_alone(target):
                if log := log_in(target):
                    with Case.open(part, "rw") as case:
                        carry_over(log, case)
                os.replace(part, target)
        except OSError as error:
            raise StorageError(
                f"Cannot write {target}: {error.strerror}. Choose another place or free some space."
            ) from error


@contextmanager
def written_alone(path: Path) -> Iterator[None]:
    """No other diag writes the file meanwhile. Raises StorageError when one does so already."""
    with held(path, exclusive=True, wait=False) as is_alone:
        if not is_alone:
            with held(path, wait=False) as is_only_read:  # also where a file system knows no locks
                if path.exists() and not is_only_read:
                    raise StorageError(f"{path} is being written by another diag. Wait until that has ended.")
        yield


def _new_part(folder: Path, stack: ExitStack) -> BinaryIO:
    """A new file, held until `stack` ends and then gone; nobody takes it for abandoned, for the folder is locked."""
    with held(folder, exclusive=True):
        for abandoned in folder.glob(".diag-*.part"):
            with held(abandoned, exclusive=True, wait=False) as free:
                if free:
                    abandoned.unlink(missing_ok=True)
        for beside in folder.glob(".diag-*.part-*"):  # SQLite's journal, which the holder of the part still needs
            if not beside.with_name(f"{beside.name.partition('.part-')[0]}.part").exists():
                beside.unlink(missing_ok=True)
        part = folder / f".diag-{secrets.token_hex(8)}.part"
        copy = part.open("xb")
        stack.callback(part.unlink, missing_ok=True)
        stack.enter_context(held(part))
    return copy
