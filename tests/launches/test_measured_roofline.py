"""A launch stands under what was measured on its device, where that holds at its clocks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from diag.launches.kernel import profiled_kernels
from diag.launches.roofline import roofline_of
from diag.model.benchmark import MeasuredCeiling
from diag.model.ceilings import Arithmetic, Ceiling
from diag.model.roofline import Roofline
from tests.builders.imported import imported
from tests.builders.ncu_report import NcuReport
from tests.launches.profiles import GHZ, TIME, dram, l2, vector

FP32 = Arithmetic("fp32", "fp32")


def bandwidth(per_s: float, clock_hz: float = GHZ, level: str = "dram") -> MeasuredCeiling:
    ceiling = Ceiling(
        per_s, "bytes/s", "measured", "", "diag calibrate", level=level,  # type: ignore[arg-type]
        sm_clock_hz=clock_hz, memory_clock_hz=clock_hz,
    )  # fmt: skip
    return MeasuredCeiling(ceiling, 5, "")


def peak(per_s: float, clock_hz: float = GHZ) -> MeasuredCeiling:
    ceiling = Ceiling(per_s, "FLOP/s", "measured", "", "diag calibrate", FP32, sm_clock_hz=clock_hz)
    return MeasuredCeiling(ceiling, 5, "")


def roofline(folder: Path, ceilings: Sequence[MeasuredCeiling], memory: float = 500) -> Roofline:
    """Of 500 bytes of at most 1,000, and 2,000 FP32 operations of at most 10,000, per ns, by the report."""
    metrics = {**TIME, **dram(memory), **l2(1000), **vector("f", fma=1000)}
    with imported(NcuReport.of(metrics), folder) as case:
        (kernel,) = profiled_kernels(case, case.sources[0].id)
        kernel.measured = ceilings
        found = roofline_of(kernel)
    assert isinstance(found, Roofline)
    return found


def origins(found: Roofline) -> dict[str, tuple[str, float]]:
    return {rate.name: (rate.ceiling.origin, round(rate.share, 3)) for rate in found.rates}


def test_measured_roofs_go_before_those_of_the_report_which_are_kept(tmp_path: Path) -> None:
    found = roofline(tmp_path, [bandwidth(900 * GHZ), bandwidth(800 * GHZ), peak(8000 * GHZ)])
    assert origins(found) == {"DRAM": ("measured", 0.556), "L2": ("report", 0.25), "FP32": ("measured", 0.25)}
    kept = {(each.name, each.origin): each.per_s for each in found.others}
    assert kept["DRAM", "report"] == 1000 * GHZ
    assert kept["FP32", "report"] == 10_000 * GHZ
    assert ("DRAM", "datasheet") in kept


def test_at_another_clock_the_report_counts(tmp_path: Path) -> None:
    found = roofline(tmp_path, [bandwidth(900 * GHZ, 1.1 * GHZ), peak(8000 * GHZ, 1.04 * GHZ)])
    assert origins(found) == {"DRAM": ("report", 0.5), "L2": ("report", 0.25), "FP32": ("report", 0.2)}
    assert not [each for each in found.others if each.origin == "measured"]


def test_caches_keep_the_peak_of_their_own_counter(tmp_path: Path) -> None:
    assert origins(roofline(tmp_path, [bandwidth(3000 * GHZ, level="l2")]))["L2"] == ("report", 0.25)


def test_a_point_above_a_measured_roof_is_an_error(tmp_path: Path) -> None:
    found = roofline(tmp_path, [bandwidth(900 * GHZ)], memory=980)
    assert [limit.name for limit in found.above(0.05)] == ["DRAM"]


def test_the_other_launches_of_a_kernel_stand_under_the_same_roofs(tmp_path: Path) -> None:
    first, second = (NcuReport.of({**TIME, **dram(500), **vector("f", fma=1000)}).launches[0] for _ in range(2))
    with imported(NcuReport([first, second]), tmp_path) as case:
        (kernel,) = profiled_kernels(case, case.sources[0].id)
        kernel.measured = [bandwidth(900 * GHZ)]
        found = [roofline_of(each) for each in kernel.one_by_one()]
    assert len(found) == 2
    assert all(isinstance(each, Roofline) and origins(each)["DRAM"][0] == "measured" for each in found)
