"""Stacks of many ranks: those that stand in the same frames together, the odd ones out first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from diag.model.live import Frame
from diag.model.live_stacks import first_own_frame, is_library
from diag.ranks.thread_stacks import RankThread, last_main_threads, stood


@dataclass(frozen=True)
class StackCluster:
    """Processes whose main threads stand in the same frames. `frames` are those of the first, from the leaf.

    `moved`: how many of them were elsewhere in an earlier dump; None where none has two dumps.
    """

    threads: Sequence[RankThread]
    moved: int | None

    @property
    def frames(self) -> tuple[Frame, ...]:
        return self.threads[0].frames

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(sorted(thread.rank for thread in self.threads if thread.rank is not None))

    @property
    def is_stopped(self) -> bool:
        return all(thread.is_stopped for thread in self.threads)

    @property
    def own(self) -> Frame | None:
        """The innermost line that somebody here wrote."""
        return first_own_frame(self.frames)


def clusters(threads: Sequence[RankThread]) -> Sequence[StackCluster]:
    """The smallest first, as a rank that stands alone is the one that others wait for; then by rank."""
    groups: defaultdict[Hashable, list[RankThread]] = defaultdict(list)
    for thread in last_main_threads(threads):
        groups[_place(thread)].append(thread)
    of_process: defaultdict[Hashable, list[RankThread]] = defaultdict(list)
    for thread in threads:
        of_process[thread.process].append(thread)
    found = []
    for alike in groups.values():
        stand = [stood(thread, of_process[thread.process]) for thread in alike]
        moved = None if all(each is None for each in stand) else sum(each is False for each in stand)
        found.append(StackCluster(sorted(alike, key=_order), moved))
    return sorted(found, key=lambda each: (len(each.threads), _order(each.threads[0])))


def _order(thread: RankThread) -> tuple[bool, int, int, int]:
    return thread.rank is None, thread.rank or 0, thread.pid or 0, thread.source_id


def _place(thread: RankThread) -> Hashable:
    """Lines count in own code alone: ranks that wait in one library function may be in different lines of its loop."""
    lines = ((frame.function, frame.file, 0 if is_library(frame.file) else frame.line) for frame in thread.frames)
    return thread.is_stopped, tuple(lines)


@dataclass(frozen=True)
class Branch:
    """Frames that follow each other, from the root on, without anybody leaving; then where ways part."""

    frames: tuple[Frame, ...]
    threads: Sequence[RankThread]
    below: Sequence[Branch]


def tree(found: Sequence[StackCluster]) -> Sequence[Branch]:
    """Where the ranks' stacks are the same and where they part."""
    return list(_branches([(cluster, tuple(reversed(cluster.frames))) for cluster in found]))


_Paths = Sequence[tuple[StackCluster, tuple[Frame, ...]]]


def _branches(paths: _Paths) -> Iterator[Branch]:
    groups: defaultdict[Hashable, list[tuple[StackCluster, tuple[Frame, ...]]]] = defaultdict(list)
    for cluster, frames in paths:
        if frames:
            groups[frames[0]].append((cluster, frames))
    for group in groups.values():
        shared = _shared([frames for _, frames in group])
        rest = [(cluster, frames[shared:]) for cluster, frames in group]
        threads = [thread for cluster, _ in group for thread in cluster.threads]
        yield Branch(group[0][1][:shared], sorted(threads, key=_order), list(_branches(rest)))


def _shared(paths: Sequence[tuple[Frame, ...]]) -> int:
    """How many frames all begin with."""
    shortest = min(map(len, paths))
    return next((at for at in range(shortest) if len({path[at] for path in paths}) > 1), shortest)
