"""Quantities change their unit where the next one reaches one."""

from __future__ import annotations

import pytest

from diag.model import units
from diag.model.operator_arguments import ELEMENTS, Element


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (999, "999 ns"), (1_000, "1.0 µs"), (1_000_000, "1.0 ms"), (999_000_000, "999.0 ms"),
        (1_000_000_000, "1.0 s"), (-2_000, "-2.0 µs"),
    ],
)  # fmt: skip
def test_times(ns: int, shown: str) -> None:
    assert units.time(ns) == shown


@pytest.mark.parametrize(
    ("n_bytes", "shown"),
    [(999, "999 B"), (1e3, "1.0 kB"), (1e6, "1.0 MB"), (1e9, "1.0 GB"), (1e12, "1.0 TB"), (2.5e12, "2.5 TB")],
)
def test_sizes(n_bytes: float, shown: str) -> None:
    assert units.size(n_bytes) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0.08333, "0.0833"), (12.0, "12"), (999.9, "1e+03"), (1000.4, "1,000"), (1234.6, "1,235")]
)
def test_what_is_large_is_shown_whole(value: float, shown: str) -> None:
    assert units.quantity(value, "FLOP/byte") == f"{shown} FLOP/byte"


@pytest.mark.parametrize("element", [each for each in ELEMENTS.values() if each.name != "bool"], ids=lambda of: of.name)
def test_an_element_takes_the_bits_that_its_name_says(element: Element) -> None:
    assert 8 * element.n_bytes == int("".join(filter(str.isdigit, element.name)))
