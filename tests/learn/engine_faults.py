"""Exercises on the mini-engine: each fault is found in what was logged, and not in its healthy twin."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest

from diag.learn import simulated
from diag.learn.lesson import Incident, Lab
from diag.learn.page import page
from diag.probes.serve.engine_faults import EngineFault
from tests.learn.fired import fired


class SickEngines(Protocol):
    """A module of an exercise."""

    FAULTS: Mapping[str, EngineFault]

    def exercise(self, lab: Lab, draw: random.Random, /) -> Incident: ...


def found(number: int, sick: SickEngines, fault: str, lab: Lab, place: Path, patch: pytest.MonkeyPatch) -> Incident:
    """The incident of this fault of lesson `number`; its healthy twin is logged in `place`."""
    chosen = sick.FAULTS[fault]
    patch.setattr(sick, "FAULTS", {fault: chosen})
    incident = sick.exercise(lab, random.Random(0))
    assert incident.fault == fault
    assert fault in page(number, "en").faults
    assert incident.rule in fired(incident.commands)
    twin = simulated.logged(place, chosen.runs(0, is_sick=False))
    assert incident.rule not in fired([("report", str(twin))])
    return incident
