"""A job: all that its ranks left behind, whatever tool wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from diag.ranks.log_events import LogEvent, load_events
from diag.ranks.nccl_connections import Connection, load_connections
from diag.ranks.nccl_health import NcclHealth, health_of
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

    @cached_property
    def events(self) -> Sequence[LogEvent]:
        """What the logs say, but for the connections and rings of NCCL, of which there may be hundreds of thousands."""
        return load_events(self.case)

    @cached_property
    def connections(self) -> Sequence[Connection]:
        """Which way NCCL took between ranks."""
        return load_connections(self.case, self.events)

    @cached_property
    def nccl(self) -> NcclHealth:
        return health_of(self.events, self.connections)

    def has_any(self, facts: Sequence[str]) -> bool:
        """Whether any input holds any of these (keys of `Source.capabilities`)."""
        return any(source.has(fact) for source in self.sources for fact in facts)
