"""What evidence other than recorders says of a rank: stacks, heartbeats, logs; and what that makes of a fault."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from diag.model import units
from diag.model.live import Frame, ThreadStack
from diag.model.live_stacks import own_frame
from diag.ranks.hang import Cause, Fault, Where
from diag.ranks.heartbeats import load_heartbeats
from diag.store.case import Case

HOST_PLACES: Sequence[tuple[str, str, re.Pattern[str]]] = (
    ("checkpoint", "saves or loads a checkpoint", re.compile(r"\b(save|load|save_state_dict|torch_save|fsync)\b")),
    ("data loader", "waits for its data loader", re.compile(r"dataloader|_next_data|_try_get_data|_get_data")),
    ("lock", "waits for a lock", re.compile(r"\b(acquire|__enter__|wait_for|_wait_for_tstate_lock)\b|threading\.py")),
    ("synchronize", "waits for its device", re.compile(r"\bsynchronize\b|\bitem\b|\bcpu\b|wait_tensor")),
    ("receive", "is in a send or receive", re.compile(r"\b(recv|send|irecv|isend|batch_isend_irecv)\b")),
    ("initialise", "joins the job", re.compile(r"\binit_process_group\b")),
    ("new group", "makes a group", re.compile(r"\b(new_group|new_subgroups|_new_process_group_helper)\b")),
    ("collective", "is in a collective", re.compile(r"distributed_c10d\.py|torch/distributed")),
    ("sleep", "sleeps", re.compile(r"\bsleep\b")),
)
"""(what, in words, in the frames of libraries above own code). The first that is found holds."""

DEADLY = re.compile(r"Killed|SIGKILL|SIGSEGV|SIGBUS|Segmentation fault|Bus error|[Oo]ut [Oo]f [Mm]emory|oom|NODE FAIL")
"""How a rank ends of itself. Whoever is aborted (SIGABRT) or terminated with the job only shares its fate."""

ENDS = frozenset({"slurm.exit", "slurm.oom", "slurm.node_fail", "launcher.exit", "launcher.signal", "kernel.oom"})
LINKS = frozenset({"InfiniBand completion error", "InfiniBand port or device event", "peer closed the connection"})
"""Classes of NCCL's warnings that are about what is between ranks."""


def fused(fault: Fault, where: Mapping[int, Sequence[Where]]) -> Fault:
    """A fault with what is known of where its ranks are."""
    known = tuple(one for rank in fault.ranks for one in where.get(rank, ()))
    if not known:
        return fault
    frame = next((one.frame for one in known if one.frame is not None), fault.frame)
    if fault.cause is Cause.HOST and all(any(one.what == "ended" for one in where.get(r, ())) for r in fault.ranks):
        return replace(fault, cause=Cause.DEAD, where=known, frame=frame)
    if fault.cause is Cause.HOST and all(any(one.what == "receive" for one in where.get(r, ())) for r in fault.ranks):
        return replace(fault, cause=Cause.CYCLE, where=known, frame=frame, confidence="medium")
    if fault.cause is Cause.DEVICE and any(one.what == "transport" for one in known):
        return replace(fault, cause=Cause.TRANSPORT, where=known, frame=frame)
    return replace(fault, where=known, frame=frame)


def load_whereabouts(case: Case) -> Sequence[Where]:
    return [*_of_stacks(case), *_of_heartbeats(case), *_of_logs(case)]


_STACKS = """
SELECT t.id, t.source_id, t.rank, t.name, t.holds_gil, t.is_current, t.state,
       coalesce(f.text, '?'), coalesce(m.text, ''), coalesce(s.line, 0)
  FROM thread_stack t
  JOIN stack s ON s.id = t.stack_id
  LEFT JOIN name f ON f.id = s.symbol_id
  LEFT JOIN name m ON m.id = s.module_id
 WHERE t.rank IS NOT NULL
 ORDER BY t.rank, t.dump, t.id, s.depth"""

