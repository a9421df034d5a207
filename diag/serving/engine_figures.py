"""What an engine's steps, or a server's own log, say of its KV cache and of where the time of a step goes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diag.model.serving_metrics import prefix_hit_share
from diag.serving.kv_blocks import empty_share, fullest, mean_share
from diag.serving.padding import padded_steps
from diag.serving.run import ServingRun
from diag.serving.steps import Steps

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
    padding_share: float | None  # of the rows of padded steps, those that held no token
    accepted_share: float | None  # of drafted tokens


@dataclass(frozen=True)
class EngineFigures:
    kv: KvFigures
    steps: StepFigures | None
    most_waiting: int | None


def engine_figures(run: ServingRun) -> EngineFigures | None:
    """None where nothing is known of an engine."""
    steps, samples, hits = Steps.of(run), run.samples, prefix_hit_share(run.requests)
    if len(steps):
        return EngineFigures(_kv(steps, hits), _steps(steps), int(steps["n_waiting"].max()))
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


def _kv(steps: Steps, hits: float | None) -> KvFigures:
    return KvFigures(
        peak_share=fullest(steps),
        mean_share=mean_share(steps, "used_blocks"),
        cached_share=mean_share(steps, "cached_blocks"),
        tail_waste_share=empty_share(steps),
        preemptions=_total(steps, "n_preempted"),
        recomputed_tokens=_total(steps, "recomputed_tokens"),
        swapped_blocks=_total(steps, "swapped_out_blocks"),
        prefix_hit_share=hits,
    )


def _steps(steps: Steps) -> StepFigures:
    between_ns = int(steps.between_ns.sum())
    busy_ns = int(steps.duration_ns.sum()) + between_ns
    parts = {part: _part(steps, part, busy_ns) for part in PARTS}
    drafted = _total(steps, "drafted_tokens")
    return StepFigures(
        count=len(steps),
        mean_sequences=(_total(steps, "n_prefills") + _total(steps, "n_decodes")) / len(steps),
        mean_tokens=(_total(steps, "prefill_tokens") + _total(steps, "decode_tokens")) / len(steps),
        busy_ns=busy_ns,
        median_ns=float(np.median(steps.duration_ns)),
        schedule_share=parts["schedule"],
        model_share=parts["model"],
        sample_share=parts["sample"],
        output_share=parts["output"],
        between_share=between_ns / busy_ns,
        padding_share=padded_steps(steps).empty_share,
        accepted_share=_total(steps, "accepted_tokens") / drafted if drafted else None,
    )


def _part(steps: Steps, part: str, busy_ns: int) -> float | None:
    name = f"{part}_ns"
    return _total(steps, name) / busy_ns if steps.has(name).any() else None


def _total(steps: Steps, name: str) -> int:
    return int(steps[name].sum())
