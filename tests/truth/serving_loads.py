"""Loads on a simulated server with one fault of a known size, and twins that differ in the fault alone.

A fault draws a load and a server for a dose, which is the share (or the ratio - 1) that the fault should come to, and
says what it came to by what it did itself. Rates, lengths, sizes of the server and places are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import msgspec

from diag.model.serving_log import EngineConditions, RequestRecord
from tests.builders.imported import Recorded
from tests.builders.server_log import VLLM_START, ServerLog, vllm_stats
from tests.builders.serving_log import MS, SECOND, LoggedRun, ServingLog, request
from tests.builders.simulated_serving import Job, Server, arrivals, jobs, logged, serve


@dataclass(frozen=True)
class Made:
    log: Recorded
    injected: float
    """In the unit of the fault's figure; 0 for a twin."""
    name: str = ""
    """What was drawn, where the figure is called after it."""


@dataclass(frozen=True)
class LoadFault:
    rule: str
    figure: str
    """Label of the evidence that gives its size; {name} stands for what was drawn."""
    make: Callable[[float, Random, bool], Made]
    """Of a dose, a source of draws, and whether it is sick."""
    entails: Sequence[str] = ()
    """Rules that are right to find something, too."""
    unit: str = "share"


def make(fault: LoadFault, dose: float, seed: int, *, is_sick: bool) -> Made:
    """Sick and twin of the same seed have the same draws."""
    return fault.make(dose, Random(seed), is_sick)


def _server(draw: Random) -> Server:
    return Server(
        places=draw.randrange(8, 25), prefill_ns=draw.randrange(60_000, 140_000), itl_ns=draw.randrange(15, 31) * MS
    )


def _light(draw: Random, n: int, server: Server, share: float = 0.5) -> list[Job]:
    """Requests at a share of what the server can do, or less."""
    sample = jobs(Random(draw.random()), 200, 1.0)
    return jobs(draw, n, draw.uniform(0.6, 1.0) * share * server.capacity_per_s(sample))


def _run(jobs: Sequence[Job], server: Server) -> LoggedRun:
    span_ns = max(job.intended_ns for job in jobs)
    return logged(serve(jobs, server), round(len(jobs) * SECOND / span_ns, 3))


# ---- how many come -------------------------------------------------------------------------------------------------


def _overload(dose: float, draw: Random, is_sick: bool) -> Made:
    """What remains to be done when the last has come, as a share of all that is to be done."""
    server, n = _server(draw), 4000
    output = (5, 20)
    capacity_per_s = server.capacity_per_s(jobs(Random(draw.random()), 500, 1.0, output=output))
    of_capacity = 1 / (1 - dose) if is_sick else draw.uniform(0.4, 0.8)
    of = jobs(draw, n, of_capacity * capacity_per_s, output=output)
    to_do_ns = sum(map(server.service_of, of)) / server.places
    return Made(ServingLog([_run(of, server)]), 1 - of[-1].intended_ns / to_do_ns if is_sick else 0.0)


def _past_the_knee(dose: float, draw: Random, is_sick: bool) -> Made:
    """The last rate below capacity is the knee, as beyond it the queue grows; the twin has no such rates."""
    server, n = _server(draw), 500
    capacity_per_s = server.capacity_per_s(jobs(Random(1), n, 1.0))
    knee = draw.uniform(0.7, 0.85)
    shares = (0.2, 0.45, knee, 1 + 2 * dose, 2 + dose) if is_sick else (0.1, 0.3, 0.5, 0.7)
    rates = [round(share * capacity_per_s, 2) for share in shares]
    runs = [logged(serve(jobs(Random(draw.random()), n, rate), server), rate) for rate in rates]
    return Made(ServingLog(runs), rates[2] if is_sick else 0.0)


