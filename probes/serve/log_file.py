"""Writes the file `diag.serving-log/1` as a run goes on.

While a run lasts, its file is called FILE.part, in sight and beside where it will be: of a run that was killed it holds
all but the last second, line by line, and `diag report` reads it. The name is taken exclusively, so that two runs
never write one file, and nobody's measurements are replaced by another start.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import msgspec

from diag.errors import StorageError, UsageError
from diag.model.serving_log import Header, Record, RequestRecord, StepRecord

FLUSH_BYTES = 1 << 18
FLUSH_S = 1.0
"""So much is lost at most when the process is killed."""

LONGEST_HEADER = 1 << 16


def check_target(target: Path) -> None:
    """Raises UsageError where no log must be written: only another log is ever replaced."""
    if target.is_dir():
        raise UsageError(f"-o {target} is a folder. Name a file in it, for example: -o {target / 'run.jsonl'}")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"-o {target}: there is no folder {target.parent}. Make it first, or choose another name.")
    if os.path.lexists(target) and not _is_log(target):
        raise UsageError(f"-o {target} exists and is no serving log of diag. Remove it first, or choose another name.")
    if os.path.lexists(part_of(target)):
        raise UsageError(
            f"{part_of(target)} is of a run that goes on or was killed. Keep what it holds under another name, "
            "remove it, or choose another -o."
        )


def part_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.part")


def _is_log(file: Path) -> bool:
    if not file.is_file():
        return False
    try:
        with file.open("rb") as opened:
            msgspec.json.decode(opened.readline(LONGEST_HEADER), type=Header)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


class LogFile:
    """A context in which `add` takes records, from any thread. On leaving it, also by an interrupt, the file is whole.

    Without a record there is no file; one that could not be written to its end stays FILE.part. Raises StorageError.
    """

    def __init__(self, target: Path, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._target, self._part = target, part_of(target)
        self._now_s = now_s
        self._encoder = msgspec.json.Encoder()
        self._buffer = bytearray()
        self._flushed_s = now_s()
        self._lock = threading.Lock()
        self._file: BinaryIO | None = None
        self._header: Header | None = None  # of a run that has no record yet
        self._has_records = False

    def __enter__(self) -> Self:
        try:
            self._file = self._part.open("xb", buffering=0)
        except OSError as error:
            raise self._not_written(error) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        assert self._file is not None
        with self._file:
            if isinstance(error, StorageError):
                return
            with self._lock:
                self._flush()
        try:
            if self._has_records:
                os.replace(self._part, self._target)
            else:
                self._part.unlink()
        except OSError as not_renamed:
            raise self._not_written(not_renamed) from not_renamed

    def begin(self, header: Header) -> None:
        """The records that follow are of this run."""
        self._header = header

    def add(self, record: RequestRecord | StepRecord) -> None:
        with self._lock:
            if self._header is not None:
                self._put(self._header)
                self._header = None
            self._put(record)
            self._has_records = True
            self._flush_when_due()

    def flush_when_due(self) -> None:
        """Also while nothing comes, what came is soon on the disk."""
        with self._lock:
            self._flush_when_due()

    def _put(self, record: Record) -> None:
        self._buffer += self._encoder.encode(record)
        self._buffer += b"\n"

    def _flush_when_due(self) -> None:
        if len(self._buffer) >= FLUSH_BYTES or self._now_s() - self._flushed_s >= FLUSH_S:
            self._flush()

    def _flush(self) -> None:
        assert self._file is not None
        self._flushed_s = self._now_s()
        try:
            while self._buffer:
                del self._buffer[: self._file.write(self._buffer)]
        except OSError as error:
            raise self._not_written(error) from error

    def _not_written(self, error: OSError) -> StorageError:
        return StorageError(
            f"Cannot write {self._target}: {error.strerror}. Free some space, or choose another place with -o FILE."
        )
