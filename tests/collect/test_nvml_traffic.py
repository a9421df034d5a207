"""Traffic over PCIe: rates of counters where the driver counts, else one GPU in turn, for that takes 40 ms."""

from __future__ import annotations

from diag.collect.nvml import Nvml
from diag.model.live import GpuReading
from tests.collect.fake_nvml import FakeNvml

RX, TX = "NVML_FI_DEV_PCIE_COUNT_RX_BYTES", "NVML_FI_DEV_PCIE_COUNT_TX_BYTES"


def rates(gpu: GpuReading) -> tuple[float | None, float | None]:
    return gpu.pcie_rx_bytes_per_s, gpu.pcie_tx_bytes_per_s


def test_a_counter_that_began_anew_gives_no_rate_once() -> None:
    fake = FakeNvml("rtx4090")
    counters = fake.gpus[0]["fields"]
    with Nvml(fake) as nvml:
        nvml.read(1)
        fake.now_us += 500_000
        counters[RX][1], counters[TX][1] = 50, 1000
        (restarted,) = nvml.read(2)
        fake.now_us += 500_000
        counters[RX][1], counters[TX][1] = 150, 1000
        (after,) = nvml.read(3)
    assert rates(restarted) == (None, None)
    assert "began anew" in restarted.untold["pcie_rx_bytes_per_s"]
    assert rates(after) == (200.0, 0.0)


def test_a_value_that_the_driver_did_not_renew_gives_no_rate() -> None:
    fake = FakeNvml("rtx4090")
    with Nvml(fake) as nvml:
        nvml.read(1)
        (gpu,) = nvml.read(2)
    assert rates(gpu) == (None, None)


def test_a_counter_of_32_bits_is_not_trusted() -> None:
    fake = FakeNvml("v100")
    throughput = {"NVML_PCIE_UTIL_RX_BYTES": 10, "NVML_PCIE_UTIL_TX_BYTES": 20}
    fake.gpus[0]["nvmlDeviceGetPcieThroughput"] = throughput
    with Nvml(fake) as nvml:
        (gpu,) = nvml.read(1)
    assert rates(gpu) == (10 * 1024, 20 * 1024)


def test_a_reading_waits_for_one_gpu_only() -> None:
    fake = FakeNvml("t4", "t4", "t4")
    served = []
    with Nvml(fake) as nvml:
        for time_ns in range(6):
            before = fake.calls["nvmlDeviceGetPcieThroughput"]
            gpus = nvml.read(time_ns)
            assert fake.calls["nvmlDeviceGetPcieThroughput"] - before == 2
            served += [gpu.index for gpu in gpus if gpu.pcie_rx_bytes_per_s is not None]
            assert all("in turn" in gpu.untold["pcie_rx_bytes_per_s"] for gpu in gpus if rates(gpu) == (None, None))
    assert served == [0, 1, 2, 0, 1, 2]


def test_who_offers_nothing_takes_no_turn() -> None:
    fake = FakeNvml("v100", "t4")  # the counters of this V100 wrap, and it has no other
    with Nvml(fake) as nvml:
        seen = [nvml.read(time_ns)[1].pcie_rx_bytes_per_s for time_ns in range(4)]
    assert seen[0] is None
    assert seen[1:] == [2048 * 1024] * 3


def test_the_sum_over_links_is_asked_for() -> None:
    """The fake refuses any other scope: pynvml's own, link 0, would show an eighteenth of an H100's traffic."""
    with Nvml(FakeNvml("h100")) as nvml:
        (gpu,) = nvml.read(1)
    assert gpu.nvlink_rx_bytes == 5_000_000 * 1024
