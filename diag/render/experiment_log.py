"""An experiment log for a terminal, as JSON (`diag.log/1`) and as Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol

import diag
from diag.render.experiment_phrases import LABELS, entries, moment, parts
from diag.render.json_report import plain
from diag.render.layout import pad
from diag.render.markdown_parts import text
from diag.render.text import INDENT, Page
from diag.store.experiments import Experiment, Log

SCHEMA = "diag.log/1"

_ROOM = max(map(len, LABELS))


class LogRenderer(Protocol):
    """Turns a log into text that ends with a newline."""

    def __call__(self, log: Log, *, width: int = 80, color: bool = False) -> str: ...


def _text(log: Log, *, width: int = 80, color: bool = False) -> str:
    page = Page(width, color)
    return "\n\n".join("\n".join(_entry(page, number, entry)) for number, entry in log.items()) + "\n"


def _entry(page: Page, number: int, entry: Experiment) -> list[str]:
    lines = [*page.heading(f"{number}. {entry.goal}"), *page.dim(f"{entry.outcome}, begun {moment(entry)}")]
    for label, said in parts(entry):
        first = f"{INDENT}{pad(label, _ROOM)}{INDENT}"
        lines += page.prose(said, " " * len(first), first)
    return lines


def _json(log: Log, **_: object) -> str:
    document = {"schema": SCHEMA, "diag_version": diag.__version__, "experiments": entries(log)}
    return json.dumps(plain(document), indent=2, allow_nan=False) + "\n"


def _markdown(log: Log, **_: object) -> str:
    return "\n\n".join(_section(number, entry) for number, entry in log.items()) + "\n"


def _section(number: int, entry: Experiment) -> str:
    title = f"## {number}. {text(entry.goal)}"
    lines = [f"- **{label}**: {text(said)}" for label, said in parts(entry)]
    return "\n\n".join(filter(None, [title, f"{text(entry.outcome)}, begun {moment(entry)}", "\n".join(lines)]))


LOG_RENDERERS: Mapping[str, LogRenderer] = {"text": _text, "json": _json, "markdown": _markdown}
"""By the name that `--format` takes."""
