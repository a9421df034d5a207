"""Whether a text is the log of a job: a line in it says something, and it is no page that quotes such a line."""

from __future__ import annotations

import io
import re
from pathlib import Path

from diag.ingest.job_log.lines import BLOCK_BYTES
from diag.ingest.job_log.reader import read_lines
from diag.ingest.serving.engine_log import says_something

_SURE = (
    b" NCCL INFO ", b" NCCL WARN ", b"ProcessGroupNCCL.cpp:", b"slurmstepd: error: ", b"srun: error: ",
    b"Root Cause (first observed failure)", b"torch/distributed/elastic/", b"NVRM: Xid (PCI:",
    b"]: Traceback (most recent call last)", b"Watchdog caught collective operation timeout",
    b" LLM engine (v", b"server_args=ServerArgs(", b"Avg prompt throughput: ", b"Decode batch, #running-req: ",
    b"Decode batch. #running-req: ", b"Prefill batch. #new-seq: ", b"Prefill batch, #new-seq: ",
    b" out of memory. Tried to allocate ", b"Load weight begin. avail mem=", b"odel loading took ",
    b" KV cache size: ", b" is preempted by ", b"#retracted_reqs: ", b"Starting to load model ",
    b"Communicator ranks have different", b"op.preamble.length <= op.nbytes. ", b"Group     Comms     Nodes     Ranks",
)  # fmt: skip
"""Phrases that only these programs print; that a line has the form of theirs is looked at then."""

SEARCHED_BYTES = 64 << 20
"""A program may print much before anything goes wrong."""

_OTHERS = (b".. code", b"#include", b"\ndef ", b"\nimport ")
"""Signs of a page about logs, and of source code."""

_BINARY = re.compile(rb"[\x01-\x06\x0e-\x1a]")
"""Zeros alone are none: a log that was cut while it was written, or lay on a disk that broke, has holes of them."""

_QUOTED = re.compile(
    rb"^(?: {4}|\t| {0,3}(?://|/?\*|#|>|\||[\"'`{<])).*(?: NCCL (?:INFO|WARN)|"
    rb"out of memory|throughput|KV cache|LLM engine|#(?:running|retracted)|#new-seq| to load model| weight).*$",
    re.MULTILINE,
)
"""Source code, tables, literal blocks and structured records that quote a line of NCCL or of a server. RAS indents its
own lines."""

_FENCE = b"```"
"""Around what a page quotes."""

_HOST = re.compile(r"[\w.-]+")


def looks_like_job_log(path: Path, head: bytes) -> bool:
    """Whether a line in the beginning of a text says something. A page or program that quotes one is no log."""
    if _BINARY.search(head) or any(sign in b"\n" + head for sign in _OTHERS):
        return False
    with path.open("rb") as stream:
        for _ in range(SEARCHED_BYTES // BLOCK_BYTES):
            block = stream.read(BLOCK_BYTES)
            if not block:
                return False
            if any(sign in block for sign in _SURE):
                unquoted = _QUOTED.sub(b"", b"".join(block.split(_FENCE)[::2]))
                if any(sign in unquoted for sign in _SURE) and _says_something(unquoted):
                    return True
    return False


def _says_something(text: bytes) -> bool:
    """In a table or a program another character stands before the host's name, which is then no name."""
    events = read_lines(io.BytesIO(text)).events
    if any(event.place.host is None or _HOST.fullmatch(event.place.host) for event in events):
        return True
    return says_something(io.BytesIO(text))
