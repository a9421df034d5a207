"""Ceilings of a CUDA GPU: memory and FMA units by kernels of their own, matrix products by cuBLAS, links by copies.

The probes' kernels are others: vector addition and the Triton GEMM are held against what is measured here.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import torch

from diag import __version__
from diag.model import units
from diag.model.benchmark import Benchmark, Machine, Measurement
from diag.model.ceilings import Arithmetic, Level, usual_accumulator
from diag.probes.calibration import cuda_kernels
from diag.probes.calibration.clocks import Clocks
from diag.probes.calibration.results import CALLS, Progress, launch_latency, measured_ceiling
from diag.probes.calibration.sampling import Plan, Sampled, Trial, Visit, sampled

FLOAT_BYTES = 4
BLOCK = 4096
"""Floats of a block: 16 or 32 of each thread, in loads of 16 bytes."""

PROGRAMS_PER_SM = 16
SIDES = (4096, 8192)
"""Of square matrices."""

L2_ROUNDS_BYTES = 4 << 30
"""That one launch moves within L2: it lasts for about a millisecond."""

FMA_BLOCK, FMA_STEPS = 4096, 4096

Runs = Callable[[], object]


class DeviceClock:
    """Times calls by CUDA events, so that what the host does between them is not counted; reads clocks meanwhile."""

    MOST = 500
    """Calls of a visit."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks

    def visit(self, run: Runs, seconds: float) -> Visit:
        """Calls are enqueued together, and the clocks are read while the device still works on them."""
        n_calls = max(5, min(self.MOST, round(seconds / _seconds_of(run))))
        events = [torch.cuda.Event(enable_timing=True) for _ in range(n_calls + 1)]
        events[0].record()
        for event in events[1:]:
            run()
            event.record()
        sm_hz, memory_hz = self._clocks.sm_hz(), self._clocks.memory_hz()
        torch.cuda.synchronize()
        times = [1e6 * before.elapsed_time(after) for before, after in pairwise(events)]
        return Visit(times, sm_clock_hz=sm_hz, memory_clock_hz=memory_hz)


def _seconds_of(run: Runs) -> float:
    """One call, after two that compile and warm up."""
    run()
    run()
    torch.cuda.synchronize()
    started = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return max(time.perf_counter() - started, 1e-6)


def calibrated(plan: Plan, progress: Progress) -> Benchmark:
    """The first GPU that PyTorch sees."""
    properties = torch.cuda.get_device_properties(0)
    machine = machine_of(properties)
    clock = DeviceClock(Clocks(machine.uuid))
    results = [
        result
        for trials in (memory_trials(properties), arithmetic_trials(machine), link_trials())
        for result in sampled(list(trials), clock, plan, progress)  # each family frees its arrays for the next
    ]
    conditions = f"torch {torch.__version__}, CUDA {torch.version.cuda}, {_clock_range(results)}"
    return Benchmark(
        machine=machine,
        ceilings=[measured_ceiling(each, conditions, machine.n_units) for each in results],
        measurements=_launches(clock, plan, conditions),
        diag_version=__version__,
    )


def machine_of(properties: Any) -> Machine:
    uuid = getattr(properties, "uuid", None)
    return Machine(
        kind="cuda",
        name=properties.name,
        n_units=properties.multi_processor_count,
        uuid=f"GPU-{uuid}" if uuid is not None else None,
        host=platform.node() or None,
        compute_capability=(properties.major, properties.minor),
    )


def _clock_range(results: Sequence[Sampled]) -> str:
    clocks = [hz for each in results for visit in each.visits if (hz := visit.sm_clock_hz) is not None]
    if not clocks:
        return "clocks not known (pip install nvidia-ml-py)"
    return f"SMs at {units.quantity(min(clocks), 'Hz')} to {units.quantity(max(clocks), 'Hz')}"


# ---- memory --------------------------------------------------------------------------------------------------------

STRIDES = (2, 8, 32)
"""In floats; a sector is 8 of them, a line 32."""


