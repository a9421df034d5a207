"""Exercise 10: an engine under an open loop, that has one thing set wrongly or too much to do."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from diag.learn import simulated
from diag.learn.lesson import Incident, Lab
from diag.probes.serve.engine_faults import FAULTS as OF_ENGINES
from diag.probes.serve.engine_faults import RIGHT, EngineFault, Pair
from diag.probes.serve.simulated import Load

HEALTHY_PER_S, CAPACITY_PER_S = 15.0, 30.0
"""Requests that the engine serves with ease, and about the most that it serves."""


def exercise(lab: Lab, draw: random.Random) -> Incident:
    return simulated.incident(lab, draw, FAULTS)


def _overload(draw: random.Random) -> Pair:
    load = Load(n_requests=150, rate_per_s=HEALTHY_PER_S)
    twin = replace(RIGHT, load=load)
    too_many = round(CAPACITY_PER_S * draw.uniform(2, 4), 1)
    return Pair(replace(twin, load=replace(load, rate_per_s=too_many)), twin)


FAULTS: Mapping[str, EngineFault] = {
    "overload": EngineFault("serving.overload", "", _overload),
    "whole_prompts": OF_ENGINES["whole prefill of long prompts"],
    "host_work": OF_ENGINES["host work"],
    "full_pool": OF_ENGINES["full pool"],
    "hitches": OF_ENGINES["hitches of the model"],
}
