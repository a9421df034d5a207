"""The fit, on times made with a known latency, bandwidth and noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from diag.model.collective_fit import Fit, NoFit, fit

LATENCY_NS, LINK = 20_000.0, 300e9
SIZES = [2.0**power for power in range(10, 33)]
LARGE = [2.0**power for power in range(28, 33)]


def times(sizes: Sequence[float], noise: float = 0.0, seed: int = 0) -> list[float]:
    spread = np.random.default_rng(seed).normal(1, noise, len(sizes)) if noise else np.ones(len(sizes))
    return [(LATENCY_NS + size * 1e9 / LINK) * factor for size, factor in zip(sizes, spread, strict=True)]


def fitted(sizes: Sequence[float], measured: Sequence[float]) -> Fit:
    found = fit(sizes, measured)
    assert isinstance(found, Fit)
    return found


def test_without_noise_it_finds_what_was_put_in() -> None:
    found = fitted(SIZES, times(SIZES))
    assert found.latency_ns == pytest.approx(LATENCY_NS)
    assert found.bus_bytes_per_s == pytest.approx(LINK)
    assert found.scatter == pytest.approx(0, abs=1e-9)
    assert found.is_latency_resolved
    assert found.is_straight
    assert found.predicted_ns(3.5e9) == pytest.approx(LATENCY_NS + 3.5e18 / LINK)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of 400 draws 95 % in expectation; fewer than 92 % has a chance of one in a hundred."""
    draws = [fitted(SIZES, times(SIZES, 0.03, seed)) for seed in range(400)]
    latency = sum(abs(each.latency_ns - LATENCY_NS) <= each.latency_error_ns for each in draws)
    bandwidth = sum(abs(each.bus_bytes_per_s - LINK) <= each.bus_error_bytes_per_s for each in draws)
    predicted = sum(
        abs(each.predicted_ns(7e6) - (LATENCY_NS + 7e15 / LINK)) <= each.predicted_error_ns(7e6) for each in draws
    )
    for held in (latency, bandwidth, predicted):
        assert 368 <= held <= 395


def test_the_scatter_is_the_noise() -> None:
    scatter = np.mean([fitted(SIZES, times(SIZES, 0.03, seed)).scatter for seed in range(50)])
    assert scatter == pytest.approx(0.03, rel=0.1)


def test_noise_alone_bends_no_line() -> None:
    bent = sum(not fitted(SIZES, times(SIZES, 0.03, seed)).is_straight for seed in range(100))
    assert bent == 0


def test_large_sizes_alone_do_not_show_the_latency() -> None:
    found = fitted(LARGE, times(LARGE, 0.02))
    assert not found.is_latency_resolved
    assert found.bus_bytes_per_s == pytest.approx(LINK, rel=0.05)


def test_no_latency_is_negative() -> None:
    """Times that grow faster than the size would have a line that begins below 0."""
    found = fitted(SIZES, [size * 1e9 / LINK * size**0.05 for size in SIZES])
    assert found.latency_ns == 0
    assert not found.is_latency_resolved
    assert not found.is_straight
    assert found.bus_bytes_per_s > 0


def test_a_change_of_protocol_is_told_and_not_averaged_away() -> None:
    """Up to 1 MB a protocol with a quarter of the latency and a tenth of the bandwidth."""
    measured = [LATENCY_NS / 4 + size * 1e10 / LINK if size < 1e6 else LATENCY_NS + size * 1e9 / LINK for size in SIZES]
    found = fitted(SIZES, measured)
    assert not found.is_straight
    assert len(found.off_line)


def test_one_bad_size_is_off_the_line_but_bends_it_not() -> None:
    measured = times(SIZES)
    measured[11] *= 1.3
    found = fitted(SIZES, measured)
    assert found.off_line.tolist() == [SIZES[11]]
    assert found.is_straight


@pytest.mark.parametrize(
    ("sizes", "measured", "because"),
    [
        ([1e6, 2e6, 3e6], [1.0, 2.0, 3.0], "only 3 sizes"),
        ([1e6] * 10, [1.0] * 10, "only 1 size"),
        ([0.0] * 10, [1.0] * 10, "only 0 sizes"),
        ([1e6, 2e6, 3e6, 4e6], [1.0, 2.0, 3.0, 4.0], "4 times the smallest"),
        (SIZES[:8], [20_000, 21_000, 19_000, 20_500, 19_500, 20_000, 20_400, 19_000], "does not grow"),
    ],
)
def test_it_refuses_what_does_not_determine_a_line(sizes: list[float], measured: list[float], because: str) -> None:
    refused = fit(sizes, measured)
    assert isinstance(refused, NoFit)
    assert because in refused.because


def test_the_order_of_the_measurements_does_not_matter() -> None:
    measured = times(SIZES, 0.03)
    assert fitted(SIZES[::-1], measured[::-1]).bus_bytes_per_s == fitted(SIZES, measured).bus_bytes_per_s
