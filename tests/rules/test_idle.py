"""Idle time: its share, and one cause for every idle nanosecond."""

from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Analyse, Ask, Query, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene, fed, starved, too_short

CASES = {
    "idle.gpu": ThreeCases(
        fires=lambda: starved().export,
        clear=lambda: fed().export,
        untold=lambda: too_short().export,
    ),
    "idle.shared": ThreeCases(
        fires=lambda: shared(100),
        clear=lambda: shared(85),
        untold=lambda: starved().export,
    ),
}


def shared(end: int) -> NsysExport:
    """A second process works on the same GPU in the first gap, from 80 on."""
    scene = starved()
    other = scene.export.process(200)
    scene.export.hardware(index=0, uuid="GPU-a")
    scene.main.process.sees(ordinal=0, hardware=0)
    other.sees(ordinal=0, hardware=0)
    gpu = other.gpu()
    gpu.kernel(80, end)
    return scene.export


def idle_figures(ask: Ask, export: NsysExport) -> dict[str, float | int | str]:
    return figures(only_finding(ask("idle.gpu", export)))


def test_host_late_and_launch_latency(ask: Ask) -> None:
    finding = only_finding(ask("idle.gpu", starved().export))
    found = figures(finding)
    assert found["idle"] == 9 * 20
    assert found["host late"] == 9 * 15
    assert found["launch latency"] == 9 * 5
    assert {"device side", "not captured", "used by another process"}.isdisjoint(found)
    assert finding.share == pytest.approx(180 / 980)
    assert finding.recoverable_ns == 135
    assert finding.severity == "critical"


def test_the_longest_gaps_say_where_to_look(ask: Ask) -> None:
    """Times count from the first event, the first launch at -5, as --window does."""
    scene = starved()
    scene.main.launch(scene.gpu, called=1495, start=1500, end=1580)
    assert idle_figures(ask, scene.export)["longest gaps"] == "520 ns at 985 ns, 20 ns at 85 ns, 20 ns at 185 ns"


def test_overlapping_work_is_counted_once(ask: Ask) -> None:
    scene = starved()
    for i in range(10):
        scene.gpu.memset(100 * i + 70, 100 * i + 90, 64)
    assert idle_figures(ask, scene.export)["idle"] == 9 * 10


def test_a_launch_before_the_gap_leaves_it_to_the_device(ask: Ask) -> None:
    scene = Scene()
    for i in range(10):
        scene.main.launch(scene.gpu, called=i - 20, start=100 * i, end=100 * i + 80)
    finding = only_finding(ask("idle.gpu", scene.export))
    found = figures(finding)
    assert found["device side"] == found["idle"] == 180
    assert finding.next[-1].startswith("Record the events")


def test_a_launch_at_the_start_of_the_gap_is_latency_alone(ask: Ask) -> None:
    scene = Scene()
    for i in range(10):
        scene.main.launch(scene.gpu, called=100 * i - 20, start=100 * i, end=100 * i + 80)
    found = idle_figures(ask, scene.export)
    assert found["launch latency"] == 180
    assert "host late" not in found


def test_without_a_call_the_cause_is_not_captured(ask: Ask) -> None:
    scene = starved(20)
    for row in scene.export.rows["CUPTI_ACTIVITY_KIND_KERNEL"][1:6]:
        row["correlationId"] = None
    finding = only_finding(ask("idle.gpu", scene.export))
    found = figures(finding)
    assert found["not captured"] == 5 * 20
    assert found["host late"] == 14 * 15
    assert finding.confidence == "medium"


def test_work_of_another_process_on_the_same_hardware_is_not_idle_time_of_the_host(ask: Ask) -> None:
    first, second = ask("idle.gpu", shared(100))
    found = figures(only_finding([first]))
    assert found["idle"] == 180 - 20
    assert found["host late"] == 135 - 15
    assert isinstance(second, CannotTell)
    finding = only_finding(ask("idle.shared", shared(100)))
    assert figures(finding)["used by another process"] == 20
    assert (finding.severity, finding.recoverable_ns) == ("info", None)


def beside(*processes: str) -> NsysExport:
    """Another process works through [0, 500), beside this one's kernels of 80 and in four gaps of 20 and some."""
    export = shared(100)
    del export.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-1]
    export.process(200).gpu().kernel(0, 500)
    for number, name in enumerate(processes):
        export.process(300 + number, name)
    return export


def test_others_work_beside_our_own_is_told_apart(ask: Ask) -> None:
    finding = only_finding(ask("idle.shared", beside()))
    found = figures(finding)
    assert found["both at once"] == 5 * 80
    assert found["used by another process"] == 5 * 20
    assert found["other processes"] == 1
    assert finding.share == pytest.approx(500 / 980)
    assert "pid 200" in finding.claim
    assert "is not known: no such server is among" in finding.claim


