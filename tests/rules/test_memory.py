"""Device memory: allocating while the work runs, and filling the device."""

from __future__ import annotations

from typing import Any

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene, fed, starting, starved, too_short

MIB = 1 << 20


def allocating(call: str = "cudaFree_v3020", begins: int = 50) -> Scene:
    """After each kernel of 80 the thread is inside a call until 90: the device has run dry for 10 of it."""
    scene = starved()
    for start in range(0, 1000, 100):
        scene.main.call(call, start + begins, start + 90)
    return scene


def allocating_at_start() -> NsysExport:
    scene = starting()
    scene.main.call("cudaMalloc_v3020", 100, 980)
    return scene.export


def holding(n_bytes: int, of_bytes: int = 100 * MIB) -> NsysExport:
    scene = fed()
    scene.export.hardware(totalMemory=of_bytes)
    scene.gpu.allocate(1, n_bytes, address=0x1000)
    return scene.export


CASES = {
    "memory.allocation": ThreeCases(
        fires=lambda: allocating().export,
        clear=allocating_at_start,
        untold=lambda: allocating().export.drop("CUPTI_ACTIVITY_KIND_RUNTIME"),
    ),
    "memory.pressure": ThreeCases(
        fires=lambda: holding(96 * MIB),
        clear=lambda: holding(94 * MIB),
        untold=lambda: holding(96 * MIB).drop("CUDA_GPU_MEMORY_USAGE_EVENTS"),
    ),
}


# ---- allocation ------------------------------------------------------------------------------------------------------


def test_idle_time_inside_the_calls_is_what_counts(ask: Ask) -> None:
    finding = only_finding(ask("memory.allocation", allocating().export))
    found = figures(finding)
    assert found["calls in steady state"] == 10
    assert found["idle inside cudaFree_v3020"] == finding.recoverable_ns == 9 * 10
    assert finding.share == pytest.approx(90 / 980)


def test_a_call_recorded_at_two_layers_is_one(ask: Ask) -> None:
    scene = allocating()
    for start in range(0, 1000, 100):
        scene.main.call("cudaFree", start + 50, start + 89)
    finding = only_finding(ask("memory.allocation", scene.export))
    assert figures(finding)["calls in steady state"] == 10
    assert finding.recoverable_ns == 90


@pytest.mark.parametrize(
    "call",
    ["cudaMalloc_v3020", "cudaHostAlloc_v3020", "cudaMallocManaged_v6000", "cuMemFree_v2", "hipFree", "cuMemMap"],
)
def test_calls_that_allocate_at_once(ask: Ask, call: str) -> None:
    assert figures(only_finding(ask("memory.allocation", allocating(call).export)))[f"idle inside {call}"] == 90


@pytest.mark.parametrize(
    "call", ["cudaMallocAsync_v11020", "cudaFreeAsync_v11020", "cudaMallocFromPoolAsync_v11020", "cudaMemGetInfo_v3020"]
)
def test_calls_that_only_queue_or_ask(ask: Ask, call: str) -> None:
    (answer,) = ask("memory.allocation", allocating(call).export)
    assert isinstance(answer, Clear)


def test_a_busy_device_does_not_wait_for_them(ask: Ask) -> None:
    scene = starved()
    for start in range(0, 1000, 100):
        scene.main.call("cudaMalloc_v3020", start + 10, start + 80)
    (answer,) = ask("memory.allocation", scene.export)
    assert isinstance(answer, Clear)


def test_where_nothing_repeats_there_is_no_steady_state(ask: Ask) -> None:
    scene = Scene()
    for i in range(12):
        scene.main.launch(scene.gpu, called=100 * i - 5, start=100 * i, end=100 * i + 80, name=f"kernel_{i}")
    scene.main.call("cudaMalloc_v3020", 1050, 1090)
    (answer,) = ask("memory.allocation", scene.export)
    assert isinstance(answer, CannotTell)
    assert "steady state" in answer.because


def test_calls_are_told_per_step(ask: Ask) -> None:
    scene = allocating()
    for start in range(0, 1000, 100):
        scene.main.range("step", start - 10, start + 90)
    assert figures(only_finding(ask("memory.allocation", scene.export)))["calls per step"] == 1


