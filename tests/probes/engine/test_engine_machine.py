"""Whatever comes in, in whatever order: outputs are those of no engine at all, and no block is lost."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from diag.errors import InputError
from diag.probes.engine.admission import Overloaded
from diag.probes.engine.answers import expected
from diag.probes.engine.config import EngineConfig
from diag.probes.engine.sequence import Request, SamplingParams, SequenceGroup
from tests.probes.engine.engines import Made, check_account, check_empty, made

CONFIGS = st.builds(
    EngineConfig,
    block_tokens=st.integers(1, 4),
    n_blocks=st.integers(8, 20),
    n_host_blocks=st.sampled_from([16, 8, 0]),
    max_sequences=st.integers(2, 6),
    max_step_tokens=st.integers(2, 24),
    max_waiting=st.sampled_from([None, None, 3]),
    batching=st.sampled_from(["continuous", "continuous", "continuous", "static"]),
    chunked_prefill=st.booleans(),
    prefix_cache=st.sampled_from(["none", "hash", "radix"]),
    preemption=st.sampled_from(["recompute", "swap"]),
    n_draft_tokens=st.sampled_from([0, 0, 1, 3]),
    graph_buckets=st.sampled_from([(), (2, 4)]),
)

# Few tokens, so that prefixes are met again.
PROMPTS = st.lists(st.integers(0, 1), min_size=1, max_size=12).map(tuple)

SAMPLINGS = st.builds(
    SamplingParams,
    max_tokens=st.integers(1, 8),
    temperature=st.sampled_from([0.0, 1.0]),
    seed=st.integers(0, 2),
    stop_tokens=st.sampled_from([frozenset[int](), frozenset(range(0, 251, 9))]),
    n=st.sampled_from([1, 1, 1, 3]),
    beam_width=st.sampled_from([0, 0, 0, 2]),
).map(lambda sampling: replace(sampling, n=1) if sampling.beam_width else sampling)


class Guesses:
    """Right at first, wrong in the end: drafts of which some are accepted."""

    def __init__(self) -> None:
        self.answers: dict[tuple[int, ...], tuple[int, ...]] = {}

    def propose(self, tokens: Sequence[int], n_tokens: int) -> tuple[int, ...]:
        for prompt, output in self.answers.items():
            n_out = len(tokens) - len(prompt)
            if tuple(tokens[: len(prompt)]) == prompt and output[:n_out] == tuple(tokens[len(prompt) :]):
                right = output[n_out : n_out + n_tokens - 1]
                return (*right, 3)[:n_tokens]
        return (3,) * n_tokens


class EngineMachine(RuleBasedStateMachine):
    @initialize(config=CONFIGS)
    def start(self, config: EngineConfig) -> None:
        self.guesses = Guesses()
        self.made: Made = made(config, drafter=self.guesses if config.n_draft_tokens else None)
        self.groups: list[SequenceGroup] = []
        self.n_added = 0

    @rule(
        prompt=PROMPTS,
        sampling=SAMPLINGS,
        priority=st.sampled_from([0, 0, 1]),
        patience_ns=st.sampled_from([None] * 6 + [30_000_000]),
        salt=st.sampled_from(["", "", "", "mine"]),
    )
    def add(
        self, prompt: tuple[int, ...], sampling: SamplingParams, priority: int, patience_ns: int | None, salt: str
    ) -> None:
        deadline_ns = None if patience_ns is None else self.made.clock() + patience_ns
        self.n_added += 1
        request = Request(f"r{self.n_added}", prompt, sampling, priority, deadline_ns, salt=salt)
        try:
            self.groups.append(self.made.engine.add(request))
        except (InputError, Overloaded):
            assert self.made.log.requests[request.id].outcome == "rejected"
            return
        self.guesses.answers[prompt] = expected(request)[0]

    @rule(n=st.integers(1, 3))
    def step(self, n: int) -> None:
        for _ in range(n):
            self.made.step()

    @precondition(lambda self: len(self.made.engine.groups) > 3)
    @rule(which=st.integers(0, 9))
    def cancel(self, which: int) -> None:
        live = list(self.made.engine.groups)
        assert self.made.engine.cancel(live[which % len(live)])

    @precondition(lambda self: len(self.made.engine.groups) > 4)
    @rule(which=st.integers(0, 9))
    def cancel_in_flight(self, which: int) -> None:
        """Until the step returns, nothing of it is given back."""
        engine = self.made.engine
        group = list(engine.groups.values())[which % len(engine.groups)]

        def during() -> None:
            if group.outcome is not None:  # it expired as the step began
                return
            n_used = engine.memory.pool.n_used
            engine.cancel(group.request.id)
            assert group.outcome is None
            assert engine.memory.pool.n_used == n_used

        self.made.runner.during = during
        self.made.step()
        self.made.runner.during = lambda: None
        assert group.outcome is not None or not self.made.runner.plans

    @precondition(lambda self: len(self.made.engine.groups) > 4)
    @rule()
    def fail_in_flight(self) -> None:
        """Who had blocks fails; who waited goes on."""

        def during() -> None:
            raise MemoryError("no memory for the step")

        self.made.runner.during = during
        with contextlib.suppress(MemoryError):
            self.made.step()
        self.made.runner.during = lambda: None
        assert not self.made.engine.scheduler.running

    @invariant()
    def blocks_are_accounted_for(self) -> None:
        check_account(self.made.engine)

    def teardown(self) -> None:
        if not hasattr(self, "made"):
            return
        n_steps = len(self.made.log.steps)
        while self.made.engine.has_work:
            self.made.step()
        check_empty(self.made.engine)
        for group in self.groups:
            right = expected(group.request)
            if group.outcome == "completed":
                assert group.outputs == right
            elif not group.request.sampling.beam_width:
                assert all(whole[: len(part)] == part for whole, part in zip(right, group.outputs, strict=False))
            assert self.made.log.requests[group.request.id].outcome == group.outcome
        assert n_steps <= len(self.made.log.steps)


EngineMachine.TestCase.settings = settings(max_examples=200, stateful_step_count=25, report_multiple_bugs=False)
TestEngineMachine = EngineMachine.TestCase
