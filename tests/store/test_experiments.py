"""The experiment log as a case keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.errors import InputError, UsageError
from diag.ingest.own_case import changed
from diag.store.case import Case
from diag.store.experiments import Experiment, append, carry_over, complete, log_in, log_of

ENTRY = Experiment("less", 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with changed(tmp_path / "log.diag") as case:
        append(case, ENTRY)
    return tmp_path / "log.diag"


def test_an_entry_comes_back_as_it_was(path: Path) -> None:
    full = Experiment(
        "less", 2, "half", 5.0, "ms", "seen", "F1", "a.json", "x", "it", 10.0, 5.5, "ms", "more", 0.0, 1.0, "GB", "kept"
    )
    with changed(path) as case:
        assert append(case, full) == 2
    assert log_in(path) == {1: ENTRY, 2: full}


def test_how_far_the_measurement_lies_from_the_model() -> None:
    assert Experiment("", 0, expected_value=4.0, gain_after=5.0).miss == 0.25
    assert Experiment("", 0, expected_value=-4.0, gain_after=-5.0).miss == -0.25
    assert Experiment("", 0, expected_value=0.0, gain_after=5.0).miss is None
    assert Experiment("", 0, expected_value=4.0, expected_unit="ms", gain_after=5.0, gain_unit="s").miss is None


def test_an_error_while_the_case_is_changed_leaves_it_as_it_was(path: Path) -> None:
    before = path.read_bytes()

    def fail() -> None:
        with changed(path) as case:
            append(case, ENTRY)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with pytest.raises(UsageError, match="no outcome 'won'"), changed(path) as case:
        complete(case, 1, outcome="won")
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_an_entry_is_completed_once(path: Path) -> None:
    with changed(path) as case:
        complete(case, 1, gain="it", gain_after=3.0, cost=None)
        assert complete(case, 1, cost="more").gain == "it"
        with pytest.raises(UsageError, match="gain already"):
            complete(case, 1, gain="other")


def test_entries_that_are_carried_over_keep_their_numbers(path: Path) -> None:
    kept = {3: Experiment("first", 0), 5: ENTRY}
    with Case.open(path, "rw") as case:
        append(case, Experiment("last", 2))
        carry_over(kept, case)
        assert log_of(case) == {**kept, 6: Experiment("last", 2)}


def test_a_log_that_cannot_be_read_is_not_thought_empty(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(InputError, match="cannot be read"):
        log_in(path)
    assert log_in(path.with_name("none.diag")) == {}
