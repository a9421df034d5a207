"""Lesson 4 on this machine: made-up steps take what their closed form says, and each fault of the exercise is found."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.learn.lesson import Figure, Lab, Measured
from diag.learn.threads import one_thread
from diag.rules.analysis import AnalysisOptions, analyse
from tests.learn.fired import fired

pytest.importorskip("torch")

from diag.learn.exercises import timeline as exercises
from diag.learn.lessons import timeline

HOTTEST = {"sleep_in_loop": "sleep", "text_formatting": "join", "lock_contention": "lambda"}
"""What `host.hot`, which names something in any loop, must name in a sick one."""

Given = tuple[Sequence[Figure], Measured]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    lab = Lab(tmp_path_factory.mktemp("timeline"), "cpu", scale="tiny")
    with one_thread():
        return timeline.prepare(lab), timeline.measure(lab)


def values(figures: Sequence[Figure]) -> dict[str, float]:
    return {each.key: each.value for each in figures}


def test_a_step_takes_what_its_launches_take(given: Given) -> None:
    told, found = values(given[0]), values(given[1].figures)
    launching_ns = told["launches"] * told["launch_ns"]
    assert told["launches"] == 24 * 10 + 1
    assert found["step_ns"] == pytest.approx(launching_ns, rel=0.01)
    assert found["idle"] == pytest.approx(1 - told["work_ns"] / launching_ns, rel=0.01)


def test_a_graph_takes_one_launch_and_the_work_and_the_gaps(given: Given) -> None:
    told, found = values(given[0]), values(given[1].figures)
    graph_ns = told["launch_ns"] + told["work_ns"] + 0.5e3 * (told["launches"] - 1)
    assert found["graph_step_ns"] == pytest.approx(graph_ns, rel=0.01)
    assert found["graph_gain"] == pytest.approx(told["launches"] * told["launch_ns"] / graph_ns, rel=0.02)
    assert found["graph_idle"] < found["idle"]


def test_a_call_costs_time_by_itself(given: Given) -> None:
    found = values(given[1].figures)
    assert found["call_ns"] > 0
    assert 1 < found["call_numbers"] < timeline.MANY


def test_diag_finds_the_launches_and_what_a_graph_won(given: Given) -> None:
    (verb, eager), (other_verb, *both) = given[1].commands
    assert (verb, other_verb) == ("report", "compare")
    assert both[0] == eager
    assert "synthetic" in Path(eager).name
    assert "launch.bound" in fired([(eager,)])
    assert "launch.bound" not in fired([(both[1],)])


def titles(trace: Path) -> dict[str, str]:
    """Of all findings, by rule."""
    with open_inputs([trace], ImportOptions(use_cache=False)) as case:
        return {finding.rule: finding.title for finding in analyse(case, AnalysisOptions()).findings}


@pytest.mark.parametrize("fault", exercises.RULES["cpu"])
def test_each_fault_is_found_and_is_not_told_by_a_name(fault: str, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = exercises.RULES["cpu"][fault]
    monkeypatch.setattr(exercises, "RULES", {"cpu": {fault: rule}})
    incident = exercises.exercise(lab, random.Random(0))
    ((verb, trace),) = incident.commands
    found = titles(Path(trace))
    assert (incident.fault, incident.rule, verb) == (fault, rule, "report")
    assert rule in found
    assert HOTTEST.get(fault, "") in found[rule]
    assert fault not in " ".join([trace, *found.values()])


def test_a_healthy_loop_is_hottest_where_it_computes(lab: Lab) -> None:
    trace = lab.folder / "healthy.pt.trace.json.gz"
    exercises.recorded(lab, "sleep_in_loop", trace, dose=0, seed=0)
    found = titles(trace)
    assert "host.data_loader" not in found
    assert not any(hottest in found.get("host.hot", "") for hottest in HOTTEST.values())


def test_a_loader_whose_batches_lie_ready_is_not_accused(lab: Lab) -> None:
    """Of three runs not in all, as on a busy machine the loader may lose its core in one."""
    trace = lab.folder / "healthy.pt.trace.json.gz"

    def is_accused(seed: int) -> bool:
        exercises.recorded(lab, "slow_loader", trace, dose=0, seed=seed)
        return "host.data_loader" in titles(trace)

    assert not all(map(is_accused, range(3)))


def test_on_a_gpu_the_rules_are_those_that_must_find_the_faults() -> None:
    from diag.probes.faults import table

    for fault, rule in exercises.RULES["cuda"].items():
        assert rule in table.find(fault.replace("_", "-")).on_gpu["torch"]
