"""Where an export goes: a file or folder that is whole or absent, and that never takes the place of an input."""

from __future__ import annotations

import gzip
import io
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from diag.errors import StorageError, UsageError


def check(target: Path, inputs: Iterable[Path], *, as_folder: bool, force: bool) -> None:
    """Raises UsageError when nothing may be written to `target`. `force` allows to replace what an export may be."""
    for file in inputs:
        if os.path.abspath(target) == os.path.abspath(file) or _is_or_holds(target, file):
            how = "holds" if os.path.isdir(target) else "is"
            raise UsageError(f"-o {target} {how} an input; inputs are never changed. Choose another name.")
    if not os.path.isdir(target.absolute().parent):
        raise UsageError(f"-o {target}: there is no folder {target.parent}. Make it first, or choose another name.")
    if not os.path.lexists(target):
        return
    if as_folder and not os.path.isdir(target):
        raise UsageError(f"-o {target} is no folder, and this export is several files. Choose another name.")
    if not as_folder and not os.path.isfile(target):
        raise UsageError(f"-o {target} exists and is no file. Name a file to write.")
    if not force and not (as_folder and not any(os.scandir(target))):
        raise UsageError(f"-o {target} exists. Choose another name, or replace it with --force.")


def _is_or_holds(target: Path, file: Path) -> bool:
    """Whether the target is the input under whatever name, or a folder that the input lies in."""
    try:
        return target.samefile(file) or (target.is_dir() and target.resolve() in file.resolve().parents)
    except OSError:  # no such target
        return False


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """A name beside `target` to write to; it becomes the target when all went well, else it is gone."""
    part = target.with_name(f".diag-{os.getpid()}.part")
    with _told(target):
        try:
            yield part
            os.replace(part, target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


@contextmanager
def whole_folder(target: Path, stale: Iterable[str] = ()) -> Iterator[Path]:
    """A folder beside `target` to write files to; they are moved into the target when all went well.

    Files of the names `stale` that an earlier export left there, and this one does not write, are removed.
    """
    part = target.with_name(f".diag-{os.getpid()}.part")
    with _told(target):
        part.mkdir()
        try:
            yield part
            target.mkdir(exist_ok=True)
            for name in stale:
                (target / name).unlink(missing_ok=True)
            for file in sorted(part.iterdir()):
                os.replace(file, target / file.name)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def in_blocks(pieces: Iterable[str], size: int = 1 << 16) -> Iterator[str]:
    """The same text in pieces of about `size` characters: a write for each event would cost as much as the event."""
    block: list[str] = []
    length = 0
    for piece in pieces:
        block.append(piece)
        length += len(piece)
        if length >= size:
            yield "".join(block)
            block, length = [], 0
    yield "".join(block)


@contextmanager
def opened(path: Path, *, compressed: bool) -> Iterator[IO[str]]:
    """A text file to write, as UTF-8. A compressed one names no file and no date: the same text, the same bytes."""
    with path.open("xb") as file:
        if not compressed:
            with io.TextIOWrapper(file, "utf-8", newline="") as text:
                yield text
            return
        with (
            gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed,
            io.TextIOWrapper(packed, "utf-8", newline="") as text,
        ):
            yield text


@contextmanager
def _told(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"Cannot write {target}: {error.strerror or error}. Choose another place or free some space."
        ) from error
