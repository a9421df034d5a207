"""The object `hang` of a report, as `diag.render.hang_json` writes it."""

from __future__ import annotations

from diag.model.live import Frame
from diag.ranks.hang import Call, Differing, Fault, GroupLabel, MemberRow, RankRow, Suspect, Undecided, Wait, Where
from diag.ranks.heartbeats import RankBeat
from diag.render.contract.record import fields_of, many, record

FRAME = record("HangFrame", fields_of(Frame, "function", "file"), line=int | None)
GROUP = fields_of(GroupLabel)
GROUP_LABEL = record("HangGroupLabel", GROUP)
CALL = record(
    "HangCall",
    fields_of(Call, "rank", "op", "sequence", "is_p2p", "peer", "input_sizes", "output_sizes", "dtypes"),
    group=str,
)
WHERE = record("HangWhere", fields_of(Where, "rank", "what", "says"), frame=FRAME | None)

FAULT = record(
    "HangFault",
    fields_of(
        Fault,
        *("ranks", "candidates", "sequence", "waiting", "completed_by", "is_queue_empty", "confidence", "note"),
    ),
    cause=str,
    cause_in_words=str,
    group=GROUP_LABEL | None,
    call=CALL | None,
    differing=many(record("HangDiffering", fields_of(Differing))),
    where=many(WHERE),
    frame=FRAME | None,
)

HANG = record(
    "Hang",
    headline=str,
    finding_id=str | None,
    world_size=int | None,
    dumped=many(int),
    absent=many(int),
    named=many(int),
    faults=many(FAULT),
    suspects=many(record("HangSuspect", fields_of(Suspect, "rank", "awaited_by"), call=CALL | None, where=many(WHERE))),
    undecided=many(record("HangUndecided", fields_of(Undecided))),
    ranks=many(
        record(
            "HangRank",
            fields_of(RankRow, "rank", "source", "state", "outstanding"),
            oldest=CALL | None,
            chain=many(record("HangWait", fields_of(Wait, "rank", "on", "need"), call=CALL | None)),
            where=many(WHERE),
        )
    ),
    groups=many(record("HangGroup", GROUP, open_call=CALL | None, members=many(MemberRow))),
    stacks=many(
        record(
            "HangStacks", ranks=many(int | None), pids=many(int), moved=int | None, own=FRAME | None, frames=many(FRAME)
        )
    ),
    gil=many(record("HangGil", rank=int | None, pid=int, frames=many(FRAME))),
    heartbeats=many(record("HangHeartbeat", fields_of(RankBeat), condition=str)),
    checklist=many(record("HangQuestion", question=str, answer=str, because=str, next=str | None)),
    unread=many(record("HangUnread", path=str, rank=int | None, because=str)),
    notes=many(str),
)
