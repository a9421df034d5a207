"""The forms a report can take. What is untrusted in it is made safe in one place, `escape`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from diag.compare.comparison import Comparison
from diag.render import comparison_json, comparison_markdown, comparison_text
from diag.render.html import Timeline, render_html, timeline_of
from diag.render.json_report import render_json
from diag.render.markdown import render_markdown
from diag.render.text import render_finding, render_text
from diag.rules.report import Report

__all__ = [
    "COMPARISON_RENDERERS",
    "RENDERERS",
    "WITH_TIMELINE",
    "ComparisonRenderer",
    "Renderer",
    "Timeline",
    "render_finding",
    "render_html",
    "render_json",
    "render_markdown",
    "render_text",
    "timeline_of",
]


class Renderer(Protocol):
    """Turns a report into text that ends with a newline: no input, no output, no clock.

    All take what any of them needs: how many rows a table shows, columns and colour of a terminal, whether it can show
    dots in braille, and for those in `WITH_TIMELINE` what can be drawn of the case.
    """

    def __call__(
        self,
        report: Report,
        *,
        width: int = 80,
        color: bool = False,
        braille: bool = True,
        top: int = 5,
        timeline: Timeline | None = None,
    ) -> str: ...


def _text(
    report: Report, *, width: int = 80, color: bool = False, braille: bool = True, top: int = 5, **_: object
) -> str:
    return render_text(report, width=width, color=color, braille=braille, top=top)


def _markdown(report: Report, *, top: int = 5, **_: object) -> str:
    return render_markdown(report, top=top)


def _json(report: Report, **_: object) -> str:
    return render_json(report)


def _html(report: Report, *, timeline: Timeline | None = None, **_: object) -> str:
    return render_html(report, timeline)


WITH_TIMELINE = frozenset({"html"})
"""Renderers for which `timeline_of` is worth its time, while the case is open."""

RENDERERS: Mapping[str, Renderer] = {"text": _text, "markdown": _markdown, "json": _json, "html": _html}
"""By the name that `--format` takes."""


class ComparisonRenderer(Protocol):
    """Turns a comparison into text that ends with a newline, likewise."""

    def __call__(self, comparison: Comparison, *, width: int = 80, color: bool = False, top: int = 5) -> str: ...


def _comparison_markdown(comparison: Comparison, *, top: int = 5, **_: object) -> str:
    return comparison_markdown.render_comparison(comparison, top=top)


def _comparison_json(comparison: Comparison, **_: object) -> str:
    return comparison_json.render_comparison(comparison)


COMPARISON_RENDERERS: Mapping[str, ComparisonRenderer] = {
    "text": comparison_text.render_comparison,
    "markdown": _comparison_markdown,
    "json": _comparison_json,
}
"""By the name that `--format` takes."""
