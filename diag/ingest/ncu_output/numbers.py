"""From numbers as ncu prints them to values.

ncu follows the user's locale for most of its numbers: 1,234.50 is 1.234,50 in German and 1 234,50 in French. Floats on
the raw page have six digits behind a point in every locale. None has exactly three: `1.234` groups thousands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from diag.ingest.launch_records import Instance, Value

Decimal = Literal[".", ","]

LONGEST_NUMBER = 60

_PLAIN = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?")
_GROUPED = re.compile(r"-?[0-9][0-9.,]*")
_SPACES = re.compile("[ \u00a0\u2009\u202f'\u2019\ufffd](?=[0-9]{3})")
"""What separates thousands in some locales; the last is what is left of one that could not be decoded."""

_BEFORE, _BEHIND = r"(?:^|[\s\";(])-?", r"(?=[\s\";)]|$)"
"""What stands around a figure, and not around a number in the name of a kernel."""
_COMMA = re.compile(rf"{_BEFORE}[0-9]{{1,3}}(?:\.[0-9]{{3}})*,[0-9]{{2}}{_BEHIND}", re.MULTILINE)
_POINT = re.compile(rf"{_BEFORE}[0-9,]+(?:\.[0-9]{{2}}|,[0-9]{{3}}){_BEHIND}", re.MULTILINE)
_POINTS = re.compile(rf"{_BEFORE}[0-9]{{1,3}}(?:\.[0-9]{{3}}){{2,}}{_BEHIND}", re.MULTILINE)


def decimal_mark(sample: str, *, is_of_ncu: bool) -> Decimal:
    """What separates decimals, from a part of the file that has figures.

    Without a telling number the point does, unless the file is as ncu wrote it: there three digits behind a point
    are thousands.
    """
    if _COMMA.search(sample):
        return ","
    if _POINT.search(sample):
        return "."
    return "," if is_of_ncu or _POINTS.search(sample) else "."


def value_of(text: str, exponent: int = 0, mark: Decimal = ".") -> Value | None:
    """A number times 10**exponent, exact to its last digit; text as it is; None for what says that there is none.

    >>> value_of("993.02", 3), value_of("1.234,50", 0, ","), value_of("CachePreferNone"), value_of("no data")
    (993020.0, 1234.5, 'CachePreferNone', None)
    """
    if text.isascii() and text.isdigit() and len(text) < LONGEST_NUMBER:
        return int(text) * 10**exponent if exponent >= 0 else float(f"{text}e{exponent}")
    if len(text) > LONGEST_NUMBER:
        return text
    if not (mark == "," and "." in text) and _PLAIN.fullmatch(text):
        return _number(text, exponent)
    return _other(text, exponent, mark)


def _other(text: str, exponent: int, mark: Decimal) -> Value | None:
    if is_nothing(text):
        return None
    plain = _ungrouped(text, mark)
    return text if plain is None else _number(plain, exponent)


def _number(plain: str, exponent: int) -> Value | None:
    if exponent == 0 and plain.removeprefix("-").isdigit():
        return int(plain)
    has_exponent = "e" in plain or "E" in plain
    value = float(plain) * float(f"1e{exponent}") if has_exponent else float(f"{plain}e{exponent}")
    return value if abs(value) < float("inf") else None


def _ungrouped(text: str, mark: Decimal) -> str | None:
    """With a point before the decimals and nothing between thousands; None where that is no number."""
    text = _SPACES.sub("", text)
    if not _GROUPED.fullmatch(text):
        return None
    whole, separator, rest = _split_at_last(text)
    if not separator:
        return text
    other = "." if separator == "," else ","
    if len(rest) == 3 and (separator != mark or separator in whole):
        return None if other in whole else (whole + rest).replace(separator, "")
    return None if separator in whole else f"{whole.replace(other, '')}.{rest}"


def _split_at_last(text: str) -> tuple[str, str, str]:
    at = max(text.rfind("."), text.rfind(","))
    return (text, "", "") if at < 0 else (text[:at], text[at], text[at + 1 :])


# ---- no value ------------------------------------------------------------------------------------------------------

_NOTHING = frozenset(("", "no data", "nan", "-nan", "inf", "-inf", "n/a", "-nan(ind)"))


def is_nothing(text: str) -> bool:
    """Whether ncu had no figure to print: the metric has no value in this launch."""
    return _unmarked(text).lower() in _NOTHING


def is_uncollected(text: str) -> bool:
    """Whether ncu does not have the metric: it was not collected, or its name is not known for the device."""
    return _unmarked(text).lower() == "n/a"


def _unmarked(text: str) -> str:
    """Without the mark before what ncu cannot print."""
    return text.removeprefix("(!)").strip()


# ---- the values that a metric is made of ---------------------------------------------------------------------------


def instances_of(text: str, exponent: int, mark: Decimal) -> tuple[Value | None, Sequence[Instance]] | None:
    """Total and instances of `1,254 (1,000; 254)`, or with keys `1,254 (0x10: 1,000; 0x20: 254)`; None if it is not so.

    The total is missing where ncu has none. Source: ncu --print-metric-instances values and details.
    """
    before, parenthesis, inside = text.partition("(")
    before = before.strip()
    if not parenthesis or not text.endswith(")"):
        return None
    total = value_of(before, exponent, mark)
    if isinstance(total, str) or (total is None and before):
        return None
    return total, [_instance(part.strip(), exponent, mark) for part in inside[:-1].split(";")]


def _instance(text: str, exponent: int, mark: Decimal) -> Instance:
    key, separator, value = text.rpartition(": ")
    if not separator:
        return Instance(None, value_of(text, exponent, mark))
    return Instance(_key(key), value_of(value, exponent, mark))


def _key(text: str) -> Value:
    """An address or number where it is one."""
    try:
        return int(text, 0) if len(text) < LONGEST_NUMBER else text
    except ValueError:
        return text
