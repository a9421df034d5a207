from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from diag.model import units
from diag.model.serving_log import LoadConditions
from diag.tui.app import DiagApp
from diag.tui.widgets.device_bar import parts
from diag.tui.widgets.page import Page
from tests.builders.serving_log import SECOND, LoggedRun, ServingLog, request
from tests.render.conftest import MS, device
from tests.tui.driving import LARGE, SMALL, check_picture, drive, press, shown

HOST_ONLY = Path(__file__).parents[2] / "examples" / "data" / "slow-loader.pt.trace.json.gz"


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_overview_is_drawn(training: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await check_picture(pilot, "overview")

    monkeypatch.chdir(training.parent)
    drive([Path(training.name)], scenario, size=size)


def test_the_verdict_leads_to_its_finding_and_a_device_to_the_timeline(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, DiagApp)
        await press(pilot, "enter")
        assert pilot.app.current_mode == "findings"
        assert "Evidence" in shown(pilot)
        await press(pilot, "1", "down", "enter")
        assert pilot.app.current_mode == "timeline"

    drive([training], scenario)


def test_a_click_on_a_finding_opens_it(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        lines = shown(pilot).splitlines()
        at = next(at for at, line in enumerate(lines) if "Pageable host memory" in line)
        await pilot.click(offset=(40, at))
        await press(pilot)
        assert isinstance(pilot.app, DiagApp)
        assert pilot.app.current_mode == "findings"
        assert "Pageable host memory" in shown(pilot).splitlines()[1]

    drive([training], scenario)


def test_shares_are_those_of_the_report_and_formulas_can_be_seen(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, DiagApp)
        (row,) = pilot.app.session.report.devices
        text = shown(pilot)
        assert f"busy {units.share(row.busy_ns / row.window_ns)}" in text
        assert f"idle {units.share(row.idle_ns / row.window_ns)}" in text
        assert "busy - union of kernels" not in text
        await press(pilot, "f")
        assert "busy - union of kernels" in shown(pilot)

    drive([training], scenario)


def test_parts_of_a_bar_add_up_to_the_window() -> None:
    """Also where communication is hidden in part, and where another process used the hardware meanwhile."""
    row = device(comm_ns=20 * MS, exposed_comm_ns=5 * MS, kernel_ns=40 * MS, busy_ns=55 * MS, idle_ns=30 * MS)
    assert [(part.label, part.ns // MS) for part in parts(row)] == [
        ("kernels", 35),
        ("exposed comm", 5),
        ("copies etc. alone", 15),
        ("idle", 30),
        ("other processes", 11),
    ]
    assert sum(part.ns for part in parts(row)) == row.window_ns


def test_a_trace_of_the_host_has_a_verdict_and_no_devices() -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        text = shown(pilot)
        assert "The data loader holds up the program" in text
        assert "Devices" not in text
        assert "Cannot tell: " in text

    drive([HOST_ONLY], scenario)


def test_everything_is_reached_with_the_keyboard(training: Path) -> None:
    """However far down it stands: the cursor goes through every entry, and text between them comes into sight."""

    async def scenario(pilot: Pilot[None]) -> None:
        page = pilot.app.screen.query_one(Page)
        seen = set(shown(pilot).splitlines())
        for _ in range(40):
            await press(pilot, "down")
            seen |= set(shown(pilot).splitlines())
        assert any("tick 1" in line for line in seen)
        assert page.scroll_y == page.max_scroll_y
        await press(pilot, "home")
        assert page.scroll_y == 0

    drive([training], scenario)


def test_a_load_on_a_server_has_its_tables(tmp_path: Path) -> None:
    requests = [request(n, n * SECOND) for n in range(10)]
    loads = [LoggedRun(requests, load=LoadConditions(rate_per_s=rate, n_requests=n)) for rate, n in ((1, 10), (2, 11))]
    log = ServingLog(loads).write(tmp_path / "serve.jsonl")

    async def scenario(pilot: Pilot[None]) -> None:
        text = shown(pilot)
        assert "No fault found in serving" in text
        assert "    10         0   1.08     1.08       10.8      0.249       108  2 requests/s" in text
        assert "Latencies of completed requests" in text
        assert "Figures that contradict each other: requests, 2 requests/s" in text
        await press(pilot, "2", "enter")
        assert "requests: 10 against 11" in " ".join(shown(pilot).split())

    drive([log], scenario, size=LARGE)
