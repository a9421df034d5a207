"""A page to be read: text with entries among it, which the cursor stops at and Enter or a click opens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual import events
from textual._widget_navigation import Direction
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from diag.render.escape import one_line
from diag.render.layout import elide, wrap

LONGEST_LINE = 100
"""Running text is set no wider than this, however wide the terminal."""

PADDING = 1
"""Cells at each side, as app.tcss has it."""

LONGEST_TEXT = 1_200
"""Cells. A sentence may quote a name of any length."""


@dataclass(frozen=True)
class Entry:
    """Part of a page. `run` is what Enter does; without it the cursor passes by. `key` names it among all entries."""

    shown: Content
    run: Callable[[], object] | None = None
    key: object = None


def prose(text: str, width: int, style: str = "", *, indent: str = "", first: str | None = None) -> Content:
    """Running text from anywhere, set in lines."""
    lines = wrap(elide(one_line(text), LONGEST_TEXT), min(width, LONGEST_LINE), indent, first)
    shown = Content("\n".join(lines))
    return shown.stylize(style) if style else shown


def heading(text: str) -> Entry:
    return Entry(Content("\n") + Content.styled(text, "bold underline"))


class Page(OptionList):
    """`build` gives the entries for a width in cells, and is asked again when that changes."""

    class Reached(Message):
        """The cursor has come to an entry."""

        def __init__(self, page: Page, entry: Entry) -> None:
            super().__init__()
            self.page = page
            self.entry = entry

        @property
        def control(self) -> Page:
            return self.page

    def __init__(self, build: Callable[[int], Sequence[Entry]], *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, compact=True, markup=False)
        self._build = build
        self._entries: Sequence[Entry] = ()
        self._width = 0

    @property
    def reached(self) -> Entry | None:
        return None if self.highlighted is None else self._entries[self.highlighted]

    def refill(self, *, keep: bool = True) -> None:
        """Builds the page anew; `keep`: the cursor stays on the entry of the same key, or at least there."""
        reached, at = self.reached, self.highlighted
        self._width = self._room()
        self._entries = self._build(self._width) if self._width else ()
        self.set_options([Option(entry.shown, disabled=entry.run is None) for entry in self._entries])
        if not keep or at is None or reached is None:
            self.action_first()
        elif not self.reach(reached.key):
            self.highlighted = min(at, len(self._entries) - 1)

    def reach(self, key: object) -> bool:
        """Moves the cursor to the entry of that key, if there is one."""
        at = next((at for at, entry in enumerate(self._entries) if entry.run and entry.key == key), None)
        if at is not None and key is not None:
            self.highlighted = at
        return at is not None and key is not None

    def reach_next_group(self) -> None:
        """Moves the cursor to the first entry under the next heading, after the last one to that of the first."""
        at = -1 if self.highlighted is None else self.highlighted
        runs = [entry.run is not None for entry in self._entries]
        starts = [place for place in range(len(runs)) if runs[place] and (place == 0 or not runs[place - 1])]
        self.highlighted = next((place for place in starts if place > at), starts[0] if starts else None)

    def on_resize(self, _: events.Resize) -> None:
        if self._room() != self._width:
            self.refill()

    def _room(self) -> int:
        return max(0, self.scrollable_content_region.width - 2 * PADDING)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if (entry := self._entry_of(event)) and entry.run:
            entry.run()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        if entry := self._entry_of(event):
            self.post_message(self.Reached(self, entry))

    def _entry_of(self, event: OptionList.OptionMessage) -> Entry | None:
        """None when the page was built anew since."""
        at = event.option_index
        is_current = at < len(self._entries) and self.get_option_at_index(at) is event.option
        return self._entries[at] if is_current else None

    def _move_page(self, direction: Direction) -> None:
        if self._lines:  # which it lacks from being built anew until it is laid out
            super()._move_page(direction)

    # ---- the cursor never jumps over text that has not been in sight -----------------------------------------------

    def action_cursor_down(self) -> None:
        self._step(1)

    def action_cursor_up(self) -> None:
        self._step(-1)

    def action_first(self) -> None:
        super().action_first()
        self.scroll_to(y=0, animate=False, immediate=True)

    def action_last(self) -> None:
        super().action_last()
        self.scroll_to(y=self.max_scroll_y, animate=False, immediate=True)

    def _step(self, direction: int) -> None:
        """To the next entry if it is in sight or follows at once, else a part of the page further."""
        at = -1 if self.highlighted is None else self.highlighted
        places = range(at + 1, len(self._entries)) if direction > 0 else range(at - 1, -1, -1)
        following = next((place for place in places if self._entries[place].run), None)
        if following is not None and (following == at + direction or self._is_in_sight(following)):
            self.highlighted = following
        else:
            self.scroll_relative(y=direction * max(1, self.size.height // 3), animate=False, immediate=True)

    def _is_in_sight(self, at: int) -> bool:
        if at not in self._index_to_line:
            return False
        y = self._index_to_line[at]
        return self.scroll_y <= y and y + min(self._heights[at], self.size.height) <= self.scroll_y + self.size.height
