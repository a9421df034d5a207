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
from tests.render.conftest import MS, device, finding, make_report, source

EARLIER = Subject(source=3, process=1, device=0, window=(0, 5))
"""Of another process, source and window, but the same device ordinal."""


def reported(*findings: Finding, **changes: object) -> Report:
    return make_report(findings=list(findings), overlaps={}, clear=[], cannot_tell=[], **changes)


def standings(now: Report, then: Report, margin: float = 0.02) -> list[str]:
    comparison = baseline.compare(now, baseline.of_report(then), "main.json", margin)
    return [comparison.standing[each.id] for each in now.findings]


@pytest.mark.parametrize(
    ("share", "standing"),
    [
        (0.30, "known"),
        (0.3199, "known"),
        (0.33, "worse"),
        (0.2801, "known"),
        (0.27, "better"),
        (None, "known"),
    ],
)
def test_a_share_that_changed_by_more_than_the_margin_is_worse_or_better(share: float | None, standing: str) -> None:
    now, then = finding(share=share), finding(share=0.30, subject=replace(EARLIER, window=None))
    assert standings(reported(now), reported(then)) == [standing]


@pytest.mark.parametrize(
    ("then_ms", "now_ms", "share", "standing"),
    [
        (100, 50, 0.60, "known"),  # 30 ms of idle time then and now
        (100, 50, 0.63, "known"),  # 1.5 ms more are 1.5 % of the window then
        (100, 50, 0.65, "worse"),
        (100, 50, 0.30, "known"),  # half the time, but the same share
        (100, 50, 0.20, "better"),
        (100, 200, 0.15, "known"),  # 30 ms then and now: what else got slower hides nothing
        (100, 200, 0.145, "known"),
        (100, 200, 0.13, "better"),
        (100, 200, 0.40, "worse"),
    ],
)
def test_what_takes_no_more_time_is_not_worse(then_ms: int, now_ms: int, share: float, standing: str) -> None:
    then = reported(finding(share=0.30), devices=[device(window_ns=then_ms * MS)])
    now = reported(finding(share=share), devices=[device(window_ns=now_ms * MS)])
    assert standings(now, then) == [standing]


def test_of_the_host_its_own_window_counts() -> None:
    """Such a finding has no device."""
    then, now = (
        finding("host.hot", share=share, subject=Subject(1, 5, window=(0, length_ns)))
        for share, length_ns in ((0.3, 100), (0.5, 60))
    )
    assert standings(reported(now), reported(then)) == ["known"]
    assert standings(reported(then), reported(now)) == ["known"]


def test_a_fact_that_is_no_fault_gets_neither_worse_nor_better() -> None:
    hot = finding("kernels.hot", share=0.9, level="info")
    cold = replace(hot, share=0.1)
    assert standings(reported(hot), reported(cold)) == ["known"]
    assert standings(reported(cold), reported(hot)) == ["known"]


def test_the_margin_can_be_chosen() -> None:
    now, then = reported(finding(share=0.32)), reported(finding(share=0.30))
    assert standings(now, then, margin=0.0) == ["worse"]
    assert standings(now, then, margin=0.5) == ["known"]


@pytest.mark.parametrize(
    ("before", "now", "is_other"),
    [
        ("GPU starved by the data loader", "GPU starved: the host launches too late", True),
        ("Synchronisation drains the device (a)", "Synchronisation drains the device (a)", False),
        ("12 small copies between host and device", "1 small copy between host and device", False),
        ("Waits in conv2d", "Waits in conv3d", True),
    ],
)
def test_another_title_that_is_no_other_figure_is_another_cause(before: str, now: str, is_other: bool) -> None:
    then = baseline.of_report(reported(finding(title=before)))
    first = finding(title=now)
    told = baseline.compare(reported(first), then, "x").before[first.id]
    assert (told.title, told.is_other_cause) == (before, is_other)


