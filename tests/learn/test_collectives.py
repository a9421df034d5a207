"""Lesson 8 on this machine: bytes that are counted, a line that is known, and each fault of the exercise.

All jobs run in one start of two processes, as to load PyTorch takes most of their time.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from diag.cli.verbs import app
from diag.learn.course import lesson
from diag.learn.exercises import collectives as sick
from diag.learn.lesson import Lab
from diag.learn.lessons.collectives import LEAST, MOST, QUARTER, SIXTEENFOLD, THIRD, figures
from diag.learn.page import page
from diag.model.collective import Primitive
from diag.model.communication import CollectiveMeasurement
from tests.learn.fired import fired

pytest.importorskip("torch")


def on_a_line(latency_ns: int, ns_per_byte: float) -> list[CollectiveMeasurement]:
    """All-reduces of two ranks, whose bus moves as many bytes as the buffer has."""
    return [
        CollectiveMeasurement(
            op=Primitive.ALL_REDUCE, backend="gloo", n_ranks=2, n_hosts=1, dtype="fp32", reduction="sum",
            size_bytes=size, is_in_place=True, repeats=9, median_ns=latency_ns + round(ns_per_byte * size),
            p5_ns=1, p95_ns=1, n_wrong=0, conditions="synthetic",
        )
        for size in (LEAST, SIXTEENFOLD, THIRD, QUARTER, MOST)
    ]  # fmt: skip


def test_a_third_size_is_predicted_where_times_lie_on_a_line() -> None:
    found = {each.key: each.value for each in figures(1.5, on_a_line(100_000, 1.0))}
    assert list(found) == list(page(8, "en").labels)
    assert found["bytes_per_s"] == pytest.approx(1e9)
    assert found["predicted_ns"] == pytest.approx(found["third_ns"], rel=0.01)
    assert found["small_ratio"] == pytest.approx(1.15, rel=0.01)
    assert found["large_ratio"] == pytest.approx(4, rel=0.1)


def test_ranks_send_what_the_ring_says() -> None:
    from diag.learn.wire import sent_bytes

    size = 1 << 20
    assert sent_bytes(3, size) / size == pytest.approx(2 * 2 / 3, rel=0.01)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    from diag.learn.sick_ranks import CASES, run

    return run(list(CASES), sick.N_RANKS, tmp_path_factory.mktemp("jobs"), seed=1)


@pytest.mark.parametrize("fault", sick.RULES)
def test_each_fault_is_found_by_its_rule(
    lab: Lab, fault: str, left: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def recorded(names: Sequence[str], *_: object) -> Mapping[str, Path]:
        return {name: left[name] for name in names}

    monkeypatch.setattr("diag.learn.sick_ranks.run", recorded)
    monkeypatch.setattr(sick, "RULES", {fault: sick.RULES[fault]})
    incident = sick.exercise(lab, random.Random(0))
    assert incident.fault == fault
    assert fault in page(8, "en").faults
    assert incident.rule in fired(incident.commands)


def test_healthy_jobs_are_accused_of_nothing_that_a_busy_machine_does_not_do(left: Mapping[str, Path]) -> None:
    """That ranks wait for each other, or for one of them, is what it does: of `ranks.*` nothing is said."""
    twice = ("report", str(left["benchmark"] / "ranks.benchmark.json"), str(left["benchmark"]))
    assert not {"comm.wrong", "comm.bandwidth"} & fired([twice[:2], twice])


def test_measured_figures_can_be_reported_and_planned_with(
    lab: Lab, left: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what was measured in the one start."""

    def recorded(request: object, n_ranks: int, device: str, file: Path, progress: object) -> None:
        shutil.copy(left["benchmark"] / "ranks.benchmark.json", file)

    monkeypatch.setattr("diag.learn.wire.sent_bytes", lambda n_ranks, size_bytes: 1.5 * size_bytes)
    monkeypatch.setattr("diag.probes.collective.launch.run", recorded)
    measured = lesson(8).measure(lab)
    assert all(each.value > 0 for each in measured.figures)
    assert all(CliRunner().invoke(app, list(command)).exit_code in (0, 1) for command in measured.commands)
