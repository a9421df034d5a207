"""The report for a terminal: it fits, it is safe, and it says what matters in order."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from diag.render import RENDERERS, phrases, render_finding, render_text
from diag.render.layout import cells
from diag.rules.finding import CannotTell, Clear, Evidence, Subject
from diag.rules.report import ChangedThreshold, Part, Report, Verdict

MS = 1_000_000

NAMES = {
    "long": "void gemm<" + "float, " * 285 + ">",
    "unbroken": "k" * 2_000,
    "wide": "行列積カーネル " * 100,
    "escape": "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\u2066\n\r\x00",
    "surrogate": "caf\udce9\ud800",
    "marks": "e" + "\u0301" * 2_000,
    "empty": "",
}


@pytest.mark.parametrize("width", [24, 33, 80, 132, 300])
def test_no_line_is_wider_than_asked_for(any_report: Report, width: int) -> None:
    for in_full in (False, True):
        for line in render_text(any_report, width=width, explain_all=in_full).split("\n"):
            assert cells(line) <= width, line


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [24, 80])
def test_no_name_breaks_the_page(hostile: Callable[[str], Report], name: str, width: int) -> None:
    text = render_text(hostile(NAMES[name]), width=width, explain_all=True)
    for line in text.split("\n"):
        assert cells(line) <= width, line
        assert line.isprintable(), repr(line)
    text.encode("utf-8")


def test_color_changes_nothing_but_color(any_report: Report) -> None:
    colored = render_text(any_report, color=True)
    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == render_text(any_report)


def test_the_verdict_comes_first_and_the_rest_in_order(report: Report) -> None:
    text = render_text(report)
    assert text.startswith(report.verdict.title)
    headings = [line for line in text.splitlines() if line and not line.startswith(" ")]
    assert headings[1:] == [
        "Why",
        "What to do",
        "What would refute it",
        "What could be won",
        "Also found",
        "Devices",
        "Copies",
        "Hottest kernels, by share of kernel time",
        "Ranges",
        "Cannot tell",
        "Clear",
        "Read",
    ]


def test_evidence_is_aligned_and_has_units(report: Report) -> None:
    text = render_text(report)
    assert (
        "  idle           36.0 ms\n  gaps                 9\n  of the window   37.5 %\n  first range    step #\n"
        "  idle: window - union of all GPU operations; gaps: number of idle intervals; of"
    ) in text


def test_a_part_and_other_thresholds_are_told_before_anything_else(report: Report) -> None:
    window = Part((100 * MS, 300 * MS), None, 200 * MS, 929 * MS)
    inside = Part(None, "step #", 90 * MS, 929 * MS)
    both = Part((100 * MS, 300 * MS), "step #", 90 * MS, 929 * MS)
    for part, said in (
        (window, "Part: 100.0 ms to 300.0 ms of 929.0 ms."),
        (inside, "Part: inside 'step #' (90.0 ms of 929.0 ms)."),
        (both, "Part: inside 'step #', 100.0 ms to 300.0 ms (90.0 ms of 929.0 ms)."),
    ):
        assert render_text(replace(report, part=part)).splitlines()[1] == f"  {said}"
    changed = replace(report, changed_thresholds=[ChangedThreshold("idle.gpu", "share", 0.02, 0.5)])
    assert render_text(changed).splitlines()[1] == "  Thresholds changed: idle.gpu.share 0.02 → 0.5."
    assert "\n\nThresholds changed: idle.gpu.share 0.02 → 0.5.\n\n" in RENDERERS["markdown"](changed)


def test_parts_stand_below_what_they_are_parts_of(report: Report) -> None:
    labels = ("late: running", "late", "idle", "late: in calls", "late: in calls: waiting", "other: alone")
    parts = [Evidence(label, 1_000, "ns", "") for label in labels]
    lead = replace(report.findings[0], evidence=parts)
    text = render_text(replace(report, findings=[lead]))
    shown = [line.removesuffix("1.0 µs").rstrip() for line in text.splitlines() if line.endswith("1.0 µs")]
    assert shown == ["  late", "    running", "    in calls", "      waiting", "  idle", "  other: alone"]


def test_a_narrow_terminal_says_which_columns_it_leaves_out(report: Report) -> None:
    text = render_text(report, width=56)
    assert "  Too narrow here for: copies, comm." in text
    assert "Too narrow" not in render_text(report)


def test_names_of_devices_are_wrapped_not_cut(report: Report) -> None:
    (device,) = report.devices
    named = replace(device, name="NVIDIA RTX 6000 Ada Generation, a second board", n_kernels=20)
    text = render_text(replace(report, devices=[named]), width=72)
    table = text[text.index("Devices") : text.index("The window runs")]
    assert "…" not in table
    assert "NVIDIA" not in table
    assert "pid" not in table
    assert "second" in table


def test_every_finding_can_be_asked_for(report: Report) -> None:
    for text in (render_text(report), render_text(report, explain_all=True)):
        assert all(finding.id in text for finding in report.findings)


def test_bounds_are_called_bounds_and_overlaps_are_told(report: Report) -> None:
    text = " ".join(render_text(report).split())
    assert "At most 6.0 ms could be won, 6.2 % of the window." in text
    assert f"Partly the same time as {report.findings[0].id}: do not add them up." in text


def test_a_reason_is_given_once_for_all_its_rules(report: Report) -> None:
    assert render_text(report).count("host.hot, host.os_calls") == 1
    assert "- host.hot, host.os\\_calls: CPU samples were not captured" in RENDERERS["markdown"](report)


def test_many_rules_are_counted_in_a_terminal_and_named_elsewhere(report: Report) -> None:
    names = [f"rule.{i}" for i in range(9)]
    untold = [CannotTell(Subject(source=1), "too few operations", name) for name in names]
    many = replace(report, cannot_tell=untold)
    assert "  9 rules: too few operations\n" in render_text(many)
    assert f"- {', '.join(names)}: too few operations" in RENDERERS["markdown"](many)


def test_what_is_clear_in_part_is_told_once(report: Report) -> None:
    here = report.clear[0].subject
    half = replace(report, cannot_tell=[CannotTell(here, "loading was not captured", "launch.bound")])
    text = render_text(half)
    assert "Cannot tell" not in text
    assert "launch.bound (in part), sync.drain" in text
    elsewhere = replace(here, device=1)
    other = replace(report, cannot_tell=[CannotTell(elsewhere, "loading was not captured", "launch.bound")])
    assert "launch.bound: loading was not captured" in render_text(other)


def test_of_several_inputs_each_reason_says_which(two_devices: Report) -> None:
    sources = [replace(two_devices.sources[0], id=i, path=f"day{i}.sqlite") for i in (1, 2, 3, 4)]
    devices = [*two_devices.devices, *(replace(two_devices.devices[0], source=i) for i in (2, 3, 4))]

    def said(*abouts: Subject) -> str:
        untold = [CannotTell(about, "too few", "sync.drain") for about in abouts]
        clear = [Clear(Subject(4, 9946, 0), "sync.drain")]
        full = replace(two_devices, sources=sources, devices=devices, clear=clear, cannot_tell=untold)
        return render_text(replace(full, findings=[], verdict=Verdict("Fine", "All is well.", None)), width=100)

    of_first = [Subject(1, 9946, 0), Subject(1, 77, 1)]
    assert "  sync.drain (day1): too few\n" in said(*of_first)
    assert "  sync.drain (day2; day3): too few\n" in said(Subject(2), Subject(3))
    assert "  sync.drain (GPU 1, pid 77, day1): too few\n" in said(of_first[1])
    assert "  sync.drain (3 of 5 devices): too few\n" in said(*of_first, Subject(2, 9946, 0))
    assert "  sync.drain (3 of 4 inputs): too few\n" in said(Subject(1), Subject(2), Subject(3))


def test_captures_that_would_tell_are_one_list(report: Report) -> None:
    reasons = {"host.locks": "waits were not captured (nsys profile --trace=osrt)", "sync.drain": "too few"}
    untold = [CannotTell(Subject(source=1), because, rule) for rule, because in reasons.items()]
    text = render_text(replace(report, clear=[], cannot_tell=[*report.cannot_tell, *untold]))
    assert text.count("Capture with nsys profile: ") == 1
    words = " ".join(text.split())
    assert "--sample=process-tree for host.hot, host.os_calls; --trace=osrt for host.locks sync.drain: too few" in words


def test_of_many_kernels_each_section_of_ncu_is_named_once(report: Report) -> None:
    untold = [
        CannotTell(Subject(source=1), f"m__{number}.sum was not collected (ncu --section SpeedOfLight)", "ncu.roofline")
        for number in range(20)
    ]
    many, few = (render_text(replace(report, cannot_tell=some)) for some in (untold, untold[:2]))
    assert many.count("(ncu --section SpeedOfLight)") == 1
    assert "metrics were not collected" in many
    assert "m__1.sum was not collected" in few


def test_labels_of_figures_take_the_room_that_numbers_leave(report: Report) -> None:
    label = "Sectors that the L1 caches held when they were asked for"
    (first, *others) = report.findings
    told = replace(first, evidence=[Evidence(label, 36.8, "percent", "")])
    assert label in render_text(replace(report, findings=[told, *others]), width=80)


def test_in_full_every_number_opens_to_formula_and_query(report: Report) -> None:
    text = render_text(report, explain_all=True)
    assert text.count("  idle = window - union of all GPU operations\n    SELECT start_ns FROM gpu_op\n") == 2


def test_a_finding_stands_alone(report: Report) -> None:
    text = render_finding(report.findings[1])
    assert text.startswith("Copies from pageable memory\n")
    assert "    SELECT start_ns FROM gpu_op\n" in text
    assert "At most 6.0 ms could be won." in text


def test_a_host_report_has_no_device_tables(host_report: Report) -> None:
    text = render_text(host_report)
    assert "Devices" not in text
    assert "Hottest" not in text
    assert "idle.gpu: the capture has no GPU work" in text


def test_two_devices_are_told_apart(two_devices: Report) -> None:
    text = " ".join(render_text(two_devices).split())
    assert "GPU 1, pid 77 [" in text
    assert "Hottest kernels on GPU 0, pid 9946, by share of kernel time" in text
    assert "GPU 1, pid 77: transfer.pageable" in text
    assert "transfer.pageable (GPU 0, pid 9946): too few operations" in text
    assert "Busy is an upper bound, as each CUDA graph launch is one row: GPU 1, pid 77." in text
    assert "Exposed communication: 20.8 % (GPU 1, pid 77)." in text


def test_the_same_on_many_devices_is_told_once(two_devices: Report) -> None:
    lead, same = two_devices.findings
    more = [replace(same, subject=Subject(source=1, process=77, device=1, stream=stream)) for stream in (7, 8)]
    text = render_text(replace(two_devices, findings=[lead, same, *more]))
    assert text.count("For 35.0 ms of it") == 1
    assert "Also found\n  Likewise: GPU 1, pid 77 [" in text
    assert all(finding.id in text for finding in (same, *more))


def test_only_findings_of_one_rule_and_title_are_told_together(report: Report) -> None:
    _, copies = report.findings
    here = Subject(source=1, process=9946, device=1)
    others = [replace(copies, title="Copies that block", subject=here), replace(copies, rule="other", subject=here)]
    assert phrases.alike([copies, *others]) == [[copies], [others[0]], [others[1]]]
    first, same, other = (
        replace(copies, next=[step]) for step in ("Look at f (46 %).", "Look at f (9 %).", "Look at g (9 %).")
    )
    assert phrases.alike([first, same, other]) == [[first, same], [other]]
    assert "Likewise" not in render_text(replace(report, findings=[*report.findings, *others]))


def test_what_a_bound_assumes_is_said_with_it(report: Report) -> None:
    lead, copies = report.findings
    overlapped = replace(copies, counterfactual="Perfect overlap would win 6.0 ms at most; copying less can win more.")
    text = " ".join(render_text(replace(report, findings=[lead, overlapped])).split())
    assert "copying less can win more." in text
    assert "could be won" not in text.partition("Also found")[2]


def test_what_is_uncertain_comes_last_of_its_severity(report: Report) -> None:
    lead, copies = report.findings
    unsure = replace(copies, rule="unsure", confidence="low", share=0.5)
    mild = replace(copies, rule="mild", share=0.03)
    found = phrases.others(replace(report, findings=[lead, unsure, copies, mild]))
    assert [finding.rule for finding in found] == ["transfer.pageable", "unsure", "mild"]


def test_findings_of_unequal_severity_are_told_apart(two_devices: Report) -> None:
    lead, same = two_devices.findings
    milder = replace(same, share=0.01, subject=Subject(source=1, process=77, device=1, stream=7))
    assert phrases.alike([lead, same, milder]) == [[lead, same], [milder]]


def test_what_was_not_captured_is_no_zero(report: Report) -> None:
    (source,) = report.sources
    text = render_text(replace(report, sources=[replace(source, capabilities={"kernel": 10, "copy": None})]))
    row = next(line for line in text.splitlines() if line.startswith("  GPU 0"))
    assert row.split()[-5:] == ["52.1", "%", "-", "0", "%"]


def test_a_report_without_findings_is_short(report: Report) -> None:
    calm = replace(
        report,
        verdict=Verdict("Nothing stands out", "The GPU is busy.", None),
        findings=[],
        overlaps={},
        clear=[Clear(Subject(source=1), "idle.gpu")],
    )
    text = render_text(calm)
    assert text.startswith("Nothing stands out\n  The GPU is busy.\n\nDevices\n")


def test_what_a_format_never_tells_takes_one_line(report: Report) -> None:
    never = [
        CannotTell(Subject(source=1), f"{rule} was not captured (nsys)", rule, beyond_format=True)
        for rule in ("host.os_calls", "capture.lost")
    ]
    text = render_text(replace(report, cannot_tell=[*never, CannotTell(Subject(source=1), "too few", "sync.drain")]))
    assert "Cannot tell\n  sync.drain: too few\n  host.os_calls, capture.lost: no trace of this format tells" in text
    assert "was not captured" not in text


def test_long_lists_are_cut_and_counted(report: Report) -> None:
    many = [replace(report.findings[1], title=f"finding {i}", level="info") for i in range(8)]
    many.append(replace(many[0], title="finding 8", level="warning", confidence="low"))
    text = render_text(replace(report, findings=[report.findings[0], *many]), top=3)
    assert "finding 1" in text
    assert "finding 2" not in text
    assert "  6 more findings (6 info): transfer.pageable (6). --top 9 shows them." in text
    grave = [replace(finding, level="critical") for finding in many[:4]]
    text = " ".join(render_text(replace(report, findings=[report.findings[0], *grave, *many[4:]]), top=3).split())
    assert "6 more findings (1 critical, 1 warning, 4 info): transfer.pageable (6). --top 9" in text


@pytest.mark.parametrize("name", RENDERERS)
def test_all_renderers_end_with_one_newline_and_repeat_themselves(any_report: Report, name: str) -> None:
    text = RENDERERS[name](any_report, width=80, color=False, top=5)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert text == RENDERERS[name](any_report)


def test_sources_are_called_by_what_is_their_own(report: Report) -> None:
    (one,) = report.sources
    other = replace(one, id=2, path="runs/tuesday.sqlite")
    other_kind = replace(one, id=2, path="runs/monday.json.gz")
    same_name = replace(one, id=2, path="other/monday.sqlite")
    ranks = [replace(one, rank=0), replace(same_name, rank=1)]
    titles = {
        "GPU 0, Tesla T4, monday": [one, other],
        "GPU 0, Tesla T4, monday.sqlite": [one, other_kind],
        "GPU 0, Tesla T4, runs/monday.sqlite": [one, same_name],
        "GPU 0, Tesla T4, rank 0": ranks,
    }
    for title, sources in titles.items():
        assert f"  {title}  " in render_text(replace(report, sources=sources), width=120)


def test_occupancy_has_a_column_where_it_is_known(report: Report, occupied: Report) -> None:
    text = render_text(occupied)
    assert "launches  median  occ.  kernel" in text
    assert "10  5.0 ms  75 %  gemm" in text
    assert "10  5.0 ms     -  relu" in text
    assert "occ.: theoretical occupancy" in text
    assert "occ." not in render_text(report)


def test_kernels_of_one_short_name_are_told_apart(report: Report) -> None:
    (kernel,) = report.kernels
    functors = ("at::native::AddFunctor<float>", "at::native::MulFunctor<float>")
    names = [f"void at::native::vectorized_elementwise_kernel<(int)4, {functor}>(int, T2)" for functor in functors]
    rows = [replace(kernel, name=name, short_name="vectorized_elementwise_kernel") for name in names]
    text = render_text(replace(report, kernels=rows))
    assert "AddFunctor<float>" in text
    assert "MulFunctor<float>" in text
    wide = render_text(replace(report, kernels=rows), width=120)
    assert "  vectorized_elementwise_kernel<4, AddFunctor<float>>\n" in wide


def test_of_many_inputs_a_few_are_shown_and_all_are_counted(report: Report) -> None:
    (source,) = report.sources
    (device,) = report.devices
    sources = [replace(source, id=i, path=f"runs/rank{i}.sqlite") for i in range(1, 41)]
    devices = [replace(device, source=i, idle_ns=i, busy_ns=device.window_ns - i) for i in range(1, 41)]
    many = replace(report, sources=sources, devices=devices, notes={40: ["One row was left out."]})
    text = render_text(many)
    assert len(text.splitlines()) < 100
    rows = [line.split("  ")[1] for line in text.splitlines() if line.startswith("  GPU 0, Tesla T4, rank")]
    assert rows == [f"GPU 0, Tesla T4, rank{i}" for i in (1, 40, 39, 38, 37, 36, 35, 34)]  # the verdict's, then by idle
    assert "… and 32 more (--top 40). Shown are those that idle longest." in text
    assert "… and 32 more (--top 40). 1 note on them: --format json." in text
    assert "… and" not in render_text(many, top=40)
    assert "… and 32 more" in RENDERERS["markdown"](many)


def test_the_verdict_names_its_device_where_there_are_several(two_devices: Report) -> None:
    assert "rule idle.gpu, GPU 0, pid 9946; more:" in " ".join(render_text(two_devices).split())
