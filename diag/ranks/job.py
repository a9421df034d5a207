"""A job: all that its ranks left behind, whatever tool wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from diag.ranks.comm_calls import CommCalls, comm_calls
from diag.ranks.comm_measurements import CommSeries, comm_series
from diag.ranks.host_links import HostLinks, host_links
from diag.store.case import Case, Source
from diag.timeline.trace import Trace


@dataclass(frozen=True, eq=False)
class Job:
    """The inputs of one case together. What is worked out from them is kept here, each once.

    Traces are those in scope: of a part of a report they hold that part.
    """

    case: Case
    traces: Sequence[Trace] = ()

    @cached_property
    def sources(self) -> Sequence[Source]:
        return self.case.sources

    def has_any(self, facts: Sequence[str]) -> bool:
        """Whether any input holds any of these (keys of `Source.capabilities`)."""
        return any(source.has(fact) for source in self.sources for fact in facts)

    @cached_property
    def comm_series(self) -> Sequence[CommSeries]:
        """Collectives that benchmarks timed."""
        return comm_series(self.case)

    @cached_property
    def comm_calls(self) -> Sequence[CommCalls]:
        """Collectives of the traces, by kind and size."""
        return comm_calls(self.case)

    @cached_property
    def host_links(self) -> Sequence[HostLinks]:
        """How the devices of hosts reach each other."""
        return host_links(self.case)