def _queue_in_a_log(dose: float, draw: Random, is_sick: bool) -> Made:
    """A minute of overload as the server's log tells of it, a line a second."""
    server, seconds = _server(draw), range(60)
    capacity_per_s = server.capacity_per_s(jobs(Random(1), 400, 1.0))
    of_capacity = 1 / (1 - dose) if is_sick else draw.uniform(0.4, 0.8)
    served = serve(jobs(draw, round(61 * of_capacity * capacity_per_s), of_capacity * capacity_per_s), server)
    states = [_at(served, second * SECOND) for second in seconds]
    lines = [vllm_stats(k, running=running, waiting=waiting) for k, (running, waiting) in enumerate(states)]
    at_last = [waiting for _, waiting in states[-10:]]
    return Made(ServerLog([*VLLM_START, *lines]), sum(at_last) / len(at_last) if is_sick else 0.0)


def _at(served: Sequence[RequestRecord], time_ns: int) -> tuple[int, int]:
    """How many run and wait at that time."""
    running = sum((each.scheduled_ns or 0) <= time_ns < (each.ended_ns or 0) for each in served)
    waiting = sum((each.queued_ns or 0) <= time_ns < (each.scheduled_ns or 0) for each in served)
    return running, waiting


# ---- what comes to nothing -----------------------------------------------------------------------------------------


def _failing(dose: float, draw: Random, is_sick: bool) -> Made:
    server, n = _server(draw), 400
    run = _run(_light(draw, n, server), server)
    chosen = set(draw.sample(range(n), round(dose * n))) if is_sick else set()
    return Made(ServingLog([replace(run, requests=_with(run.requests, chosen))]), len(chosen) / n)


def _with(requests: Sequence[RequestRecord], failed: set[int]) -> list[RequestRecord]:
    return [_failed(each) if number in failed else each for number, each in enumerate(requests)]


def _failed(each: RequestRecord) -> RequestRecord:
    return msgspec.structs.replace(
        each, outcome="failed", token_ns=(), output_tokens=0, ended_ns=each.queued_ns, error="500 Internal Server Error"
    )


def _empty(dose: float, draw: Random, is_sick: bool) -> Made:
    server, n = _server(draw), 400
    run = _run(_light(draw, n, server), server)
    chosen = set(draw.sample(range(n), round(dose * n))) if is_sick else set()
    silent = [
        msgspec.structs.replace(each, token_ns=(), output_tokens=0) if number in chosen else each
        for number, each in enumerate(run.requests)
    ]
    return Made(ServingLog([replace(run, requests=silent)]), len(chosen) / n)


def _refusing(dose: float, draw: Random, is_sick: bool) -> Made:
    """More than can be served, and a short queue; the twin has three times the places."""
    server = replace(_server(draw), max_waiting=draw.randrange(2, 9))
    per_s = server.capacity_per_s(jobs(Random(1), 400, 1.0)) / (1 - dose)
    of = jobs(draw, 600, per_s)
    run = _run(of, server if is_sick else replace(server, places=3 * server.places))
    rejected = sum(each.outcome == "rejected" for each in run.requests)
    return Made(ServingLog([run]), rejected / len(of) if is_sick else 0.0)


def _retrying(dose: float, draw: Random, is_sick: bool) -> Made:
    """A server that fails more and more, and clients that send again until it answers."""
    server = _server(draw)
    first = [job.intended_ns for job in _light(draw, 400, server, 0.3)]
    attempts: list[tuple[int, str | None]] = []
    for number, at in enumerate(first):
        fails = min(2 * dose, 0.75) * number / len(first) if is_sick else 0.0
        attempts.append((at, None))
        while draw.random() < fails:
            at += draw.randrange(20, 200) * MS
            attempts.append((at, "an earlier one"))
    served = serve([Job(at) for at, _ in attempts], server)
    again = sorted(attempts)
    requests = [msgspec.structs.replace(each, retry_of=of) for each, (_, of) in zip(served, again, strict=True)]
    retries = sum(of is not None for _, of in attempts)
    return Made(ServingLog([LoggedRun(_with(requests, _before_retries(draw, again)))]), retries / len(attempts))


