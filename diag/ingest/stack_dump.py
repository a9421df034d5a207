"""Reader of stack dumps: what `py-spy dump` (with or without `--json`), Python's faulthandler or `diag hang` wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from diag.errors import InputError
from diag.ingest.input_file import InputFile
from diag.ingest.job_log.lines import blocks
from diag.ingest.stack_dump_text import (
    LONGEST_NAME,
    MAIN,
    MOST_FRAMES,
    MOST_THREADS,
    DumpedThread,
    StackFrame,
    distinct,
    is_thread,
    threads_of,
)
from diag.ingest.stacks import Frames, intern_stacks
from diag.model.py_spy import PySpyFrame, PySpyThread
from diag.model.stack_file import StackFile
from diag.store.case import Case

MOST_BYTES = 64 << 20
"""Of a file: 512 ranks with 50 threads each print 30 MB."""
LONGEST_LINE = 4096

_JSON = re.compile(rb'\s*\[\s*\{(?=[^}]{0,2000}"thread_id")(?=[^}]{0,2000}"owns_gil")')
_RANK_IN_NAME = re.compile(
    r"(?:rank|stacks?|trace|dump)[-_.]?(\d{1,6})(?!\d)|(?<!\d)(\d{1,6})[-_.](?:stacks?|trace)", re.IGNORECASE
)


_STACKS = b'"diag.stacks/'


@dataclass(frozen=True)
class _Read:
    """What a file holds; `rank` is that of threads which do not say theirs."""

    tool: str
    threads: Sequence[DumpedThread]
    rank: int | None = None
    rank_origin: str | None = None
    world_size: int | None = None
    host: str | None = None
    notes: Sequence[str] = ()


def looks_like_stack_dump(head: bytes) -> bool:
    """Whether a file begins with, or soon has, a thread and a frame of it."""
    if _JSON.match(head) or _is_of_diag(head):
        return True
    lines = head.decode("utf-8", "replace").splitlines()
    return any(is_thread(line) and threads_of((line, after))[0].frames for line, after in pairwise(lines))


def _is_of_diag(head: bytes) -> bool:
    return head.lstrip()[:1] == b"{" and _STACKS in head[:1024]


def rank_in_name(path: Path) -> int | None:
    """
    >>> rank_in_name(Path("rank14.stack")), rank_in_name(Path("stacks-3.txt")), rank_in_name(Path("stacks.txt"))
    (14, 3, None)
    """
    match = _RANK_IN_NAME.search(path.name)
    return int(match[1] or match[2]) if match else None


def read(file: InputFile, case: Case) -> int:
    """Adds a file to the case, inside the caller's transaction, and returns the source's id.

    Raises InputError when it is too large or broken.
    """
    if file.data.stat().st_size > MOST_BYTES:
        raise InputError(f"{file.path} is larger than {MOST_BYTES >> 20} MiB. Split it: one file for each rank.")
    told = _with_rank(_told(file), file.path)
    source_id = case.add_source(
        kind=file.kind, path=str(file.path), sha256=file.sha256, size_bytes=file.size_bytes, tool=told.tool,
        host=told.host, rank=told.rank, rank_origin=told.rank_origin, world_size=told.world_size,
        time_resolution_ns=1_000_000_000,
    )  # fmt: skip
    add_threads(case, source_id, told.threads, told.rank, told.host)
    case.finish_source(source_id, {"thread_stack": len(told.threads) or None}, told.notes)
    return source_id


def _told(file: InputFile) -> _Read:
    head = _head(file.data)
    try:
        if _is_of_diag(head):
            return _of_diag(msgspec.json.decode(file.data.read_bytes(), type=StackFile))
        if _JSON.match(head):
            return _Read(
                "py-spy",
                [_thread(each) for each in msgspec.json.decode(file.data.read_bytes(), type=list[PySpyThread])],
            )
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = str(error).rstrip(".")
        raise InputError(f"{file.path} holds no whole stack dump ({said}). Take the dump again.") from error
    threads = threads_of(_lines(file.data))
    is_faulthandler = all(thread.is_running is None for thread in threads)
    cut = [f"Only the first {MOST_THREADS:,} threads are read."] if len(threads) == MOST_THREADS else []
    return _Read("faulthandler" if is_faulthandler else "py-spy", threads, notes=cut)


def _with_rank(told: _Read, path: Path) -> _Read:
    """The rank of the file: of the only one that it speaks of, else of its name, which may also hold a pid."""
    of_threads = {thread.rank for thread in told.threads} - {None}
    if told.rank is not None or len(of_threads) > 1:
        return told
    if of_threads:
        return replace(told, rank=of_threads.pop(), rank_origin="content")
    named = rank_in_name(path)
    if named is None or named in {thread.pid for thread in told.threads}:
        return told
    return replace(told, rank=named, rank_origin="file name")


def threads_in_log(path: Path) -> list[DumpedThread]:
    """The threads in a text that has other lines, too. A stack may go on in the block after that of its header."""
    return threads_of(_lines_near_stacks(path))


def _lines_near_stacks(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        is_near = False
        for _, block in blocks(file):
            has_mark = any(mark in block for mark in _MARKS)
            if has_mark or is_near:
                yield from (line[:LONGEST_LINE].decode("utf-8", "backslashreplace") for line in block.splitlines())
            is_near = has_mark


_MARKS = (b"(most recent call first)", b" (idle)", b" (active)", b" (active+gil)")


def add_threads(
    case: Case, source_id: int, threads: Sequence[DumpedThread], rank: int | None, host: str | None
) -> None:
    """Rows of `thread_stack`, be it out of a log that has other lines, too."""
    ids = intern_stacks(case, distinct(threads))
    case.insert("thread_stack", [_row(each, rank, ids) | {"source_id": source_id, "host": host} for each in threads])


def _row(thread: DumpedThread, rank: int | None, ids: Mapping[Frames, int]) -> dict[str, Any]:
    return {
        "dump": thread.dump,
        "rank": rank if thread.rank is None else thread.rank,
        "pid": thread.pid,
        # SQLite's integers have a sign; the numbers that faulthandler prints are addresses.
        "tid": None if thread.tid is None or thread.tid >= 1 << 63 else thread.tid,
        "name": thread.name,
        "time_ns": thread.time_ns,
        "is_main": int(thread.is_main),
        "is_current": int(thread.is_current),
        "is_running": None if thread.is_running is None else int(thread.is_running),
        "holds_gil": None if thread.holds_gil is None else int(thread.holds_gil),
        "state": thread.state,
        "waits_in": thread.waits_in,
        "stack_id": ids.get(tuple(thread.frames)),
    }


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LONGEST_LINE)


def _lines(path: Path) -> Iterator[str]:
    """Without line ends; what is beyond the longest line is passed over."""
    with path.open("rb") as file:
        is_rest = False
        while line := file.readline(LONGEST_LINE):
            if not is_rest:
                yield line.decode("utf-8", "backslashreplace").rstrip("\r\n")
            is_rest = not line.endswith(b"\n")


# ---- py-spy dump --json --------------------------------------------------------------------------------------------


def _thread(told: PySpyThread) -> DumpedThread:
    return DumpedThread(
        dump=0,
        rank=None,
        pid=told.pid,
        tid=told.os_thread_id,
        name=None if told.thread_name is None else told.thread_name[:LONGEST_NAME],
        is_current=told.owns_gil,
        is_running=told.active,
        holds_gil=told.owns_gil,
        is_main=told.thread_name == MAIN,
        frames=list(_frames(told.frames[:MOST_FRAMES])),
    )


def _frames(told: Iterable[PySpyFrame]) -> Iterator[StackFrame]:
    for frame in told:
        line: Any = frame.line if 0 < frame.line < 1 << 31 else None
        yield StackFrame(frame.name[:LONGEST_NAME], frame.filename[:LONGEST_NAME], line)


# ---- diag hang PID -------------------------------------------------------------------------------------------------


def _of_diag(told: StackFile) -> _Read:
    threads = [
        DumpedThread(
            dump=at,
            rank=told.rank,
            pid=told.pid,
            tid=thread.tid,
            name=None if thread.name is None else thread.name[:LONGEST_NAME],
            is_current=thread.holds_gil,
            time_ns=dump.time_ns,
            is_running=thread.is_running,
            holds_gil=thread.holds_gil,
            is_main=thread.name == MAIN or thread.tid == told.pid,
            state=(told.states or {}).get(thread.tid or 0),
            waits_in=(told.waits_in or {}).get(thread.tid or 0),
            frames=[
                StackFrame(frame.function[:LONGEST_NAME], frame.file[:LONGEST_NAME], frame.line or None)
                for frame in thread.frames[:MOST_FRAMES]
            ],
        )
        for at, dump in enumerate(told.dumps)
        for thread in dump.threads
    ]
    notes = list(dict.fromkeys(dump.untold for dump in told.dumps if dump.untold))
    origin = None if told.rank is None else "environment"
    return _Read("diag hang", threads, told.rank, origin, told.world_size, told.host, notes)
