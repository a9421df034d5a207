"""What the watchdog of PyTorch's ProcessGroupNCCL says (1.9 to 2.13)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.ingest.job_log.event import Event, fields_of, form, recognised, shown
from diag.ingest.job_log.lines import Line, Marks
from diag.ingest.job_log.prefix import date_of, labelled, moment_of

MARKS = Marks(
    gates=(b"ProcessGroup", b"WorkNCCL(", b"Flight Recorder", b"atchdog"),
    marks=(
        b"WorkNCCL(", b"atchdog at work", b"Last enqueued ", b"heartbeat", b"watchdog got stuck", b"debug info to ",
        b"taking the entire process down", b"acquire GIL", b"watchdog thread terminated",
    ),
)  # fmt: skip

_GROUP = re.compile(
    r"\[PG (?:ID (?P<group_id>\d{1,6}) PG GUID )?(?P<group>[\w:.-]{1,40})(?:\((?P<description>[^)]{1,80})\))? "
    r"Rank (?P<group_rank>\d{1,7})\]"
)
_WORK = (
    r"WorkNCCL\(SeqNum=(?P<sequence>\d{1,18}), OpType=(?P<op>\w{1,40})"
    r"(?:, NumelIn=(?P<numel_in>\d{1,18}), NumelOut=(?P<numel_out>\d{1,18}))?"
    r"(?:, TensorShape=\[[^\]]{0,200}\])?, Timeout\(ms\)=(?P<timeout_ms>\d{1,18})\)"
)
_LAST = (
    r"last enqueued (?:NCCL )?work: (?P<enqueued>-?\d{1,18})"
    r"(?:, last started (?:NCCL )?work: (?P<started>-?\d{1,18})(?: \(\w{1,40}\))?)?"
    r", last completed (?:NCCL )?work: (?P<completed>-?\d{1,18})"
)

_IN_GROUP = r"(?:\[Rank (?P<group_rank>\d{1,7})\])?"

_FORMS = (
    form(
        "watchdog.abort",
        "watchdog thread terminated",
        _IN_GROUP + r".{0,40}watchdog thread terminated with exception: (?P<said>[^\n]{1,200})",
    ),
    form(
        "watchdog.timeout",
        "Watchdog caught collective operation timeout",
        r"(?:\[Rank (?P<group_rank>\d{1,7})\] )?Watchdog caught collective operation timeout: " + _WORK
        + r"(?: ran for (?P<ran_ms>\d{1,18}) milliseconds)?",
    ),
    form(
        "watchdog.last",
        "atchdog at work",
        r"detected by watchdog at work(?: sequence id)?: (?P<sequence>\d{1,18}),?(?: PG status:)? " + _LAST,
    ),
    form(
        "watchdog.last",
        "dump signal due to a collective timeout",
        r"dump signal due to a collective timeout from +(?P<signal>this local rank|rank \d{1,7}|\w[\w ]{0,40}?)"
        r" and .{0,80}(?i:" + _LAST + r")",
    ),
    form("watchdog.abort", "taking the entire process down", _IN_GROUP + r".{0,120}taking the entire process down"),
    form("watchdog.gil", "acquire GIL", r"Could not acquire GIL"),
    form("watchdog.heartbeat", "watchdog got stuck", r"watchdog got stuck for (?P<stuck_s>\d{1,9}) seconds"),
    form("watchdog.heartbeat", "eartbeat monitor timed out", r"[Hh]eartbeat monitor timed out"),
    form(
        "watchdog.recorder",
        "debug info to ",
        r"(?P<state>Finished writing|Writing|[Dd]umping) [^\n]{0,30}debug info to (?P<file>[^\n]{1,300})",
    ),
)  # fmt: skip


def read(line: Line) -> Iterator[Event]:
    """A rank of the job is what the label before the line says; '[Rank 1]' in it counts in the group."""
    found = labelled(line.text)
    for kind, fields in recognised(found.text, _FORMS):
        group, moment = _GROUP.search(found.text), moment_of(found.text)
        more = {**(fields_of(group) if group else {}), **({} if moment is None else {"moment": moment})}
        yield Event(line.number, kind, {**fields, **more}, shown(line.text), found.place, date_of(found.text))
