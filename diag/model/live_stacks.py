"""Where a thread was found in several dumps of its stack."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from diag.model.live import Frame, ThreadStack

LIBRARY = re.compile(r"(^|/)(site|dist)-packages/|(^|/)lib(64)?/python3[^/]*/|^<frozen |^<__array_function__")
"""Files of Python's own library and of installed packages; own code lies elsewhere."""


def own_frame(stack: ThreadStack) -> Frame | None:
    """The innermost frame in a file that belongs to no library: the line that somebody here wrote."""
    return next((frame for frame in stack.frames if not LIBRARY.search(frame.file)), None)


@dataclass(frozen=True)
class Whereabouts:
    """The frame that a thread's stack ended in most often, and the line of own code that it was called from."""

    frame: Frame
    own: Frame | None  # the same, where the stack ended in own code
    found: int  # dumps that ended in this line
    dumps: int


def whereabouts(stacks: Sequence[ThreadStack]) -> Whereabouts | None:
    """
    >>> stack = lambda line: ThreadStack(1, 1, None, [Frame("f", "a.py", line)], False, True)
    >>> found = whereabouts([stack(1), stack(2), stack(2)])
    >>> found.frame, found.found, found.dumps
    (Frame(function='f', file='a.py', line=2), 2, 3)
    """
    leaves = Counter(stack.frames[0] for stack in stacks if stack.frames)
    if not leaves:
        return None
    frame, found = leaves.most_common(1)[0]
    inside = next(stack for stack in stacks if stack.frames and stack.frames[0] == frame)
    return Whereabouts(frame, own_frame(inside), found, leaves.total())


def in_function(stacks: Sequence[ThreadStack], frame: Frame) -> int:
    """How many of them ended in the function of a frame, be it in another line."""
    ends = (stack.frames[0] for stack in stacks if stack.frames)
    return sum((end.function, end.file) == (frame.function, frame.file) for end in ends)


def waits_in_same_frames(stacks: Sequence[ThreadStack]) -> bool:
    """Whether the thread did not move between dumps: every frame in the same line, and it never ran."""
    first = tuple(stacks[0].frames) if stacks else ()
    return all(tuple(stack.frames) == first and not stack.is_running for stack in stacks)