def test_an_mps_server_is_known_by_its_name(ask: Ask) -> None:
    assert "an MPS server is among" in only_finding(ask("idle.shared", beside("nvidia-cuda-mps-server"))).claim


def test_processes_on_one_slice_share_that_slice(ask: Ask) -> None:
    export = beside()
    export.rows["TARGET_INFO_GPU"][0]["uuid"] = "MIG-a"
    assert "this MIG slice" in only_finding(ask("idle.shared", export)).claim


def test_evidence_shows_the_work_of_all_processes(ask: Ask, query: Query) -> None:
    finding = only_finding(ask("idle.shared", beside()))
    assert len(query(beside(), finding.evidence[0])) == 11


def test_a_part_of_a_trace_keeps_what_caused_what(report_on: Analyse) -> None:
    """Of each gap [80, 100), launched at 85, the scope holds [90, 100): the launch lies outside it, but in the gap."""
    scene = Scene()
    for i in range(12):
        scene.main.launch(scene.gpu, called=100 * i - 15, start=100 * i, end=100 * i + 80)
        scene.main.range("step", 100 * i - 10, 100 * i + 80)
    report = report_on(scene.export, range_name="step")
    (finding,) = (finding for finding in report.findings if finding.rule == "idle.gpu")
    found = figures(finding)
    assert found["launch latency"] == found["idle"] == 11 * 10
    (device,) = report.devices
    assert (device.window_ns, device.lead_ns, device.tail_ns) == (80 + 11 * 90, 0, 0)


def test_several_launching_threads_are_told_apart(ask: Ask) -> None:
    scene = starved()
    other = scene.main.process.thread(101)
    for i in range(10, 14):
        other.launch(scene.gpu, called=100 * i - 5, start=100 * i, end=100 * i + 80)
    finding = only_finding(ask("idle.gpu", scene.export))
    found = figures(finding)
    assert found["host late"] == 13 * 15
    assert found["host late: thread 101"] == 4 * 15
    assert found["host late: running or waiting"] == 9 * 15


def test_another_gpu_with_the_same_ordinal_is_other_hardware(ask: Ask) -> None:
    scene = starved()
    other = scene.export.process(200)
    scene.export.hardware(index=0, uuid="GPU-a")
    scene.export.hardware(index=1, uuid="GPU-b")
    scene.main.process.sees(ordinal=0, hardware=0)
    other.sees(ordinal=0, hardware=1)
    other.gpu().kernel(80, 92)
    found = figures(only_finding(ask("idle.gpu", scene.export)[:1]))
    assert "used by another process" not in found


def busy_host() -> Scene:
    """The host-late part of each gap, [80, 95), is 3 off the CPU, 4 in a CUDA call, 5 in an OS call, 3 running.

    The states overlap: what comes first in that order counts.
    """
    scene = starved()
    for start in range(80, 980, 100):
        scene.main.off_cpu(start, start + 3)
        scene.main.call("cudaMalloc_v3020", start + 1, start + 7)
        scene.main.os_call("write", start + 2, start + 12)
    return scene


def test_host_late_time_is_divided_by_the_threads_own_state(ask: Ask) -> None:
    found = idle_figures(ask, busy_host().export)
    assert found["host late: off the CPU"] == 9 * 3
    assert found["host late: in CUDA calls"] == 9 * 4
    assert found["host late: in OS calls"] == 9 * 5
    assert found["host late: running"] == 9 * 3
    assert found["host late: in CUDA calls: synchronising"] == 0


def test_states_of_other_threads_explain_nothing(ask: Ask) -> None:
    scene = starved()
    worker = scene.main.process.thread(101)
    worker.os_call("poll", -1000, 2000)
    worker.off_cpu(-1000, 2000)
    scene.main.switch(-100, is_in=True)
    found = idle_figures(ask, scene.export)
    assert found["host late: running"] == 135
    assert found["host late: off the CPU"] == 0
    assert "host late: in OS calls" not in found


def test_the_range_that_fits_is_named_and_not_the_one_around_it(ask: Ask) -> None:
    scene = starved()
    scene.main.range("main", -100, 1000)
    for i, start in enumerate(range(80, 980, 100)):
        scene.main.range(f"save image {i}", start, start + 12)
    finding = only_finding(ask("idle.gpu", scene.export))
    assert "'save image #'" in finding.title
    assert figures(finding)["idle inside 'save image #'"] == 9 * 12


