"""Priorities of streams."""

from __future__ import annotations

from diag.rules.finding import Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene

NULL, SIDE = 7, 20


def gradients(priority: int = 0, starts: int = 60, *, hands_over: bool = True) -> NsysExport:
    """Ten steps: a kernel ends at 30, and its event lets NCCL go, which starts at 60; another kernel runs until 100.

    NCCL waits 30 of each 100 although it was ready.
    """
    scene = Scene()
    main, gpu = scene.main, scene.gpu
    gpu.describe_stream(NULL, priority=0)
    gpu.describe_stream(SIDE, priority=priority)
    for i in range(10):
        at = 100 * i
        main.launch(gpu, called=at - 9, start=at, end=at + 30, name="backward of layer 2")
        if hands_over:
            gpu.record(i + 1, NULL, main.call("cudaEventRecord_v3020", at - 7, at - 7))
            wait = main.call("cudaStreamWaitEvent_v3020", at - 6, at - 6)
            gpu.sync("Stream wait sync", at - 6, at - 6, wait, streamId=SIDE, eventId=i + 1)
        main.launch(gpu, called=at - 5, start=at + starts, end=at + 95, name="ncclDevKernel_AllReduce", streamId=SIDE)
        main.launch(gpu, called=at - 3, start=at + 30, end=at + 100, name="backward of layer 1")
    return scene.export


CASES = {
    "streams.priority": ThreeCases(
        fires=gradients,
        clear=lambda: gradients(starts=30),
        untold=lambda: gradients().drop("CUPTI_ACTIVITY_KIND_CUDA_EVENT"),
    ),
}


def test_communication_that_was_ready_waits_for_kernels(ask: Ask) -> None:
    finding = only_finding(ask("streams.priority", gradients()))
    assert figures(finding) == {"waiting": 10 * 30, "priorities": "urgent 0, others 0"}
    assert "no higher priority" in finding.claim


def test_what_dispatch_takes_anyway_is_no_waiting(ask: Ask) -> None:
    """All operations start 2 after they were ready: of NCCL's 30 that leaves 28."""
    export = gradients()
    for row in export.rows["CUPTI_ACTIVITY_KIND_KERNEL"]:
        row["start"] += 2 if "streamId" not in row or row["streamId"] != SIDE else 0
    assert figures(only_finding(ask("streams.priority", export)))["waiting"] == 10 * 28


def test_a_higher_priority_does_not_stop_running_blocks(ask: Ask) -> None:
    finding = only_finding(ask("streams.priority", gradients(priority=-5)))
    assert figures(finding)["priorities"] == "urgent -5, others 0"
    assert "running blocks are not stopped" in finding.claim


def test_what_waits_for_its_data_does_not_wait_for_kernels(ask: Ask) -> None:
    """The event comes after all of the backward pass."""
    scene = Scene()
    main, gpu = scene.main, scene.gpu
    for i in range(10):
        at = 100 * i
        main.launch(gpu, called=at - 9, start=at, end=at + 60, name="backward")
        gpu.record(1, NULL, main.call("cudaEventRecord_v3020", at - 7, at - 7))
        wait = main.call("cudaStreamWaitEvent_v3020", at - 6, at - 6)
        gpu.sync("Stream wait sync", at - 6, at - 6, wait, streamId=SIDE, eventId=1)
        main.launch(gpu, called=at - 5, start=at + 60, end=at + 95, name="ncclDevKernel_AllReduce", streamId=SIDE)
    (answer,) = ask("streams.priority", scene.export)
    assert isinstance(answer, Clear)
