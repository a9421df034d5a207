"""Call stacks of Python threads and of communication calls, interned in the table `stack`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from diag.ingest.stack_dump_text import StackFrame
from diag.store.case import Case

Frames = tuple[StackFrame, ...]


def stack_id(frames: Sequence[StackFrame]) -> int:
    """From the frames alone, so that equal stacks of a thousand files get one id without looking any up.

    62 bits of a digest: among a million stacks two collide with a probability of 10^-7.
    """
    text = "\0".join(f"{frame.function}\1{frame.file}\1{frame.line}" for frame in frames)
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 2


def intern_stacks(case: Case, stacks: Iterable[Frames]) -> Mapping[Frames, int]:
    """Ids of stacks, adding those that the case lacks."""
    ids = {frames: stack_id(frames) for frames in stacks}
    names = case.intern(
        text for frames in ids for frame in frames for text in (frame.function, frame.file) if text is not None
    )
    case.db.executemany(
        _ADD,
        (
            (number, depth, names[frame.function], None if frame.file is None else names[frame.file], frame.line)
            for frames, number in ids.items()
            for depth, frame in enumerate(frames)
        ),
    )
    return ids


_ADD = "INSERT OR IGNORE INTO stack (id, depth, symbol_id, module_id, line) VALUES (?, ?, ?, ?, ?)"
