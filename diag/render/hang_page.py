"""What `diag hang` shows, in the order in which somebody needs it at night: sections of text, before they are set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diag.model import units
from diag.model.live import Frame
from diag.model.rank_lists import numbers_only, ranks
from diag.ranks.hang import GroupRow
from diag.ranks.stack_clusters import Branch, tree
from diag.render import hang_words as words
from diag.render import phrases
from diag.render.hang_view import HangView
from diag.rules.finding import Evidence, Finding
from diag.rules.hang_places import heartbeat, of_cluster, place, sentence, where

MOST_ROWS = 12
MOST_BRANCHES = 40
MOST_FRAMES = 3
"""Of frames that follow each other without anybody leaving, so many at each end are shown."""


@dataclass(frozen=True)
class Items:
    lines: Sequence[str]
    is_numbered: bool = False


@dataclass(frozen=True)
class Outline:
    """Lines with their depth, from 0."""

    lines: Sequence[tuple[int, str]]


@dataclass(frozen=True)
class Figures:
    evidence: Sequence[Evidence]


Block = str | Items | Outline | Figures


@dataclass(frozen=True)
class Section:
    title: str
    blocks: Sequence[Block]


def page(view: HangView, *, top: int) -> list[Section]:
    """The first one is the answer: its title says it."""
    sections = [
        Section(words.headline(view), [view.lead.claim] if view.lead is not None else []),
        _unread(view, top),
        *_lead(view),
        _others(view, top),
        _waiting(view, top),
        _groups(view, top),
        _open_questions(view),
        _stacks(view),
        _heartbeats(view, top),
        Section("Seven questions", [Items(list(_checks(view)), is_numbered=True)]),
        Section("Could not be learnt", [Items(view.notes)] if view.notes else []),
        _sources(view),
    ]
    return [section for at, section in enumerate(sections) if section.blocks or not at]


def _unread(view: HangView, top: int) -> Section:
    """Before the figures: the answer may be another with these files."""
    lines = [words.unread(each) for each in view.unread]
    more = [phrases.more(len(lines), top)] if len(lines) > top else []
    return Section("Could not be read", [Items([*lines[:top], *more])] if lines else [])


def _lead(view: HangView) -> Iterator[Section]:
    if (finding := view.lead) is None:
        yield Section("What to do", [Items(list(_next(view)), is_numbered=True)])
        return
    figures = [each for each in finding.evidence if not (isinstance(each.value, str) and each.value in finding.claim)]
    yield Section("How it knows", [Figures(figures)] if figures else [])
    yield Section("What to do", [Items(finding.next, is_numbered=True)] if finding.next else [])
    yield Section("What would refute it", [finding.refute])


def _next(view: HangView) -> Iterator[str]:
    """Where no rule has a say: the evidence that would give it one."""
    if view.hang is None:
        yield (
            "Collect the dumps of the flight recorder: TORCH_FR_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1 "
            "before the job starts; they say which collective of which group does not end."
        )
    if view.beats and all(beat.ended for beat in view.beats):
        yield "Read the end of the logs of these ranks, and of their hosts' kernels: dmesg -T | grep -i -e oom -e xid"
    elif not view.clusters:
        yield "On each node: diag hang PID…, or py-spy dump --pid PID > rankN.stack; then diag hang with all files."
    if not view.beats:
        yield "Next time, write a heartbeat file per rank (docs/hang.md): it tells a held GIL from a call that waits."


def _others(view: HangView, top: int) -> Section:
    others = [finding for finding in view.findings if finding is not view.lead]
    shown = [_in_short(finding) for finding in others[:top]]
    more = [phrases.more(len(others), top)] if len(others) > top else []
    return Section("Also found" if view.lead else "Found", [Items([*shown, *more])] if shown else [])


def _in_short(finding: Finding) -> str:
    first = f" Next: {finding.next[0]}" if finding.next else ""
    return f"{finding.severity}: {finding.title} [{finding.id}]. {finding.claim}{first}"


def _waiting(view: HangView, top: int) -> Section:
    lines = words.chains(view.hang) if view.hang else []
    more = [phrases.more(len(lines), top)] if len(lines) > top else []
    return Section("Who waits for whom", [Items([*lines[:top], *more])] if lines else [])


def _groups(view: HangView, top: int) -> Section:
    """Those whose members are not in the same place come first: there somebody is missing."""
    rows = sorted((row for row in view.hang.groups if row.open_call is not None) if view.hang else (), key=_is_even)
    shown = rows[: max(top, MOST_ROWS)]
    lines = [f"{row.open_call}.{_progress(row)}" for row in shown]
    more = [phrases.more(len(rows), len(shown))] if len(rows) > len(shown) else []
    return Section("Groups with a call that does not end", [Items([*lines, *more])] if lines else [])


def _is_even(row: GroupRow) -> tuple[bool, bool]:
    return row.open_call is not None and row.open_call.is_p2p, not _differ(row, "enqueued")


def _differ(row: GroupRow, key: str) -> bool:
    return len({getattr(member, key) for member in row.members}) > 1


def _progress(row: GroupRow) -> str:
    """The counters are those of collectives: of a send or receive they say nothing."""
    if row.open_call is not None and row.open_call.is_p2p:
        return ""
    completed = f" Last completed by {words.members(row.members, 'completed')}." if _differ(row, "completed") else ""
    return f" Last called by {words.members(row.members, 'enqueued')}.{completed}"


def _open_questions(view: HangView) -> Section:
    if view.hang is None:
        return Section("Suspects and undecided ranks", [])
    unread = {each.rank for each in view.unread}
    suspects = [words.suspect(each, unread) for each in view.hang.suspects]
    lines = [*words.undecided(view.hang.undecided), *suspects]
    shown = lines[:MOST_ROWS]
    more = [phrases.more(len(lines), MOST_ROWS)] if len(lines) > MOST_ROWS else []
    notes = list(view.hang.notes)
    return Section("Suspects and undecided ranks", [Items([*shown, *more, *notes])] if lines or notes else [])


def _stacks(view: HangView) -> Section:
    """Where ranks part, the odd ones first."""
    lines = [line for branch in tree(view.clusters) for line in _branch(branch, 0)]
    if len(lines) > MOST_BRANCHES:
        lines = [*lines[:MOST_BRANCHES], (0, f"… and {units.count(len(lines) - MOST_BRANCHES, 'more line')}.")]
    empty = [f"{sentence(of_cluster(each))}: no frame of Python." for each in view.clusters if not each.frames]
    said = [f"{sentence(of_cluster(each))} {place(each)}." for each in view.clusters if each.frames]
    said = said[:MOST_ROWS]
    blocks: list[Block] = [Items(said), Outline(lines)] if lines else []
    return Section("Where the main threads stand", [*blocks, *empty])


def _branch(branch: Branch, depth: int) -> Iterator[tuple[int, str]]:
    known = [thread.rank for thread in branch.threads if thread.rank is not None]
    who = ranks(known) if len(known) == len(branch.threads) else units.count(len(branch.threads), "process")
    yield depth, f"{who}: {' → '.join(_in_short_frames(branch.frames))}"
    for below in branch.below:
        yield from _branch(below, depth + 1)


def _in_short_frames(frames: Sequence[Frame]) -> list[str]:
    """
    >>> _in_short_frames([Frame(name, "", 0) for name in "abcdefgh"])
    ['a', 'b', 'c', '… 2 more', 'f', 'g', 'h']
    """
    shown = [where(frame) for frame in frames]
    hidden = len(shown) - 2 * MOST_FRAMES
    return shown if hidden <= 0 else [*shown[:MOST_FRAMES], f"… {hidden} more", *shown[-MOST_FRAMES:]]


def _heartbeats(view: HangView, top: int) -> Section:
    if not view.beats:
        return Section("Heartbeats", [])
    lines = [f"{sentence(heartbeat(beat))}." for beat in view.silent[: max(top, MOST_ROWS)]]
    running = [beat for beat in view.beats if beat.condition == "runs Python"]
    steps: dict[int | None, list[int]] = {}
    for beat in running:
        steps.setdefault(beat.step, []).append(beat.rank)
    for step, who in sorted(steps.items(), key=lambda item: (item[0] is None, item[0] or 0)):
        at = "have told no step" if step is None else f"at step {step}"
        lines.append(f"Run Python, {at}: {numbers_only(who)}.")
    return Section("Heartbeats", [Items(lines[: max(top, MOST_ROWS) + MOST_ROWS])])


def _checks(view: HangView) -> Iterator[str]:
    for check in view.checks:
        how = f" To find out: {check.next}" if check.next else ""
        yield f"{check.question} {check.answer.upper()}: {check.because}{how}"


def _sources(view: HangView) -> Section:
    kinds: dict[str, int] = {}
    sources = [source for source in view.report.sources if not source.is_unread]
    for source in sources:
        kinds[source.kind] = kinds.get(source.kind, 0) + 1
    told = sorted({source.rank for source in sources if source.rank is not None})
    read = ", ".join(units.count(n, _KINDS.get(kind, kind)) for kind, n in kinds.items())
    notes = [note for source in sources for note in view.report.notes.get(source.id, ())]
    distinct = list(dict.fromkeys(notes))
    blocks: list[Block] = [f"{read}; of {ranks(told)}." if told else f"{read}."]
    more = [phrases.more(len(distinct), MOST_ROWS)] if len(distinct) > MOST_ROWS else []
    return Section("Read", [*blocks, *([Items([*distinct[:MOST_ROWS], *more])] if distinct else [])])


_KINDS = {
    "flight-recorder": "flight-recorder dump",
    "stack-dump": "stack dump",
    "heartbeat": "heartbeat",
    "job-log": "log",
    "nccl-ras": "report of NCCL RAS",
    "nccl-tests": "result of nccl-tests",
    "topology": "topology",
    "live": "record of a watch",
}
