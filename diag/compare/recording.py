"""What of one recorded run is compared, wherever it comes from. Times are nanoseconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from diag.compare.facts import Facts
from diag.compare.loads import Load
from diag.compare.series import Series
from diag.errors import UsageError
from diag.ranks.nccl_health import NcclHealth
from diag.rules.document import Document, SpeedOfLightOf

FIGURES = ("window", "busy", "idle", "kernels", "copies", "memsets", "communication", "exposed communication")
"""Of each device, as docs/definitions.md defines them."""

Key = tuple[str, str]
"""Where, as `places` calls it, and the name of what is there: the same in every recording of a program."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """The launches of one kernel on one device, by how they were launched; '' where that was not captured."""

    short_name: str
    by_configuration: Mapping[str, Series]
    sol: Mapping[str, SpeedOfLightOf] = field(default_factory=dict)
    """By configuration, where Nsight Compute measured it: of the launch of median duration."""


@dataclass(frozen=True, eq=False)
class RangeTimes:
    """Instances of a range pattern; one inside another of its own pattern counts with that one."""

    host: Series | None
    gpu: Series | None  # sums of what was launched inside each; None where nothing was


@dataclass(frozen=True, eq=False)
class Steps:
    """The step range of the main thread. A period is from the start of a step to that of the next one.

    The first and the last step, which the capture may have cut or slowed, have none.
    """

    pattern: str
    periods: Series


@dataclass(frozen=True, eq=False)
class Recording:
    path: str
    report: Document
    facts: Facts
    tick_ns: int  # the coarsest of its sources
    span_ns: int  # of everything it recorded; 0 where a report does not tell
    steps: Steps | None
    devices: Mapping[Key, Series]  # place and one of FIGURES
    kernels: Mapping[Key, Kernel]
    launches: Mapping[Key, Kernel]  # as Nsight Compute measured them
    ranges: Mapping[Key, RangeTimes]
    has_all_ranges: bool  # a report lists the longest alone
    lacks: Sequence[str] = ()  # what this kind of input cannot tell, in words
    nccl: NcclHealth | None = None  # of logs, which only a case holds
    loads: Sequence[Load] = ()  # on a server, in the order of their files


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a comparison: what the user named, and its recordings, repeats of the same run."""

    path: str
    runs: Sequence[Recording]

    @property
    def is_repeated(self) -> bool:
        return len(self.runs) > 1


def side_of(path: str, runs: Sequence[Recording], note: Callable[[str], None]) -> Side:
    """The recordings as repeats of one run; one that is a copy of another is noted and counts once.

    Raises UsageError when they are ranks of one job.
    """
    distinct: dict[tuple[str, ...], Recording] = {}
    for run in runs:
        content = tuple(source.sha256 or run.path for source in run.report.sources)
        if (first := distinct.setdefault(content, run)) is not run:
            note(f"{run.path} has the same content as {first.path}; it counts once.")
    kept = list(distinct.values())
    ranks = sorted({rank for run in kept if (rank := _only_rank(run)) is not None})
    if len(ranks) > 1:
        raise UsageError(
            f"{path} holds ranks {', '.join(map(str, ranks[:4]))}{', ...' if len(ranks) > 4 else ''} of a job, not "
            f"repeats of it. Give each run a folder inside it, or make one case of them: diag report {path} -o CASE"
        )
    return Side(path, kept)


def _only_rank(run: Recording) -> int | None:
    """Of a recording of one rank."""
    ranks = {source.rank for source in run.report.sources}
    return ranks.pop() if len(ranks) == 1 else None
