"""The live view on a terminal: draws each moment, and passes the time to the next with the keys."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from diag.collect.watching import Order
from diag.render.live_frame import ViewState, frame, last_top, page_lines
from diag.render.live_marks import Look, Marks, Style, ansi
from diag.render.live_view import LiveView
from diag.tui.watch.keys import pressed
from diag.tui.watch.terminal import Terminal


class Screen:
    has_terminal = True

    def __init__(self, terminal: Terminal, marks: Marks, codes: Mapping[Style, str]) -> None:
        self._terminal, self._marks, self._codes = terminal, marks, codes
        self._state = ViewState()
        self._view: LiveView | None = None

    def show(self, view: LiveView) -> None:
        if self._view is None or not self._state.is_paused:
            self._view = view
        self._state = replace(self._state, note="")
        self._draw()

    def wait(self, due_ns: int) -> Order | None:
        """Until the instant, or until a key asks for something that the picture alone cannot answer."""
        while time.monotonic_ns() < due_ns:
            keys = self._terminal.keys(due_ns)
            for key in keys:
                if order := self._press(key):
                    self._draw()
                    return order
            if keys or self._terminal.is_stale:
                self._draw()
        return None

    def _press(self, key: str) -> Order | None:
        if self._view is None:
            return None
        height = self._terminal.size[1] - 2
        self._state, order = pressed(key, self._state, self._view, max(1, height - 1))
        if self._state.top:  # a page cannot be moved beyond its end
            lines = page_lines(self._view, self._state.page, self._look)
            self._state = replace(self._state, top=min(self._state.top, last_top(len(lines), height)))
        return order

    @property
    def _look(self) -> Look:
        return Look(self._terminal.size[0], self._marks)

    def _draw(self) -> None:
        if self._view is not None:
            lines = frame(self._view, self._state, self._look, self._terminal.size[1])
            self._terminal.draw([ansi(line, self._codes) for line in lines])
