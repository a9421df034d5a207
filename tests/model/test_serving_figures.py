"""The names of figures have units that diag can show."""

from __future__ import annotations

import pytest

from diag.model import units
from diag.model.serving_figures import UNITS
from diag.model.serving_metrics import LATENCIES, ServedRequest, prefix_hit_share


@pytest.mark.parametrize("name", UNITS)
def test_every_figure_has_a_unit_that_can_be_shown(name: str) -> None:
    assert UNITS[name] in units.EVIDENCE
    assert units.quantity(1.0, UNITS[name])


def test_latencies_are_called_as_the_metrics_are() -> None:
    assert set(LATENCIES) - {"send_delay"} <= set(UNITS)


def test_rates_as_people_read_them() -> None:
    assert units.quantity(8.3535, "requests/s") == "8.35 requests/s"
    assert units.quantity(4288.05, "tokens/s") == "4,288 tokens/s"


def test_prompts_that_the_cache_held_nothing_of_count_as_nothing() -> None:
    of = [ServedRequest(n, prompt_tokens=100, cached_tokens=cached) for n, cached in enumerate((0, 50, None))]
    assert prefix_hit_share(of) == 0.25
    assert prefix_hit_share(of[2:]) is None
