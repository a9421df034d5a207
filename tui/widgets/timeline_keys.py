"""The keys that move about in the timeline: they need nothing but the chart."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from diag.tui.timeline.place import PAN, ZOOM
from diag.tui.widgets.timeline_chart import Chart


class KeyedChart(Chart):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "pan(-1)", "Earlier", show=False),
        Binding("right", "pan(1)", "Later", show=False),
        Binding("shift+left,pageup", "page(-1)", "A screen earlier", show=False),
        Binding("shift+right,pagedown", "page(1)", "A screen later", show=False),
        Binding("comma,ctrl+left", "step(-1)", "Cursor one column earlier", show=False),
        Binding("full_stop,ctrl+right", "step(1)", "Cursor one column later", show=False),
        Binding("plus,equals_sign", "zoom(1)", "Zoom in", key_display="+"),
        Binding("minus", "zoom(-1)", "Zoom out", show=False),
        Binding("0,home", "whole", "Whole run", key_display="0"),
        Binding("z", "zoom_to_selection", "Zoom to the selection", show=False),
        Binding("backspace", "back", "Back to before the last jump", show=False),
        Binding("up", "row(-1)", "Row above", show=False),
        Binding("down", "row(1)", "Row below", show=False),
        Binding("space", "toggle_group", "Open or close the group", show=False),
        Binding("v", "select", "Select"),
        Binding("escape", "clear", "Clear the selection", show=False),
    ]

    def action_pan(self, direction: int) -> None:
        self.go(self.place.panned(direction * max(self.columns // PAN, 1)))

    def action_page(self, direction: int) -> None:
        self.go(self.place.panned(direction * self.columns))

    def action_step(self, columns: int) -> None:
        self.go(self.place.stepped(columns))

    def action_zoom(self, direction: int) -> None:
        self.go(self.place.zoomed(ZOOM**direction))

    def action_whole(self) -> None:
        self.go(self.place.whole())

    def action_zoom_to_selection(self) -> None:
        if self.place.selection:
            self.go(self.place.showing(*self.place.selection))

    def action_back(self) -> None:
        self.go(self.place.back())

    def action_row(self, rows: int) -> None:
        self.select(self.selected + rows)

    def action_toggle_group(self) -> None:
        self.toggle_group()

    def action_select(self) -> None:
        self.go(self.place.toggled_selecting())

    def action_clear(self) -> None:
        self.go(self.place.cleared())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Before the tracks are there no key does anything."""
        return bool(self.lines)
