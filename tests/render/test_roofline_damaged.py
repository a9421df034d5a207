"""Whatever numbers a damaged profile holds, its rooflines are finite, and can be drawn and written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diag.launches.kernel import ProfiledKernel, profiled_kernels
from diag.render.roofline_svg import roofline_svg
from diag.render.roofline_text import roofline_lines
from diag.rules import thresholds
from diag.rules.launch_rows import launch_rows
from diag.rules.rooflines import kernel_rooflines, ladder
from tests.builders.imported import imported
from tests.builders.ncu_report import NcuReport
from tests.launches.profiles import TIME, dram, instructions, l1, l2, tensor, vector

METRICS = {
    **TIME, **dram(300), **l2(500), **l1(700), **vector("f", fma=10), **vector("d", add=3), **instructions(30),
    **tensor("src_bf16_dst_fp32", 10, 100), "sm__throughput.avg.pct_of_peak_sustained_elapsed": 50.0,
}  # fmt: skip

numbers = st.floats() | st.integers(-(2**70), 2**70) | st.sampled_from([0.0, 1e-320, 1e308, -1.0]) | st.text(max_size=3)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProfiledKernel]:
    with imported(NcuReport.of(METRICS), tmp_path_factory.mktemp("damaged")) as case:
        yield profiled_kernels(case, case.sources[0].id)[0]


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(sorted(METRICS)), numbers))
def test_rooflines_of_any_numbers(kernel: ProfiledKernel, damage: dict[str, object]) -> None:
    kernel.__dict__["metrics"] = {**METRICS, **damage}
    kernel.__dict__.pop("_quantities", None)
    launches = launch_rows(kernel.case, [kernel], ladder(thresholds.load()["ncu.roofline"]))
    rows = kernel_rooflines([kernel], launches)
    json.dumps([asdict(row) for row in rows], allow_nan=False)
    assert all(len(line) <= 80 for line in roofline_lines(rows))
    assert roofline_svg(rows).endswith("</svg>\n")
