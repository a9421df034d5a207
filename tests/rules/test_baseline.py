"""Findings against those of an earlier run: what is recognised, what counts as worse, what is gone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from diag.errors import InputError
from diag.render import render_json, render_markdown, render_text
from diag.render.layout import cells
from diag.rules import baseline
from diag.rules.finding import CannotTell, Clear, Finding, Subject
from diag.rules.report import Report
from tests.render.conftest import finding, make_report

EARLIER = Subject(source=3, process=1, device=0, window=(0, 5))
"""Of another process, source and window, but the same device ordinal."""


def reported(*findings: Finding, **changes: object) -> Report:
    return make_report(findings=list(findings), overlaps={}, clear=[], cannot_tell=[], **changes)


def standings(now: Report, then: Report, margin: float = 0.02) -> list[str]:
    comparison = baseline.compare(now, baseline.of_report(then), "main.json", margin)
    return [comparison.standing[each.id] for each in now.findings]


@pytest.mark.parametrize(
    ("share", "standing"), [(0.30, "known"), (0.3199, "known"), (0.33, "worse"), (0.10, "known"), (None, "known")]
)
def test_a_share_that_rose_by_more_than_the_margin_is_worse(share: float | None, standing: str) -> None:
    assert standings(reported(finding(share=share)), reported(finding(share=0.30, subject=EARLIER))) == [standing]


def test_a_fact_that_is_no_fault_cannot_get_worse() -> None:
    hot = finding("kernels.hot", share=0.9, level="info")
    assert standings(reported(hot), reported(replace(hot, share=0.1))) == ["known"]


def test_the_margin_can_be_chosen() -> None:
    now, then = reported(finding(share=0.32)), reported(finding(share=0.30))
    assert standings(now, then, margin=0.0) == ["worse"]
    assert standings(now, then, margin=0.5) == ["known"]


def test_another_rule_device_or_kernel_is_new() -> None:
    hot = finding("kernels.hot", subject=replace(EARLIER, kernel="gemm_128"))
    then = reported(finding(subject=EARLIER), hot)
    now = reported(
        finding(),
        finding("idle.shared"),
        finding(subject=replace(EARLIER, device=1)),
        finding("kernels.hot", subject=replace(EARLIER, kernel="gemm_256", process=7)),
        finding("kernels.hot", subject=replace(EARLIER, kernel="softmax")),
    )
    assert standings(now, then) == ["known", "new", "new", "known", "new"]


def test_of_equal_findings_the_worst_stands_for_all() -> None:
    """As on ranks: each has a device 0."""
    ranks = [finding(share=share, subject=replace(EARLIER, source=source)) for source, share in ((1, 0.1), (2, 0.4))]
    assert standings(reported(*ranks), reported(*reversed(ranks))) == ["known", "known"]


def test_what_the_baseline_alone_has_is_gone_unless_nobody_looked() -> None:
    then = reported(finding(subject=EARLIER), finding("transfer.bound", subject=EARLIER), finding("launch.bound"))
    here = Subject(source=1, process=2, device=0)
    now = make_report(
        findings=[],
        overlaps={},
        clear=[Clear(here, "idle.gpu")],
        cannot_tell=[CannotTell(Subject(source=1), "no copies were captured", "transfer.bound")],
    )
    gone = baseline.compare(now, baseline.of_report(then), "main.json").gone
    assert [(each.rule, each.is_judged) for each in gone] == [
        ("idle.gpu", True), ("launch.bound", True), ("transfer.bound", False),
    ]  # fmt: skip


def test_a_json_report_says_the_same_as_the_report_itself() -> None:
    report = make_report()
    assert baseline.of_json(render_json(report).encode(), "main.json") == baseline.of_report(report)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"schema": "diag.report/2", "findings": []}',
        b'{"schema": "diag.report/1"}',
        b'{"schema": "diag.report/1", "findings": {}}',
        b'{"schema": "diag.report/1", "findings": [{"rule": 1}]}',
        b'{"schema": "diag.report/1", "findings": [{"rule": "a", "title": "b", "severity": "fatal", "subject": {}, '
        b'"share": null}]}',
        b'{"schema": "diag.report/1", "findings": [{"rule": "a", "title": "b", "severity": "info", "subject": '
        b'{"device": "0"}, "share": null}]}',
        b'{"schema": "diag.report/1", "findings": [], "more": ' + b"[" * 200_000,
        b'{"schema": "diag.report/1", "findings": [{"rule": "\xff"',
        b"\x00\x01",
    ],
)
def test_what_is_no_report_is_refused_with_a_reason(text: bytes) -> None:
    with pytest.raises(InputError, match=r"^main\.json is no report of diag \(.*--format json"):
        baseline.of_json(text, "main.json")


def test_keys_that_were_added_since_are_passed_over() -> None:
    report = make_report()
    document = json.loads(render_json(report)) | {"new key": {"a": [1]}}
    document["findings"][0]["new"] = 1
    document["findings"][0]["subject"]["new"] = 1
    assert len(baseline.of_json(json.dumps(document).encode(), "x")) == len(report.findings)


def compared() -> Report:
    now = make_report()
    first, second = now.findings
    then = reported(replace(first, share=0.2), finding("sync.drain", title="Drained <b>", subject=EARLIER, share=0.11))
    assert second.rule == "transfer.pageable"
    return replace(now, baseline=baseline.compare(now, baseline.of_report(then), "main.json"))


def test_the_text_tells_what_changed() -> None:
    report = compared()
    text = render_text(report)
    assert (
        "Against the baseline main.json\n"
        "  1 new, 1 worse, 0 known, 1 gone. Worse: the share of the window rose by more\n"
        "  than 2.0 %.\n" in text
    )
    flat = " ".join(text.split())
    was_idle = "worse: GPU starved by the host: loading data in 'step #': 20.0 % of the window then, 37.5 % now"
    assert f"{was_idle} [{report.findings[0].id}]" in flat
    assert f"new: Copies from pageable memory [{report.findings[1].id}]" in flat
    assert "gone: Drained <b>, GPU 0, 11.0 % of the window then (rule sync.drain)" in flat
    assert "critical, worse, high confidence, rule idle.gpu" in flat
    assert "critical, new: Copies from pageable memory" in flat
    assert all(len(line) <= 80 for line in text.splitlines())


@pytest.mark.parametrize("width", [24, 80])
def test_what_a_baseline_says_is_made_safe(width: int) -> None:
    nasty = "\x1b[2J\u202eevil\n" + "k" * 2_000
    gone = {"rule": nasty, "title": nasty, "severity": "info", "subject": {"device": 0, "kernel": nasty}, "share": 0.5}
    document = {"schema": "diag.report/1", "findings": [gone]}
    earlier = baseline.of_json(json.dumps(document).encode(), nasty)
    now = make_report()
    text = render_text(replace(now, baseline=baseline.compare(now, earlier, nasty)), width=width)
    assert all(cells(line) <= width and line.isprintable() for line in text.splitlines())


def test_markdown_and_json_tell_it_too() -> None:
    report = compared()
    markdown = render_markdown(report)
    assert "### Against the baseline `main.json`" in markdown
    assert "- gone: Drained &lt;b&gt;, GPU 0, 11.0 % of the window then (rule sync.drain)" in markdown
    assert "- critical, new: **Copies from pageable memory**" in markdown
    document = json.loads(render_json(report))
    assert [(each["standing"], each["share_before"]) for each in document["findings"]] == [
        ("worse", 0.2),
        ("new", None),
    ]
    assert document["baseline"]["margin"] == 0.02
    assert [each["rule"] for each in document["baseline"]["gone"]] == ["sync.drain"]


def test_without_a_baseline_nothing_is_said_of_one() -> None:
    report = make_report()
    assert "baseline" not in render_text(report).lower()
    assert json.loads(render_json(report))["baseline"] is None


def test_only_what_is_new_or_worse_fails() -> None:
    report = compared()
    known = replace(report, baseline=baseline.compare(report, baseline.of_report(report), "main.json"))
    assert baseline.failures(known, ["warning", "critical"]) == []
    assert [each.rule for each in baseline.failures(report, ["critical"])] == ["idle.gpu", "transfer.pageable"]
    assert len(baseline.failures(replace(report, baseline=None), ["critical"])) == 2
    assert baseline.failures(report, ["info"]) == []
