"""Where a thread was found in several dumps of its stack."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from diag.model.live import Frame, ThreadStack

LIBRARY = re.compile(r"(^|/)(site|dist)-packages/|(^|/)lib(64)?/python3[^/]*/|^<frozen |^<__array_function__")
"""Files of Python's own library and of installed packages; own code lies elsewhere."""


SHORTENED = frozenset(
    {*sys.stdlib_module_names, "torch", "numpy", "triton", "deepspeed", "lightning", "pytorch_lightning", "accelerate"}
    | {"transformers", "megatron", "jax", "tensorflow"}
) - {"test", "this", "code"}
"""Packages that are known by their names alone: `py-spy dump` leaves the folder that a package lies in away."""


_INSTALLED = re.compile(r"^.*(?:/(?:site|dist)-packages/|/lib(?:64)?/python3[^/]*/)")
"""Where packages and Python's own library lie: which file of them it is, what is below tells."""


def short_file(path: str, longest: int) -> str:
    """From where packages or Python's own library are on, or its end.

    >>> short_file("/env/lib/python3.12/site-packages/torch/optim/adam.py", 60), short_file("/home/me/train.py", 8)
    ('torch/optim/adam.py', '…train.py')
    """
    inside = _INSTALLED.sub("", path)
    return inside if len(inside) <= longest else f"…{inside[-longest:]}"


def own_frame(stack: ThreadStack) -> Frame | None:
    """The innermost frame in a file that belongs to no library: the line that somebody here wrote."""
    return first_own_frame(stack.frames)


def first_own_frame(frames: Sequence[Frame]) -> Frame | None:
    return next((frame for frame in frames if not is_library(frame.file)), None)


def is_library(file: str) -> bool:
    """
    >>> is_library("/env/lib/python3.12/site-packages/torch/optim/adam.py"), is_library("torch/optim/adam.py")
    (True, True)
    >>> is_library("threading.py"), is_library("libc.so.6"), is_library("train.py"), is_library("/home/me/threading.py")
    (True, True, False, False)
    """
    return bool(LIBRARY.search(file)) or not file or ".so" in file or _first_name(file) in SHORTENED


def _first_name(file: str) -> str:
    return file.partition("/")[0].removesuffix(".py")


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
