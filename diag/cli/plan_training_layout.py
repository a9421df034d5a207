"""From the options of `diag plan memory --training` to a layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from diag.cli.plan_questions import zero_stage
from diag.errors import UsageError
from diag.model.planned_model import PlannedModel
from diag.model.training_memory import Recompute, TrainingLayout


def check_asked(training: bool, of_training: Mapping[str, bool], of_inference: Mapping[str, bool]) -> None:
    """Raises UsageError for an option of the other question, which would say nothing. True: it was given."""
    wrong = [option for option, given in (of_inference if training else of_training).items() if given]
    if wrong and training:
        raise UsageError(f"{', '.join(wrong)}: of an engine, not of a training step. Leave out --training, or these.")
    if wrong:
        raise UsageError(f"{', '.join(wrong)}: of a training step. Name --training, too.")


def layout(
    model: PlannedModel, *, tp: int, pp: int, dp: int, zero: int, sequence: int | None, micro_batch: int,
    micro_batches: int, recompute: str, flash: bool, sequence_parallel: bool, fp32_gradients: bool, prefetch: int,
) -> TrainingLayout:  # fmt: skip
    """Raises UsageError for what cannot be."""
    if model.shape is not None and pp > model.shape.n_layers:
        raise UsageError(f"--pp {pp}: {model.shape.n_layers} layers do not fill so many stages.")
    return TrainingLayout(
        tp=tp,
        pp=pp,
        dp=dp,
        zero=zero_stage(zero),
        is_sequence_parallel=sequence_parallel,
        micro_batch=micro_batch,
        sequence=sequence or 0,
        micro_batches=micro_batches,
        recompute=_recompute(recompute),
        has_flash_attention=flash,
        gradient_bytes=4 if fp32_gradients else 2,
        prefetched_units=prefetch,
    )


def _recompute(name: str) -> Recompute:
    ways: tuple[Recompute, ...] = get_args(Recompute)
    for way in ways:
        if name == way:
            return way
    raise UsageError(f"--recompute {name!r} is none of {', '.join(ways)}.")
