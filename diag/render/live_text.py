"""The live view as text: one block for each moment, for a pipe or a single look, and the last words on a process."""

from __future__ import annotations

import time
from collections.abc import Mapping

from diag.model import units
from diag.model.live import ProcessReading
from diag.render import live_processes, live_sections, live_stacks
from diag.render.live_marks import Look, Marks, Section, Style, ansi, fitted, name, span
from diag.render.live_view import LiveView

MOST_THREADS = 10
LONGEST_NAME = 60
UNSTYLED: Mapping[Style, str] = {}


def render_live_text(view: LiveView, *, width: int, marks: Marks, codes: Mapping[Style, str] = UNSTYLED) -> str:
    """All that there is to say of this moment, and an empty line."""
    look = Look(width, marks)
    sections = [
        Section("", [fitted([span(headline(view), "title")], width), live_sections.host_line(view, look)]),
        live_sections.gpus(view, look),
        live_processes.processes(view, look),
        live_processes.threads(view, look, MOST_THREADS),
        live_stacks.stacks(view, look),
        live_sections.findings(view, look),
        live_sections.untold(view, look),
    ]
    lines = [line for section in sections if section.lines for line in (*section.head, *section.lines)]
    return "".join(f"{ansi(line, codes).rstrip()}\n" for line in lines) + "\n"


def headline(view: LiveView) -> str:
    """What is watched, and of when this is.

    Times are those of where the watcher is, as people look at them beside a clock.
    """
    watched = next((row.reading for row in view.processes if row.reading.pid == view.pid), None)
    what = (
        "all GPUs"
        if view.pid is None
        else f"{name(watched.name, LONGEST_NAME) if watched else 'ended'} (pid {view.pid})"
    )
    at = time.strftime("%H:%M:%S", time.localtime(view.time_ns / 1e9))
    since = "" if view.elapsed_ns is None else f", over {view.elapsed_ns / 1e9:.1f} s"
    return f"{what} at {at}{since}"


def last_words(process: ProcessReading, lasted_ns: int, peak_resident_bytes: int | None) -> str:
    """What is known of a process that has ended: how long it ran, what it used."""
    peak = (
        ""
        if peak_resident_bytes is None
        else f", and held at most {units.size(peak_resident_bytes)} of memory as far as seen"
    )
    return (
        f"{name(process.name, LONGEST_NAME)} (pid {process.pid}) has ended after {lasting(lasted_ns)}: it used "
        f"{units.time(process.cpu_ns)} of CPU{peak}."
    )


def lasting(ns: int) -> str:
    """
    >>> lasting(4_200_000_000), lasting(192 * 10**9), lasting(5_000 * 10**9), lasting(200_000 * 10**9)
    ('4.2 s', '3 min 12 s', '1 h 23 min', '2 d 7 h')
    """
    seconds = round(ns / 1e9)
    for length, unit, part_length, part in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= length:
            return f"{seconds // length} {unit} {seconds % length // part_length} {part}"
    return units.time(ns)
