"""Findings of two runs: new, gone, worse, better, and what could be won."""

from __future__ import annotations

from dataclasses import replace

from diag.compare.findings import finding_changes
from diag.compare.of_report import recording_of
from diag.compare.recording import Side
from diag.render import comparison_phrases
from diag.rules import document
from diag.rules.finding import CannotTell, Clear, Finding, Subject
from diag.rules.report import Report
from tests.render.conftest import MS, device, finding, make_report


def side(*findings: Finding, **changes: object) -> Side:
    empty: dict[str, object] = {"overlaps": {}, "clear": [], "cannot_tell": []}
    report: Report = make_report(findings=list(findings), **{**empty, **changes})
    return Side("run", [recording_of(document.of_report(report), "run")])


def standings(before: Side, after: Side) -> list[tuple[str, str]]:
    return [(each.rule, each.standing) for each in finding_changes(before, after)]


def test_each_finding_has_its_standing() -> None:
    copies = finding("transfer.pageable", share=0.2, recoverable_ns=9 * MS)
    before = side(finding(share=0.3), copies, finding("sync.drain", share=0.1, recoverable_ns=1 * MS))
    after = side(
        finding(share=0.4),
        finding("launch.bound", share=0.1, recoverable_ns=2 * MS),
        finding("transfer.pageable", share=0.1, recoverable_ns=4 * MS),
    )
    assert standings(before, after) == [
        ("idle.gpu", "worse"),
        ("transfer.pageable", "better"),
        ("launch.bound", "new"),
        ("sync.drain", "gone"),
    ]


def test_what_could_win_most_comes_first_on_whichever_side() -> None:
    before = side(finding("a", recoverable_ns=1 * MS), finding("b", recoverable_ns=30 * MS))
    after = side(finding("a", recoverable_ns=2 * MS))
    changes = finding_changes(before, after)
    assert [change.rule for change in changes] == ["b", "a"]
    assert changes[0].recoverable_share == 30 / 96


def test_a_rule_that_could_not_look_again_says_nothing_is_gone() -> None:
    before, here = side(finding("a")), Subject(source=1, process=9946, device=0)
    assert standings(before, side(clear=[Clear(here, "a")])) == [("a", "gone")]
    assert standings(before, side(cannot_tell=[CannotTell(here, "not captured", "a")])) == [("a", "not looked for")]


def test_of_several_runs_the_one_of_median_length_speaks() -> None:
    runs = [
        recording_of(document.of_report(make_report(findings=[finding(rule)], devices=[device(window_ns=ns)])), rule)
        for rule, ns in (("short", 10), ("usual", 20), ("long", 90))
    ]
    assert standings(Side("a", runs), Side("b", runs)) == [("usual", "known")]


def test_shares_of_a_profile_are_not_called_shares_of_a_window() -> None:
    found = replace(finding("ncu.roofline"), share=0.3, whole_ns=10 * MS, recoverable_ns=3 * MS)
    found = replace(found, subject=Subject(source=1, kernel="gemm", configuration="<<<1, 32>>>"))
    (change,) = finding_changes(side(found), side())
    assert change.share_of == "profiled_kernel_time"
    assert "at most 30.0 % of the kernel time that was profiled to win" in comparison_phrases.finding(change)
