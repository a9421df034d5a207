"""Overlap of computation with communication and copies."""

from __future__ import annotations

import pytest

from diag.rules.finding import Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, Query, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene, too_short

COMPUTE, SIDE = 7, 20


def steps(exposed: int = 40, *, waits_by: str | None = None) -> NsysExport:
    """Ten steps of 100: a kernel [0, 60), NCCL on its own stream [30, 60 + exposed) and nothing after it.

    `waits_by`: what makes the next step's kernel wait for it, 'event' or 'stream'; 'host' synchronises instead.
    """
    scene = Scene()
    main, gpu = scene.main, scene.gpu
    for i in range(10):
        at = 100 * i
        if waits_by == "event" and i:
            gpu.record(i, SIDE, main.call("cudaEventRecord_v3020", at - 98, at - 98))
            wait = main.call("cudaStreamWaitEvent_v3020", at - 97, at - 97)
            gpu.sync("Stream wait sync", at - 97, at - 97, wait, streamId=COMPUTE, eventId=i)
        main.launch(gpu, called=at - 96, start=at, end=at + 60, name="gemm")
        stream = COMPUTE if waits_by == "stream" else SIDE
        main.launch(gpu, called=at + 1, start=at + 30, end=at + 60 + exposed, name="ncclDevKernel", streamId=stream)
        if waits_by == "host":
            call = main.call("cudaStreamSynchronize_v3020", at + 3, at + 60 + exposed)
            gpu.sync("Stream sync", at + 3, at + 60 + exposed, call, streamId=SIDE)
    return scene.export


def taxed(beside: int = 60, n: int = 10) -> NsysExport:
    """n kernels of 40 alone, then n that last `beside`, with NCCL at their side all the time; others fill the gaps."""
    scene = Scene()
    for i in range(n):
        scene.gpu.kernel(100 * i, 100 * i + 40, "gemm")
        scene.gpu.kernel(100 * i + 40, 100 * i + 100, "fill")
        late = 100 * (n + i)
        scene.gpu.kernel(late, late + beside, "gemm")
        scene.gpu.kernel(late, late + beside, "ncclDevKernel", streamId=SIDE)
        scene.gpu.kernel(late + beside, late + 100, "fill")
    return scene.export


CASES = {
    "overlap.communication": ThreeCases(
        fires=lambda: steps(waits_by="event"),
        clear=lambda: steps(exposed=0),
        untold=lambda: too_short().export,
    ),
    "overlap.tax": ThreeCases(
        fires=taxed,
        clear=lambda: taxed(beside=43),
        untold=lambda: too_short().export,
    ),
}


def test_exposed_is_communication_less_all_other_kernels(ask: Ask) -> None:
    finding = only_finding(ask("overlap.communication", steps()))
    found = figures(finding)
    assert found["communication"] == 10 * 70
    assert found["exposed communication"] == 10 * 40
    assert found["hidden by perfect overlap"] == finding.recoverable_ns == 10 * 30
    assert finding.share == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("waits_by", "blocking"), [("event", 9 * 40), ("stream", 9 * 40), ("host", 10 * 40), (None, 0)]
)
def test_blocking_needs_a_dependency(ask: Ask, waits_by: str | None, blocking: int) -> None:
    """Nothing follows the last step."""
    finding = only_finding(ask("overlap.communication", steps(waits_by=waits_by)))
    assert figures(finding)["blocking, shown by a dependency"] == blocking
    assert ("waits for it" in finding.title) == bool(blocking)
    assert ("is not shown" in finding.claim) == (not blocking)
    assert finding.confidence == ("high" if blocking else "medium")


def test_without_events_the_finding_says_what_is_missing(ask: Ask) -> None:
    export = steps(waits_by="event").drop("CUPTI_ACTIVITY_KIND_CUDA_EVENT")
    finding = only_finding(ask("overlap.communication", export))
    assert "records of CUDA events were not captured" in finding.claim
    assert figures(finding)["blocking, shown by a dependency"] == 0


def test_what_a_graph_launch_hides_is_not_called_exposed(ask: Ask) -> None:
    export = steps()
    export.process(100).gpu().graph(0, 1000)
    (answer,) = ask("overlap.communication", export)
    assert isinstance(answer, Clear)


def test_evidence_shows_the_communication(ask: Ask, query: Query) -> None:
    finding = only_finding(ask("overlap.communication", steps()))
    rows = query(steps(), finding.evidence[0])
    assert [(start, end) for *_, start, end in rows] == [(100 * i + 30, 100 * i + 100) for i in range(10)]


def test_the_tax_is_a_ratio_of_medians(ask: Ask) -> None:
    """Ten kernels lose 20 each; the overlap hides their 600."""
    finding = only_finding(ask("overlap.tax", taxed()))
    found = figures(finding)
    assert found["lost"] == finding.recoverable_ns == 200
    assert found["hidden meanwhile"] == 600
    assert found["tax of gemm"] == "1.50"
    assert finding.level == "info"


def test_few_instances_tell_no_tax(ask: Ask) -> None:
    (answer,) = ask("overlap.tax", taxed(n=9))
    assert isinstance(answer, Clear)


def test_kernels_of_another_grid_are_other_kernels(ask: Ask) -> None:
    export = taxed()
    for row in export.rows["CUPTI_ACTIVITY_KIND_KERNEL"]:
        row["gridX"] = 2 if row["end"] - row["start"] == 60 else 1
    (answer,) = ask("overlap.tax", export)
    assert isinstance(answer, Clear)


def test_copies_are_taxed_too(ask: Ask) -> None:
    export = taxed()
    gpu = export.process(100).gpu()
    export.rows["CUPTI_ACTIVITY_KIND_KERNEL"] = [
        row for row in export.rows["CUPTI_ACTIVITY_KIND_KERNEL"] if row.get("streamId") != SIDE
    ]
    for i in range(10):
        gpu.copy(1000 + 100 * i, 1000 + 100 * i + 60, 1 << 20, streamId=SIDE)
    assert figures(only_finding(ask("overlap.tax", export)))["lost"] == 200
