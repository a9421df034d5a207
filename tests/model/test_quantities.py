"""Quantities: formulas as data, over whatever metrics a report happens to have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from diag.model import quantities as q
from diag.model import units


def test_every_formula_of_the_data_files_can_be_read_and_has_a_known_unit() -> None:
    for quantity in q.quantities().values():
        assert quantity.unit in units.EVIDENCE
        assert quantity.formulas
        assert all(vars(quantity).values())


@pytest.fixture
def defined(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Puts quantities in the place of those of the data files; each given by its formulas."""

    def define(**formulas: list[Any]) -> None:
        entry = {"unit": "count", "means": "m", "section": "S", "source": "s"}
        made = {name: q._quantity(name, {**entry, "formulas": each}) for name, each in formulas.items()}
        monkeypatch.setattr(q, "quantities", lambda: made)
        _forget()

    yield define
    _forget()


def _forget() -> None:
    q._mentioned.cache_clear()
    q._chosen.cache_clear()


def test_a_quantity_is_spelt_out_in_metrics(defined: Callable[..., None]) -> None:
    defined(rate=["@work / (time.sum - 1)"], work=["2 * fma + add", "ops"])
    found = q.measure("rate", {"ops": 6, "time.sum": 4.0})
    assert found == q.Measured(2.0, "count", "ops / (time.sum - 1)", ("ops", "time.sum"))


def test_what_is_missing_is_named_by_the_first_formula(defined: Callable[..., None]) -> None:
    defined(rate=["new", "old"])
    found = q.measure("rate", {"old": "text"})
    assert isinstance(found, q.Missing)
    assert found.because == "new was not collected (ncu --section S)"


def test_a_division_by_zero_has_no_value(defined: Callable[..., None]) -> None:
    defined(rate=["1 / (a - b)"])
    found = q.measure("rate", {"a": 1, "b": 1})
    assert isinstance(found, q.Missing)
    assert found.because == "a - b is 0"


def test_a_formula_may_be_for_some_devices_only(defined: Callable[..., None]) -> None:
    defined(rate=[{"formula": "a", "since": "9.0"}, {"formula": "b", "before": "9.0"}])
    metrics = {"a": 1, "b": 2}
    values = [q.measure("rate", metrics, capability) for capability in ((9, 0), (8, 9), None)]
    assert [found.value for found in values if isinstance(found, q.Measured)] == [1, 2, 1]


def test_a_metric_without_a_number_is_told_apart_from_one_that_was_not_collected(defined: Callable[..., None]) -> None:
    defined(rate=["a + b"])
    found = q.measure("rate", {"a": None, "b": float("nan")})
    assert isinstance(found, q.Missing)
    assert found.because == "a, b were not measured: the report holds no number"


@pytest.mark.parametrize("impossible", [-1, -1e30, float("inf"), float("-inf"), 2**64 - 7])
def test_a_counter_below_nothing_is_no_number(impossible: float, defined: Callable[..., None]) -> None:
    """Also one that ran below zero and is read as unsigned."""
    defined(rate=["a"])
    found = q.measure("rate", {"a": impossible})
    assert isinstance(found, q.Missing)
    assert found.is_empty


def test_metrics_of_the_next_launch_choose_anew(defined: Callable[..., None]) -> None:
    defined(rate=["@work / a"], work=["b", "c"])
    found = [q.measure("rate", metrics) for metrics in ({"a": 2, "b": 8}, {"a": 2, "c": 6}, {"a": 4, "b": 8})]
    assert [each.value for each in found if isinstance(each, q.Measured)] == [4, 3, 2]
