"""Launches from the pages that ncu prints for people.

A page names the process, then each launch with its sections, then their tables, each between lines of dashes that tell
where its columns are, and what NVIDIA's rules say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from diag.ingest.launch_records import OpenRange
from diag.ingest.ncu_output import messages
from diag.ingest.ncu_output.csv_pages import capability_of, size_of
from diag.ingest.ncu_output.labels import identifier_of
from diag.ingest.ncu_output.printed import Figure, Identity, Printed

_PROCESS = re.compile(r"\s*\[([0-9]{1,18})\] (.+)@(\S+)\s*")
_SECTION = re.compile(r"\s*Section: (.+)")
_DASHES = re.compile(r"[\s>|]*-{3,}( -{3,})+\s*")
_TABLE_HEAD = re.compile(r"\s*Metric Name\s+Metric Unit\s+(Metric Value|Minimum\s+Maximum\s+Average)\s*")
_MESSAGE = re.compile(r"\s{0,8}(INF|OPT|WRN|ERR|OK )\s{2,3}(?=\S)(.*)")
_RULE_DETAILS = re.compile(r"\s+> ")

MOST_LINES_OF_NAME = 10
MESSAGE_INDENT = 10


def launches(lines: Iterator[str]) -> Iterator[Printed]:
    page = _Page()
    for line in lines:
        if (done := page.take(line)) is not None:
            yield done
    if page.launch is not None:
        yield page.launch


class _Page:
    """What has been read so far of the current launch."""

    def __init__(self) -> None:
        self.launch: Printed | None = None
        self._process = Identity(name="")
        self._unread: list[str] = []
        self._table = _Table()
        self._section: str | None = None
        self._message: _Message | None = None
        self._nvtx = _Nvtx()

    def take(self, line: str) -> Printed | None:
        """The launch before, when this line begins another one."""
        if self.launch is not None and self._table.is_open and self._table.take(line, self._section, self.launch):
            return None
        if not line.strip():
            self._end()
        elif match := _PROCESS.fullmatch(line):
            self._end()
            self._process = Identity(name="", pid=int(match[1]), process_name=match[2], host=match[3])
        elif match := _SECTION.fullmatch(line):
            self._end()
            self._section = match[1].strip()
            self._table.expect()
        elif _DASHES.fullmatch(line):
            self._end_message()
            self._table.place(line)
        elif _TABLE_HEAD.fullmatch(line):
            self._table.name()
        elif (identity := self._launch_in(line)) is not None:
            done, self.launch = self.launch, Printed(identity)
            self._end()
            self._section = None
            return done
        elif self.launch is not None and self._nvtx.take(line, self.launch):
            pass
        elif not self._take_message(line):
            self._unread = [*self._unread, line][-MOST_LINES_OF_NAME:]
        return None

    def _launch_in(self, line: str) -> Identity | None:
        """Names may have line breaks: then the lines since the last empty one are one name."""
        found = identity_of(line, self._process)
        if found is None or not self._unread or found.name.count("(") >= found.name.count(")"):
            return found
        return identity_of("\n".join([*self._unread, line]), self._process) or found

    def _take_message(self, line: str) -> bool:
        if self.launch is None:
            return False
        if match := _MESSAGE.fullmatch(line):
            self._end_message()
            self._message = _Message(match[1], [match[2].strip()])
            return True
        if len(line) - len(line.lstrip()) < MESSAGE_INDENT:
            return False
        if self._message is None and self._section is not None and not self._table.is_expected:
            self._message = _Message("", [])
        if self._message is not None:
            self._message.lines.append(line.strip())
        return self._message is not None

    def _end(self) -> None:
        self._end_message()
        self._table.close()
        self._nvtx.close()
        self._unread = []

    def _end_message(self) -> None:
        if self._message is not None and self.launch is not None:
            section = self._section or ""
            speedup, text = messages.speedup_in(self._message.text)
            name = f"a rule of {section}" if section else None
            # The page says what a rule found, but not which rule it was.
            self.launch.rules.append(
                messages.result("", identifier_of(section), self._message.mark, text, speedup, name)
            )
        self._message = None


@dataclass
class _Message:
    mark: str
    lines: list[str]

    @property
    def text(self) -> str:
        details = next((at for at, line in enumerate(self.lines) if line.startswith("> ")), len(self.lines))
        return " ".join(self.lines[:details])


class _Table:
    """Where the columns of the current table are, between its dashes."""

    def __init__(self) -> None:
        self.is_open = self.is_expected = False
        self._columns: list[tuple[int, int]] = []
        self._rows = 0
        self._full = (False, False)
        """Whether the last line's name and value fill their columns: then the next line is more of the same word."""

    def expect(self) -> None:
        self.close()
        self.is_expected = True

    def place(self, dashes: str) -> None:
        """Two columns of dashes stand between messages; tables have three, summaries five."""
        columns = [match.span() for match in re.finditer(r"-{3,}", dashes)]
        if len(columns) < 3:
            return
        self._columns = columns
        self._rows = 0
        self.is_open, self.is_expected = self.is_expected, False

    def name(self) -> None:
        """The columns have names: above the only dashes, or between two lines of them."""
        self.is_expected = True

    def close(self) -> None:
        self.is_open = self.is_expected = False

    def take(self, line: str, section: str | None, launch: Printed) -> bool:
        """False when the line is none of the table's."""
        if _TABLE_HEAD.fullmatch(line):
            self.name()
            return True
        if not line.strip():
            return False
        if _DASHES.fullmatch(line):
            if self.is_expected:
                self.place(line)
            else:
                self.close()
            return True
        self._take_row(line, section, launch.figures)
        return True

    def _take_row(self, line: str, section: str | None, figures: list[Figure]) -> None:
        """Name, unit and value; of a summary, the average. What is too long for its column goes on below."""
        (name_start, name_end), (unit_start, unit_end), *_, (value_start, value_end) = self._columns
        name, unit = line[name_start:name_end].strip(), line[unit_start:unit_end].strip()
        value = line[value_start:].strip()
        has_full_name, has_full_value = self._full
        if name and (unit or value or not has_full_name):
            figures.append(Figure(section, name, unit, value))
        elif figures and self._rows:
            last = figures[-1]
            between = "" if has_full_value or not value else " "
            figures[-1] = last._replace(name=last.name + name, text=(last.text + between + value).strip())
        self._rows += 1
        self._full = (len(name) == name_end - name_start, len(value) == value_end - value_start)


