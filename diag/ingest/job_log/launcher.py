"""How processes of a job ended, as torchrun and Python itself say it: torchelastic's failure report, and tracebacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from diag.ingest.job_log.event import Event, Place, form, recognised, shown
from diag.ingest.job_log.lines import Line, Marks
from diag.ingest.job_log.prefix import Labelled, date_of, labelled, moment_of

MARKS = Marks(
    gates=(b"orch.distributed", b"orch/distributed", b"Root Cause (first", b"local_rank", b"endezvous", b"FAILED",
           b"global_ranks=["),
    marks=(
        b"Root Cause (first observed failure)", b"(local_rank: ", b"exitcode", b"received by PID ", b"Failures:",
        b"  host      : ", b"  time      : ", b" signal SIG", b"Rendezvous", b"death signal", b"  global_ranks=[",
    ),
)  # fmt: skip

TRACEBACK = Marks(
    gates=(b"Traceback (most recent call last)", b"Error", b"Exception", b"Interrupt"),
    marks=(b"Traceback (most recent call last)", b"Error", b"Exception", b"KeyboardInterrupt", b"SystemExit"),
)

_FORMS = (
    form(
        "launcher.failed",
        "failed (exitcode",
        r"failed \(exitcode: (?P<exitcode>-?\d{1,6})\) local_rank: (?P<local_rank>\d{1,5}) \(pid: (?P<pid>\d{1,10})\)",
    ),
    form(
        "launcher.closing",
        " signal ",
        r"(?:Closing|Sending) process (?P<pid>\d{1,10}) (?:via|closing) signal (?P<signal>\w{1,20})",
    ),
    form("launcher.signalled", "death signal", r"Received (?P<signal>\S{1,20}) death signal"),
    form(
        "launcher.rendezvous",
        "Rendezvous",
        r"(?P<error>Rendezvous(?:Timeout|Connection|Closed|State|GracefulExit)\w{0,10})(?:: (?P<said>[^\n]{1,200}))?",
    ),
)  # fmt: skip

_TIME = re.compile(r"\s+time +: (?P<time>\S{1,40})")
_HOST = re.compile(r"\s+host +: (?P<host>\S{1,255})")
_RANK = re.compile(r"\s+rank +: (?P<rank>\d{1,7}) \(local_rank: (?P<local>\d{1,5})\)")
_EXIT = re.compile(r"\s+exitcode +: (?P<code>-?\d{1,6}) \(pid: (?P<pid>\d{1,10})\)")
_WORKERS = re.compile(r"\s+global_ranks=\[(?P<ranks>[\d, ]{1,4000})\]")
"""In what torchrun prints whenever it starts its workers ('Rendezvous complete for workers. Result:')."""
_SIGNAL = re.compile(r"Signal (?P<number>\d{1,3}) \((?P<name>\w{1,20})\) received by PID (?P<pid>\d{1,10})")


@dataclass
class Launcher:
    """torchrun ends with a block for each process that failed, 'Root Cause' for the one it saw first. At each start
    of its workers it prints which ranks they are.
    """

    _is_first: bool = False
    _of: Place = field(default_factory=Place)
    _time_ns: int | None = None

    def read(self, line: Line) -> Iterator[Event]:
        text = labelled(line.text).text
        if "Root Cause (first observed failure)" in text or "Failures:" in text:
            self._is_first, self._of, self._time_ns = "Root Cause" in text, Place(), None
        elif match := _TIME.match(text):
            self._of, self._time_ns = Place(), date_of(match["time"])
        elif match := _HOST.match(text):
            self._of = replace(self._of, host=match["host"])
        elif match := _RANK.match(text):
            self._of = replace(self._of, rank=int(match["rank"]), local_rank=int(match["local"]))
        elif match := _EXIT.match(text):
            place = replace(self._of, pid=int(match["pid"]))
            fields = {"exitcode": int(match["code"]), "is_first_observed": self._is_first}
            yield Event(line.number, "launcher.exit", fields, shown(line.text), place, self._time_ns)
        elif match := _WORKERS.match(text):
            ranks = [int(rank) for rank in match["ranks"].replace(",", " ").split() if len(rank) < 8]
            yield Event(line.number, "launcher.workers", {"ranks": ranks}, shown(line.text))
        elif match := _SIGNAL.search(text):
            place = replace(self._of, pid=int(match["pid"]))
            said = {"signal": match["name"], "number": int(match["number"]), "is_first_observed": self._is_first}
            yield Event(line.number, "launcher.signal", said, shown(line.text), place, self._time_ns)
        else:
            yield from _said(line, text)


def _said(line: Line, text: str) -> Iterator[Event]:
    for kind, fields in recognised(text, _FORMS):
        moment = moment_of(text)
        place = Place(pid=fields.get("pid"), local_rank=fields.get("local_rank"))
        rest = {name: each for name, each in fields.items() if name not in ("pid", "local_rank")}
        yield Event(
            line.number,
            kind,
            rest if moment is None else {**rest, "moment": moment},
            shown(line.text),
            place,
            date_of(text),
        )


# ---- Python --------------------------------------------------------------------------------------------------------

_EXCEPTION = re.compile(r"(?P<type>(?:[A-Za-z_]\w{0,80}\.){0,10}[A-Za-z_]\w{0,80})(?:: (?P<said>[^\n]{0,300}))?\s*$")
_RANK_IN_TEXT = re.compile(r"\[rank(?P<rank>\d{1,7})\]")
_BY_LAUNCHER = ("ChildFailedError", "SignalException", "ProcessRaisedException", "ProcessExitedException")
"""Raised where the failure of another process is reported."""

MOST_OPEN = 10_000


@dataclass
class Tracebacks:
    """The exception at the end of each traceback. Those of several ranks may be mixed: each goes by its label."""

    _open: set[tuple[int | None, int | None]] = field(default_factory=set)

    def read(self, line: Line) -> Iterator[Event]:
        found = labelled(line.text)
        who = (found.place.rank, found.place.local_rank)
        if "Traceback (most recent call last)" in found.text:
            if len(self._open) < MOST_OPEN:
                self._open.add(who)
        elif who in self._open and (match := _EXCEPTION.match(_unpadded(found))):
            self._open.discard(who)
            name = match["type"].rpartition(".")[2]
            if name in _BY_LAUNCHER:
                return
            fields = {"type": match["type"], "said": shown(match["said"] or "")}
            yield Event(line.number, "python.exception", fields, shown(line.text), found.place)


def _unpadded(found: Labelled) -> str:
    """Behind a label stands one space, which is no indentation."""
    return found.text.removeprefix(" ")
