"""Exercise 1: a benchmark whose figure cannot be true."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from diag.learn.lesson import Figure, Incident, Lab
from diag.model.benchmark import Benchmark, Measurement

if TYPE_CHECKING:
    from diag.probes.probe import Workload
    from diag.probes.runs import Run

COUNTED = 3
"""Times that the bytes are counted which move once."""

CACHED_SETS = 4
"""Sets of vectors that would fill the second level of the caches of all cores; two of them are used, in turn."""


def exercise(lab: Lab, draw: random.Random) -> Incident:
    from diag.learn.probing import ceilings_of, written

    fault = draw.choice(sorted(FAULTS.keys() - ({in_cache.__name__} if lab.device == "cuda" else set())))
    machine, ceilings = ceilings_of(lab)
    measurement, rule, injected = FAULTS[fault](lab)
    file = written(lab, Benchmark(machine, ceilings, (measurement,)))
    return Incident(fault, [("report", str(file))], rule, (injected,))


Sick = tuple[Measurement, str, Figure]


def counted_twice(lab: Lab) -> Sick:
    one = _measured(lab)
    assert one.n_bytes is not None
    claimed = replace(one, n_bytes=COUNTED * one.n_bytes, work_formula=f"FLOPs: n; bytes: {COUNTED} x (3 x n x 4)")
    return claimed, "probe.above_roof", Figure("injected", COUNTED, "x", "bytes counted / bytes that move")


def in_cache(lab: Lab) -> Sick:
    """Not on a GPU: a launch takes longer than what its cache holds."""
    from diag.probes.calibration import cpu, host

    per_element = 3 * 4
    n = cpu.threads() * host.caches().l2_bytes // CACHED_SETS // per_element
    one = _measured(lab, n=n, cache_bytes=1)
    assert one.n_bytes is not None
    return one, "probe.above_roof", Figure("injected", one.n_bytes, "bytes", "3 x n x 4, of two sets in turn")


def half_done(lab: Lab) -> Sick:
    one = _measured(lab, make=_half_of_it)
    return one, "probe.wrong", Figure("injected", 0.5, "share", "elements that are never written / n")


def narrow_sum(lab: Lab) -> Sick:
    one = _measured(lab, make=_in_bfloat16)
    return one, "probe.wrong", Figure("injected", 2.0**-8, "ratio", "unit roundoff of BF16, where FP32 has 2^-24")


FAULTS: Mapping[str, Callable[[Lab], Sick]] = {
    each.__name__: each for each in (counted_twice, in_cache, half_done, narrow_sum)
}


def _measured(
    lab: Lab,
    *,
    n: int | None = None,
    cache_bytes: int | None = None,
    make: Callable[[Any, str], Workload] | None = None,
) -> Measurement:
    """A vector add, changed in one thing."""
    from diag.learn.probing import probed

    run = _vector_add(lab, n)
    if cache_bytes is not None:
        run = replace(run, setup=replace(run.setup, cache_bytes=cache_bytes))
    if make is not None:
        run = replace(run, probe=replace(run.probe, make=make))
    return probed(lab, run)


def _vector_add(lab: Lab, n: int | None) -> Run:
    from diag.learn.probing import run_of

    variant = "out" if lab.device == "cpu" else "vectorised"
    return run_of(lab, "vector_add", variant, {"n": n} if n else None)


def _half_of_it(setup: Any, _: str) -> Workload:
    """Only the first half is summed; the second is what the memory held."""
    return _summed(setup, lambda x, y, z: z[: len(z) // 2].copy_(x[: len(x) // 2]).add_(y[: len(y) // 2]))


def _in_bfloat16(setup: Any, _: str) -> Workload:
    """FP32 goes in and comes out, and in between it is BF16."""
    return _summed(setup, lambda x, y, z: z.copy_(x.bfloat16() + y.bfloat16()))


def _summed(setup: Any, step: Callable[[Any, Any, Any], object]) -> Workload:
    import torch

    from diag.probes import tensors
    from diag.probes.probe import Checked, Workload
    from diag.probes.vector_add import count

    x, y = tensors.random(setup, (setup["n"],), (setup["n"],))
    z = torch.zeros_like(x)

    def check() -> Checked:
        step(x, y, z)
        return tensors.checked(setup, z, x.double() + y.double(), 1)

    return Workload(
        steps=tensors.rotated(setup, (x, y, z), step),
        count=count(setup),
        arithmetic=tensors.VECTOR,
        level="dram",
        check=check,
    )
