"""When memory runs out: known by what the libraries raise then, and told before they can hang."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator

from diag.errors import OutOfMemory

LEAST_BYTES = 512 << 20
"""Loading NumPy and Arrow maps 300 MB. With less than this they abort, or try for ever, before anyone can say why."""

_SQLITE_CODES = (7, 10 | 12 << 8)  # SQLITE_NOMEM and SQLITE_IOERR_NOMEM, without loading what may not fit any more
_SIGNS = ("cannot allocate memory", "failed to map segment", "can't start new thread")


def spare_memory() -> None:
    """No rule multiplies matrices: threads for it would reserve memory by the number of cores, and do nothing."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def check_limit() -> None:
    """Raises OutOfMemory when the limit of this process is lower than what loading it takes."""
    limit_bytes = _limit_bytes()
    if limit_bytes is not None and limit_bytes < LEAST_BYTES:
        raise OutOfMemory(
            f"diag needs at least {LEAST_BYTES >> 20} MB of address space, and the limit of this process is "
            f"{limit_bytes >> 20} MB. Raise it: ulimit -v unlimited"
        )


def as_out_of_memory(error: BaseException) -> OutOfMemory | None:
    """What to say when memory was the reason for `error`, or for one that it came from; else None."""
    if isinstance(error, OutOfMemory):
        return error
    if not any(map(_is_about_memory, _chain(error))):
        return None
    limit_bytes = _limit_bytes()
    limit = "" if limit_bytes is None else f" within the limit of this process, {limit_bytes >> 20} MB"
    return OutOfMemory(
        f"Not enough memory{limit}. Give it more (ulimit -v, or the limit of the container or job), pass fewer inputs "
        "at once, or capture a shorter part of the run."
    )


def _limit_bytes() -> int | None:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        yield error
        seen.append(error)
        error = error.__cause__ or error.__context__


def _is_about_memory(error: BaseException) -> bool:
    match error:
        case MemoryError():
            return True
        case OSError():
            return error.errno == errno.ENOMEM
        case ImportError() | RuntimeError():
            return any(sign in str(error).lower() for sign in _SIGNS)
    return getattr(error, "sqlite_errorcode", None) in _SQLITE_CODES
