"""Flight recorders, read from the case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from diag.model.live import Frame, ThreadStack
from diag.model.live_stacks import own_frame
from diag.ranks.dumps import Column, Dumps, Entries, Membership, RankDump, together
from diag.ranks.hang import Fault, GroupLabel, HangAnalysis
from diag.ranks.members import members_of
from diag.ranks.signatures import CallSignature, CallSignatures
from diag.store.case import Case, Source

SIGNATURES = "SELECT id, op, input_sizes, input_dtypes, output_sizes, output_dtypes FROM call_signature ORDER BY id"

GROUPS = """
SELECT id, source_id, name, description, ranks, last_enqueued, last_started, last_completed
  FROM process_group
 ORDER BY source_id, id"""

ENTRIES = """
SELECT id, source_id, group_id, signature_id,
       COALESCE(record_id, -1) AS record_id,
       COALESCE(sequence, -1) AS sequence,
       COALESCE(p2p_sequence, -1) AS p2p_sequence,
       COALESCE(is_p2p, 0) AS is_p2p,
       COALESCE(created_ns, -1) AS created_ns,
       COALESCE(completed_ns, -1) AS completed_ns,
       COALESCE(is_retired, 0) OR completed_ns IS NOT NULL OR COALESCE(state = 'completed', 0) AS is_done,
       COALESCE(timeout_ns, -1) AS timeout_ns,
       COALESCE(stack_id, -1) AS stack_id
  FROM recorder_entry
 ORDER BY source_id, record_id, id"""

COLUMNS = ("id", "source_id", "group_id", "signature_id", "record_id", "sequence", "p2p_sequence", "is_p2p",
           "created_ns", "completed_ns", "is_done", "timeout_ns", "stack_id")  # fmt: skip


LARGEST_RANK = 1 << 31
"""Above all that a dump can hold."""


def load_dumps(case: Case, n_ranks: int | None = None) -> Dumps:
    """`n_ranks`: of the job, where it is known: a rank beyond, out of a file's name, is as good as none."""
    sources = [source for source in case.sources if source.captured("process_group")]
    signatures = CallSignatures({row[0]: CallSignature(*row) for row in case.db.execute(SIGNATURES)})
    dumps = list(_dumps(case, sources, signatures))
    ranks = range(n_ranks or LARGEST_RANK)
    ranked = [dump for dump in dumps if dump.rank in ranks]
    return together(ranked, unranked=tuple(dump.source for dump in dumps if dump.rank not in ranks))


def _dumps(case: Case, sources: Sequence[Source], signatures: CallSignatures) -> Iterator[RankDump]:
    memberships: defaultdict[int, list[Membership]] = defaultdict(list)
    for group_id, source_id, name, description, ranks, enqueued, _, completed in case.db.execute(GROUPS):
        label = GroupLabel(name or "", description or "", members_of(ranks))
        memberships[source_id].append(Membership(group_id, label, enqueued, completed))
    rows = case.arrays(ENTRIES, dict.fromkeys(COLUMNS, "<i8"))
    for source in sources:
        first, last = np.searchsorted(rows["source_id"], [source.id, source.id + 1])
        groups = memberships[source.id]
        yield RankDump(
            rank=-1 if source.rank is None else source.rank,
            source=source.id,
            world_size=source.world_size,
            groups=groups,
            entries=_entries({name: column[first:last] for name, column in rows.items()}, groups),
            signatures=signatures,
        )


def _entries(rows: Mapping[str, Column], groups: Sequence[Membership]) -> Entries:
    ids = np.array([group.id for group in groups], dtype=np.int64)
    return Entries(
        id=rows["id"],
        group=np.searchsorted(ids, rows["group_id"]),
        signature=rows["signature_id"],
        record_id=rows["record_id"],
        sequence=rows["sequence"],
        p2p_sequence=rows["p2p_sequence"],
        is_p2p=rows["is_p2p"] != 0,
        is_done=rows["is_done"] != 0,
        created_ns=rows["created_ns"],
        completed_ns=rows["completed_ns"],
        timeout_ns=rows["timeout_ns"],
        stack_id=rows["stack_id"],
    )


FRAMES = """
SELECT COALESCE(f.text, '?'), COALESCE(m.text, ''), COALESCE(s.line, 0)
  FROM stack s
  LEFT JOIN name f ON f.id = s.symbol_id
  LEFT JOIN name m ON m.id = s.module_id
 WHERE s.id = ?
 ORDER BY s.depth"""


def with_frames(case: Case, hang: HangAnalysis) -> HangAnalysis:
    """Each fault with the line of own code that made its call, where the recorder has stacks and nothing says more."""
    return replace(hang, faults=tuple(_with_frame(case, fault) for fault in hang.faults))


def _with_frame(case: Case, fault: Fault) -> Fault:
    call = fault.by_rank.get(fault.ranks[0], fault.call) if fault.ranks else fault.call
    if fault.frame is not None or call is None or call.stack_id is None:
        return fault
    frames = [Frame(*row) for row in case.db.execute(FRAMES, (call.stack_id,))]
    return replace(fault, frame=own_frame(ThreadStack(0, None, None, frames, False, False)))
