"""Devices that their power limit holds back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from diag.model.live import GpuProcess
from diag.rules.finding import Clear
from tests.builders.live import Watched, device, process, untold_device, watched
from tests.builders.rank_job import MS, RankJob
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

CAPPED: dict[str, Any] = {
    "clock_reasons": ["sw_power_cap"], "sm_clock_hz": 1_400_000_000, "power_w": 500.0, "power_limit_w": 500.0,
}  # fmt: skip
FREE: dict[str, Any] = {}


def ranks(*does: dict[str, Any]) -> Watched:
    """A host with a device for each rank."""
    return watched(
        lambda _: [
            device(**{**one, "index": at, "uuid": f"GPU-{at}", "processes": [GpuProcess(100 + at, 1, "compute")]})
            for at, one in enumerate(does)
        ],
        lambda at: [process(at, 100 + rank, rank=rank, world_size=len(does)) for rank, _ in enumerate(does)],
    )


def unreadable() -> Watched:
    told = untold_device("clock_reasons", "power_w")
    return ranks(*[{"clock_reasons": None, "power_w": None, "untold": told.untold}] * 2)


CASES = {
    "ranks.power": ThreeCases(lambda: ranks(FREE, FREE, CAPPED, FREE), lambda: ranks(FREE, FREE), unreadable),
}


def test_the_rank_whose_limit_is_lower_is_named(ask: Ask) -> None:
    finding = only_finding(ask("ranks.power", ranks(FREE, FREE, CAPPED, FREE)))
    assert finding.subject.ranks == (2,)
    assert finding.title == "Rank 2 runs at its power limit, at 70.7 % of the others' clock"
    assert figures(finding)["rank 2"] == "capped in 100.0 %, 500 W of 500 W, 1.4 GHz"


def test_a_limit_that_holds_all_alike_is_no_straggler(ask: Ask) -> None:
    (answer,) = ask("ranks.power", ranks(CAPPED, CAPPED, CAPPED))
    assert isinstance(answer, Clear)


def test_capped_at_the_clock_of_the_others_costs_nothing(ask: Ask) -> None:
    """At full load every board meets its limit now and then."""
    (answer,) = ask("ranks.power", ranks(FREE, FREE, {**CAPPED, "sm_clock_hz": 1_970_000_000}))
    assert isinstance(answer, Clear)


@dataclass(frozen=True)
class Traced:
    """Traces of four ranks, of which the last is slow, and a record of their host."""

    record: Watched

    def write(self, path: Path) -> Path:
        folder = RankJob(compute_ns=lambda rank, step: (5 if rank == 3 else 4) * MS).write(path)
        self.record.write(folder / "host.diag")
        return folder

    def backwards(self) -> Self:
        return self


def test_a_slow_device_is_told_with_its_power(ask: Ask) -> None:
    finding = only_finding(ask("ranks.slow_device", Traced(ranks(FREE, FREE, FREE, CAPPED))))
    assert finding.subject.ranks == (3,)
    assert "Power held its clocks down in 100.0 % of the readings" in finding.claim
    assert "at a limit of 500 W, those of the others in 0 %" in finding.claim


def test_one_rank_is_no_job(ask: Ask) -> None:
    assert ask("ranks.power", ranks(CAPPED)) == []
