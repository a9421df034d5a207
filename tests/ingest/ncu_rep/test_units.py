"""Units follow from names, as NVIDIA's reader says them.

`tests/data/ncu/units.tsv` lists what `IMetric.unit()` of ncu_report 2026.3.1 says of every metric in nine real reports.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.ingest.ncu_rep.read import read
from diag.ingest.ncu_rep.units import LONGEST_NAME, unit_of

LIST = Path(__file__).parents[2] / "data" / "ncu" / "units.tsv"
UNITS = {name: unit for name, _, unit in (line.partition("\t") for line in LIST.read_text().splitlines())}


def test_every_unit_of_the_list() -> None:
    assert len(UNITS) > 1200
    wrong = {name: (unit_of(name), unit) for name, unit in UNITS.items() if unit_of(name) != unit}
    assert not wrong


def test_every_number_in_real_reports(real_reports: list[Path]) -> None:
    """Texts have no unit, whatever their name says; the case drops it."""
    for path in real_reports:
        for launch in read(path).launches:
            for metric in launch.metrics:
                if not isinstance(metric.value, str):
                    assert metric.unit == UNITS[metric.name], metric.name


SUBMETRICS = {
    "dram__bytes.sum": "byte",
    "dram__bytes.avg.per_second": "byte/s",
    "dram__bytes.sum.per_cycle_elapsed": "byte/cycle",
    "dram__bytes.max.peak_sustained": "byte/cycle",
    "dram__bytes.sum.peak_sustained_active": "byte",
    "dram__bytes.sum.peak_sustained_active.per_second": "byte/s",
    "dram__bytes.sum.pct_of_peak_sustained_elapsed": "%",
    "sm__cycles_active.avg": "cycle",
    "sm__cycles_elapsed.avg.per_second": "hz",
    "sm__cycles_active.sum.per_cycle_elapsed": "",
    "l1tex__data_bank_reads.sum": "",
    "l1tex__data_bank_reads.sum.per_second": "1/s",
    "l1tex__data_bank_reads.sum.per_cycle_active": "1/cycle",
    "sm__warps_active.avg.per_cycle_active": "warp",
    "sm__warps_launched.sum.per_cycle_active": "warp/cycle",
    "sm__ctas_active.avg.per_cycle_active": "block",
    "sm__ctas_launched.sum.per_second": "block/s",
    "lts__t_sector_hit_rate.pct": "%",
    "lts__t_sector_hit_rate.ratio": "",
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio": "sector",
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.pct": "%",
    "smsp__average_warp_latency.max_rate": "cycle",
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio": "byte/sector",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "%",
    "lts__t_requests_srcunit_tex.sum.per_second": "request/s",
    "lts__t_tag_requests_hit.sum": "tag",
    "idc__requests.sum": "request",
    "pmsampling:dram__throughput.avg.pct_of_peak_sustained_elapsed": "%",
    "pmsampling:sm__warps_active": "warp",
}


@pytest.mark.parametrize("name", SUBMETRICS)
def test_submetrics_make_rates_and_percentages(name: str) -> None:
    assert unit_of(name) == SUBMETRICS[name]


@pytest.mark.parametrize(
    "name", ["", ".", "x", "sm__invented.sum", "sm__invented.sum.per_second", "ünbekannt", "a.b.c.d"]
)
def test_what_nobody_knows_has_none(name: str) -> None:
    assert unit_of(name) == ""


def test_a_name_without_end_is_not_searched() -> None:
    assert unit_of("_average_inst_executed" * LONGEST_NAME) == ""
