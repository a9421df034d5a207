"""Stacks as `py-spy dump` and Python's faulthandler print them, taken apart line by line.

Lines of several ranks may be mixed in one text, each behind the name of its rank (`[rank3]: `, or `3: ` of
`srun --label`); of py-spy's `--locals` nothing is kept, for arguments may hold secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

MOST_THREADS = 200_000
"""Of a file; later ones are left out."""
MOST_FRAMES = 1_000
"""Of one thread: Python's own limit of recursion."""
LONGEST_NAME = 500

_SPEAKER = re.compile(r"(?:\[rank(?P<rank>\d{1,9})\]:? ?|\[(?P<local>\w+\d)\]:? ?| *(?P<task>\d{1,9}): ?)")
_PROCESS = re.compile(r"Process (\d{1,9}): ")
_PY_SPY = re.compile(
    r'Thread (?P<tid>0x[0-9A-Fa-f]{1,16}|\d{1,9}) \((?P<status>idle|active)(?P<gil>\+gil)?\)(?:: "(?P<name>.*)")?'
)
_FAULTHANDLER = re.compile(
    r"(?P<current>Current thread|Thread) (?P<tid>0x[0-9A-Fa-f]{1,16})(?: \[(?P<name>.*)\])? \(most recent call first\):"
)
_ONE_STACK = "Stack (most recent call first):"
_C_STACK = "Current thread's C stack trace (most recent call first):"
_HEADER = re.compile(r"Timeout \(\d|Fatal Python error: ")
_PY_SPY_INDENT = re.compile(r"    (?=\S)")
_LINE = re.compile(r"\d{1,9}")
_FAULTHANDLER_FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d{1,9}|\?\?\?) in (?P<function>.*)')
_C_FRAME = re.compile(r'  Binary file "(?P<file>[^"]*)"(?:, at )?(?P<function>[^+\[]*)')
"""Since Python 3.14."""
MAIN = "MainThread"


@dataclass(frozen=True)
class StackFrame:
    function: str
    file: str | None = None
    line: int | None = None


@dataclass
class DumpedThread:
    """A thread in one dump. `frames` from the leaf to the root."""

    dump: int
    rank: int | None
    pid: int | None
    tid: int | None
    name: str | None
    is_current: bool
    is_running: bool | None = None
    holds_gil: bool | None = None
    is_main: bool = False
    time_ns: int | None = None
    state: str | None = None
    waits_in: str | None = None
    frames: list[StackFrame] = field(default_factory=list)


def is_thread(line: str) -> bool:
    """Whether a line begins the stack of a thread, whoever speaks."""
    said = _without_speaker(line)
    return bool(_PY_SPY.fullmatch(said) or _FAULTHANDLER.fullmatch(said))


def threads_of(lines: Iterable[str]) -> list[DumpedThread]:
    """The threads in the order of their headers."""
    speakers: dict[str, _Speaker] = {}
    threads: list[DumpedThread] = []
    for line in lines:
        match = _SPEAKER.match(line)
        name = match[0].strip() if match else ""
        if name not in speakers:
            rank = (match["rank"] or match["task"]) if match else None
            speakers[name] = _Speaker(None if rank is None else int(rank))
        if begun := speakers[name].hear(line[match.end() :] if match else line):
            threads.append(begun)
            if len(threads) == MOST_THREADS:
                break
    for speaker in speakers.values():
        speaker.end_dump()
    return threads


def _without_speaker(line: str) -> str:
    match = _SPEAKER.match(line)
    return line[match.end() :] if match else line


class _Speaker:
    """One process, or several in turn, whose lines come in order."""

    def __init__(self, rank: int | None) -> None:
        self._rank = rank
        self._pid: int | None = None
        self._n_dumps: dict[int | None, int] = {}
        self._of_dump: list[DumpedThread] = []
        self._thread: DumpedThread | None = None
        self._c_frames: list[StackFrame] | None = None

    def hear(self, line: str) -> DumpedThread | None:
        """The thread that begins with this line."""
        if self._thread is not None or self._c_frames is not None:
            if frame := _frame(line):
                self._add(frame)
                return None
            if not line or not line[0].isspace():
                self._thread = self._c_frames = None
        if match := _PROCESS.match(line):
            self.end_dump()
            self._pid = int(match[1])
        elif _HEADER.match(line):
            self.end_dump()
        elif line == _C_STACK:
            self._c_frames = []
        elif match := _PY_SPY.fullmatch(line):
            thread = self._begin(_number(match["tid"]), match["name"], is_current=bool(match["gil"]))
            thread.is_running = match["status"] == "active"
            # Of a thread that sleeps py-spy prints nothing, be it with the GIL.
            thread.holds_gil = bool(match["gil"]) if thread.is_running else None
            thread.is_main = match["name"] == MAIN
            return thread
        elif match := _FAULTHANDLER.fullmatch(line):
            return self._begin(_number(match["tid"]), match["name"], is_current=match["current"] != "Thread")
        elif line == _ONE_STACK:
            return self._begin(None, None, is_current=True)
        return None

    def end_dump(self) -> None:
        """Python lists the threads from the newest to the oldest, which is the main one (Python/pystate.c)."""
        if self._of_dump:
            self._n_dumps[self._pid] = self._n_dumps.get(self._pid, 0) + 1
            if all(thread.is_running is None for thread in self._of_dump):
                self._of_dump[-1].is_main = True
        self._of_dump, self._thread, self._c_frames = [], None, None

    def _begin(self, tid: int | None, name: str | None, *, is_current: bool) -> DumpedThread:
        if any(thread.tid == tid for thread in self._of_dump[:1]):  # dumps begin with the same thread, or with a newer
            self.end_dump()
        shown = None if name is None else name[:LONGEST_NAME]
        dump = self._n_dumps.get(self._pid, 0)
        self._thread = DumpedThread(dump, self._rank, self._pid, tid, shown, is_current)
        self._of_dump.append(self._thread)
        return self._thread

    def _add(self, frame: StackFrame) -> None:
        if self._thread is None:  # of the C stack, which comes after those of Python, and is the current thread's
            current = next((thread for thread in self._of_dump if thread.is_current), None)
            if current is not None and self._c_frames is not None and len(current.frames) < MOST_FRAMES:
                current.frames.insert(len(self._c_frames), frame)
                self._c_frames.append(frame)
        elif len(self._thread.frames) < MOST_FRAMES:
            self._thread.frames.append(frame)


def _frame(line: str) -> StackFrame | None:
    if match := _FAULTHANDLER_FRAME.fullmatch(line):
        return _made(match["function"], match["file"], match["line"])
    if match := _C_FRAME.match(line):
        return _made(match["function"].strip() or "?", match["file"], "")
    function, parenthesis, place = line.rpartition(" (")
    if _PY_SPY_INDENT.match(line) and parenthesis and place.endswith(")"):
        file, _, number = place[:-1].rpartition(":")
        is_line = bool(file and _LINE.fullmatch(number))
        return _made(function[4:], file if is_line else place[:-1], number if is_line else "")
    return None


def _made(function: str, file: str, line: str) -> StackFrame:
    return StackFrame(function[:LONGEST_NAME], file[:LONGEST_NAME], int(line) if _LINE.fullmatch(line) else None)


def _number(tid: str) -> int:
    return int(tid, 16) if tid.startswith("0x") else int(tid)


def distinct(threads: Sequence[DumpedThread]) -> Iterator[tuple[StackFrame, ...]]:
    """Each stack once."""
    yield from dict.fromkeys(tuple(thread.frames) for thread in threads if thread.frames)
