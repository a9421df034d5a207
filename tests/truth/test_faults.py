"""The faults themselves: what they draw, what they print, what they refuse."""

from __future__ import annotations

import json

import pytest

from diag.probes.faults import __main__ as program
from diag.probes.faults import table
from diag.probes.faults.fault import Fault
from diag.probes.faults.loop import draw, run
from diag.rules import engine


@pytest.mark.parametrize("fault", table.FAULTS.values(), ids=list(table.FAULTS))
def test_every_fault_names_rules_that_there_are_and_what_they_say(fault: Fault) -> None:
    rules = {rule for by in (fault.on_cpu, fault.on_gpu) for names in by.values() for rule in names}
    assert rules
    assert rules <= engine.rules().keys()
    assert rules == fault.tells.keys()


def test_the_seed_alone_decides_names_places_and_sizes() -> None:
    fault = table.FAULTS["text-formatting"]
    assert draw(fault, 40, 3)[0] == draw(fault, 40, 3)[0]
    drawn = [draw(fault, 40, seed)[0] for seed in range(20)]
    assert len({each.name for each in drawn}) > 10
    assert {each.every for each in drawn} == {1, 2, 3}
    assert all(sum(each.weights) == pytest.approx(1) for each in drawn)


def test_the_loop_says_what_it_injected() -> None:
    injected = run(table.FAULTS["sleep-in-loop"], dose=0.4, seed=1, steps=20, device="cpu")
    assert 0.2 < injected.share < 0.6
    assert run(table.FAULTS["sleep-in-loop"], dose=0, seed=1, steps=20, device="cpu").injected_ns == 0


def test_the_program_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["text-formatting", "--dose", "0.2", "--seed", "5", "--steps", "10", "--device", "cpu"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["seed"] == 5
    assert said["share"] == said["injected_ns"] / said["window_ns"] > 0


def test_the_list_has_all_of_them() -> None:
    assert all(name in program.listing() for name in table.FAULTS)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["sleep-in-lop"], "Did you mean"),
        ([], "Name a fault"),
        (["sleep-in-loop", "--dose", "1.5"], "no share that a fault can take"),
        (["sleep-in-loop", "--steps", "3"], "too few"),
        (["pageable-copies", "--device", "cpu"], "fault of GPU work"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main(arguments) == 2
    assert says in capsys.readouterr().err
