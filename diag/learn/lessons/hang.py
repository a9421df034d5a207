"""Lesson 9: a job of three ranks that stands still, and one that gives up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from diag.learn.exercises.hang import exercise
from diag.learn.giving_up import ABSENT, FIRST, TIMEOUT_S, GaveUp, gave_up
from diag.learn.lesson import Figure, Lab, Lesson, Measured, Question
from diag.ranks.hang import HangAnalysis

HANGS = "skipped"
"""Rank 1 leaves out one all-reduce of four."""


def measure(lab: Lab) -> Measured:
    from diag.learn.stuck import hang

    lab.progress("three ranks hang, three others give up")
    folder = hang([HANGS], lab.folder, timeouts=True)[HANGS]
    return Measured(figures(analysed(folder), gave_up(lab.folder)), [("hang", str(folder))])


def analysed(folder: Path) -> HangAnalysis:
    from diag.ingest.importer import ImportOptions, open_inputs
    from diag.ranks.job import Job

    with open_inputs([folder], ImportOptions(use_cache=False)) as case:
        return Job(case).hang


def figures(hang: HangAnalysis, gave_up: Mapping[int, GaveUp]) -> list[Figure]:
    """Of the job that hangs by its flight recorders, of the other one by its clocks."""
    called = [member.enqueued or 0 for group in hang.groups for member in group.members]
    waiting = {rank for fault in hang.faults for rank in fault.waiting}
    first, last = gave_up[FIRST], max(gave_up.values(), key=lambda each: each.gave_up_s)
    until_first, until_last = (1e9 * (each.gave_up_s - first.called_s) for each in (first, last))
    busy = max(each.cpu_s / (each.gave_up_s - each.called_s) for each in gave_up.values())
    return [
        Figure("completed", min(called), "all-reduces", "the least that any rank has called, by its flight recorder"),
        Figure("called", max(called), "all-reduces", "the most that any rank has called"),
        Figure("waiting", len(waiting), "ranks", "in the first that not all have called"),
        Figure("first_error_ns", until_first, "ns", "from the first call to the first error"),
        Figure("last_error_ns", until_last, "ns", "from the first call to the last error"),
        Figure("errors", len(gave_up), "ranks", f"that report an error, with a timeout of {TIMEOUT_S:g} s"),
        Figure(
            "innocent", len(gave_up.keys() - {ABSENT}), "ranks", f"of these, all but rank {ABSENT}, which never came"
        ),
        Figure("busy", busy, "share", "processor time / time, of the busiest of those that waited"),
    ]


LESSON = Lesson(
    number=9,
    slug="hang",
    questions=(
        Question("completed", "all-reduces", close=1),
        Question("last_error_ns", "s", close=1.2),
        Question("innocent", "ranks", close=1),
    ),
    measure=measure,
    exercise=exercise,
)
