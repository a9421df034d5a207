"""What stands before a message: labels of launchers, dates, and who wrote it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from diag.ingest.input_file import instant
from diag.ingest.job_log.event import Place

MOST_LABELS = 4
"""Labels before a message: srun's, torchrun's and PyTorch's own may follow each other."""

_LABELS = re.compile(
    r"\s{0,8}(?:"
    r"\[rank(?P<torch>\d{1,7})\]:?"
    r"|\[default(?P<tee>\d{1,5})\]:"
    r"|\[\d{1,5},(?P<mpi>\d{1,7})\]<std(?:out|err)>:"
    r"|(?P<srun>\d{1,7}): "
    r"|\([\w.-]{1,80}(?:\[rank=(?P<ray>\d{1,7})\])? pid=\d{1,10}(?:, ip=[\d.]{1,40})?\)"
    r")"
)
"""Of PyTorch from 2.2 on, `torchrun --tee`, `mpirun --tag-output`, `srun --label`, and Ray's actors."""

_NCCL_HEAD = re.compile(
    r"(?P<host>[^\s:\[\]]{1,255}):(?P<pid>\d{1,10}):(?P<tid>\d{1,10}) \[(?P<device>-?\d{1,4})\]"
    r"(?: (?P<file>[\w./()\[\]-]{1,200}:\d{1,6}))?$"
)

_DATE = re.compile(
    r"(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)[ T_](?P<time>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
)
_GLOG = re.compile(r"\[?[IWEF](?P<month>\d{1,2})(?P<day>\d\d) (?P<time>\d\d:\d\d:\d\d)(?:\.(?P<fraction>\d{1,9}))? ")
"""PyTorch's, whose month has one digit where one will do and whose year is not written."""

LONGEST_HEAD = 512


@dataclass(frozen=True, slots=True)
class Labelled:
    place: Place
    text: str  # the rest of the line


def labelled(line: str) -> Labelled:
    """A line without the labels of launchers, and what they say of its rank.

    >>> labelled("3: [rank3]:[E ProcessGroupNCCL.cpp:629] Watchdog").place.rank
    3
    """
    place, at = Place(), 0
    for _ in range(MOST_LABELS):
        match = _LABELS.match(line, at)
        if match is None:
            break
        at = match.end()
        rank = match["torch"] or match["mpi"] or match["srun"] or match["ray"]
        if rank is not None:
            place = replace(place, rank=int(rank))
        if match["tee"] is not None:
            place = replace(place, local_rank=int(match["tee"]))
    return Labelled(place, line[at:])


def nccl_head(head: str, place: Place) -> tuple[Place, int | None] | None:
    """Who wrote a line of NCCL and when, of what stands before ' NCCL INFO'; None if that is no head of NCCL.

    Another process may have written into the same line before it: only the end of the head counts.
    """
    head = head[-LONGEST_HEAD:]
    match = _NCCL_HEAD.search(head)
    if match is None:
        return None
    who = replace(place, host=match["host"], pid=int(match["pid"]), tid=int(match["tid"]), device=int(match["device"]))
    return who, date_of(head[: match.start()])


def date_of(text: str) -> int | None:
    """The first date with a year in the beginning of a text, in ns since 1970. No zone is written: it is read as UTC.

    >>> date_of("[2026-03-03 12:11:38.5] host")
    1772539898500000000
    """
    match = _DATE.search(text[:LONGEST_HEAD])
    if match is None:
        return None
    try:
        whole = datetime.fromisoformat(f"{match['year']}-{match['month']}-{match['day']}T{match['time']}")
    except ValueError:
        return None
    seconds = int(whole.replace(tzinfo=UTC).timestamp())
    return instant(seconds * 1_000_000_000 + int((match["fraction"] or "").ljust(9, "0")))


def moment_of(text: str) -> str | None:
    """When PyTorch wrote a line, without a year; moments of one log can be compared as text.

    >>> moment_of("[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog")
    '03-21T02:07:08.408271257'
    """
    match = _GLOG.match(text.lstrip())
    if match is None:
        return None
    fraction = (match["fraction"] or "").ljust(9, "0")
    return f"{int(match['month']):02d}-{match['day']}T{match['time']}.{fraction}"
