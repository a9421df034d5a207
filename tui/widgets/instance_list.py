"""The launches of one kernel: how their durations spread, and a page of them."""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import OperationalError
from typing import TYPE_CHECKING, ClassVar, cast

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from diag.errors import DiagError
from diag.model import units
from diag.render.table import NOT_CAPTURED
from diag.tui import instances
from diag.tui.instances import PAGE, Instance, Instances, Order, Spread
from diag.tui.kernel_rows import Entry
from diag.tui.text import content
from diag.tui.widgets.row_table import Column, RowTable, Sort

if TYPE_CHECKING:
    from diag.tui.app import DiagApp

BLOCKS = " ▁▂▃▄▅▆▇█"
"""Heights of a histogram in one line; a bin that has a launch is never blank."""

SORTS: dict[Order, Sort] = {"longest": Sort("duration"), "time": Sort("start", is_descending=False)}
WORDS: dict[Order, str] = {"longest": "the longest first", "time": "in the order of time"}


def columns(several: bool) -> list[Column[Instance]]:
    device: Column[Instance] = Column("device", "device", 18, _device)
    return [
        Column("start", "start, ms", 14, lambda row: f"{row.since_ns / 1e6:,.3f}", lambda row: row.start_ns),
        Column("duration", "duration", 10, lambda row: units.time(row.duration_ns), lambda row: row.duration_ns),
        Column("stream", "stream", 7, lambda row: NOT_CAPTURED if row.stream is None else str(row.stream)),
        *([device] if several else []),
        Column("registers", "regs", 5, lambda row: NOT_CAPTURED if row.registers is None else str(row.registers)),
        Column("configuration", "grid, block", None, lambda row: row.configuration),
    ]


def _device(row: Instance) -> str:
    return f"GPU {row.part.device}, pid {row.part.process}"


def histogram(spread: Spread) -> str:
    """The bins as blocks, between the shortest and the longest launch."""
    most = max(spread.bins)
    blocks = "".join(BLOCKS[-(-count * (len(BLOCKS) - 1) // most)] for count in spread.bins)
    return f"{units.time(spread.min_ns)} {blocks} {units.time(spread.max_ns)}"


class InstanceList(Vertical):
    DEFAULT_CSS = """
    InstanceList > Static { height: auto; }
    InstanceList > #instance-name { max-height: 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "turn_page(1)", "Next"),
        Binding("p", "turn_page(-1)", "Previous"),
    ]

    def __init__(self, dom_id: str) -> None:
        super().__init__(id=dom_id)
        self.entry: Entry | None = None
        self._found: Instances | None = None
        self._order: Order = "longest"
        self._page = 0

    @property
    def diag(self) -> DiagApp:
        return cast("DiagApp", self.app)

    def compose(self) -> ComposeResult:
        yield Static(id="instance-name")
        yield Static(id="instance-spread")
        yield Static(id="instance-page")
        yield RowTable[Instance](columns(several=False), SORTS["longest"], dom_id="instances-table")

    @property
    def _table(self) -> RowTable[Instance]:
        return self.query_one(RowTable)

    @property
    def row(self) -> Instance | None:
        """The launch with the cursor."""
        return self._table.row

    def open(self, entry: Entry) -> None:
        self.entry, self._found, self._order, self._page = entry, None, "longest", 0
        self._say("#instance-name", content(entry.name, "bold"))
        self._say("#instance-spread", content("looking for its launches"))
        self._say("#instance-page", content(""))
        self._table.fill([], SORTS[self._order], columns(len(entry.parts) > 1))
        self._table.focus()
        self._load()

    @work(exclusive=True, group="instances")
    async def _load(self) -> None:
        """The launches of the kernel, if they are not there yet, and the page."""
        entry, devices = self.entry, self.diag.session.report.devices
        if entry is None:
            return
        try:
            if self._found is None:
                self._found = await self.diag.session.ask(lambda case: instances.load(case, entry.parts, devices))
            found, order, page = self._found, self._order, self._page
            rows = await self.diag.session.ask(lambda case: found.page(case, order, page))
        except (DiagError, OperationalError) as error:
            self._say("#instance-spread", content(f"The launches cannot be read: {error}"))
            return
        self._show(found, rows)

    def _show(self, found: Instances, rows: Sequence[Instance]) -> None:
        self._say("#instance-spread", self._spread(found))
        first = self._page * PAGE
        shown = f"{first + 1:,} to {first + len(rows):,} of {len(found):,}, {WORDS[self._order]}" if rows else "none"
        pages = f"; page {self._page + 1} of {found.pages}, n and p turn" if found.pages > 1 else ""
        self._say("#instance-page", content(f"Launches {shown}{pages}. Enter: in the timeline.", "dim"))
        self._table.fill(rows, SORTS[self._order])

    def _spread(self, found: Instances) -> Content:
        spread = found.spread(bins=max(8, min(60, self.app.size.width - 30)))
        if spread is None:
            return content("No launch lies in the window.")
        return (
            content(
                f"{units.count(spread.count, 'launch')}, {units.time(spread.total_ns)} together: "
                f"median {units.time(spread.median_ns)}, 95 % within {units.time(spread.p95_ns)}"
            )
            + Content("\n")
            + content(histogram(spread))
        )

    def _say(self, place: str, text: Content) -> None:
        self.query_one(place, Static).update(text)

    def _turn_order(self) -> None:
        self._order, self._page = "time" if self._order == "longest" else "longest", 0
        self._load()

    def action_turn_page(self, pages: int) -> None:
        last = self._found.pages - 1 if self._found else 0
        page = min(max(0, self._page + pages), last)
        if page != self._page:
            self._page = page
            self._load()

    def on_row_table_sorted(self, event: RowTable.Sorted) -> None:
        """A click on either header, or a key: there are two orders."""
        event.stop()
        self._turn_order()

    def on_row_table_opened(self, event: RowTable.Opened) -> None:
        event.stop()
        if self.row is not None:
            self.diag.go(instances.place_of(self.row))
