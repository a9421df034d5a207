"""Builds synthetic runs and judges the reports on them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

from diag.rules import thresholds
from diag.rules.analysis import analyse
from diag.rules.report import Report
from tests.builders.imported import Recorded, imported
from tests.truth import profiles, serving_loads, synthetic
from tests.truth.trial import ANYTHING, Trial, accusation, figure

DOSES = (0.12, 0.2, 0.3, 0.4, 0.5)
"""From just above the highest threshold of the rules on, a tenth."""


Made = Callable[..., Trial]
"""Of a fault's name, a dose and a seed, and whether the run is sick."""


def timelines(seed: int, doses: Sequence[float] = DOSES) -> Iterator[Trial]:
    return _in_pairs(timeline, synthetic.FAULTS, seed, doses)


def kernel_profiles(seed: int, doses: Sequence[float] = DOSES) -> Iterator[Trial]:
    return _in_pairs(kernel_profile, profiles.FAULTS, seed, doses)


def loads(seed: int, doses: Sequence[float] = DOSES) -> Iterator[Trial]:
    return _in_pairs(load, serving_loads.FAULTS, seed, doses)


def _in_pairs(made: Made, faults: Iterable[str], seed: int, doses: Sequence[float]) -> Iterator[Trial]:
    """Each fault in each dose, sick and healthy from the same draw."""
    draw = Random(seed)
    for name in faults:
        for dose in doses:
            of_run = draw.randrange(1 << 31)
            yield from (made(name, dose, of_run, is_sick=is_sick) for is_sick in (True, False))


def timeline(name: str, dose: float, seed: int, *, is_sick: bool) -> Trial:
    fault = synthetic.FAULTS[name]
    made = synthetic.make(fault, dose, seed, is_sick=is_sick)
    report = _reported(made.export)
    tells = fault.tells.format(name=made.name) if is_sick else ANYTHING
    entailed = synthetic.ENTAILS.get(name, ())
    accused = {
        known.rule
        for other, known in synthetic.FAULTS.items()
        if known.rule != fault.rule and other not in entailed
        if accusation(report, known.rule, known.tells.format(name=made.name)) is not None
    }
    reported = accusation(report, fault.rule, tells)
    return Trial(
        name, "synthetic", fault.rule, dose, seed, is_sick, made.injected, reported, accused=tuple(sorted(accused))
    )


def kernel_profile(name: str, dose: float, seed: int, *, is_sick: bool) -> Trial:
    fault = profiles.FAULTS[name]
    made = profiles.make(fault, dose, seed, is_sick=is_sick)
    report = _reported(made.report)
    rules = {known.rule for known in profiles.FAULTS.values()} - {fault.rule}
    accused = {rule for rule in rules if accusation(report, rule, ANYTHING) is not None}
    reported = accusation(report, fault.rule, made.name if is_sick else ANYTHING)
    return Trial(
        name, "synthetic ncu", fault.rule, dose, seed, is_sick, made.injected, reported, accused=tuple(sorted(accused))
    )


def load(name: str, dose: float, seed: int, *, is_sick: bool) -> Trial:
    fault = serving_loads.FAULTS[name]
    made = serving_loads.make(fault, dose, seed, is_sick=is_sick)
    report = _reported(made.log)
    rules = {known.rule for known in serving_loads.FAULTS.values()} - {fault.rule, *fault.entails}
    accused = sorted({finding.rule for finding in report.findings} & rules)
    found = [finding for finding in report.findings if finding.rule == fault.rule]
    sizes = [figure(finding, fault.figure.format(name=made.name)) for finding in found]
    reported = max((size for size in sizes if size is not None), default=None)
    return Trial(
        name, "synthetic load", fault.rule, dose, seed, is_sick, made.injected, reported, accused=tuple(accused),
        threshold=LEAST_OF.get(fault.rule, 0.0), unit=fault.unit,
    )  # fmt: skip


LEAST_OF = {
    rule: thresholds.load()[rule][name]
    for rule, name in (("serving.overload", "shortfall"), ("serving.retries", "share"))
}
"""Of rules whose dose is aimed at: arrivals and failures are drawn, and may come out fewer than meant."""


def _reported(recorded: Recorded) -> Report:
    with tempfile.TemporaryDirectory() as folder, imported(recorded, Path(folder)) as case:
        return analyse(case)
