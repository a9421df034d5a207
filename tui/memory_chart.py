"""The way of bytes through the memory system during one launch, in boxes and arrows that fit 80 columns.

As the memory chart of Nsight Compute (Kernel Profiling Guide, Memory Chart): between the kernel and the L1 caches
stand the sectors that it asked for, further down what the caches passed on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diag.model import units
from diag.model.quantities import Measured, Missing, together

WIDTH = 78
HEIGHT = 15
LINK, BOX, KERNEL = 13, 11, 6
"""Cells of an arrow, of a cache or memory, and of the kernel."""
NOT_COLLECTED = "not collected"

Quantities = Mapping[str, Measured | Missing]


def memory_chart(memory: Quantities) -> list[str]:
    """`HEIGHT` lines of `WIDTH` cells. What was not collected says so, and is never 0."""
    columns = [
        _box(["", "", "", "k", "e", "r", "n", "e", "l"], HEIGHT, KERNEL),
        _link({
            1: _flow(memory, "global_loaded", "global loads", "◀"),
            4: _flow(memory, "global_stored", "global stores", "▶"),
            7: _flow(memory, "local_bytes", "local, both", "◀▶"),
            11: _wavefronts(memory),
        }),
        _box(["L1/TEX", *_cache(memory, "l1_hit_rate", "l1_throughput")], 10, BOX)
        + _box(["shared", "conflicts", _conflicts(memory)], HEIGHT - 10, BOX),
        _link({
            1: _flow(memory, "l1_fill", "reads", "◀"),
            4: _flow(memory, "l2_written", "writes", "▶"),
        }),
        _box(["L2", *_cache(memory, "l2_hit_rate", "l2_throughput")], HEIGHT, BOX),
        _link({
            1: _flow(memory, "dram_read", "reads", "◀"),
            4: _flow(memory, "dram_written", "writes", "▶"),
            8: _flow(memory, "host_bytes", "", "◀▶")[1:],
            12: _flow(memory, "peer_bytes", "", "◀▶")[1:],
        }),
        _box(["device", "memory", "busy", _percent(memory["dram_throughput"])], 7, BOX)
        + _box(["system", "memory"], 4, BOX)
        + _box(["other", "GPUs"], 4, BOX),
    ]  # fmt: skip
    return ["".join(parts) for parts in zip(*columns, strict=True)]


def _box(texts: Sequence[str], height: int, width: int) -> list[str]:
    """Lines of text in a frame."""
    inner = width - 2
    lines = [f"│{text:^{inner}}│" for text in (*texts, *[""] * height)[: height - 2]]
    return [f"┌{'─' * inner}┐", *lines, f"└{'─' * inner}┘"]


def _link(flows: Mapping[int, Sequence[str]]) -> list[str]:
    """Lines between two boxes; each flow begins at its own."""
    lines = [" " * LINK] * HEIGHT
    for at, texts in flows.items():
        for line, text in enumerate(texts, at):
            lines[line] = f"{text:^{LINK}}"
    return lines


def _flow(memory: Quantities, name: str, label: str, heads: str) -> list[str]:
    """What flows, its arrow with the bytes, and its rate over the whole of the launch."""
    found, duration = memory[name], memory["duration"]
    if isinstance(found, Missing):
        return [label, _arrow("", heads), NOT_COLLECTED]
    rate = "" if isinstance(duration, Missing) else units.rate(found.value, duration.value)
    return [label, _arrow(units.size(found.value), heads), rate]


def _arrow(text: str, heads: str) -> str:
    left, right = "◀" if "◀" in heads else "─", "▶" if "▶" in heads else "─"
    return f"{left}{f' {text} ' if text else '':─^{LINK - 2}}{right}"


def _wavefronts(memory: Quantities) -> list[str]:
    """Shared memory is counted in turns of its banks."""
    found = memory["shared_wavefronts"]
    if isinstance(found, Missing):
        return ["shared", _arrow("", "◀▶"), NOT_COLLECTED]
    return ["wavefronts", _arrow(_count(found.value), "◀▶")]


def _count(value: float) -> str:
    return units.quantity(value, "inst").removesuffix("inst").rstrip()


def _conflicts(memory: Quantities) -> str:
    """Wavefronts that better placed accesses would not need, of all."""
    conflicts, all_of_them = memory["bank_conflicts"], memory["shared_wavefronts"]
    if isinstance(conflicts, Missing) or isinstance(all_of_them, Missing):
        return "unknown"
    return units.share(conflicts.value / all_of_them.value) if all_of_them.value else "none"


def _cache(memory: Quantities, hits: str, throughput: str) -> list[str]:
    return ["", "hit rate", _percent(memory[hits]), "", "busy", _percent(memory[throughput])]


def _percent(found: Measured | Missing) -> str:
    """A box is too narrow for more than one word of why."""
    return "unknown" if isinstance(found, Missing) else f"{found.value:.1f} %"


def unknown(memory: Quantities) -> str | None:
    """Why quantities of the chart are not known; None where all are."""
    missing = [each for each in memory.values() if isinstance(each, Missing)]
    return together(missing, most=3) if missing else None
