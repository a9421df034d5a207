"""Advisory locks on files and folders. The kernel frees them when their owner ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path, *, exclusive: bool = False, wait: bool = True) -> Iterator[bool]:
    """Holds the lock of `path`, among other readers or alone.

    Yields False when it is gone or, without `wait`, when another holds it. A file system without locks counts as
    shared and is never held alone.
    """
    descriptor = _opened(path)
    if descriptor is None:
        yield False
        return
    try:
        # Whoever deletes holds it alone: a lock got after waiting may be that of a file without a name.
        yield _lock(descriptor, exclusive=exclusive, wait=wait) and os.fstat(descriptor).st_nlink > 0
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        return None


def _lock(descriptor: int, *, exclusive: bool, wait: bool) -> bool:
    how = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB)
    try:
        fcntl.flock(descriptor, how)
    except BlockingIOError:
        return False
    except OSError:
        return not exclusive
    return True
