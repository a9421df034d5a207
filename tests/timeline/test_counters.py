"""Sampled metrics as step functions."""

from __future__ import annotations

import numpy as np
import pytest

from diag.ingest.nsys_counters import unit_of
from diag.timeline.counters import Counter, meanings
from diag.timeline.intervals import Intervals


def counter(samples: dict[int, float]) -> Counter:
    return Counter("x", "%", np.array(list(samples), np.int64), np.array(list(samples.values()), np.float64))


def test_a_value_holds_until_the_next_sample() -> None:
    steps = counter({-10: 0, 0: 100, 10: 50})
    assert steps.period_ns == 10
    assert steps.end_ns.tolist() == [0, 10, 20]
    assert steps.mean_within(Intervals.single(-5, 5)) == 50
    assert steps.mean_within(Intervals.single(5, 20)) == pytest.approx((5 * 100 + 10 * 50) / 15)
    assert steps.mean_within(Intervals.single(20, 30)) is None


def test_where_samples_were_lost_nothing_is_known() -> None:
    steps = counter({0: 10, 10: 10, 20: 10, 500: 90, 510: 90})
    assert steps.end_ns.tolist() == [10, 20, 40, 510, 520]
    assert steps.mean_within(Intervals.single(30, 505)) == pytest.approx((10 * 10 + 5 * 90) / 15)
    assert steps.mean_within(Intervals.single(40, 500)) is None


def test_a_settled_sample_has_both_its_periods_in_the_set() -> None:
    steps = counter(dict.fromkeys(range(0, 60, 10), 1))
    assert steps.settled_within(Intervals.single(10, 50)).tolist() == [False, False, True, True, True, False]
    halves = Intervals.single(10, 25) | Intervals.single(26, 50)
    assert steps.settled_within(halves).tolist() == [False, False, False, False, True, False]


def test_one_sample_holds_for_no_time() -> None:
    assert counter({5: 1}).mean_within(Intervals.single(0, 100)) is None
    assert counter({}).mean_within(Intervals.single(0, 100)) is None


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("SMs Active [Throughput %]", "sm_active"),
        ("SM Active", "sm_active"),
        ("Unallocated Warps in Active SMs [Throughput %]", None),
        ("Tensor Active / FP16 Active", "tensor_active"),
        ("DRAM Read Throughput", "dram_read"),
        ("VRAM Write Bandwidth [Throughput %]", "dram_write"),
        ("PCIe RX Throughput [Throughput %]", "pcie_to_device"),
        ("PCIe Read Bandwidth [GB/s]", None),
        ("PCIe Read Requests to BAR1 [Requests]", None),
        ("PCIe TX Throughput", "pcie_from_device"),
        ("NVLink RX Responses Protocol Data [Throughput %]", "nvlink_to_device"),
        ("NVLink TX Requests User Data", "nvlink_from_device"),
        ("IB: Bytes sent", "network_sent"),
    ],
)
def test_names_mean_the_same_on_every_chip(name: str, meaning: str | None) -> None:
    assert [key for key, each in meanings().items() if each.pattern.fullmatch(name)] == ([meaning] if meaning else [])


def test_units_stand_in_brackets() -> None:
    assert [unit_of(name) for name in ("SM Active", "A [Throughput %]", "B [GB/s]", "C [Avg Warps per Cycle]")] == [
        "%",
        "%",
        "bytes/s",
        "Avg Warps per Cycle",
    ]
