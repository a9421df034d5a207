"""Runs of the engine with one thing set wrongly, by a dose that is drawn, and the same load on an engine set right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from diag.probes.engine.answers import VOCABULARY, digests, token_after
from diag.probes.engine.sequence import SamplingParams
from diag.probes.engine.simulation import StepCost
from diag.probes.serve.logged import LoggedRun
from diag.probes.serve.simulated import Hitch, Host, Load, Served

MS = 1_000_000

RIGHT = Served()
"""An engine that has room, chunks its prompts and has little host work; its steps take 6 to 17 ms."""
STEP_NS = 6_500_000
"""About what one of its decode steps takes."""

AT_ONCE = Load(rate_per_s=None)
FINE_BUCKETS = tuple(range(1, 33))


@dataclass(frozen=True)
class Pair:
    sick: Served
    twin: Served


@dataclass(frozen=True)
class EngineFault:
    rule: str
    tells: str
    """What a finding of the rule says if it is about this fault."""
    drawn: Callable[[Random], Pair]
    entails: Sequence[str] = ()
    """Rules that are right to find something, too."""

    def runs(self, seed: int, *, is_sick: bool) -> list[LoggedRun]:
        """Sick and twin of the same seed have the same load."""
        pair = self.drawn(Random(seed))
        return _runs(pair.sick if is_sick else pair.twin, seed)


def _runs(served: Served, seed: int) -> list[LoggedRun]:
    """With drafts, the same load without them comes along."""
    if served.drafter is None:
        return [served.run(seed)]
    plain = replace(served, drafter=None, config=replace(served.config, n_draft_tokens=0))
    return [served.run(seed, "with drafts"), plain.run(seed, "without drafts")]


def _set(served: Served, **settings: object) -> Served:
    return replace(served, config=replace(served.config, **settings))  # type: ignore[arg-type]


def _log_uniform(draw: Random, low: float, high: float) -> float:
    return float(low * (high / low) ** draw.random())


# ---- streams that stall --------------------------------------------------------------------------------------------


def _whole_prompts(draw: Random) -> Pair:
    shortest = draw.randrange(1_200, 3_000)
    load = Load(long_share=draw.uniform(0.15, 0.4), long_prompts=(shortest, shortest + 1_000), rate_per_s=8.0)
    twin = replace(RIGHT, load=load)
    return Pair(_set(twin, chunked_prefill=False), twin)


def _pauses(draw: Random) -> Pair:
    pause_ns = round(_log_uniform(draw, 25, 120) * MS)
    return Pair(replace(RIGHT, host=Host(pause_ns=pause_ns, pause_every=draw.randrange(30, 70))), RIGHT)


def _hitches(draw: Random) -> Pair:
    hitch_ns = round(_log_uniform(draw, 25, 120) * MS)
    return Pair(replace(RIGHT, cost=Hitch(hitch_ns=hitch_ns, hitch_every=draw.randrange(30, 70))), RIGHT)


# ---- host work -----------------------------------------------------------------------------------------------------


def _host_work(draw: Random) -> Pair:
    """Of one of its parts, for a share of the time from 0.15 to 0.6."""
    dose = draw.uniform(0.15, 0.6)
    took_ns = round(STEP_NS * dose / (1 - dose))
    part = draw.choice(("schedule_ns", "output_ns", "between_ns", "sample"))
    if part == "sample":
        return Pair(replace(RIGHT, cost=StepCost(sample_row_ns=took_ns // 4)), RIGHT)  # some ten rows decode
    return Pair(replace(RIGHT, host=replace(Host(), **{part: took_ns})), RIGHT)


# ---- the KV cache --------------------------------------------------------------------------------------------------

_LONG_OUTPUTS = Load(rate_per_s=None, n_requests=48, prompts=(20, 60), outputs=(150, 300))
"""Sequences that grow to several times of what they were admitted with, up to 23 blocks of 16."""


def _small_pool(draw: Random) -> Pair:
    twin = replace(RIGHT, load=_LONG_OUTPUTS)
    return Pair(_set(twin, n_blocks=draw.randrange(80, 300)), twin)


def _small_pool_with_swap(draw: Random) -> Pair:
    twin = _set(replace(RIGHT, load=_LONG_OUTPUTS), preemption="swap", n_host_blocks=2_000)
    return Pair(_set(twin, n_blocks=draw.randrange(80, 300)), twin)


def _full_pool(draw: Random) -> Pair:
    """Prompts fill it; outputs are so short that nobody needs more blocks later."""
    twin = replace(RIGHT, load=Load(rate_per_s=None, prompts=(300, 600), outputs=(20, 40)))
    return Pair(_set(twin, n_blocks=draw.randrange(80, 300)), twin)


def _large_blocks(draw: Random) -> Pair:
    """In the same memory."""
    load = Load(prompts=(60, 140), outputs=(20, 60))
    block_tokens = draw.choice((64, 128, 256))
    twin = replace(RIGHT, load=load)
    return Pair(_set(twin, block_tokens=block_tokens, n_blocks=4_000 * 16 // block_tokens), twin)


# ---- the batch -----------------------------------------------------------------------------------------------------


def _static(draw: Random) -> Pair:
    longest = draw.randrange(200, 500)
    load = Load(rate_per_s=None, prompts=(20, 100), outputs=(20, longest))
    twin = _set(replace(RIGHT, load=load), max_sequences=draw.choice((8, 16)))
    return Pair(_set(twin, batching="static"), twin)


def _small_budget(draw: Random) -> Pair:
    twin = replace(RIGHT, load=Load(rate_per_s=None, prompts=(300, 600), outputs=(40, 80)))
    return Pair(_set(twin, max_step_tokens=draw.randrange(24, 64)), twin)


def _wide_buckets(draw: Random) -> Pair:
    twin = _set(RIGHT, graph_buckets=FINE_BUCKETS)
    return Pair(_set(twin, graph_buckets=draw.choice(((64,), (128,), (48, 96), (4, 64)))), twin)


# ---- drafts --------------------------------------------------------------------------------------------------------


class RightNowAndThen:
    """Drafts of which each is right with a probability of its own, for it knows the answers."""

    def __init__(self, acceptance: float, seed: int) -> None:
        self._acceptance = acceptance
        self._draw = Random(seed)

    def propose(self, tokens: Sequence[int], n_tokens: int) -> tuple[int, ...]:
        guesses = list(tokens)
        for _ in range(n_tokens):
            right = token_after(digests(guesses), SamplingParams())
            is_right = self._draw.random() < self._acceptance
            guesses.append(right if is_right else (right + 1) % VOCABULARY)
        return tuple(guesses[len(tokens) :])


def _bad_drafts(draw: Random) -> Pair:
    seed, n_drafts = draw.randrange(1 << 31), draw.randrange(3, 6)
    load = Load(n_requests=16, rate_per_s=None, prompts=(20, 60), outputs=(100, 200))
    cost = StepCost(decode_row_ns=60_000)  # so that rows cost something beside the weights that a step reads
    plain = _set(replace(RIGHT, load=load, cost=cost), n_draft_tokens=n_drafts, max_step_tokens=512)
    sick, twin = (RightNowAndThen(draw.uniform(*of), seed) for of in ((0.02, 0.15), (0.85, 0.98)))
    return Pair(replace(plain, drafter=sick), replace(plain, drafter=twin))


FAULTS: Mapping[str, EngineFault] = {
    "whole prefill of long prompts": EngineFault("serving.itl_spikes", "mostly for prompts computed", _whole_prompts),
    "pauses of the host": EngineFault("serving.itl_spikes", "mostly for host work", _pauses, ["serving.host_gap"]),
    "hitches of the model": EngineFault("serving.itl_spikes", "longer by themselves", _hitches),
    "host work": EngineFault("serving.host_gap", "No model runs", _host_work),
    "small pool, recompute": EngineFault(
        "serving.preemption", "a second time", _small_pool, ["serving.kv_full", "serving.itl_spikes"]
    ),
    "small pool, swap": EngineFault(
        "serving.preemption", "Preemption", _small_pool_with_swap, ["serving.kv_full", "serving.itl_spikes"]
    ),
    "full pool": EngineFault("serving.kv_full", "requests wait", _full_pool, ["serving.preemption"]),
    "large blocks": EngineFault("serving.kv_waste", "is empty", _large_blocks),
    "static batches": EngineFault("serving.batch", "batching is static", _static, ["serving.padding"]),
    "small budget": EngineFault("serving.batch", "the budget of", _small_budget),
    "wide buckets": EngineFault("serving.padding", "are padding", _wide_buckets),
    "bad drafts": EngineFault("serving.speculative", "do not pay", _bad_drafts),
}
