"""The forms a report can take. What is untrusted in it is made safe in one place, `escape`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from diag.render.json_report import render_json
from diag.render.markdown import render_markdown
from diag.render.text import render_text
from diag.rules.report import Report

__all__ = ["RENDERERS", "Renderer", "render_json", "render_markdown", "render_text"]


class Renderer(Protocol):
    """Turns a report into text that ends with a newline: no input, no output, no clock."""

    def __call__(self, report: Report, /) -> str: ...


RENDERERS: Mapping[str, Renderer] = {"text": render_text, "json": render_json, "markdown": render_markdown}
"""By the name that `--format` takes."""
