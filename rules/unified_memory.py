"""Unified memory: pages that move to and fro between host and device."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.rules import queries
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline import unified_memory
from diag.timeline.device import DeviceTimeline
from diag.timeline.gpu_work import NONE, GpuOps
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace
from diag.timeline.unified_memory import PageFaults

COHERENT = re.compile(r"\bG[HB]\d+\b")
"""Devices that share the CPU's page tables: what one side reads of the other's memory need not move."""


@device_rule("memory.thrash", needs=("migration",))
def thrashing_pages(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Pages of unified memory move to and fro.

    Asks      Do the same pages of unified memory move between host and device again and again?
    Decides   Unified memory moves in blocks of 2 MiB. A block thrashes when it moved back where it had come from at
              least `fewest_turns` times: once is a result that is read. Prefetches that the program asked for do not
              count. Time = the union of the copies of such blocks and of the device's page faults in them; fires at
              `share` of the window. On devices that read the host's memory over a coherent link (GH200, GB200) pages
              need not move: without moves nothing is said there.
    Matters   A touched page waits for its fault to be served, tens of microseconds, and for a copy over the link, and
              the kernel that touched it waits as well.
    Do        Prefetch before use (cudaMemPrefetchAsync), say who uses what (cudaMemAdvise: preferred location, accessed
              by, read mostly), or copy explicitly what both sides touch in each step. If the cause is eviction, the
              working set does not fit.
    Refute    Prefetch the data before the kernels for one run: if the time stays, the moves were hidden.
    """
    moves = _moves(trace, device)
    if not len(moves):
        is_coherent = COHERENT.search(device.hardware or "")
        yield CannotTell(subject_of(device), _UNSEEN) if is_coherent else Clear(subject_of(device))
        return
    (address,) = trace.details(moves, "address")
    known = address != NONE
    moves, address = moves.select(known), address[known]
    blocks, turns = unified_memory.turns_by_block(moves, address)
    thrashing = turns >= limits["fewest_turns"]
    to_and_fro = moves.select(unified_memory.in_blocks(address, blocks[thrashing]))
    faults = unified_memory.load_page_faults(trace.case, device.source_id, device.process_id, device.device)
    faulting = _time_of_faults(faults, unified_memory.in_blocks(faults.address, blocks[thrashing])) & device.window
    time = (to_and_fro.union() & device.window) | faulting
    share = device.share(time)
    if share < limits["share"]:
        yield Clear(subject_of(device))
        return
    n_bytes = int(to_and_fro.bytes.sum())
    yield Finding(
        title=f"Unified memory thrashes: {units.size(n_bytes)} move to and fro",
        claim=f"{units.count(int(thrashing.sum()), 'block')} of unified memory (2 MiB each) turned back "
        f"{units.count(int(turns[thrashing].sum()), 'time')}; moving them and serving their faults takes "
        f"{units.time(time.measure_ns)} ({units.share(share)} of the window).",
        subject=subject_of(device),
        share=share,
        recoverable_ns=time.measure_ns,
        confidence="medium",
        counterfactual=f"If these pages lay where they are used, the window would be at most "
        f"{units.time(time.measure_ns)} shorter; what is copied or prefetched in their place takes its own time.",
        evidence=list(_thrash_evidence(trace, device, to_and_fro, faulting, int(turns[thrashing].max()))),
        refute="Prefetch the data before the kernels for one run: if the time stays, the moves were hidden.",
        next=[
            "cudaMemPrefetchAsync(pointer, bytes, device, stream) before the kernels, and back before the host reads.",
            "cudaMemAdvise: cudaMemAdviseSetReadMostly for what is only read, cudaMemAdviseSetPreferredLocation and "
            "cudaMemAdviseSetAccessedBy for what one side uses rarely.",
            "Copy explicitly (cudaMemcpyAsync from pinned memory) what both sides touch in each step.",
            *([] if trace.source.captured("gpu_page_fault") else [_CAPTURE_FAULTS]),
        ],
        extent=time,
    )


def _moves(trace: Trace, device: DeviceTimeline) -> GpuOps:
    """Copies of unified memory between host and device, without those that the program asked for."""
    moves = device.ops.select(np.isin(device.ops.copy_kind, (unified_memory.TO_DEVICE, unified_memory.TO_HOST)))
    if not len(moves):
        return moves
    asked_for = trace.case.arrays(_PREFETCHES.format(source=device.source_id), {"id": "i8"})["id"]
    return moves.select(~np.isin(moves.id, asked_for))


def _time_of_faults(faults: PageFaults, selection: NDArray[np.bool_]) -> Intervals:
    return Intervals.union_of(faults.start_ns[selection], faults.end_ns[selection])


def _thrash_evidence(
    trace: Trace, device: DeviceTimeline, moves: GpuOps, faulting: Intervals, most_turns: int
) -> Iterator[Evidence]:
    rows = queries.operations(device, _MOVE_COLUMNS, "copy_kind IN ('unified h2d', 'unified d2h')")
    for kind, label in (
        (unified_memory.TO_DEVICE, "moved to the device"),
        (unified_memory.TO_HOST, "moved to the host"),
    ):
        of = moves.select(moves.copy_kind == kind)
        yield Evidence(label, (of.union() & device.window).measure_ns, "ns", "union of those blocks' copies", rows)
        yield Evidence(f"bytes {label}", int(of.bytes.sum()), "bytes", "sum over those blocks' copies", rows)
    yield Evidence("most turns of one block", most_turns, "count", "copies against the direction of the one before")
    if trace.source.captured("gpu_page_fault"):
        formula = "union of the device's page faults in those blocks"
        yield Evidence("page faults being served", faulting.measure_ns, "ns", formula)
    for cause, n_bytes in trace.case.db.execute(_CAUSES, (device.source_id, device.process_id, device.device)):
        yield Evidence(f"moved for: {cause}", int(n_bytes), "bytes", "all unified copies with this cause")
    for function, count in trace.case.db.execute(_TOUCHED_BY, (device.source_id, device.process_id)):
        yield Evidence(f"touched on the host by {function}", int(count), "count", "page faults of the CPU")


_UNSEEN = "this device reads the host's memory over a coherent link: what did not move leaves no trace"
_CAPTURE_FAULTS = (
    "See who touches the pages: nsys profile --cuda-um-gpu-page-faults=true --cuda-um-cpu-page-faults=true"
)
_PREFETCHES = "SELECT id FROM gpu_op WHERE source_id = {source:d} AND migration_cause = 'user prefetch'"
_MOVE_COLUMNS = "copy_kind, migration_cause, address, bytes, start_ns, end_ns"
_CAUSES = """
    SELECT migration_cause, TOTAL(bytes) FROM gpu_op
     WHERE source_id = ? AND process_id = ? AND device = ? AND kind = 'copy' AND migration_cause IS NOT NULL
     GROUP BY 1 ORDER BY 2 DESC, 1
"""
_TOUCHED_BY = """
    SELECT n.text, TOTAL(f.count) FROM page_fault f JOIN name n ON n.id = f.name_id
     WHERE f.source_id = ? AND f.process_id = ? AND f.device IS NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3
"""
