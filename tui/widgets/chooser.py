"""Chooses what to open: by path, in the tree of folders, or among the inputs that were read lately."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Static

from diag.errors import UsageError
from diag.model import units
from diag.store.cache import Cache, KeptCase
from diag.tui.text import content
from diag.tui.widgets.files import MOST_LOOKED_INTO, Files, might_read
from diag.tui.widgets.page import Entry, Page

MOST_RECENT = 20


class _Paths(Suggester):
    """Completes the path that is typed by the first readable file or folder that begins so."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        typed = Path(value).expanduser()
        folder, start = (typed, "") if value.endswith("/") else (typed.parent, typed.name)
        try:
            names = sorted(path for path in folder.iterdir() if path.name.startswith(start))
        except OSError:
            return None
        found = next((path for path in names[:MOST_LOOKED_INTO] if might_read(path)), None)
        if found is None or not found.name.isprintable():
            return None
        head = value if value.endswith("/") or not start else value[: len(value) - len(start)]
        return f"{head}{found.name}{'/' if found.is_dir() else ''}"


class Chooser(Vertical):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "open_marked", "Open what is marked")]

    class Chosen(Message):
        def __init__(self, inputs: Sequence[Path]) -> None:
            super().__init__()
            self.inputs = inputs

    def __init__(self) -> None:
        super().__init__()
        self._marked: list[Path] = []
        self._recent: Sequence[KeptCase] = ()

    def compose(self) -> ComposeResult:
        hint = "Path of a report, trace, case or folder (→ completes)"
        yield Input(placeholder=hint, suggester=_Paths(), compact=True)
        with Horizontal():
            yield Files(Path.cwd())
            yield Page(self._entries, id="recent")
        yield Static(id="marked")

    def on_mount(self) -> None:
        self._show_marked()

    def look_again(self) -> None:
        """Other cases may have come into the cache."""
        self._read_recent()
        self.query_one(Files).look_again()

    def focus_path(self) -> None:
        self.query_one(Input).focus()

    # ---- what was read lately ----------------------------------------------------------------------------------

    @work(thread=True, exclusive=True)
    def _read_recent(self) -> None:
        try:
            cache = Cache.of_user()
        except UsageError:
            cache = None
        kept = cache.kept_cases(MOST_RECENT) if cache else []
        self.app.call_from_thread(self._show_recent, kept)

    def _show_recent(self, kept: Sequence[KeptCase]) -> None:
        self._recent = kept
        self.query_one("#recent", Page).refill()

    def _entries(self, width: int) -> list[Entry]:
        shown = [Entry(Content.styled("Read lately" if self._recent else "Nothing was read lately", "bold"))]
        for case in self._recent:
            name = Path(case.inputs[0]).name if case.inputs else case.path.name
            more = f" and {len(case.inputs) - 1} more" if len(case.inputs) > 1 else ""
            where = str(Path(case.inputs[0]).parent) if case.inputs else str(case.path.parent)
            line = content(f"{name}{more}", room=width)
            place = Content("  ") + content(f"{where}, {units.size(case.size_bytes)}", "dim", width - 2)
            shown.append(Entry(Content("\n").join([line, place]), partial(self._reopen, case), case.path))
        return shown

    def _reopen(self, case: KeptCase) -> None:
        self._choose(_inputs_of(case))

    # ---- choosing ----------------------------------------------------------------------------------------------

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip():
            self._choose([Path(event.value).expanduser()])
        elif self._marked:
            self._choose([])

    @on(Files.Opened)
    def _selected(self, event: Files.Opened) -> None:
        event.stop()
        self._choose([event.path])

    @on(Files.Marked)
    def _mark(self, event: Files.Marked) -> None:
        event.stop()
        if event.path in self._marked:
            self._marked.remove(event.path)
        else:
            self._marked.append(event.path)
        self._show_marked()

    def action_open_marked(self) -> None:
        if self._marked:
            self._choose([])

    def _choose(self, paths: Sequence[Path]) -> None:
        """Opens what is marked together with these."""
        chosen = list(dict.fromkeys([*self._marked, *paths]))
        self._marked = []
        self._show_marked()
        self.post_message(self.Chosen(chosen))

    def _show_marked(self) -> None:
        names = ", ".join(path.name for path in self._marked)
        said = f"Marked: {names} · ctrl+s opens them as one run" if names else "Enter opens a file, Space marks several"
        self.query_one("#marked", Static).update(content(said, room=400))


def _inputs_of(case: KeptCase) -> list[Path]:
    """The files themselves where they still are, as they may have changed; else what the cache has of them."""
    inputs = [Path(path) for path in case.inputs]
    return inputs if inputs and all(path.exists() for path in inputs) else [case.path]
