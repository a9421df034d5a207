"""PNG of a plot: the size that was asked for, with text in it, or a sentence that says what is missing."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import pytest

from diag.errors import ToolMissing
from diag.export import png
from diag.render.plots.occupancy import occupancy
from tests.export.png_reading import picture
from tests.render.conftest import make_report
from tests.render.plots.cases import launch

RGBA = 6
TITLE = (28, 22, 300, 42)
"""Where the title of a plot stands, in units of its SVG."""


@pytest.fixture(autouse=True)
def _looked_up_anew() -> Iterator[None]:
    png.sans_serif.cache_clear()
    yield
    png.sans_serif.cache_clear()


@pytest.fixture
def svg() -> str:
    pytest.importorskip("resvg_py", reason="PNG needs the extra gpu-diag[plots]")
    try:
        png.check()
    except ToolMissing as error:
        pytest.skip(str(error))
    return occupancy(make_report(launches=[launch()]))


@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_it_is_the_picture_with_its_text_at_the_size_asked_for(svg: str, scale: float) -> None:
    made = picture(png.png_of(svg, scale))
    assert (made.width, made.mode) == (960 * scale, RGBA)
    assert made.pixels[0, 0].tolist() == [255, 255, 255, 255]  # light, and not transparent
    assert 0.05 < made.ink(*(scale * edge for edge in TITLE)) < 0.9
    colors = {tuple(color) for color in made.pixels.reshape(-1, 4)[:: 7 if scale == 1 else 1].tolist()}
    assert (0x00, 0x72, 0xB2, 255) in colors


def test_without_a_font_there_is_no_picture(svg: str, monkeypatch: pytest.MonkeyPatch) -> None:
    png.sans_serif.cache_clear()
    monkeypatch.setattr(png, "FAMILIES", ("No Font Of This Name",))
    with pytest.raises(ToolMissing, match="fonts-dejavu-core"):
        png.png_of(svg)


def test_without_resvg_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_resvg(name: str, *args: Any, **more: Mapping[str, Any]) -> ModuleType:
        if name == "resvg_py":
            raise ImportError(name)
        return real(name, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without_resvg)
    with pytest.raises(ToolMissing, match=r"gpu-diag\[plots\]"):
        png.check()
