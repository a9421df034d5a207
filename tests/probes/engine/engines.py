"""Engines with known answers, for tests: how they are made, and what must hold of their blocks after every step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from diag.model.serving_log import RequestRecord, StepRecord
from diag.probes.engine.answers import AnswerRunner
from diag.probes.engine.config import EngineConfig
from diag.probes.engine.drafters import Drafter
from diag.probes.engine.engine import Engine
from diag.probes.engine.plan import Runner, StepOutput, StepPlan
from diag.probes.engine.sequence import Request, SamplingParams
from diag.probes.engine.simulation import SimulatedRunner, StepCost, VirtualClock


def request(name: str, n_prompt: int, n_output: int, *, priority: int = 0, deadline_ns: int | None = None) -> Request:
    """Its prompt is like nobody else's."""
    start = sum(map(ord, name)) * 31
    prompt = tuple((start + i * i) % 251 for i in range(n_prompt))
    return Request(name, prompt, SamplingParams(max_tokens=n_output), priority, deadline_ns)


@dataclass
class Log:
    """A sink."""

    steps: list[StepRecord] = field(default_factory=list)
    requests: dict[str, RequestRecord] = field(default_factory=dict)

    def __call__(self, record: RequestRecord | StepRecord) -> None:
        if isinstance(record, StepRecord):
            self.steps.append(record)
        else:
            self.requests[record.id] = record


@dataclass
class Made:
    engine: Engine
    runner: WatchedRunner
    clock: VirtualClock
    log: Log

    def step(self) -> None:
        self.engine.step()
        check_account(self.engine)


class WatchedRunner:
    """Keeps the plans that it ran; `during` is called while a step is in flight."""

    def __init__(self, runner: Runner) -> None:
        self.plans: list[StepPlan] = []
        self.during: Callable[[], None] = lambda: None
        self._runner = runner

    def run(self, plan: StepPlan) -> StepOutput:
        self.plans.append(plan)
        self.during()
        return self._runner.run(plan)


def made(config: EngineConfig, *, cost: StepCost | None = None, drafter: Drafter | None = None) -> Made:
    clock, log, answers = VirtualClock(), Log(), AnswerRunner(config)
    runner = WatchedRunner(SimulatedRunner(answers, cost or StepCost(), clock))
    engine = Engine(config, runner, clock=clock, sink=log, drafter=drafter)
    answers.pool = engine.memory.pool
    return Made(engine, runner, clock, log)


def check_account(engine: Engine) -> None:
    """Every reference of a block is an entry of a table, and no block is lost."""
    memory, scheduler = engine.memory, engine.scheduler
    pool = memory.pool
    holders = [*scheduler.running, *scheduler.padding]
    named = Counter(block for each in holders for block in each.blocks)
    assert [pool.references(block) for block in range(pool.n_blocks)] == [named[b] for b in range(pool.n_blocks)]
    assert pool.n_used == len(named)
    assert pool.n_used + pool.n_cached + pool.n_free == pool.n_blocks
    on_host = [block for each in scheduler.swapped for block in each.host_blocks]
    assert len(on_host) == len(set(on_host)) == memory.host_pool.n_used
    for each in holders:
        assert len(each.blocks) == memory.blocks_of(each.n_computed)
    assert not any(each.blocks or each.host_blocks or each.n_computed for each in scheduler.waiting)
    assert memory.used_tokens(holders) == _written(engine)


def _written(engine: Engine) -> int:
    """Places of used blocks that hold a token, each once."""
    scheduler, size = engine.scheduler, engine.config.block_tokens
    places = {
        (each.blocks[position // size], position % size)
        for each in [*scheduler.running, *scheduler.padding]
        for position in range(each.n_computed)
    }
    return len(places)


def check_empty(engine: Engine) -> None:
    """Nobody is left, and so no block is used."""
    assert not engine.groups
    assert not engine.scheduler.running + engine.scheduler.waiting + engine.scheduler.swapped + engine.scheduler.padding
    assert engine.memory.pool.n_used == engine.memory.host_pool.n_used == 0
