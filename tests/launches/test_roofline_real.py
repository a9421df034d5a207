"""Rooflines of real reports, held against what a pocket calculator makes of the metrics that ncu prints for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.launches.kernel import ProfiledKernel, Untold, profiled_kernels
from diag.launches.roofline import roofline_of
from diag.model.roofline import Ladder, Roofline

REPORTS = Path(os.environ.get("DIAG_REAL_REPORTS", "/nonexistent")) / "ncu"
LADDER = Ladder(low=0.6, even=0.1, slack=0.05)

pytestmark = pytest.mark.skipif(not REPORTS.is_dir(), reason="DIAG_REAL_REPORTS names no folder of real reports")


@contextmanager
def launches(name: str) -> Iterator[dict[int, ProfiledKernel]]:
    """Each launch of a report by the number that ncu prints."""
    with open_inputs([REPORTS / name], ImportOptions(use_cache=False)) as case:
        kernels = [kernel for source in case.sources for kernel in profiled_kernels(case, source.id)]
        yield {alone.launch.number: alone for kernel in kernels for alone in kernel.one_by_one()}


def roofline(kernel: ProfiledKernel) -> Roofline:
    found = roofline_of(kernel)
    assert isinstance(found, Roofline), found
    return found


def test_a_launch_of_fp64_on_an_a100() -> None:
    """The first of a100-selfjoin-full: `ncu --import FILE --page raw --print-units base` prints these metrics."""
    with launches("a100-selfjoin-full.ncu-rep") as kernels:
        found = roofline(kernels[0])
    sm_clock, memory_clock, duration_s = 762_131_062.2177526, 1_210_443_449.8259733, 7.543142976
    dadd = dfma = 132.64541049398719  # instructions of threads per cycle; no other operation was executed
    flops_per_s = (dadd + 2 * dfma) * sm_clock
    assert flops_per_s == pytest.approx(303.28e9, rel=1e-4)
    peak_flops_per_s = 2 * 3456 * sm_clock
    dram, dram_peak = 212_718_796_228.21033, 1280 * memory_clock
    assert dram_peak == pytest.approx(1.5494e12, rel=1e-4)
    l2 = 32 * 47_390_643_884.4359
    l2_peak = l2 / 0.3964086622771855
    l1 = 128 * 272_591_098_115 / duration_s
    l1_peak = l1 / 0.4390418417526823
    instructions, most = 1_258_336_077_338 / duration_s, 108 * 4 * sm_clock

    assert [rate.name for rate in found.rates] == ["DRAM", "L2", "L1", "FP64", "instructions"]
    assert [rate.per_s for rate in found.rates] == pytest.approx([dram, l2, l1, flops_per_s, instructions])
    assert [rate.ceiling.per_s for rate in found.rates] == pytest.approx(
        [dram_peak, l2_peak, l1_peak, peak_flops_per_s, most]
    )
    assert l1_peak == pytest.approx(108 * 128 * sm_clock, rel=1e-3)  # 128 bytes in a cycle of each SM
    over_dram, over_l2, over_l1 = found.positions
    assert over_dram.intensity == pytest.approx(1.4257, rel=1e-4)
    assert over_dram.ridge_point == pytest.approx(3.3999, rel=1e-4)
    assert over_dram.attainable_per_s == pytest.approx(1.4257 * 1.5494e12, rel=1e-4)
    assert over_l2.intensity == pytest.approx(flops_per_s / l2)
    assert over_l1.intensity == pytest.approx(0.06556, rel=1e-3)
    assert {limit.name: round(limit.share, 3) for limit in found.limits} == {
        "DRAM": 0.137,
        "L2": 0.396,
        "L1": 0.439,
        "FP64": 0.058,
        "instructions": 0.507,
        "SM speed of light": 0.517,
        "memory speed of light": 0.444,
    }
    assert found.bound(LADDER) == "latency"
    assert found.headroom == pytest.approx(1 - 0.5165900278421898)


def test_shares_of_ceilings_are_those_that_ncu_gives() -> None:
    """What ncu prints as a share of the peak, and what rates and peaks from other metrics come to."""
    given = {
        "DRAM": "dram__bytes_read.sum.pct_of_peak_sustained_elapsed",
        "instructions": "sm__inst_executed.avg.pct_of_peak_sustained_elapsed",
    }
    for name in ("a100-selfjoin-full.ncu-rep", "a100-selfjoin-14launches.ncu-rep"):
        with launches(name) as kernels:
            for kernel in kernels.values():
                shares = {limit.name: limit.share for limit in roofline(kernel).limits}
                for limit, metric in given.items():
                    assert 100 * shares[limit] == pytest.approx(kernel.metrics[metric], rel=1e-3, abs=1e-3)


def test_every_launch_of_the_a100_reports_with_counters_is_decided() -> None:
    for name, n_launches in (("a100-selfjoin-full.ncu-rep", 4), ("a100-selfjoin-14launches.ncu-rep", 14)):
        with launches(name) as kernels:
            rooflines = [roofline(kernel) for kernel in kernels.values()]
        assert len(rooflines) == n_launches
        assert {found.bound(LADDER) for found in rooflines} == {"latency"}
        assert all(0 < found.headroom < 1 for found in rooflines)
        assert all(position.share < 1 for found in rooflines for position in found.positions)


def test_another_launch_of_fp64() -> None:
    """The seventh of a100-selfjoin-14launches: 378.1 FLOP per cycle, 60.8 GB/s."""
    with launches("a100-selfjoin-14launches.ncu-rep") as kernels:
        found = roofline(kernels[6])
    over_dram = found.positions[0]
    flops_per_s = 3 * 126.03581230949797 * 768_603_411.0573288
    assert over_dram.work.per_s == pytest.approx(flops_per_s)
    assert over_dram.intensity == pytest.approx(flops_per_s / 60_766_392_233.37281)
    assert over_dram.intensity == pytest.approx(4.7825, rel=1e-4)
    assert over_dram.side == "compute"
    assert over_dram.attainable_per_s == pytest.approx(2 * 3456 * 768_603_411.0573288)


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("a100-selfjoin-higgs.ncu-rep", "dram__bytes.sum.per_second"),  # NVIDIA's own reader gives NaN for all counters
        ("a100-selfjoin-2020.3.ncu-rep", "dram__bytes.sum.per_second"),
        ("a10g-esmm-basic.ncu-rep", "dram__bytes.sum.per_second"),
        ("a10g-esmm-no-rules.ncu-rep", "dram__bytes.sum.per_second"),
        ("a10g-esmm-small.ncu-rep", "dram__bytes.sum.per_second"),
        ("cuda-course.ncu-rep", "dram__bytes.sum.per_second"),
        ("gh200-nuclear-fast.ncu-rep", "dram__bytes.sum.per_second"),
    ],
)
def test_reports_without_the_counters_cannot_tell_and_name_them(name: str, metric: str) -> None:
    with launches(name) as kernels:
        found = [roofline_of(kernel) for kernel in kernels.values()]
    assert all(isinstance(each, Untold) and metric in each.because for each in found)
