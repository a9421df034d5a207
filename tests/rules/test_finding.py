"""What a finding says of itself: its severity at the borders, its share, and which of two comes first."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from diag.rules.finding import Finding, Severity, Subject, severity_of

ABOUT = Subject(1, 100, 0, window=(1_000, 2_000))
PLAIN = Finding("t", "c", ABOUT, "", "", (), (), share=0.05, recoverable_ns=20, rule="a.rule")


@pytest.mark.parametrize(
    ("share", "severity"),
    [(0.0, "info"), (0.0199, "info"), (0.02, "warning"), (0.0999, "warning"), (0.10, "critical"), (1.0, "critical")],
)
def test_severity_begins_at_its_share(share: float, severity: Severity) -> None:
    assert severity_of(share) == severity
    assert replace(PLAIN, share=share).severity == severity
    assert replace(PLAIN, share=share, level="info").severity == "info"


def test_what_can_be_won_is_a_share_of_the_window_or_of_the_whole() -> None:
    assert PLAIN.recoverable_share == 20 / 1_000
    assert replace(PLAIN, recoverable_ns=None).recoverable_share == 0
    without = replace(PLAIN, subject=replace(ABOUT, window=None))
    assert without.recoverable_share == 0
    assert replace(without, whole_ns=40).recoverable_share == 0.5
    assert replace(PLAIN, subject=replace(ABOUT, window=(5, 5))).recoverable_share == 0
    assert replace(PLAIN, subject=replace(ABOUT, window=(5, 6))).recoverable_share == 20


LESS_AND_LESS = [
    replace(PLAIN, share=0.01, level="critical"),
    replace(PLAIN, held_up=2),
    replace(PLAIN, held_up=1, recoverable_ns=10),
    replace(PLAIN, recoverable_ns=30),
    replace(PLAIN, share=0.06),
    PLAIN,
    replace(PLAIN, confidence="medium"),
    replace(PLAIN, confidence="low"),
    replace(PLAIN, recoverable_ns=10, share=0.09),
    replace(PLAIN, recoverable_ns=None, share=0.09),
    replace(PLAIN, level="info", share=0.5, held_up=9),
]


def test_first_comes_what_is_more_severe_then_who_waits_then_what_can_be_won() -> None:
    shuffled = random.Random(1).sample(LESS_AND_LESS, len(LESS_AND_LESS))
    assert sorted(shuffled, key=lambda finding: finding.rank) == LESS_AND_LESS


def test_an_id_is_of_the_rule_and_its_subject() -> None:
    assert PLAIN.id == replace(PLAIN, title="other", share=0.9).id
    others = (
        replace(PLAIN, rule="b.rule"),
        replace(PLAIN, subject=replace(ABOUT, device=1)),
        replace(PLAIN, subject=replace(ABOUT, load="8 at once")),
    )
    assert len({PLAIN.id, *(other.id for other in others)}) == 4
    assert (len(PLAIN.id), PLAIN.id[0]) == (11, "F")


def test_only_what_applies_is_shown() -> None:
    assert ABOUT.present() == {"source": 1, "process": 100, "device": 0, "window": (1_000, 2_000)}
    assert not ABOUT.same_kernel(ABOUT)
    assert Subject(1, launch="x").same_kernel(Subject(2, launch="x"))
    assert ABOUT.same_device(replace(ABOUT, stream=7))
    assert not ABOUT.same_device(replace(ABOUT, process=101))
