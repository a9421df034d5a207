"""Every plot of synthetic evidence, compared with its picture in docs/images/plots, which docs/plots.md shows."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from diag.render.plots.gallery import NAMES
from diag.render.plots.occupancy import occupancy
from diag.render.plots.ranks import ranks
from diag.render.plots.speed_of_light import speed_of_light
from diag.render.plots.stalls import stalls
from diag.render.roofline_svg import roofline_svg
from tests import documented
from tests.render.conftest import make_report
from tests.render.plots.cases import drawn, job, launch
from tests.render.plots.reading import parsed
from tests.render.rooflines import kernel

ROOT = Path(__file__).parents[3]
LAUNCHES = make_report(launches=[launch("gemm", 4.0), launch("softmax", 1.5), launch("layer_norm", 0.8)])

BY_HAND: Mapping[str, Callable[[], str]] = {
    "roofline": lambda: roofline_svg([kernel("gemm"), kernel("softmax", intensities={"DRAM": 8.0}, per_s=2e12)]),
    "ranks": lambda: ranks(job()),
    "speed_of_light": lambda: speed_of_light(LAUNCHES),
    "occupancy": lambda: occupancy(LAUNCHES),
    "stalls": lambda: stalls(LAUNCHES),
}


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Plots of the trace that examples/synthetic_training.py makes up."""
    path = tmp_path_factory.mktemp("training") / "synthetic.pt.trace.json.gz"
    runpy.run_path(str(ROOT / "examples" / "synthetic_training.py"))["write"](path)
    return drawn([path])


@pytest.mark.parametrize("name", NAMES)
def test_it_looks_as_in_the_documentation(name: str, training: dict[str, str]) -> None:
    svg = BY_HAND[name]() if name in BY_HAND else training[name]
    parsed(svg)
    documented.check(f"plots/{name}.svg", svg)


def test_the_documentation_shows_them_all() -> None:
    page = (ROOT / "docs" / "plots.md").read_text(encoding="utf-8")
    assert sorted(file.stem for file in (documented.IMAGES / "plots").glob("*.svg")) == sorted(NAMES)
    assert all(f"images/plots/{name}.svg" in page for name in NAMES)
