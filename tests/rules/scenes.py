"""Small runs whose every figure can be worked out in the head. Times are nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.builders.nsys_export import NsysExport

H100: Mapping[str, Any] = {
    "name": "NVIDIA H100 80GB HBM3",
    "computeMajor": 9,
    "computeMinor": 0,
    "smCount": 132,
    "threadsPerWarp": 32,
    "maxWarpsPerSm": 64,
    "maxBlocksPerSm": 32,
    "maxRegistersPerSm": 65536,
    "maxShmemPerSm": 233472,
}


class Scene:
    """One process with a main thread and a GPU, which may be described."""

    def __init__(self, hardware: Mapping[str, Any] | None = None) -> None:
        self.export = NsysExport()
        if hardware is not None:
            self.export.hardware(**hardware)
        process = self.export.process()
        self.main = process.thread()
        self.gpu = process.gpu()


def starved(n: int = 10) -> Scene:
    """n kernels of 80, one per 100, each launched 5 before it starts: of each gap of 20, 15 are the host's delay.

    The window is 100 n - 20 long and idle for 20 (n - 1).
    """
    scene = Scene()
    for i in range(n):
        scene.main.launch(scene.gpu, called=100 * i - 5, start=100 * i, end=100 * i + 80)
    return scene


US = 1000


def starved_for_long(n: int = 10) -> Scene:
    """`starved` in microseconds: the host is late from 80 to 95 us of every 100 us, nine times, in a window of 980."""
    scene = Scene()
    for i in range(n):
        start = 100 * i * US
        scene.main.launch(scene.gpu, called=start - 5 * US, start=start, end=start + 80 * US)
    return scene


def fed(n: int = 10) -> Scene:
    """n kernels of 100, back to back, all launched before the second one starts: never idle."""
    scene = Scene()
    for i in range(n):
        scene.main.launch(scene.gpu, called=2 * i - 5, start=100 * i, end=100 * i + 100)
    return scene


def too_short() -> Scene:
    """One operation less than shares need."""
    return starved(9)


def starting(steps: int = 10) -> Scene:
    """Loads a module from 0 to 1000 between two kernels, then repeats two kernels, back to back, from 1000 on."""
    scene = Scene()
    scene.main.launch(scene.gpu, called=-5, start=0, end=100, name="gemm")
    scene.main.call("cuModuleLoadData", 100, 990)
    for step in range(steps):
        at = 1000 + 200 * step
        scene.main.launch(scene.gpu, called=995 + step, start=at, end=at + 100, name="relu")
        scene.main.launch(scene.gpu, called=996 + step, start=at + 100, end=at + 200, name="gemm")
    return scene


def replaying(span: int, nodes: int = 1, apart: int = 0, n: int = 10) -> Scene:
    """n launches of a graph, one per 100, each 5 before its first node; a replay takes `span`, gaps included."""
    scene = Scene()
    duration = (span - apart * (nodes - 1)) // nodes
    for start in range(0, 100 * n, 100):
        launch = scene.main.call("cudaGraphLaunch_v10000", start - 5, start - 4)
        scene.gpu.nodes(start, duration, nodes, launch, apart=apart)
    return scene
