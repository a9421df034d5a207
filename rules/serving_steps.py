"""What rules about the steps of an engine share: whom they answer for, what must be known, the rows behind a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from itertools import groupby

from diag.rules.engine import run_subject, serving_rule
from diag.rules.finding import Answer, CannotTell, Subject
from diag.rules.thresholds import Limits
from diag.serving.run import ServingRun
from diag.serving.steps import Steps

StepsDecision = Callable[[Steps, Limits], Iterator[Answer]]

FEWEST_STEPS = 10
"""As with operations on a timeline: shares of fewer say little."""
NO_STEPS = (
    "only the engine itself knows its steps: serve with diag's own (diag probe serve), or let yours write "
    "diag.serving-log/1"
)


def steps_rule(rule_id: str, *, needs: tuple[str, ...] = ()) -> Callable[[StepsDecision], StepsDecision]:
    """Registers a rule that answers for each run by its engine's steps; `needs` are columns that must be known."""

    def register(decide: StepsDecision) -> StepsDecision:
        @wraps(decide)
        def decide_all(runs: Sequence[ServingRun], limits: Limits) -> Iterator[Answer]:
            for source, of in groupby(runs, lambda run: run.source_id):
                with_steps = [steps for run in of if len(steps := Steps.of(run))]
                if not with_steps:
                    yield CannotTell(Subject(source), NO_STEPS)
                for steps in with_steps:
                    if because := why_not(steps, needs):
                        yield CannotTell(subject_of(steps), because)
                    else:
                        yield from decide(steps, limits)

        serving_rule(rule_id)(decide_all)
        return decide

    return register


def why_not(steps: Steps, needs: tuple[str, ...]) -> str | None:
    """Why these steps cannot be judged; None when they can."""
    if len(steps) < FEWEST_STEPS:
        return f"too few steps for shares ({len(steps)}; {FEWEST_STEPS} are needed)"
    lacking = next((name for name in needs if not steps.tells(name)), None)
    return None if lacking is None else f"the steps do not say their {lacking}"


def subject_of(steps: Steps) -> Subject:
    return replace(run_subject(steps.run), window=steps.window)


def step_rows(steps: Steps, *columns: str, where: str = "1") -> str:
    """SQL of the steps that were judged; `where` is this program's own words."""
    start_ns, end_ns = steps.window
    return (
        f"SELECT number, start_ns, end_ns, {', '.join(columns)} FROM engine_step WHERE run_id = {steps.run.id:d} "
        f"AND start_ns >= {start_ns:d} AND end_ns <= {end_ns:d} AND {where} ORDER BY start_ns"
    )
