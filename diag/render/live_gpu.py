"""GPUs in the live view as a table: a row of bars for each, and lines of facts below where there is room."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from diag.model import units
from diag.model.clock_reasons import reason_of
from diag.model.live import GpuReading
from diag.render.layout import cells, pad, wrap
from diag.render.live_marks import Line, Look, Span, Style, bar, fitted, name, span, sparkline
from diag.render.live_view import GpuRow
from diag.render.table import NOT_CAPTURED

LONGEST_NAME = 40
LONGEST_LABEL = 14
GUTTER = "  "
PERCENT_ROOM = len(" 100 %")
BAR_ROOM, WIDEST_BAR = 9, 20
SPARK_ROOM, WIDEST_SPARK = 11, 60
ALARM_ROOM = len(GUTTER + "!")
RESIDENT, LAST_MINUTE, MEMORY = "KERNEL RESIDENT", "LAST MINUTE", "MEMORY"

ALARMING = frozenset({"thermal", "hardware", "unknown"})
"""Kinds of clock reasons that no healthy GPU has; the power limit is met by any full load."""


@dataclass(frozen=True)
class Column:
    """A quantity that has a column of its own where the screen is wide enough, and else stands among the facts."""

    header: str
    room: int
    cell: Callable[[GpuReading], str | None]
    fact: str  # before the quantity, where that stands among the facts


COLUMNS = (
    Column("POWER", 9, lambda gpu: _of(gpu.power_w, gpu.power_limit_w, "W"), ""),
    Column("TEMP", 6, lambda gpu: None if gpu.temperature_c is None else f"{gpu.temperature_c:.0f} °C", ""),
    Column("SM ACTIVE", 9, lambda gpu: _percent(gpu.sm_active_pct), "SM active "),
    Column("SM CLOCK", 13, lambda gpu: _of(_mhz(gpu.sm_clock_hz), _mhz(gpu.sm_clock_max_hz), "MHz"), "SM clock "),
)
"""The most telling first."""


@dataclass(frozen=True)
class Layout:
    """How wide each part of a row is, in cells."""

    label: int
    bar: int
    spark: int
    memory: int
    columns: Sequence[Column]


def gpu_lines(rows: Sequence[GpuRow], look: Look, *, is_brief: bool = False) -> tuple[Line, list[Line]]:
    """The header, and the lines below it. `is_brief`: a line for each GPU."""
    layout = layout_of(rows, look.width)
    lines: list[Line] = []
    for row in rows:
        lines.append(_bars(row, layout, look, has_alarms=is_brief))
        if not is_brief:
            lines += _below(row, layout, look)
    return [span(_header(layout)[: look.width], "dim")], lines


def layout_of(rows: Sequence[GpuRow], width: int) -> Layout:
    """At 80 cells all columns up to TEMP fit; what is wider goes to others, then to the last minute and to the bars."""
    label = max(len("GPU"), *(cells(_label(row.reading)) for row in rows))
    memory = max(len(_memory(row.reading)) for row in rows)
    left = width - (label + 2 * BAR_ROOM + PERCENT_ROOM + 1 + memory + 3 * len(GUTTER) + SPARK_ROOM + ALARM_ROOM)
    columns: list[Column] = []
    for column in COLUMNS:
        taken = len(GUTTER) + column.room
        if all(column.cell(row.reading) is None for row in rows):
            continue
        if taken > left:
            break
        columns.append(column)
        left -= taken
    spare = max(0, left)
    spark = min(WIDEST_SPARK, SPARK_ROOM + spare // 2)
    return Layout(label, min(WIDEST_BAR, BAR_ROOM + (spare - (spark - SPARK_ROOM)) // 2), spark, memory, columns)


def _header(layout: Layout) -> str:
    parts = [
        pad("GPU", layout.label),
        pad(RESIDENT, layout.bar + PERCENT_ROOM),
        pad(LAST_MINUTE, layout.spark),
        pad(MEMORY, layout.bar + 1 + layout.memory),
        *(pad(column.header, column.room, right=True) for column in layout.columns),
    ]
    return GUTTER.join(parts)


def _bars(row: GpuRow, layout: Layout, look: Look, *, has_alarms: bool) -> Line:
    gpu = row.reading
    line = [
        span(pad(_label(gpu), layout.label), "title"),
        Span(GUTTER),
        *bar(_ratio(gpu.resident_pct, 100), layout.bar, look.marks),
        Span(f"{_percent(gpu.resident_pct) or NOT_CAPTURED:>{PERCENT_ROOM}}{GUTTER}"),
        Span(sparkline(row.resident_pct, 100, layout.spark, look.marks), "bar"),
        Span(GUTTER),
        *bar(_ratio(gpu.memory_used_bytes, gpu.memory_total_bytes), layout.bar, look.marks, "memory"),
        span(f" {pad(_memory(gpu), layout.memory)}"),
    ]
    line += [span(GUTTER + pad(each.cell(gpu) or NOT_CAPTURED, each.room, right=True)) for each in layout.columns]
    if has_alarms and (alarms := list(_alarms(row))):
        said = f"{GUTTER}{'; '.join(text for text, _ in alarms)}"
        left = look.width - sum(cells(each.text) for each in line)
        style = max((style for _, style in alarms), key=_GRAVITY.index)
        line.append(span(said if cells(said) <= left else f"{GUTTER}!", style))
    return fitted(line, look.width)


def _below(row: GpuRow, layout: Layout, look: Look) -> Iterator[Line]:
    indent = " " * (layout.label + len(GUTTER))
    yield from ([span(line, "dim")] for line in wrap(", ".join(_facts(row, layout)), look.width, indent))
    for text, style in _alarms(row):
        yield from ([span(line, style)] for line in wrap(text, look.width, indent))


def _label(gpu: GpuReading) -> str:
    return name(f"{gpu.index} {gpu.mig_profile}" if gpu.mig_profile else f"{gpu.index}", LONGEST_LABEL)


def _memory(gpu: GpuReading) -> str:
    if gpu.memory_used_bytes is None:
        return NOT_CAPTURED
    used = units.size(gpu.memory_used_bytes)
    if gpu.memory_total_bytes is None:
        return used
    total = units.size(gpu.memory_total_bytes)
    return f"{used.removesuffix(total[-3:])}/{total}"  # the unit once, where it is the same


def _facts(row: GpuRow, layout: Layout) -> Iterator[str]:
    """What is known and has no column, the most telling first."""
    gpu = row.reading
    yield name(gpu.name, LONGEST_NAME)
    for column in COLUMNS:
        if column not in layout.columns and (said := column.cell(gpu)) is not None:
            yield column.fact + said
    if gpu.tensor_active_pct is not None:
        yield f"tensor active {gpu.tensor_active_pct:.0f} %"
    if gpu.memory_active_pct is not None:
        yield f"memory active {gpu.memory_active_pct:.0f} %"
    if memory := _of(_mhz(gpu.memory_clock_hz), _mhz(gpu.memory_clock_max_hz), "MHz"):
        yield f"memory clock {memory}"
    if gpu.slowdown_temperature_c is not None:
        yield f"slows down at {gpu.slowdown_temperature_c:.0f} °C"
    yield from _traffic("PCIe", gpu.pcie_rx_bytes_per_s, gpu.pcie_tx_bytes_per_s)
    if gpu.pcie_generation is not None and gpu.pcie_width is not None:
        yield (
            f"gen {gpu.pcie_generation}{_most(gpu.pcie_generation_max)} x{gpu.pcie_width}{_most(gpu.pcie_width_max)}"
        )
    yield from _traffic("NVLink", row.nvlink_rx_bytes_per_s, row.nvlink_tx_bytes_per_s)
    if gpu.ecc_corrected is not None and gpu.ecc_uncorrected is not None:
        yield f"ECC {gpu.ecc_corrected:,} corrected {gpu.ecc_uncorrected:,} not"


_GRAVITY: Sequence[Style] = ("dim", "warning", "critical")


def _alarms(row: GpuRow) -> Iterator[tuple[str, Style]]:
    """Sentences, and how grave each is."""
    if row.last_xid is not None:
        yield f"XID {row.last_xid}", "critical"
    reasons = [reason for reason in row.reading.clock_reasons or () if reason_of(reason).kind != "harmless"]
    if reasons:
        is_grave = any(reason_of(reason).kind in ALARMING for reason in reasons)
        said = ", ".join(name(reason.replace("_", " "), LONGEST_NAME) for reason in reasons)
        yield f"clocks held down: {said}", "warning" if is_grave else "dim"


def _traffic(link: str, into: float | None, out: float | None) -> Iterator[str]:
    shown = [f"{way} {units.size(rate)}/s" for way, rate in (("in", into), ("out", out)) if rate is not None]
    if shown:
        yield f"{link} {' '.join(shown)}"


def _percent(pct: float | None) -> str | None:
    return None if pct is None else f"{pct:.0f} %"


def _mhz(hz: int | None) -> float | None:
    return None if hz is None else hz / 1e6


def _of(value: float | None, most: float | None, unit: str) -> str | None:
    return None if value is None else f"{value:.0f}{_most(most)} {unit}"


def _most(most: float | None) -> str:
    return "" if most is None else f"/{most:.0f}"


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None
