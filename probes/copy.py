"""Copies: from the host to the GPU, out of pinned or pageable memory, alone or beside work; and within a memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from diag.kernels.operator import ELEMENT_BYTES, Count
from diag.model.ceilings import Level
from diag.probes.probe import Checked, Device, Probe, ProbeVariant, Setup, Step, Workload

WITHIN = ProbeVariant("within", "From one place in the device's memory to another: all bytes are read and written.")
OVER_THE_LINK = (
    ProbeVariant("pageable", "Out of ordinary memory: the driver copies it to a pinned buffer first."),
    ProbeVariant("pinned", "Out of page-locked memory, from which the GPU fetches by itself."),
    ProbeVariant("overlapped", "Pinned, in a stream of its own, while products of matrices run in another."),
)
PRODUCT = 4096
"""Rows and columns of the matrices that the overlapped copy runs beside."""


def variants(device: Device) -> Sequence[ProbeVariant]:
    return (WITHIN,) if device == "cpu" else (WITHIN, *OVER_THE_LINK)


def make(setup: Setup, variant: str) -> Workload:
    from diag.probes import tensors

    (source,) = tensors.random(setup, (setup["n"],))
    if variant == WITHIN.name:
        inputs = (source, source.clone())
        return _workload(setup, "dram", tensors.rotated(setup, inputs, _copy), inputs)
    host = source.cpu() if variant == "pageable" else source.cpu().pin_memory()
    target = source.zero_()
    step = _beside_products(target, host) if variant == "overlapped" else lambda: _copy(host, target)
    return _workload(setup, "host_to_device", [step], (host, target))


def _workload(setup: Setup, level: Level, steps: Sequence[Step], inputs: tuple[Any, Any]) -> Workload:
    def check() -> Checked:
        """A copy is the same to the last bit."""
        source, target = inputs
        target.zero_()
        steps[0]()
        wrong = float((target.cpu().double() - source.cpu().double()).abs().max())
        return Checked(wrong, wrong, 0.0)

    return Workload(steps, count(setup, level), level=level, check=check)


def count(setup: Setup, level: Level) -> Count:
    """Within a memory all is read and written; over a link it passes once."""
    n_bytes = setup["n"] * ELEMENT_BYTES[setup.dtype]
    if level == "dram":
        return Count(0, n_bytes, n_bytes, f"bytes: 2 x n x {ELEMENT_BYTES[setup.dtype]}")
    return Count(0, n_bytes, 0, f"bytes: n x {ELEMENT_BYTES[setup.dtype]}")


def _copy(source: Any, target: Any) -> Any:
    return target.copy_(source, non_blocking=True)


def _beside_products(target: Any, host: Any) -> Step:
    import torch

    matrix = torch.ones(PRODUCT, PRODUCT, dtype=torch.bfloat16, device=target.device)
    product, copies = torch.empty_like(matrix), torch.cuda.Stream()

    def step() -> None:
        current = torch.cuda.current_stream()
        copies.wait_stream(current)
        with torch.cuda.stream(copies):
            _copy(host, target)
        torch.matmul(matrix, matrix, out=product)
        current.wait_stream(copies)

    return step


def needs_bytes(setup: Setup) -> int:
    from diag.probes.tensors import rotated_bytes

    return rotated_bytes(setup, 2 * setup["n"] * ELEMENT_BYTES[setup.dtype]) + 16 * setup["n"]


PROBE = Probe(
    name="copy",
    idea="bytes from one place to another",
    bound="memory bandwidth, or the link to the GPU",
    dtypes={"cpu": ("fp32",), "cuda": ("fp32",)},
    shapes={
        "cpu": {"tiny": {"n": 1 << 18}, "small": {"n": 1 << 22}, "full": {"n": 1 << 25}},
        "cuda": {"tiny": {"n": 1 << 18}, "small": {"n": 1 << 26}, "full": {"n": 1 << 28}},
    },
    variants=variants,
    needs_bytes=needs_bytes,
    make=make,
)
