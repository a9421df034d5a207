"""Lesson 9 on this machine: real ranks hang and give up, and each fault is told from what they leave."""

from __future__ import annotations

import random
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from diag.cli.verbs import app
from diag.learn import stuck
from diag.learn.disguise import FILE, disguised
from diag.learn.exercises import hang as sick
from diag.learn.giving_up import ABSENT, FIRST, LATE, TIMEOUT_S, gave_up
from diag.learn.lesson import Lab
from diag.learn.lessons.hang import HANGS, analysed, figures
from diag.learn.page import page
from tests.learn.fired import fired

pytest.importorskip("torch")

FAULTS = tuple(sick.RULES)


@dataclass(frozen=True)
class Jobs:
    """What all jobs left, by name; that of the lesson is among the sick ones."""

    sick: Mapping[str, Path]
    healthy: Mapping[str, Path]
    timeouts: Path


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    """All at once, as most of their time is waiting; and three processes import PyTorch, not twenty."""
    folder = tmp_path_factory.mktemp("jobs")
    for name in ("sick", "healthy"):
        (folder / name).mkdir()
    names = [HANGS, *map(sick.name_of, FAULTS)]
    with ThreadPoolExecutor() as pool:
        ill = pool.submit(stuck.hang, names, folder / "sick")
        well = pool.submit(stuck.hang, names, folder / "healthy", is_sick=False)
        pool.submit(stuck.hang, [], folder, timeouts=True).result()
        return Jobs(ill.result(), well.result(), folder)


def test_figures_are_those_of_what_cannot_be_otherwise(jobs: Jobs) -> None:
    found = {each.key: each.value for each in figures(analysed(jobs.sick[HANGS]), gave_up(jobs.timeouts))}
    assert list(found) == list(page(9, "en").labels)
    assert (found["completed"], found["called"], found["waiting"]) == (3, 4, 2)
    assert (found["errors"], found["innocent"]) == (2, 2)
    assert found["first_error_ns"] >= 1e9 * TIMEOUT_S
    assert found["last_error_ns"] >= found["first_error_ns"]
    assert found["busy"] < 0.5


def test_each_rank_gives_up_by_its_own_clock(jobs: Jobs) -> None:
    told = gave_up(jobs.timeouts)
    assert set(told) == {FIRST, LATE}
    assert ABSENT not in told
    for each in told.values():
        assert "Timed out" in each.said
        assert each.gave_up_s - each.called_s >= TIMEOUT_S
    came_later_s = told[LATE].called_s - told[FIRST].called_s
    assert told[LATE].gave_up_s - told[FIRST].called_s >= TIMEOUT_S + came_later_s - 1e-3


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found_by_its_rule_and_its_twin_is_healthy(jobs: Jobs, fault: str) -> None:
    name, rule = sick.name_of(fault), sick.RULES[fault]
    assert fault in page(9, "en").faults
    assert rule in fired([("hang", str(jobs.sick[name]))])
    assert rule not in fired([("hang", str(jobs.healthy[name]))])


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_that_is_shown_tells_the_fault_by_a_name(
    jobs: Jobs, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = jobs.sick[sick.name_of(fault)]
    app(["hang", str(folder), "--no-cache"], standalone_mode=False)
    said = capsys.readouterr().out
    assert f"{fault}.py" not in said
    assert not [*folder.parent.glob("*truth*")]


def test_the_exercise_runs_what_it_drew(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(names: list[str], folder: Path) -> Mapping[str, Path]:
        (folder / "job-1").mkdir()
        return {names[0]: folder / "job-1"}

    monkeypatch.setattr(stuck, "hang", hang)
    incident = sick.exercise(lab, random.Random(4))
    ((verb, folder),) = incident.commands
    assert (verb, Path(folder)) == ("hang", lab.folder / "job")
    assert incident.rule == sick.RULES[incident.fault]


def test_a_disguise_is_taken_off_again() -> None:
    from diag.probes.faults import sleep_in_loop

    before = sleep_in_loop.Sleep.spend.__code__
    with disguised(sleep_in_loop):
        code = sleep_in_loop.Sleep.spend.__code__
        assert code.co_filename == FILE
        assert {each.co_filename for each in code.co_consts if hasattr(each, "co_filename")} <= {FILE}
    assert sleep_in_loop.Sleep.spend.__code__ is before