def _before_retries(draw: Random, attempts: Sequence[tuple[int, str | None]]) -> set[int]:
    """As many attempts fail as there are retries, each some time before one of them."""
    return {max(number - draw.randrange(1, 3), 0) for number, (_, of) in enumerate(attempts) if of is not None}


# ---- late ----------------------------------------------------------------------------------------------------------


def _late_client(dose: float, draw: Random, is_sick: bool) -> Made:
    server = Server(places=1000, prefill_ns=draw.randrange(60_000, 140_000))
    of = jobs(draw, 300, draw.uniform(5, 20))
    ttft_ns = [server.input_ns + server.prefill_of(job) for job in of]
    mean_ns = dose / (1 - dose) * sum(ttft_ns) / len(of)
    delays = [round(draw.uniform(0.2, 1.8) * mean_ns) if is_sick else 0 for _ in of]
    late = [replace(job, send_delay_ns=delay) for job, delay in zip(of, delays, strict=True)]
    return Made(ServingLog([_run(late, server)]), sum(delays) / (sum(delays) + sum(ttft_ns)))


def _late_answers(dose: float, draw: Random, is_sick: bool) -> Made:
    """Some have a TTFT of over two seconds, at any time of the run."""
    n = 300
    late = set(draw.sample(range(n), round(dose * n))) if is_sick else set()
    ttft_ns = [round((draw.uniform(2.1, 4) if k in late else draw.uniform(0.1, 0.6)) * SECOND) for k in range(n)]
    at = arrivals(draw, n, 5.0)
    requests = [request(k, at[k], ttft_ns=ttft_ns[k], itl_ns=30 * MS) for k in range(n)]
    return Made(ServingLog([LoggedRun(requests)]), len(late) / n)


def _late_first_token(dose: float, draw: Random, is_sick: bool) -> Made:
    """One of the parts of TTFT takes half of it and more, and TTFT as long as 45 to 120 tokens; the twin's 3 to 20."""
    part, itl_ns, n = draw.choice(("input", "queue", "prefill")), draw.randrange(15, 40) * MS, 100
    share = 0.45 + dose
    times = draw.uniform(45, 120) if is_sick else draw.uniform(3, 20)
    whole = [draw.uniform(0.9, 1.1) * times * itl_ns for _ in range(n)]
    at = arrivals(draw, n, 2.0)
    requests = [_parted(k, at[k], whole[k], part, share, itl_ns) for k in range(n)]
    return Made(ServingLog([LoggedRun(requests)]), share if is_sick else 0.0, part)


def _parted(number: int, sent_ns: int, ttft_ns: float, part: str, share: float, itl_ns: int) -> RequestRecord:
    rest = (1 - share) / 2
    of_input, of_queue = (share if part == name else rest for name in ("input", "queue"))
    queued_ns = sent_ns + round(of_input * ttft_ns)
    scheduled_ns = queued_ns + round(of_queue * ttft_ns)
    return request(
        number, sent_ns, ttft_ns=round(ttft_ns), itl_ns=itl_ns, n=200, queued_ns=queued_ns, scheduled_ns=scheduled_ns
    )


