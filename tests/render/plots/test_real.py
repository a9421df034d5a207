"""Plots of real reports, where there are any: well-formed, bounded, and those that the kind of report has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.render.plots.cases import drawn
from tests.render.plots.reading import parsed

REPORTS = os.environ.get("DIAG_REAL_REPORTS")

TIMELINE, PROFILE = {"timeline", "devices", "kernels"}, {"speed_of_light", "occupancy", "stalls"}
CASES = {
    "nsys/h100x2-offload.sqlite": TIMELINE | {"findings"},
    "nsys/titanrtx-nvtx-22k.sqlite": {"timeline"},
    "ncu/a100-selfjoin-full.ncu-rep": PROFILE | {"roofline", "findings"},
    "kineto/resnet50-workers0.pt.trace.json.gz": TIMELINE | {"steps"},
    "kineto/job128-rank0.json.gz kineto/job128-rank1.json.gz": TIMELINE | {"steps", "ranks"},
}


@pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS is not set")
@pytest.mark.parametrize("inputs", CASES)
def test_real_reports_have_their_plots(inputs: str) -> None:
    made = {name: svg for name, svg in drawn([Path(str(REPORTS)) / each for each in inputs.split()]).items() if svg}
    assert made.keys() >= CASES[inputs]
    for svg in made.values():
        parsed(svg)