def test_samples_say_what_the_thread_was_doing(ask: Ask) -> None:
    scene = starved()
    for start in range(80, 980, 100):
        for after in (2, 6):
            scene.main.sample(start + after, "__memcpy_avx_unaligned", "PyArray_Copy")
        scene.main.sample(start + 40, "PyEval_EvalFrameDefault")  # while the device is busy: tells nothing of the gap
    finding = only_finding(ask("idle.gpu", scene.export))
    assert "copying host memory" in finding.title
    assert figures(finding)["samples copying host memory"] == 1.0


def test_a_handful_of_samples_names_nothing(ask: Ask) -> None:
    scene = starved()
    for start in range(80, 980, 100):
        scene.main.sample(start + 2, "__memcpy_avx_unaligned", "PyArray_Copy")
    assert "copying host memory" not in only_finding(ask("idle.gpu", scene.export)).title


def test_the_edges_of_a_part_of_a_trace_are_idle_time_too(report_on: Analyse) -> None:
    """From 985 to 1185: [985, 1000) and [1080, 1100) are idle; only what the user did not ask for is left out."""
    report = report_on(starved(20).export, window="990ns:1190ns")
    (device,) = report.devices
    assert (device.window, device.window_ns) == ((985, 1185), 200)
    assert device.idle_ns == 15 + 20 + 5


def test_a_range_that_launches_the_work_is_not_to_be_overlapped_with_it(ask: Ask) -> None:
    beside, around = starved(), starved()
    for i in range(1, 10):
        beside.main.range("checkpoint", 100 * i - 20, 100 * i - 6)
        around.main.range("forward", 100 * i - 20, 100 * i - 1)
    assert any("Overlap 'checkpoint'" in step for step in only_finding(ask("idle.gpu", beside.export)).next)
    advice = only_finding(ask("idle.gpu", around.export)).next
    assert any("'forward' is the code that launches" in step for step in advice)


def test_each_device_of_each_process_has_its_account(ask: Ask) -> None:
    scene = starved()
    other = scene.export.process(200)
    thread, gpu = other.thread(), other.gpu(1, context=2)
    for i in range(10):
        thread.launch(gpu, called=2 * i - 5, start=100 * i, end=100 * i + 100)
    answers = ask("idle.gpu", scene.export)
    assert [(a.subject.process, a.subject.device, type(a).__name__) for a in answers] == [
        (100, 0, "Finding"),
        (200, 1, "Clear"),
    ]


def test_a_gap_belongs_to_the_operation_that_ends_it_even_past_an_empty_one(ask: Ask) -> None:
    """An operation that starts when it ends takes no time and ends no gap."""
    scene = starved()
    scene.gpu.memset(85, 85, 64, correlation=scene.main.call("cudaMemsetAsync_v3020", 10, 11))
    found = idle_figures(ask, scene.export)
    assert (found["host late"], found["launch latency"]) == (135, 45)


def test_graph_rows_make_busy_an_upper_bound(report_on: Analyse) -> None:
    scene = Scene()
    for i in range(10):
        correlation = scene.main.call("cudaGraphLaunch_v10000", 100 * i - 5, 100 * i - 4)
        scene.gpu.graph(100 * i, 100 * i + 80, correlation=correlation)
    (device,) = report_on(scene.export).devices
    assert device.busy_is_upper_bound
    assert (device.busy_ns, device.graph_ns, device.n_graphs) == (800, 800, 10)


def test_processes_outside_the_trace_are_not_known(ask: Ask) -> None:
    scene = starved()
    scene.export.hardware(index=0, uuid="GPU-a")
    (answer,) = ask("idle.shared", scene.export)
    assert isinstance(answer, CannotTell)
    assert answer.because.startswith("processes that were not profiled")


@pytest.mark.parametrize(
    ("name", "title", "advice"),
    [
        ("KernelExecutor::compileFusion", "GPU starved by compiling with nvFuser", "Run each fusion and shape once"),
        ("Optimizer.zero_grad#SGD.zero_grad", "GPU starved by zeroing gradients", "Drop the gradients"),
    ],
)
def test_ranges_that_frameworks_name_say_what_to_do(ask: Ask, name: str, title: str, advice: str) -> None:
    scene = starved()
    for start in range(80, 900, 100):
        scene.main.range(name, start, start + 14)
    finding = only_finding(ask("idle.gpu", scene.export))
    assert finding.title == title
    assert finding.next[0].startswith(advice)


def test_ranges_that_say_little_are_not_asked_for_again(ask: Ask) -> None:
    scene = starved()
    for start in range(80, 900, 100):
        scene.main.range("detail", start, start + 2)
    assert only_finding(ask("idle.gpu", scene.export)).next[0].startswith("No range of the launching thread")
