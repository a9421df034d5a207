"""Launches from the pages that ncu prints for people.

A page names the process, then each launch with the ranges around it and its sections, and of each section a table and
what NVIDIA's rules say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from diag.ingest.launch_records import RuleResult
from diag.ingest.ncu_output import messages
from diag.ingest.ncu_output.labels import identifier_of
from diag.ingest.ncu_output.printed import MOST_FIGURES, Identity, Printed
from diag.ingest.ncu_output.ranges import ListedRanges
from diag.ingest.ncu_output.text_launch import NOBODY, launch_of, process_of
from diag.ingest.ncu_output.text_table import DASHES, HEAD, Table

_SECTION = re.compile(r"\s*Section: (.+)")
_MESSAGE = re.compile(r"\s{0,8}(INF|OPT|WRN|ERR)\s{2,3}(?=\S)(.*)")
_DETAILS = "> "
"""Metrics behind a message (--print-rule-details)."""

_MESSAGE_INDENT = " " * 10

MOST_LINES_OF_MESSAGE = 1000
MOST_LINES_OF_NAME = 10
LONGEST_TEXT_LINE = 1 << 16


def launches(lines: Iterator[str]) -> Iterator[Printed]:
    page = _Page()
    for line in lines:
        if (done := page.take(line)) is not None:
            yield done
    if (last := page.end()) is not None:
        yield last


class _Page:
    """What has been read so far of the current launch."""

    def __init__(self) -> None:
        self._process = NOBODY
        self._launch: Printed | None = None
        self._section: str | None = None
        self._table = Table()
        self._ranges = ListedRanges()
        self._message: _Message | None = None
        self._unread: list[str] = []

    def take(self, line: str) -> Printed | None:
        """Returns the launch before when this line begins another one."""
        if self._launch is not None and self._table.take(line, self._launch.figures):
            return None
        if self._message is not None and line.startswith(_MESSAGE_INDENT):
            self._message.add(line)
        elif not line.strip():
            self._end_part()
        elif (process := process_of(line, self._process)) is not None:
            self._end_part()
            self._process = process
        elif (identity := self._launch_in(line)) is not None:
            return self._begin(identity)
        elif self._launch is not None:
            self._take_part(line, self._launch)
        else:
            self._leave(line)
        return None

    def end(self) -> Printed | None:
        self._end_part()
        return self._launch

    def _begin(self, identity: Identity) -> Printed | None:
        """Summaries name the kernel again above each section."""
        self._end_part()
        self._table.expect(None)
        if self._launch is not None and identity.launches is not None and identity == self._launch.identity:
            return None
        done, self._launch, self._section = self._launch, Printed(identity), None
        return done

    def _launch_in(self, line: str) -> Identity | None:
        """Names may have line breaks: then the lines since the last empty one are one name."""
        found = launch_of(line, self._process)
        if found is None or not self._unread or found.name.count("(") >= found.name.count(")"):
            return found
        return launch_of("\n".join([*self._unread, line]), self._process) or found

    def _take_part(self, line: str, launch: Printed) -> None:
        if match := _SECTION.fullmatch(line):
            self._end_part()
            self._section = match[1].strip()
            self._table.expect(self._section)
        elif HEAD.fullmatch(line):
            self._table.expect(self._section)
        elif DASHES.fullmatch(line):
            self._end_message()
            self._table.dashes(line)
        elif not self._ranges.take(line, launch) and not self._take_message(line):
            self._leave(line)

    def _take_message(self, line: str) -> bool:
        """Of a rule. A mark tells its type, and one without a type has none. The table comes first."""
        if match := _MESSAGE.fullmatch(line):
            self._end_message()
            self._message = _Message(match[1], [match[2].strip()])
        elif self._message is not None and line.lstrip().startswith(_DETAILS):
            self._message.has_ended = True
        elif line.startswith(_MESSAGE_INDENT) and self._section is not None and not self._table.is_expected:
            self._message = _Message("", [line.strip()])
        else:
            return False
        return True

    def _leave(self, line: str) -> None:
        """It may be the beginning of a name."""
        self._unread = [*self._unread, line[:LONGEST_TEXT_LINE]][-MOST_LINES_OF_NAME:]

    def _end_part(self) -> None:
        self._end_message()
        self._table.close(self._launch.figures if self._launch else [])
        self._ranges = ListedRanges()
        self._unread = []

    def _end_message(self) -> None:
        if self._message is not None and self._launch is not None and len(self._launch.rules) < MOST_FIGURES:
            self._launch.rules.append(self._message.result(self._section or ""))
        self._message = None


@dataclass
class _Message:
    mark: str
    lines: list[str]
    has_ended: bool = False

    def add(self, line: str) -> None:
        if not self.has_ended and len(self.lines) < MOST_LINES_OF_MESSAGE:
            self.lines.append(line[:LONGEST_TEXT_LINE].strip())

    def result(self, section: str) -> RuleResult:
        """The page says what a rule found, but not which rule it was."""
        speedup, text = messages.speedup_in(" ".join(self.lines))
        name = f"a rule of {section}" if section else None
        return messages.result("", identifier_of(section), self.mark, text, speedup, name)
