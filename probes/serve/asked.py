"""From what the command line asks for to the loads to run: a sweep has one for each rate, or concurrency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from diag.errors import UsageError
from diag.model import token_lengths
from diag.model.serving_log import Arrival
from diag.model.token_lengths import Constant, Lengths, Traced
from diag.probes.serve.arrivals import RATED, ClosedLoop, OpenLoop
from diag.probes.serve.load import Limits
from diag.probes.serve.running import Planned
from diag.probes.serve.trace import Trace, read_trace
from diag.probes.serve.workload import MOST_REQUESTS, Loop, Workload

DEFAULT_REQUESTS = 100
DEFAULT_PROMPT: Lengths = Constant(128)
DEFAULT_OUTPUT: Lengths = Constant(64)


@dataclass(frozen=True)
class Asked:
    """None and empty: not said."""

    arrival: str | None = None
    rates_per_s: Sequence[float] = ()
    burstiness: float | None = None
    concurrencies: Sequence[int] = ()
    n_requests: int | None = None
    prompt_tokens: str | None = None
    output_tokens: str | None = None
    shared_prefix_share: float = 0.0
    trace: Path | None = None
    n_warmup: int = 0
    warms_cache: bool = False
    seed: int = 0
    label: str | None = None
    limits: Limits = field(default_factory=Limits)


def planned(asked: Asked) -> Sequence[Planned]:
    """In the order of the command line. Raises UsageError, and InputError for a trace that cannot be read."""
    loops_asked = _loops_asked(asked)
    trace = None if asked.trace is None else read_trace(asked.trace, asked.n_requests or MOST_REQUESTS)
    loops = [_traced(loop, trace) for loop in loops_asked]
    return [
        Planned(_workload(asked, loop, trace), asked.limits, _label(asked, loop, len(loops)), _is_counted(asked))
        for loop in loops
    ]


def _is_counted(asked: Asked) -> bool:
    return asked.n_requests is not None or asked.limits.seconds is None


def _loops_asked(asked: Asked) -> Sequence[Loop]:
    arrival = _arrival(asked)
    if asked.burstiness is not None and arrival != "gamma":
        raise UsageError(f"--burstiness is of --arrival gamma, not of {arrival}. Leave one of them out.")
    if arrival == "closed":
        if asked.rates_per_s:
            raise UsageError("A closed loop has no --rate: it is as fast as the server. Leave one of them out.")
        if not asked.concurrencies:
            raise UsageError("A closed loop needs to know how many are in flight. Say for example --concurrency 8")
        return [ClosedLoop(each) for each in asked.concurrencies]
    if asked.concurrencies:
        raise UsageError(
            "An open loop has no --concurrency: requests come whoever is in flight. Leave one of them out."
        )
    if arrival == "trace" and asked.trace is None:
        raise UsageError("--arrival trace needs the times of a --trace FILE.")
    burstiness = 1.0 if asked.burstiness is None else asked.burstiness
    if arrival in RATED and not asked.rates_per_s:
        raise UsageError(f"--arrival {arrival} needs a --rate, in requests per second.")
    rates: Sequence[float | None] = asked.rates_per_s or [None]
    return [OpenLoop(arrival, rate, burstiness) for rate in rates]


def _arrival(asked: Asked) -> Arrival:
    """What is said, else what fits what else is said."""
    arrivals: tuple[Arrival, ...] = get_args(Arrival)
    for each in arrivals:
        if each == asked.arrival:
            return each
    if asked.arrival is not None:
        raise UsageError(f"There is no --arrival {asked.arrival}. There is: {', '.join(arrivals)}.")
    if asked.rates_per_s:
        return "poisson" if asked.burstiness is None else "gamma"
    if asked.concurrencies:
        return "closed"
    if asked.trace is not None:
        return "trace"
    raise UsageError("Say how requests come: --rate 4 for an open loop, --concurrency 8 for a closed one.")


def _traced(loop: Loop, trace: Trace | None) -> Loop:
    if trace is None or isinstance(loop, ClosedLoop) or loop.arrival != "trace":
        return loop
    return OpenLoop("trace", trace_ns=trace.arrivals_ns)


def _workload(asked: Asked, loop: Loop, trace: Trace | None) -> Workload:
    return Workload(
        loop=loop,
        n_requests=_n_requests(asked, loop),
        prompt_lengths=_lengths(asked.prompt_tokens, trace.prompt_tokens if trace else None, DEFAULT_PROMPT),
        output_lengths=_lengths(asked.output_tokens, trace.output_tokens if trace else None, DEFAULT_OUTPUT),
        shared_prefix_share=asked.shared_prefix_share,
        n_warmup=asked.n_warmup,
        warms_cache=asked.warms_cache,
        seed=asked.seed,
    )


def _n_requests(asked: Asked, loop: Loop) -> int:
    if isinstance(loop, OpenLoop) and loop.arrival == "trace":
        return min(asked.n_requests or MOST_REQUESTS, len(loop.trace_ns))
    if not _is_counted(asked):
        return MOST_REQUESTS
    return DEFAULT_REQUESTS if asked.n_requests is None else asked.n_requests


def _lengths(said: str | None, traced: Sequence[int] | None, default: Lengths) -> Lengths:
    if said is not None:
        return token_lengths.parse(said)
    return default if traced is None else Traced(traced)


def _label(asked: Asked, loop: Loop, n_loops: int) -> str | None:
    """The user's, with what differs in a sweep."""
    if n_loops == 1 or asked.label is None:
        return asked.label
    of = f"{loop.concurrency} in flight" if isinstance(loop, ClosedLoop) else f"{loop.rate_per_s:g} requests/s"
    return f"{asked.label}, {of}"
