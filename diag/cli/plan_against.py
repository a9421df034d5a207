"""`--against`: a plan of `diag plan` beside what a case, or files of a run, say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from diag.errors import InputError, UsageError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.input_file import Progress
from diag.model.card_use import CardUse
from diag.model.plan import Answer
from diag.model.plan_against import against
from diag.model.plan_serving import Layout, best_of
from diag.model.plan_speculative import Speculation
from diag.model.planned_model import PlannedModel
from diag.model.training_memory import TrainingLayout, peaks, states
from diag.serving.measured_plan import inference_lines, run_lines, speculation_lines, training_lines
from diag.serving.run import serving_runs

MOST_RUNS = 16
"""Of a sweep, that are compared one by one."""


def of_memory(
    paths: Sequence[Path], model: PlannedModel, use: CardUse, layout: TrainingLayout | None, progress: Progress
) -> list[Answer]:
    with open_inputs(list(paths), ImportOptions(), progress) as case:
        if layout is None:
            lines = inference_lines(case, use.budget(model))
        else:
            lines = training_lines(case, peaks(states(model.parts, model.shape, layout), layout))
    said = [
        "Measured is the card that held most; what was allocated before the capture began may come on top.",
        "The peak of a phase is what was allocated at most while the program was at it.",
    ]
    return against(f"Against {_names(paths)}", lines, said)


def of_serving(paths: Sequence[Path], layouts: Sequence[Layout], progress: Progress) -> list[Answer]:
    """Raises UsageError where no layout fits, for then there is no plan to compare."""
    layout = best_of(layouts) or next((each for each in layouts if each.fits), None)
    if layout is None:
        raise UsageError("No layout fits, so there is no plan to hold against a run: see diag plan memory.")
    with open_inputs(list(paths), ImportOptions(), progress) as case:
        runs = serving_runs(case)
        if not runs:
            raise InputError(f"{_names(paths)} holds no serving run: name a serving log or a result of a benchmark.")
        found = [(run.name, run_lines(run, layout)) for run in runs[:MOST_RUNS]]
        served = sorted({run.model for run in runs if run.model})
    said = [f"The plan is {layout.name}, at the rate that the run completed."]
    if served:
        said.append(f"The plan is of the model served: {', '.join(served)}, as the run calls it.")
    if len(runs) > MOST_RUNS:
        said.append(f"Of {len(runs):,} runs the first {MOST_RUNS} are compared.")
    return [answer for name, lines in found for answer in against(f"Against {name}", lines, said)]


def of_speculation(paths: Sequence[Path], of: Speculation, progress: Progress) -> list[Answer]:
    with open_inputs(list(paths), ImportOptions(), progress) as case:
        lines = speculation_lines(serving_runs(case), of)
    return against(f"Against {_names(paths)}", lines, ["Drafts are taken to have K tokens each."])


def _names(paths: Sequence[Path]) -> str:
    return ", ".join(path.name for path in paths)
