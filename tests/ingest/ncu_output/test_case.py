"""What ncu printed, in the case."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from diag.errors import InputError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.ncu_output.read import read_csv, read_text
from diag.launches.launch import launches_of, metrics_of
from diag.store.case import Case
from tests.builders.printed_pages import FOLDER
from tests.ingest.ncu_output.pages import details, figure, message, saved
from tests.ingest.ncu_output.test_text_pages import NEW

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
REAL = Path(REPORTS or "no-reports") / "ncu"

real = pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")


@contextmanager
def case_of(path: Path) -> Iterator[Case]:
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        yield case


def test_each_launch_knows_its_device(tmp_path: Path) -> None:
    with case_of(FOLDER / "raw-base.csv") as case:
        launches = launches_of(case, case.sources[0].id)
        assert [(launch.pid, launch.device, launch.gpu.sm_count) for launch in launches] == [
            (101, 0, 108),
            (101, 0, 108),
            (202, 1, 108),
        ]
        assert [launch.duration_ns for launch in launches] == [1_127_392, 1_127_392_000, 7_891_744]
        assert launches[0].registers_per_thread == 40
        assert launches[0].shared_executed_bytes == 32_768


def test_what_a_page_does_not_have_is_not_captured(tmp_path: Path) -> None:
    """Zero would say that nothing was there."""
    path = saved(details(figure("gpu__time_duration.sum", "ns", "5")), tmp_path)
    with case_of(path) as case:
        (source,) = case.sources
        unknown = ("launch_rule", "launch_range", "launch_stall", "launch_instruction")
        assert source.capabilities == {"launch": 1, "launch_metric": 1, **dict.fromkeys(unknown)}


def test_rules_that_were_printed_count(tmp_path: Path) -> None:
    line = figure("gpu__time_duration.sum", "ns", "5")
    path = saved(details(line, message("SpeedOfLight", "SOLBottleneck", "INF", "Well.", "", "")), tmp_path)
    with case_of(path) as case:
        assert case.sources[0].capabilities["launch_rule"] == 1
        assert case.value("SELECT section FROM launch_rule") == "SpeedOfLight"


def test_conditions_are_not_known(tmp_path: Path) -> None:
    with case_of(saved(NEW, tmp_path, "page.txt")) as case:
        launch = launches_of(case, case.sources[0].id)[0]
        assert (launch.is_clock_locked, launch.cache_control, launch.replay) == (None, None, None)


def test_a_file_without_a_launch(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no launch that Nsight Compute printed"):
        read_csv(saved(details(), tmp_path))
    with pytest.raises(InputError, match="ncu said: No kernels were profiled"):
        read_text(saved("==WARNING== No kernels were profiled.\n", tmp_path))


@real
def test_metrics_of_an_a10g() -> None:
    with case_of(REAL / "a10g-esmm-metrics.csv") as case:
        launches = launches_of(case, case.sources[0].id)
        assert len(launches) == 9
        first = launches[0]
        assert (first.short_name, first.grid, first.block, first.pid) == ("basic", (32, 32, 1), (32, 32, 1), 17333)
        assert first.gpu.compute_capability == (8, 6)
        assert metrics_of(case, first.id) == {
            "dram__bytes.sum": 32_746_880,
            "gpu__time_duration.sum": 10_776_576,
            "sm__sass_thread_inst_executed_op_fadd_pred_on.sum": 0,
            "sm__sass_thread_inst_executed_op_ffma_pred_on.sum": 1_073_741_824,
            "sm__sass_thread_inst_executed_op_fmul_pred_on.sum": 1_048_576,
        }
        assert launches[-1].short_name == "ampere_sgemm_128x64_nn"
        assert metrics_of(case, launches[-1].id)["sm__sass_thread_inst_executed_op_fmul_pred_on.sum"] == 5_242_880
        assert sum(len(metrics_of(case, launch.id)) for launch in launches) == 45


@real
def test_details_of_a_t4() -> None:
    with case_of(REAL / "copy-blocked-details.csv") as case:
        (launch,) = launches_of(case, case.sources[0].id)
        assert launch.short_name == "copy_blocked"
        assert (launch.grid, launch.block, launch.gpu.compute_capability) == ((1024, 1, 1), (256, 1, 1), (7, 5))
        metrics = metrics_of(case, launch.id)
        assert metrics["gpu__time_duration.sum"] == launch.duration_ns == 21_058_944
        assert metrics["dram__bytes.sum.per_second"] == 196_456_177_859.63
        assert metrics["gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"] == 61.84
        assert metrics["smsp__cycles_elapsed.sum"] == 1_966_292_704
        # 83 rows: 11 messages of rules, 72 figures; SM Active Cycles and Average SM Active Cycles are one metric.
        assert len(metrics) == 71
        rules = [tuple(row) for row in case.rows("SELECT rule, type, speedup_pct, speedup_kind FROM launch_rule")]
        assert len(rules) == 11
        assert rules[0] == ("SOLBottleneck", "optimization", None, None)
        assert rules[-1] == ("UncoalescedGlobalAccess", "optimization", 74.14, "global")
