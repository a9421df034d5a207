"""What `diag hang` shows, worked out while the case is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diag.ranks.checklist import Check, checklist
from diag.ranks.hang import HangAnalysis
from diag.ranks.heartbeats import RankBeat
from diag.ranks.job import Job
from diag.ranks.stack_answer import StackAnswer, stack_answer
from diag.ranks.stack_clusters import StackCluster, clusters
from diag.rules.finding import Finding
from diag.rules.report import Report

SUBJECTS = ("hang.", "job.", "nccl.")
"""Rules that speak of the ranks of a job together."""


@dataclass(frozen=True)
class Unread:
    """A file of which nothing could be read. `rank` is that of its name; `is_known`: other evidence of it was read."""

    path: str
    rank: int | None
    is_known: bool
    why: str


@dataclass(frozen=True)
class HangView:
    """`hang` is None where no rank left a dump and nothing else tells of a fault.

    `notes`: what could not be learnt from a live job.
    """

    report: Report
    hang: HangAnalysis | None
    stacks: StackAnswer
    clusters: Sequence[StackCluster]
    beats: Sequence[RankBeat]
    checks: Sequence[Check]
    notes: Sequence[str] = ()

    @property
    def findings(self) -> Sequence[Finding]:
        """About why the job stands still first, then about its health, each as they are ranked."""
        found = [finding for finding in self.report.findings if finding.rule.startswith(SUBJECTS)]
        return sorted(found, key=lambda finding: not finding.rule.startswith("hang."))

    @property
    def lead(self) -> Finding | None:
        """The finding that the answer rests on. That dumps are missing is the answer only where nothing else is one."""
        hang = [each for each in self.findings if each.rule.startswith("hang.") and each.severity != "info"]
        return min(hang, key=lambda each: each.rule == "hang.absent", default=None)

    @property
    def silent(self) -> Sequence[RankBeat]:
        """Ranks whose heartbeat says more than that they run Python."""
        return [beat for beat in self.beats if beat.condition != "runs Python"]

    @property
    def unread(self) -> Sequence[Unread]:
        """Files that say nothing, and of whom there is something else."""
        known = {source.rank for source in self.report.sources if not source.is_unread}
        return [
            Unread(source.path, source.rank, source.rank in known, " ".join(self.report.notes.get(source.id, ())))
            for source in self.report.sources
            if source.is_unread
        ]

    @property
    def tells_something(self) -> bool:
        return bool(self.findings or self.clusters or self.beats or self.hang)


def hang_view(job: Job, report: Report, notes: Sequence[str] = ()) -> HangView:
    hang = job.hang if job.dumps.by_rank or job.hang.faults else None
    return HangView(
        report=report,
        hang=hang,
        stacks=stack_answer(job.stacks),
        clusters=clusters(job.stacks),
        beats=job.heartbeats,
        checks=checklist(job, hang),
        notes=notes,
    )
