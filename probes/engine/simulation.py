"""The engine on a virtual clock: steps take the time that a cost model says, so that an hour of load takes seconds.

clock = VirtualClock()
engine = Engine(config, SimulatedRunner(AnswerRunner(config), StepCost(), clock), clock=clock)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from diag.probes.engine.plan import Runner, StepOutput, StepPlan


class VirtualClock:
    """Stands still unless told."""

    def __init__(self, now_ns: int = 0) -> None:
        self.now_ns = now_ns

    def __call__(self) -> int:
        return self.now_ns

    def advance(self, ns: int) -> None:
        """Also back, as real ones have done."""
        self.now_ns += ns


@dataclass(frozen=True)
class StepCost:
    """model = step + prompt tokens · per token + decode rows · per row + context before them · per token of it.

    Of the size of an 8 B model on one GPU: prefill is bound by arithmetic, decode by reading weights (`step_ns`) and
    the KV cache (`context_token_ns`). Steps of decode that are padded pay for all rows.
    """

    step_ns: int = 6_000_000
    prefill_token_ns: int = 40_000
    decode_row_ns: int = 20_000
    context_token_ns: int = 40
    sample_row_ns: int = 2_000

    def model_ns(self, plan: StepPlan) -> int:
        n_prefill = sum(chunk.n_tokens for chunk in plan.chunks if len(chunk.tokens) > 1)
        n_rows = plan.n_tokens - n_prefill if plan.padded_rows is None else plan.padded_rows
        context = sum(chunk.start for chunk in plan.chunks)
        return (
            self.step_ns
            + n_prefill * self.prefill_token_ns
            + n_rows * self.decode_row_ns
            + context * self.context_token_ns
        )

    def sample_ns(self, plan: StepPlan) -> int:
        return self.sample_row_ns * sum(chunk.sampling is not None for chunk in plan.chunks)


class SimulatedRunner:
    """What another runner answers, in the time that the cost model says."""

    def __init__(self, runner: Runner, cost: StepCost, clock: VirtualClock) -> None:
        self._runner = runner
        self._cost = cost
        self._clock = clock

    def run(self, plan: StepPlan) -> StepOutput:
        output = self._runner.run(plan)
        model_ns, sample_ns = self._cost.model_ns(plan), self._cost.sample_ns(plan)
        self._clock.advance(model_ns + sample_ns)
        return replace(output, model_ns=model_ns, sample_ns=sample_ns)