def test_many_frees_in_a_row_are_a_cache_being_emptied(ask: Ask) -> None:
    """In each gap of 20 four frees and then an allocation take the first 12. The tenth time lies behind the window."""
    scene = starved()
    for start in range(0, 1000, 100):
        for i in range(4):
            scene.main.call("cudaFree_v3020", start + 80 + 2 * i, start + 82 + 2 * i)
        scene.main.call("cudaMalloc_v3020", start + 88, start + 92)
    finding = only_finding(ask("memory.allocation", scene.export))
    assert figures(finding)["bursts of frees"] == 9
    assert finding.recoverable_ns == 9 * 12
    assert "num_alloc_retries" in finding.next[0]


def test_one_free_for_one_allocation_is_no_burst(ask: Ask) -> None:
    finding = only_finding(ask("memory.allocation", allocating().export))
    assert figures(finding)["bursts of frees"] == 0
    assert "num_alloc_retries" not in finding.next[0]


def test_what_is_freed_and_allocated_at_one_size_could_have_been_kept(ask: Ask) -> None:
    scene = allocating()
    for start in range(0, 900, 100):
        scene.gpu.free(start + 51, 4096)
        scene.gpu.allocate(start + 60, 4096)
    scene.gpu.free(951, 4096)
    scene.gpu.allocate(960, 8192)
    found = figures(only_finding(ask("memory.allocation", scene.export)))
    assert found["freed and allocated at one size"] == 9
    assert found["bytes of those"] == 9 * 4096


def test_blocks_that_a_caching_allocator_gives_out_are_cheap(ask: Ask) -> None:
    scene = allocating()
    in_pool: dict[str, Any] = {"localMemoryPoolSize": MIB, "localMemoryPoolUtilizedSize": 4096}
    scene.gpu.free(51, 4096, **in_pool)
    scene.gpu.allocate(60, 4096, **in_pool)
    assert figures(only_finding(ask("memory.allocation", scene.export)))["freed and allocated at one size"] == 0


# ---- pressure --------------------------------------------------------------------------------------------------------


def test_the_peak_is_what_was_held_at_once(ask: Ask) -> None:
    export = holding(60 * MIB)
    gpu = export.process(100).gpu()
    gpu.free(2, 60 * MIB, address=0x1000)
    gpu.allocate(3, 96 * MIB, address=0x2000)
    finding = only_finding(ask("memory.pressure", export))
    assert figures(finding)["held at the peak"] == 96 * MIB
    assert figures(finding)["share of the device's memory"] == pytest.approx(0.96)
    assert finding.severity == "info"


def test_a_pool_holds_what_it_reserved(ask: Ask) -> None:
    export = holding(36 * MIB)
    in_pool: dict[str, Any] = {"localMemoryPoolSize": 60 * MIB, "localMemoryPoolUtilizedSize": 2 * MIB}
    export.process(100).gpu().allocate(2, 2 * MIB, address=0x2000, **in_pool)
    found = figures(only_finding(ask("memory.pressure", export)))
    assert found["held at the peak"] == (36 + 60) * MIB
    assert found["of it in use"] == 2 * MIB


def test_host_memory_does_not_fill_the_device(ask: Ask) -> None:
    export = holding(50 * MIB)
    export.process(100).gpu().allocate(2, 50 * MIB, address=0x2000, memory="Pinned")
    (answer,) = ask("memory.pressure", export)
    assert isinstance(answer, Clear)


def test_what_is_freed_was_there_before_the_capture(ask: Ask) -> None:
    """50 freed that were never seen to be allocated: they were held while the 46 came."""
    export = holding(46 * MIB)
    export.process(100).gpu().free(2, 50 * MIB, address=0x9000)
    assert figures(only_finding(ask("memory.pressure", export)))["held at the peak"] == 50 * MIB + 46 * MIB


def test_without_knowing_what_was_there_before_it_is_never_clear(ask: Ask) -> None:
    export = holding(10 * MIB)
    export.process(100).gpu().free(2, 20 * MIB, address=0x9000)
    (answer,) = ask("memory.pressure", export)
    assert isinstance(answer, CannotTell)
    assert "before the capture" in answer.because


def test_the_size_of_the_device_must_be_known(ask: Ask) -> None:
    scene = fed()
    scene.gpu.allocate(1, MIB)
    (answer,) = ask("memory.pressure", scene.export)
    assert isinstance(answer, CannotTell)
    assert "how much memory" in answer.because


def test_too_few_operations_say_nothing(ask: Ask) -> None:
    (answer,) = ask("memory.allocation", too_short().export)
    assert isinstance(answer, CannotTell)
