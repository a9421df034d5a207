"""How a verb presents itself: its help, a manual page without the types of Python, its wrong usage in one sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand, TyperGroup

from diag.cli.manual import ENVIRONMENT, command_lines, manual, values, wrapped

_TYPE = re.compile(r" <[^<>]*>$")
"""That Typer puts behind the name of an argument."""

_BRACKETS = re.compile(r"(?:\{(.+)\}|\[(\[.+\])\])(?:\.\.\.)?")
"""That Typer puts around a name which has its own."""

INDENT = 2
"""Columns, of what stands below a heading."""


class Page:
    """What makes the help of a command a manual page. Mixed into one of Typer's, before it."""

    help: str | None
    get_params: Any

    def format_help_text(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as Typer calls it
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(manual(self.help or "").description)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        page = manual(self.help or "")
        columns = formatter.width - INDENT
        examples = [line for example in page.examples for line in command_lines(example, columns)]
        _write_rows(formatter, "Values", values([str(param.metavar) for param in self.get_params(ctx)]))
        _write_lines(formatter, "Examples", examples)
        _write_rows(formatter, "Exit status", list(page.statuses.items()))
        _write_rows(formatter, "Environment", [(name, ENVIRONMENT[name]) for name in page.environment])
        _write_lines(formatter, "See also", wrapped(page.see_also, columns))


class VerbGroup(Page, TyperGroup):
    """Verbs that belong together."""


class Verb(Page, TyperCommand):
    """A command whose arguments are called INPUT..., not {INPUT...}... <list[Path]>."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [_without_brackets(piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        kinds = {"argument": "Arguments", "option": "Options"}
        for kind, heading in kinds.items():
            records = [param.get_help_record(ctx) for param in self.get_params(ctx) if param.param_type_name == kind]
            rows = [(_TYPE.sub("", name) if kind == "argument" else name, said) for name, said in filter(None, records)]
            _write_rows(formatter, heading, rows)


def _write_rows(formatter: Any, heading: str, rows: Sequence[tuple[str, str]]) -> None:
    if rows:
        with formatter.section(heading):
            formatter.write_dl(rows)


def _write_lines(formatter: Any, heading: str, lines: Sequence[str]) -> None:
    if lines:
        with formatter.section(heading):
            formatter.write("".join(f"{' ' * INDENT}{line}\n" for line in lines))


def _without_brackets(piece: str) -> str:
    """
    >>> _without_brackets("{INPUT...}..."), _without_brackets("[[SQL]]"), _without_brackets("[OPTIONS]")
    ('INPUT...', '[SQL]', '[OPTIONS]')
    """
    match = _BRACKETS.fullmatch(piece)
    return piece if match is None else match[1] or match[2]


def wrong_usage(error: BaseException) -> str | None:
    """What the parser of the command line has to say, with where to read more; None when the error is not its own.

    The parser is Click, or the copy of it that Typer brings: its errors are known by what they can do.
    """
    if not hasattr(error, "format_message"):
        return None
    said = _plain(error.format_message())
    path = getattr(getattr(error, "ctx", None), "command_path", None)
    return f"{said} Help: {path} -h" if path else said


def _plain(said: str) -> str:
    """
    >>> _plain("Invalid value for '--top': Input should be a valid integer, unable to parse string as an integer")
    "Invalid value for '--top': it should be a valid integer."
    >>> _plain("Invalid value for '--format' / '-f': Value error, 'xml' is not one of 'text', 'json'.")
    "Invalid value for '--format' / '-f': 'xml' is not one of 'text', 'json'."
    """
    said = re.sub(r", unable to parse .*", "", said.replace(": Value error, ", ": ").replace(": Input ", ": it "))
    return said.rstrip(".") + "."
