"""The timeline as a user drives it: each key, the mouse, jumps from other screens, names that would harm."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from diag.tui.app import DiagApp
from diag.tui.navigation import ToKernel, ToQuery, ToTimeline
from diag.tui.screens.timeline import NOTHING, Timeline
from diag.tui.screens.timeline_panel import Panel
from diag.tui.widgets.timeline_chart import HEAD, Chart
from tests.builders.nsys_export import NsysExport
from tests.tui.driving import LARGE, SMALL, check_picture, drive, press, settle, shown, until
from tests.tui.hostile import NAMES

MS = 1_000_000


def chart_of(pilot: Pilot[None]) -> Chart:
    screen = pilot.app.screen
    assert isinstance(screen, Timeline)
    return screen.chart


async def open_timeline(pilot: Pilot[None]) -> Chart:
    await press(pilot, "3")
    chart = chart_of(pilot)
    assert chart.is_up_to_date
    return chart


def status(pilot: Pilot[None]) -> str:
    """The lines below the chart."""
    return "\n".join(shown(pilot).splitlines()[chart_of(pilot).size.height + 1 : -1])


async def ask(pilot: Pilot[None], key: str) -> Panel[object]:
    """Presses a key that opens a panel."""
    await pilot.press(key)
    await until(pilot, lambda: isinstance(pilot.app.screen, Panel))
    await pilot.pause()
    panel = pilot.app.screen
    assert isinstance(panel, Panel)
    return panel


async def choose(pilot: Pilot[None], *keys: str) -> None:
    """Chooses in a panel, and waits for what follows."""
    await pilot.press(*keys, "enter")
    await until(pilot, lambda: not isinstance(pilot.app.screen, Panel))
    await settle(pilot)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
def test_pictures(training: Path, size: tuple[int, int]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await open_timeline(pilot)
        await check_picture(pilot, "timeline")
        await press(pilot, "f")
        await check_picture(pilot, "timeline-finding")
        await press(pilot, "0", "escape", "v", *["full_stop"] * 12)
        await check_picture(pilot, "timeline-selection")

    drive([training], scenario, size=size)


def test_keys_pan_and_zoom(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        chart = await open_timeline(pilot)
        whole = chart.place.part
        await press(pilot, "plus", "plus", "equals_sign")
        assert chart.place.part.length_ns == pytest.approx(whole.length_ns / 8, abs=1)
        closer = chart.place.part
        for later, earlier in (("right", "left"), ("shift+right", "shift+left"), ("pagedown", "pageup")):
            await press(pilot, later)
            assert chart.place.part.start_ns > closer.start_ns, later
            await press(pilot, earlier)
            assert chart.place.part == closer, earlier
        await press(pilot, "minus", "minus")
        assert chart.place.part.length_ns == pytest.approx(whole.length_ns / 2, abs=2)
        await press(pilot, "0")
        assert chart.place.part == whole
        await press(pilot, "backspace")
        assert chart.place.part.length_ns == pytest.approx(whole.length_ns / 2, abs=2)
        await press(pilot, "home")
        assert chart.place.part == whole

    drive([training], scenario)


def test_from_the_whole_run_to_a_kernel(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await open_timeline(pilot)
        await press(pilot, "down", "right_square_bracket", *["plus"] * 9)
        assert "ampere_sgemm" in shown(pilot) or "Memcpy" in shown(pilot)
        await press(pilot, *["plus"] * 30)
        chart = chart_of(pilot)
        assert chart.place.part.length_ns == chart.columns, "a nanosecond each column"

    drive([training], scenario)


def test_rows_are_selected_and_groups_open_and_close(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        chart = await open_timeline(pilot)
        count = len(chart.lines)
        await press(pilot, "down")
        assert chart.line.kind == "stream"
        await press(pilot, "space")
        assert (len(chart.lines), chart.line.kind) == (count - 1, "device")
        await press(pilot, "space", "up", "down", "down")
        assert (len(chart.lines), chart.line.kind) == (count, "thread")
        await press(pilot, "enter")
        assert len(chart.lines) < count

    drive([training], scenario)


def test_gaps_are_jumped_to_and_explained(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        chart = await open_timeline(pilot)
        before_ns = chart.place.cursor_ns
        await press(pilot, "n")
        after_ns = chart.place.cursor_ns
        assert after_ns > before_ns
        assert "gap of 4.0 ms" in status(pilot)
        await press(pilot, "N")
        assert chart.place.cursor_ns < after_ns
        await ask(pilot, "enter")
        assert "host late" in shown(pilot)
        assert "ProfilerStep" in shown(pilot)
        await choose(pilot)
        assert chart.line.kind == "calls", "it goes to the launching call"
        await ask(pilot, "G")
        assert "4.0 ms" in shown(pilot)
        await choose(pilot, "down")
        assert chart.place.part.length_ns < 6 * MS
        await press(pilot, "0", "minus", *["shift+right"] * 3, "n")
        assert chart.place.borders is not None

    drive([training], scenario)


def test_findings_are_gone_through(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        chart = await open_timeline(pilot)
        await press(pilot, "e")
        assert "f chooses a finding first" in status(pilot)
        await press(pilot, "f")
        assert "finding 1 of" in status(pilot)
        first = chart.place.borders
        await press(pilot, "e")
        assert chart.place.borders != first
        await press(pilot, "E")
        assert chart.place.borders == first
        await press(pilot, "F")
        number, _, count = status(pilot).split("finding ")[1].split(",")[0].partition(" of ")
        assert number == count, "before the first comes the last"

    drive([training], scenario)


def test_search_counts_and_goes_on(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        chart = await open_timeline(pilot)
        await press(pilot, "slash", *"LAYER", "enter")
        assert "of 160 for LAYER" in status(pilot)
        at_ns = chart.place.cursor_ns
        await press(pilot, "greater_than_sign")
        assert chart.place.cursor_ns > at_ns
        await press(pilot, "less_than_sign")
        assert chart.place.cursor_ns == at_ns
        assert len(chart.looks.found)
        await press(pilot, "slash", *"q", "escape")
        assert pilot.app.screen.focused is chart, "Esc leaves the box, and q did not leave the app"
        await press(pilot, "slash", "enter")
        assert not len(chart.looks.found)
        await press(pilot, "slash", *"nowhere", "enter")
        assert "nothing on these rows is called nowhere" in status(pilot)

    drive([training], scenario)


def test_a_selection_is_measured_and_zoomed_to(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        chart = await open_timeline(pilot)
        await press(pilot, "v", *["full_stop"] * 5, "comma", "v", "right")
        selection = chart.place.selection
        assert selection is not None
        assert "device: busy" in status(pilot)
        assert "idle" in status(pilot)
        await press(pilot, "z")
        assert chart.place.part.holds(*selection)
        assert chart.place.part.length_ns < 2 * (selection[1] - selection[0])
        await press(pilot, "escape")
        assert "device: busy" not in status(pilot)

    drive([training], scenario)


def test_details_lead_to_the_call_and_back(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        chart = await open_timeline(pilot)
        await press(pilot, "down", "right_square_bracket", "left_square_bracket", "left_square_bracket")
        began_ns = chart.place.cursor_ns
        await ask(pilot, "enter")
        assert "correlation" in shown(pilot)
        await pilot.press("escape")
        await settle(pilot)
        await press(pilot, "c")
        call = chart.line.kind, chart.place.cursor_ns
        assert call[0] == "calls"
        assert call[1] < began_ns
        await press(pilot, "c")
        assert (chart.line.kind, chart.place.cursor_ns) == ("stream", began_ns)

    drive([training], scenario)


def test_other_screens_are_sent_what_lies_there(training: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[object] = []
    monkeypatch.setattr(DiagApp, "go", lambda self, target: sent.append(target))

    async def scenario(pilot: Pilot[None]) -> None:
        chart = await open_timeline(pilot)
        await press(pilot, "down", "slash", *"sgemm", "enter", "k")
        assert sent == [ToKernel("ampere_sgemm_128x64_tn")]
        await press(pilot, "x")
        (target,) = sent[1:]
        assert isinstance(target, ToQuery)
        rows = await pilot.app.session.ask(lambda case: case.rows(target.sql))  # type: ignore[attr-defined]
        assert len(rows) == chart.line.tracks[0].count

    drive([training], scenario)


def test_another_screen_sends_one_to_a_window(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, DiagApp)
        pilot.app.go(ToTimeline(1, (20 * MS, 30 * MS), process=4000, device=0))
        await until(pilot, lambda: isinstance(pilot.app.screen, Timeline) and bool(chart_of(pilot).lines))
        await settle(pilot)
        chart = chart_of(pilot)
        assert chart.place.borders == (20 * MS, 30 * MS)
        assert chart.place.part.holds(20 * MS, 30 * MS)
        assert chart.line.kind == "device"
        pilot.app.go(ToTimeline(1, (50 * MS, 51 * MS)))
        await pilot.pause()
        await settle(pilot)
        assert chart.place.borders == (50 * MS, 51 * MS)

    drive([training], scenario)


def test_without_colour_activities_are_told_by_their_signs(training: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def scenario(pilot: Pilot[None]) -> None:
        await open_timeline(pilot)
        row = shown(pilot).splitlines()[1 + HEAD]
        assert {"▓", "█", "·"} <= set(row), "copies, kernels and idle time"
        await press(pilot, "f")
        assert "|" in shown(pilot), "the end of a named slice"

    drive([training], scenario)


# ---- mouse ---------------------------------------------------------------------------------------------------------


async def drag(pilot: Pilot[None], start: int, end: int, y: int = HEAD + 1, **keys: bool) -> None:
    await pilot.mouse_down(Chart, offset=(start, y), **keys)
    await pilot.hover(Chart, offset=(end, y))
    await pilot.mouse_up(Chart, offset=(end, y), **keys)
    await settle(pilot)


def test_the_mouse_pans_selects_and_sets_the_cursor(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        chart = await open_timeline(pilot)
        await press(pilot, "plus", "plus")
        before = chart.place.part
        await drag(pilot, 60, 40)
        assert chart.place.part.start_ns - before.start_ns == pytest.approx(20 * before.column_ns, abs=2)
        panned, cursor_ns = chart.place.part, chart.place.cursor_ns
        await drag(pilot, 40, 60, shift=True)
        width = chart.label_width
        assert chart.place.selection == (panned.time_at(40 - width), panned.time_at(61 - width))
        assert (chart.place.part, chart.place.cursor_ns) == (panned, cursor_ns), "a drag is no click"
        await drag(pilot, 50, 45, control=True)
        assert chart.place.selection == (panned.time_at(45 - width), panned.time_at(51 - width))
        await pilot.click(Chart, offset=(70, HEAD + 1))
        await settle(pilot)
        assert chart.place.cursor_ns == panned.time_at(70 - width)
        assert chart.line.kind == "stream"
        await pilot.click(Chart, offset=(width + 5, 0))
        await settle(pilot)
        assert chart.place.part.start_ns < panned.start_ns, "a click on the overview goes there"

    drive([training], scenario)


def test_a_click_on_a_label_opens_and_closes(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        chart = await open_timeline(pilot)
        count = len(chart.lines)
        await pilot.click(Chart, offset=(1, HEAD))
        await settle(pilot)
        assert len(chart.lines) == count - 1
        await pilot.click(Chart, offset=(1, HEAD))
        await settle(pilot)
        assert len(chart.lines) == count

    drive([training], scenario)


def test_a_double_click_shows_details(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        chart = await open_timeline(pilot)
        steps = next(at for at, line in enumerate(chart.lines) if line.kind == "ranges")
        await pilot.click(Chart, offset=(50, HEAD + steps), times=2)
        await until(pilot, lambda: isinstance(pilot.app.screen, Panel))
        await pilot.pause()
        assert "ProfilerStep" in shown(pilot)

    drive([training], scenario)


@pytest.mark.parametrize(
    ("event", "where", "expected"),
    [
        ("up", (40, 4), lambda before, after: after.length_ns * 2 == pytest.approx(before.length_ns, abs=2)),
        ("down", (40, 4), lambda before, after: after.length_ns == pytest.approx(before.length_ns * 2, abs=2)),
        ("down", (3, 4), lambda before, after: after == before),
    ],
    ids=["zooms in", "zooms out", "over labels"],
)
def test_the_wheel(
    training: Path, event: str, where: tuple[int, int], expected: Callable[[object, object], bool]
) -> None:
    from textual import events

    async def scenario(pilot: Pilot[None]) -> None:
        chart = await open_timeline(pilot)
        await press(pilot, "plus", "plus")
        before = chart.place.part
        kind = events.MouseScrollUp if event == "up" else events.MouseScrollDown
        await pilot._post_mouse_events([kind], Chart, offset=where)
        await settle(pilot)
        assert expected(before, chart.place.part)
        column = where[0] - chart.label_width
        if column > 0:
            moved_ns = chart.place.part.time_at(column) - before.time_at(column)
            assert abs(moved_ns) <= 2 * before.column_ns, "what is under the mouse stays there"
        else:
            assert chart.selected == 1
        before = chart.place.part
        await pilot._post_mouse_events([kind], Chart, offset=(40, 4), shift=True)
        await settle(pilot)
        after = chart.place.part
        assert after.length_ns == before.length_ns, "with shift it pans"
        assert (after.start_ns < before.start_ns) == (event == "up")

    drive([training], scenario)


# ---- what is not there, and what would harm ------------------------------------------------------------------------


def hostile_export(path: Path, name: str) -> Path:
    """Every name that a slice or a label can have."""
    export = NsysExport()
    text = name.encode("utf-8", "surrogateescape")
    process = export.process(name=text)
    thread, gpu = process.thread(name=text), process.gpu()
    export.hardware(0, name=name.encode("utf-8", "replace").decode())
    process.sees(0, 0)
    for step in range(12):
        at = step * MS
        thread.range(text, at, at + 900_000)
        thread.launch(gpu, at + 1_000, at + 10_000, at + 800_000)
        gpu.kernel(at + 810_000, at + 950_000, text)
    return export.write(path)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_no_name_harms_the_screen(tmp_path: Path, name: str) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        chart = await open_timeline(pilot)
        await press(pilot, "plus", "plus", "plus", "down", "right_square_bracket", "v", "full_stop", "v")
        for line in chart.lines:
            assert chart.render_line(HEAD).cell_length == chart.size.width, line.kind
        for row in pilot.app.screen._compositor.render_strips():
            text = "".join(segment.text for segment in row)
            assert text.isprintable()
            assert cell_len(text) == 80
        panel = await ask(pilot, "enter")
        assert shown(pilot).replace("\n", "").isprintable()
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is not panel)
        await pilot.click(Chart, offset=(40, HEAD + 1))
        await settle(pilot)
        assert pilot.app.is_running

    drive([hostile_export(tmp_path / "a.sqlite", name)], scenario)


def test_rows_that_do_not_fit_are_scrolled_to(tmp_path: Path) -> None:
    export = NsysExport()
    process = export.process()
    for tid in range(40):
        process.thread(200 + tid).range("work", 0, 1000 + tid)

    async def scenario(pilot: Pilot[None]) -> None:
        chart = await open_timeline(pilot)
        assert len(chart.lines) > chart.size.height
        await press(pilot, *["down"] * 45)
        assert chart.line is chart.lines[-1]
        assert "239" in shown(pilot)
        await press(pilot, *["up"] * 45)
        assert chart.lines_in_sight()[0] is chart.lines[0]

    drive([export.write(tmp_path / "threads.sqlite")], scenario)


def test_counters_have_a_graph_and_a_scale(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.launch(thread.process.gpu(), 0, 1_000, 100_000)
    export.hardware()
    export.gpu_metric("SM Active [Throughput %]", {at: at % 90 for at in range(0, 100_000, 500)})

    async def scenario(pilot: Pilot[None]) -> None:
        chart = await open_timeline(pilot)
        counter = next(at for at, line in enumerate(chart.lines) if line.kind == "counter")
        assert "0 to 100" in shown(pilot)
        await press(pilot, *["down"] * counter, "v", "full_stop", "v")
        assert chart.line.kind == "counter"
        assert "SM Active" in status(pilot)

    drive([export.write(tmp_path / "metrics.sqlite")], scenario)


def test_inputs_without_a_timeline_say_so(tmp_path: Path) -> None:
    path = Path(os.environ.get("DIAG_REAL_REPORTS", "")) / "ncu"
    reports = sorted(path.glob("*.ncu-rep")) if "DIAG_REAL_REPORTS" in os.environ else []
    if not reports:
        pytest.skip("DIAG_REAL_REPORTS is not set, or has no report of Nsight Compute")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "3")
        assert NOTHING[:40] in shown(pilot)
        await press(pilot, "plus", "n", "f", "enter", "x", "c", "k", "l", "r", "G", "slash", *"gemm", "enter")
        assert pilot.app.is_running

    drive(reports[:1], scenario)


def test_a_host_trace_has_no_device_to_look_for_gaps_on(tmp_path: Path) -> None:
    export = NsysExport()
    export.process().thread().range("work", 0, 1000)

    async def scenario(pilot: Pilot[None]) -> None:
        await open_timeline(pilot)
        await press(pilot, "n")
        assert "there is no device in this timeline" in status(pilot)

    drive([export.write(tmp_path / "host.sqlite")], scenario)
