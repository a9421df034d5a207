"""What the screen of `diag watch` shows: one page of the live view in exactly so many lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from diag.model import units
from diag.render import live_processes, live_sections, live_stacks
from diag.render.layout import cells, wrap
from diag.render.live_marks import Line, Look, Section, Span, fitted, span
from diag.render.live_text import headline
from diag.render.live_view import LiveView
from diag.render.text import render_finding

Page = Literal["main", "findings", "stacks", "help"]

LIVE_FRAMES = 4
"""Frames of a thread on the main page; its own page has all."""

BRIEF_BELOW = 3
"""Lines of GPUs beyond this part of the screen are shortened to their bars."""

ROOMY = 36
"""Lines of a screen with room for a figure below each finding."""

KEY_ROOM = 18

KEYS = (
    ("q", "quit; the workload goes on"),
    ("s", "ask the chosen process for its Python stacks; it stands still meanwhile"),
    ("f", "findings: claim, evidence, what would refute them, what to do next"),
    ("p", "pause the picture, not the readings"),
    ("Tab, Down / Up", "choose the next process / the one before; threads and stacks are then its own"),
    ("Esc", "back to the first page; there: choose no process"),
    ("Space / b", "on a page that is longer than the screen: on / back"),
    ("?", "this page"),
)


@dataclass(frozen=True)
class ViewState:
    """What somebody at the keys has chosen to see."""

    page: Page = "main"
    selected: int | None = None  # pid
    top: int = 0  # first line shown of a page that is longer than the screen
    is_paused: bool = False
    note: str = ""  # what is being done, in place of the keys


def frame(view: LiveView, state: ViewState, look: Look, height: int) -> list[Line]:
    """`height` lines, each of at most `look.width` cells."""
    look = replace(look, selected=state.selected)
    room = max(0, height - 2)
    if state.page == "main":
        body = _main(view, look, room)
    else:
        body = _scrolled(page_lines(view, state.page, look), state.top, room, look.width)
    lines: list[Line] = [_head(view, state, look), *body[:room]]
    lines += [[] for _ in range(height - 1 - len(lines))]
    shown: Iterator[Line] = (fitted(line, look.width) for line in (*lines, _foot(state, look)))
    return list(shown)[:height]


def page_lines(view: LiveView, page: Page, look: Look) -> list[Line]:
    """All lines of a page other than the first."""
    if page == "help":
        lines = [wrap(what, look.width, " " * KEY_ROOM, f"{key:<{KEY_ROOM}}") for key, what in KEYS]
        return [[span("Keys", "title")], *([span(line)] for of_key in lines for line in of_key)]
    if page == "stacks":
        shown = live_stacks.stacks(view, look).lines
        return list(shown) or [[span("No stacks yet: press s.")]]
    found: list[Line] = []
    for finding in view.findings:
        text = render_finding(finding, width=look.width)
        found += [fitted([span(line)], look.width) for line in text.splitlines()] + [[]]
    if not found:
        found = [[span("No finding is in force.")], []]
    clear = ", ".join(dict.fromkeys(answer.rule for answer in view.clear))
    found += [[span(line)] for line in wrap(f"Clear: {clear}.", look.width, "  ", "")] if clear else []
    unknown = live_sections.untold(view, look)
    return [*found, *([[], [span(unknown.title, "title")], *unknown.lines] if unknown.lines else [])]


def _main(view: LiveView, look: Look, room: int) -> list[Line]:
    """Sections in order of their place; each gets the lines that it cannot do without, then the first all they need."""
    gpus = live_sections.gpus(view, look)
    if len(gpus.lines) * BRIEF_BELOW > room:
        gpus = live_sections.gpus(view, look, is_brief=True)
    gpus = replace(gpus, least=min(gpus.least, room // 2))
    sections = [
        Section("", [live_sections.host_line(view, look)], least=1),
        gpus,
        live_sections.findings(view, look, is_brief=room < ROOMY),
        live_processes.processes(view, look),
        live_processes.threads(view, look, most=max(5, room // 4)),
        live_stacks.stacks(view, look, LIVE_FRAMES),
        live_sections.untold(view, look),
    ]
    shown = [section for section in sections if section.lines]
    rooms = _rooms(shown, room)
    parts = [_cut(section, lines, look.width) for section, lines in zip(shown, rooms, strict=True) if lines]
    between: list[Line] = [[]] if sum(map(_length, shown)) + len(parts) - 1 <= room else []
    return [line for at, part in enumerate(parts) for line in (*(between if at else []), *part)]


def _rooms(sections: Sequence[Section], room: int) -> list[int]:
    """Lines for each: first what it needs at least, if there is so much, then in their order all that they need."""
    rooms: list[int] = []
    for section in sections:
        least = min(_length(section), section.least, room - sum(rooms))
        rooms.append(least if least > len(section.head) else 0)
    for at, section in enumerate(sections):
        left = room - sum(rooms)
        if rooms[at] or left > len(section.head):
            rooms[at] += min(_length(section) - rooms[at], left)
    return rooms


def _length(section: Section) -> int:
    return len(section.head) + len(section.lines)


def _cut(section: Section, room: int, width: int) -> list[Line]:
    """A section in at most `room` lines, the one of its focus among them; the last says how many are missing."""
    left = room - len(section.head)
    if left <= 0:
        return []
    if len(section.lines) <= left:
        return [*section.head, *section.lines]
    if left == 1:
        return [*section.head, section.lines[section.focus or 0]]
    first = min(max(0, (section.focus or 0) - (left - 2)), len(section.lines) - (left - 1))
    shown = section.lines[first : first + left - 1]
    more = fitted([span(f"  … {units.count(len(section.lines) - len(shown), 'more line')}", "dim")], width)
    return [*section.head, *shown, more]


def _scrolled(lines: Sequence[Line], top: int, room: int, width: int) -> list[Line]:
    if len(lines) <= room or room < 2:
        return list(lines[:room])
    top = last_top(len(lines), room) if top > last_top(len(lines), room) else top
    shown = lines[top : top + room - 1]
    said = f"  lines {top + 1} to {top + len(shown)} of {len(lines)}: Space goes on, b back"
    return [*shown, *[[]] * (room - 1 - len(shown)), fitted([span(said, "dim")], width)]


def last_top(n_lines: int, room: int) -> int:
    return max(0, n_lines - (room - 1))


def _head(view: LiveView, state: ViewState, look: Look) -> Line:
    took = f"reading takes {units.time(view.took_ns)}"
    states = ("PAUSED" if state.is_paused else "", _recording(view), took)
    right = "  ".join(filter(None, states))
    left = headline(view)
    space = look.width - cells(left) - cells(right)
    return fitted([span(left, "title"), Span(" " * max(2, space)), span(right, "dim")], look.width)


def _recording(view: LiveView) -> str:
    if view.record is None:
        return ""
    return "RECORD FULL" if view.record.is_full else f"record {units.size(view.record.n_bytes)}"


def _foot(state: ViewState, look: Look) -> Line:
    keys = "q quit  s stacks  f findings  p pause  Tab process  ? help"
    if state.page != "main":
        keys = "q quit  Esc back  Space on  b back"
    return fitted([span(state.note or keys, "title" if state.note else "dim")], look.width)
