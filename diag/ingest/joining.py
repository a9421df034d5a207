"""Finds sources that recorded the same process, and by how much their clocks differ.

Both tools give their times as UTC, but each reads that clock in its own way. Events that both recorded tell the rest:
kernels of the same device, or else ranges of equal names on the same thread. What is found is stored with the source:
`clock_offset_ns` is corrected, `clock_error_ns` says how far to trust it, `joined_to` names whose axis it is on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from diag.model import units
from diag.store.case import Case, Source
from diag.timeline import gpu_work
from diag.timeline.alignment import MOST_APART_NS, Alignment, Events, align
from diag.timeline.ranges import OPEN_NS
from diag.timeline.trace import Trace

UNMEASURED_ERROR_NS = 1_000_000
"""Taken where the host's name shows one machine, and so one UTC clock, but no event that both recorded does."""


def join_sources(case: Case) -> None:
    """Joins the sources of the case that are of the same process."""
    traces = sorted((Trace(case, source) for source in case.sources), key=_rank)
    leaders: list[Trace] = []
    for guest in traces:
        leader = next((leader for leader in leaders if _same_process(leader, guest)), None)
        if leader is None or not _join(case, leader, guest, traces):
            leaders.append(guest)
    case.forget_sources()


def _rank(trace: Trace) -> tuple[bool, bool, int]:
    """The source with GPU work is the leader, of several the one of Nsight Systems, then the first."""
    has_work = any(trace.source.has(kind) for kind in gpu_work.KINDS)
    return not has_work, trace.source.kind != "nsys-sqlite", trace.source.id


def _same_process(leader: Trace, guest: Trace) -> bool:
    """Whether they may be: two files of the same tool are different processes, or different times of one."""
    a, b = leader.source, guest.source
    if a.kind == b.kind or (a.host and b.host and a.host != b.host):
        return False
    return bool(_pids(guest)) and _pids(guest) <= _pids(leader) and _overlap(leader, guest)


def _pids(trace: Trace) -> set[int]:
    return {trace.recorded.pid_of(thread) for thread in trace.recorded.threads}


def _overlap(leader: Trace, guest: Trace) -> bool:
    """Whether they recorded at the same time, as far as their clocks can tell."""
    (a_start, a_end), (b_start, b_end) = (
        tuple(time_ns + trace.source.clock_offset_ns for time_ns in trace.event_span) for trace in (leader, guest)
    )
    return a_start < b_end + MOST_APART_NS and b_start < a_end + MOST_APART_NS


def _join(case: Case, leader: Trace, guest: Trace, traces: Sequence[Trace]) -> bool:
    found = _shift(leader, guest)
    path = leader.source.path
    if found is None and not _must_be_it(leader, guest, traces):
        _note(
            case,
            guest.source,
            f"It may be of the same process as {path}, but no kernel or range that both recorded shows it: they are "
            "told apart. Announce ranges to both (torch.autograd.profiler.emit_nvtx, or NVTX beside record_function).",
        )
        return False
    what, alignment = found or ("", Alignment(0, UNMEASURED_ERROR_NS, 0))
    offset_ns = guest.source.clock_offset_ns + alignment.shift_ns
    case.db.execute(_JOIN, (offset_ns, alignment.error_ns, leader.source.id, guest.source.id))
    how = (
        f"aligned by {units.count(alignment.n_matches, what)} that both recorded, which moves it by "
        f"{units.time(alignment.shift_ns)}, give or take {units.time(alignment.error_ns)}"
        if found
        else f"by their UTC times alone, taken to differ by {units.time(alignment.error_ns)} at most"
    )
    _note(case, guest.source, f"Joined to {path}, the same process: {how}.")
    return True


def _must_be_it(leader: Trace, guest: Trace, traces: Sequence[Trace]) -> bool:
    """Whether both name the same machine, and no other trace of that time could be of the process just as well."""
    rivals = (
        other for other in traces if other.source.kind == guest.source.kind and other.source.id != guest.source.id
    )
    is_same_machine = bool(leader.source.host) and leader.source.host == guest.source.host
    return is_same_machine and not any(_same_process(leader, other) and _overlap(guest, other) for other in rivals)


def _shift(leader: Trace, guest: Trace) -> tuple[str, Alignment] | None:
    """What kind of event the clocks could be aligned by, the surest first, and the alignment."""
    tick_ns = max(leader.tick_ns, guest.tick_ns)
    for what, events in (("kernel", _kernels), ("range", _ranges)):
        numbers = _Numbers()
        if found := align(
            _absolute(events(leader, numbers), leader), _absolute(events(guest, numbers), guest), tick_ns=tick_ns
        ):
            return what, found
    return None


class _Numbers(dict[tuple[int, int, str], int]):
    """A number for each (pid, device or thread, name)."""

    def __missing__(self, key: tuple[int, int, str]) -> int:
        self[key] = len(self)
        return self[key]


def _kernels(trace: Trace, numbers: _Numbers) -> Events:
    """Kernels by their short names, on which demanglers agree."""
    parts = []
    for device in trace.devices:
        ops = device.ops.select(device.ops.kind == gpu_work.KERNEL)
        names, at = np.unique(ops.short_name_id, return_inverse=True)
        keys = [numbers[device.pid, device.device, trace.names.get(i, "")] for i in names.tolist()]
        parts.append(Events(np.array(keys, np.int64)[at], ops.start_ns, ops.end_ns))
    return _together(parts)


def _ranges(trace: Trace, numbers: _Numbers) -> Events:
    """Closed ranges that nest, by their name patterns."""
    parts = []
    for thread in trace.threads.values():
        ranges = thread.ranges.select(thread.ranges.end_ns != OPEN_NS)
        names, at = np.unique(ranges.name_id, return_inverse=True)
        keys = [numbers[trace.process_of(thread.thread_id).pid, thread.tid, trace.patterns[i]] for i in names.tolist()]
        parts.append(Events(np.array(keys, np.int64)[at], ranges.start_ns, ranges.end_ns))
    return _together(parts)


def _together(parts: Sequence[Events]) -> Events:
    nothing = np.empty(0, np.int64)
    parts = [Events(nothing, nothing, nothing), *parts]
    return Events(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Events)))


def _absolute(events: Events, trace: Trace) -> Events:
    offset_ns = trace.source.clock_offset_ns
    return replace(events, start_ns=events.start_ns + offset_ns, end_ns=events.end_ns + offset_ns)


def _note(case: Case, source: Source, text: str) -> None:
    case.insert("source_note", [{"source_id": source.id, "text": text}])


_JOIN = "UPDATE source SET clock_offset_ns = ?, clock_error_ns = ?, joined_to = ? WHERE id = ?"