def _behind_long_prompts(dose: float, draw: Random, is_sick: bool) -> Made:
    """Now and then a prompt whose prefill, in one piece, takes so long that a share of the time goes to such."""
    prefill_ns = draw.randrange(60_000, 140_000)
    server = Server(places=200, prefill_ns=prefill_ns, is_chunked=not is_sick)
    shorts = jobs(draw, 500, draw.uniform(3, 5))
    long_ns = round(draw.uniform(0.8, 1.4) * SECOND)
    every_ns = round(long_ns / dose)
    times = range(every_ns, shorts[-1].intended_ns, every_ns)
    longs = [Job(at + draw.randrange(every_ns // 4), long_ns // prefill_ns) for at in times]
    run = _run([*shorts, *longs], server)
    prefills = [(each.scheduled_ns or 0, each.token_ns[0]) for each in run.requests if (each.prompt_tokens or 0) > 1000]
    sent = [job.intended_ns for job in shorts]
    behind = sum(any(start <= at < end for start, end in prefills) for at in sent)
    return Made(ServingLog([run]), behind / len(sent) if is_sick else 0.0)


def _slow_hits(dose: float, draw: Random, is_sick: bool) -> Made:
    """Half of the requests find most of their prompt in the cache, which takes longer to bring than to compute."""
    server = Server(places=1000, prefill_ns=draw.randrange(60_000, 140_000), input_ns=0)
    part, length = draw.uniform(0.6, 0.95), draw.randrange(600, 900)
    cost = 1 + dose / part if is_sick else 0.1
    server = replace(server, lookup_ns=round(cost * server.prefill_ns))
    of = [replace(job, prompt_tokens=length + draw.randrange(-9, 10)) for job in jobs(draw, 300, draw.uniform(3, 9))]
    hit = [replace(job, cached_tokens=draw.choice((0, round(part * job.prompt_tokens)))) for job in of]
    return Made(ServingLog([_run(hit, server)]), 1 + dose if is_sick else 0.0)


def _slow_cards(dose: float, draw: Random, is_sick: bool) -> Made:
    """Twice the cards under the same load, or under twice as much; each token takes longer, in the twin less long."""
    server, per_s = Server(places=1000, itl_ns=draw.randrange(15, 40) * MS), draw.uniform(2, 6)
    cards, times = draw.choice((1, 2, 4)), 1 + dose if is_sick else 1 / (1 + dose)
    more = replace(
        server, itl_ns=round(times * server.itl_ns), prefill_ns=round(times * server.prefill_ns),
        input_ns=round(times * server.input_ns),
    )  # fmt: skip
    rates = (per_s, draw.choice((1, 2)) * per_s)
    runs = [
        logged(serve(jobs(Random(7), 150, rate), of), round(rate, 3), engine=EngineConditions(tensor_parallel=n))
        for of, n, rate in ((server, cards, rates[0]), (more, 2 * cards, rates[1]))
    ]
    return Made(ServingLog(runs), times if is_sick else 0.0)


FAULTS: Mapping[str, LoadFault] = {
    "arrivals above capacity": LoadFault(
        "serving.overload", "shortfall", _overload, ("serving.goodput", "serving.ttft")
    ),
    "rates past the knee": LoadFault(
        "serving.knee", "knee", _past_the_knee, ("serving.overload", "serving.goodput", "serving.ttft"), "requests/s"
    ),
    "queue in a server's log": LoadFault("serving.queue", "waiting at last", _queue_in_a_log, unit="requests"),
    "failing requests": LoadFault("serving.errors", "errors", _failing),
    "empty answers": LoadFault("serving.empty_answers", "empty", _empty, ("serving.goodput",)),
    "refused requests": LoadFault("serving.rejections", "rejected", _refusing, ("serving.ttft",)),
    "retry storm": LoadFault("serving.retries", "retries", _retrying, ("serving.errors",)),
    "late load generator": LoadFault("capture.late_sends", "hidden", _late_client),
    "missed objectives": LoadFault("serving.goodput", "missed", _late_answers),
    "late first tokens": LoadFault("serving.ttft", "{name}, share", _late_first_token, ("serving.goodput",)),
    "long prompts in one piece": LoadFault(
        "serving.long_prompts", "share behind", _behind_long_prompts, ("serving.ttft", "serving.goodput")
    ),
    "slow prefix cache": LoadFault("serving.prefix_slower", "slower", _slow_hits, unit="ratio"),
    "slow cards": LoadFault("serving.scaling", "slower", _slow_cards, unit="ratio"),
}
