"""What of a PyTorch trace was read, and what was left out and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from diag.ingest.kineto_events import GPU_KINDS

CAPABILITIES = (
    "kernel", "copy", "memset", "graph", "api", "sync", "operator", "python", "annotation", "os_call", "sched",
    "cpu_sample", "overhead", "diagnostic", "memory_kind", "shapes", "graph_node", "collective", "cuda_event",
    "mps_server", "allocation",
)  # fmt: skip

LEGACY = (
    "The trace is one of torch.autograd.profiler, without categories: operators, and GPU time as it was measured "
    "around them. CUDA calls, streams and the time of day are not in it; torch.profiler records them."
)

LONGEST_NOTE = 2000


@dataclass
class Account:
    """Counts of events, kept while chunk after chunk is read."""

    events_read: int = 0
    rows: Counter[str] = field(default_factory=Counter)  # by fact
    unknown: Counter[str] = field(default_factory=Counter)  # by category
    wrong: int = 0
    negative: int = 0
    unfinished: int = 0
    odd_arguments: int = 0
    is_legacy: bool = False

    @property
    def has_gpu_work(self) -> bool:
        return any(self.rows[kind] for kind in GPU_KINDS)

    def facts(self) -> dict[str, int | None]:
        """Rows per fact. What a trace may hold and this one does not was not captured, as far as anyone can tell.

        But operations of all three kinds come with any GPU activity; synchronisation must be asked for.
        """
        facts = dict.fromkeys(CAPABILITIES, None) | {fact: n for fact in CAPABILITIES if (n := self.rows[fact])}
        if self.has_gpu_work:
            facts |= {fact: self.rows[fact] for fact in GPU_KINDS}
            facts["memory_kind"] = self.rows["memory_kind"] if self.rows["memory_kind"] or not facts["copy"] else None
        return facts

    def notes(self, stray_ends: int) -> list[str]:
        """`stray_ends` are events that ended without a beginning."""
        counted = {
            "values of a wrong type": self.wrong,
            "a negative duration": self.negative,
            "no duration": self.unfinished,
            "no beginning in the trace": stray_ends,
        }
        notes = [
            f"{count} events had {what} and were left out" if count > 1 else f"1 event had {what} and was left out"
            for what, count in counted.items()
            if count
        ]
        if self.odd_arguments:
            notes.append(f"{self.odd_arguments} arguments of communication had odd values and were left out")
        if self.unknown:
            kinds = ", ".join(f"{category} ({n})" for category, n in sorted(self.unknown.items()))
            said = f"events of these categories are not understood and were left out: {kinds}"
            notes.append(said[:LONGEST_NOTE])
        if self.is_legacy:
            notes.append(LEGACY)
        if not self.events_read:
            notes.append("the trace has no events")
        return notes
