"""Exercise 6: an attention that gives wrong results, for some shapes or for all."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from diag.learn.attention import Online
from diag.learn.lesson import Figure, Incident, Lab
from diag.model.benchmark import Benchmark, Measurement

if TYPE_CHECKING:
    from diag.probes.probe import Shape

TILE = 64

SHAPES: Sequence[Shape] = (
    {"batch": 1, "heads": 2, "N": TILE, "D": 64},
    {"batch": 1, "heads": 2, "N": TILE, "D": 1},
    {"batch": 1, "heads": 2, "N": 4 * TILE, "D": 64},
    {"batch": 1, "heads": 2, "N": 3 * TILE + TILE // 4, "D": 64},
)
"""One tile; one tile of heads of one number; several tiles; several, of which the last is short."""

VARIANT = "given"

HEALTHY = Online(TILE)


def exercise(lab: Lab, draw: random.Random) -> Incident:
    from diag.learn.probing import written
    from diag.probes.machine import machine_of

    fault = draw.choice(sorted(FAULTS))
    sick, injected = FAULTS[fault]()
    file = written(lab, Benchmark(machine_of(lab.device), measurements=measured(lab, sick)))
    return Incident(fault, [("report", str(file))], "probe.wrong", (injected,))


def measured(lab: Lab, way: Online) -> Sequence[Measurement]:
    """At all shapes. Rates are left out: operators of a tile are too small for them to mean anything."""
    from diag.learn.lessons.flash_attention import attention_run
    from diag.learn.probing import probed

    runs = [attention_run(lab, VARIANT, way, shape) for shape in SHAPES]
    return [replace(probed(replace(lab, scale="tiny"), run), level=None, arithmetic=None) for run in runs]


Sick = tuple[Online, Figure]


def no_rescale() -> Sick:
    sick = replace(HEALTHY, rescaled=lambda total, _: total)
    return sick, Figure("injected", 1, "x", "factor of the running sum, in the place of exp(m_old - m_new)")


def no_scale() -> Sick:
    return replace(HEALTHY, scale=lambda _: 1.0), Figure("injected", 1, "x", "factor of scores, in the place of D^-1/2")


def one_ahead() -> Sick:
    return replace(HEALTHY, ahead=1), Figure("injected", 1, "tokens", "behind its own, that each one sees")


def short_tile() -> Sick:
    left_out = Figure("injected", TILE // 4, "tokens", "N mod tile, of the last shape: keys that are left out")
    return replace(HEALTHY, seen=lambda n, tile: n // tile * tile), left_out


def narrow_sums() -> Sick:
    def in_bfloat16(total: Any) -> Any:
        return total.bfloat16().float()

    return replace(HEALTHY, stored=in_bfloat16), Figure("injected", 2.0**-9, "ratio", "roundoff of BF16")


FAULTS: Mapping[str, Callable[[], Sick]] = {
    each.__name__: each for each in (no_rescale, no_scale, one_ahead, short_tile, narrow_sums)
}