class _Nvtx:
    """The ranges that are listed below the name of a launch."""

    _HEAD = re.compile(r"\s+NVTX (?:(Start/End) Ranges|Push/Pop Stack for Thread ([0-9]{1,18})):\s*")
    _RANGE = re.compile(r"\s+<([0-9]{1,18}),(.*)>\s*")

    def __init__(self) -> None:
        self.close()

    def close(self) -> None:
        self._kind: str | None = None
        self._domain = ""
        self._depth = 0

    def take(self, line: str, launch: Printed) -> bool:
        if match := self._HEAD.fullmatch(line):
            self.close()
            self._kind = "start" if match[1] else "push"
            launch.tid = int(match[2]) if match[2] else launch.tid
            return True
        if self._kind is None:
            return False
        if match := self._RANGE.fullmatch(line):
            kind: str = self._kind
            launch.ranges.append(OpenRange(self._depth, "start" if kind == "start" else "push", self._domain, match[2]))
            self._depth += 1
        elif len(line) - len(line.lstrip()) < MESSAGE_INDENT:  # deeper ones are attributes of a range
            self._domain, self._depth = line.strip(), 0
        return True


# ---- the line of a launch ------------------------------------------------------------------------------------------

_CONTEXT = re.compile(
    r", Context (?P<context>[0-9]{1,10})(?:, Stream (?P<stream>[0-9]{1,10}))?"
    r"(?:, Device (?P<device>[0-9]{1,6}))?(?:, CC (?P<capability>[0-9.]{3,7}))?\b.*"
)
_SUMMARY = re.compile(
    r", Block Size (?P<block>\([^)]*\)|[0-9.,]+), Grid Size (?P<grid>\([^)]*\)|[0-9.,]+)"
    r"(?:, Device (?P<device>[0-9]{1,6}))?(?:, CC (?P<capability>[0-9.]{3,7}))?"
    r", (?P<launches>[0-9]{1,9}) invocations?\s*"
)
_TIME = re.compile(r", [0-9]{4}-\S{1,12}-[0-9]{1,2} [0-9:]{5,8}$")
_CONFIGURATION = re.compile(r" (?P<grid>\([0-9, ]+\))x(?P<block>\([0-9, ]+\))$")


def identity_of(line: str, process: Identity) -> Identity | None:
    """The launch that a line names, of a process; None when it names none.

    >>> launch = identity_of("  saxpy(int) (64, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 8.0", Identity(""))
    >>> launch.name, launch.grid, launch.block, launch.compute_capability
    ('saxpy(int)', (64, 1, 1), (256, 1, 1), (8, 0))
    """
    for at, pattern in ((line.rfind(", Context "), _CONTEXT), (line.rfind(", Block Size "), _SUMMARY)):
        match = pattern.fullmatch(line, at) if at > 0 else None
        if match is not None:
            return _identity(line[:at].strip(), match.groupdict(), process)
    return None


def _identity(head: str, said: dict[str, str | None], process: Identity) -> Identity:
    head = _TIME.sub("", head)
    if (match := _CONFIGURATION.search(head)) is not None:
        head, said = head[: match.start()], {**said, **match.groupdict()}
    return Identity(
        name=head,
        pid=process.pid,
        process_name=process.process_name,
        host=process.host,
        context=_integer(said.get("context")),
        stream=_integer(said.get("stream")),
        grid=size_of(said.get("grid") or ""),
        block=size_of(said.get("block") or ""),
        device=_integer(said.get("device")),
        compute_capability=capability_of(said.get("capability") or ""),
        launches=_integer(said.get("launches")),
    )


def _integer(text: str | None) -> int | None:
    return int(text) if text else None
