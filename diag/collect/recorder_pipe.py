"""PyTorch's flight recorder of a running rank, asked for a dump through its pipe.

ProcessGroupNCCL makes the pipe `<stem><rank>.pipe`, where TORCH_NCCL_DEBUG_INFO_PIPE_FILE (or, of other backends,
TORCH_FR_DEBUG_INFO_PIPE_FILE) names the stem and TORCH_FR_BUFFER_SIZE is above zero; a thread of it looks once a second
whether anything was written there, and then dumps into `<stem><rank>` of TORCH_FR_DUMP_TEMP_FILE
(torch/csrc/distributed/c10d, ProcessGroupNCCL.hpp and FlightRecorder.hpp). Gloo makes no pipe.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from diag.collect.proc_files import content

_PIPES = ("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_FR_DEBUG_INFO_PIPE_FILE")
_DUMPS = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_FOLDERS = ("XDG_CACHE_HOME", "HOME")
_WANTED = re.compile(rb"(?:\A|(?<=\0))(" + "|".join((*_PIPES, *_DUMPS, *_FOLDERS)).encode() + rb")=([^\0]{1,4096})")
_END_OF_PICKLE = b"."
_LOOK_EVERY_S = 0.1
_UNCHANGED_S = 0.3


@dataclass(frozen=True)
class Recorder:
    """Where a rank listens, if it does, and where its dumps may be."""

    rank: int
    pid: int
    pipe: Path | None
    dumps: Sequence[Path]


def recorder_of(pid: int, rank: int) -> Recorder:
    """Raises OSError where the environment of the process may not be read. Nothing else is taken out of it."""
    told: dict[str, str] = {}
    for match in _WANTED.finditer(content(f"/proc/{pid}/environ")):
        told.setdefault(match[1].decode(), os.fsdecode(match[2]))
    pipe = next((f"{told[name]}{rank}.pipe" for name in _PIPES if name in told), None)
    stems = [told[name] for name in _DUMPS if name in told] or list(_default_stems(told))
    return Recorder(
        pid=pid,
        rank=rank,
        pipe=_seen(pid, pipe) if pipe else None,
        dumps=[_seen(pid, f"{stem}{rank}") for stem in stems],
    )


def _default_stems(told: Mapping[str, str]) -> list[str]:
    """Of newer releases of PyTorch, and of older ones."""
    cache = told.get("XDG_CACHE_HOME") or f"{told.get('HOME', '')}/.cache"
    return [f"{cache}/torch/comm_lib_trace_rank_", "/tmp/nccl_trace_rank_"]


def _seen(pid: int, path: str) -> Path:
    """A path of the process, which may be in another container and has a working directory of its own."""
    return Path(f"/proc/{pid}/root{path}") if path.startswith("/") else Path(f"/proc/{pid}/cwd/{path}")


def trigger(recorder: Recorder) -> str | None:
    """Asks for a dump; None: it was asked, else why not. Never waits, and never writes to anything but a pipe of the
    process's own user that somebody reads.
    """
    pipe = recorder.pipe
    if pipe is None:
        return "the recorder has no pipe: set TORCH_NCCL_DEBUG_INFO_PIPE_FILE before it starts"
    try:
        owner = os.stat(f"/proc/{recorder.pid}").st_uid
        if not _is_pipe_of(os.lstat(pipe), owner):
            return "what stands in the place of the pipe is none, or belongs to another user"
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return "the pipe is not there: the group is not set up yet, or is not NCCL's"
    except OSError as error:  # ENXIO: nobody reads it
        return f"the pipe cannot be written: {error.strerror}"
    try:
        if not _is_pipe_of(os.fstat(descriptor), owner):
            return "the pipe was replaced meanwhile"
        os.write(descriptor, b"1")
    except OSError as error:
        return f"the pipe cannot be written: {error.strerror}"
    finally:
        os.close(descriptor)
    return None


def _is_pipe_of(status: os.stat_result, owner: int) -> bool:
    return stat.S_ISFIFO(status.st_mode) and status.st_uid == owner


Version = tuple[int, int, int]
"""Of a file: number, time and size."""


def version(path: Path) -> Version | None:
    """None where there is no such file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_ino, status.st_mtime_ns, status.st_size) if stat.S_ISREG(status.st_mode) else None


Versions = Mapping[Path, Version | None]
"""Of the files that may be the dump of one recorder."""


def new_dumps(before: Sequence[Versions], *, wait_s: float) -> list[Path]:
    """Of each recorder a file that was written since, whole. Returns once all are there, at the latest after `wait_s`.

    A dump takes 2 to 5 s the first time, while PyTorch loads what names the frames.
    """
    deadline = time.monotonic() + wait_s
    missing, found = list(before), []
    last: dict[Path, tuple[Version, float]] = {}
    while missing:
        for recorder in list(missing):
            path = next((path for path, old in recorder.items() if _has_come(path, old, last)), None)
            if path is not None:
                found.append(path)
                missing.remove(recorder)
        if not missing or time.monotonic() >= deadline:
            break
        time.sleep(_LOOK_EVERY_S)
    return found


def _has_come(path: Path, old: Version | None, last: dict[Path, tuple[Version, float]]) -> bool:
    """`last`: of each file what was seen, and since when."""
    now = version(path)
    if now is None or now == old:
        return False
    if path not in last or last[path][0] != now:
        last[path] = (now, time.monotonic())
        return False
    return time.monotonic() - last[path][1] >= _UNCHANGED_S and _is_whole(path)


def _is_whole(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == _END_OF_PICKLE
    except OSError:
        return False
