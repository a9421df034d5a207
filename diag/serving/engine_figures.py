"""What an engine's steps, or a server's own log, say of its KV cache and of where the time of a step goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from diag.model.serving_metrics import end_ns, prefix_hit_share
from diag.serving.run import EngineStep, ServingRun

PARTS = ("schedule", "model", "sample", "output")
"""Of a step, in this order."""


@dataclass(frozen=True)
class KvFigures:
    """Shares of the blocks of the pool; means are weighted by time. None: not seen."""

    peak_share: float | None = None  # watermark: most blocks in use after a step
    mean_share: float | None = None
    cached_share: float | None = None  # mean; without a reference, still found by their content
    tail_waste_share: float | None = None  # mean; of the tokens that used blocks have room for
    preemptions: int | None = None
    recomputed_tokens: int | None = None
    swapped_blocks: int | None = None  # to the host
    prefix_hit_share: float | None = None  # of prompt tokens


@dataclass(frozen=True)
class StepFigures:
    """Of steps while requests were measured. Shares are of the time in which the engine had work: its steps, and what
    lies between two of them when requests were left after the first.
    """

    count: int
    mean_sequences: float  # in a step
    mean_tokens: float
    busy_ns: int
    median_ns: float
    schedule_share: float | None
    model_share: float | None
    sample_share: float | None
    output_share: float | None
    between_share: float
    padding_share: float | None  # rows of CUDA graphs' buckets that held no sequence
    accepted_share: float | None  # of drafted tokens


@dataclass(frozen=True)
class EngineFigures:
    kv: KvFigures
    steps: StepFigures | None
    most_waiting: int | None


def engine_figures(run: ServingRun) -> EngineFigures | None:
    """None where nothing is known of an engine."""
    steps, samples, hits = measured_steps(run), run.samples, prefix_hit_share(run.requests)
    if steps:
        return EngineFigures(_kv(run, steps, hits), _steps(steps), max(step.n_waiting for step in steps))
    if samples:
        used = [each.kv_share for each in samples if each.kv_share is not None]
        said = [each.prefix_hit_share for each in samples if each.prefix_hit_share is not None]
        waiting = [each.n_waiting for each in samples if each.n_waiting is not None]
        kv = KvFigures(
            peak_share=max(used, default=None),
            mean_share=sum(used) / len(used) if used else None,
            prefix_hit_share=hits if hits is not None else (said[-1] if said else None),
        )
        return EngineFigures(kv, None, max(waiting, default=None))
    return None if hits is None else EngineFigures(KvFigures(prefix_hit_share=hits), None, None)


def measured_steps(run: ServingRun) -> Sequence[EngineStep]:
    """Those between the first measured request sent and the last ended: warm-up has steps of its own. All, where
    requests have no times.
    """
    starts = [each.sent_ns for each in run.measured if each.sent_ns is not None]
    ends = [end for each in run.measured if (end := end_ns(each)) is not None]
    if not starts or not ends:
        return run.steps
    first_ns, last_ns = min(starts), max(ends)
    return [step for step in run.steps if step.end_ns > first_ns and step.start_ns < last_ns]


def _kv(run: ServingRun, steps: Sequence[EngineStep], hits: float | None) -> KvFigures:
    block_tokens = run.engine.block_tokens if run.engine else None
    return KvFigures(
        peak_share=max((share for step in steps if (share := _used_share(step)) is not None), default=None),
        mean_share=_over_time(steps, _used_share),
        cached_share=_over_time(steps, _cached_share),
        tail_waste_share=_over_time(steps, lambda step: _tail_waste(step, block_tokens)),
        preemptions=sum(step.n_preempted for step in steps),
        recomputed_tokens=sum(step.recomputed_tokens for step in steps),
        swapped_blocks=sum(step.swapped_out_blocks for step in steps),
        prefix_hit_share=hits,
    )


def _used_share(step: EngineStep) -> float | None:
    return _of_pool(step, step.used_blocks)


def _cached_share(step: EngineStep) -> float | None:
    return _of_pool(step, step.cached_blocks)


def _of_pool(step: EngineStep, blocks: int | None) -> float | None:
    pool = (step.used_blocks or 0) + (step.cached_blocks or 0) + (step.free_blocks or 0)
    return None if blocks is None or step.free_blocks is None or not pool else blocks / pool


def _tail_waste(step: EngineStep, block_tokens: int | None) -> float | None:
    if not block_tokens or not step.used_blocks or step.used_tokens is None:
        return None
    return 1 - step.used_tokens / (step.used_blocks * block_tokens)


def _over_time(steps: Sequence[EngineStep], of: Callable[[EngineStep], float | None]) -> float | None:
    """The mean, where a value holds from the end of its step to the end of the next."""
    ends_ns = [step.end_ns for step in steps] + [steps[-1].end_ns + steps[-1].duration_ns]
    weighed = [
        (value, max(later - end, 1))
        for step, (end, later) in zip(steps, pairwise(ends_ns), strict=True)
        if (value := of(step)) is not None
    ]
    whole = sum(weight for _, weight in weighed)
    return sum(value * weight for value, weight in weighed) / whole if whole else None


def _steps(steps: Sequence[EngineStep]) -> StepFigures:
    between_ns = sum(gap_ns(a, b) for a, b in pairwise(steps) if has_work_left(a))
    durations_ns = sorted(step.duration_ns for step in steps)
    busy_ns = sum(durations_ns) + between_ns
    parts = {part: _part(steps, part, busy_ns) for part in PARTS}
    padded = [step for step in steps if step.padded_rows]
    rows = _sum(step.padded_rows for step in padded)
    drafted = sum(step.drafted_tokens for step in steps)
    middle = len(durations_ns) // 2
    return StepFigures(
        count=len(steps),
        mean_sequences=sum(step.n_prefills + step.n_decodes for step in steps) / len(steps),
        mean_tokens=sum(step.prefill_tokens + step.decode_tokens for step in steps) / len(steps),
        busy_ns=busy_ns,
        median_ns=(durations_ns[middle] + durations_ns[~middle]) / 2,
        schedule_share=parts["schedule"],
        model_share=parts["model"],
        sample_share=parts["sample"],
        output_share=parts["output"],
        between_share=between_ns / busy_ns if busy_ns else 0.0,
        padding_share=1 - sum(step.n_decodes for step in padded) / rows if rows else None,
        accepted_share=sum(step.accepted_tokens for step in steps) / drafted if drafted else None,
    )


def gap_ns(step: EngineStep, later: EngineStep) -> int:
    """Between the end of a step and the start of the next; 0 where these overlap."""
    return max(later.start_ns - step.end_ns, 0)


def has_work_left(step: EngineStep) -> bool:
    return step.n_running + step.n_waiting + step.n_swapped > 0


def _part(steps: Sequence[EngineStep], part: str, busy_ns: int) -> float | None:
    times = [getattr(step, f"{part}_ns") for step in steps]
    return None if not busy_ns or all(time is None for time in times) else _sum(times) / busy_ns


def _sum(values: Iterable[int | None]) -> int:
    return sum(value or 0 for value in values)
