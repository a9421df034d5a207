"""A job: all that its ranks left behind, whatever tool wrote it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from diag.model.live_run import LiveRun
from diag.ranks.analysis import analyse_hang
from diag.ranks.comm_measurements import CommSeries, comm_series
from diag.ranks.dumps import Dumps
from diag.ranks.hang import HangAnalysis
from diag.ranks.heartbeats import RankBeat, load_heartbeats
from diag.ranks.host_links import HostLinks, host_links
from diag.ranks.log_events import LogEvent, load_events
from diag.ranks.log_faults import size_faults
from diag.ranks.nccl_connections import Connection, load_connections
from diag.ranks.nccl_health import NcclHealth, health_of
from diag.ranks.rank_devices import RankDevice, rank_devices
from diag.ranks.rank_power import PowerOfRank, powers_of
from diag.ranks.recorders import load_dumps, with_frames
from diag.ranks.restarts import restarts
from diag.ranks.side_by_side import SideBySide, side_by_side
from diag.ranks.summarise import summaries_of
from diag.ranks.summary import RankSummary
from diag.ranks.thread_stacks import RankThread, load_stacks
from diag.ranks.whereabouts import whereabouts
from diag.store.case import Case, Source
from diag.timeline.trace import Trace


@dataclass(frozen=True, eq=False)
class Job:
    """The inputs of one case together. What is worked out from them is kept here, each once.

    Traces are those in scope: of a part of a report they hold that part.
    """

    case: Case
    traces: Sequence[Trace] = ()
    gathered: Sequence[RankSummary] = ()  # of traces whose events lie in other cases
    watched: Sequence[LiveRun] = ()  # what `diag watch` recorded of hosts of the job

    @cached_property
    def sources(self) -> Sequence[Source]:
        return self.case.sources

    @cached_property
    def side_by_side(self) -> SideBySide:
        """The ranks whose timelines are at hand."""
        return side_by_side([*(summary for trace in self.traces for summary in summaries_of(trace)), *self.gathered])

    @cached_property
    def n_ranks(self) -> int | None:
        """The largest size that the job has by any rank; None where nothing tells it.

        A log tells communicators, which may be of parts of the job; and a measurement is another job on the same hosts.
        """
        told = [each for each in self.sources if not (each.has("log_event") or each.has("comm_measurement"))]
        return max((each.world_size for each in told if each.world_size), default=None)

    @cached_property
    def heartbeats(self) -> Sequence[RankBeat]:
        return load_heartbeats(self.case, self.n_ranks)

    @cached_property
    def stacks(self) -> Sequence[RankThread]:
        return load_stacks(self.case, self.heartbeats, self.n_ranks)

    @cached_property
    def dumps(self) -> Dumps:
        return load_dumps(self.case, self.n_ranks)

    @cached_property
    def hang(self) -> HangAnalysis:
        """Why the job stands still, by the recorders of its ranks and what else is known of them."""
        sizes = {beat.rank: beat.world_size for beat in self.heartbeats if beat.world_size is not None}
        measured = {source.id for source in self.sources if source.has("comm_measurement")}
        events = [event for event in self.events if event.source not in measured]  # its ranks are those of another job
        where = [
            *whereabouts(self.stacks, self.heartbeats, events, self.n_ranks),
            *restarts(self.dumps, self.heartbeats, events, self.n_ranks),
        ]
        told = list(size_faults(events, {*self.dumps.by_rank, *(beat.rank for beat in self.heartbeats)}))
        return with_frames(self.case, analyse_hang(self.dumps, where, world_sizes=sizes, told=told))

    @cached_property
    def devices(self) -> Mapping[int, RankDevice]:
        """By rank the device that is its own, where one was watched."""
        return rank_devices(self.watched, {source.id: source.host for source in self.sources}, self.heartbeats)

    @cached_property
    def powers(self) -> Mapping[int, PowerOfRank]:
        """By rank how much the power limit held its device back, where that was read."""
        return powers_of(self.devices)

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

    @cached_property
    def comm_series(self) -> Sequence[CommSeries]:
        """Collectives that benchmarks timed."""
        return comm_series(self.case)

    @cached_property
    def host_links(self) -> Sequence[HostLinks]:
        """How the devices of hosts reach each other."""
        return host_links(self.case)
