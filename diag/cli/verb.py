"""How a verb presents itself: its help without the types of Python, its wrong usage in one sentence."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

_TYPE = re.compile(r" <[^<>]*>$")
"""That Typer puts behind the name of an argument."""

_BRACKETS = re.compile(r"(?:\{(.+)\}|\[(\[.+\])\])(?:\.\.\.)?")
"""That Typer puts around a name which has its own."""


class Verb(TyperCommand):
    """A command whose arguments are called INPUT..., not {INPUT...}... <list[Path]>."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [_without_brackets(piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        kinds = {"argument": "Arguments", "option": "Options"}
        for kind, heading in kinds.items():
            records = [param.get_help_record(ctx) for param in self.get_params(ctx) if param.param_type_name == kind]
            rows = [(_TYPE.sub("", name) if kind == "argument" else name, said) for name, said in filter(None, records)]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


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
