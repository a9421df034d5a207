"""Why a job stands still: what the dumps at hand can tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.model import units
from diag.model.rank_lists import ranks as rank_list
from diag.ranks.hang import RankRow, Suspect
from diag.ranks.job import Job
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Subject
from diag.rules.hang_words import CALLS, MOST_SHOWN, NO_CALLS, NO_RANKS, RECORDERS, has_stacks, subject_source
from diag.rules.thresholds import Limits


@job_rule("hang.absent", needs=RECORDERS)
def absent(job: Job, limits: Limits) -> Iterator[Answer]:
    """Ranks without a dump that others may wait for.

    Asks      Which ranks of the job left no dump, and does any rank wait in a call of which only they can tell?
    Decides   A rank that a group lists and that has no dump is a suspect when the oldest outstanding call of another
              rank needs it. It is never named for that: a dump may be lost for other reasons. Whom the absent dumps
              would convict or free is listed with them.
    Matters   The rank that hangs is often the one that cannot write its dump.
    Do        Fetch these dumps, or look at these ranks first: are their processes there, and where do they stand?
    Refute    Their dumps show that they called everything.
    """
    hang = job.hang
    about = Subject(subject_source(job))
    awaited = [each for each in hang.suspects if each.awaited_by]
    if not hang.dumped:
        yield CannotTell(about, NO_RANKS)
    elif hang.world_size is None and not hang.absent:
        yield CannotTell(about, "no dump says how many ranks the job has")
    elif not awaited:
        yield Clear(about)
    else:
        yield _absent(job, awaited)


def _absent(job: Job, awaited: Sequence[Suspect]) -> Finding:
    hang, first = job.hang, awaited[0]
    ranks = tuple(each.rank for each in awaited)
    sql = None if first.call is None else CALLS.format(source=first.call.source, entry=first.call.entry)
    or_stacks = "" if has_stacks(job, ranks) else ", or dump their stacks: py-spy dump --pid PID"
    return Finding(
        title=f"No dump of {rank_list(ranks)}, which others may wait for",
        claim=f"{units.count(len(first.awaited_by), 'rank')} may wait for rank {first.rank}, in {first.call}. "
        + " ".join(
            f"Rank {each.rank} is undecided: {each.because}; any dump of {rank_list(each.deciders)} may decide."
            for each in hang.undecided[:MOST_SHOWN]
        ),
        subject=Subject(subject_source(job), ranks=ranks),
        level="critical" if not hang.named else "warning",
        confidence="medium",
        counterfactual="It could be told who is at fault.",
        evidence=[
            Evidence("ranks without a dump", len(hang.absent), "count", "of those that groups list", None),
            Evidence("dumps", len(hang.dumped), "count", "one for each rank", "SELECT rank, path FROM source"),
            Evidence("undecided ranks", len(hang.undecided), "count", "that an absent dump may convict", None),
            Evidence("first call", str(first.call), "text", "oldest that needs such a rank", sql),
        ],
        refute="Their dumps show that they called everything.",
        next=[f"Fetch the dumps of {rank_list(ranks)}{or_stacks}"],
    )


@job_rule("hang.progress", needs=RECORDERS)
def progress(job: Job, limits: Limits) -> Iterator[Answer]:
    """Calls are outstanding.

    Asks      Does every call that a recorder holds complete?
    Decides   Calls that are neither retired nor completed, nor below the last completed number of their group, are
              outstanding. One dump cannot tell a call that runs from one that is stuck: who is at fault the other
              rules say, and whether anybody is a second dump does.
    Matters   Without an outstanding call the job does not wait in a collective, whatever else it does.
    Do        Dump again a minute later: the numbers that did not move are those that hang.
    Refute    A second dump shows the same calls completed.
    """
    hang = job.hang
    about = Subject(subject_source(job))
    outstanding = [row for row in hang.ranks if row.outstanding]
    if not hang.dumped:
        yield CannotTell(about, NO_RANKS)
    elif not any(len(dump.entries) or dump.tells_groups for dump in job.dumps.by_rank.values()):
        yield CannotTell(about, NO_CALLS)
    elif not outstanding:
        yield Clear(about)
    else:
        yield _progress(job, outstanding)


def _progress(job: Job, outstanding: Sequence[RankRow]) -> Finding:
    oldest = min((row.oldest for row in outstanding if row.oldest is not None), key=lambda call: call.created_ns or 0)
    n = sum(row.outstanding or 0 for row in outstanding)
    return Finding(
        title=f"{units.count(n, 'call')} outstanding on {units.count(len(outstanding), 'rank')}",
        claim=f"The oldest is {oldest} on rank {oldest.rank}.",
        subject=Subject(subject_source(job), ranks=tuple(row.rank for row in outstanding)),
        level="info",
        counterfactual="Nothing is won by knowing it.",
        evidence=[
            Evidence("outstanding calls", n, "count", "neither retired nor completed",
                     "SELECT source_id, COUNT(*) FROM recorder_entry WHERE NOT COALESCE(is_retired, 0) GROUP BY 1"),
            Evidence("oldest", str(oldest), "text", "by when it was called",
                     CALLS.format(source=oldest.source, entry=oldest.entry)),
        ],
        refute="A second dump shows the same calls completed.",
        next=["Dump again a minute later: the numbers that did not move are those that hang."],
    )  # fmt: skip
