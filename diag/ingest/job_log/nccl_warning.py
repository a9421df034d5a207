"""What kind of trouble a warning of NCCL is about."""

from __future__ import annotations

import re
from collections.abc import Mapping

_CLASSES: Mapping[str, re.Pattern[str]] = {
    "duplicate GPU": re.compile(r"Duplicate GPU detected"),
    "version mismatch": re.compile(r"[Mm]ismatch\w{0,4} \S{0,20} ?version|version mismatch|Mismatched NCCL"),
    "P2P disabled": re.compile(r"P2P is disabled"),
    "InfiniBand completion error": re.compile(r"Got completion from peer|Got CQE with error|ibv_poll_cq"),
    "InfiniBand port or device event": re.compile(r"async(?: fatal)? event|port error|Got async"),
    "InfiniBand setup": re.compile(
        r"NET/IB.{0,200}(?:fail|error)|libibverbs|\bibv_\w{1,40} failed|ibv_reg_mr|ib_register_peer"
    ),
    "peer closed the connection": re.compile(
        r"[Cc]onnection closed by|closed by remote|Connection reset by peer|Broken pipe|remote process exited"
    ),
    "connection refused": re.compile(r"Connection refused|Connect to .{1,120} failed|[Nn]o route to host|unreachable"),
    "timeout": re.compile(r"[Tt]imed? ?out|TIMEOUT|RETRY_EXC"),
    "shared memory": re.compile(r"/dev/shm|shared memory|No space left on device|shm_open|posix_fallocate"),
    "CUDA error": re.compile(r"Cuda failure|[Cc]uda error|CUDA error|out of memory"),
    "system error": re.compile(r"Call to \w{1,60} (?:failed|returned)|Accept failed|failed : |Too many open files"),
    "topology": re.compile(r"topology|XML"),
    "invalid usage": re.compile(r"[Ii]nvalid (?:usage|argument)|must be|is not supported|Invalid "),
}
"""Searched in this order: the first that fits names it. Each is a phrase of NCCL's source (src/misc/socket.cc,
src/transport/net_ib*, src/init.cc), which has kept them over its versions.
"""

OTHER = "other"


def class_of(said: str) -> str:
    """
    >>> class_of("NET/IB : Got completion from peer 10.2.0.5<33092> with error 12, opcode 0, len 0, vendor err 129")
    'InfiniBand completion error'
    """
    said = said[:1000]
    return next((name for name, pattern in _CLASSES.items() if pattern.search(said)), OTHER)
