"""What each key of the live view does."""

from __future__ import annotations

from dataclasses import replace

from diag.collect.watching import DumpStacks, Order, Quit
from diag.render.live_frame import Page, ViewState
from diag.render.live_view import LiveView

_PAGES: dict[str, Page] = {"f": "findings", "?": "help"}


def pressed(key: str, state: ViewState, view: LiveView, page_height: int) -> tuple[ViewState, Order | None]:
    """The state after a key, and what is asked for with it. `page_height` is by how much a long page is moved on."""
    if key == "q":
        return state, Quit()
    if key == "s":
        whose = "the workload" if state.selected is None else f"pid {state.selected}"
        note = f"asking {whose} for its Python stacks …"
        return replace(state, page="stacks", top=0, is_paused=False, note=note), DumpStacks(state.selected)
    if key == "p":
        return replace(state, is_paused=not state.is_paused), None
    if key in _PAGES:
        page = "main" if state.page == _PAGES[key] else _PAGES[key]
        return replace(state, page=page, top=0), None
    if state.page == "main":
        return _on_main(key, state, view), None
    return _on_page(key, state, page_height), None


def _on_main(key: str, state: ViewState, view: LiveView) -> ViewState:
    if key == "escape":
        return replace(state, selected=None)
    if key in ("up", "down"):
        return replace(
            state, selected=_next(state.selected, [row.reading.pid for row in view.processes], key == "down")
        )
    return state


def _next(selected: int | None, pids: list[int], is_forwards: bool) -> int | None:
    """Around the list, with nothing chosen between its end and its start."""
    choices = [None, *pids]
    at = choices.index(selected) if selected in choices else 0
    return choices[(at + (1 if is_forwards else -1)) % len(choices)]


def _on_page(key: str, state: ViewState, page_height: int) -> ViewState:
    if key == "escape":
        return replace(state, page="main", top=0)
    moves = {"down": 1, "up": -1, " ": page_height, "b": -page_height}
    return replace(state, top=max(0, state.top + moves.get(key, 0)))
