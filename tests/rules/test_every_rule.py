"""What holds for every rule: three answers, evidence with units and formulas, stable ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

import pytest

from diag.model import units
from diag.rules import engine
from diag.rules.engine import SUBJECTS
from diag.rules.finding import SEVERITIES, CannotTell, Clear, Finding
from tests.rules.asking import Analyse, Ask, ThreeCases, only_finding


def all_cases() -> Iterator[tuple[str, ThreeCases]]:
    for subject in SUBJECTS:
        cases: Mapping[str, ThreeCases] = import_module(f"tests.rules.test_{subject}").CASES
        yield from cases.items()


CASES = dict(all_cases())
each_rule = pytest.mark.parametrize("rule_id", CASES)


def test_every_rule_has_three_cases() -> None:
    assert list(CASES) == list(engine.rules())


@each_rule
def test_it_fires(ask: Ask, rule_id: str) -> None:
    finding = only_finding(ask(rule_id, CASES[rule_id].fires()))
    assert finding.rule == rule_id
    assert finding.title
    assert finding.claim
    assert finding.counterfactual
    assert finding.refute
    assert all(finding.next)
    assert len(finding.next) >= 1


@each_rule
def test_its_evidence_has_units_and_formulas(ask: Ask, rule_id: str) -> None:
    finding = only_finding(ask(rule_id, CASES[rule_id].fires()))
    assert finding.evidence
    for evidence in finding.evidence:
        assert evidence.label
        assert evidence.formula
        assert evidence.unit in units.EVIDENCE
        assert isinstance(evidence.value, int if evidence.unit in {"ns", "bytes", "count"} else int | float | str)


@each_rule
def test_it_promises_no_more_than_there_is(ask: Ask, rule_id: str) -> None:
    finding = only_finding(ask(rule_id, CASES[rule_id].fires()))
    whole = finding.subject.window or (finding.whole_ns and (0, finding.whole_ns))
    assert whole or finding.share is None
    if whole:
        start_ns, end_ns = whole
        assert 0 <= (finding.share or 0.0) <= 1
        assert 0 <= (finding.recoverable_ns or 0) <= end_ns - start_ns
    if finding.subject.window is not None:
        assert finding.extent.measure_ns >= (finding.recoverable_ns or 0)


@each_rule
def test_its_healthy_twin_is_clear(ask: Ask, rule_id: str) -> None:
    answers = ask(rule_id, CASES[rule_id].clear())
    assert any(isinstance(answer, Clear) for answer in answers)
    assert not any(isinstance(answer, Finding) for answer in answers)


@each_rule
def test_it_says_why_it_cannot_tell(ask: Ask, rule_id: str) -> None:
    answers = ask(rule_id, CASES[rule_id].untold())
    assert answers
    for answer in answers:
        assert isinstance(answer, CannotTell)
        assert answer.because


@each_rule
def test_the_same_input_gives_the_same_report(report_on: Analyse, rule_id: str) -> None:
    first, second = report_on(CASES[rule_id].fires()), report_on(CASES[rule_id].fires())
    assert [finding.id for finding in first.findings] == [finding.id for finding in second.findings]
    assert len({finding.id for finding in first.findings}) == len(first.findings)
    assert first.overlaps == second.overlaps
    assert first.verdict == second.verdict


@each_rule
def test_rows_may_come_in_any_order(ask: Ask, rule_id: str) -> None:
    """Newer versions of nsys promise no order of rows at all."""
    forwards, backwards = CASES[rule_id].fires(), CASES[rule_id].fires().backwards()
    assert only_finding(ask(rule_id, forwards)).claim == only_finding(ask(rule_id, backwards)).claim


@each_rule
def test_its_documentation_is_complete(rule_id: str) -> None:
    rule = engine.rules()[rule_id]
    assert rule.title
    assert list(rule.sections) == list(engine.SECTIONS)
    assert all(rule.sections.values())


def test_overlaps_are_mutual_and_on_the_same_time(report_on: Analyse) -> None:
    report = report_on(CASES["sync.drain"].fires())
    by_rule = {finding.rule: finding for finding in report.findings}
    idle, drain = by_rule["idle.gpu"], by_rule["sync.drain"]
    assert drain.id in report.overlaps[idle.id]
    assert idle.id in report.overlaps[drain.id]
    assert by_rule["kernels.hot"].id not in report.overlaps[idle.id]


def test_findings_are_ranked_by_severity_and_then_by_what_can_be_won(report_on: Analyse) -> None:
    for cases in CASES.values():
        ranked = [(f.severity, f.recoverable_share) for f in report_on(cases.fires()).findings]
        assert ranked == sorted(ranked, key=lambda pair: (-SEVERITIES.index(pair[0]), -pair[1]))
