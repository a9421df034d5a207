"""The engine under load on a virtual clock: what it wrote down, as a run of a serving log.

The same seed and load give the same requests, whatever the engine is set to: a fault and its twin differ in that alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import msgspec

from diag.model.serving_log import LoadConditions, RequestRecord, StepRecord
from diag.probes.engine.answers import VOCABULARY, AnswerRunner
from diag.probes.engine.config import EngineConfig
from diag.probes.engine.drafters import Drafter
from diag.probes.engine.engine import Engine
from diag.probes.engine.journal import engine_conditions
from diag.probes.engine.plan import StepOutput, StepPlan
from diag.probes.engine.scheduler import Step
from diag.probes.engine.sequence import Request, SamplingParams, SequenceGroup
from diag.probes.engine.simulation import SimulatedRunner, StepCost, VirtualClock
from diag.probes.serve.arrivals import NS_PER_S
from diag.probes.serve.logged import LoggedRun

Range = tuple[int, int]
"""From, and up to and with."""


@dataclass(frozen=True)
class Load:
    n_requests: int = 60
    rate_per_s: float | None = 15.0  # Poisson; None: all at once
    prompts: Range = (100, 400)  # tokens, uniform
    outputs: Range = (40, 120)
    long_prompts: Range = (2_000, 3_000)
    long_share: float = 0.0  # of the requests

    def requests(self, seed: int) -> Iterator[tuple[int, Request]]:
        """With the times in ns at which they are sent."""
        draw, now = Random(seed), 0.0
        for number in range(self.n_requests):
            now += draw.expovariate(self.rate_per_s) * NS_PER_S if self.rate_per_s else 0.0
            is_long = draw.random() < self.long_share
            n_prompt, n_output = (
                draw.randint(*(self.long_prompts if is_long else self.prompts)),
                draw.randint(*self.outputs),
            )
            prompt = tuple(draw.randrange(VOCABULARY) for _ in range(n_prompt))
            yield round(now), Request(f"r{number}", prompt, SamplingParams(max_tokens=n_output))


@dataclass(frozen=True)
class Host:
    """What the host does for a step; and what it does now and then between two, every `pause_every` of them."""

    schedule_ns: int = 100_000
    output_ns: int = 50_000
    between_ns: int = 20_000
    pause_ns: int = 0
    pause_every: int = 50

    def after_step(self, number: int) -> int:
        return self.between_ns + (self.pause_ns if number % self.pause_every == self.pause_every - 1 else 0)


@dataclass(frozen=True)
class Hitch(StepCost):
    """The model itself takes longer now and then, as where a collective waits for another rank."""

    hitch_ns: int = 0
    hitch_every: int = 50

    def model_ns(self, plan: StepPlan) -> int:
        is_slow = plan.number % self.hitch_every == self.hitch_every - 1
        return super().model_ns(plan) + (self.hitch_ns if is_slow else 0)


@dataclass(frozen=True)
class Served:
    """What a run is made of."""

    load: Load = field(default_factory=Load)
    config: EngineConfig = field(
        default_factory=lambda: EngineConfig(n_blocks=4_000, max_sequences=32, max_step_tokens=256, prefix_cache="none")
    )
    cost: StepCost = field(default_factory=StepCost)
    host: Host = field(default_factory=Host)
    drafter: Drafter | None = None

    def run(self, seed: int, label: str | None = None) -> LoggedRun:
        clock, records = VirtualClock(), list[RequestRecord | StepRecord]()
        runner = SimulatedRunner(AnswerRunner(self.config), self.cost, clock)
        engine = _TimedEngine(self.config, runner, clock=clock, sink=records.append, drafter=self.drafter)
        engine.host, engine.time = self.host, clock
        sent = self._drive(engine, clock, seed)
        requests = [
            msgspec.structs.replace(each, intended_ns=sent[each.id], sent_ns=sent[each.id])
            for each in records
            if isinstance(each, RequestRecord)
        ]
        return LoggedRun(
            requests,
            [each for each in records if isinstance(each, StepRecord)],
            LoadConditions(
                arrival="poisson" if self.load.rate_per_s else "at_once", rate_per_s=self.load.rate_per_s, seed=seed
            ),
            engine_conditions(self.config),
            backend="mini-engine",
            label=label,
        )

    def _drive(self, engine: Engine, clock: VirtualClock, seed: int) -> dict[str, int]:
        """When each request was sent; the engine takes it between two steps."""
        coming, sent = deque(self.load.requests(seed)), dict[str, int]()
        n_steps = 0
        while coming or engine.has_work:
            if not engine.has_work:
                clock.advance(max(0, coming[0][0] - clock()))
            while coming and coming[0][0] <= clock():
                at_ns, request = coming.popleft()
                sent[request.id] = at_ns
                engine.add(request)
            engine.step()
            clock.advance(self.host.after_step(n_steps))
            n_steps += 1
        return sent


class _TimedEngine(Engine):
    """Its host takes time, too."""

    host: Host
    time: VirtualClock

    def _expire(self, now_ns: int) -> None:
        super()._expire(now_ns)
        self.time.advance(self.host.schedule_ns)

    def _take(self, step: Step, output: StepOutput, time_ns: int) -> list[SequenceGroup]:
        changed = super()._take(step, output, time_ns)
        self.time.advance(self.host.output_ns)
        return changed
