"""The requests of a run: what each asks for and when, all by the seed.

Arrivals, lengths and tokens are drawn from random streams of their own, so that a change of one leaves the others: the
same prompts at another rate, the same arrivals with longer outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from diag.errors import UsageError
from diag.model.serving_log import LoadConditions, Phase
from diag.model.token_lengths import Lengths, Tokens
from diag.probes.serve.arrivals import ClosedLoop, OpenLoop

MOST_REQUESTS = 1_000_000
DEFAULT_VOCABULARY = 32_000

_ARRIVALS, _PROMPT_LENGTHS, _OUTPUT_LENGTHS, _PROMPTS, _PREFIX, _WARMUP = range(6)
"""Random streams of a seed."""

_PREFIX_BLOCK = 4096

Loop: TypeAlias = ClosedLoop | OpenLoop


@dataclass(frozen=True)
class PlannedRequest:
    id: str
    phase: Phase
    prompt: tuple[int, ...]  # tokens, below the vocabulary
    max_output_tokens: int
    offset_ns: int | None = None  # after the start of its phase; None: as soon as an earlier one has ended


@dataclass(frozen=True)
class Workload:
    """`shared_prefix_share` of each prompt's tokens, its first ones, are those of all other prompts, too.

    Two kinds of warm-up are sent before what is measured, apart. That of the engine compiles, captures and connects;
    its prompts share nothing with others, so that the prefix cache is as cold as before. That of the cache is one
    request with the longest shared prefix.
    """

    loop: Loop
    n_requests: int
    prompt_lengths: Lengths
    output_lengths: Lengths
    shared_prefix_share: float = 0.0
    n_warmup: int = 0
    warms_cache: bool = False
    vocabulary: int = DEFAULT_VOCABULARY
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.n_requests <= MOST_REQUESTS:
            raise UsageError(f"--requests {self.n_requests} cannot be sent. Choose 1 to {MOST_REQUESTS:,}.")
        if not 0 <= self.shared_prefix_share <= 1:
            raise UsageError(f"--shared-prefix {self.shared_prefix_share:g} is no share. Choose one from 0 to 1.")
        if self.warms_cache and not self.shared_prefix_share:
            raise UsageError("--warm-cache sends what prompts share; give them a --shared-prefix, or leave it out.")
        if not 0 <= self.n_warmup <= MOST_REQUESTS:
            raise UsageError(f"--warmup {self.n_warmup} cannot be sent. Choose 0 to {MOST_REQUESTS:,} requests.")
        if self.vocabulary < 2:
            raise UsageError(f"A vocabulary of {self.vocabulary} tokens leaves no choice of prompts. Choose 2 or more.")
        if not 0 <= self.seed < 1 << 64:
            raise UsageError(f"--seed {self.seed} is none. Choose one from 0 up to 2^64 - 1.")

    @property
    def conditions(self) -> LoadConditions:
        """As the log's header tells them."""
        loop = self.loop
        arrivals = (
            LoadConditions(arrival="closed", concurrency=loop.concurrency)
            if isinstance(loop, ClosedLoop)
            else LoadConditions(
                arrival=loop.arrival,
                rate_per_s=loop.rate_per_s,
                burstiness=loop.burstiness if loop.arrival == "gamma" else None,
            )
        )
        return msgspec.structs.replace(
            arrivals,
            n_requests=self.n_requests,
            prompt_lengths=str(self.prompt_lengths),
            output_lengths=str(self.output_lengths),
            shared_prefix_share=self.shared_prefix_share or None,
            seed=self.seed,
        )

    def engine_warmup(self) -> Iterator[PlannedRequest]:
        """Lengths are those of the first measured requests."""
        for number in range(self.n_warmup):
            of = number % self.n_requests
            tokens = self._tokens(_WARMUP, number, int(self._prompt_tokens[of]))
            yield PlannedRequest(f"warmup-{number}", "engine_warmup", tokens, int(self._output_tokens[of]))

    def cache_warmup(self) -> Iterator[PlannedRequest]:
        if self.warms_cache:
            longest = self._n_shared(int(self._prompt_tokens.max()))
            yield PlannedRequest("cache-0", "cache_warmup", self._prefix(max(1, longest)), max_output_tokens=1)

    def measured(self) -> Iterator[PlannedRequest]:
        """In the order of sending; made one by one, as prompts take room."""
        offsets = self.offsets_ns
        for number in range(self.n_requests if offsets is None else len(offsets)):
            n_tokens = int(self._prompt_tokens[number])
            shared = self._prefix(self._n_shared(n_tokens))
            own = self._tokens(_PROMPTS, number, n_tokens - len(shared))
            due = None if offsets is None else int(offsets[number])
            yield PlannedRequest(str(number), "measured", shared + own, int(self._output_tokens[number]), due)

    @cached_property
    def offsets_ns(self) -> NDArray[np.int64] | None:
        """(requests,) after the start: when each is due; None in a closed loop."""
        if isinstance(self.loop, ClosedLoop):
            return None
        return self.loop.offsets_ns(self.n_requests, self._stream(_ARRIVALS))

    @cached_property
    def _prompt_tokens(self) -> Tokens:
        return self.prompt_lengths.draw(self.n_requests, self._stream(_PROMPT_LENGTHS))

    @cached_property
    def _output_tokens(self) -> Tokens:
        return self.output_lengths.draw(self.n_requests, self._stream(_OUTPUT_LENGTHS))

    def _n_shared(self, n_tokens: int) -> int:
        return int(self.shared_prefix_share * n_tokens)

    def _tokens(self, stream: int, number: int, n: int) -> tuple[int, ...]:
        return tuple(self._stream(stream, number).integers(self.vocabulary, size=n).tolist())

    def _prefix(self, n: int) -> tuple[int, ...]:
        """The first `n` tokens of what prompts share."""
        blocks = range(-(-n // _PREFIX_BLOCK))
        return tuple(token for each in blocks for token in _prefix_block(self.seed, self.vocabulary, each))[:n]

    def _stream(self, *of: int) -> np.random.Generator:
        return _stream(self.seed, *of)


def _stream(seed: int, *of: int) -> np.random.Generator:
    return np.random.default_rng([seed, *of])


@lru_cache(maxsize=512)
def _prefix_block(seed: int, vocabulary: int, number: int) -> tuple[int, ...]:
    return tuple(_stream(seed, _PREFIX, number).integers(vocabulary, size=_PREFIX_BLOCK).tolist())