_LOG_EVENTS = """
SELECT id, rank, kind, fields, text
  FROM log_event
 ORDER BY id"""


def _of_stacks(case: Case) -> Iterator[Where]:
    """Of each rank the thread that its last dump marks as current, or its first one."""
    threads: defaultdict[int, dict[int, list[Frame]]] = defaultdict(dict)
    marks: dict[int, tuple[bool, bool, str, bool]] = {}
    for thread, _, rank, name, holds_gil, is_current, state, function, file, line in case.db.execute(_STACKS):
        threads[rank].setdefault(thread, []).append(Frame(function, file, line))
        marks[thread] = (bool(holds_gil), bool(is_current), name or "", state == "T")
    for rank, stacks in threads.items():
        chosen = next((each for each in reversed(stacks) if marks[each][1] or "Main" in marks[each][2]), min(stacks))
        frames = stacks[chosen]
        own = own_frame(ThreadStack(0, None, None, frames, False, False))
        what, words = ("stopped", "is stopped by a signal") if marks[chosen][3] else _place(frames, own)
        at = own or frames[0]
        says = f"its main thread {words}, called from {at.function} ({at.file}:{at.line})"
        yield Where(rank, what, says, own, f"SELECT * FROM thread_stack WHERE id = {chosen}")
        if holder := next((each for each in stacks if marks[each][0]), None):
            yield Where(rank, "gil", "one of its threads holds the GIL", stacks[holder][0],
                        f"SELECT * FROM thread_stack WHERE id = {holder}")  # fmt: skip


def _place(frames: Sequence[Frame], own: Frame | None) -> tuple[str, str]:
    inner = frames[: frames.index(own)] if own in frames else frames
    above = "\n".join(f"{frame.function} {frame.file}" for frame in [*inner, *([own] if own is not None else [])])
    return next(((what, words) for what, words, found in HOST_PLACES if found.search(above)), ("host", "runs"))


def _of_heartbeats(case: Case) -> Iterator[Where]:
    for beat in load_heartbeats(case):
        sql = f"SELECT * FROM heartbeat WHERE source_id = {beat.source_id} AND rank = {beat.rank}"
        match beat.condition:
            case "finished":
                yield Where(beat.rank, "ended", "it had finished", None, sql)
            case "ended":
                yield Where(beat.rank, "ended", f"it ended: {beat.ended}", None, sql)
            case "not written":
                behind = units.time(beat.behind_ns)
                yield Where(beat.rank, "silent", f"its heartbeat is {behind} older than the newest", None, sql)
            case "stopped":
                yield Where(beat.rank, "stopped", "it is stopped by a signal or a debugger", None, sql)
            case "no Python":
                stale = units.time(beat.written_ns - beat.time_ns)
                yield Where(beat.rank, "gil", f"it had not run Python for {stale}: {beat.held}", None, sql)
            case "runs Python" if beat.phase:
                yield Where(beat.rank, "phase", f"it runs Python, in phase {beat.phase!r}", None, sql)


def _of_logs(case: Case) -> Iterator[Where]:
    for event, rank, kind, fields, text in case.db.execute(_LOG_EVENTS):
        sql = f"SELECT * FROM log_event WHERE id = {int(event)}"
        says = f"a log says: {text}"
        if kind in ENDS and DEADLY.search(text):
            yield from (Where(each, "ended", says, None, sql) for each in _ranks(rank, json.loads(fields)))
        elif kind == "nccl.warning" and rank is not None and json.loads(fields).get("class") in LINKS:
            yield Where(rank, "transport", says, None, sql)


def _ranks(rank: int | None, fields: Mapping[str, object]) -> Sequence[int]:
    """A line of Slurm speaks of several ranks."""
    if rank is not None:
        return [rank]
    several = fields.get("ranks")
    return [each for each in several if isinstance(each, int)] if isinstance(several, list) else []
