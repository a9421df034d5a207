"""Python stacks in the live view: what is alike, threads of a pool or ranks of a job, stands once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from diag.model import units
from diag.model.live import StackDump, ThreadStack
from diag.model.live_stacks import short_file
from diag.render import phrases
from diag.render.live_marks import Line, Look, Section, fitted, name, span
from diag.render.live_view import LiveView

INDENT = "  "
LONGEST_NAME = 60
LONGEST_SENTENCE = 1_000


def stacks(view: LiveView, look: Look, most_frames: int | None = None) -> Section:
    """The newest of each process: its threads, the one with the GIL first, each with its leaf on top."""
    lines = [line for dumps in _dumps_alike(view.stacks) for line in _dumps(dumps, view, most_frames)]
    return Section("Python stacks", [fitted(line, look.width) for line in lines])


def _dumps_alike(dumps: Iterable[StackDump]) -> Iterator[Sequence[StackDump]]:
    """Processes whose threads are in the same lines, as ranks are that wait for one."""
    groups: dict[Hashable, list[StackDump]] = {}
    for each in dumps:
        is_known = each.untold is None
        threads = tuple((thread.name, *_where(thread)) for thread in each.threads)
        groups.setdefault(threads if is_known else each.pid, []).append(each)
    yield from groups.values()


def _dumps(dumps: Sequence[StackDump], view: LiveView, most_frames: int | None) -> Iterator[Line]:
    dump = dumps[0]
    ranks = {row.reading.pid: f" (rank {row.reading.rank})" for row in view.processes if row.reading.rank is not None}
    pids = phrases.some(f"{each.pid}{ranks.get(each.pid, '')}" for each in dumps)
    ago_ns, took_ns = max(0, view.time_ns - dump.time_ns), max(each.took_ns for each in dumps)
    yield [span(f"pid {pids}, {units.time(ago_ns)} ago; asking took {units.time(took_ns)}", "title")]
    if dump.untold is not None:
        yield [span(f"{INDENT}{dump.untold[:LONGEST_SENTENCE]}")]
    for alike in _threads_alike(sorted(dump.threads, key=lambda each: (not each.holds_gil, not each.is_running))):
        yield [span(INDENT + _threads(alike))]
        yield from _frames(alike[0], most_frames)


def _frames(thread: ThreadStack, most: int | None) -> Iterator[Line]:
    for frame in thread.frames[:most]:
        function = name(frame.function, LONGEST_NAME)
        yield [span(f"{INDENT * 2}{function}  "), span(f"{short_file(frame.file, LONGEST_NAME)}:{frame.line}", "dim")]
    if most is not None and (hidden := len(thread.frames) - most) > 0:
        yield [span(f"{INDENT * 2}… {units.count(hidden, 'more frame')}", "dim")]


def _threads_alike(threads: Iterable[ThreadStack]) -> Iterator[Sequence[ThreadStack]]:
    groups: dict[Hashable, list[ThreadStack]] = {}
    for each in threads:
        groups.setdefault(_where(each), []).append(each)
    yield from groups.values()


def _where(thread: ThreadStack) -> tuple[Hashable, ...]:
    return (thread.holds_gil, thread.is_running, tuple(thread.frames))


def _threads(threads: Sequence[ThreadStack]) -> str:
    thread, more = threads[0], len(threads) - 1
    who = name(thread.name or "thread", LONGEST_NAME) + ("" if thread.tid is None else f" ({thread.tid})")
    who += f" and {more} more" if more else ""
    what = ("running" if thread.is_running else "waiting", "holds the GIL" if thread.holds_gil else "")
    return f"{who}: {', '.join(filter(None, what))}"
