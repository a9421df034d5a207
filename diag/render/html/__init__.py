"""The report as one HTML file ([what is in it](docs/html.md))."""

from __future__ import annotations

from diag.render.html.page import render_html
from diag.render.html.timeline import Timeline, timeline_of

__all__ = ["Timeline", "render_html", "timeline_of"]
