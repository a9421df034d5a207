"""What readings of NVML add to a hang: stuck, slow, or blocked on the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest

from diag.model.live import GpuProcess, GpuReading, ProcessReading
from diag.rules.finding import Finding
from tests.builders.live import EPOCH_NS, device, process, watched
from tests.builders.recorded_job import RecordedJob
from tests.rules import hanging
from tests.rules.asking import Ask, only_finding

SPINS: dict[str, Any] = {"power_w": 190.0, "memory_active_pct": 1.0}
COMPUTES: dict[str, Any] = {"power_w": 600.0}
IDLE: dict[str, Any] = {"resident_pct": 0.0, "power_w": 90.0}
BETWEEN: dict[str, Any] = {"power_w": 350.0}


@dataclass(frozen=True)
class Watch:
    """Dumps of three ranks of one host, and the record of a watch of that host: a device for each rank."""

    job: RecordedJob
    does: Sequence[dict[str, Any]]
    seconds: int = 30
    has_ranks: bool = True
    holds_too: int | None = None  # another process on each device

    def write(self, path: Path) -> Path:
        self.job.write(path)
        record = watched(self._gpus, self._processes, seconds=self.seconds)
        record.write(path / "host.diag")
        return path

    def backwards(self) -> Self:
        return self

    def _gpus(self, at: int) -> Sequence[GpuReading]:
        other = [] if self.holds_too is None else [GpuProcess(self.holds_too, 1, "compute")]
        return [
            device(**does, index=rank, uuid=f"GPU-{rank}", processes=[GpuProcess(100 + rank, 1, "compute"), *other])
            for rank, does in enumerate(self.does)
        ]

    def _processes(self, at: int) -> Sequence[ProcessReading]:
        ranks = {"world_size": 3} if self.has_ranks else {}
        return [
            process(at, pid=100 + rank, **ranks, **({"rank": rank} if self.has_ranks else {})) for rank in hanging.ALL
        ]


def claim_of(ask: Ask, rule: str, watch: Watch) -> Finding:
    return only_finding(ask(rule, watch))


def test_the_epochs_of_the_builders_are_one() -> None:
    """Dumps are made at this time, and the watch begins there."""
    assert EPOCH_NS == 1_700_000_000_000_000_000


def test_a_device_that_computes_is_slow_and_those_that_spin_wait(ask: Ask) -> None:
    finding = claim_of(ask, "hang.unfinished", Watch(hanging.stuck_call(), [SPINS, COMPUTES, SPINS]))
    assert "The GPUs of ranks 0, 2 are busy at little power: a kernel spins there" in finding.claim
    assert "The GPU of rank 1 is busy at high power before the call: slow rather than stuck" in finding.claim
    assert finding.subject.ranks == hanging.ALL
    said = {each.label: each.value for each in finding.evidence}
    assert said["GPU 1 of rank 1"] == "kernel resident 100 %, 600 W of 700 W"


def test_an_idle_device_with_nothing_outstanding_is_blocked_on_the_host(ask: Ask) -> None:
    finding = claim_of(ask, "hang.blocked", Watch(hanging.absent_host(), [SPINS, IDLE, SPINS]))
    assert finding.subject.ranks == (1,)
    assert "The GPU of rank 1 is idle, with nothing outstanding: what blocks is on the host." in finding.claim


@pytest.mark.parametrize(
    ("watch", "why"),
    [
        (Watch(hanging.stuck_call(), [SPINS] * 3, seconds=3), "none was read while the call was outstanding"),
        (Watch(hanging.stuck_call(), [BETWEEN] * 3), "readings differ, or lie between waiting and computing"),
        (Watch(hanging.stuck_call(), [SPINS] * 3, has_ranks=False), "no reading shows which device is theirs alone"),
        (Watch(hanging.stuck_call(), [SPINS] * 3, holds_too=7), "no reading shows which device is theirs alone"),
    ],
)
def test_what_is_not_told_is_not_said(ask: Ask, watch: Watch, why: str) -> None:
    finding = claim_of(ask, "hang.unfinished", watch)
    assert f"What their GPUs do cannot be told: {why}" in finding.claim
    assert not any(each.label.startswith("GPU") for each in finding.evidence)


def test_readings_accuse_nobody(ask: Ask) -> None:
    """The same ranks are named as without them, and a healthy job stays clear."""
    without = only_finding(ask("hang.blocked", hanging.absent_host()))
    named = claim_of(ask, "hang.blocked", Watch(hanging.absent_host(), [COMPUTES, IDLE, SPINS]))
    assert (named.subject.ranks, named.title, named.severity) == (
        without.subject.ranks, without.title, without.severity,
    )  # fmt: skip
    assert not any(isinstance(each, Finding) for each in ask("hang.blocked", Watch(hanging.healthy(), [SPINS] * 3)))


def test_without_a_watch_nothing_is_said_of_devices(ask: Ask) -> None:
    assert "GPU" not in only_finding(ask("hang.unfinished", hanging.stuck_call())).claim
