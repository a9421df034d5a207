"""Lesson 10: an open loop at several rates on an engine with one place, against M/D/1 and Little's law."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from diag.learn.exercises.serving import exercise
from diag.learn.lesson import Figure, Lab, Lesson, Measured, Question, Scale

if TYPE_CHECKING:
    from diag.model.serving_metrics import ServedRequest
    from diag.probes.serve.log_file import LogFile
    from diag.probes.serve.running import Target
    from diag.probes.serve.workload import Loop

REQUESTS: dict[Scale, int] = {"tiny": 12, "small": 150, "full": 600}
ALONE: dict[Scale, int] = {"tiny": 3, "small": 10, "full": 30}
"""Requests one after the other, by which the service time is known."""
PLACES = 8
"""Of the engine that batches."""
PROMPT_TOKENS, OUTPUT_TOKENS = 32, 16

LOADS = (0.5, 0.8, 1.5)
"""Of capacity."""
PATIENCE = 10
"""Service times that a first token may take."""
SEED = 45
"""Of the first few hundred, the one whose 150 arrivals make those wait that have no noise in their service times most
nearly as long as the formula says: 0.48, 2.09 and 19 %."""

THRESHOLDS = """\
# A first token within {patience} service times.
["serving.goodput"]
ttft_ms = {ttft_ms:.3f}
tpot_ms = 0
"""

Runs = dict[float, Sequence["Stay"]]
"""By the share of capacity at which requests came."""


def measure(lab: Lab) -> Measured:
    from diag.learn.threads import one_thread
    from diag.probes.serve.arrivals import ClosedLoop, OpenLoop
    from diag.probes.serve.log_file import LogFile

    engine, runs, n_alone = _engine(lab, places=1), Runs(), ALONE[lab.scale]
    log, alone = lab.folder / "sweep.jsonl", lab.folder / "alone.jsonl"
    with one_thread(), LogFile(log) as sweep, LogFile(alone) as apart:
        for load in LOADS:
            lab.progress(f"{load:.0%} of capacity")
            service_ns = _service_ns(_sent(engine, ClosedLoop(1), n_alone, apart))
            loop = OpenLoop("poisson", load * 1e9 / service_ns)
            runs[load] = _sent(engine, loop, REQUESTS[lab.scale], sweep)
        lab.progress(f"{PLACES} places")
        one = _sent(engine, ClosedLoop(1), n_alone, apart)
        many = _sent(_engine(lab, PLACES), ClosedLoop(PLACES), n_alone * PLACES, apart)
    limits = _thresholds(lab.folder / "objective.toml", runs)
    gain = _served_per_s(many) / _served_per_s(one)
    return Measured(figures(runs, gain), [("report", str(log), "--thresholds", str(limits))])


def figures(runs: Runs, gain: float) -> list[Figure]:
    """`gain`: of an engine that serves several at once."""
    half, heavy, over = (runs[load] for load in LOADS)
    service_ns = _service_ns(half)
    in_time = statistics.mean(each.wait_ns < PATIENCE * _service_ns(over) for each in over)
    in_flight = sum(each.ended_ns - each.sent_ns for each in heavy) / _duration_ns(heavy)
    waits, of = "mean wait / mean service time", "M/D/1"
    return [
        Figure("service_ns", service_ns, "ns", f"mean of {len(half)} requests, from their place to the end"),
        Figure("capacity_per_s", 1e9 / service_ns, "requests/s", "1 / service time, one place"),
        Figure("busy_at_half", _busy(half), "share", "sum of service times / duration"),
        Figure("wait_at_half", _waits(half), "x", f"{waits}; {of}: 0.5 / (2 x 0.5)"),
        Figure("busy_at_80", _busy(heavy), "share", "sum of service times / duration"),
        Figure("wait_at_80", _waits(heavy), "x", f"{waits}; {of}: 0.8 / (2 x 0.2)"),
        Figure("in_flight", in_flight, "requests", "sum of all stays / duration; Little: rate x mean stay"),
        Figure("in_time", in_time, "share", f"waits below {PATIENCE} service times / requests, at 150 %"),
        Figure("last_wait", over[-1].wait_ns / _service_ns(over), "x", "wait of the last one / service time"),
        Figure("gain", gain, "x", f"requests/s with {PLACES} places / with one, closed loops"),
    ]


def _engine(lab: Lab, places: int) -> Target:
    from diag.probes.engine.config import EngineConfig
    from diag.probes.serve.engine_settings import EngineSettings, ModelSettings
    from diag.probes.serve.mini_engine import mini_engine

    config = EngineConfig(max_sequences=places, prefix_cache="none")
    return mini_engine(EngineSettings(config, ModelSettings(device=lab.device)), "tiny")


def _sent(engine: Target, loop: Loop, n: int, log: LogFile) -> list[Stay]:
    """What was measured, in the order of sending."""
    from diag.model.token_lengths import Constant
    from diag.probes.serve.load import Limits
    from diag.probes.serve.running import Planned, run
    from diag.probes.serve.workload import Workload

    prompt, output = Constant(PROMPT_TOKENS), Constant(OUTPUT_TOKENS)
    workload = Workload(loop, n, prompt, output, n_warmup=2, seed=SEED)
    ran = run(Planned(workload, Limits()), engine, log, lambda _: None)
    return [Stay.of(each) for each in ran.requests if each.phase == "measured"]


def _thresholds(file: Path, runs: Runs) -> Path:
    ttft_ms = PATIENCE * _service_ns(runs[LOADS[-1]]) / 1e6
    file.write_text(THRESHOLDS.format(patience=PATIENCE, ttft_ms=ttft_ms), "utf-8")
    return file


# ---- of requests ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stay:
    """Of one request. It waits for a place, and then it is served."""

    sent_ns: int
    placed_ns: int
    ended_ns: int

    @classmethod
    def of(cls, request: ServedRequest) -> Stay:
        assert request.sent_ns is not None and request.scheduled_ns is not None and request.ended_ns is not None  # noqa: PT018
        return cls(request.sent_ns, request.scheduled_ns, request.ended_ns)

    @property
    def wait_ns(self) -> int:
        return self.placed_ns - self.sent_ns


def _service_ns(of: Sequence[Stay]) -> float:
    return statistics.mean(each.ended_ns - each.placed_ns for each in of)


def _waits(of: Sequence[Stay]) -> float:
    return statistics.mean(each.wait_ns for each in of) / _service_ns(of)


def _busy(of: Sequence[Stay]) -> float:
    return len(of) * _service_ns(of) / _duration_ns(of)


def _duration_ns(of: Sequence[Stay]) -> int:
    """From the first that was sent until all had ended."""
    return max(each.ended_ns for each in of) - min(each.sent_ns for each in of)


def _served_per_s(of: Sequence[Stay]) -> float:
    return 1e9 * len(of) / _duration_ns(of)


LESSON = Lesson(
    number=10,
    slug="serving",
    questions=(
        Question("wait_at_half", "x", close=1.5),
        Question("wait_at_80", "x", close=1.5),
        Question("in_flight", "requests", close=1.5),
        Question("in_time", "%", close=1.5),
    ),
    measure=measure,
    exercise=exercise,
)
