"""From the options of `diag plan serving` to a load, and to the layouts that it is put on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from diag.cli.plan_questions import parsed
from diag.errors import InputError, UsageError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.input_file import Progress
from diag.model import units, written
from diag.model.card_use import tensor_parallel_sizes
from diag.model.deployment import Objectives
from diag.model.planned_model import PlannedModel
from diag.model.planned_requests import LONGEST, Requests
from diag.model.planned_requests import lengths as parsed_lengths
from diag.serving.run import serving_runs


def stay_ns(rate: float | None, stay: str | None) -> float | None:
    if stay is not None and rate is None:
        raise UsageError("How many are in flight needs both --rate and --stay.")
    return parsed("--stay", stay, written.time_ns)


def requests(prompt: str, output: str, measured: Sequence[Path] | None, seed: int, progress: Progress) -> Requests:
    """By distributions, or as the completed requests of all runs in a case were."""
    if not measured:
        return Requests.drawn(parsed_lengths("--prompt", prompt), parsed_lengths("--output", output), seed)
    with open_inputs(list(measured), ImportOptions(), progress) as case:
        done = [each for run in serving_runs(case) for each in run.completed]
    pairs = [
        (each.prompt_tokens, each.output_tokens)
        for each in done
        if each.prompt_tokens is not None and each.output_tokens is not None
    ]
    of = Requests.measured([pair for pair in pairs if max(pair) <= LONGEST], "")
    names = ", ".join(map(str, measured))
    if not len(of):
        raise InputError(f"{names}: no completed request says how long it was. Name --prompt and --output instead.")
    return Requests(of.prompt_tokens, of.output_tokens, f"Lengths of {units.count(len(of), 'request')} of {names}.")


def objectives(ttft: str | None, tpot: str | None) -> Objectives:
    return Objectives(parsed("--ttft", ttft, written.time_ns), parsed("--tpot", tpot, written.time_ns))


def group_sizes(model: PlannedModel, gpus: int, tp: int | None, domain: int) -> list[int]:
    """Largest first: those of a domain that divide the cards and the heads, or the one that was asked for."""
    if tp is not None:
        if gpus % tp:
            raise UsageError(f"--tp {tp} does not divide --gpus {gpus}: some cards would be left over.")
        return [tp]
    return [size for size in reversed(tensor_parallel_sizes(model, min(gpus, domain))) if gpus % size == 0]
