"""What the keys of the live view do, and how they are read from what a terminal sends."""

from __future__ import annotations

from diag.collect.watching import DumpStacks, Quit
from diag.model.live_run import LiveRun
from diag.render.live_frame import ViewState
from diag.render.live_view import view_of
from diag.tui.watch.keys import pressed
from diag.tui.watch.terminal import split_keys
from tests.render.live_moments import process, snapshot

VIEW = view_of(LiveRun(100, [snapshot(0, processes=[process(0), process(0, 200, 100)])]))


def after(*keys: str, state: ViewState | None = None) -> ViewState:
    state = state or ViewState()
    for key in keys:
        state, _ = pressed(key, state, VIEW, 10)
    return state


def test_quitting_and_asking_for_stacks() -> None:
    assert pressed("q", ViewState(), VIEW, 10)[1] == Quit()
    state, order = pressed("s", ViewState(is_paused=True), VIEW, 10)
    assert order == DumpStacks(None)
    assert (state.page, state.is_paused) == ("stacks", False)
    assert pressed("s", ViewState(selected=200), VIEW, 10)[1] == DumpStacks(200)


def test_processes_are_chosen_in_a_ring() -> None:
    chosen = [after(*["down"] * n).selected for n in range(4)]
    assert chosen == [None, 100, 200, None]
    assert after("up").selected == 200
    assert after("down", "escape").selected is None
    assert after("down", state=ViewState(selected=999)).selected == 100


def test_pages_open_and_close() -> None:
    assert after("f").page == "findings"
    assert after("f", "f").page == "main"
    assert after("f", "?").page == "help"
    assert after("?", "escape").page == "main"


def test_a_page_is_moved() -> None:
    assert after("f", " ", "down").top == 11
    assert after("f", " ", "b", "up").top == 0
    assert after("f", " ", "f", "f").top == 0


def test_pausing_is_undone_by_the_same_key() -> None:
    assert after("p").is_paused
    assert not after("p", "p").is_paused


def test_keys_without_a_meaning_do_nothing() -> None:
    assert after("x", "\x01", " ", "b") == ViewState()


def test_keys_of_several_bytes_are_one() -> None:
    assert split_keys(b"\x1b[A\x1b[B\x1bOA\t\x1b[Zq") == ["up", "down", "up", "down", "up", "q"]
    assert split_keys(b"\x1b") == ["escape"]
    assert split_keys(b"\x1b[200~evil\x1b[201~") == ["e", "v", "i", "l"]
    assert split_keys(b"\x1b[<0;1;1M\x1b[") == []
    assert split_keys(b"\xff") == ["ÿ"]
