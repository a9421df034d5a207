"""The live view as text and on the screen: what is said, that it fits, that names are harmless."""

from __future__ import annotations

from dataclasses import replace

import pytest

from diag.model.live_run import LiveRun
from diag.render.layout import cells
from diag.render.live_frame import Page, ViewState, frame, page_lines
from diag.render.live_marks import ASCII, BLOCKS, COLORED, UNCOLORED, Look, ansi, bar, width_of
from diag.render.live_processes import depths_of
from diag.render.live_text import last_words, render_live_text
from diag.render.live_view import LiveView, view_of
from tests.render.live_moments import GB, HOSTILE, S, answers, gpu, hostile_run, process, run, snapshot

PAGES: tuple[Page, ...] = ("main", "findings", "stacks", "help")
SIZES = [(80, 24), (200, 60), (40, 8), (20, 3)]


def text_of(view: LiveView, width: int = 80) -> str:
    return render_live_text(view, width=width, marks=BLOCKS)


def shown(view: LiveView, state: ViewState, columns: int = 80, lines: int = 24) -> list[str]:
    return [ansi(line, {}) for line in frame(view, state, Look(columns, BLOCKS), lines)]


def test_a_block_says_what_is_known() -> None:
    text = text_of(view_of(run(), answers()))
    said = " ".join(text.split())
    for part in (
        "python (pid 100) at",
        "over 1.0 s",
        "1.5 of 2 cores busy",
        "kernel resident",
        "97 %",
        "71.0/141.0 GB",
        "SM active 12 %",
        "182/700 W",
        "61/87 °C",
        "SM clock 1980/1980 MHz",
        "PCIe in 1.2 GB/s out 300.0 MB/s",
        "gen 5/5 x16/16",
        "NVLink in 4.0 GB/s out 2.0 GB/s",
        "ECC 4 corrected 1 not",
        "clocks held down: sw power cap",
        "XID 79",
        "100 1.50",
        "loader, waits in futex_wait_queue",
        "critical: clocks held down by heat",
        "clocks held down by heat: 50.0 %",
        "live.xid: because",
    ):
        assert part in said
    assert "\x1b" not in text
    assert max(map(cells, text.splitlines())) <= 80


def test_what_is_not_known_is_not_zero() -> None:
    bare = replace(
        gpu(), resident_pct=None, memory_used_bytes=None, sm_active_pct=None, power_w=None, clock_reasons=None, xids=()
    )
    text = text_of(view_of(LiveRun(100, [snapshot(0, [bare], [process(0, resident_bytes=None)])])))
    assert "SM active" not in text
    assert "W," not in text
    assert "held down" not in text
    assert "kernel resident              - " in text
    row = next(line for line in text.splitlines() if line.startswith("100 "))
    assert row.split()[1:3] == ["-", "-"]


def test_gpus_of_others_are_left_out_and_counted() -> None:
    foreign = gpu(index=1, processes=[])
    text = text_of(view_of(LiveRun(100, [snapshot(0, [gpu(), foreign])])))
    assert "GPU 1 " not in text
    assert "1 GPU left out" in text
    assert "GPU 1 " in text_of(view_of(LiveRun(None, [snapshot(0, [gpu(), foreign])])))


def test_children_stand_below_their_parent() -> None:
    rows = [process(0), process(0, 200, 100, "worker"), process(0, 300, 200, "leaf"), process(0, 400, 100, "worker")]
    view = view_of(LiveRun(100, [snapshot(0, processes=rows)]))
    assert depths_of(view.processes) == [0, 1, 2, 1]
    assert "      leaf" in text_of(view)


def test_parents_that_go_round_in_a_circle_end() -> None:
    rows = [process(0, 100, 200), process(0, 200, 100)]
    assert len(depths_of(view_of(LiveRun(100, [snapshot(0, processes=rows)])).processes)) == 2


