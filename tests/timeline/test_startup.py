"""Startup is told apart from steady state by the one-time work that precedes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.timeline.startup import Startup
from diag.timeline.trace import Trace
from tests.builders.imported import imported
from tests.builders.nsys_export import NsysExport
from tests.rules.scenes import Scene, starting


def startup_of(export: NsysExport, folder: Path) -> Startup:
    with imported(export, folder) as case:
        trace = Trace(case, case.sources[0])
        return trace.startup_of(trace.devices[0])


def test_startup_ends_with_the_last_one_time_work(tmp_path: Path) -> None:
    startup = startup_of(starting().export, tmp_path)
    assert startup.is_told
    assert list(startup.time) == [(0, 990)]
    assert list(startup.steady) == [(990, 3000)]


def test_what_happens_once_the_work_repeats_is_no_startup(tmp_path: Path) -> None:
    scene = starting()
    scene.main.call("cudaMalloc_v3020", 1500, 1600)
    assert list(startup_of(scene.export, tmp_path).time) == [(0, 990)]


@pytest.mark.parametrize("label", ["Runtime module loading (CUDA)", "Lazy function loading (CUDA)"])
def test_the_driver_reports_one_time_work_too(label: str, tmp_path: Path) -> None:
    scene = starting()
    scene.main.overhead(label, 991, 995)
    assert list(startup_of(scene.export, tmp_path).time) == [(0, 995)]


def test_a_capture_of_running_work_has_no_startup(tmp_path: Path) -> None:
    startup = startup_of(starting().export.then("DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE start = 100"), tmp_path)
    assert startup.is_told
    assert not startup.time


def test_calls_that_any_loop_makes_are_not_one_time(tmp_path: Path) -> None:
    scene = starting()
    scene.main.call("cudaMallocAsync_v11020", 991, 999)
    scene.main.call("cudaEventRecord_v3020", 991, 999)
    assert list(startup_of(scene.export, tmp_path).time) == [(0, 990)]


def test_where_nothing_repeats_no_steady_state_is_in_sight(tmp_path: Path) -> None:
    startup = startup_of(starting(steps=1).export, tmp_path)
    assert not startup.is_told
    assert not startup.time


def test_copies_alone_are_no_steady_state(tmp_path: Path) -> None:
    """A program that loads its weights, buffer after buffer, and fills one of them with a kernel."""
    scene = Scene()
    scene.main.launch(scene.gpu, called=0, start=10, end=20, name="fill")
    for start in range(100, 2000, 100):
        scene.main.call("cudaMalloc_v3020", start - 50, start - 10)
        scene.gpu.copy(start, start + 50, 1 << 20)
    assert not startup_of(scene.export, tmp_path).is_told
