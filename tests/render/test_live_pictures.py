"""Pictures of the live view, which the documentation shows."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator

import pytest
from rich.console import Console
from rich.text import Text

from diag.render.live_frame import ViewState, frame
from diag.render.live_marks import BLOCKS, TRUE_COLORED, Look, ansi
from diag.render.live_view import LiveView, view_of
from diag.rules import thresholds
from diag.rules.running import about_live

pytest.importorskip("pynvml", reason="needs nvidia-ml-py, whose answers are played")

from tests import documented
from tests.render.live_job import job  # after the skip


@pytest.fixture(autouse=True)
def _greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def view(monkeypatch: pytest.MonkeyPatch) -> LiveView:
    run = job(monkeypatch)
    return view_of(run, about_live(run, thresholds.load()))


def drawn(view: LiveView, width: int, height: int) -> str:
    lines = frame(view, ViewState(), Look(width, BLOCKS), height)
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        console.print(Text.from_ansi(ansi(line, TRUE_COLORED)), no_wrap=True, overflow="crop", highlight=False)
    return console.export_svg(title="diag watch 3999", unique_id=f"watch-{width}x{height}")


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_a_job_of_eight_ranks(view: LiveView, width: int, height: int) -> None:
    documented.check(f"live/watch-{width}x{height}.svg", drawn(view, width, height))


def test_what_the_job_waits_for_is_in_the_smallest_picture(view: LiveView) -> None:
    said = "\n".join(ansi(line, {}) for line in frame(view, ViewState(), Look(80, BLOCKS), 24))
    assert "GPU 0 looks busy and does little: it waits in a collective (+6 more)" in said
    assert "GPU 3 waits for the host" in said
    assert "in augment (augment.py:41)" in said
