"""One run from beginning to end: room for it, its inputs, its correctness, its times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from diag.errors import OutOfMemory, ToolMissing
from diag.model import units
from diag.model.benchmark import Measurement
from diag.probes import machine
from diag.probes.measure import PLANS, Clock, Times, clock_of, timed
from diag.probes.probe import Scale, Workload
from diag.probes.runs import Run

_SIGNS = ("out of memory", "can't allocate memory", "not enough memory")
"""In what PyTorch raises when memory runs out, on a GPU and on hosts."""


def measurements(
    runs: Sequence[Run], scale: Scale, progress: Callable[[str], None], note: Callable[[str], None]
) -> Iterator[Measurement]:
    """Of each run; of several, one for which this machine lacks a tool or memory is noted and passed over.

    Raises ToolMissing and OutOfMemory where that is true of all.
    """
    failed: list[ToolMissing | OutOfMemory] = []
    for run in runs:
        progress(run.name)
        try:
            yield measured(run, scale)
        except (ToolMissing, OutOfMemory) as error:
            failed.append(error)
    if len(failed) == len(runs):
        raise failed[0]
    for each in failed:
        note(str(each))


def measured(run: Run, scale: Scale) -> Measurement:
    """Raises OutOfMemory, and ToolMissing where a variant needs what is not installed."""
    import torch

    clock = clock_of(run.setup.device)
    with opened(run) as workload, torch.set_grad_enabled(True):
        checked = workload.check() if workload.check else None
        times = timed(workload.steps, clock, PLANS[scale], run.name)
        baseline_ns = _baseline_ns(run, workload, clock, scale)
    count = workload.count
    return Measurement(
        probe=run.probe.name,
        variant=run.variant,
        dtype=run.setup.dtype,
        shape=run.setup.shape_text,
        repeats=len(times.device_ns),
        median_ns=times.median_ns,
        p5_ns=times.percentile_ns(0.05),
        p95_ns=times.percentile_ns(0.95),
        end_to_end_ns=Times(times.end_to_end_ns).median_ns if times.end_to_end_ns else None,
        flops=count.flops or None if count else None,
        n_bytes=count.n_bytes if count else None,
        work_formula=count.formula if count else None,
        arithmetic=workload.arithmetic,
        level=workload.level,
        baseline_ns=baseline_ns,
        max_abs_error=checked.max_abs_error if checked else None,
        max_rel_error=checked.max_rel_error if checked else None,
        tolerance=checked.tolerance if checked else None,
        is_disturbed=times.are_disturbed,
        conditions=_conditions(run, workload, times),
    )


def _baseline_ns(run: Run, workload: Workload, clock: Clock, scale: Scale) -> float | None:
    if not workload.baseline:
        return None
    return timed(workload.baseline, clock, PLANS[scale], f"{run.probe.name} by the vendor's library").median_ns


def _conditions(run: Run, workload: Workload, times: Times) -> str:
    sets = len(workload.steps)
    turns = f"{sets} sets of buffers in turn" if sets > 1 else "one set of buffers"
    said = f"{machine.conditions(run.setup.device)}, {turns}"
    if not times.n_disturbed:
        return said
    steps = units.count(times.n_disturbed, "step")
    if times.are_disturbed:
        return f"{said}, disturbed: other programs had a core in {steps}, too many to leave them out"
    return f"{said}, {steps} left out, for other programs had a core"


@contextmanager
def opened(run: Run) -> Iterator[Workload]:
    """The workload of a run, as long as this lasts. Raises OutOfMemory, at best before anything is allocated."""
    what = f"{run.name} ({run.setup.shape_text})"
    machine.check_memory(what, run.probe.needs_bytes(run.setup), run.setup.device)
    try:
        workload = run.probe.make(run.setup, run.variant)
        try:
            yield workload
        finally:
            workload.close()
    except RuntimeError as error:
        if any(sign in str(error).lower() for sign in _SIGNS):
            raise OutOfMemory(f"{what} does not fit into memory. Choose a smaller --scale or --shape.") from error
        raise
