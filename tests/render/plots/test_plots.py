"""What plots show: the right rows, in the right lengths, with units and remarks about what is left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diag.render.plots import axes
from diag.render.plots.devices import devices
from diag.render.plots.findings import findings
from diag.render.plots.kernels import MOST_KERNELS, kernels
from diag.render.plots.launches import MOST_LAUNCHES
from diag.render.plots.occupancy import occupancy
from diag.render.plots.ranks import ranks
from diag.render.plots.speed_of_light import speed_of_light
from diag.render.plots.stalls import stalls
from diag.render.plots.steps import MOST_COLUMNS, steps
from diag.render.timeline_bars import Bars, bar_paths, busy_bars, counter_bars
from diag.rules.launch_report import SpeedOfLight, StallRow
from diag.rules.report import Report
from diag.timeline.rank_steps import RankTable
from diag.timeline.track import ACTIVITIES
from tests.builders.ranks import write_rank
from tests.render.conftest import MS, device, finding, kernel, make_report
from tests.render.pages import trace
from tests.render.plots.cases import drawn, job, launch, rank
from tests.render.plots.reading import described, hints, shapes, texts


def widths(svg: str, look: str) -> list[float]:
    return [float(each.get("width", "nan")) for each in shapes(svg, look) if each.findtext("{*}title")]


def test_bars_are_as_long_as_what_they_stand_for(report: Report) -> None:
    svg = devices(report)
    (busy,), (idle,) = widths(svg, "busy"), widths(svg, "idle")
    assert busy / idle == pytest.approx(60 / 36, rel=0.01)
    assert "62.5 %, 60.0 ms" in texts(svg)
    assert "share of the window (%)" in texts(svg)
    assert not widths(svg, "communication")


def test_communication_is_drawn_where_there_is_any(two_devices: Report) -> None:
    svg = devices(two_devices)
    assert len(widths(svg, "communication")) == len(widths(svg, "exposed")) == 1


def test_too_few_operations_make_times_and_no_shares() -> None:
    few = {"n_kernels": 1, "n_copies": 0}
    svg = devices(make_report(devices=[device(**few)]))
    assert "time in the window (ms)" in texts(svg)
    assert not [text for text in texts(svg) if text.endswith(" %")]


def test_what_was_not_captured_has_no_bar() -> None:
    report = make_report()
    source = report.sources[0]
    capabilities = {**source.capabilities, "copy": None}
    svg = devices(replace(report, sources=[replace(source, capabilities=capabilities)]))
    assert widths(svg, "kernel")
    assert not widths(svg, "copy")


def test_of_many_devices_those_that_idle_longest() -> None:
    rows = [device(device=number, idle_ns=number * MS) for number in range(20)]
    svg = devices(make_report(devices=rows, findings=[], kernels=[]))
    headings = [text for text in texts(svg) if text.startswith("GPU ")]
    assert len(headings) == 8
    assert any("GPU 19," in text for text in headings)
    assert "12 more devices not drawn: those that idle less." in texts(svg)


def test_hottest_kernels_and_what_the_others_take() -> None:
    rows = [kernel(f"k{at}", f"k{at}", total_ns=(30 - at) * MS, share_of_kernel_time=0.02) for at in range(20)]
    svg = kernels(make_report(kernels=rows))
    lengths = widths(svg, "kernel")
    assert len(lengths) == MOST_KERNELS
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] / lengths[-1] == pytest.approx(30 / 16, rel=0.01)
    assert "5 more kernels: 10.0 % of the kernel time." in texts(svg)
    assert "sum of durations (ms)" in texts(svg)
    assert "k0: 2.0 %, 30.0 ms, 10 launches, median 5.0 ms" in hints(svg)


def test_findings_with_a_bound_in_their_order() -> None:
    every = [finding(), finding("other.rule", title="Later", recoverable_ns=7 * MS), finding("x", recoverable_ns=None)]
    svg = findings(make_report(findings=every))
    assert widths(svg, "critical")[0] / widths(svg, "critical")[1] == pytest.approx(5, rel=0.01)
    assert "≤ 35.0 ms, 36.5 % of the window" in texts(svg)
    assert any(text.startswith("2. Later") for text in texts(svg))
    assert "1 more finding without a bound on what could be won: diag report tells them." in texts(svg)
    assert not findings(make_report(findings=every[2:]))


def test_findings_that_are_alike_are_one_bar(two_devices: Report) -> None:
    svg = findings(two_devices)
    assert len(widths(svg, "critical")) == 1
    assert any("and 1 more" in text for text in texts(svg))


def test_speed_of_light_has_a_bar_for_what_was_collected() -> None:
    svg = speed_of_light(make_report(launches=[launch(sol=SpeedOfLight(50.0, 25.0, None))]))
    assert widths(svg, "sm")[0] / widths(svg, "memory")[0] == pytest.approx(2, rel=0.01)
    assert not widths(svg, "dram")
    assert not speed_of_light(make_report(launches=[launch(sol=SpeedOfLight(None, None, None))]))


def test_launches_that_speak_for_all_alike_longest_first() -> None:
    alike = [launch("a", id=f"a{at}", spoken_for_by="a0") for at in range(3)]
    svg = occupancy(make_report(launches=[launch("b", 5.0), *alike]))
    headings = [text for text in texts(svg) if "<<<" in text]
    assert headings == ["a <<<108, 256>>>: 3 launches, 2.0 ms each", "b <<<108, 256>>>: 5.0 ms"]
    many = occupancy(make_report(launches=[launch(f"k{at}") for at in range(MOST_LAUNCHES + 3)]))
    assert "3 more kernels with less time not drawn." in texts(many)


def test_occupancy_says_what_limits_it() -> None:
    svg = occupancy(make_report(launches=[launch()]))
    assert "37.5 % of 50.0 % (registers, shared memory)" in texts(svg)
    assert len(shapes(svg, "limit")) == 1


def test_stalls_are_put_together_by_class() -> None:
    waits = [
        StallRow("memory_latency", "long_scoreboard", 0.4, "latency"),
        StallRow("memory_latency", "other", 0.2, "latency"),
        StallRow("execution", "wait", 0.3, "latency"),
        StallRow("execution", "wait", 0.9, "samples"),
    ]
    svg = stalls(make_report(launches=[launch(stalls=waits)]))
    assert hints(svg) == [
        "memory latency: 60.0 % of the time between two instructions of a warp",
        "execution: 30.0 % of the time between two instructions of a warp",
    ]
    assert widths(svg, "stall-memory_latency")[0] / widths(svg, "stall-execution")[0] == pytest.approx(2, rel=0.01)
    samples = stalls(make_report(launches=[launch(stalls=waits[3:])]))
    assert hints(samples) == ["execution: 90.0 % of the samples of its warps"]


def test_steps_and_how_much_of_each_is_idle() -> None:
    svg = steps(RankTable([rank(0, [10, 10, 20, 10])]))
    heights = [float(each.get("height", 0)) for each in shapes(svg, "busy") if each.findtext("{*}title")]
    assert heights[2] / heights[0] == pytest.approx(2, rel=0.01)
    assert hints(svg)[0] == "step 0: 10.0 ms, idle 2.5 ms"
    assert "rank 0: 4 steps, median 10.0 ms, shortest 10.0 ms, longest 20.0 ms, idle 25.0 %." in described(svg)
    assert "step, in order" in texts(svg)
    assert "duration (ms)" in texts(svg)


def test_a_first_step_of_a_minute_leaves_room_for_the_others() -> None:
    svg = steps(RankTable([rank(0, [60_000, *[10] * 30])]))
    assert "↑ 60.0 s" in texts(svg)
    assert "duration (ms)" in texts(svg)
    assert any("Steps of more than 4 medians" in text for text in texts(svg))


def test_steps_without_a_device_have_no_idle_part() -> None:
    svg = steps(RankTable([rank(0, [1, 2, 3], idle=None)]))
    assert not shapes(svg, "idle")
    assert len(shapes(svg, "step")) == 3


def test_many_steps_share_bars() -> None:
    durations = [10.0] * 5_000
    durations[77] = 30.0
    svg = steps(RankTable([rank(0, durations)]))
    assert len([each for each in shapes(svg, "busy") if each.findtext("{*}title")]) == MOST_COLUMNS
    assert hints(svg)[0].startswith("steps 0 to 40, median: 10.0 ms")
    assert any("Several steps share a bar" in text for text in texts(svg))


def test_no_steps_make_no_plot() -> None:
    empty = RankTable([rank(0, []), rank(1, [])])
    assert steps(empty) == ranks(empty) == ""
    assert ranks(RankTable([rank(0, [1, 2])])) == ""


def test_late_ranks_are_darker_and_larger() -> None:
    svg = ranks(job(ranks=4, steps=12))
    counts = {level: shapes(svg, f"level-{level}")[-1].get("d", "").count("M") for level in range(5)}
    # In steps in which the third is late, the median is higher, so that the second is less beyond it.
    assert counts == {0: 12 + 12 + 9, 1: 3, 2: 9, 3: 0, 4: 3}
    assert described(svg).endswith("More than 10 % beyond the median: rank 2 in 3 steps.")
    rows = [text for text in texts(svg) if text.endswith("×")]
    assert rows == ["0×", "9×", "3×", "0×"]


def test_a_timeline_has_the_rows_of_its_devices_threads_and_counters(tmp_path: Path) -> None:
    svg = drawn([trace(tmp_path / "a.sqlite", ["gemm", "relu"])])["timeline"]
    assert texts(svg)[0] == "Timeline of 119.0 ms"
    assert {"busy", "ranges", "ranges, depth 2", "SM Active ≤ 80 %"} <= set(texts(svg))
    assert any(text.startswith("1 more row not drawn") for text in texts(svg))  # calls of 5 µs, twelve of them
    assert "time (ms)" in texts(svg)
    assert "40.3 %" in texts(svg)  # 12 kernels of 3 ms and 12 copies of 1 ms in 119 ms
    assert shapes(svg, "kernel")
    assert shapes(svg, "copy")


def test_plots_of_a_job(tmp_path: Path) -> None:
    paths = []
    for number in range(2):
        lengths = [1_000 + 500 * (number == 1 and step % 3 == 0) for step in range(9)]
        name = tmp_path / f"rank{number}.pt.trace.json"
        paths.append(write_rank(name, rank=number, steps_us=lengths, talk=(0.6, 0.9)))
    made = drawn(paths)
    assert {name for name, svg in made.items() if svg} >= {"timeline", "devices", "kernels", "steps", "ranks"}
    assert "rank 1 in 3 steps" in described(made["ranks"])
    assert shapes(made["timeline"], "communication")


def test_the_same_case_gives_the_same_bytes(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.sqlite", ["gemm", "relu"])
    assert drawn([path]) == drawn([path])


@given(st.floats(1e-9, 1e12), st.integers(3, 12))
def test_ticks_are_round_few_and_inside(top: float, most: int) -> None:
    values = axes.round_values(top, most)
    assert values[0] == 0
    assert len(values) <= most + 2
    assert values[-1] <= top * 1.000001
    assert len(values) >= 2


def test_whole_numbers_have_whole_ticks() -> None:
    assert [label for _, label in axes.count_axis("step", 3).ticks] == ["0", "1", "2", "3"]


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, len(ACTIVITIES) - 1)), min_size=1, max_size=40))
def test_bars_of_a_row_are_where_something_is(columns: list[tuple[float, int]]) -> None:
    shares = np.array([share for share, _ in columns])
    activity = np.array([code for _, code in columns])
    bars = busy_bars(shares, activity, 8)
    assert ((bars.height > 0) == (shares > 0)).all()
    assert bars.height.max() <= 8
    paths = dict(bar_paths(bars, 0, 100, 10, 8))
    assert set(paths) == {ACTIVITIES[code] for share, code in columns if share > 0}
    drawn_columns = sum(path.count("M") for path in paths.values())
    assert drawn_columns <= np.count_nonzero(shares)


def test_counters_stand_on_zero_or_below() -> None:
    nan = float("nan")
    bars = counter_bars(np.array([nan, 40.0, 0.0]), np.array([nan, 80.0, 40.0]), 8)
    assert bars.height.tolist() == [0, 8, 4]
    assert bars.looks == ["counter"]
    assert counter_bars(np.array([nan]), np.array([nan]), 8).height.tolist() == [0]
    assert isinstance(bars, Bars)
