"""The one figure that a verdict is about, and the gate that continuous integration passes or not."""

from __future__ import annotations

import pytest

from diag.compare.changes import Amount
from diag.compare.comparison import gate
from diag.errors import UsageError
from tests.builders.nsys_export import NsysExport
from tests.compare.conftest import Compare
from tests.compare.runs import US, loop


def near(amount: Amount | None, expected_ns: float) -> bool:
    return amount is not None and abs(amount.total_ns - expected_ns) <= 0.03 * expected_ns


@pytest.mark.parametrize(
    ("metric", "before_us", "after_us", "answer"),
    [
        (None, 170, 220, "regressed"),
        ("step", 170, 220, "regressed"),
        ("window", 170, 220, "regressed"),
        ("gpu-busy", 140, 190, "regressed"),
        ("kernels", 140, 190, "regressed"),
        ("kernel:gemm", 100, 150, "regressed"),
        ("kernel:relu", 20, 20, "within noise"),
        ("range:step 7", 140, 190, "regressed"),
    ],
)
def test_metrics_of_a_loop_with_steps(
    metric: str | None, before_us: int, after_us: int, answer: str, compared: Compare
) -> None:
    comparison = compared(loop(steps=True), loop(steps=True, gemm_us=150), metric=metric)
    change = comparison.headline.change
    assert comparison.answer == answer
    assert near(change.before, before_us * US)
    assert near(change.after, after_us * US)


def test_without_steps_it_is_the_time_of_all_kernels(compared: Compare) -> None:
    comparison = compared(loop(), loop(gemm_us=150))
    change = comparison.headline.change
    assert comparison.headline.metric == "kernels"
    assert near(change.before, 40 * 140 * US)
    assert change.shift is not None
    assert change.shift.n_before == 120


def test_without_gpu_work_it_is_everything_that_was_recorded(compared: Compare) -> None:
    def host(for_us: int) -> NsysExport:
        export = NsysExport()
        export.process(100).thread().range("main", 0, for_us * US)
        return export

    comparison = compared(host(100), host(101))
    assert comparison.headline.metric == "window"
    assert comparison.answer == "within noise"
    assert compared(host(100), host(140)).answer == "cannot tell"


def test_a_range_without_gpu_work_is_compared_by_its_host_time(compared: Compare) -> None:
    def waits(for_us: int) -> NsysExport:
        export = loop()
        thread = export.process(100).thread(7)
        for i in range(20):
            thread.range("load", 300 * i * US, (300 * i + for_us + i % 3) * US)
        return export

    comparison = compared(waits(100), waits(150), metric="range:load")
    assert comparison.headline.what == "host time of a range 'load'"
    assert comparison.answer == "regressed"


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("speed", "There is no --metric speed"),
        ("kernel:", "There is no --metric kernel:"),
        ("steps", "There is no --metric steps"),
        ("kernel:gem", "Did you mean 'gemm'?"),
        ("range:steps", "Neither side has what --metric range:steps is about"),
        ("launches", "Neither side has what --metric launches is about"),
    ],
)
def test_metrics_that_there_are_none_of(metric: str, said: str, compared: Compare) -> None:
    with pytest.raises(UsageError) as caught:
        compared(loop(), loop(), metric=metric)
    assert said in str(caught.value)


def test_what_only_one_side_has_cannot_be_told(compared: Compare) -> None:
    comparison = compared(loop(more=["softmax"]), loop(), metric="kernel:softmax")
    assert comparison.answer == "gone"
    assert gate(comparison, 5) == "cannot tell"


@pytest.mark.parametrize(
    ("gemm_us", "most_pct", "decided"),
    [
        (100, 0, "passed"),
        (101, 0, "passed"),  # grew, but not beyond noise
        (120, 5, "failed"),  # by 14 %
        (120, 14, "failed"),
        (120, 15, "passed"),
        (80, 0, "passed"),
    ],
)
def test_the_gate(gemm_us: int, most_pct: float, decided: str, compared: Compare) -> None:
    assert gate(compared(loop(), loop(gemm_us=gemm_us)), most_pct) == decided


def test_the_gate_is_no_judge_of_what_cannot_be_compared(compared: Compare) -> None:
    assert gate(compared(loop(), loop(grid=32)), 5) == "cannot tell"


def test_without_noise_a_small_change_passes_and_a_large_one_is_not_known(compared: Compare) -> None:
    assert gate(compared(loop(), loop(gap_us=32), metric="window"), 5) == "passed"
    assert gate(compared(loop(), loop(gap_us=90), metric="window"), 5) == "cannot tell"
