"""The text of a verb as a manual page: what it does, examples, exit statuses, environment, and where to go on.

A verb writes all of it in its docstring, a labelled line for each: `Example: COMMAND`, `Exit status N: WHEN`,
`Environment: NAME, NAME`, `See also: PAGE or VERB, ...`. What is the same for all verbs stands here.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

ENVIRONMENT = {
    "DIAG_CACHE": "Folder of imported cases (default ~/.cache/diag).",
    "DIAG_CACHE_BYTES": "Most that they take together, as in 500M or 8G (the default).",
    "DIAG_CEILINGS": "Folder of what diag calibrate stored (default ~/.local/share/diag).",
    "DIAG_PLUGINS": "0: leave installed plug-ins alone.",
    "DIAG_NSYS": "The nsys to use, where it is not the one on the PATH.",
    "DIAG_NCU": "The ncu to use, likewise.",
    "NO_COLOR": "Set to anything: write without colours.",
    "TMPDIR": "Folder of temporary files (default /tmp).",
}
"""Variables that diag reads, and what each of them does."""

STATUSES = {"0": "Fine.", "2": "Wrong usage.", "130, 129, 143": "Interrupted, hung up, terminated."}
"""Of every verb; docs/json-contract.md has all."""

VALUES = {
    "BYTES": "Bytes, as in 500M or 64G: powers of two.",
    "SIZE": "Bytes, as in 2GB (10^9) or 25MiB (2^20).",
    "RATE": "Of bytes, bits or operations a second: 350GB/s, 400Gbit/s, 600TFLOP/s.",
    "TIME": "With its unit: 20us, 1.5ms, 30s.",
    "S": "Seconds.",
    "MS": "Milliseconds.",
    "PER_S": "Requests a second.",
    "PCT": "Per cent.",
    "SHARE": "From 0 to 1.",
    "START:END": "Times with their units; either may be left out.",
}
"""Placeholders of options that stand for a quantity, and its unit."""

_LABEL = re.compile(r"(Example|Exit status [^:]+|Environment|See also): (.*)")
_SHELL_WORDS = re.compile(r"""(?:--?[\w-]+ (?!-))?(?:[^\s"']|"[^"]*"|'[^']*')+""")
"""A word, or an option with its value."""


@dataclass(frozen=True)
class Manual:
    description: str
    examples: Sequence[str]
    statuses: Mapping[str, str]
    """When it ends with which, in ascending order."""
    environment: Sequence[str]
    """Keys of ENVIRONMENT."""
    see_also: Sequence[str]
    """Pages under docs/, and verbs."""


def manual(docstring: str) -> Manual:
    """
    >>> page = manual("Do it.\\n\\nExample: diag do\\n --now\\n\\nExit status 3: No.\\nSee also: docs/do.md, diag undo")
    >>> page.description, page.examples, page.see_also
    ('Do it.', ['diag do --now'], ['docs/do.md', 'diag undo'])
    >>> page.statuses["3"]
    'No.'
    """
    description: list[str] = []
    said: list[tuple[str, str]] = []
    for paragraph in docstring.split("\n\n"):
        lines = paragraph.splitlines()
        if not lines or not _LABEL.match(lines[0].strip()):
            description.append(paragraph)
        else:
            said += _labelled(lines)
    statuses = STATUSES | {label.removeprefix("Exit status "): text for label, text in said if label[:4] == "Exit"}
    return Manual(
        "\n\n".join(description).strip(),
        [text for label, text in said if label == "Example"],
        dict(sorted(statuses.items(), key=lambda each: _place(each[0]))),
        _listed(said, "Environment"),
        _listed(said, "See also"),
    )


def _labelled(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """A line without a label goes on with the one before."""
    label, parts = "", [""]
    for line in map(str.strip, lines):
        if match := _LABEL.match(line):
            if label:
                yield label, " ".join(parts)
            label, parts = match[1], [match[2]]
        else:
            parts.append(line)
    yield label, " ".join(parts)


def _listed(said: Sequence[tuple[str, str]], wanted: str) -> Sequence[str]:
    return [name for label, text in said if label == wanted for name in text.rstrip(".").split(", ")]


def _place(status: str) -> tuple[bool, int]:
    """Numbers first."""
    number = status.partition(",")[0]
    return (False, int(number)) if number.isdecimal() else (True, 0)


def command_lines(example: str, columns: int) -> Sequence[str]:
    r"""As typed in a shell; one that is too long goes on after a backslash, outside of quotes.

    >>> command_lines("diag log run.diag --goal 'a step under 10 ms'", 34)
    ['diag log run.diag \\', "    --goal 'a step under 10 ms'"]
    """
    lines, line = [], ""
    for words in _SHELL_WORDS.findall(example):
        longer = f"{line} {words}" if line else words
        if line and len(longer) > columns - len(" \\"):
            lines.append(f"{line} \\")
            line = f"    {words}"
        else:
            line = longer
    return [*lines, line]


def values(metavars: Sequence[str]) -> Sequence[tuple[str, str]]:
    """Those of VALUES that are among these."""
    return [(name, said) for name, said in VALUES.items() if name in metavars]


def wrapped(names: Sequence[str], columns: int) -> Sequence[str]:
    return textwrap.wrap(", ".join(names), columns, break_on_hyphens=False)
