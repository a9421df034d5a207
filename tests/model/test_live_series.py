"""What readings speak for, rates, and trends."""

from __future__ import annotations

import pytest

from diag.model.live import Frame
from diag.model.live_run import LiveRun
from diag.model.live_series import Series, spans_of
from diag.model.live_stacks import own_frame, waits_in_same_frames, whereabouts
from diag.model.live_trend import growth, is_long_enough
from diag.model.pcie import link_bytes_per_s
from tests.builders.live import PID, device, process, stack, thread, untold_device, watched


def test_a_reading_speaks_for_the_time_before_it() -> None:
    assert spans_of([]) == []
    assert spans_of([7]) == [(7, 7)]
    assert spans_of([0, 10, 20, 90]) == [(0, 0), (0, 10), (10, 20), (70, 90)]


def test_means_are_weighted_by_time() -> None:
    series = Series(30, [device(power_w=p) for p in (999.0, 100.0, None, 400.0)], [(0, 0), (0, 10), (10, 10), (10, 30)])
    assert series.mean("power_w") == pytest.approx(300)
    assert series.mean("power_w", [(0, 10)]) == 100
    assert series.mean("power_w", []) is None
    told = series.when(lambda each: None if each.power_w is None else each.power_w > 300)
    assert (told.held_ns, told.known_ns) == (20, 30)
    assert told.share == pytest.approx(2 / 3)


def test_a_field_is_known_if_it_is_for_half_of_the_window() -> None:
    (half,) = watched(lambda at: device() if at <= 10 else untold_device("power_w")).run.devices
    (less,) = watched(lambda at: device() if at <= 9 else untold_device("power_w")).run.devices
    assert (half.tells("power_w"), less.tells("power_w")) == (True, False)


def test_cores_are_cpu_time_over_time() -> None:
    run = watched(processes=lambda at: [process(at, PID, thread(at, cores=0.25), thread(at, 102, cores=0.75))]).run
    (one,) = run.processes
    assert one.cores == pytest.approx(1.0)
    assert [(each.tid, each.cores) for each in one.threads] == [(102, 0.75), (PID, 0.25)]
    assert one.main_thread is not None
    assert one.main_thread.tid == PID
    assert one.main_thread.involuntary_switches == 20


def test_a_counter_that_was_reset_has_no_rate() -> None:
    (one,) = watched(processes=lambda at: [process(at, read_bytes=1000 - at)]).run.processes
    assert one.rate("read_bytes") is None
    assert one.per_s(None, 3) is None


def test_nothing_was_seen() -> None:
    run = LiveRun(None, [])
    assert (run.window, run.devices, run.processes, list(run.steps)) == ((0, 0), [], [], [])


def test_growth_is_that_of_the_floor() -> None:
    found = growth(range(0, 80, 10), [5, 90, 6, 90, 7, 90, 9, 90])
    assert found is not None
    assert (found.first, found.last, found.between_ns) == (5, 9, 52)
    assert found.time_to_ns(8) == pytest.approx(104)
    assert growth(range(0, 80, 10), [5, 90, 6, 90, 6, 90, 9, 90]) is None
    assert growth([], []) is None
    assert not is_long_enough([0, 1, 2, 3])
    assert growth([0, 0, 0, 0, 0, 0, 0, 0], range(8)) is None


def test_own_code_is_told_from_libraries() -> None:
    inside = stack(
        ("wait", "/usr/lib/python3.12/threading.py", 1),
        ("get", "/env/lib/python3.12/site-packages/torch/x.py", 2),
        ("load", "/app/train.py", 3),
    )
    assert own_frame(inside) == Frame("load", "/app/train.py", 3)
    assert own_frame(stack(("exec", "<frozen runpy>", 88))) is None
    found = whereabouts([inside, inside])
    assert found is not None
    assert (found.frame.function, found.own, found.dumps) == ("wait", Frame("load", "/app/train.py", 3), 2)
    assert whereabouts([]) is None


def test_a_thread_that_ran_once_has_moved() -> None:
    at_lock = stack(("take", "a.py", 1))
    assert waits_in_same_frames([at_lock, at_lock])
    assert not waits_in_same_frames([at_lock, stack(("take", "a.py", 1), is_running=True)])
    assert not waits_in_same_frames([at_lock, stack(("take", "a.py", 2))])


@pytest.mark.parametrize(
    ("generation", "width", "gigabytes"), [(1, 1, 0.25), (3, 16, 15.8), (4, 8, 15.8), (5, 16, 63.0)]
)
def test_links_by_the_specification(generation: int, width: int, gigabytes: float) -> None:
    assert link_bytes_per_s(generation, width) == pytest.approx(gigabytes * 1e9, rel=0.01)
