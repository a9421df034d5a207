"""One GPU in the live view: a line of bars, and lines of facts below."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.model.live import GpuReading
from diag.render.layout import pad, wrap
from diag.render.live_marks import Line, Look, Span, bar, fitted, name, span, sparkline
from diag.render.live_view import GpuRow
from diag.render.table import NOT_CAPTURED

LONGEST_NAME = 40
INDENT = "      "
BAR_ROOM = 8
WIDEST_BAR = 20
SPARK_ROOM = 12
WIDEST_SPARK = 60
NARROWEST = 80


def gpu_lines(row: GpuRow, look: Look, *, is_brief: bool = False) -> list[Line]:
    """`is_brief`: the bars alone."""
    lines = [_bars(row, look)]
    if is_brief:
        return lines
    lines += [[span(line, "dim")] for line in wrap(", ".join(_facts(row)), look.width, INDENT)]
    if alarms := "; ".join(_alarms(row)):
        lines += [[span(line, "warning")] for line in wrap(alarms, look.width, INDENT)]
    return lines


def _bars(row: GpuRow, look: Look) -> Line:
    """At 80 cells all of it fits; what is wider goes to the last minute first, then to the bars."""
    gpu = row.reading
    spare = max(0, look.width - NARROWEST)
    spark = min(WIDEST_SPARK, SPARK_ROOM + spare // 2)
    room = min(WIDEST_BAR, BAR_ROOM + (spare - (spark - SPARK_ROOM)) // 2)
    resident = NOT_CAPTURED if gpu.resident_pct is None else f"{gpu.resident_pct:.0f} %"
    line = [
        span(pad(f"GPU {gpu.index} ", len(INDENT)), "title"),
        Span("kernel resident "),
        *bar(_ratio(gpu.resident_pct, 100), room, look.marks),
        Span(f"{resident:>6} "),
        Span(sparkline(row.resident_pct, 100, spark, look.marks), "bar"),
        Span("  memory "),
        *bar(_ratio(gpu.memory_used_bytes, gpu.memory_total_bytes), room, look.marks),
        span(f" {_memory(gpu)}"),
    ]
    return fitted(line, look.width)


def _memory(gpu: GpuReading) -> str:
    if gpu.memory_used_bytes is None:
        return NOT_CAPTURED
    used = units.size(gpu.memory_used_bytes)
    if gpu.memory_total_bytes is None:
        return used
    total = units.size(gpu.memory_total_bytes)
    return f"{used.removesuffix(total[-3:])}/{total}"  # the unit once, where it is the same


def _facts(row: GpuRow) -> Iterator[str]:
    """What is known, the most telling first."""
    gpu = row.reading
    yield name(gpu.name, LONGEST_NAME) + (f" MIG {name(gpu.mig_profile, LONGEST_NAME)}" if gpu.mig_profile else "")
    if gpu.sm_active_pct is not None:
        yield f"SM active {gpu.sm_active_pct:.0f} %"
    if gpu.tensor_active_pct is not None:
        yield f"tensor active {gpu.tensor_active_pct:.0f} %"
    if gpu.memory_active_pct is not None:
        yield f"memory active {gpu.memory_active_pct:.0f} %"
    if gpu.power_w is not None:
        yield f"{gpu.power_w:.0f}{_of(gpu.power_limit_w)} W"
    if gpu.temperature_c is not None:
        yield f"{gpu.temperature_c:.0f}{_of(gpu.slowdown_temperature_c)} °C"
    yield from _clock("SM", gpu.sm_clock_hz, gpu.sm_clock_max_hz)
    yield from _clock("memory", gpu.memory_clock_hz, gpu.memory_clock_max_hz)
    yield from _traffic("PCIe", gpu.pcie_rx_bytes_per_s, gpu.pcie_tx_bytes_per_s)
    if gpu.pcie_generation is not None and gpu.pcie_width is not None:
        yield f"gen {gpu.pcie_generation}{_of(gpu.pcie_generation_max)} x{gpu.pcie_width}{_of(gpu.pcie_width_max)}"
    yield from _traffic("NVLink", row.nvlink_rx_bytes_per_s, row.nvlink_tx_bytes_per_s)
    if gpu.ecc_corrected is not None and gpu.ecc_uncorrected is not None:
        yield f"ECC {gpu.ecc_corrected:,} corrected {gpu.ecc_uncorrected:,} not"


def _alarms(row: GpuRow) -> Iterator[str]:
    if reasons := row.reading.clock_reasons:
        yield "clocks held down: " + ", ".join(name(reason.replace("_", " "), LONGEST_NAME) for reason in reasons)
    if row.last_xid is not None:
        yield f"XID {row.last_xid}"


def _clock(of: str, hz: int | None, most_hz: int | None) -> Iterator[str]:
    if hz is not None:
        yield f"{of} clock {hz / 1e6:.0f}{_of(None if most_hz is None else most_hz / 1e6)} MHz"


def _traffic(link: str, into: float | None, out: float | None) -> Iterator[str]:
    shown = [f"{way} {units.size(rate)}/s" for way, rate in (("in", into), ("out", out)) if rate is not None]
    if shown:
        yield f"{link} {' '.join(shown)}"


def _of(most: float | None) -> str:
    return "" if most is None else f"/{most:.0f}"


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None
