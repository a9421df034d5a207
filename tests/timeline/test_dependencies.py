"""What let each operation of a device go, on streams that wait for each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from diag.timeline.dependencies import NEVER_NS, Dependencies, lanes, previous_in
from diag.timeline.gpu_work import NONE
from diag.timeline.trace import Trace
from tests.builders.imported import imported
from tests.builders.nsys_export import Gpu, NsysExport, Thread
from tests.rules.scenes import Scene

SIDE = 20


def hand_over(main: Thread, gpu: Gpu, at: int, source: int, target: int, event: int = 1) -> None:
    """What is launched to `target` later waits for what was launched to `source` before."""
    gpu.record(event, source, main.call("cudaEventRecord_v3020", at, at))
    gpu.sync("Stream wait sync", at, at, main.call("cudaStreamWaitEvent_v3020", at, at), streamId=target, eventId=event)


def of(export: NsysExport, folder: Path, device: int = 0) -> tuple[list[str], Dependencies]:
    """Names of a device's operations by start, and what they waited for."""
    with imported(export, folder) as case:
        trace = Trace(case, case.sources[0])
        timeline = trace.devices[device]
        names = [trace.names[name_id] for name_id in timeline.all_ops.name_id.tolist()]
        return names, trace.dependencies_of(timeline)


def released_by(export: NsysExport, folder: Path, device: int = 0) -> dict[str, str | None]:
    names, depends = of(export, folder, device)
    return {
        name: None if at == NONE else names[at] for name, at in zip(names, depends.released_by.tolist(), strict=True)
    }


def test_the_predecessor_that_ends_last_lets_go(tmp_path: Path) -> None:
    scene = Scene()
    main, gpu = scene.main, scene.gpu
    main.launch(gpu, called=0, start=10, end=50, name="forward")
    main.launch(gpu, called=2, start=10, end=80, name="copy", streamId=SIDE)
    hand_over(main, gpu, at=4, source=SIDE, target=7)
    main.launch(gpu, called=6, start=80, end=90, name="backward")
    main.launch(gpu, called=92, start=95, end=99, name="late")  # launched when nothing kept it any more
    assert released_by(scene.export, tmp_path) == {"forward": None, "copy": None, "backward": "copy", "late": None}


def test_ready_is_when_launch_and_predecessors_are_done(tmp_path: Path) -> None:
    scene = Scene()
    main, gpu = scene.main, scene.gpu
    main.launch(gpu, called=0, start=10, end=50, name="a")
    main.launch(gpu, called=2, start=60, end=70, name="b")
    main.launch(gpu, called=80, start=90, end=95, name="c")
    gpu.kernel(100, 110, "launched before the capture")
    _, depends = of(scene.export, tmp_path)
    assert depends.ready_ns.tolist() == [1, 50, 81, 95]
    assert depends.launched_ns.tolist() == [1, 3, 81, NEVER_NS]


def test_an_operation_may_wait_for_another_device_of_its_process(tmp_path: Path) -> None:
    scene = Scene()
    main, gpu = scene.main, scene.gpu
    second = main.process.gpu(1, context=2)
    main.launch(gpu, called=0, start=10, end=50, name="first")
    gpu.record(1, 7, main.call("cudaEventRecord_v3020", 2, 3), eventSyncId=5)
    second.sync("Stream wait sync", 4, 5, main.call("cudaStreamWaitEvent", 4, 5), eventId=1, eventSyncId=5)
    main.launch(second, called=6, start=60, end=70, name="second")
    names, depends = of(scene.export, tmp_path, device=1)
    assert names == ["second"]
    assert depends.awaited.tolist() == [NONE]  # it ran elsewhere
    assert depends.ready_ns.tolist() == [50]


def test_streams_are_those_of_their_context() -> None:
    context, stream = np.array([1, 2, 1, 2, 1]), np.array([7, 7, 7, 7, 8])
    lane = lanes(context, stream)
    assert len(set(lane.tolist())) == 3
    assert previous_in(lane).tolist() == [NONE, NONE, 0, 1, NONE]


def test_numbers_of_any_size_name_a_stream() -> None:
    stream = np.array([1 << 40, 7, 1 << 40, NONE])
    assert previous_in(lanes(np.zeros(4, np.int64), stream)).tolist() == [NONE, NONE, 0, NONE]
    assert len(lanes(np.empty(0, np.int64), np.empty(0, np.int64))) == 0
