"""Issue, stalls and arithmetic on real reports: decisions, and figures worked out by hand from the metrics' values."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.launches.kernel import ProfiledKernel, profiled_kernels
from diag.launches.stalls import stalls_of
from diag.rules import engine, running, thresholds
from diag.rules.finding import Answer, CannotTell, Clear, Finding
from tests.rules.asking import figures

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
pytestmark = pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")


@contextmanager
def kernels_of(name: str) -> Iterator[list[ProfiledKernel]]:
    with open_inputs([Path(REPORTS or "", "ncu", f"{name}.ncu-rep")], ImportOptions(use_cache=False)) as case:
        yield profiled_kernels(case, case.sources[0].id)


def answer(rule_id: str, kernel: ProfiledKernel) -> Answer:
    rule, limits = engine.rules()[rule_id], thresholds.load().get(rule_id, {})
    assert isinstance(rule, engine.KernelRule)
    (only,) = running.run_on_kernel(rule, kernel, limits)
    return only


def fired(rule_id: str, kernel: ProfiledKernel) -> Finding:
    found = answer(rule_id, kernel)
    assert isinstance(found, Finding), f"{rule_id}: {found}"
    return found


def test_fourteen_launches_of_one_kernel() -> None:
    """The third launch is the median one; all fourteen take 40.796 s, and each bound is a share of that."""
    total_ns = 40_795_683_136
    with kernels_of("a100-selfjoin-14launches") as (kernel,):
        assert (kernel.launch.number, kernel.total_ns) == (2, total_ns)

        sol = fired("ncu.speed_of_light", kernel)
        assert sol.title == "nodeByPoint5 is latency-bound at 35.7 % of the device's peak"
        assert "busiest the issue slots; " in sol.claim
        assert "busiest the L1 data stage (LSU wavefronts)" in sol.claim
        assert sol.recoverable_ns == int(total_ns * (1 - 35.69048900878718 / 100))

        slots = fired("ncu.issue_slots", kernel)
        assert figures(slots)["issue slots busy"] == 0.46084327877376824
        assert slots.recoverable_ns == int(total_ns * (1 - 0.46084327877376824))
        assert "Fewer warps are there than the launch allows" in slots.claim  # 11.27 < 0.8 · 16

        stalls = fired("ncu.stalls", kernel)
        assert figures(stalls)["long_scoreboard"] == pytest.approx(14.3183839487845 / 24.4580625432096)  # 0.585 > 0.539
        assert stalls.recoverable_ns == slots.recoverable_ns
        assert figures(stalls)["waiting at 0x153b152790b0"] == 414_254

        divergence = fired("ncu.divergence", kernel)
        assert divergence.recoverable_ns == pytest.approx(total_ns * (1 - 14.284553584182305 / 32), abs=1)
        assert "Threads part most often at 0x153b152790f0 (99.9 % of the times)." in divergence.claim

        imbalance = fired("ncu.imbalance", kernel)
        idle = 1 - 2053187335.6666667 / 2518858254.0
        assert figures(imbalance)["SM idle"] == pytest.approx(idle)
        assert "equal blocks would leave up to 40.7 % idle" in imbalance.claim  # 1 - 1.185 / 2

        conditions = fired("ncu.conditions", kernel)
        assert "742.6 MHz of 1.4 GHz, locked by ncu" in conditions.title
        assert "14 launches of it seem to run at 736.0 MHz to 821.6 MHz" in conditions.claim
        assert "warp samples cover 1.7 % of the launch" in conditions.claim.lower()  # 3669964 · 1024 / (2.053e9 · 108)

        for rule_id in ("ncu.pipes", "ncu.tensor_cores", "ncu.fp64", "ncu.fused_multiply_add"):
            assert isinstance(answer(rule_id, kernel), Clear)


def test_four_launches_with_all_sections() -> None:
    """The first: 7.543 s; 53.7 % of the slots, 24.3 threads, of which predicates leave 22.6."""
    took_ns = 7_543_142_976
    with kernels_of("a100-selfjoin-full") as (first, *others):
        assert len(others) == 3
        assert fired("ncu.speed_of_light", first).recoverable_ns == int(took_ns * (1 - 51.659002784219 / 100))
        slots = fired("ncu.issue_slots", first)
        assert slots.recoverable_ns == pytest.approx(took_ns * (1 - 0.537176872587078), abs=1)
        assert "There are warps enough: they wait." in slots.claim  # 14.95 of 16
        stalls = fired("ncu.stalls", first)
        assert figures(stalls)["long_scoreboard"] == pytest.approx(18.5516214661832 / 27.8297594044325)
        divergence = fired("ncu.divergence", first)
        assert divergence.recoverable_ns == pytest.approx(took_ns * (1 - 22.5653281890414 / 32), abs=1)
        assert figures(divergence)["Branches that all threads of the warp took alike"] == pytest.approx(
            79.9863752150377
        )
        for kernel in (first, *others):
            assert isinstance(answer("ncu.imbalance", kernel), Clear)  # 1 - 5540951935.5 / 5748863577 = 0.036
            assert isinstance(answer("ncu.pipes", kernel), Clear)  # FMA, 37.8 %


def test_counters_and_samples_give_shares_of_their_own() -> None:
    """Samples fill their buffer in the first hundredth of the launch: they do not speak for all of it."""
    with kernels_of("a100-selfjoin-full") as (first, *_):
        found = {(stall.share_of, stall.reason): stall.share for stall in stalls_of(first)}
    assert found["latency", "long_scoreboard"] == pytest.approx(18.5516214661832 / 27.8297594044325)
    assert found["samples", "long_scoreboard"] == pytest.approx(1_615_350 / 3_669_964)
    assert found["samples", "no_instruction"] == pytest.approx(50_292 / 3_669_964)
    assert not [reason for _, reason in found if "selected" in reason]


def test_additions_that_have_no_product_are_not_to_be_fused() -> None:
    """20.4 G DADD and as many DFMA, and not one DMUL; Nsight Compute's own rule promises up to 25 % more."""
    with kernels_of("a100-selfjoin-14launches") as (kernel,):
        assert kernel.value("fp64_adds") == kernel.value("fp64_fused") > 0
        assert kernel.value("fp64_multiplications") == 0
        assert isinstance(answer("ncu.fused_multiply_add", kernel), Clear)


