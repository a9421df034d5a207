"""Reference workloads for lessons: measured here, and written down as a benchmark that `diag report` reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from diag.ingest import calibrations
from diag.ingest.benchmark import load
from diag.learn.lesson import Lab
from diag.model.benchmark import Benchmark, Machine, MeasuredCeiling, Measurement
from diag.probes.catalogue import named
from diag.probes.machine import cache_bytes, machine_of
from diag.probes.measured import measured
from diag.probes.probe import Shape
from diag.probes.runs import Run, Wish, runs_of


def run_of(lab: Lab, probe: str, variant: str, shape: Shape | None = None) -> Run:
    """One probe in one variant, in FP32 on the device of the lab."""
    wish = Wish(lab.device, lab.scale, "fp32", variant, shape or {})
    (run,) = runs_of(named([probe]), wish, cache_bytes(lab.device), lab.progress)
    return run


def probed(lab: Lab, run: Run) -> Measurement:
    lab.progress(run.name)
    return measured(run, lab.scale)


TRIES = 3


def probed_alone(lab: Lab, run: Run) -> Measurement:
    """Measured again, a few times at most, as long as other programs had the cores."""
    for _ in range(TRIES):
        one = probed(lab, run)
        if not one.is_disturbed:
            break
    return one


CEILINGS = "ceilings.benchmark.json"
"""Of a lab: a lesson that asks twice for its ceilings gets the same."""


def ceilings_of(lab: Lab) -> tuple[Machine, Sequence[MeasuredCeiling]]:
    """Those that the reader has calibrated on this machine, else a quick calibration, which only the lab keeps."""
    machine = machine_of(lab.device)
    for benchmark in calibrations.kept(lambda error: lab.progress(str(error))):
        if benchmark.machine == machine and benchmark.ceilings:
            return machine, benchmark.ceilings
    return machine, _of_this_lab(lab).ceilings


def _of_this_lab(lab: Lab) -> Benchmark:
    from diag.probes.calibration.calibrate import calibrate

    file = lab.folder / CEILINGS
    if not file.exists():
        calibrations.write(calibrate(lab.device, quick=True, progress=lab.progress), file)
    return load(file)


def written(lab: Lab, benchmark: Benchmark, name: str = "probes.benchmark.json") -> Path:
    from diag import __version__

    file = lab.folder / name
    calibrations.write(replace(benchmark, diag_version=__version__), file)
    return file
