"""The rules about memory on the real reports of Nsight Compute, against calculations by hand.

Values of metrics are literal, as NVIDIA's own reader gives them; the arithmetic is written out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.launches.kernel import ProfiledKernel, profiled_kernels
from diag.rules import engine, running, thresholds
from diag.rules.finding import Answer, CannotTell, Clear
from tests.rules.asking import figures, only_finding

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
pytestmark = pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")

FOLDER = Path(REPORTS or "no-reports") / "ncu"
RULES = (
    "ncu.coalescing",
    "ncu.bank_conflicts",
    "ncu.spills",
    "ncu.l1_hit_rate",
    "ncu.dram_traffic",
    "ncu.remote_memory",
)


@contextmanager
def kernels_of(name: str) -> Iterator[list[ProfiledKernel]]:
    with open_inputs([FOLDER / f"{name}.ncu-rep"], ImportOptions(use_cache=False)) as case:
        yield [kernel for source in case.sources for kernel in profiled_kernels(case, source.id)]


def ask(rule_id: str, kernel: ProfiledKernel, **changed: float) -> list[Answer]:
    rule = engine.rules()[rule_id]
    assert isinstance(rule, engine.KernelRule)
    return list(running.run_on_kernel(rule, kernel, {**thresholds.load()[rule_id], **changed}))


# ---- a100-selfjoin-14launches: one kernel, 14 launches, whose median is number 2 ------------------------------------


def test_14launches_loads_are_uncoalesced() -> None:
    with kernels_of("a100-selfjoin-14launches") as (kernel,):
        finding = only_finding(ask("ncu.coalescing", kernel))
    found = figures(finding)
    # memory_l2_theoretical_sectors_global 138,788,704,045, ideal 108,473,645,885: 30,315,058,160 in excess.
    assert found["excess"] == pytest.approx(30_315_058_160 / 138_788_704_045)  # 21.8 %
    # Of stores, 507,200 = 2 * 253,600 sectors for 504,716 = 2 * 252,358.
    assert found["excess of stores"] == pytest.approx((507_200 - 504_716) / 507_200)  # 0.49 %
    # LDG.E.64 at 0x153b15279090: 109,729,596,778 sectors for 79,790,199,469, in 20,416,551,126 requests of
    # 289,401,466,224 lanes with 8 bytes each.
    assert found["excess of the instruction at 0x153b15279090"] == 109_729_596_778 - 79_790_199_469
    asked = found["bytes per sector that lanes of the instruction at 0x153b15279090 ask for"]
    assert asked == pytest.approx(289_401_466_224 * 8 / 109_729_596_778)  # 21.1 of 32
    # 109,729,596,778 / 20,416,551,126 = 5.3745; 79,790,199,469 / 20,416,551,126 = 3.9081;
    # 29,939,397,309 / 30,315,058,160 = 98.76 %.
    assert (
        "98.8 % of the excess comes from the instruction at 0x153b15279090: 5.37 sectors per request, where its lanes "
        "fill 3.91." in finding.claim
    )
    # l1tex: 138,282,007,527 sectors of loads in 45,284,943,522 requests.
    assert found["Sectors per request of global loads"] == pytest.approx(138_282_007_527 / 45_284_943_522)  # 3.05
    # lts: 22,907,428,567 sectors of reads in 16,658,761,953 requests: 1.4 of the 4 in a cache line.
    per_line = found["Sectors per request of L1 to the L2 cache, of the 4 in a cache line"]
    assert per_line == pytest.approx(22_907_428_567 / 16_658_761_953)
    # L1 is at 36.2 % of its peak. Warps wait 14.318384 + 0.000031 of 24.458063 cycles: 58.5 %. The 14 launches take
    # 40,795,683,136 ns.
    wait = (14.318383948784478 + 0.00003055558823176196) / 24.458062543209554
    assert finding.recoverable_ns == pytest.approx(30_315_058_160 / 138_788_704_045 * wait * TOTAL_14_NS, rel=1e-9)


TOTAL_14_NS = 40_795_683_136


def test_14launches_has_no_other_fault_of_memory() -> None:
    """No shared, local or remote memory; 720.5 GB from L2 are a third of 108 * 19.1 GB; device memory is at 3.5 %."""
    with kernels_of("a100-selfjoin-14launches") as (kernel,):
        for rule in RULES[1:]:
            assert [type(answer) for answer in ask(rule, kernel)] == [Clear], rule
        (refetch,) = ask("ncu.l1_hit_rate", kernel, refetch=0.3)
    # 720,542,264,800 / (108 * 19,147,222,044) = 0.34847
    assert figures(only_finding([refetch]))["fetches per SM"] == pytest.approx(0.34847, rel=1e-4)


# ---- a100-selfjoin-full: one kernel with four grids ----------------------------------------------------------------


def test_full_loads_are_uncoalesced() -> None:
    with kernels_of("a100-selfjoin-full") as kernels:
        finding = only_finding(ask("ncu.coalescing", kernels[0]))
    # 402,223,530,291 sectors for 332,435,761,751: 69,787,768,540 in excess.
    assert figures(finding)["excess"] == pytest.approx(69_787_768_540 / 402_223_530_291)  # 17.4 %
    # 272,118,306,301 and 203,131,397,862 in 44,044,810,983 requests: 6.1782 and 4.6120; 68,986,908,439 of the excess.
    assert "98.9 % of the excess comes from the instruction at 0x15354affb6b0: 6.18 sectors" in finding.claim
    assert "fill 4.61" in finding.claim
    # Warps wait (18.551621 + 0.004223) / 27.829759 = 66.7 % of their time; L1 is at 46.0 %. It takes 7,543,142,976 ns.
    wait = (18.551621466183207 + 0.004223128790271054) / 27.829759404432522
    won_ns = 69_787_768_540 / 402_223_530_291 * wait * 7_543_142_976
    assert finding.recoverable_ns == pytest.approx(won_ns, rel=1e-9)  # 872.6 ms


def test_full_sms_fetch_all_of_memory_again() -> None:
    with kernels_of("a100-selfjoin-full") as kernels:
        finding = only_finding(ask("ncu.l1_hit_rate", kernels[0]))
    # l1tex__m_xbar2l1tex_read_bytes 8,648,497,413,056 for 108 SMs that can reach 17,022,602,295 bytes.
    refetch = 8_648_497_413_056 / (108 * 17_022_602_295)
    assert refetch == pytest.approx(4.70426, rel=1e-5)
    assert figures(finding)["fetches per SM"] == pytest.approx(refetch)
    # 78.7 % of what warps wait for, 66.7 % of the time, would be 52.5 %; but the SMs are at 51.659 % of their peak.
    wait = (18.551621466183207 + 0.004223128790271054) / 27.829759404432522
    assert (1 - 1 / refetch) * wait == pytest.approx(0.525, abs=1e-3)
    assert finding.recoverable_ns == pytest.approx((1 - 0.5165900278421898) * 7_543_142_976, rel=1e-9)
    # lts__t_sectors_srcunit_ltcfabric 40,975,735,963 of lts__t_sectors_srcunit_tex 270,573,817,859.
    far = figures(finding)["Sectors that SMs ask for and that lie in the other half of the L2 cache"]
    assert far == pytest.approx(40_975_735_963 / 270_573_817_859)  # 15.1 %


def test_full_traffic_of_device_memory_sets_no_pace() -> None:
    """It reads 94 times what it can reach, with 13.7 % of the bandwidth; were that much, nearly all would be excess."""
    with kernels_of("a100-selfjoin-full") as kernels:
        assert isinstance(ask("ncu.dram_traffic", kernels[0])[0], Clear)
        found = figures(only_finding(ask("ncu.dram_traffic", kernels[0], busy=0.1)))
    read, written = 1_604_068_145_024, 500_148_608
    before = found["was read before, of all traffic"]
    assert before == pytest.approx((read - 17_022_602_295) / (read + written))  # 98.9 %
    # 270,185,315,384 sectors read by SMs, 220,678,008,775 of them held; one of 62,075,465 atomics missed.
    missed = 32 * (270_185_315_384 - 220_678_008_775 + 1)
    along = found["came along with what was asked for, of all traffic"]
    assert along == pytest.approx((read - missed) / (read + written))  # 1.2 %


@pytest.mark.parametrize("rule", ["ncu.bank_conflicts", "ncu.spills", "ncu.remote_memory"])
def test_full_uses_no_shared_local_or_remote_memory(rule: str) -> None:
    with kernels_of("a100-selfjoin-full") as kernels:
        assert all(isinstance(ask(rule, kernel)[0], Clear) for kernel in kernels)


# ---- reports that lack the metrics ---------------------------------------------------------------------------------

NAMED: Mapping[str, tuple[str, str]] = {
    "ncu.coalescing": ("memory_l2_theoretical_sectors_global", "SourceCounters"),
    "ncu.bank_conflicts": ("memory_l1_wavefronts_shared", "SourceCounters"),
    "ncu.spills": ("smsp__sass_inst_executed_op_local_ld.sum", "MemoryWorkloadAnalysis_Tables"),
    "ncu.l1_hit_rate": ("l1tex__m_xbar2l1tex_read_bytes.sum", "MemoryWorkloadAnalysis_Chart"),
    "ncu.dram_traffic": ("dram__bytes_read.sum", "MemoryWorkloadAnalysis_Tables"),
    "ncu.remote_memory": ("lts__t_sectors_srcunit_tex_aperture_sysmem_lookup_miss.sum", "MemoryWorkloadAnalysis_Chart"),
}


@pytest.mark.parametrize(
    "name",
    [
        "a100-selfjoin-2020.3",
        "a100-selfjoin-higgs",  # names 486 metrics, all without a number: its launch was never measured
        "a10g-esmm-basic",
        "a10g-esmm-no-rules",
        "a10g-esmm-small",
        "cuda-course",
        "gh200-nuclear-fast",
    ],
)
def test_what_is_missing_is_named_with_the_section_that_collects_it(name: str) -> None:
    with kernels_of(name) as kernels:
        assert kernels
        for rule, (metric, section) in NAMED.items():
            for kernel in kernels:
                (answer,) = ask(rule, kernel)
                assert isinstance(answer, CannotTell), (rule, kernel.launch.name)
                assert metric in answer.because
                is_empty = name == "a100-selfjoin-higgs" and "the report holds no number" in answer.because
                assert is_empty or f"--section {section}" in answer.because
