"""A server in a few lines, for loads of which the answer is known: first come, first served, into a number of places.

It is plain queueing and no engine: each place decodes at its own constant pace, whatever else runs. So a fault that is
put into a load or a server is the only thing that differs from its healthy twin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from random import Random

import msgspec

from diag.model.serving_log import LoadConditions, RequestRecord
from tests.builders.serving_log import MS, LoggedRun


@dataclass(frozen=True)
class Job:
    """One request, before anyone has served it."""

    intended_ns: int
    prompt_tokens: int = 200
    output_tokens: int = 50
    cached_tokens: int = 0
    send_delay_ns: int = 0


@dataclass(frozen=True)
class Server:
    places: int = 16  # sequences that run at once
    prefill_ns: int = 100_000  # for each prompt token that is not cached
    itl_ns: int = 20 * MS
    input_ns: int = 1 * MS  # from sending to the queue
    lookup_ns: int = 0  # for each cached token
    is_chunked: bool = True  # else one prefill holds up all that come later
    max_waiting: int | None = None  # more are rejected

    def prefill_of(self, job: Job) -> int:
        computed = job.prompt_tokens - job.cached_tokens
        return computed * self.prefill_ns + job.cached_tokens * self.lookup_ns

    def service_of(self, job: Job) -> int:
        """In its place."""
        return self.prefill_of(job) + (job.output_tokens - 1) * self.itl_ns

    def capacity_per_s(self, jobs: Sequence[Job]) -> float:
        """Of jobs like these, with all places in use."""
        return self.places * 1e9 * len(jobs) / sum(map(self.service_of, jobs))


def serve(jobs: Iterable[Job], server: Server) -> list[RequestRecord]:
    """In the order of sending, named r0, r1, ..."""
    return list(_served(sorted(jobs, key=lambda job: job.intended_ns + job.send_delay_ns), server))


def _served(jobs: Sequence[Job], server: Server) -> Iterator[RequestRecord]:
    free_ns = [0] * server.places
    heapify(free_ns)
    starts: list[int] = []
    prefilled_ns = 0
    for number, job in enumerate(jobs):
        sent_ns = job.intended_ns + job.send_delay_ns
        queued_ns = sent_ns + server.input_ns
        plain = RequestRecord(
            id=f"r{number}", outcome="rejected", prompt_tokens=job.prompt_tokens, cached_tokens=job.cached_tokens,
            max_output_tokens=job.output_tokens, intended_ns=job.intended_ns, sent_ns=sent_ns, output_tokens=0,
            ended_ns=queued_ns,
        )  # fmt: skip
        if server.max_waiting is not None and sum(start > queued_ns for start in starts) >= server.max_waiting:
            yield plain
            continue
        start_ns = max(queued_ns, free_ns[0], 0 if server.is_chunked else prefilled_ns)
        first_ns = start_ns + server.prefill_of(job)
        prefilled_ns = first_ns
        times = [first_ns + n * server.itl_ns for n in range(job.output_tokens)]
        heapreplace(free_ns, times[-1])
        starts.append(start_ns)
        yield msgspec.structs.replace(
            plain, outcome="completed", output_tokens=job.output_tokens, queued_ns=queued_ns, scheduled_ns=start_ns,
            token_ns=times, ended_ns=times[-1], finish_reason="length",
        )  # fmt: skip


def arrivals(draw: Random, n: int, per_s: float) -> list[int]:
    """(n,) times of a Poisson process, from 0."""
    times, at = [], 0.0
    for _ in range(n):
        times.append(round(at))
        at += draw.expovariate(per_s / 1e9)
    return times


def jobs(
    draw: Random, n: int, per_s: float, *, prompt: tuple[int, int] = (100, 300), output: tuple[int, int] = (30, 70)
) -> list[Job]:
    """Lengths are uniform, both ends included."""
    return [Job(at, draw.randint(*prompt), draw.randint(*output)) for at in arrivals(draw, n, per_s)]


def poisson(per_s: float, n: int) -> LoadConditions:
    return LoadConditions(
        arrival="poisson", rate_per_s=per_s, n_requests=n, prompt_lengths="synthetic", output_lengths="synthetic"
    )


def logged(requests: Sequence[RequestRecord], per_s: float, **conditions: object) -> LoggedRun:
    """As an open loop would write it; `conditions` of LoggedRun."""
    return LoggedRun(requests, load=poisson(per_s, len(requests)), **conditions)  # type: ignore[arg-type]