def test_a_launch_without_values_is_said_to_be_one() -> None:
    with kernels_of("a100-selfjoin-higgs") as (kernel,):
        conditions = fired("ncu.conditions", kernel)
        assert "the launch was not measured: 477 of its 498 counters have no value" in conditions.title
        for rule_id in MEASURED_RULES:
            assert isinstance(answer(rule_id, kernel), CannotTell)


MEASURED_RULES = ("ncu.speed_of_light", "ncu.issue_slots", "ncu.stalls", "ncu.divergence", "ncu.pipes", "ncu.fp64")
FEW_METRICS = ("a100-selfjoin-2020.3", "a10g-esmm-basic", "a10g-esmm-small", "cuda-course", "gh200-nuclear-fast")


@pytest.mark.parametrize("name", FEW_METRICS)
@pytest.mark.parametrize(
    ("rule_id", "metric", "section"),
    [
        ("ncu.issue_slots", "smsp__issue_active.avg.per_cycle_active", "SchedulerStats"),
        ("ncu.stalls", "smsp__issue_active.avg.per_cycle_active", "SchedulerStats"),
        ("ncu.divergence", "smsp__thread_inst_executed_per_inst_executed.ratio", "WarpStateStats"),
    ],
)
def test_reports_with_few_metrics_name_what_is_missing(name: str, rule_id: str, metric: str, section: str) -> None:
    with kernels_of(name) as (kernel, *_):
        untold = answer(rule_id, kernel)
        assert isinstance(untold, CannotTell)
        assert metric in untold.because
        assert f"--section {section}" in untold.because


def test_fp64_on_a_device_that_is_slow_at_it() -> None:
    """75.6 % of the launch on a GeForce, but the ALU pipe is at 80.3 %: without FP64 a fifth is won at most."""
    with kernels_of("cuda-course") as (kernel, _):
        fp64 = fired("ncu.fp64", kernel)
        assert figures(fp64)["FP64 pipe"] == pytest.approx(75.5656102480102)
        assert fp64.recoverable_ns == pytest.approx(1_168_077_824 * (1 - 0.803021571553682), abs=1)
        assert "No other unit of the device is busier than 75.6 %." in fired("ncu.pipes", kernel).claim


def test_the_ladder_agrees_with_nvidias_on_every_launch() -> None:
    """Their rule warns of a latency issue, says balanced or high throughput; ours fires or is clear."""
    for name in (*FEW_METRICS, "a100-selfjoin-14launches", "a100-selfjoin-full"):
        with kernels_of(name) as kernels:
            for kernel in kernels:
                titles = kernel.case.db.execute(_LADDER, (kernel.launch.id,)).fetchall()
                if titles and not isinstance(ours := answer("ncu.speed_of_light", kernel), CannotTell):
                    assert isinstance(ours, Clear) == (titles[0][0] in ("High Throughput", "Balanced Throughput"))


_LADDER = "SELECT title FROM launch_rule WHERE launch_id = ? AND rule = 'SOLBottleneck' AND type <> 'error'"
