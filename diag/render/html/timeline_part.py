"""The section with the timeline: its controls, which the script brings to life, its data and the still picture."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.render.html.detail import Blocks
from diag.render.html.encoding import script_json
from diag.render.html.parts import paragraphs, section, tag
from diag.render.html.still import still
from diag.render.html.timeline import Timeline
from diag.render.html.timeline_json import timeline_json
from diag.render.palette import ACTIVITIES
from diag.timeline.track import ACTIVITIES as CODES

KEYS = (
    ("← →", "pan"),
    ("+ −", "zoom"),
    ("0", "all of it"),
    ("↑ ↓", "row above or below"),
    (", .", "slice before or after, on that row"),
    ("Enter", "details of the slice"),
    ("z", "zoom to the slice or the selection"),
    ("n p", "next and previous gap of a device"),
    ("/", "search by name"),
    ("Esc", "drop the selection"),
)
"""Of the timeline, when it has the focus."""


def timeline_part(timeline: Timeline | None) -> str:
    if timeline is None or not timeline.groups:
        return ""
    data = tag("script", script_json(timeline_json(timeline)), type="application/json", id="timeline-data")
    return section(
        "timeline", "Timeline", paragraphs(_said(timeline), "note"), _controls(timeline), still(timeline), data
    )


def _said(timeline: Timeline) -> Iterator[str]:
    """What is drawn, and what not."""
    slices = units.count(timeline.slices, "slice")
    if timeline.resolution_ns:
        yield (
            f"{slices}. Those shorter than {units.time(timeline.resolution_ns)} that begin within that time of each "
            "other are drawn as one block, which says how many they are and how much of it is busy."
            + (
                " Where evidence of the first findings lies, every slice is there as far as there is room."
                if timeline.whole
                else ""
            )
        )
    elif timeline.slices:
        yield f"Every one of {slices} is here."
    if timeline.rows_left_out:
        yield f"{units.count(timeline.rows_left_out, 'row')} left out: the host rows that are least busy, and counters."


def _controls(timeline: Timeline) -> str:
    buttons = (
        ("zoom-in", "+", "Zoom in"),
        ("zoom-out", "−", "Zoom out"),
        ("zoom-all", "All", "Show all of it"),
        ("gap-previous", "‹ gap", "Previous gap"),
        ("gap-next", "gap ›", "Next gap"),
    )
    search = tag(
        "form",
        '<label>Search <input type="search" id="timeline-search" autocomplete="off"></label>',
        _button("found-previous", "‹", "Previous found"),
        _button("found-next", "›", "Next found"),
        tag("output", id="timeline-found"),
        role="search",
    )
    tools = tag("div", *(_button(*each) for each in buttons), search, class_="tools")
    keys = tag(
        "details",
        tag("summary", "Keys and mouse"),
        tag("dl", *(tag("div", tag("dt", key), tag("dd", does)) for key, does in KEYS)),
        tag("p", "Wheel with Ctrl, or after a click into the picture: zoom. Drag: select, and measure. "
            "Shift and drag: pan. Double click: zoom to what is there. Two fingers: pan and zoom."),
        class_="keys",
    )  # fmt: skip
    used = _activities(timeline) | ({"idle"} if any(group.gaps for group in timeline.groups) else set())
    legend = tag(
        "ul",
        *(tag("li", tag("i", class_=f"swatch {each}"), ink.label) for each, ink in ACTIVITIES.items() if each in used),
        class_="legend",
    )
    picture = tag(
        "div",
        tag("canvas", id="timeline-ruler", aria_hidden="true"),
        tag("div", tag("div", tag("div", id="timeline-rows", role="group", aria_label="Rows"),
            tag("canvas", id="timeline-canvas", aria_hidden="true"), id="timeline-stack"), id="timeline-scroll"),
        id="timeline-picture", role="group", aria_label="Interactive timeline", aria_describedby="timeline-readout",
    )  # fmt: skip
    readout = tag("p", id="timeline-readout", role="status")
    details = tag("div", id="timeline-details", hidden=True)
    return tag("div", tools, legend, picture, readout, details, keys, id="timeline-tool", class_="needs-script")


def _button(identity: str, said: str, about: str) -> str:
    return tag("button", said, type="button", id=identity, aria_label=about, title=about)


def _activities(timeline: Timeline) -> set[str]:
    drawn = (row.drawn for group in timeline.groups for row in group.rows)
    return {CODES[code] for blocks in drawn if isinstance(blocks, Blocks) for code in set(blocks.activity.tolist())}
