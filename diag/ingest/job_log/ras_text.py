"""What `ncclras` prints as text (NCCL 2.24 and newer): the state of the communicators of a running job."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from diag.ingest.job_log.cluster import tasks_of
from diag.ingest.job_log.event import Event, Place, form, recognised, shown
from diag.ingest.job_log.lines import Line, Marks

MARKS = Marks(
    gates=(
        b"Communicators...", b"managed by process ", b"Communicator ranks have", b"Missing communicator data",
        b"considered dead", b"PEER_DEAD", b"Group     Comms",
    ),
    marks=(
        b"RUNNING", b"INIT", b"FINALIZE", b"ABORT", b"NOCOMM", b"UNKNOWN", b"MISMATCH", b"INCOMPLETE", b"ERROR",
        b"DEAD", b"operation counts", b" launched ", b"Rank ", b"issing rank", b" managing GPU", b" reported ",
        b" ranks have status",
    ),
)  # fmt: skip

_NOTHING = 0
"""Operations of ranks that have launched none."""

_GROUP_ROW = re.compile(
    r"\s{2,8}(?P<group>\d{1,5})\s{1,12}(?P<comms>\d{1,9})\s{1,12}(?P<hosts>\d{1,7})"
    r"\s{1,12}(?P<ranks_per_host>[\d-]{1,11})\s{1,12}(?P<ranks_per_comm>\d{1,7})\s{1,12}(?P<ranks>\d{1,7})"
    r"\s{1,12}(?P<status>[A-Z]{2,10})\s{1,12}(?P<errors>[A-Z,]{2,40})\s*$"
)
_COMMUNICATOR = re.compile(r"#\d{1,6}-\d{1,6} \((?P<comm_id>[0-9a-f]{1,16})\) (?P<what>MISMATCH|INCOMPLETE|ERROR)")
_MEMBER = re.compile(
    r"\s{1,4}Rank (?P<rank>\d{1,7}) (?:(?P<said>[^\n]{1,80}?) )?-- (?:GPU (?P<device>\d{1,4})[^\n]{0,20}managed by "
    r"process (?P<pid>\d{1,10}) on node (?P<host>\S{1,64})|\[process)"
)
_MISSING = re.compile(r"\s{1,4}The missing ranks?: (?P<ranks>[\d,-]{1,400})")
_PROCESS = re.compile(r"Process (?P<pid>\d{1,10}) on node (?P<host>\S{1,64}) managing GPUs? (?P<devices>[\d,]{1,200})")
_DIFFERENT = re.compile(r"different (?:(?P<op>\w{1,20}) |collective )operation counts")
_WHO = r"(?:(?P<n_ranks>\d{1,7}) ranks have|has) "
_FORMS = (
    form("count", " launched up to operation ", _WHO + r"launched up to operation (?P<operation>\d{1,18})"),
    form("count", " not launched any ", _WHO + r"not launched any operations", operation=_NOTHING),
    form("status", " status ", _WHO + r"status (?P<status>[A-Z]{2,10})"),
    form("error", " reported ", r"(?:(?P<n_ranks>\d{1,7}) ranks )?reported (?P<error>[\w ]{1,60})"),
)  # fmt: skip


@dataclass
class RasText:
    """Members are listed below what is said of them, and that below their communicator."""

    _communicator: str | None = None
    _section: str = ""  # 'MISMATCH', 'INCOMPLETE', 'ERROR' of a communicator, or 'DEAD' and 'INCOMPLETE' of processes
    _op: str | None = None
    _open: Event | None = None
    _ranks: list[int] = field(default_factory=list)

    def read(self, line: Line) -> Iterator[Event]:
        text = line.text
        if match := _COMMUNICATOR.match(text.lstrip()):
            yield from self.tallies()
            self._communicator, self._section, self._op = f"0x{match['comm_id']}", match["what"], None
        elif text.strip() in ("DEAD", "INCOMPLETE"):
            yield from self.tallies()
            self._communicator, self._section = None, text.strip()
        elif match := _GROUP_ROW.match(text):
            fields = {name: int(each) if each.isdecimal() else each for name, each in match.groupdict().items()}
            yield Event(line.number, "nccl.ras.group", fields, shown(text))
        elif match := _DIFFERENT.search(text):
            yield from self.tallies()
            self._op = match["op"]
        elif match := _PROCESS.search(text):
            place = Place(host=match["host"], pid=int(match["pid"]))
            is_dead = self._section == "DEAD" or "PEER_DEAD" in text
            fields = {"devices": tasks_of(match["devices"]), "is_dead": is_dead}
            yield Event(line.number, "nccl.ras.process", fields, shown(text), place)
        elif match := _MISSING.match(text):
            for rank in tasks_of(match["ranks"]):
                yield self._event(line, "nccl.ras.missing", {"member": rank}, Place())
        elif match := _MEMBER.match(text):
            yield from self._member(line, match)
        else:
            yield from self._said(line, text)

    def tallies(self) -> Iterator[Event]:
        """What was said last, with the ranks that were listed below it."""
        if self._open is not None:
            fields = {**self._open.fields, "members": self._ranks}
            before = self._open
            yield Event(before.line, before.kind, fields, before.text, communicator=before.communicator)
        self._open, self._ranks = None, []

    def _said(self, line: Line, text: str) -> Iterator[Event]:
        for kind, fields in recognised(text, _FORMS):
            yield from self.tallies()
            more = {"op": self._op} if kind == "count" and self._op else {}
            self._open = self._event(line, f"nccl.ras.{kind}", {**fields, **more}, Place())
            return

    def _member(self, line: Line, match: re.Match[str]) -> Iterator[Event]:
        rank = int(match["rank"])
        if match["said"]:  # of one rank alone all is said in its own line
            yield from self._said(line, f" {match['said']} ")
            self._ranks = [rank]
        elif self._section == "INCOMPLETE":
            known = match["pid"] is not None
            place = Place(host=match["host"], pid=int(match["pid"]), device=int(match["device"])) if known else Place()
            yield self._event(line, "nccl.ras.missing", {"member": rank}, place)
        else:
            self._ranks.append(rank)

    def _event(self, line: Line, kind: str, fields: dict[str, object], place: Place) -> Event:
        return Event(line.number, kind, fields, shown(line.text), place, communicator=self._communicator)