def test_windows_are_compared_of_devices_that_can_be_told_apart() -> None:
    def ranks(*lengths_ms: int, **changes: object) -> Report:
        rows = [device(source=i, process=i, window_ns=ms * MS, **changes) for i, ms in enumerate(lengths_ms)]
        sources = [source(id=i, rank=7 + i) for i in range(len(lengths_ms))]
        return reported(devices=rows, sources=sources)

    def changes(now: Report, then: Report) -> list[tuple[int, int, int]]:
        told = baseline.compare(now, baseline.of_report(then), "x").windows
        return [(change.source, change.before_ns // MS, change.window_ns // MS) for change in told]

    assert changes(ranks(80, 90), ranks(100, 60, 50)) == [(0, 100, 80), (1, 60, 90)]
    assert changes(ranks(80), ranks(100, is_scoped=True)) == []
    two_processes = reported(devices=[device(), device(process=2)])
    assert changes(two_processes, two_processes) == []


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
    fewer = [replace(each, share=(each.share or 0.0) / 2) for each in ranks]
    assert standings(reported(*fewer), reported(*ranks)) == ["better", "better"]


def test_a_share_of_the_run_is_not_compared_with_one_of_the_kernels_that_were_profiled() -> None:
    of_window, of_profile = finding(share=0.01), finding(share=0.5, whole_ns=100 * MS)
    assert standings(reported(of_profile), reported(of_window)) == ["known"]
    assert standings(reported(of_window), reported(of_profile)) == ["known"]


def test_a_share_that_was_not_known_then_has_not_risen() -> None:
    assert standings(reported(finding(share=0.5)), reported(finding(share=None))) == ["known"]


def test_shares_of_profiled_kernels_are_told_as_such() -> None:
    now, then = finding(share=0.5, whole_ns=100 * MS), finding(share=0.1, whole_ns=100 * MS)
    report = reported(now)
    report = replace(report, baseline=baseline.compare(report, baseline.of_report(reported(then)), "main.json"))
    assert "10.0 % of the kernel time that was profiled then, 50.0 % now" in " ".join(render_text(report).split())


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
    assert len(baseline.of_json(json.dumps(document).encode(), "x").findings) == len(report.findings)


def test_a_report_from_before_windows_were_kept_is_a_baseline() -> None:
    document = {"schema": "diag.report/1", "findings": []}
    assert baseline.of_json(json.dumps(document).encode(), "x").windows_ns == {}


def compared() -> Report:
    now = make_report()
    first, second = now.findings
    drained = finding("sync.drain", title="Drained <b>", subject=EARLIER, share=0.11)
    then = reported(replace(first, title="Starved", share=0.1), drained, devices=[device(window_ns=192 * MS)])
    assert second.rule == "transfer.pageable"
    return replace(now, baseline=baseline.compare(now, baseline.of_report(then), "main.json"))


def test_the_text_tells_what_changed() -> None:
    report = compared()
    text = render_text(report)
    assert (
        "Against the baseline main.json\n"
        "  Window 192.0 ms → 96.0 ms (−50 %)\n"
        "  1 new, 1 worse, 0 better, 0 known, 1 gone. Worse: the share of the window rose\n"
        "  by more than 2.0 %, and so did the time.\n" in text
    )
    flat = " ".join(text.split())
    was_idle = "worse: GPU starved by the host: loading data in 'step #': 10.0 % of the window then, 37.5 % now"
    assert f"{was_idle}; cause changed: was 'Starved' [{report.findings[0].id}]" in flat
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
    assert "- Window 192.0 ms → 96.0 ms (−50 %)" in markdown
    assert "- gone: Drained &lt;b&gt;, GPU 0, 11.0 % of the window then (rule sync.drain)" in markdown
    assert "- critical, new: **Copies from pageable memory**" in markdown
    document = json.loads(render_json(report))
    assert [(each["standing"], each["share_before"], each["title_before"]) for each in document["findings"]] == [
        ("worse", 0.1, "Starved"),
        ("new", None, None),
    ]
    assert document["baseline"]["windows"] == [
        {"source": 1, "process": 9946, "device": 0, "before_ns": 192 * MS, "window_ns": 96 * MS}
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


def test_what_is_better_is_shown_and_does_not_fail() -> None:
    now = reported(finding(share=0.2))
    report = replace(now, baseline=baseline.compare(now, baseline.of_report(reported(finding(share=0.3))), "x"))
    assert "better: " in render_text(report)
    assert "30.0 % of the window then, 20.0 % now" in " ".join(render_text(report).split())
    assert baseline.failures(report, ["warning", "critical"]) == []
