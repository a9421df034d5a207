"""What a serving run writes down, one JSON object a line: the file `diag.serving-log/1`.

The first line is the `Header`. A `RequestRecord` is written when a request has ended, a `StepRecord` when an engine has
finished a step; a client of somebody else's server writes no steps. All times are integer nanoseconds on one monotonic
clock whose zero is the start of the run, and None is what was not seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

SCHEMA = "diag.serving-log/1"

Phase: TypeAlias = Literal["engine_warmup", "cache_warmup", "measured"]
Outcome: TypeAlias = Literal["completed", "rejected", "failed", "cancelled", "expired"]
"""`rejected`: refused before any work; `failed`: an error, a stream that was cut; `expired`: past its deadline."""

Arrival: TypeAlias = Literal["closed", "poisson", "gamma", "constant", "trace", "at_once"]


class LoadConditions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How requests came. None: does not apply, or nobody said."""

    arrival: Arrival | None = None
    rate_per_s: float | None = None  # intended arrivals of an open loop
    burstiness: float | None = None  # coefficient of variation of the gaps between arrivals; Poisson: 1
    concurrency: int | None = None  # requests in flight of a closed loop
    n_requests: int | None = None  # that were meant to be measured
    prompt_lengths: str | None = None  # in words: 'uniform 100-200'
    output_lengths: str | None = None
    shared_prefix_share: float | None = None  # of the prompt's tokens
    seed: int | None = None


class EngineConditions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an engine was set to, as far as it says. Other settings: `other`."""

    batching: Literal["continuous", "static"] | None = None
    block_tokens: int | None = None
    n_blocks: int | None = None  # of the whole pool
    max_sequences: int | None = None  # that run at once
    max_step_tokens: int | None = None  # the budget of a step
    chunked_prefill: bool | None = None
    prefix_cache: str | None = None  # 'hash', 'radix', 'none'
    preemption: str | None = None  # 'recompute', 'swap'
    max_waiting: int | None = None  # more are rejected
    tensor_parallel: int | None = None  # cards of one replica
    replicas: int | None = None
    other: Mapping[str, str] = {}


class Header(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag="run"):
    """The first line of a run; it tells the kind of the file, so that nothing of it is left away."""

    schema: str = SCHEMA
    diag_version: str
    label: str | None = None
    backend: str | None = None  # 'mini-engine', or what a server is
    model: str | None = None
    host: str | None = None
    started_unix_ns: int | None = None
    load: LoadConditions = LoadConditions()
    engine: EngineConditions | None = None


class RequestRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="record", tag="request"):
    """One request, whatever became of it.

    `token_ns` are the times at which output arrived, `token_counts` how many tokens came at each (empty: one each).
    The client's view: intended_ns ≤ sent_ns ≤ token_ns ≤ ended_ns. The engine's, where it says: queued_ns (it was
    taken into the queue) ≤ scheduled_ns (its first tokens were part of a step).
    """

    id: str
    phase: Phase = "measured"
    outcome: Outcome
    prompt_tokens: int | None = None
    output_tokens: int | None = None  # that came out; of a failed request those before it failed
    cached_tokens: int | None = None  # of the prompt, found in the prefix cache
    max_output_tokens: int | None = None  # that were asked for
    intended_ns: int | None = None
    sent_ns: int | None = None
    queued_ns: int | None = None
    scheduled_ns: int | None = None
    token_ns: Sequence[int] = ()
    token_counts: Sequence[int] = ()
    ended_ns: int | None = None
    finish_reason: str | None = None  # 'stop', 'length', ...
    error: str | None = None
    n_preemptions: int | None = None
    retry_of: str | None = None  # id of the attempt before
    priority: int | None = None
    session: str | None = None


class StepRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="record", tag="step"):
    """One step of an engine: what was computed together, and what was left over.

    schedule_ns, model_ns, sample_ns and output_ns (detokenising, sending) are parts of end_ns - start_ns, one after
    the other; what remains of it is nobody's. Block counts are those after the step: used + cached + free = n_blocks,
    where cached blocks have no reference and can be taken.
    """

    number: int
    start_ns: int
    end_ns: int
    prefill_tokens: int = 0
    decode_tokens: int = 0
    n_prefills: int = 0  # sequences
    n_decodes: int = 0
    n_running: int = 0  # after the step
    n_waiting: int = 0
    n_swapped: int = 0
    used_blocks: int | None = None
    cached_blocks: int | None = None
    free_blocks: int | None = None
    used_tokens: int | None = None  # that the used blocks hold; the rest of them is waste
    longest_prefill_tokens: int = 0
    longest_prefill_request: str | None = None
    preempted: Sequence[str] = ()  # ids of requests
    swapped_in_blocks: int = 0
    swapped_out_blocks: int = 0
    recomputed_tokens: int = 0  # of prefill_tokens, computed before and lost by preemption
    padded_rows: int | None = None  # rows of the graph's bucket; None: no padding
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    schedule_ns: int | None = None
    model_ns: int | None = None
    sample_ns: int | None = None
    output_ns: int | None = None


Record: TypeAlias = Header | RequestRecord | StepRecord
