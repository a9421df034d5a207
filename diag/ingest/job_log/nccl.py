"""What NCCL prints with NCCL_DEBUG=INFO or WARN (2.4 to 2.31), line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from diag.ingest.job_log.event import Event, Fields, Place, fields_of, form, recognised, shown
from diag.ingest.job_log.lines import Line, Marks
from diag.ingest.job_log.nccl_warning import class_of
from diag.ingest.job_log.prefix import labelled, nccl_head
from diag.ingest.job_log.secrets import HIDDEN, may_show

MARKS = Marks(
    gates=(b"NCCL ",),
    marks=(
        b"INFO Channel ", b" via ", b" set by environment", b"NCCL WARN ", b"NCCL ABORT ", b"NCCL version ",
        b" COMPLETE", b"Init START", b" nNodes ", b" coll channels, ", b"Connected all rings", b"Init timings",
        b"Using network ", b"NET/", b" nChannels ", b"=== System :", b"/LOC)", b"Loading topology file",
        b" disabled between ", b"GPU Direct RDMA", b"libibverbs", b"TUNER/Plugin", b"Bytes -> Algo ", b": opCount ",
        b"cudaDriverVersion ", b" as DEAD",
    ),
)  # fmt: skip

_DEVICE = r"\[[0-9a-f]{1,8}\]"
_COMM = r"comm (?P<comm>0x[0-9a-f]{1,16}) rank (?P<rank>\d{1,7}) n[rR]anks (?P<nranks>\d{1,7})"
_INIT = (
    _COMM + r" cudaDev (?P<cuda_dev>\d{1,4})(?: nvmlDev (?P<nvml_dev>\d{1,4}))? busId (?P<bus_id>[0-9a-f]{1,12})"
    r"(?: commId (?P<comm_id>0x[0-9a-f]{1,16}))?"
)

_FORMS = (
    form(
        "nccl.transport",
        " via ",
        r"(?:Channel|Ring|Coll) (?P<channel>\d{1,4})(?:/\d{1,4})? : (?P<from>\d{1,7})(?:" + _DEVICE + r")? -> "
        r"(?P<to>\d{1,7})(?:" + _DEVICE + r")?(?: \[(?P<direction>send|receive)\])? via (?P<via>[^\n]{1,100})",
    ),
    form(
        "nccl.transport",
        " via ",
        r"(?:Channel|Coll|CollNet) (?P<channel>\d{1,4})(?:/\d{1,4})? : (?P<from>\d{1,7}) "
        r"?\[(?P<direction>send|receive)\] via (?P<via>[^\n]{1,100})",
    ),
    form("nccl.ring", "Channel ", r"Channel (?P<channel>\d{1,4})/(?P<count>\d{1,4}) :(?P<order>(?: +\d{1,7})+) *$"),
    form(
        "nccl.env", " set by environment", r"(?P<name>\w{1,80}) set by environment to (?P<value>[^\n]{1,400}?)\.?\s*$"
    ),
    form("nccl.init", "Init START", _INIT),
    form("nccl.init_done", "Init COMPLETE", _INIT),
    form("nccl.abort", "Abort COMPLETE", _INIT),
    form("nccl.destroy", "Destroy COMPLETE", _INIT),
    form(
        "nccl.place", " nNodes ", _COMM + r" nNodes (?P<hosts>\d{1,6}) localRanks (?P<local_ranks>\d{1,5})"
        r" localRank (?P<local_rank>\d{1,5})",
    ),
    form(
        "nccl.channels",
        " coll channels, ",
        r"(?P<coll>\d{1,4}) coll channels,(?: (?P<collnet>\d{1,4}) collnet channels,)?"
        r"(?: (?P<nvls>\d{1,4}) nvls channels,)? (?P<p2p>\d{1,4}) p2p channels",
    ),
    form(
        "nccl.connected", "Connected all rings", r"Connected all rings(?:, use ring PXN (?P<pxn>\d) GDR (?P<gdr>\d))?"
    ),
    form(
        "nccl.init_time",
        "Init timings",
        r"Init timings[^:]{0,60}: rank (?P<rank>\d{1,7}) nranks (?P<nranks>\d{1,7}) total (?P<total_s>[\d.]{1,20})",
    ),
    form("nccl.net", "Using network ", r"Using network (?P<network>[\w./-]{1,40})"),
    form("nccl.net", "NET/IB", r"NET/IB ?: No device found", ib="none"),
    form("nccl.net", "libibverbs", r"Failed to open libibverbs", ib="no libibverbs"),
    form("nccl.net", "NET/IB", r"NET/IB ?: Using (?P<ib>\[0\][^\n;]{1,300})"),
    form("nccl.net", "NET/Socket", r"NET/Socket ?: Using (?P<sockets>\[0\][^\n]{1,300})"),
    form("nccl.net", "NET/OFI", r"NET/OFI Selected [Pp]rovider is (?P<provider>[\w;./-]{1,40})"),
    form(
        "nccl.nic",
        "speed=",
        r"NET/IB ?: \[\d{1,3}\] (?P<nic>[\w.-]{1,40}):\w{1,40}:(?P<port>\d{1,3})/(?P<link>\w{1,20}) .{0,60}"
        r"speed=(?P<mbit_per_s>\d{1,9})",
    ),
    form(
        "nccl.gdr",
        "GPU Direct RDMA",
        r"GPU Direct RDMA (?P<state>Enabled|Disabled) for (?:GPU (?P<gpu>[\w/-]{1,20}) / )?HCA (?P<hca>\d{1,3})"
        r"(?: '(?P<nic>[^']{1,60})')?(?: \(distance (?P<distance>\d{1,4}) (?:>|<=) (?P<allowed>\d{1,4})\))?",
    ),
    form(
        "nccl.graph",
        " nChannels ",
        r"Pattern (?P<pattern>\d{1,2}), crossNic \d, nChannels (?P<channels>\d{1,4}), (?:bw|speed) "
        r"(?P<intra_gb_per_s>[\d.]{1,20})/(?P<inter_gb_per_s>[\d.]{1,20}), type (?P<intra>\w{1,8})/(?P<inter>\w{1,8})",
    ),
    form(
        "nccl.system",
        "=== System :",
        r"maxBw (?P<max_gb_per_s>[\d.]{1,20})(?: totalBw (?P<total_gb_per_s>[\d.]{1,20}))?",
    ),
    form("nccl.topology_file", "Loading topology file", r"Loading topology file (?P<file>[^\n]{1,300})"),
    form(
        "nccl.disabled",
        " disabled between ",
        r"P2P is disabled between (?P<connection>NVLINK )?connected GPUs (?P<a>\d{1,4}) and (?P<b>\d{1,4})",
        what="P2P",
    ),
    form("nccl.tuner", "TUNER/Plugin", r"TUNER/Plugin: (?P<plugin>[^\n]{1,200})"),
    form("nccl.driver", "cudaDriverVersion ", r"cudaDriverVersion (?P<driver>\d{1,6})"),
    form("nccl.ras.dead", " as DEAD", r"RAS declaring peer (?P<address>\S{1,60}) as DEAD"),
)  # fmt: skip

_VERSION = re.compile(
    r"NCCL version (?P<version>\d{1,3}\.\d{1,3}\.\d{1,3})\S{0,20}?(?:\+cuda(?P<cuda>\d{1,3}\.\d{1,3}))?\s*$"
)
_NCCL = re.compile(r" ?NCCL (INFO|WARN|ABORT|ERROR|TRACE) ?")
_PATHS = re.compile(r"(?P<from>(?:GPU|NET|NIC)/[0-9a-f-]{1,20}) ?:(?=(?:GPU|NET|NIC|CPU|NVS)/)")
_PATH = re.compile(r"(?P<to>\w{2,4}/[0-9a-f-]{1,20}) \((?P<hops>\d{1,3})/(?P<gb_per_s>[\d.]{1,20})/(?P<type>\w{1,4})\)")
_CALL = re.compile(
    r":(?P<pid>\d{1,10}):\d{1,10} \[-?\d{1,4}\] NCCL INFO (?P<op>\w{1,40}): opCount (?P<count>[0-9a-f]{1,16}) "
    r"[^\n]{0,400}?comm (?P<comm>0x[0-9a-f]{1,16})(?: \[nranks=(?P<nranks>\d{1,7})\])?"
)
_CHOICE = re.compile(
    r"(?P<op>\w{1,40}): (?P<bytes>\d{1,16}) Bytes -> Algo (?P<algorithm>\w{1,20}) proto (?P<protocol>\w{1,20})"
    r"(?: channel\{Lo\.\.Hi\}=\{(?P<low>\d{1,4})\.\.(?P<high>\d{1,4})\})?"
)


def is_of_nccl(text: str) -> bool:
    return "NCCL INFO" in text or "NCCL WARN" in text


MOST_PATHS = 64
MOST_TALLIES = 20_000


@dataclass
class Tally:
    """Lines that say the same but for a number, of which there may be millions."""

    first: Event
    times: int = 0
    line: int = 0
    least: int = 1 << 62
    most: int = 0
    last: int = 0

    def add(self, line: int, number: int) -> None:
        self.times += 1
        self.line, self.last = line, number
        self.least, self.most = min(self.least, number), max(self.most, number)


@dataclass
class Nccl:
    """Of calls and of the algorithms chosen for them the counts are kept and the last number."""

    _calls: dict[tuple[str, ...], Tally] = field(default_factory=dict)
    _choices: dict[tuple[str, ...], Tally] = field(default_factory=dict)
    _hosts: dict[int | None, str] = field(default_factory=dict)

    def read(self, line: Line) -> Iterator[Event]:
        if ": opCount " in line.text and (match := _CALL.search(line.text)):
            if tally := self._tally(self._calls, match.group("pid", "comm", "op"), line, "nccl.calls", match):
                tally.add(line.number, int(match["count"], 16))
            return
        if "Bytes -> Algo " in line.text and (match := _CHOICE.search(line.text)):
            key = match.group("op", "algorithm", "protocol", "low", "high")
            if tally := self._tally(self._choices, key, line, "nccl.choice", match):
                tally.add(line.number, int(match["bytes"]))
            return
        mark = _NCCL.search(line.text)
        if mark is None:
            if match := _VERSION.search(line.text):  # of the first rank, which prints it without saying who it is
                yield _event(line, labelled(line.text).place, None, "nccl.version", match.groupdict())
            return
        if (head := self._head(line, mark)) is not None:
            yield from _said(line, *head, mark[1], line.text[mark.end() :])

    def tallies(self) -> Iterator[Event]:
        """One event for each operation of a communicator of a process, and for each algorithm chosen."""
        for call in self._calls.values():
            yield replace(
                call.first,
                line=call.line,
                fields={**call.first.fields, "calls": call.times, "last_op_count": call.last},
            )
        for choice in self._choices.values():
            said = {"calls": choice.times, "least_bytes": choice.least, "most_bytes": choice.most}
            yield replace(choice.first, fields={**choice.first.fields, **said})

    def _tally(
        self, tallies: dict[tuple[str, ...], Tally], key: tuple[str, ...], line: Line, kind: str, match: re.Match[str]
    ) -> Tally | None:
        found = tallies.get(key)
        if found is None and len(tallies) < MOST_TALLIES and (mark := _NCCL.search(line.text)):
            head = self._head(line, mark)
            if head is not None:
                said = {name: each for name, each in fields_of(match).items() if name not in _COUNTED}
                found = tallies[key] = Tally(_event(line, *head, kind, said))
        return found

    def _head(self, line: Line, mark: re.Match[str]) -> tuple[Place, int | None] | None:
        """Who wrote a line and when. Another program may have written into it before NCCL did: then the host ends with
        what its process is called elsewhere.
        """
        head = nccl_head(line.text[: mark.start()], labelled(line.text).place)
        if head is None:
            return None
        place, time_ns = head
        known = self._hosts.setdefault(place.pid, str(place.host))
        whole = known != place.host and str(place.host).endswith(known)
        return replace(place, host=known) if whole else place, time_ns


_COUNTED = frozenset({"pid", "count", "bytes"})


def _said(line: Line, place: Place, time_ns: int | None, level: str, said: str) -> Iterator[Event]:
    if level in ("WARN", "ABORT", "ERROR"):
        yield _event(line, place, time_ns, "nccl.warning", {"class": class_of(said), "said": shown(said)})
    elif "/LOC)" in said:
        yield from _paths(line, place, time_ns, said)
    elif "NCCL version " in said and (match := _VERSION.search(said)):
        yield _event(line, place, time_ns, "nccl.version", match.groupdict())
    else:
        for kind, fields in recognised(said, _FORMS):
            yield _event(line, place, time_ns, kind, fields)


def _event(line: Line, place: Place, time_ns: int | None, kind: str, fields: Fields) -> Event:
    if kind == "nccl.env" and not may_show(fields["name"]):
        return Event(
            line.number, kind, {**fields, "value": HIDDEN}, f"{fields['name']} set by environment", place, time_ns
        )
    known = {name: each for name, each in fields.items() if each is not None}
    return Event(line.number, kind, known, shown(line.text), place, time_ns)


def _paths(line: Line, place: Place, time_ns: int | None, said: str) -> Iterator[Event]:
    """A row of NCCL's table of paths: how far each device is from one, with the bandwidth of the way in GB/s."""
    start = _PATHS.match(said.lstrip())
    if start is None:
        return
    for at, match in enumerate(_PATH.finditer(said)):
        if at >= MOST_PATHS:
            return
        if match["type"] != "LOC":
            fields = {
                "from": start["from"],
                "to": match["to"],
                "hops": int(match["hops"]),
                "gb_per_s": float(match["gb_per_s"]),
                "type": match["type"],
            }
            yield _event(line, place, time_ns, "nccl.path", fields)
