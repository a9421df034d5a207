"""Exact times, against `decimal`."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_EVEN, Context, Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diag.ingest.microseconds import LIMIT_NS, NOT_A_TIME, nanoseconds

EXACT = Context(prec=200)


def parsed(*texts: str) -> list[int]:
    values: list[int] = nanoseconds([msgspec.Raw(text.encode()) for text in texts]).tolist()
    return values


def by_decimal(text: str) -> int:
    exact = EXACT.multiply(Decimal(text), Decimal(1000))
    return int(exact.to_integral_value(ROUND_HALF_EVEN)) if abs(exact) < LIMIT_NS else NOT_A_TIME


plain_numbers = st.from_regex(r"\A-?(0|[1-9][0-9]{0,15})(\.[0-9]{1,3})?\Z").filter(str.isascii)
numbers = st.from_regex(r"\A-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,2})?\Z").filter(str.isascii)


@given(st.lists(plain_numbers))
def test_plain_numbers_are_exact(texts: list[str]) -> None:
    assert parsed(*texts) == [by_decimal(text) for text in texts]


@given(st.lists(numbers))
def test_all_numbers_are_exact(texts: list[str]) -> None:
    assert parsed(*texts) == [by_decimal(text) for text in texts]


@given(st.lists(st.integers(0, LIMIT_NS - 1)))
def test_every_nanosecond_survives(times_ns: list[int]) -> None:
    assert parsed(*(f"{time // 1000}.{time % 1000:03}" for time in times_ns)) == times_ns


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)
)


@given(st.lists(json_values.map(json.dumps) | plain_numbers))
def test_no_json_raises(texts: list[str]) -> None:
    assert len(parsed(*texts)) == len(texts)


@pytest.mark.parametrize(
    "text",
    ["null", '"3"', "true", "[1]", "[1,2]", "1e999999999", "1e99999999999999999999", "NaN", "-Infinity", "9" * 50],
)
def test_what_is_no_time(text: str) -> None:
    assert parsed("1", text, "2.5") == [1000, NOT_A_TIME, 2500]


def test_half_a_nanosecond_goes_to_the_even_one() -> None:
    assert parsed("0.0005", "0.0015", "-0.0005", "7.0005000000000000000000000000001") == [0, 2, 0, 7001]
