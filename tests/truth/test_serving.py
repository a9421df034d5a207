"""Each serving fault once with a fixed seed: found, named, and silent on the twin."""

from __future__ import annotations

import pytest

from tests.truth import serving
from tests.truth.serving import FAULTS, ServingTrial, table


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_engine_is_found_and_its_twin_is_not_accused(name: str) -> None:
    assert [serving.trial(name, 7, is_sick=is_sick).miss for is_sick in (True, False)] == [None, None]


def test_the_twin_has_the_same_load_and_other_seeds_another() -> None:
    fault = FAULTS["small budget"]
    sick, twin, other = (fault.runs(seed, is_sick=is_sick)[0] for seed, is_sick in ((1, True), (1, False), (2, True)))
    prompts = [{each.id: each.prompt_tokens for each in run.requests} for run in (sick, twin, other)]
    assert prompts[0] == prompts[1] != prompts[2]
    assert sick.engine != twin.engine
    assert len(sick.steps) > len(twin.steps)


def test_all_of_a_load_is_served() -> None:
    """The engine's own invariants are tested elsewhere; here tokens asked for and put out are as many."""
    for run in FAULTS["small pool, recompute"].runs(3, is_sick=True):
        assert [each.outcome for each in run.requests] == ["completed"] * 48
        assert all(each.output_tokens == each.max_output_tokens for each in run.requests)
        assert any(each.n_preemptions for each in run.requests)


@pytest.mark.parametrize(
    ("judged", "says"),
    [
        (ServingTrial("f", "serving.batch", 1, True, None, ()), "did not find it"),
        (ServingTrial("f", "serving.batch", 1, False, "Few decode", ()), "accuses the healthy twin (Few decode)"),
        (ServingTrial("f", "serving.batch", 1, True, "Few", ("serving.kv_full",)), "also accused by serving.kv_full"),
    ],
)
def test_each_way_to_be_wrong_is_a_miss(judged: ServingTrial, says: str) -> None:
    assert says in (judged.miss or "")


def test_the_table_has_a_row_for_each_fault() -> None:
    of = [
        ServingTrial("f", "serving.batch", 1, True, "Few", ()),
        ServingTrial("f", "serving.batch", 1, False, None, ()),
    ]
    assert table(of).splitlines()[-1] == "| serving.batch | f | 1 of 1 | 1 of 1 | by none | Few |"
