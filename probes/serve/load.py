"""Sends the requests of a workload, and hands on a record of each when it has ended.

Each record holds when its request was due (`intended_ns`) and when it was sent (`sent_ns`). An open loop takes the
first from its schedule and never moves it: where the load generator, or a limit of requests in flight, makes a request
wait, the wait stands in the log instead of in nobody's figures (G. Tene's *coordinated omission*). In a closed loop a
request is due when its place is free.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from diag.errors import UsageError
from diag.model.serving_log import Outcome, Phase, RequestRecord
from diag.probes.serve.arrivals import MOST_IN_FLIGHT, NS_PER_S, ClosedLoop
from diag.probes.serve.client import Answer, Client, Clock, NotServed
from diag.probes.serve.lag import Lag
from diag.probes.serve.workload import PlannedRequest, Workload

WARMUP_IN_FLIGHT = 8
"""In an open loop; a closed loop warms up as it goes on."""

RETRIED: frozenset[Outcome] = frozenset({"rejected", "failed", "expired"})

NOT_SENT = "it was due and had not been sent when the run ended"


@dataclass(frozen=True)
class Limits:
    seconds: float | None = None  # after which no measured request is sent; those in flight may end
    timeout_s: float = 600.0  # of one attempt
    most_in_flight: int = 4096  # of an open loop; who is due then waits, and the log says how long
    n_retries: int = 0
    retry_wait_s: float = 0.1  # doubled with each retry

    def __post_init__(self) -> None:
        if self.seconds is not None and not 0 < self.seconds <= 1e7:
            raise UsageError(f"--seconds {self.seconds:g} is no time to send for. Choose more than 0.")
        if not 0 < self.timeout_s <= 1e7:
            raise UsageError(f"--timeout {self.timeout_s:g} leaves no time to answer. Choose more than 0 seconds.")
        if not 1 <= self.most_in_flight <= MOST_IN_FLIGHT:
            raise UsageError(f"--most-in-flight {self.most_in_flight} cannot be. Choose 1 to {MOST_IN_FLIGHT:,}.")
        if not 0 <= self.n_retries <= 100:
            raise UsageError(f"--retries {self.n_retries} cannot be. Choose 0 to 100.")


@dataclass
class Progress:
    """Read by other threads."""

    phase: Phase = "measured"
    n_in_flight: int = 0
    ended: Counter[Outcome] = field(default_factory=Counter)  # of measured attempts


class Load:
    """One run. `sink` gets each record, in the order of ending."""

    def __init__(
        self, workload: Workload, client: Client, sink: Callable[[RequestRecord], None], clock: Clock, limits: Limits
    ) -> None:
        self.progress = Progress()
        self.lag = Lag()
        self._workload, self._client, self._sink, self._clock, self._limits = workload, client, sink, clock, limits
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """Ends the run soon, from any thread: what is in flight is cancelled, and recorded as that."""
        self._is_stopped = True
        if self._running is not None:
            loop, task = self._running
            if not loop.is_closed():
                loop.call_soon_threadsafe(task.cancel)

    async def run(self) -> None:
        """Returns when all have ended, or after `stop`. The client is open only in between."""
        task = asyncio.current_task()
        assert task is not None
        self._running = (asyncio.get_running_loop(), task)
        try:
            if not self._is_stopped:
                async with self._client:
                    await self._measuring_lag()
        except asyncio.CancelledError:
            if not self._is_stopped:
                raise
        finally:
            self._running = None

    async def _measuring_lag(self) -> None:
        measuring = asyncio.create_task(self.lag.measure(self._clock))
        try:
            await self._phases()
        finally:
            measuring.cancel()
            await asyncio.wait([measuring])

    async def _phases(self) -> None:
        loop, limits = self._workload.loop, self._limits
        self.progress.phase = "engine_warmup"
        in_flight = loop.concurrency if isinstance(loop, ClosedLoop) else WARMUP_IN_FLIGHT
        await self._closed(self._workload.engine_warmup(), in_flight)
        self.progress.phase = "cache_warmup"
        await self._closed(self._workload.cache_warmup(), 1)
        self.progress.phase = "measured"
        started_ns = self._clock()
        until_ns = None if limits.seconds is None else started_ns + round(limits.seconds * NS_PER_S)
        if isinstance(loop, ClosedLoop):
            await self._closed(self._workload.measured(), loop.concurrency, until_ns)
        else:
            await self._open(started_ns, until_ns)

    # ---- when they are sent ------------------------------------------------------------------------------------------

    async def _closed(self, requests: Iterator[PlannedRequest], n_places: int, until_ns: int | None = None) -> None:
        async def place() -> None:
            while not self._is_past(until_ns) and (request := next(requests, None)) is not None:
                await self._until_served(request, self._clock())

        async with asyncio.TaskGroup() as group:
            for _ in range(n_places):
                group.create_task(place())

    async def _open(self, started_ns: int, until_ns: int | None) -> None:
        n_begun = 0
        places = asyncio.Semaphore(self._limits.most_in_flight)

        async def in_place(request: PlannedRequest, intended_ns: int) -> None:
            try:
                await self._until_served(request, intended_ns)
            finally:
                places.release()

        try:
            async with asyncio.TaskGroup() as group:
                for request in self._workload.measured():
                    intended_ns = started_ns + (request.offset_ns or 0)
                    if until_ns is not None and intended_ns >= until_ns:
                        return
                    await self._sleep_until(intended_ns)
                    if not await self._acquired(places, until_ns):
                        return
                    group.create_task(in_place(request, intended_ns))
                    n_begun += 1
        finally:
            self._record_unsent(n_begun, started_ns, until_ns)

    async def _sleep_until(self, time_ns: int) -> None:
        """Lets others run also when it is late already."""
        await asyncio.sleep(max(0, time_ns - self._clock()) / NS_PER_S)

    async def _acquired(self, places: asyncio.Semaphore, until_ns: int | None) -> bool:
        """Whether a place became free in time."""
        left_s = None if until_ns is None else max(0.0, (until_ns - self._clock()) / NS_PER_S)
        try:
            async with asyncio.timeout(left_s):
                await places.acquire()
        except TimeoutError:
            return False
        return True

    def _is_past(self, until_ns: int | None) -> bool:
        return until_ns is not None and self._clock() >= until_ns

    def _record_unsent(self, n_begun: int, started_ns: int, until_ns: int | None) -> None:
        """Those whose time had come: that they were never sent is a fact about the run, too."""
        offsets_ns = self._workload.offsets_ns
        assert offsets_ns is not None
        now_ns = self._clock() if until_ns is None else min(self._clock(), until_ns)
        intended_ns = started_ns + offsets_ns[n_begun:]
        for number, due_ns in enumerate(intended_ns[intended_ns < now_ns].tolist(), n_begun):
            self._record(_unsent(str(number), due_ns, now_ns))

    # ---- one request -------------------------------------------------------------------------------------------------

    async def _until_served(self, request: PlannedRequest, intended_ns: int) -> None:
        """With its retries, each of which is due a while after the attempt before it."""
        attempt_id, before, wait_s = request.id, None, self._limits.retry_wait_s
        for n_left in range(self._limits.n_retries, -1, -1):
            record = await self._attempt(request, attempt_id, before, intended_ns)
            if record.outcome not in RETRIED or not n_left:
                return
            intended_ns = self._clock() + round(wait_s * NS_PER_S)
            await self._sleep_until(intended_ns)
            wait_s *= 2
            before, attempt_id = attempt_id, f"{request.id}~{self._limits.n_retries - n_left + 1}"

    async def _attempt(
        self, request: PlannedRequest, attempt_id: str, before: str | None, intended_ns: int
    ) -> RequestRecord:
        answer, sent_ns = Answer(), self._clock()
        outcome: Outcome = "failed"
        error: str | None = "the load generator broke down"
        self.progress.n_in_flight += 1
        try:
            async with asyncio.timeout(self._limits.timeout_s):
                await self._client.send(request, attempt_id, answer, self._clock)
            outcome, error = "completed", None
        except NotServed as not_served:
            outcome, error = not_served.outcome, str(not_served)
        except TimeoutError:
            outcome, error = "expired", f"no whole answer within {self._limits.timeout_s:g} s"
        except asyncio.CancelledError:
            outcome, error = "cancelled", None
            raise
        finally:
            self.progress.n_in_flight -= 1
            ended_ns = self._clock() if answer.ended_ns is None else answer.ended_ns
            record = _record(request, attempt_id, answer, outcome, error, (intended_ns, sent_ns, ended_ns), before)
            self._record(record)
        return record

    def _record(self, record: RequestRecord) -> None:
        if record.phase == "measured":
            self.progress.ended[record.outcome] += 1
        self._sink(record)


def _record(
    request: PlannedRequest,
    attempt_id: str,
    answer: Answer,
    outcome: Outcome,
    error: str | None,
    times_ns: tuple[int, int, int],
    before: str | None,
) -> RequestRecord:
    """`times_ns`: intended, sent, ended."""
    intended_ns, sent_ns, ended_ns = times_ns
    counts = answer.token_counts
    return RequestRecord(
        id=attempt_id,
        phase=request.phase,
        outcome=outcome,
        prompt_tokens=answer.prompt_tokens,
        output_tokens=sum(counts) if answer.output_tokens is None else answer.output_tokens,
        cached_tokens=answer.cached_tokens,
        max_output_tokens=request.max_output_tokens,
        intended_ns=intended_ns,
        sent_ns=sent_ns,
        queued_ns=answer.queued_ns,
        scheduled_ns=answer.scheduled_ns,
        token_ns=answer.token_ns,
        token_counts=counts if any(each != 1 for each in counts) else (),
        ended_ns=ended_ns,
        finish_reason=answer.finish_reason,
        error=error,
        n_preemptions=answer.n_preemptions,
        retry_of=before,
    )


def _unsent(request_id: str, intended_ns: int, now_ns: int) -> RequestRecord:
    return RequestRecord(id=request_id, outcome="cancelled", intended_ns=intended_ns, ended_ns=now_ns, error=NOT_SENT)
