"""The live view as text and on the screen: what is said, that it fits, that names are harmless."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from diag.model.live import Frame, StackDump, ThreadStack, Xid
from diag.model.live_run import LiveRun
from diag.render.layout import cells
from diag.render.live_frame import Page, ViewState, frame, page_lines
from diag.render.live_marks import ASCII, BLOCKS, COLORED, TRUE_COLORED, UNCOLORED, Look, Style, ansi, bar
from diag.render.live_processes import depths_of
from diag.render.live_text import last_words, render_live_text
from diag.render.live_view import LiveView, view_of
from tests.render.live_moments import EPOCH_NS, GB, HOSTILE, S, answers, gpu, hostile_run, process, run, snapshot

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
        "KERNEL RESIDENT",
        "97 %",
        "71.0/141.0 GB",
        "SM active 12 %",
        "182/700 W",
        "61 °C",
        "slows down at 87 °C",
        "SM clock 1980/1980 MHz",
        "PCIe in 1.2 GB/s out 300.0 MB/s",
        "gen 5/5 x16/16",
        "NVLink in 4.0 GB/s out 2.0 GB/s",
        "ECC 4 corrected 1 not",
        "clocks held down: sw power cap",
        "XID 79",
        "100 1.50",
        "in futex_wait_queue loader",
        "● critical: clocks held down by heat",
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
    assert "/700 W" not in text
    assert "held down" not in text
    assert "\n0                    -  " in text
    row = next(line for line in text.splitlines() if line.startswith("100 "))
    assert row.split()[1:3] == ["-", "-"]


def test_gpus_of_others_are_left_out_and_counted() -> None:
    foreign = gpu(index=1, processes=[])
    text = text_of(view_of(LiveRun(100, [snapshot(0, [gpu(), foreign])])))
    assert "\n1  " not in text
    assert "1 GPU left out" in text
    assert "\n1  " in text_of(view_of(LiveRun(None, [snapshot(0, [gpu(), foreign])])))


def test_an_error_is_graver_than_a_low_clock_and_an_idle_gpu_is_fine() -> None:
    def alarm(**changes: Any) -> tuple[str, Style]:
        """The last of the row of one of many GPUs."""
        view = view_of(LiveRun(None, [snapshot(0, [gpu(index=at, **changes) for at in range(8)])]))
        picture = frame(view, ViewState(), Look(80, BLOCKS), 24)
        return next(line[-1] for line in picture if line and line[0].text == "0  ")

    assert alarm(clock_reasons=["gpu_idle"])[0].strip() == "61 °C"
    assert alarm(clock_reasons=["sw_power_cap"]) == ("  !", "dim")
    assert alarm(clock_reasons=["hw_thermal_slowdown"]) == ("  !", "warning")
    assert alarm(clock_reasons=["hw_thermal_slowdown"], xids=(Xid(79, 0),)) == ("  !", "critical")


def test_findings_of_one_rule_are_one_line() -> None:
    said = text_of(view_of(run(), answers() * 8))
    assert said.count("clocks held down by heat (+7 more)") == 1


def test_threads_in_the_same_lines_are_shown_once() -> None:
    waits = [Frame("wait", "/usr/lib/python3.12/threading.py", 355), Frame("work", "/app/pool.py", 7)]
    threads = [ThreadStack(100, 200 + at, f"worker-{at}", waits, False, False) for at in range(20)]
    busy = ThreadStack(100, 100, "MainThread", [Frame("step", f"/{'x' * 80}/train.py", 3)], True, True)
    dump = StackDump(100, EPOCH_NS, [*threads, busy], 5_000_000)
    said = text_of(view_of(LiveRun(100, [snapshot(0, stacks=[dump])])))
    assert said.index("MainThread (100): running, holds the GIL") < said.index("worker-0 (200) and 19 more: waiting")
    assert "wait  threading.py:355" in said
    assert "xx/train.py:3" in said
    assert "worker-1 " not in said


def test_a_thread_is_called_as_its_stack_calls_it() -> None:
    stack = ThreadStack(100, 101, "prefetch", [Frame("f", "a.py", 1)], False, False)
    moments = [snapshot(0, stacks=[StackDump(100, EPOCH_NS, [stack], 1)]), snapshot(1)]
    rows = [line for line in text_of(view_of(LiveRun(100, moments))).splitlines() if line.startswith("101 ")]
    assert [line.split("queue")[1].strip() for line in rows] == ["prefetch"]


def test_what_lacks_of_many_processes_for_one_reason_is_said_once() -> None:
    untold = {"read_bytes": "It belongs to user 0: run diag with sudo."}
    processes = [process(0, 100 + at, untold=untold) for at in range(9)]
    said = " ".join(text_of(view_of(LiveRun(100, [snapshot(0, processes=processes)]))).split())
    assert said.count("It belongs to user 0") == 1
    assert "read bytes of pid 100, pid 101, pid 102, pid 103 and 5 more: It belongs" in said


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
    assert all(sum(cells(span.text) for span in line) <= columns for line in picture)


def test_at_80_by_24_every_kind_of_thing_has_a_place() -> None:
    gpus = [gpu(index=at) for at in range(8)]
    processes = [process(1, 100 + at, 100) for at in range(30)]
    view = view_of(LiveRun(100, [snapshot(0, gpus, processes), snapshot(1, gpus, processes)]), answers() * 3)
    lines = shown(view, ViewState())
    said = "\n".join(lines)
    for part in ("Host", "KERNEL RESIDENT", "Findings", "PID", "TID", "more line", "q quit"):
        assert part in said
    assert [line[0] for line in lines if "182/700 W   61 °C" in line] == [*"01234567"], "no GPU is out of sight"


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
    line = frame(view_of(run(), answers()), ViewState(), Look(80, BLOCKS), 24)[3]
    assert "\x1b[36m" in ansi(line, COLORED)
    assert "\x1b[38;2;86;180;233m" in ansi(line, TRUE_COLORED)
    assert "\x1b[3" not in ansi(line, UNCOLORED)


def test_bars_are_drawn_in_ascii_where_need_be() -> None:
    assert render_live_text(view_of(run(), answers()), width=80, marks=ASCII).replace("°", "").isascii()
    assert "".join(span.text for span in bar(0.5, 8, ASCII)) == "####...."
    assert "".join(span.text for span in bar(7.0, 4, BLOCKS)) == "━━━━"
    assert "".join(span.text for span in bar(0.4, 4, BLOCKS)) == "━╸──"
    assert "".join(span.text for span in bar(None, 4, BLOCKS)) == "    "


def test_last_words() -> None:
    assert last_words(process(60), 192 * S, 2 * GB) == (
        "python (pid 100) has ended after 3 min 12 s: it used 90.0 s of CPU, and held at most 2.0 GB of memory as far "
        "as seen."
    )
