"""How far the files of several ranks make one job."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from diag.model import units
from diag.ranks.job import Job
from diag.ranks.side_by_side import SideBySide
from diag.rules import rank_subjects as ranks_of
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Subject
from diag.rules.thresholds import Limits

ORIGINS = {
    "distributedInfo": "the trace itself",
    "environment": "the environment it was recorded in",
    "payload": "NCCL's payloads",
    "file name": "its file's name",
}


@job_rule("capture.ranks", needs=("kernel", "operator", "annotation", "nvtx"))
def ranks_given(job: Job, limits: Limits) -> Iterator[Answer]:
    """Ranks are missing, claimed twice, or not comparable.

    Asks      Do the files make up a whole job, and can its ranks be set side by side?
    Decides   Fires for ranks of the world that left no file, for ranks that two files claim, for files that no rank is
              known of, for clocks that cannot be compared, and for collectives of which ranks recorded different
              numbers.
    Matters   A rank that is not here may be the one that all wait for: latency is then an upper bound, waiting a lower
              one. Without common clocks nobody can say who came last.
    Do        Give the files of all ranks, of the same steps: profile with one schedule on all of them, and put the rank
              into the name (torch.profiler writes it into the trace once torch.distributed is initialised; for nsys:
              -o report_rank%q{RANK}).
    Refute    With the missing files the same ranks are late by as much: then they hid nothing.
    """
    side = job.side_by_side
    if not side.is_job and not (side.unnumbered and len(side.unnumbered) + len(side.summaries) > 1):
        return
    subject = ranks_of.whole_job(side) if side.summaries else Subject(side.unnumbered[0].source)
    problems = list(_problems(side))
    if not problems:
        yield Clear(subject) if side.world_size else CannotTell(subject, "how many ranks the job had: no file says it")
        return
    yield Finding(
        title="; ".join(what for what, _, _ in problems),
        claim=" ".join(sentence for _, sentence, _ in problems) + " " + _origins(side),
        subject=subject,
        level="info",
        counterfactual="Nothing would be won; the comparison of the ranks would be whole.",
        evidence=[evidence for _, _, evidence in problems],
        refute="With the missing files the same ranks are late by as much: then they hid nothing.",
        next=["Give the files of all ranks together, recorded over the same steps: diag report FOLDER"],
    )


def _problems(side: SideBySide) -> Iterator[tuple[str, str, Evidence]]:
    """Title, sentence and number of each."""
    n_given = len(side.summaries)
    if n_missing := ranks_of.missing(side):
        evidence = Evidence("missing ranks", n_missing, "count", "size of the world - ranks given")
        sentence = (
            f"{n_missing:,} of {side.world_size:,} ranks left no file here: one of them may be what these wait for."
        )
        yield f"{n_given:,} of {side.world_size:,} ranks are given", sentence, evidence
    if side.repeated:
        who = ", ".join(sorted({str(each.rank) for each in side.repeated}, key=int))
        evidence = Evidence("claimed twice", len(side.repeated), "count", "processes whose rank another one has")
        sentence = f"Rank {who} is claimed by more than one file; the first of each was taken."
        yield "ranks are claimed twice", sentence, evidence
    if side.unnumbered and n_given + len(side.unnumbered) > 1:
        evidence = Evidence(
            "without a rank", len(side.unnumbered), "count", "processes of which nothing tells the rank"
        )
        one = "it is" if len(side.unnumbered) == 1 else "they are"
        sentence = f"Of {units.count(len(side.unnumbered), 'process')} nothing tells which rank {one}."
        yield f"{units.count(len(side.unnumbered), 'process')} without a rank", sentence, evidence
    if n_given > 1 and side.clocks.reference is None:
        evidence = Evidence("matched collectives", side.matches.n_instances, "count", "of at least two ranks")
        yield "clocks cannot be compared", f"The clocks cannot be compared: {side.clocks.why_not}.", evidence
    elif n_given > 1 and not side.clocks.is_known.all():
        n_apart = int(np.count_nonzero(~side.clocks.is_known))
        evidence = Evidence("clocks not known", n_apart, "count", "ranks that no collective connects with the first")
        sentence = f"No collective connects {units.count(n_apart, 'rank')} with the others."
        yield f"{units.count(n_apart, 'clock')} not compared", sentence, evidence
    if side.matches.unmatched:
        first = side.matches.unmatched[0]
        low, high = min(first.counts.values()), max(first.counts.values())
        evidence = Evidence("not matched", len(side.matches.unmatched), "count", "(group, operation) of unequal counts")
        sentence = (
            f"Ranks recorded different numbers of {first.op} in {first.group.label} ({low:,} to {high:,}), and no "
            "sequence number tells which belong together: they were left out."
        )
        yield "collectives that cannot be matched", sentence, evidence


def _origins(side: SideBySide) -> str:
    counts: dict[str, int] = {}
    for summary in side.summaries:
        counts[summary.rank_origin or ""] = counts.get(summary.rank_origin or "", 0) + 1
    told = ", ".join(f"{ORIGINS.get(origin, origin or 'unknown')} ({n:,})" for origin, n in sorted(counts.items()))
    return f"The ranks were told by: {told}." if told else ""
