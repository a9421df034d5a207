"""Builds and judges synthetic trials."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from diag.rules.analysis import analyse
from diag.rules.report import Report
from tests.builders.imported import Recorded, imported
from tests.truth import profiles, synthetic
from tests.truth.trial import Trial, accusation

DOSES = (0.12, 0.2, 0.3, 0.4, 0.5)
"""From just above the highest threshold of the rules on."""


def timelines(seed: int, doses: Sequence[float] = DOSES) -> Iterator[Trial]:
    draw = Random(seed)
    for name, fault in synthetic.FAULTS.items():
        for dose in doses:
            of_run = draw.randrange(1 << 31)
            for is_sick in (True, False):
                made = synthetic.make(fault, dose, of_run, is_sick=is_sick)
                report = _reported(made.export)
                accused = tuple(
                    other
                    for other, known in synthetic.FAULTS.items()
                    if known.rule != fault.rule
                    and other not in synthetic.ENTAILS.get(name, ())
                    and accusation(report, known.rule, known.tells.format(name=made.name)) is not None
                )
                reported = accusation(report, fault.rule, fault.tells.format(name=made.name))
                yield Trial(
                    name, "synthetic", fault.rule, dose, of_run, is_sick, made.injected, reported, accused=accused
                )


def kernel_profiles(seed: int, doses: Sequence[float] = DOSES) -> Iterator[Trial]:
    draw = Random(seed)
    for name, fault in profiles.FAULTS.items():
        for dose in doses:
            of_run = draw.randrange(1 << 31)
            for is_sick in (True, False):
                made = profiles.make(fault, dose, of_run, is_sick=is_sick)
                report = _reported(made.report)
                accused = tuple(
                    other
                    for other, known in profiles.FAULTS.items()
                    if known.rule != fault.rule and accusation(report, known.rule, made.name) is not None
                )
                reported = accusation(report, fault.rule, made.name)
                yield Trial(
                    name, "synthetic ncu", fault.rule, dose, of_run, is_sick, made.injected, reported, accused=accused
                )


def _reported(recorded: Recorded) -> Report:
    with tempfile.TemporaryDirectory() as folder, imported(recorded, Path(folder)) as case:
        return analyse(case)
