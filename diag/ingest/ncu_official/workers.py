"""Runs workers one after the other and takes in their answers; whatever goes wrong with one is a sentence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

import msgspec

from diag.errors import InputError, StorageError
from diag.ingest.input_file import Progress
from diag.ingest.launch_records import LaunchRecord, ProfiledDevice
from diag.ingest.ncu_official.frames import End, Failure, Frame, Garbled, Kind, SourceFile, decoded, frames
from diag.ingest.ncu_official.limits import Limits
from diag.ingest.ncu_official.worker import CANNOT_ANSWER
from diag.model import units

OTHERWISE = "leave out --with-ncu-report: diag reads reports itself"
NO_ROOM = (
    "{path}: no room for what ncu-report reads of it among the temporary files. Name another folder: TMPDIR=FOLDER"
)

_WORKER = "diag.ingest.ncu_official.worker"
_DEVICES = msgspec.msgpack.Decoder(ProfiledDevice)
_SOURCES = msgspec.msgpack.Decoder(SourceFile)
_LAUNCHES = msgspec.msgpack.Decoder(LaunchRecord)
_ENDS = msgspec.msgpack.Decoder(End)
_FAILURES = msgspec.msgpack.Decoder(Failure)


@dataclass
class Heard:
    """What the workers have answered. Launches stay where they are in the file, for there may be many."""

    devices: dict[int, ProfiledDevice] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    launches: list[Frame] = field(default_factory=list)
    n_damaged_launches: int = 0
    n_nameless_metrics: int = 0


@dataclass(frozen=True)
class Workers:
    """The workers of one report, which answer into one file. `version` is the package's."""

    path: Path
    version: str
    limits: Limits
    answers: FileIO

    def hear(self, progress: Progress) -> Heard:
        """Starts workers until one comes to the end of the report. Raises InputError and StorageError."""
        heard = Heard()
        deadline = time.monotonic() + self.limits.wall_s
        first: int | None = 0
        while first is not None:
            progress(f"{self.path.name}: launch {first + 1}, by ncu-report {self.version}")
            start = self.answers.seek(0, os.SEEK_END)
            status = self._run(first, deadline)
            try:
                first = self._take(heard, start, first)
            except Garbled as error:
                said = self._why(status) or f"gave an answer that makes no sense: {error}"
                raise InputError(self.wrong(said)) from error
        if not heard.launches:
            raise InputError(self.wrong("finds no launch in it"))
        return heard

    def launch(self, frame: Frame) -> LaunchRecord:
        """Raises Garbled."""
        return decoded(self.answers, frame, _LAUNCHES)

    def wrong(self, what: str) -> str:
        return f"{self.path.name}: ncu-report {self.version} {what}. Copy the file again, or {OTHERWISE}."

    def _run(self, first: int, deadline: float) -> int:
        """Has a worker read from this launch on. Returns its exit status, or the negative number of a signal."""
        limits = msgspec.json.encode(self.limits).decode()
        # -P: the folder that diag happens to run in is no place to import from.
        command = [sys.executable, "-P", "-m", _WORKER, limits, str(first)]
        try:
            with self.path.open("rb") as report:
                return subprocess.run(
                    command,
                    stdin=report,
                    stdout=self.answers,
                    stderr=subprocess.DEVNULL,
                    timeout=deadline - time.monotonic(),
                    check=False,
                ).returncode
        except subprocess.TimeoutExpired as error:
            said = f"did not come to an end within {self.limits.wall_s:g} s and was stopped"
            raise InputError(self.wrong(said)) from error
        except OSError as error:
            raise InputError(self.wrong(f"cannot be started: {error.strerror or error}")) from error

    def _take(self, heard: Heard, start: int, first: int) -> int | None:
        """Takes in an answer, and returns the launch that the next worker begins with. Raises Garbled, InputError."""
        for frame in frames(self.answers, start, self.answers.seek(0, os.SEEK_END)):
            match frame.kind:
                case Kind.LAUNCH:
                    heard.launches.append(frame)
                case Kind.DEVICE:
                    device = decoded(self.answers, frame, _DEVICES)
                    heard.devices.setdefault(device.ordinal, device)
                case Kind.SOURCE:
                    source = decoded(self.answers, frame, _SOURCES)
                    heard.sources.setdefault(source.name, source.text)
                case Kind.FAILURE:
                    raise InputError(self.wrong(decoded(self.answers, frame, _FAILURES).because))
                case Kind.END:
                    end = decoded(self.answers, frame, _ENDS)
                    heard.n_damaged_launches += end.n_damaged_launches
                    heard.n_nameless_metrics += end.n_nameless_metrics
                    if end.next_launch is not None and end.next_launch <= first:
                        raise Garbled("it does not get on")
                    return end.next_launch
        raise Garbled("it has no end")

    def _why(self, status: int) -> str | None:
        """What ended a worker too early; None when it ended as it should. Raises StorageError for a full disk."""
        if status == CANNOT_ANSWER:
            if self.answers.seek(0, os.SEEK_END) < self.limits.answer_bytes:
                raise StorageError(NO_ROOM.format(path=self.path.name))
            return f"tells more of it than {units.size(self.limits.answer_bytes)}"
        if status == -signal.SIGXCPU:
            return f"took more than {self.limits.cpu_s} s of a processor"
        if status < 0:
            return f"was ended by signal {-status} ({signal.strsignal(-status)})"
        return f"ended with status {status}" if status else None
