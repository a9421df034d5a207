"""Exercise 7: an engine whose batches or whose cache are set wrongly."""

from __future__ import annotations

import random
from collections.abc import Mapping

from diag.learn import simulated
from diag.learn.lesson import Incident, Lab
from diag.probes.serve.engine_faults import FAULTS as OF_ENGINES
from diag.probes.serve.engine_faults import EngineFault

FAULTS: Mapping[str, EngineFault] = {
    "static_batches": OF_ENGINES["static batches"],
    "small_budget": OF_ENGINES["small budget"],
    "small_pool": OF_ENGINES["small pool, recompute"],
    "large_blocks": OF_ENGINES["large blocks"],
    "wide_buckets": OF_ENGINES["wide buckets"],
}


def exercise(lab: Lab, draw: random.Random) -> Incident:
    return simulated.incident(lab, draw, FAULTS)
