"""A request, how its tokens are chosen, and the sequences of tokens that it becomes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from diag.model.serving_log import Outcome


@dataclass(frozen=True)
class SamplingParams:
    max_tokens: int = 16
    temperature: float = 0.0  # 0: greedy
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    seed: int = 0  # a token depends on it and on its position alone, not on what else is in the batch
    stop_tokens: frozenset[int] = frozenset()
    n: int = 1  # samples of one prompt, which share its blocks; sample i has seed + i
    beam_width: int = 0  # 0: no beam search

    @property
    def width(self) -> int:
        """Sequences that a request becomes."""
        return max(self.n, self.beam_width, 1)

    def of_sample(self, index: int) -> SamplingParams:
        return replace(self, seed=self.seed + index) if index else self


@dataclass(frozen=True)
class Request:
    id: str
    prompt: tuple[int, ...]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    priority: int = 0  # larger goes first
    deadline_ns: int | None = None  # on the engine's clock; past it the request expires
    adapter: str = ""  # prefixes are shared only within one adapter
    salt: str = ""  # and one salt


class State(Enum):
    WAITING = "waiting"  # holds no blocks: new, or preempted to be computed again
    RUNNING = "running"  # holds blocks on the device
    SWAPPED = "swapped"  # holds blocks on the host
    FINISHED = "finished"


@dataclass(eq=False, slots=True)
class Sequence:
    """Tokens, and how far the KV cache holds them: positions before `n_computed` lie in `blocks`, in their order."""

    id: int
    group: SequenceGroup
    sampling: SamplingParams
    tokens: list[int]  # prompt and output; the last one's keys and values come with the next token
    n_prompt: int
    n_computed: int = 0
    n_once_computed: int = 0  # the most that n_computed was before a preemption
    n_cached_blocks: int = 0  # of `blocks`, from the first on, that the prefix cache knows
    blocks: list[int] = field(default_factory=list)  # the block table
    host_blocks: list[int] = field(default_factory=list)  # while swapped
    state: State = State.WAITING
    last_step: int = -1  # that computed some of it
    candidates: tuple[tuple[int, float], ...] = ()  # of a beam: (token, log-probability) of what may follow
    log_probability: float = 0.0  # of its output, for beam search
    finish_reason: str | None = None

    @property
    def is_held(self) -> bool:
        """A beam that has its candidates and waits for the other beams."""
        return bool(self.candidates)

    @property
    def output(self) -> list[int]:
        return self.tokens[self.n_prompt :]

    @property
    def n_pending(self) -> int:
        """Tokens to compute until the next one can be sampled."""
        return len(self.tokens) - self.n_computed

    @property
    def is_decoding(self) -> bool:
        return self.n_computed >= self.n_prompt and len(self.tokens) - self.n_computed == 1

    @property
    def rank(self) -> tuple[int, int, int]:
        """Smaller goes first and is preempted last: by priority, then by arrival."""
        return (-self.group.request.priority, self.group.number, self.id)


@dataclass(eq=False, slots=True)
class SequenceGroup:
    """All sequences of one request, and what became of it. Times are on the engine's clock."""

    request: Request
    number: int  # in the order of arrival
    queued_ns: int
    max_tokens: int  # as asked for, or what the longest context leaves
    sequences: list[Sequence] = field(default_factory=list)  # samples in their order, or the beams that live
    n_to_fork: int = 0  # sequences that begin when the prompt is computed, of which the first one is
    scheduled_ns: int | None = None
    token_ns: list[int] = field(default_factory=list)
    token_counts: list[int] = field(default_factory=list)
    cached_tokens: int | None = None  # of the prompt, when it was first scheduled
    n_preemptions: int = 0
    beam_ends: list[BeamEnd] = field(default_factory=list)  # hypotheses that are complete
    outcome: Outcome | None = None  # None: not ended
    ended_ns: int | None = None
    error: str | None = None

    @property
    def outputs(self) -> list[tuple[int, ...]]:
        """(samples) output tokens so far; of a beam search the hypotheses that are complete, likeliest first."""
        if self.request.sampling.beam_width:
            return [end.tokens for end in self.beam_ends]
        return [tuple(each.output) for each in self.sequences]

    @property
    def is_done(self) -> bool:
        for each in self.sequences:  # noqa: SIM110 - `all` would make a generator, for each request in each step
            if each.state is not State.FINISHED:
                return False
        return True

    @property
    def finish_reason(self) -> str | None:
        """'stop' where every output ended by a stop token, else 'length'; None before the end."""
        ends: list[BeamEnd] | list[Sequence] = self.beam_ends or self.sequences
        if self.outcome != "completed":
            return None
        return "stop" if all(each.finish_reason == "stop" for each in ends) else "length"


@dataclass(frozen=True)
class BeamEnd:
    """A complete hypothesis of a beam search."""

    tokens: tuple[int, ...]
    log_probability: float  # of all its tokens together
    finish_reason: str

    @property
    def score(self) -> float:
        """Mean log-probability of a token, so that long hypotheses are not worse for being long."""
        return self.log_probability / len(self.tokens)
