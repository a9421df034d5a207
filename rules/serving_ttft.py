"""A first token that comes late, while the others come steadily."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from diag.model import units
from diag.model.serving_metrics import latency, prefix_hit_share
from diag.rules.engine import run_subject
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.serving_loads import AT_ONCE, every_step_rows, load_rule, request_rows, typical
from diag.rules.thresholds import Limits
from diag.serving.first_token import FirstTokenParts, first_token_parts
from diag.serving.run import ServingRun


@load_rule("serving.ttft", needs_requests=False)
def late_first_token(run: ServingRun, limits: Limits) -> Answer:
    """The first token comes late while the others come steadily, and what it waits for.

    Asks      Does TTFT take as long as very many decode steps, and is that the queue, the prefill, a prefix cache that
              misses, or the way into the engine?
    Decides   Fires when the median TTFT is at least `least_ms`, and `steps` times the median TPOT (or ITL), while ITL
              is steady: P95 below `steady` times the median. Then it takes TTFT apart: input (sent to queued, without
              what remained of the step that ran), queue (that rest, and queued to scheduled) and prefill (scheduled to
              first output); the largest names the cause. Prefill is laid to the prefix cache when the load shares a
              prefix and the cache held less than `hits` of it. Without the engine's times it cannot tell the cause; of
              a burst, in which all requests come at once, nothing at all.
    Matters   TTFT is what a user feels first. More cards shorten a prefill and no queue of a badly set limit; only the
              parts tell which it is.
    Do        Queue: more running sequences, more replicas, admission limits. Prefill: larger or separate prefill,
              shorter prompts, tensor parallelism. Cache: send what shares a prefix to the same replica, leave blocks
              for it. Input: tokenise in other processes, keep connections open, look at the network.
    Refute    With one request at a time TTFT is as long: then it is no queue, whatever the engine's clock says.
    """
    subject = run_subject(run)
    ttft, per_token = typical(run, "ttft"), typical(run, "tpot") or typical(run, "itl")
    if ttft is None or per_token is None or not per_token.value:
        return CannotTell(subject, "TTFT, or the time per output token, is not known")
    if float(ttft.value) < max(limits["steps"] * float(per_token.value), limits["least_ms"] * 1e6):
        return Clear(subject)
    times = f"TTFT takes {float(ttft.value) / float(per_token.value):,.0f} times the time per output token"
    if run.load.arrival == "at_once":
        return CannotTell(subject, f"{times}, but {AT_ONCE}")
    itl = latency(run.requests, "itl")
    if itl is not None and itl.p95 >= limits["steady"] * itl.p50:
        return CannotTell(subject, f"{times}, but ITL is not steady either: the engine as a whole is behind")
    parts = first_token_parts(run.completed, run.steps)
    if parts is None:
        return CannotTell(subject, f"{times}, and the engine's times (queued, scheduled) that tell why were not seen")
    return _finding(_Late(run, ttft, per_token, parts, limits))


@dataclass(frozen=True)
class _Cause:
    title: str
    next: str


_CAUSES: Mapping[str, _Cause] = {
    "queue": _Cause("the queue", "Compare running sequences with max_sequences and free blocks: what kept them out?"),
    "prefill": _Cause("prefill", "See how many tokens the steps of a prefill hold, and profile one of them."),
    "cache": _Cause("prefill of prefixes that the cache does not hold", "See what evicts the shared prefix: block use, "
                    "and which replica such requests go to."),
    "input": _Cause("the way into the engine", "Time tokenising and the HTTP server apart; look at the client's host."),
}  # fmt: skip


@dataclass(frozen=True)
class _Late:
    run: ServingRun
    ttft: Evidence
    per_token: Evidence
    parts: FirstTokenParts
    limits: Limits

    @property
    def shared(self) -> float | None:
        """Share of prompt tokens that a warm cache could hold; None where the load does not say."""
        return self.run.load.shared_prefix_share or None

    @property
    def misses(self) -> bool:
        held = prefix_hit_share(self.run.requests)
        return self.shared is not None and held is not None and held < self.limits["hits"] * self.shared

    @property
    def cause(self) -> _Cause:
        totals = self.parts.totals
        largest = max(totals, key=lambda name: totals[name])
        return _CAUSES["cache" if largest == "prefill" and self.misses else largest]


def _finding(it: _Late) -> Finding:
    totals = it.parts.totals
    whole = sum(totals.values()) or 1
    in_words = ", ".join(f"{name} {units.share(took / whole)}" for name, took in totals.items())
    times = float(it.ttft.value) / float(it.per_token.value)
    missed = ""
    if it.misses and it.shared is not None:
        held = prefix_hit_share(it.run.requests) or 0.0
        missed = f" Prompts share {units.share(it.shared)} of their tokens; the cache held {units.share(held)}."
    return Finding(
        title=f"TTFT is high because of {it.cause.title}",
        claim=f"The first token takes {units.time(float(it.ttft.value))}, {times:,.0f} times as long as each further "
        f"one ({units.time(float(it.per_token.value))}). Of all TTFT, {in_words}.{missed}",
        subject=run_subject(it.run),
        level="warning",
        confidence="high" if max(totals.values()) >= 0.5 * whole else "medium",
        counterfactual=f"Without it TTFT would be up to {units.share(max(totals.values()) / whole)} shorter, and TPOT "
        "as it is.",
        evidence=list(_evidence(it, whole)),
        refute="With one request at a time TTFT is as long.",
        next=[it.cause.next, "Send one request at a time, and compare its TTFT with this."],
    )


def _evidence(it: _Late, whole_ns: int) -> Iterator[Evidence]:
    sql = request_rows(it.run, "sent_ns", "queued_ns", "scheduled_ns", "ttft_ns", "cached_tokens", "prompt_tokens")
    yield it.ttft
    yield it.per_token
    for name, took_ns in it.parts.totals.items():
        formula = f"Σ over {len(it.parts.queue_ns):,} requests: {_FORMULAS[name]}"
        yield Evidence(name, took_ns, "ns", formula, sql)
        yield Evidence(f"{name}, share", took_ns / whole_ns, "share", f"{name} / Σ TTFT", sql)
    boundary_ns = int(it.parts.boundary_ns.sum())
    formula = "Σ of what remained of the step that ran when they were sent; part of queue"
    yield Evidence("step boundary", boundary_ns, "ns", formula, every_step_rows(it.run, "n_running"))
    if (held := prefix_hit_share(it.run.requests)) is not None:
        yield Evidence("prefix hits", held, "share", "cached / prompt tokens of completed requests", sql)


_FORMULAS = {
    "input": "queued - sent - step boundary",
    "queue": "scheduled - queued + step boundary",
    "prefill": "first output - scheduled",
}
