"""Real captures of small programs with a known fault, and of their healthy twins (tests/data/host_threads)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules import engine, running, thresholds
from diag.rules.finding import Answer, Finding
from diag.timeline.trace import Trace
from tests.rules.asking import figures, only_finding

CAPTURES = Path(__file__).parents[1] / "data" / "host_threads"


@contextmanager
def trace_of(capture: str) -> Iterator[Trace]:
    with open_inputs([CAPTURES / f"{capture}.sqlite"], ImportOptions(use_cache=False)) as case:
        yield Trace(case, case.sources[0])


def answers(rule_id: str, capture: str) -> list[Answer]:
    with trace_of(capture) as trace:
        return list(running.run(engine.trace_rule(rule_id), trace, thresholds.load()[rule_id]))


@pytest.mark.parametrize(
    ("rule_id", "sick", "healthy"),
    [
        ("host.gil", "gil", "gil-alone"),
        ("host.locks", "locks", "locks-apart"),
        ("host.gc", "garbage", "garbage-off"),
    ],
)
def test_the_fault_is_found_and_its_twin_is_not_accused(rule_id: str, sick: str, healthy: str) -> None:
    assert isinstance(only_finding(answers(rule_id, sick)), Finding)
    assert not any(isinstance(answer, Finding) for answer in answers(rule_id, healthy))


@pytest.mark.parametrize("capture", ["gil", "locks", "garbage"])
def test_no_capture_is_accused_of_the_fault_of_another(capture: str) -> None:
    faults = {"gil": "host.gil", "locks": "host.locks", "garbage": "host.gc"}
    for rule_id in faults.values():
        found = any(isinstance(answer, Finding) for answer in answers(rule_id, capture))
        assert found == (rule_id == faults[capture])


def test_the_lock_is_named_by_who_takes_it() -> None:
    finding = only_finding(answers("host.locks", "locks"))
    assert "the lock is taken in update_table" in finding.claim
    assert figures(finding)["in pthread_mutex_lock()"] == finding.recoverable_ns


def test_the_main_thread_of_three_that_spin_waits_for_the_gil_for_a_good_part() -> None:
    """Two others spin, too, and every third slice is its own; a loaded machine blurs it."""
    assert 0.2 < (only_finding(answers("host.gil", "gil")).share or 0) < 0.8


def test_most_samples_are_in_the_collector() -> None:
    found = figures(only_finding(answers("host.gc", "garbage")))
    assert int(found["samples collecting Python garbage"]) > int(found["samples"]) / 2
