"""Units that ncu prints, of old and new versions, in base units."""

from __future__ import annotations

import pytest

from diag.ingest.ncu_output.units import scale_of


@pytest.mark.parametrize(
    ("printed", "exponent", "unit"),
    [
        ("byte", 0, "byte"),
        ("Kbyte", 3, "byte"),
        ("Tbyte", 12, "byte"),
        ("Kbyte/block", 3, "byte/block"),
        ("Gbyte/second", 9, "byte/s"),
        ("Gbyte/s", 9, "byte/s"),
        ("byte/ns", 9, "byte/s"),
        ("second", 9, "ns"),
        ("s", 9, "ns"),
        ("msecond", 6, "ns"),
        ("us", 3, "ns"),
        ("nsecond", 0, "ns"),
        ("cycle", 0, "cycle"),
        ("cycle/nsecond", 9, "hz"),
        ("cycle/second", 0, "hz"),
        ("Mhz", 6, "hz"),
        ("sector/msecond", 3, "sector/s"),
        ("inst/us", 6, "inst/s"),
        ("%", 0, "%"),
        ("register/thread", 0, "register/thread"),
        ("", 0, ""),
        ("furlong", 0, "furlong"),
    ],
)
def test_scales(printed: str, exponent: int, unit: str) -> None:
    assert scale_of(printed) == (exponent, unit)
