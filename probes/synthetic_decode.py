"""Two PyTorch traces of a language model that never ran, as it decodes: launch by launch, and as a CUDA graph.

Both run the same kernels, for sixteen tokens. Launch by launch, each of them costs the host 12 µs while it takes the
device 2 to 5; a graph costs 12 µs for all of a token. Names and times are made up. It needs neither PyTorch nor a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from diag.probes.synthetic_trace import LAUNCH_US, Recorder, write_trace

TOKENS = 16
LAYERS = 24
DISPATCH_US = 6
"""What Python and the framework do before each launch, which itself takes LAUNCH_US."""
GRAPH_LAUNCH_US = 12
NODE_GAP_US = 0.5
"""Between two kernels of a graph."""
CALL_US = DISPATCH_US + LAUNCH_US
LAYER_US = (
    ("norm_kernel", 2.25),
    ("gemv_qkv_kernel", 4.5),
    ("cache_write_kernel", 2.0),
    ("scores_kernel", 3.5),
    ("softmax_kernel", 2.5),
    ("values_kernel", 3.5),
    ("gemv_out_kernel", 3.25),
    ("gemv_up_kernel", 5.0),
    ("gelu_kernel", 2.0),
    ("gemv_down_kernel", 5.0),
)
"""The kernels of a layer, by name, and how long each runs."""
STEP_US = LAYER_US * LAYERS
SHAPE = {"grid": [864, 1, 1], "block": [128, 1, 1]}


def launch_by_launch(recorder: Recorder) -> None:
    for name, duration_us in STEP_US:
        recorder.host_us += DISPATCH_US
        recorder.launch("cudaLaunchKernel", "kernel", name, duration_us, **SHAPE)


def as_graph(recorder: Recorder) -> None:
    recorder.launch_graph(STEP_US, NODE_GAP_US, GRAPH_LAUNCH_US, **SHAPE)


def decode(step: Callable[[Recorder], None]) -> Recorder:
    recorder = Recorder()
    for token in range(TOKENS):
        began_us = recorder.host_us
        step(recorder)
        recorder.launch("cudaMemcpyAsync", "gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 1.5, bytes=8)
        recorder.synchronise()
        recorder.on_host("user_annotation", f"ProfilerStep#{token}", began_us)
    return recorder


def write(folder: Path) -> tuple[Path, Path]:
    """The traces: launch by launch, and as a graph."""
    paths = []
    for name, step in (("eager", launch_by_launch), ("graph", as_graph)):
        path = folder / f"synthetic-{name}.pt.trace.json.gz"
        write_trace(path, path.stem, decode(step).events)
        paths.append(path)
    eager, graph = paths
    return eager, graph
