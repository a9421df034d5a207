"""What the commands of the timeline share: the chart, the thread that reads, and how lines are found."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from diag.rules.finding import Subject
from diag.tui.screens.view import View
from diag.tui.timeline.lines import HEADER, Line
from diag.tui.timeline.material import Reader
from diag.tui.widgets.timeline_chart import Chart


class Commands(View):
    """A view over a chart. Rows are asked for on the thread of the case, as that may take a scan of a table; what is
    drawn comes from the reader."""

    _reader: Reader | None = None

    @property
    def chart(self) -> Chart:
        return self.query_one(Chart)

    @property
    def reader(self) -> Reader:
        assert self._reader is not None
        return self._reader

    @abstractmethod
    def say(self, note: str) -> None:
        """Shows a line until one moves on. It may come from a trace."""

    @property
    def origins(self) -> Mapping[int, int]:
        """By source, what is subtracted from its times to have them on the axis."""
        return self.chart.picture.origin_ns if self.chart.picture is not None else {}

    def origin_of(self, line: Line) -> int:
        return self.origins[line.group.source]

    def device_line(self) -> Line | None:
        """The header of the selected device, else of the first one of the same process, else of the first."""
        devices = [line for line in self.chart.lines if line.kind == "device"]
        group = self.chart.line.group
        alike = [line for line in devices if line.group is group] or [
            line for line in devices if (line.group.source, line.group.process) == (group.source, group.process)
        ]
        if not devices:
            self.say("there is no device in this timeline")
        return next(iter(alike or devices), None)

    def line_of(self, subject: Subject) -> Line | None:
        """The header of the device that a finding is about."""
        wanted = subject.source, subject.process, subject.device
        headers = (line for line in self.chart.lines if line.kind == "device" and line.key[1] == HEADER)
        return next((x for x in headers if (x.group.source, x.group.process, x.group.device) == wanted), None)
