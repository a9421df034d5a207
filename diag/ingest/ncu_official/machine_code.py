"""Machine code of launches as text, from the disassembler that NVIDIA's library brings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from diag.ingest.launch_records import Instruction, Metric
from diag.ingest.launch_values import integer
from diag.ingest.ncu_official.texts import text

SOURCE_METRICS = (
    "branch_inst_executed",
    "derived__avg_thread_executed",
    "derived__memory_",
    "inst_executed",
    "memory_",
    "smsp__branch_targets_",
    "smsp__pcsamp_",
    "thread_inst_executed",
)
"""How those begin that have a value for each instruction, by address (Profiling Guide, Source Metrics). Keys of others
are sizes or numbers, which the library may well take for addresses."""

INSTRUCTION_BYTES = 16
"""Since Volta. What is older is told only where a metric has a value for it."""


class CodeReader:
    """Reads a kernel once, however often it was launched: an instruction takes 30 µs."""

    def __init__(self, api: Any) -> None:
        self._mangled = api.IAction.NameBase_MANGLED
        self._known: dict[tuple[str | None, int | None], dict[int, Instruction | None]] = {}

    def instructions(self, action: Any, metrics: Mapping[str, Metric]) -> Sequence[Instruction]:
        """Those that a metric has a value for and, where it is known of which lines they were made, all others, too."""
        start = _start(metrics.get("launch__function_pcs"))
        kernel = text(action.name(self._mangled)), start
        known = self._known.get(kernel)
        if known is None:
            known = self._known[kernel] = {each.address: each for each in _with_lines(action, start)}
        told = {address for address, each in known.items() if each and each.line is not None}
        for address in _addresses(metrics):
            if address not in known:
                known[address] = _instruction(action, address)
            told.add(address)
        found = (known[address] for address in sorted(told))
        return [each for each in found if each is not None]


def _with_lines(action: Any, start: int | None) -> Iterator[Instruction]:
    """The instructions of a kernel that was compiled with its lines, one after the other."""
    if start is None or action.source_info(start) is None:
        return
    while each := _instruction(action, start):
        yield each
        start += INSTRUCTION_BYTES


def _instruction(action: Any, address: int) -> Instruction | None:
    sass = text(action.sass_by_pc(address))
    if not sass:
        return None
    place = action.source_info(address)
    file, line = (None, None) if place is None else (text(place.file_name()), place.line())
    return Instruction(address, sass.strip(), file, line)


def _addresses(metrics: Mapping[str, Metric]) -> set[int]:
    of_instructions = (metric for name, metric in metrics.items() if name.startswith(SOURCE_METRICS))
    return {part.key for metric in of_instructions for part in metric.instances if isinstance(part.key, int)}


def _start(addresses: Metric | None) -> int | None:
    """Where the kernel's first instruction lies. Newer files list it, older ones say it as a number."""
    if addresses is None:
        return None
    return integer(addresses.instances[0].value if addresses.instances else addresses.value)
