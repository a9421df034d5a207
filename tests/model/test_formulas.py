"""Formulas: how they are read and spelt."""

from __future__ import annotations

import pytest

from diag.model.formulas import parsed, spelt, value_of


@pytest.mark.parametrize("text", ["", "a +", "(a", "a b", "* a", "a / )", "a # b"])
def test_what_is_no_formula_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parsed(text)


@pytest.mark.parametrize(
    ("text", "again"),
    [("1 - 2 - 3 * 4 / 6", "1 - 2 - 3 * 4 / 6"), ("((1 * a) - (b))", "1 * a - b"), ("2 * (a + b)", "2 * (a + b)")],
)
def test_operators_bind_as_in_arithmetic(text: str, again: str) -> None:
    assert spelt(parsed(text)) == again


def test_values_follow_arithmetic() -> None:
    assert value_of(parsed("1 - a / (b - 3) * 2"), {"a": 6, "b": 5.0}) == 1 - 6 / 2 * 2