@pytest.mark.parametrize(("columns", "lines"), SIZES)
@pytest.mark.parametrize("page", PAGES)
def test_a_picture_has_the_size_of_its_terminal(page: Page, columns: int, lines: int) -> None:
    gpus = [gpu(index=at) for at in range(8)]
    processes = [process(1, 100 + at, 100) for at in range(30)]
    view = view_of(LiveRun(100, [snapshot(0, gpus, processes), snapshot(1, gpus, processes)]), answers() * 5)
    picture = frame(view, ViewState(page), Look(columns, BLOCKS), lines)
    assert len(picture) == lines
    assert all(width_of(line) <= columns for line in picture)


def test_at_80_by_24_every_kind_of_thing_has_a_place() -> None:
    gpus = [gpu(index=at) for at in range(8)]
    processes = [process(1, 100 + at, 100) for at in range(30)]
    view = view_of(LiveRun(100, [snapshot(0, gpus, processes), snapshot(1, gpus, processes)]), answers() * 3)
    said = "\n".join(shown(view, ViewState()))
    for part in ("Host", "kernel resident", "Findings", "PID", "TID", "more line", "q quit"):
        assert part in said


def test_a_chosen_process_is_in_sight_and_marked() -> None:
    processes = [process(1, 100 + 10 * at, 100) for at in range(30)]
    view = view_of(LiveRun(100, [snapshot(0, processes=processes), snapshot(1, processes=processes)]))
    picture = frame(view, ViewState(selected=370), Look(80, BLOCKS), 24)
    (marked,) = [line for line in picture if any(span.style == "selected" for span in line)]
    assert marked[0].text.startswith("370 ")
    assert any("of pid 370" in "".join(span.text for span in line) or "371" in line[0].text for line in picture if line)


def test_findings_are_told_in_full_on_their_page() -> None:
    said = " ".join(ansi(line, {}) for line in page_lines(view_of(run(), answers()), "findings", Look(100, BLOCKS)))
    for part in ("Claim: clocks", "It is as slow when cool", "Look at the fans", "Temperature", "Clear: live.power"):
        assert part in said


def test_a_long_page_is_moved_and_not_beyond_its_end() -> None:
    view = view_of(run(), answers() * 10)
    first = shown(view, ViewState("findings"))
    last = shown(view, ViewState("findings", top=10_000))
    assert first[1] != last[1]
    assert "lines 1 to" in first[-2]
    assert last[-3] != ""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_harmless(name: str) -> None:
    view = view_of(hostile_run(name), answers(name))
    look = Look(80, BLOCKS)
    lines = text_of(view).splitlines()
    for page in PAGES:
        lines += [ansi(line, {}) for line in frame(view, ViewState(page, selected=100), look, 24)]
    assert all(line.isprintable() for line in lines)
    assert all(cells(line) <= 80 for line in lines)
    assert sum(map(len, lines)) < 60_000


def test_colours_are_of_the_16_and_go_with_no_color() -> None:
    line = frame(view_of(run(), answers()), ViewState(), Look(80, BLOCKS), 24)[2]
    assert "\x1b[36m" in ansi(line, COLORED)
    assert "\x1b[3" not in ansi(line, UNCOLORED)


def test_bars_are_drawn_in_ascii_where_need_be() -> None:
    assert render_live_text(view_of(run()), width=80, marks=ASCII).replace("°", "").isascii()
    assert "".join(span.text for span in bar(0.5, 8, ASCII)) == "####...."
    assert "".join(span.text for span in bar(7.0, 4, BLOCKS)) == "████"
    assert "".join(span.text for span in bar(None, 4, BLOCKS)) == "    "


def test_last_words() -> None:
    assert last_words(process(60), 192 * S, 2 * GB) == (
        "python (pid 100) has ended after 3 min 12 s: it used 90.0 s of CPU, and held at most 2.0 GB of memory as far "
        "as seen."
    )
