"""What can be set of the engine. Everything else follows from the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Batching: TypeAlias = Literal["continuous", "static"]
PrefixCaching: TypeAlias = Literal["none", "hash", "radix"]
Preemption: TypeAlias = Literal["recompute", "swap"]


@dataclass(frozen=True)
class EngineConfig:
    block_tokens: int = 16
    n_blocks: int = 256  # of the KV cache on the device
    n_host_blocks: int = 0  # to which blocks of preempted sequences are swapped
    max_sequences: int = 64  # that run at once
    max_step_tokens: int = 512  # the budget that decode, chunked prefill and new prefill share, decode first
    max_waiting: int | None = None  # requests beyond are rejected; None: no limit
    max_context: int = 1 << 20  # tokens of a sequence, prompt and output
    batching: Batching = "continuous"
    chunked_prefill: bool = True  # off: a prompt is computed whole, in a step of its own where it fills the budget
    prefix_cache: PrefixCaching = "hash"
    preemption: Preemption = "recompute"
    n_draft_tokens: int = 0  # speculative decoding; 0: none
    graph_buckets: tuple[int, ...] = ()  # rows of a decode step are padded to the next of these; empty: no padding
