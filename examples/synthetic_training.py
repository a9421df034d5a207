"""Writes a PyTorch trace of a training loop that never ran: small, exact, and with GPU work in it.

    python examples/synthetic_training.py trace.pt.trace.json.gz
    diag report trace.pt.trace.json.gz

Twenty steps on one GPU. In each, the data loader takes 4 ms while the GPU has nothing to do; then a batch is
copied from pageable memory and labels from pinned memory, eight layers of three kernels run, and the loss is copied
back. The names and times are made up; the events have the form in which PyTorch 2 writes them. It needs no PyTorch.
"""

from __future__ import annotations

import sys
from pathlib import Path

from diag.probes.synthetic_trace import Event, Recorder, write_trace

STEPS = 20
LOADING_US = 4_000
LAYERS = 8
LAYER_US = {
    "ampere_sgemm_128x64_tn": 420.125,
    "void at::native::vectorized_elementwise_kernel<4, Relu>(int, Relu)": 38.5,
    "void at::native::layer_norm_kernel<float>(int, float, float const*)": 55.25,
}
"""The kernels of a layer and how long each runs."""


def train() -> list[Event]:
    recorder = Recorder()
    for step in range(STEPS):
        began_us = recorder.host_us
        recorder.host_us += LOADING_US
        recorder.on_host("user_annotation", "load batch", began_us)
        _copy(recorder, "Memcpy HtoD (Pageable -> Device)", 12 << 20, 1_100)
        _copy(recorder, "Memcpy HtoD (Pinned -> Device)", 64 << 10, 4)
        for _ in range(LAYERS):
            for name, duration_us in LAYER_US.items():
                shape = {"grid": [256, 1, 1], "block": [128, 1, 1], "registers per thread": 64, "shared memory": 4096}
                recorder.launch("cudaLaunchKernel", "kernel", name, duration_us, **shape)
        _copy(recorder, "Memcpy DtoH (Device -> Pageable)", 4, 2)
        recorder.synchronise()
        recorder.on_host("user_annotation", f"ProfilerStep#{step}", began_us)
    return recorder.events


def _copy(recorder: Recorder, name: str, n_bytes: int, duration_us: float) -> None:
    recorder.launch("cudaMemcpyAsync", "gpu_memcpy", name, duration_us, bytes=n_bytes)


def write(path: Path) -> None:
    write_trace(path, "synthetic-training.pt.trace.json", train())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
