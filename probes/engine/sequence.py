"""A request, how its tokens are chosen, and the sequence of tokens that it becomes."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SamplingParams:
    max_tokens: int = 16
    temperature: float = 0.0  # 0: greedy
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    seed: int = 0  # a token depends on it and on its position alone, not on what else is in the batch
    stop_tokens: frozenset[int] = frozenset()
    n: int = 1  # samples of one prompt, which share its blocks
    beam_width: int = 0  # 0: no beam search


@dataclass(frozen=True)
class Request:
    id: str
    prompt: tuple[int, ...]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    priority: int = 0  # larger goes first
    deadline_ns: int | None = None  # on the engine's clock; past it the request expires
    adapter: str = ""  # prefixes are shared only within one adapter
    salt: str = ""  # and one salt
