"""From units as ncu prints them to base units.

ncu prints `12.35 Mbyte` or, with --print-units base, `12,345,678 byte`; older versions spell `usecond` what newer ones
call `us`. The case has base units only, all spelt as the reader of reports spells them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

MOST_REMEMBERED = 1 << 12


class Scale(NamedTuple):
    """A printed figure times 10**exponent is one in `unit`."""

    exponent: int
    unit: str


@lru_cache(MOST_REMEMBERED)
def scale_of(printed: str) -> Scale:
    """The base unit of a printed unit. One that is not known is its own base.

    >>> scale_of("Gbyte/second"), scale_of("usecond")
    (Scale(exponent=9, unit='byte/s'), Scale(exponent=3, unit='ns'))
    >>> scale_of("cycle/nsecond"), scale_of("inst/cycle")
    (Scale(exponent=9, unit='hz'), Scale(exponent=0, unit='inst/cycle'))
    """
    counted, slash, per = printed.partition("/")
    top = _part(counted, "counted") if slash else _part(counted, "alone")
    if not slash:
        return top
    bottom = _part(per, "per")
    unit = f"{top.unit}/{bottom.unit}"
    return Scale(top.exponent - bottom.exponent, "hz" if unit == "cycle/s" else unit)


def _part(text: str, place: str) -> Scale:
    table = _table()
    base = table[place].get(text) or table["any"].get(text)
    return Scale(0, text) if base is None else base


@cache
def _table() -> Mapping[str, Mapping[str, Scale]]:
    tables = tomllib.loads(resources.files(__package__).joinpath("units.toml").read_text("utf-8"))
    return {place: {text: Scale(*base) for text, base in units.items()} for place, units in tables.items()}
