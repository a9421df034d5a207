"""What a step computes, and what comes back: the border between the scheduler, which knows no tensors, and a runner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from diag.probes.engine.sequence import SamplingParams


@dataclass(frozen=True)
class BlockCopy:
    """All keys and values of one block, in every layer."""

    source: int
    target: int


class Chunk(msgspec.Struct, frozen=True):
    """Tokens of one sequence that a step computes: a prompt, a part of one, or the last token in decode.

    Not a dataclass: those take 1 µs to make, and a step at 256 sequences makes 256.
    """

    sequence_id: int
    tokens: tuple[int, ...]
    start: int  # position of the first of them; all before it is in the cache already
    blocks: tuple[int, ...]  # the block table, long enough for tokens and drafts
    sampling: SamplingParams | None  # None: its last position gives no token, as more of the prompt follows
    drafts: tuple[int, ...] = ()  # guesses of what follows, checked in the same pass; written after `tokens`
    draft_probabilities: tuple[tuple[float, ...], ...] = ()
    """Of each draft the distribution over the vocabulary that it was drawn from; empty: drafts were not drawn."""
    n_best: int = 0  # of the likeliest next tokens, for beam search

    @property
    def n_tokens(self) -> int:
        return len(self.tokens) + len(self.drafts)


@dataclass(frozen=True)
class StepPlan:
    """In this order: blocks go to the host, come from it, are copied on the device, chunks are computed."""

    number: int
    chunks: Sequence[Chunk]
    swap_out: Sequence[BlockCopy] = ()  # device → host
    swap_in: Sequence[BlockCopy] = ()  # host → device
    copies: Sequence[BlockCopy] = ()  # copy-on-write, within the device
    padded_rows: int | None = None
    """Of a step whose chunks are one token each, and its drafts: rows of the graph's bucket, or of the static batch."""

    @property
    def n_tokens(self) -> int:
        return sum(chunk.n_tokens for chunk in self.chunks)


@dataclass(frozen=True)
class Emission:
    """What one chunk with `sampling` gave: accepted drafts, then one token more."""

    sequence_id: int
    tokens: tuple[int, ...]
    n_accepted: int = 0
    best: tuple[tuple[int, float], ...] = ()  # (token, log-probability), likeliest first; `n_best` of them


@dataclass(frozen=True)
class StepOutput:
    emissions: Sequence[Emission]  # in the order of the chunks, one for each that samples
    model_ns: int = 0
    sample_ns: int = 0


class Runner(Protocol):
    """Holds model, KV cache and sampler."""

    def run(self, plan: StepPlan) -> StepOutput:
        """Returns when the results are on the host. Blocks that the plan names are in use until then."""
        ...
