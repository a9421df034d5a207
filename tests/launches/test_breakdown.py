"""What a throughput is made of, and what remains without a part of it."""

from __future__ import annotations

from pathlib import Path

from diag.launches.breakdown import THROUGHPUT, floor_pct, units_used
from diag.launches.kernel import profiled_kernels
from tests.builders.imported import imported
from tests.builders.ncu_report import NcuReport

OF_PEAK = ".avg.pct_of_peak_sustained_elapsed"
REPORT = NcuReport.of(
    {
        f"breakdown:{THROUGHPUT['sm']}": f"sm__pipe_alu_cycles_active{OF_PEAK},sm__new_counter{OF_PEAK},'; DROP TABLE",
        f"sm__pipe_alu_cycles_active{OF_PEAK}": 70.0,
        f"sm__new_counter{OF_PEAK}": 20.0,
        f"sm__pipe_fma_cycles_active{OF_PEAK}": 90.0,
        "'; DROP TABLE": 99.0,
        f"lts__t_sectors{OF_PEAK}": 40.0,
        f"dram__cycles_active{OF_PEAK}": 30.0,
    }
)


def test_a_report_says_what_its_throughput_is_made_of(tmp_path: Path) -> None:
    """Another counter of the SMs is not among it, and only names of metrics are looked up."""
    with imported(REPORT, tmp_path) as case:
        (kernel,) = profiled_kernels(case, case.sources[0].id)
        assert [(unit.name, unit.pct) for unit in units_used(kernel, "sm")] == [
            ("the ALU pipe", 70.0),
            (f"sm__new_counter{OF_PEAK}", 20.0),
        ]
        assert [unit.name for unit in units_used(kernel, "memory")] == ["L2 lookups (sectors)", "device memory"]


def test_what_remains_is_the_busiest_of_the_other_units(tmp_path: Path) -> None:
    with imported(REPORT, tmp_path) as case:
        (kernel,) = profiled_kernels(case, case.sources[0].id)
        assert floor_pct(kernel, without=()) == 70.0
        assert floor_pct(kernel, without=("sm__pipe_alu_cycles_active",)) == 40.0
