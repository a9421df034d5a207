"""Stalls of token streams: times between outputs far above the usual, and the engine's steps that they span."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from diag.model.serving_metrics import Nanoseconds
from diag.serving.run import ServingRun
from diag.serving.steps import Chosen, Steps
from diag.timeline.intervals import Intervals

Cause = Literal["prefill", "host", "decode", "left_out", "outside"]
CAUSES: tuple[Cause, ...] = get_args(Cause)


@dataclass(frozen=True, eq=False)
class Stalls:
    """Of the times between outputs (ITL) of completed, measured requests, those above factor x median.

    Arrays are (stalls,): when the output before came, and when the one that was late.
    """

    median_ns: float
    n_times: int  # between outputs, all of them
    start_ns: Nanoseconds
    end_ns: Nanoseconds

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def excess_ns(self) -> NDArray[np.float64]:
        return (self.end_ns - self.start_ns).astype(np.float64) - self.median_ns

    def of_at_least(self, took_ns: int) -> Stalls:
        long = self.end_ns - self.start_ns >= took_ns
        return Stalls(self.median_ns, self.n_times, self.start_ns[long], self.end_ns[long])

    @property
    def extent(self) -> Intervals:
        """While at least one stream was waited for longer than the median."""
        return Intervals.union_of(self.start_ns + round(self.median_ns), self.end_ns)


def stalls_of(run: ServingRun, factor: float) -> Stalls:
    """Requests without times count for nothing; the median of none is 0."""
    starts, ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for request in run.completed:
        if request.first_token_ns is not None and len(request.itl_ns):
            times = request.first_token_ns + np.concatenate(([0], np.cumsum(request.itl_ns)))
            starts.append(times[:-1])
            ends.append(times[1:])
    start_ns, end_ns = np.concatenate(starts), np.concatenate(ends)
    took_ns = end_ns - start_ns
    median_ns = float(np.median(took_ns)) if len(took_ns) else 0.0
    long = took_ns > factor * median_ns
    return Stalls(median_ns, len(took_ns), start_ns[long], end_ns[long])


@dataclass(frozen=True, eq=False)
class LaidOnSteps:
    """What each stall is made of, by the steps from that which made one output to that which made the next.

    prefill   the model ran longer than in a usual step of decode alone, in steps that computed prompts too, up to twice
              what so many tokens usually take; and all of a step in which nothing decoded
    host      scheduling, sampling, output, what of a step is nobody's, and the time before it, beyond the usual
    decode    the model ran longer than usual, and prompts do not explain it
    left_out  whole usual steps in which others decoded, and no output of this request came
    outside   what is left: time of which the engine knows nothing
    """

    parts_ns: Mapping[Cause, NDArray[np.float64]]  # each (stalls,)
    spanned: Chosen  # (steps,): whether any stall spans it

    @property
    def total_ns(self) -> Mapping[Cause, float]:
        return {cause: float(parts.sum()) for cause, parts in self.parts_ns.items()}


def laid_on_steps(stalls: Stalls, steps: Steps) -> LaidOnSteps:
    """Needs a step."""
    first, last = _step_that_made(steps, stalls.start_ns) + 1, _step_that_made(steps, stalls.end_ns) + 1
    model_ns, host_ns = _model_and_host(steps)
    decodes, prefills = steps["n_decodes"] > 0, steps["prefill_tokens"] > 0
    usual = steps.decodes_alone if steps.decodes_alone.any() else np.ones(len(steps), bool)
    usual_model, usual_host = float(np.median(model_ns[usual])), float(np.median(host_ns[usual]))
    more_model, more_host = np.maximum(model_ns - usual_model, 0.0), np.maximum(host_ns - usual_host, 0.0)
    only_prefill = prefills & ~decodes
    for_prompts = np.minimum(more_model, _most_for_prompts(more_model, steps["prefill_tokens"]))
    each_step: Mapping[Cause, NDArray[np.float64]] = {
        "prefill": np.where(only_prefill, model_ns + host_ns, for_prompts),
        "host": np.where(only_prefill, 0.0, more_host),
        "decode": np.where(only_prefill, 0.0, more_model - for_prompts),
    }
    parts: dict[Cause, NDArray[np.float64]] = {
        cause: _sums_between(values, first, last) for cause, values in each_step.items()
    }
    missed = np.maximum(_sums_between(decodes.astype(float), first, last) - 1, 0.0)
    parts["left_out"] = missed * (usual_model + usual_host)
    parts["outside"] = np.maximum(stalls.excess_ns - sum(parts.values()), 0.0)
    return LaidOnSteps(parts, _spanned(len(steps), first, last))


def _most_for_prompts(more_model_ns: NDArray[np.float64], tokens: Nanoseconds) -> NDArray[np.float64]:
    """(steps,): twice what so many tokens of prompts take at the median; attention makes later ones dearer."""
    some = tokens > 0
    each_ns = float(np.median(more_model_ns[some] / tokens[some])) if some.any() else 0.0
    return 2 * each_ns * tokens.astype(np.float64)


def _step_that_made(steps: Steps, times_ns: Nanoseconds) -> NDArray[np.intp]:
    """For each time, the last step whose tokens were there by then; -1 for none."""
    made_ns = np.maximum.accumulate(steps.end_ns - steps["output_ns"])
    return np.searchsorted(made_ns, times_ns, side="right") - 1


def _model_and_host(steps: Steps) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each step and the time before it; where the model's time is not known, the whole step is the model's."""
    model_ns = np.where(steps.has("model_ns"), steps["model_ns"], steps.duration_ns).astype(float)
    return model_ns, steps.duration_ns - model_ns + steps.between_ns


def _sums_between(values: NDArray[np.float64], first: NDArray[np.intp], stop: NDArray[np.intp]) -> NDArray[np.float64]:
    before = np.concatenate(([0.0], np.cumsum(values)))
    return np.asarray(before[np.maximum(stop, first)] - before[first], np.float64)


def _spanned(n_steps: int, first: NDArray[np.intp], stop: NDArray[np.intp]) -> Chosen:
    """(n_steps,): whether it lies in any of the ranges [first, stop)."""
    edges = np.zeros(n_steps + 1, np.int64)
    np.add.at(edges, first, 1)
    np.add.at(edges, np.maximum(stop, first), -1)
    return np.asarray(np.cumsum(edges)[:-1] > 0)
