"""Where ranks stand that wait for one that does not come."""

from __future__ import annotations

from diag.probes.faults.hang.fault import Place
from diag.probes.faults.hang.member import WRONG_STEP

REDUCES: frozenset[Place] = frozenset({(WRONG_STEP, "reduce gradients")})
LOADS: frozenset[Place] = frozenset({(WRONG_STEP, "load batch")})
