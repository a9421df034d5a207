"""The roofline as a widget: its points are chosen by the mouse."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from diag.render.roofline_chart import Chart
from diag.render.roofline_plot import BELOW, LEFT, Plot

INKS = {
    "measured": "bold",
    "datasheet": "dim",
    "mark": "bold $accent",
    "selected": "bold reverse",
    "way": "bold",
    "wrong": "bold $error",
}
LEAST_WIDTH, LEAST_HEIGHT = 20, 4
NEAR = 3
"""Cells from the mouse in which a point counts as pointed at."""


class RooflinePlot(Widget):
    class Pointed(Message):
        """The mouse is at a mark, by its index in the chart; a click opens it."""

        def __init__(self, index: int, *, is_click: bool) -> None:
            super().__init__()
            self.index, self.is_click = index, is_click

    def __init__(self) -> None:
        super().__init__(id="roofline-plot")
        self._chart: Chart | None = None
        self._selected: int | None = None
        self._plot: Plot | None = None

    def draw(self, chart: Chart | None, selected: int | None) -> None:
        self._chart, self._selected = chart, selected
        self.refresh()

    def render(self) -> Content:
        if self._chart is None:
            self._plot = None
            return Content("")
        width, height = self.size.width - LEFT, self.size.height - BELOW
        self._plot = Plot(self._chart, max(width, LEAST_WIDTH), max(height, LEAST_HEIGHT), selected=self._selected)
        lines = (
            Content("").join(Content.styled(text, INKS.get(ink, "")) for text, ink in runs)
            for runs in self._plot.runs()
        )
        return Content("\n").join(lines)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._point_at(event, is_click=False)

    def on_click(self, event: events.Click) -> None:
        self._point_at(event, is_click=True)

    def _point_at(self, event: events.MouseEvent, *, is_click: bool) -> None:
        column, row = event.x - LEFT, event.y
        places = self._plot.places if self._plot else {}
        far = {index: abs(x - column) + 2 * abs(y - row) for index, (x, y) in places.items()}
        nearest = min(far, key=lambda index: far[index], default=None)
        if nearest is not None and far[nearest] <= NEAR:
            self.post_message(self.Pointed(nearest, is_click=is_click))
