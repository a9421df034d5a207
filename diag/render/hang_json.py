"""`diag hang` as JSON: the contract `diag.report/1` with an object `hang` (docs/json-contract.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from diag.model.live import Frame
from diag.ranks.hang import Call, Fault, GroupLabel, HangAnalysis, RankRow, Suspect, Undecided, Where
from diag.ranks.heartbeats import RankBeat
from diag.ranks.stack_clusters import StackCluster
from diag.render import hang_words
from diag.render.hang_view import HangView
from diag.render.json_report import document, plain


def render_hang_json(view: HangView, **_: object) -> str:
    return json.dumps(plain(document(view.report) | {"hang": _hang(view)}), indent=2, allow_nan=False) + "\n"


def _hang(view: HangView) -> Mapping[str, Any]:
    hang = view.hang
    return {
        "headline": hang_words.headline(view),
        "finding_id": view.lead.id if view.lead else None,
        "world_size": hang.world_size if hang else None,
        "dumped": list(hang.dumped) if hang else [],
        "absent": list(hang.absent) if hang else [],
        "named": list(hang.named) if hang else [],
        "faults": [_fault(each) for each in hang.faults] if hang else [],
        "suspects": [_suspect(each) for each in hang.suspects] if hang else [],
        "undecided": [_undecided(each) for each in hang.undecided] if hang else [],
        "ranks": [_rank(each) for each in hang.ranks] if hang else [],
        "groups": _groups(hang) if hang else [],
        "stacks": [_cluster(each) for each in view.clusters],
        "gil": [{"rank": each.rank, "pid": each.pid, "frames": _frames(each.frames)} for each in view.stacks.holders],
        "heartbeats": [_beat(each) for each in view.beats],
        "checklist": [asdict(each) for each in view.checks],
        "unread": [{"path": each.path, "rank": each.rank, "because": each.why} for each in view.unread],
        "notes": [*view.notes, *(hang.notes if hang else ())],
    }


def _fault(each: Fault) -> Mapping[str, Any]:
    return {
        "cause": each.cause.name.lower(),
        "cause_in_words": str(each.cause),
        "ranks": list(each.ranks),
        "candidates": list(each.candidates),
        "group": _group(each.group),
        "call": _call(each.call),
        "sequence": each.sequence,
        "waiting": list(each.waiting),
        "completed_by": list(each.completed_by),
        "differing": [{"what": differing.what, "ranks": list(differing.ranks)} for differing in each.differing],
        "is_queue_empty": each.is_queue_empty,
        "where": _wheres(each.where),
        "frame": _frame(each.frame),
        "confidence": each.confidence,
        "note": each.note,
    }


def _suspect(each: Suspect) -> Mapping[str, Any]:
    return {
        "rank": each.rank,
        "awaited_by": list(each.awaited_by),
        "call": _call(each.call),
        "where": _wheres(each.where),
    }


def _undecided(each: Undecided) -> Mapping[str, Any]:
    return {"rank": each.rank, "because": each.because, "deciders": list(each.deciders)}


def _rank(row: RankRow) -> Mapping[str, Any]:
    return {
        "rank": row.rank,
        "source": row.source,
        "state": row.state,
        "outstanding": row.outstanding,
        "oldest": _call(row.oldest),
        "chain": [
            {"rank": each.rank, "on": each.on, "need": each.need, "call": _call(each.call)} for each in row.chain
        ],
        "where": _wheres(row.where),
    }


def _groups(hang: HangAnalysis) -> list[Mapping[str, Any]]:
    return [
        {
            **(_group(row.group) or {}),
            "open_call": _call(row.open_call),
            "members": [asdict(each) for each in row.members],
        }
        for row in hang.groups
    ]


def _group(group: GroupLabel | None) -> Mapping[str, Any] | None:
    if group is None:
        return None
    ranks = None if group.ranks is None else list(group.ranks)
    return {"name": group.name, "description": group.description, "ranks": ranks}


def _call(call: Call | None) -> Mapping[str, Any] | None:
    if call is None:
        return None
    return {
        "rank": call.rank,
        "group": call.group.name,
        "op": call.op,
        "sequence": call.sequence,
        "is_p2p": call.is_p2p,
        "peer": call.peer,
        "input_sizes": call.input_sizes,
        "output_sizes": call.output_sizes,
        "dtypes": call.dtypes,
    }


def _wheres(wheres: Sequence[Where]) -> list[Mapping[str, Any]]:
    return [{"rank": each.rank, "what": each.what, "says": each.says, "frame": _frame(each.frame)} for each in wheres]


def _cluster(cluster: StackCluster) -> Mapping[str, Any]:
    return {
        "ranks": list(cluster.ranks),
        "pids": [thread.pid for thread in cluster.threads],
        "moved": cluster.moved,
        "own": _frame(cluster.own),
        "frames": _frames(cluster.frames),
    }


def _frames(frames: Sequence[Frame]) -> list[Mapping[str, Any] | None]:
    return [_frame(frame) for frame in frames]


def _frame(frame: Frame | None) -> Mapping[str, Any] | None:
    return None if frame is None else {"function": frame.function, "file": frame.file, "line": frame.line or None}


def _beat(beat: RankBeat) -> Mapping[str, Any]:
    return {**asdict(beat), "condition": beat.condition}
