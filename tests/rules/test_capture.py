"""Whether the capture can be trusted: lost events, launches out of sight, the profiler's own cost."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from diag.rules.finding import CannotTell, Clear, Finding
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Analyse, Ask, Query, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene, fed, starved, too_short


def with_message(severity: str, text: str) -> NsysExport:
    scene = fed()
    scene.export.diagnostic(severity, text)
    return scene.export


def of_report(declared: int, read: int, losses: str = "", unread: Mapping[str, int] = {}) -> NsysExport:
    scene = fed()
    scene.export.read_from_report(declared, read, losses, unread)
    return scene.export


def with_unseen_launches(n_unseen: int, n: int = 20) -> NsysExport:
    """n back-to-back kernels, of which the first were launched before the capture began."""
    scene = fed(n)
    for row in scene.export.rows["CUPTI_ACTIVITY_KIND_KERNEL"][:n_unseen]:
        row["correlationId"] = 1_000_000
    return scene.export


def with_overhead(label: str, *times: tuple[int, int]) -> NsysExport:
    scene = fed()
    for start, end in times:
        scene.main.overhead(label, start, end)
    return scene.export


def replaying(n_unseen: int, n: int = 10) -> NsysExport:
    """n launches of a graph of two nodes of 40, one per 100; of the last n_unseen nothing was recorded.

    A kernel at the end keeps the window at 100 n + 100, or less its launch would not be in it.
    """
    scene = Scene()
    for i in range(n):
        launch = scene.main.call("cudaGraphLaunch_v10000", 100 * i, 100 * i + 5)
        if i < n - n_unseen:
            scene.gpu.nodes(100 * i + 10, 40, 2, launch)
    scene.main.launch(scene.gpu, called=100 * n, start=100 * n + 10, end=100 * n + 110)
    return scene.export


def replaying_as_a_whole(duration: int) -> NsysExport:
    """Ten launches of a graph, each recorded as one row, and a kernel until 1000."""
    scene = Scene()
    for i in range(10):
        launch = scene.main.call("cudaGraphLaunch_v10000", 50 * i, 50 * i + 5)
        scene.gpu.graph(50 * i, 50 * i + duration, correlation=launch)
    scene.main.launch(scene.gpu, called=500, start=510, end=1000)
    return scene.export


CASES = {
    "capture.lost": ThreeCases(
        fires=lambda: with_message("Warning", "Not all CUDA events might have been collected."),
        clear=lambda: with_message("Warning", "CPU IP/backtrace sampling not supported, disabling."),
        untold=lambda: fed().export,
    ),
    "capture.unread": ThreeCases(
        fires=lambda: of_report(declared=100, read=60, losses="its end is missing"),
        clear=lambda: of_report(declared=100, read=100),
        untold=lambda: of_report(declared=100, read=97, unread={"115": 3, "107.101.36": 19}),
    ),
    "capture.coverage": ThreeCases(
        fires=lambda: with_unseen_launches(5),
        clear=lambda: with_unseen_launches(1),
        untold=lambda: fed().export.drop("CUPTI_ACTIVITY_KIND_RUNTIME"),
    ),
    "capture.profiler_cost": ThreeCases(
        fires=lambda: with_overhead("Buffer flush (Profiler)", (100, 150)),
        clear=lambda: with_overhead("Buffer flush (Profiler)", (100, 149)),
        untold=lambda: fed().export,
    ),
    "capture.graphs": ThreeCases(
        fires=lambda: replaying(n_unseen=3),
        clear=lambda: replaying(n_unseen=0),
        untold=lambda: replaying(n_unseen=3).drop("CUPTI_ACTIVITY_KIND_RUNTIME"),
    ),
}


def test_events_that_a_damaged_report_lost_are_counted(ask: Ask) -> None:
    finding = only_finding(ask("capture.unread", of_report(declared=100, read=60, losses="x", unread={"115": 30})))
    assert figures(finding)["lost events"] == 10


def test_what_is_not_understood_is_named_and_counted(ask: Ask) -> None:
    (answer,) = ask("capture.unread", of_report(declared=100, read=70, unread={"115": 30, "107.4": 1}))
    assert isinstance(answer, CannotTell)
    assert answer.because.endswith("115 in 30 events, 107.4 in 1 event")


def test_an_export_by_nsys_is_not_asked_what_the_report_held(ask: Ask) -> None:
    assert ask("capture.unread", fed().export) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Not all OS runtime libraries events might have been collected.", "OS runtime libraries"),
        ("3 events were dropped", "3 events were dropped"),
        ("Some events were lost due to a full buffer", "Some events were lost due to a full buffer"),
    ],
)
def test_messages_that_speak_of_lost_events(ask: Ask, text: str, told: str) -> None:
    finding = only_finding(ask("capture.lost", with_message("Error", text)))
    assert told in finding.claim
    assert finding.severity == "info"


def test_equal_messages_are_listed_once(ask: Ask) -> None:
    export = with_message("Warning", "Not all CUDA events might have been collected.")
    export.diagnostic("Warning", "Not all CUDA events might have been collected.")
    finding = only_finding(ask("capture.lost", export))
    assert finding.claim.count("CUDA") == 1
    assert figures(finding)["messages"] == 2


def test_a_message_that_only_informs_is_no_loss(ask: Ask) -> None:
    (answer,) = ask("capture.lost", with_message("Info", "Not all CUDA events might have been collected."))
    assert isinstance(answer, Clear)


def test_coverage_counts_operations_and_kernels(ask: Ask) -> None:
    export = with_unseen_launches(5)
    gpu = export.process(100).gpu()
    for start in range(2000, 2050, 10):
        gpu.copy(start, start + 10, 64)
    found = figures(only_finding(ask("capture.coverage", export)))
    assert found["operations without a launching call"] == 10
    assert found["their share"] == pytest.approx(10 / 25)
    assert found["share of kernels"] == pytest.approx(5 / 20)


def test_what_the_driver_needs_is_no_cost_of_the_profiler(ask: Ask) -> None:
    (answer,) = ask("capture.profiler_cost", with_overhead("Command buffer full (CUDA)", (0, 900)))
    assert isinstance(answer, Clear)


def test_cost_is_a_union_cut_to_the_window(ask: Ask) -> None:
    times = ((-500, 100), (50, 150), (900, 5000))
    finding = only_finding(ask("capture.profiler_cost", with_overhead("Instrumentation (Profiler)", *times)))
    assert figures(finding)["profiler's own work"] == 150 + 100
    assert finding.share == pytest.approx(250 / 1000)
    assert (finding.severity, finding.recoverable_ns) == ("info", None)


def test_cost_is_told_by_kind_and_by_what_the_device_did_meanwhile(ask: Ask) -> None:
    """Of each period of 100 the device idles from 80 on, the host being late until 95."""
    scene = starved()
    scene.main.overhead("Buffer flush (Profiler)", 70, 90)
    scene.main.overhead("Instrumentation (Profiler)", 180, 198)
    scene.main.process.thread(101).overhead("Buffer flush (Profiler)", 280, 300)
    finding = only_finding(ask("capture.profiler_cost", scene.export))
    found = figures(finding)
    assert found["profiler's own work"] == 20 + 18 + 20
    assert found["while the device idles"] == 10 + 18 + 20
    assert found["on the thread waited for"] == 10 + 15
    assert found["profiler: Buffer flush"] == 20 + 20
    assert found["profiler: Instrumentation"] == 18


def test_little_cost_matters_where_the_device_idles(ask: Ask) -> None:
    """Two hundredths of the window are little, but idle time."""
    busy, idle = starved(), starved()
    busy.main.overhead("Buffer flush (Profiler)", 0, 20)
    idle.main.overhead("Buffer flush (Profiler)", 80, 100)
    assert not any(isinstance(answer, Finding) for answer in ask("capture.profiler_cost", busy.export))
    assert figures(only_finding(ask("capture.profiler_cost", idle.export)))["while the device idles"] == 20


def test_cost_outside_the_window_is_none(ask: Ask) -> None:
    (answer,) = ask("capture.profiler_cost", with_overhead("Buffer flush (Profiler)", (-500, 0), (1000, 5000)))
    assert isinstance(answer, Clear)


def test_old_exports_name_the_profilers_work(ask: Ask) -> None:
    scene = fed()
    scene.main.profiler_overhead("CUDA profiling data flush overhead", 100, 200)
    scene.main.profiler_overhead("Command buffer full", 300, 900)
    assert figures(only_finding(ask("capture.profiler_cost", scene.export)))["profiler's own work"] == 100


def test_a_window_of_few_operations_has_no_share_to_cost(ask: Ask) -> None:
    scene = too_short()
    scene.main.overhead("Buffer flush (Profiler)", 0, 500)
    (answer,) = ask("capture.profiler_cost", scene.export)
    assert isinstance(answer, CannotTell)


def test_the_rows_behind_the_capture_can_be_looked_at(ask: Ask, query: Query) -> None:
    unseen = with_unseen_launches(5)
    assert len(query(unseen, only_finding(ask("capture.coverage", unseen)).evidence[0])) == 5
    costly = with_overhead("Buffer flush (Profiler)", (100, 150), (5000, 5100))
    cost = only_finding(ask("capture.profiler_cost", costly)).evidence[0]
    assert [row[1:] for row in query(costly, cost)] == [(100, 150, "Buffer flush")]


def test_what_is_missing_is_said(ask: Ask) -> None:
    (answer,) = ask("capture.coverage", starved().export.drop("CUPTI_ACTIVITY_KIND_RUNTIME"))
    assert isinstance(answer, CannotTell)
    assert answer.because == "CUDA API calls were not captured (nsys profile --trace=cuda)"


def test_graph_launches_without_rows_make_idle_time_an_upper_bound(ask: Ask, report_on: Analyse, query: Query) -> None:
    export = replaying(n_unseen=3)
    finding = only_finding(ask("capture.graphs", export))
    found = figures(finding)
    assert (found["graph launches with rows"], found["graph launches without"]) == (7, 3)
    assert (finding.severity, finding.confidence, finding.recoverable_ns) == ("info", "low", None)
    assert [row[-1] for row in query(export, finding.evidence[1])] == [2] * 6 + [
        0
    ] * 3  # the first began before the window
    report = report_on(replaying(n_unseen=3))
    assert (report.devices[0].busy_is_lower_bound, report.devices[0].busy_is_upper_bound) == (True, False)
    (idle,) = (finding for finding in report.findings if finding.rule == "idle.gpu")
    assert "upper bound: 3 launches of CUDA graphs left no row" in idle.claim
    assert idle.confidence == "low"


def test_a_launch_that_ran_nothing_left_nothing_out(ask: Ask) -> None:
    """One failed, one put its graph into another that was being captured, one came after the last work."""
    export = replaying(n_unseen=0)
    main = export.process(100).thread()
    main.call("cudaGraphLaunch_v10000", 200, 205)
    export.rows["CUPTI_ACTIVITY_KIND_RUNTIME"][-1]["returnValue"] = 700
    main.call("cudaStreamBeginCapture_v10000", 300, 310)
    main.call("cudaGraphLaunch_v10000", 320, 325)
    main.call("cudaStreamEndCapture_v10000", 330, 340)
    main.call("cudaGraphLaunch_v10000", 5000, 5005)
    (answer,) = ask("capture.graphs", export)
    assert isinstance(answer, Clear)


def test_calls_inside_each_other_are_one_launch(ask: Ask) -> None:
    export = replaying(n_unseen=3)
    main = export.process(100).thread()
    for row in list(export.rows["CUPTI_ACTIVITY_KIND_RUNTIME"]):
        main.call("cuGraphLaunch", row["start"] + 1, row["end"] - 1, correlation=row["correlationId"])
    found = figures(only_finding(ask("capture.graphs", export)))
    assert (found["graph launches with rows"], found["graph launches without"]) == (7, 3)


def test_work_of_a_graph_on_another_device_is_not_missing(ask: Ask) -> None:
    export = replaying(n_unseen=3)
    other = export.process(100).gpu(1)
    for row in export.rows["CUPTI_ACTIVITY_KIND_RUNTIME"][7:10]:
        other.nodes(row["start"] + 10, 40, 2, row["correlationId"])
    answers = ask("capture.graphs", export)
    assert not any(isinstance(answer, Finding) for answer in answers)


def test_launches_that_are_one_row_hide_the_gaps_inside(ask: Ask) -> None:
    finding = only_finding(ask("capture.graphs", replaying_as_a_whole(2)))
    assert finding.title == "CUDA graphs are recorded as a whole"
    assert figures(finding)["their time"] == 20
    (answer,) = ask("capture.graphs", replaying_as_a_whole(1))
    assert isinstance(answer, Clear)


def test_what_is_known_by_its_name_cannot_be_told_when_the_names_are_lost(ask: Ask) -> None:
    """Locks, communication and synchronisation are: a rule that finds none of them has looked for nothing."""
    whole, lost = fed(), fed()
    lost.export.read_from_report(declared=60, read=60, losses="the names are lost")
    for rule in ("sync.drain", "overlap.communication"):
        assert [type(answer) for answer in ask(rule, whole.export)] == [Clear]
        (answer,) = ask(rule, lost.export)
        assert isinstance(answer, CannotTell)
        assert "names" in answer.because


def test_findings_are_uncertain_when_the_names_are_lost(ask: Ask) -> None:
    scene = starved()
    scene.export.read_from_report(declared=60, read=60, losses="the names are lost")
    finding = only_finding(ask("idle.gpu", scene.export))
    assert finding.confidence == "low"
    assert not [evidence for evidence in finding.evidence if "synchronising" in evidence.label]