def memory_trials(properties: Any) -> Iterator[Trial]:
    """What L1 holds and half of L2, over and over; and arrays of which L2 holds a small part, once in each call."""
    free_bytes, _ = torch.cuda.mem_get_info()
    dram_bytes = min(max(16 * properties.L2_cache_size, 1 << 30), free_bytes // 8)
    blocks = dram_bytes // FLOAT_BYTES // BLOCK
    arrays = [torch.ones(blocks * BLOCK, device="cuda") for _ in range(3)]
    sums = torch.empty(PROGRAMS_PER_SM * properties.multi_processor_count, device="cuda")
    yield _near(arrays[0], sums, properties.multi_processor_count)
    for name, runs in _accesses(arrays, sums).items():
        in_l2 = max(1, properties.L2_cache_size // 2 // len(runs.arrays) // FLOAT_BYTES // BLOCK)
        rounds = max(1, L2_ROUNDS_BYTES // (in_l2 * BLOCK * FLOAT_BYTES * len(runs.arrays)))
        yield runs.trial("l2", name, in_l2, rounds)
        yield runs.trial("dram", name, blocks, 1)
    for stride in STRIDES:
        strided = _Access(cuda_kernels.read, arrays[:1], (sums,), {"stride": stride}, sums.numel())
        yield strided.trial("dram", f"read, stride {stride * FLOAT_BYTES} bytes", blocks // stride, 1)


NEAR_PROGRAMS_PER_SM, NEAR_BLOCKS, NEAR_ROUNDS = 2, 2, 1 << 14
"""64 KiB for each SM: a half of the L1 of 12.0, less of the others."""


def _near(array: Any, sums: Any, n_sms: int) -> Trial:
    programs = NEAR_PROGRAMS_PER_SM * n_sms

    def run() -> None:
        arguments = (array, sums, NEAR_ROUNDS)
        cuda_kernels.read_near[(programs,)](*arguments, blocks=NEAR_BLOCKS, block_size=BLOCK, num_warps=8)

    formula = f"{programs} programs x {NEAR_ROUNDS} x {BLOCK} floats x {FLOAT_BYTES} bytes"
    near_bytes = programs * NEAR_BLOCKS * BLOCK * FLOAT_BYTES
    return Trial(run, programs * NEAR_ROUNDS * BLOCK * FLOAT_BYTES, formula, None, "l1", "read", near_bytes)


class _Access:
    """A kernel with its arguments, of which only the number of blocks and of rounds is open."""

    def __init__(
        self, kernel: Any, arrays: Sequence[Any], more: Sequence[Any], constants: Mapping[str, int], programs: int
    ) -> None:
        self.kernel, self.arrays, self.more = kernel, arrays, more
        self.constants, self.programs = constants, programs

    def trial(self, level: Level, access: str, blocks: int, rounds: int) -> Trial:
        def run() -> None:
            arguments = (*self.arrays, *self.more, blocks, rounds)
            self.kernel[(self.programs,)](*arguments, **self.constants, block_size=BLOCK, num_warps=8)

        n_bytes = blocks * BLOCK * FLOAT_BYTES * len(self.arrays)
        formula = f"{rounds} x {blocks} blocks x {BLOCK} floats x {FLOAT_BYTES} bytes x {len(self.arrays)} array(s)"
        return Trial(run, rounds * n_bytes, formula, None, level, access, n_bytes)


def _accesses(arrays: Sequence[Any], sums: Any) -> Mapping[str, _Access]:
    programs = sums.numel()
    return {
        "read": _Access(cuda_kernels.read, arrays[:1], (sums,), {"stride": 1}, programs),
        "fill": _Access(cuda_kernels.fill, arrays[:1], (), {}, programs),
        "copy": _Access(cuda_kernels.copy, arrays[:2], (), {}, programs),
        "triad": _Access(cuda_kernels.triad, arrays[:3], (), {}, programs),
    }


# ---- arithmetic ----------------------------------------------------------------------------------------------------


def arithmetic_trials(machine: Machine) -> Iterator[Trial]:
    for dtype, name in ((torch.float32, "fp32"), (torch.float64, "fp64")):
        yield _fused(Arithmetic(name, name), dtype, machine.n_units)  # type: ignore[arg-type]
    capability = machine.compute_capability or (0, 0)
    for side in SIDES:
        if capability >= (8, 0):
            yield _product("tf32", torch.float32, side)
            yield _product("bf16", torch.bfloat16, side)
        if capability >= (7, 0):
            yield _product("fp16", torch.float16, side)
        if capability >= (8, 9) and (scaled := _scaled_product(side)) is not None:
            yield scaled
    if capability in ((8, 0), (9, 0), (10, 0)):  # the only ones whose tensor cores do FP64 at a rate that matters
        yield _product("fp64", torch.float64, SIDES[0])


def _fused(of: Arithmetic, dtype: Any, n_sms: int) -> Trial:
    """Sixteen blocks of 8 warps for each SM, each thread with sixteen chains."""
    values = torch.ones(16 * n_sms * FMA_BLOCK, device="cuda", dtype=dtype)
    factors = torch.tensor([0.999, 0.001], device="cuda", dtype=dtype)
    programs = values.numel() // FMA_BLOCK

    def run() -> None:
        cuda_kernels.multiply_adds[(programs,)](values, factors, FMA_STEPS, block_size=FMA_BLOCK, num_warps=8)

    formula = f"2 x {values.numel()} values x {FMA_STEPS} fused multiply-adds"
    return Trial(run, 2 * values.numel() * FMA_STEPS, formula, arithmetic=of)


def _product(name: Any, dtype: Any, side: int) -> Trial:
    """Through cuBLAS, which decides by the type, and for TF32 by a switch, which units it uses."""
    a, b = (torch.randn(side, side, device="cuda", dtype=torch.float32).to(dtype) for _ in range(2))
    c = torch.empty(side, side, device="cuda", dtype=dtype)
    is_tf32 = name == "tf32"

    def run() -> None:
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = is_tf32
        try:
            torch.addmm(c, a, b, beta=0, out=c)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before

    of = Arithmetic(name, usual_accumulator(name), is_tensor=True)
    return Trial(run, 2 * side**3, f"cuBLAS: 2 x {side}³", arithmetic=of)


def _scaled_product(side: int) -> Trial | None:
    """FP8 (e4m3) with one scale for each matrix; None where this PyTorch or this GPU cannot."""
    a = torch.randn(side, side, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(side, side, device="cuda").to(torch.float8_e4m3fn).t()  # column-major, as cuBLAS wants it
    scale = torch.ones((), device="cuda")

    def run() -> object:
        return torch._scaled_mm(a, b, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16, use_fast_accum=True)

    try:
        run()
    except (AttributeError, RuntimeError, TypeError):
        return None
    return Trial(run, 2 * side**3, f"cuBLASLt: 2 x {side}³", arithmetic=Arithmetic("fp8", "fp32", is_tensor=True))


# ---- link and launches ---------------------------------------------------------------------------------------------

LINK_BYTES = 256 << 20


def link_trials() -> Iterator[Trial]:
    on_device = torch.empty(LINK_BYTES, dtype=torch.uint8, device="cuda")
    for access, host in (
        ("pinned", torch.empty(LINK_BYTES, dtype=torch.uint8, pin_memory=True)),
        ("pageable", torch.ones(LINK_BYTES, dtype=torch.uint8)),
    ):
        yield _link("host_to_device", access, on_device, host)
        yield _link("device_to_host", access, host, on_device)


def _link(level: Level, access: str, target: Any, source: Any) -> Trial:
    def run() -> object:
        return target.copy_(source, non_blocking=access == "pinned")

    return Trial(run, LINK_BYTES, f"{LINK_BYTES} bytes", None, level, access, LINK_BYTES)


def _launches(clock: DeviceClock, plan: Plan, conditions: str) -> Sequence[Measurement]:
    """What the device takes for each of many launches in a row, and the host for one until it is done."""
    one = torch.ones(1, device="cuda")

    def empty_kernel() -> object:
        return cuda_kernels.nothing[(1,)](one, num_warps=1)

    return [
        _latency("empty kernel", empty_kernel, clock, plan, conditions),
        _latency("eager operator", one.neg_, clock, plan, conditions),
    ]


def _latency(variant: str, launch: Runs, clock: DeviceClock, plan: Plan, conditions: str) -> Measurement:
    def many() -> None:
        for _ in range(CALLS):
            launch()

    calls = Trial(many, CALLS, f"{CALLS} launches in a row")
    (in_a_row,) = sampled([calls], clock, plan)
    return launch_latency(variant, in_a_row, conditions, end_to_end_ns=_until_done_ns(launch))


def _until_done_ns(launch: Runs) -> float:
    """From the call until the host knows that it is done."""
    times = []
    for _ in range(200):
        started = time.perf_counter_ns()
        launch()
        torch.cuda.synchronize()
        times.append(time.perf_counter_ns() - started)
    return median(times)
