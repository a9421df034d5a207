"""The sections of the Launch screen as text: speed of light, occupancy, stalls, NVIDIA's rules, conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from textual.content import Content

from diag.launches.kernel import Untold
from diag.launches.occupancy import LaunchOccupancy
from diag.launches.stalls import Stall, by_class
from diag.model import units
from diag.model.occupancy import LIMITERS
from diag.model.speed_of_light import Side
from diag.model.stall_reasons import reasons
from diag.rules import occupancy_remedies
from diag.rules.launch_report import LaunchRow
from diag.rules.vendor_rules import said
from diag.tui.launch_facts import LaunchFacts
from diag.tui.memory_chart import NOT_COLLECTED, memory_chart, unknown
from diag.tui.text import content, safe

LABEL = 34
"""Cells of what stands before a bar."""
MOST_UNITS = 6
"""Units of each side that are listed, the busiest."""
NARROWEST_BAR = 10
EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(share: float, width: int) -> str:
    """
    >>> bar(0.5, 8), bar(0.33, 4), bar(2.0, 3)
    ('████····', '█▎··', '███')
    """
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (EIGHTHS[rest] if rest else "")).ljust(width, "·")


def _measure(label: str, pct: float | None, width: int, style: str = "") -> Content:
    """A quantity in percent with its bar."""
    if pct is None:
        return Content.styled(f"{safe(label, LABEL):<{LABEL}} {NOT_COLLECTED}", "dim")
    value = f"{pct:6.1f} %"
    room = max(NARROWEST_BAR, min(100, width - LABEL - len(value) - 2))
    return Content.styled(f"{safe(label, LABEL):<{LABEL}}", style) + Content(f"{value} {bar(pct / 100, room)}")


def _title(text: str) -> Content:
    return Content.styled(text, "bold underline")


def _joined(lines: Iterator[Content]) -> Content:
    return Content("\n").join(lines)


# ---- speed of light, and the conditions of it ----------------------------------------------------------------------


def speed_of_light(facts: LaunchFacts, width: int) -> Content:
    return _joined(_speed_of_light(facts, width))


def _speed_of_light(facts: LaunchFacts, width: int) -> Iterator[Content]:
    row = facts.row
    yield _measure("SM", row.sol.sm_pct, width, "bold")
    yield _measure("Memory", row.sol.memory_pct, width, "bold")
    yield _measure("DRAM", row.sol.dram_pct, width, "bold")
    yield content(f"Bound: {row.bound or 'not known: a roofline needs ncu --set roofline'}")
    titles: dict[Side, str] = {"sm": "Busiest units of the SMs", "memory": "Busiest units of the memory system"}
    for side, title in titles.items():
        if used := facts.units[side][:MOST_UNITS]:
            yield Content("")
            yield _title(title)
            yield from (_measure(unit.name, unit.pct, width) for unit in used)
    yield Content("")
    yield _title("Conditions")
    yield from (Content(f"{name:<14}") + content(value) for name, value in conditions(row))


def conditions(row: LaunchRow) -> Iterator[tuple[str, str]]:
    """Under which the launch was measured: not those of the run."""
    clocks = row.clocks
    locked = {True: "locked to base clock", False: "not locked", None: "not known whether locked"}[clocks.is_locked]
    yield "duration", NOT_COLLECTED if row.duration_ns is None else units.time(row.duration_ns)
    yield "SM clock", f"{_hz(clocks.sm_hz)}, {locked} while it was measured"
    yield "memory clock", _hz(clocks.memory_hz)
    flushed = {"all": "flushed before each pass", "none": "kept as they were"}.get(row.cache_control or "", "not known")
    yield "caches", flushed
    passes = "" if row.passes is None else f", {units.count(row.passes, 'pass')}"
    yield "replay", f"{row.replay or 'not known'}{passes}"
    yield "device", row.device_name or "not known"
    registers = "?" if row.registers_per_thread is None else str(row.registers_per_thread)
    yield "launch", f"{row.configuration}, {registers} registers per thread, stream {_or_unknown(row.stream)}"
    if row.cluster:
        yield "cluster", "×".join(map(str, row.cluster))
    if row.ranges:
        yield "ranges", " > ".join(row.ranges)
    if row.timeline:
        place = row.timeline
        yield (
            "in the run",
            f"{units.count(place.count, 'launch')}, {units.time(place.total_ns)} together, confidence "
            f"{place.confidence}: {place.how}",
        )


def _hz(hz: float | None) -> str:
    return NOT_COLLECTED if hz is None else units.quantity(hz, "Hz")


def _or_unknown(value: int | None) -> str:
    return "?" if value is None else str(value)


# ---- memory --------------------------------------------------------------------------------------------------------


def memory(facts: LaunchFacts) -> Content:
    lines = [Content(line) for line in memory_chart(facts.memory)]
    if because := unknown(facts.memory):
        lines.append(content(because, "dim"))
    return Content("\n").join(lines)


# ---- occupancy -----------------------------------------------------------------------------------------------------


def occupancy(facts: LaunchFacts, width: int) -> Content:
    told = facts.occupancy
    if isinstance(told, Untold):
        return content(f"Occupancy is not known: {told.because}.")
    achieved = facts.row.occupancy.achieved_pct if facts.row.occupancy else None
    return _joined(_occupancy(told, achieved, width))


def _occupancy(told: LaunchOccupancy, achieved_pct: float | None, width: int) -> Iterator[Content]:
    fits = told.theoretical
    yield _measure("Theoretical", fits.theoretical_pct, width, "bold")
    yield _measure("Achieved", achieved_pct, width, "bold")
    yield content(
        f"{units.count(fits.blocks_per_sm, 'block')} of {told.block.warps} warps fit on an SM: {fits.warps_per_sm} of "
        f"{told.sm.warps_per_sm} warps. {_waves(told)}"
    )
    yield Content("")
    yield _title(f"{'':2}{'if only this counted':<24}{'blocks per SM':>14}{'warps':>8}{'occupancy':>12}")
    for name in LIMITERS:
        yield _limit(told, name, getattr(fits.limits, name))
    yield Content("")
    yield _title("What would change it")
    if fits.warps_per_sm == told.sm.warps_per_sm:
        yield content("Nothing: an SM has no room for more warps.")
    else:
        yield from (content(f"- {step}") for step in occupancy_remedies.limiters(told.sm, told.block, fits).steps)


def _limit(told: LaunchOccupancy, name: str, blocks: int | None) -> Content:
    label = name.replace("_", " ")
    if blocks is None:
        return Content.styled(f"  {label:<24}{'no limit: none used, or not known':>34}", "dim")
    limits = name in told.theoretical.limiters
    warps = min(blocks * told.block.warps, told.sm.warps_per_sm)
    sign = "▶ " if limits else "  "
    line = f"{sign}{label:<24}{blocks:>14,}{warps:>8}{100 * warps / told.sm.warps_per_sm:>10.1f} %"
    return Content.styled(line + ("  limits" if limits else ""), "bold" if limits else "")


def _waves(told: LaunchOccupancy) -> str:
    if told.waves is None or told.capacity is None:
        return "In how many waves the grid runs is not known."
    return f"The device holds {told.capacity:,} blocks at a time: the grid runs in {told.waves:.2f} waves."


# ---- stalls --------------------------------------------------------------------------------------------------------

WHOLES = {
    "latency": "Of the time between two instructions of a warp (counters)",
    "samples": "Of all samples of warps (sampler)",
}


def stalls(facts: LaunchFacts, width: int) -> Content:
    if not facts.stalls:
        return content("Stalls were not collected: ncu --section WarpStateStats --section SourceCounters")
    return _joined(line for whole in WHOLES for line in _of_whole(facts.stalls, whole, width))


def _of_whole(found: Sequence[Stall], whole: str, width: int) -> Iterator[Content]:
    of = [stall for stall in found if stall.share_of == whole and stall.share > 0]
    if not of:
        return
    yield _title(WHOLES[whole])
    for stall_class, inside in by_class(of):
        total = sum(stall.share for stall in inside)
        yield _measure(stall_class.title[0].upper() + stall_class.title[1:], 100 * total, width, "bold")
        for stall in sorted(inside, key=lambda each: -each.share):
            waits = reasons()[stall.reason].waits_for
            yield Content(f"  {stall.reason:<{LABEL - 2}}{100 * stall.share:6.1f} %  {waits}")
    stall_class, _ = by_class(of)[0]
    if stall_class.do:
        yield content(f"Against {stall_class.title}, where nothing else is at its limit:", "bold")
        yield from (content(f"- {step}") for step in stall_class.do)
    yield Content("")


# ---- NVIDIA's rules ------------------------------------------------------------------------------------------------

_LINK = re.compile(r"@[a-z]+:[^@:]*:([^@]*)@")
"""As `@section:Occupancy:Occupancy@`: what the text is, after what it leads to."""
SIGNS = {"fault": "●", "no fault": "○", "error": "×"}


def vendor(row: LaunchRow) -> Content:
    if not row.vendor_rules:
        return content("The report holds no answers of NVIDIA's rules: ncu --apply-rules yes")
    ordered = sorted(row.vendor_rules, key=lambda rule: (list(SIGNS).index(said(rule)), -(rule.speedup_pct or 0.0)))
    lines = [content("As NVIDIA's rules said when the launch was profiled; ours are on screen 2.", "dim")]
    for rule in ordered:
        speedup = (
            "" if rule.speedup_pct is None else f", est. {rule.speedup_kind or ''} speed-up {rule.speedup_pct:.1f} %"
        )
        kind = said(rule)
        lines.append(content(f"{SIGNS[kind]} {rule.type}: {rule.title or rule.name or rule.rule}{speedup}", "bold"))
        lines.append(content(_LINK.sub(r"\1", rule.message)))
    return Content("\n").join(lines)
