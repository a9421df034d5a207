"""Where a thread was found in several dumps of its stack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from diag.model.live import Frame, ThreadStack


@dataclass(frozen=True)
class Whereabouts:
    """The frame that a thread's stack ended in most often."""

    frame: Frame
    found: int  # dumps that ended in this line
    dumps: int


def whereabouts(stacks: Sequence[ThreadStack]) -> Whereabouts | None:
    """
    >>> stack = lambda line: ThreadStack(1, 1, None, [Frame("f", "a.py", line)], False, True)
    >>> whereabouts([stack(1), stack(2), stack(2)])
    Whereabouts(frame=Frame(function='f', file='a.py', line=2), found=2, dumps=3)
    """
    leaves = Counter(stack.frames[0] for stack in stacks if stack.frames)
    if not leaves:
        return None
    frame, found = leaves.most_common(1)[0]
    return Whereabouts(frame, found, leaves.total())


def in_function(stacks: Sequence[ThreadStack], frame: Frame) -> int:
    """How many of them ended in the function of a frame, be it in another line."""
    ends = (stack.frames[0] for stack in stacks if stack.frames)
    return sum((end.function, end.file) == (frame.function, frame.file) for end in ends)


def waits_in_same_frames(stacks: Sequence[ThreadStack]) -> bool:
    """Whether the thread did not move between dumps: every frame in the same line, and it never ran."""
    first = tuple(stacks[0].frames) if stacks else ()
    return all(tuple(stack.frames) == first and not stack.is_running for stack in stacks)
