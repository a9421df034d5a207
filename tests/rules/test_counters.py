"""What the hardware's own counters say."""

from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene

MIB = 1 << 20
SMS = "SMs Active [Throughput %]"
PCIE = "PCIe RX Throughput [Throughput %]"


def sampled(values: dict[range, int]) -> dict[int, int]:
    """One sample every 10 ns within each range."""
    return {time: value for times, value in values.items() for time in range(times.start, times.stop, 10)}


def busy(active: int, *, metric: str = SMS) -> NsysExport:
    """Ten kernels of 200, back to back, the second one always called 'small'; sampled from 100 before the first."""
    scene = Scene()
    for start in range(0, 2000, 200):
        scene.gpu.kernel(start, start + 200, "small" if start % 400 else "large")
    scene.export.gpu_metric(metric, sampled({range(-100, 2100): active}))
    return scene.export


def copying(used: int, *, metric: str = PCIE) -> NsysExport:
    """Ten times a copy of 100 that nothing overlaps and a kernel of 100; never idle."""
    scene = Scene()
    for start in range(0, 2000, 200):
        scene.gpu.copy(start, start + 100, MIB)
        scene.gpu.kernel(start + 100, start + 200)
    scene.export.gpu_metric(metric, sampled({range(2000): used}))
    return scene.export


CASES = {
    "counters.sm_active": ThreeCases(
        fires=lambda: busy(20),
        clear=lambda: busy(90),
        untold=lambda: busy(20).drop("GPU_METRICS"),
    ),
    "counters.link": ThreeCases(
        fires=lambda: copying(85),
        clear=lambda: copying(40),
        untold=lambda: copying(85).drop("GPU_METRICS"),
    ),
}


def test_only_samples_wholly_in_kernel_time_count(ask: Ask) -> None:
    """Of 200 samples in 2000 the first one's period may begin before the kernels, as the file does not say which."""
    finding = only_finding(ask("counters.sm_active", busy(20)))
    found = figures(finding)
    assert found["samples"] == 199
    assert found["kernel time sampled"] == 1990
    assert found["SMs active"] == pytest.approx(0.2)
    assert finding.recoverable_ns == round(1990 * 0.8)
    assert finding.share == pytest.approx(1990 * 0.8 / 2000)


def test_what_lies_outside_of_kernels_does_not_count(ask: Ask) -> None:
    """Idle after each kernel of 100: of the eleven samples that hold in it, nine are settled."""
    scene = Scene()
    for start in range(0, 4000, 200):
        scene.gpu.kernel(start, start + 100)
    scene.export.gpu_metric(SMS, {time: 40 if time % 200 < 100 else 0 for time in range(-200, 4000, 10)})
    found = figures(only_finding(ask("counters.sm_active", scene.export)))
    assert found["SMs active"] == pytest.approx(0.4)
    assert found["samples"] == 20 * 9


def test_the_kernel_that_leaves_most_is_named(ask: Ask) -> None:
    export = busy(0)
    export.rows["GPU_METRICS"].clear()
    export.gpu_metric(SMS, {time: 10 if time % 400 >= 200 else 60 for time in range(-100, 2100, 10)})
    finding = only_finding(ask("counters.sm_active", export))
    assert figures(finding)["SMs active in small"] == pytest.approx(0.1)
    assert "small" in finding.claim


def test_kernels_of_communication_use_few_sms_by_design(ask: Ask) -> None:
    scene = Scene()
    for start in range(0, 2000, 200):
        scene.gpu.kernel(start, start + 200, "ncclDevKernel_AllReduce")
    scene.export.gpu_metric(SMS, sampled({range(2000): 5}))
    (answer,) = ask("counters.sm_active", scene.export)
    assert isinstance(answer, CannotTell)
    assert answer.because.startswith("only 0 samples lie wholly in kernel time, at one per 10 ns")


def test_names_of_other_chips_mean_the_same(ask: Ask) -> None:
    for name in ("SM Active", "SM Active [Throughput %]"):
        assert figures(only_finding(ask("counters.sm_active", busy(20, metric=name))))["SMs active"] == pytest.approx(
            0.2
        )
    (answer,) = ask("counters.sm_active", busy(20, metric="Unallocated Warps in Active SMs [Throughput %]"))
    assert isinstance(answer, CannotTell)


def test_samples_of_another_device_say_nothing(ask: Ask) -> None:
    """The process' device 0 is the file's GPU 1, which PerfWorks calls 3."""
    export = busy(20)
    for row in export.rows["TARGET_INFO_GPU_METRICS"] + export.rows["GPU_METRICS"]:
        row["typeId"] += 3
    export.hardware(0, uuid="GPU-a", pwGpuId=5)
    export.hardware(1, uuid="GPU-b", pwGpuId=3)
    export.process(100).sees(0, hardware=1)
    assert only_finding(ask("counters.sm_active", export)).share
    export.process(100).sees(0, hardware=0)
    (answer,) = ask("counters.sm_active", export)
    assert isinstance(answer, CannotTell)


def test_a_link_is_full_at_three_quarters_of_its_peak(ask: Ask) -> None:
    assert any(isinstance(answer, Clear) for answer in ask("counters.link", copying(74)))
    finding = only_finding(ask("counters.link", copying(75)))
    assert figures(finding)["exposed copies between host and device"] == 1000
    assert figures(finding)["PCIe to the device full"] == 900  # nine samples in each copy
    assert finding.severity == "info"
    assert finding.recoverable_ns is None


def test_nvlink_counts_for_communication_and_its_parts_add_up(ask: Ask) -> None:
    scene = Scene()
    for start in range(0, 2000, 200):
        scene.gpu.kernel(start, start + 100)
        scene.gpu.kernel(start + 100, start + 200, "ncclDevKernel_AllReduce")
    for part in ("Requests User Data", "Responses User Data"):
        scene.export.gpu_metric(f"NVLink RX {part} [Throughput %]", sampled({range(2000): 40}))
    scene.export.network_metric("IB: Bytes sent", "bytes/ms", {-1_000_000: 7, 0: 50_000})
    found = figures(only_finding(ask("counters.link", scene.export)))
    assert found["use of NVLink to the device"] == pytest.approx(0.8)
    assert found["mlx5_0 port 1 sends"] == pytest.approx(50e6)


def test_without_a_metric_of_the_link_nothing_is_told(ask: Ask) -> None:
    (answer,) = ask("counters.link", copying(85, metric=SMS))
    assert isinstance(answer, CannotTell)
    assert answer.because == "the metrics of this device do not tell how full PCIe is"


def test_copies_shorter_than_the_sampling_tell_nothing(ask: Ask) -> None:
    export = copying(85)
    export.rows["GPU_METRICS"] = [row for row in export.rows["GPU_METRICS"] if row["timestamp"] % 100 == 0]
    (answer,) = ask("counters.link", export)
    assert isinstance(answer, CannotTell)
    assert "only 0 samples" in answer.because
