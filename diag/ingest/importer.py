"""From the files that a user names to an open case: detect, convert, read, keep."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from diag.errors import InputError, StorageError, UsageError
from diag.ingest import kineto, nsys_report, nsys_sqlite
from diag.ingest.detect import detect
from diag.ingest.input_file import Bounds, InputFile, Progress, silent
from diag.store.cache import Cache, file_digest, work_folder
from diag.store.case import Case


@dataclass(frozen=True)
class ImportOptions:
    keep: Path | None = None
    """Where the user wants the case (-o)."""
    use_cache: bool = True
    bounds: Bounds = field(default_factory=Bounds)


@contextmanager
def open_inputs(paths: Sequence[Path], options: ImportOptions, progress: Progress = silent) -> Iterator[Case]:
    """A case that holds all inputs: the one given, the cached one, or a new one.

    Raises InputError when an input cannot be read; then no case is left behind.
    """
    kinds = [detect(path) for path in paths]
    if kinds == ["case"]:
        with Case.open(paths[0]) as case:
            yield case
        if options.keep:
            _copy(paths[0], options.keep)
        return
    if "case" in kinds:
        raise UsageError("A case cannot be mixed with other inputs. Import all the original files together instead.")
    cache = Cache.of_user() if options.use_cache else None
    digests = [cache.digest(path) if cache else file_digest(path) for path in paths]
    with work_folder(cache) as folder:
        path = cache.path_of(digests) if cache else folder / "case.diag"
        if not path.exists():
            new = folder / "new.diag"
            _import(paths, kinds, digests, new, folder, options.bounds, progress)
            os.replace(new, path)
        if cache:
            cache.touch(path)
            cache.evict(keep=path)
        with Case.open(path, writable=os.access(path, os.W_OK)) as case:
            yield case
        if options.keep:
            _copy(path, options.keep)


def _import(
    paths: Sequence[Path],
    kinds: Sequence[str],
    digests: Sequence[str],
    target: Path,
    folder: Path,
    bounds: Bounds,
    progress: Progress,
) -> None:
    with Case.create(target) as case:
        for path, kind, digest in zip(paths, kinds, digests, strict=True):
            progress(f"reading {path.name}")
            data, kind = _readable(path, kind, folder, progress)
            _read(InputFile(path, data, kind, digest, path.stat().st_size), case, bounds, progress)


def _readable(path: Path, kind: str, folder: Path, progress: Progress) -> tuple[Path, str]:
    """The file that a reader can open in place of `path`, and its kind."""
    if kind == "nsys-report":
        return nsys_report.exported(path, folder, progress=progress), "nsys-sqlite"
    if kind == "nsys-sqlite" and (companions := _companions(path)):
        return _settled_copy(path, companions, folder), kind
    return path, kind


def _companions(path: Path) -> list[Path]:
    """Files in which SQLite keeps what it has not yet merged into the database."""
    beside = [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]
    return [file for file in beside if file.exists() and file.stat().st_size]


def _settled_copy(path: Path, companions: Sequence[Path], folder: Path) -> Path:
    """A private copy in which SQLite has merged the companions; the originals stay as they are."""
    copy = folder / path.name
    for file in (path, *companions):
        _copy(file, folder / file.name)
    try:
        with closing(sqlite3.connect(copy)) as db:
            db.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        raise InputError(f"{path} and the {companions[0].name} beside it do not fit together: {error}.") from error
    return copy


def _read(file: InputFile, case: Case, bounds: Bounds, progress: Progress) -> None:
    if file.kind == "kineto":
        with case.transaction():
            kineto.read(file, case, bounds=bounds, progress=progress)
        return
    with nsys_sqlite.attached(case, file), case.transaction():
        nsys_sqlite.read(file, case, progress=progress)


def _copy(source: Path, target: Path) -> None:
    """Copies through a temporary name, so that `target` is whole or absent."""
    part = target.with_name(f".{target.name}.part")
    try:
        shutil.copyfile(source, part)
        os.replace(part, target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StorageError(
            f"Cannot write {target}: {error.strerror}. Choose another place or free some space."
        ) from error
