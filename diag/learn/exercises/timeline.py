"""Exercise 4: a loop that waits for the wrong thing."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from diag.learn.lesson import Figure, Incident, Lab
from diag.learn.timelines import COMPUTING, Timeline

DOSE = 0.85
"""Of the time of a loop that runs, so much is the fault's: less on a busy machine, which makes the rest longer."""
STEPS = {"tiny": 10, "small": 30, "full": 30}

KERNELS_NS = (400_000, 250_000, 350_000)
"""Of a step of the synthetic loop."""
WASTED_NS = 600_000
CALL_NS = 6_000
PIECE_NS, LATE_NS = 30_000, 20_000
"""A kernel that is waited for, and how late the waiting call returns."""
BYTES_PER_NS = {"Pageable": 6, "Pinned": 24}


@dataclass(frozen=True)
class Sick:
    """`name`: of the loop in `diag.probes.faults`, which really runs where there is a GPU, or where it needs none.

    The rules are those that find it with a GPU and, where that is another one, without.
    """

    name: str
    on_gpu: str
    on_cpu: str | None = None
    synthetic: Callable[[Timeline], None] | None = None
    """Its part of a step where there is no GPU, and it needs one."""


def exercise(lab: Lab, draw: random.Random) -> Incident:
    fault = draw.choice(sorted(FAULTS))
    sick, seed = FAULTS[fault], draw.randrange(1 << 31)
    trace = lab.folder / "run.pt.trace.json.gz"
    command = ("report", str(trace))
    rule = sick.on_gpu if lab.device == "cuda" else sick.on_cpu or sick.on_gpu
    if lab.device == "cpu" and sick.synthetic:
        share = draw_timeline(sick.synthetic, trace, STEPS[lab.scale])
        injected = Figure("injected", share, "share", "synthetic: longer than without the fault / length")
        return Incident(fault, [command], rule, (injected,))
    share = run(lab, sick.name, trace, DOSE, seed)
    return Incident(fault, [command], rule, (Figure("injected", share, "share", "time in the fault / time"),))


# ---- loops that run ------------------------------------------------------------------------------------------------


def run(lab: Lab, name: str, trace: Path, dose: float, seed: int) -> float:
    """Records the loop of `diag.probes.faults`, and returns the share of its time that went into the fault."""
    import sys

    from diag.learn.disguise import disguised
    from diag.learn.threads import one_thread
    from diag.probes.faults import loop, table

    fault = table.find(name)
    module = sys.modules[fault.start.__module__]
    lab.progress("running a loop")
    with one_thread(), disguised(module):
        injected = loop.run(
            fault,
            dose=dose,
            seed=seed,
            steps=STEPS[lab.scale],
            device=lab.device,
            around=loop.profiled(trace),
        )
    return injected.share


# ---- loops that are made up ----------------------------------------------------------------------------------------


def draw_timeline(sick: Callable[[Timeline], None], trace: Path, steps: int) -> float:
    """Writes a timeline with the fault in each step. Returns by what share of it that made it longer."""
    line, twin = timeline(steps, sick), timeline(steps)
    line.write(trace)
    return 1 - twin.now_ns / line.now_ns


def timeline(steps: int, sick: Callable[[Timeline], None] | None = None) -> Timeline:
    """Each step copies a batch, runs three kernels on what was copied before, and waits; `sick` is done in between."""
    line = Timeline(CALL_NS)
    for step in range(steps):
        with line.range(f"ProfilerStep#{step}"):
            line.copy(WASTED_NS / 4, round(WASTED_NS / 4 * BYTES_PER_NS["Pinned"]))
            if sick:
                sick(line)
            for number, took_ns in enumerate(KERNELS_NS):
                line.kernel(f"layer_{number}", took_ns)
            line.wait()
    return line


def waits_for_each(line: Timeline) -> None:
    for _ in range(round(WASTED_NS / LATE_NS)):
        line.kernel("piece", PIECE_NS)
        line.wait("cudaStreamSynchronize", LATE_NS)


def copies_pageable(line: Timeline) -> None:
    line.copy(WASTED_NS, WASTED_NS * BYTES_PER_NS["Pageable"], "Pageable")


def copies_in_turn(line: Timeline) -> None:
    line.copy(WASTED_NS, WASTED_NS * BYTES_PER_NS["Pinned"], stream=COMPUTING)


def launches_small_ones(line: Timeline) -> None:
    """The host does as much before each call as in it, and each kernel is over before the next call."""
    for _ in range(round(WASTED_NS / CALL_NS)):
        line.now_ns += CALL_NS
        line.kernel("small", CALL_NS / 3)


FAULTS: Mapping[str, Sick] = {
    "slow_loader": Sick("slow-loader", "idle.gpu", on_cpu="host.data_loader"),
    "host_asleep": Sick("sleep-in-loop", "idle.gpu", on_cpu="host.hot"),
    "text_formatting": Sick("text-formatting", "idle.gpu", on_cpu="host.hot"),
    "sync_every_step": Sick("sync-every-step", "sync.drain", synthetic=waits_for_each),
    "pageable_copies": Sick("pageable-copies", "transfer.pageable", synthetic=copies_pageable),
    "serial_streams": Sick("serial-streams", "streams.serial", synthetic=copies_in_turn),
    "small_kernels": Sick("tiny-kernels", "kernels.tiny", on_cpu="launch.bound", synthetic=launches_small_ones),
}
