"""Files of /proc, read whole and taken apart (proc(5)). Names in them were chosen by others: any bytes may come."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

NS_PER_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

_CHUNK_BYTES = 8192
_MAX_BYTES = 16 << 20
"""More than the environment or the memory map of any process that works."""
_ESCAPED = re.compile(rb"\\([n\\])")


@dataclass(frozen=True)
class Stat:
    """`/proc/PID/stat`. `environment`: addresses of its begin and end; (0, 0) where this user may not know them."""

    pid: int
    name: str
    state: str
    parent_pid: int
    minor_faults: int
    major_faults: int
    cpu_ns: int
    n_threads: int
    started_ns: int
    resident_bytes: int
    environment: tuple[int, int]


def content(path: str) -> bytes:
    """Raises OSError: PermissionError, or another where the process is gone or the kernel has no such file."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        whole = os.read(file, _CHUNK_BYTES)
        # A short answer is not always the end of a file of /proc.
        while whole and len(whole) < _MAX_BYTES and (more := os.read(file, _CHUNK_BYTES)):
            whole += more
    finally:
        os.close(file)
    return whole


def stat(pid: int) -> Stat:
    """Raises OSError like `content`."""
    return parse_stat(content(f"/proc/{pid}/stat"))


def parse_stat(line: bytes) -> Stat:
    r"""Of a process or a thread. The name stands between the first and the last parenthesis, whatever is in it.

    >>> parse_stat(b"7 (a) R 1 (\n) S 1 7 7 0 -1 0 5 0 6 0 3 4 0 0 20 0 1 0 100 0 25" + b" 0" * 28).name
    'a) R 1 (\n'
    """
    before, _, rest = line.partition(b"(")
    name, _, after = rest.rpartition(b")")
    fields = after.split()
    # Shorter where the kernel is older than 3.5 or not Linux's own (gVisor).
    environment = (int(fields[47]), int(fields[48])) if len(fields) > 48 else (0, 0)
    return Stat(
        pid=int(before),
        name=text(name),
        state=fields[0].decode(),
        parent_pid=int(fields[1]),
        minor_faults=int(fields[7]),
        major_faults=int(fields[9]),
        cpu_ns=(int(fields[11]) + int(fields[12])) * NS_PER_TICK,
        n_threads=int(fields[17]),
        started_ns=int(fields[19]) * NS_PER_TICK,
        resident_bytes=int(fields[21]) * PAGE_BYTES,
        environment=environment,
    )


def fields(raw: bytes) -> dict[bytes, bytes]:
    """Lines `name: value`, as `status`, `io` and `meminfo` have them."""
    return {name: value.strip() for name, colon, value in (line.partition(b":") for line in raw.split(b"\n")) if colon}


def status_name(escaped: bytes) -> str:
    r"""The name in `status`, where line breaks and backslashes are escaped.

    >>> status_name(rb"a\nb\\n")
    'a\nb\\n'
    """
    return text(_ESCAPED.sub(lambda match: b"\n" if match[1] == b"n" else b"\\", escaped))


def text(raw: bytes) -> str:
    r"""What is not UTF-8 as its escape, so that the text can be stored.

    >>> text(b"caf\xe9")
    'caf\\xe9'
    """
    return raw.decode("utf-8", "backslashreplace")
