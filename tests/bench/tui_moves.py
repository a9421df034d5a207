"""Opens the timeline of a file in a process of its own, pans and zooms everywhere, and prints what that took.

python -m tests.bench.tui_moves INPUT 80x24
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import sys
from pathlib import Path
from time import perf_counter, process_time

STARTED_S = perf_counter()

from textual import events  # noqa: E402
from textual.app import App  # noqa: E402
from textual.pilot import Pilot  # noqa: E402

from diag.ingest.importer import ImportOptions  # noqa: E402
from diag.rules.analysis import AnalysisOptions  # noqa: E402
from diag.tui.app import DiagApp  # noqa: E402
from diag.tui.screens.timeline import Timeline  # noqa: E402
from diag.tui.session import Request  # noqa: E402

POLL_S = 0.0005
KEYS = {"plus": "+", "minus": "-"}
ZOOMS = 28
"""By two each: from five minutes to a few columns of nanoseconds."""


async def run(path: Path, size: tuple[int, int]) -> dict[str, float]:
    app = DiagApp(Request([path], ImportOptions(), AnalysisOptions()))
    async with app.run_test(size=size) as pilot:
        while not hasattr(app, "session"):
            await asyncio.sleep(0.001)
        await pilot.press("3")
        await drawn(pilot)
        first_paint_s, first_paint_cpu_s = perf_counter() - STARTED_S, process_time()
        await app.workers.wait_for_complete()
        moves = [await timed(pilot, key) for key in keys()]
        moves += [await timed(pilot, key) for place in places(pilot) for key in await at(pilot, place)]
    return {
        "first_paint_s": first_paint_s,
        "first_paint_cpu_s": first_paint_cpu_s,
        "moves": len(moves),
        "median_move_s": statistics.median(took_s for took_s, _ in moves),
        "slowest_move_s": max(took_s for took_s, _ in moves),
        "median_move_cpu_s": statistics.median(cpu_s for _, cpu_s in moves),
        "slowest_move_cpu_s": max(cpu_s for _, cpu_s in moves),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def keys() -> list[str]:
    """All the way in and out again, panning at each zoom."""
    return [key for zoom in ["plus"] * ZOOMS + ["minus"] * ZOOMS for key in (zoom, "right", "shift+left")]


def places(pilot: Pilot[None]) -> list[int]:
    """Times all over the run, none of which was near before: their blocks are read for the first time."""
    whole_ns = timeline(pilot).chart.place.part.whole_ns
    return [round(whole_ns * part / 23) for part in range(1, 23)]


async def at(pilot: Pilot[None], time_ns: int) -> list[str]:
    """Jumps to a millisecond there, which is no key and not timed; what is zoomed and panned from there is."""
    chart = timeline(pilot).chart
    chart.go(chart.place.showing(time_ns, time_ns + 1_000_000))
    await drawn(pilot)
    return ["shift+right", "minus", "minus", "minus", "minus", "minus", "shift+right", "plus"]


async def timed(pilot: Pilot[None], key: str) -> tuple[float, float]:
    """From the key to the lines of the terminal: by the clock, and of the processor, as others may use it meanwhile."""
    began_s, began_cpu_s = perf_counter(), process_time()
    chart = timeline(pilot).chart
    before = chart.place
    pilot.app.post_message(events.Key(key, KEYS.get(key)))
    while chart.place is before:  # pilot.press would wait for longer than it takes
        await asyncio.sleep(POLL_S)
    await drawn(pilot)
    pilot.app.screen._compositor.render_strips()
    return perf_counter() - began_s, process_time() - began_cpu_s


async def drawn(pilot: Pilot[None]) -> None:
    """Until the chart shows a frame of the part that was asked for."""
    while not is_drawn(pilot.app):
        await asyncio.sleep(POLL_S)


def is_drawn(app: App[None]) -> bool:
    return isinstance(app.screen, Timeline) and app.screen.chart.is_up_to_date


def timeline(pilot: Pilot[None]) -> Timeline:
    screen = pilot.app.screen
    assert isinstance(screen, Timeline)
    return screen


if __name__ == "__main__":
    width, height = map(int, sys.argv[2].split("x"))
    for name, value in asyncio.run(run(Path(sys.argv[1]), (width, height))).items():
        print(f"{name}={value:.3f}")
