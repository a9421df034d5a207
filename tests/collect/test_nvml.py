"""Reading GPUs through NVML: each field of each recorded device, and what they do not tell."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import pytest

from diag.collect.nvml import Nvml
from diag.collect.nvml_errors import OF_WHOLE_GPU
from diag.collect.nvml_processes import HIDDEN, sees_all_processes, state_of
from diag.collect.nvml_questions import W_PER_MW
from diag.model.live import GpuProcess, GpuReading, Xid
from tests.collect.fake_nvml import FakeNvml
from tests.collect.watched import as_nobody, line, running, wait_for

SECOND_US = 1_000_000
TELLABLE = [
    field.name
    for field in fields(GpuReading)
    if field.name not in ("parent_uuid", "mig_profile", "xid_count", "untold")
]
"""`xid_count` lacks with `xids`, for its reason."""


NO_PROCESS = 2**22 - 1
"""Linux gives no higher number than this one (proc(5), pid_max), and hardly ever this one."""


@pytest.fixture(autouse=True)
def _outside_of_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the numbers in the recorded answers are those of processes, all of which live."""
    monkeypatch.setattr("diag.collect.nvml_listing.sees_all_processes", lambda: True)
    monkeypatch.setattr("diag.collect.nvml_processes.state_of", lambda _: "alive")


@contextmanager
def reading(*devices: str) -> Iterator[tuple[FakeNvml, Nvml]]:
    fake = FakeNvml(*devices)
    with Nvml(fake) as nvml:
        yield fake, nvml


def read_twice(device: str) -> list[GpuReading]:
    """The second reading, a second after the first."""
    with reading(device) as (fake, nvml):
        nvml.read(1)
        fake.now_us += SECOND_US
        return list(nvml.read(2))


def untold(gpu: GpuReading) -> set[str]:
    """Fields without a value; each of them, and no other, must have its reason."""
    missing = {name for name in TELLABLE if getattr(gpu, name) is None}
    assert set(gpu.untold) - {"xids"} == missing
    assert all(said.endswith((".", "PERM")) for said in gpu.untold.values())
    return missing


def test_a_gpu_that_tells_everything() -> None:
    with reading("h100") as (fake, nvml):
        nvml.read(1)
        fake.now_us += 2 * SECOND_US
        fake.gpus[0]["fields"]["NVML_FI_DEV_PCIE_COUNT_RX_BYTES"][1] += 3_000_000_000
        fake.gpus[0]["fields"]["NVML_FI_DEV_PCIE_COUNT_TX_BYTES"][1] += 1_000_000_000
        (gpu,) = nvml.read(2)
    assert gpu == GpuReading(
        index=0,
        uuid="GPU-11111111-aaaa-4bbb-8ccc-000000000100",
        name="NVIDIA H100 80GB HBM3",
        resident_pct=99,
        memory_active_pct=38,
        sm_active_pct=61.25,
        tensor_active_pct=34.5,
        memory_used_bytes=73_986_691_584,
        memory_total_bytes=85_520_809_984,
        processes=(GpuProcess(4242, 73_800_000_000, "compute", "alive"), GpuProcess(4243, 100_000_000, "mps", "alive")),
        sm_clock_hz=1_755_000_000,
        sm_clock_max_hz=1_980_000_000,
        memory_clock_hz=2_619_000_000,
        memory_clock_max_hz=2_619_000_000,
        clock_reasons=("sw_power_cap",),
        power_w=698412 * W_PER_MW,
        power_limit_w=700.0,
        temperature_c=66,
        slowdown_temperature_c=66 + 21 + 2,
        pcie_rx_bytes_per_s=1.5e9,
        pcie_tx_bytes_per_s=0.5e9,
        pcie_generation=5,
        pcie_generation_max=5,
        pcie_width=16,
        pcie_width_max=16,
        nvlink_rx_bytes=5_000_000 * 1024,
        nvlink_tx_bytes=5_000_001 * 1024,
        ecc_corrected=3,
        ecc_uncorrected=0,
        xid_count=0,
    )
    assert fake.samples == {}, "GPM's samples are given back"
    assert not fake.is_open


def test_the_first_reading_has_no_rates_yet() -> None:
    with reading("h100") as (_, nvml):
        (gpu,) = nvml.read(1)
    rates = {"sm_active_pct", "tensor_active_pct", "pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s"}
    assert untold(gpu) == rates
    assert all("second one" in said for said in gpu.untold.values())


def test_a_gpu_in_mig_mode_has_its_instances_beside_it() -> None:
    gpu, large, small = read_twice("a100")
    activity = {"sm_active_pct", "tensor_active_pct"}
    utilization = {"resident_pct", "memory_active_pct"}
    administrators = {"memory_used_bytes", "memory_total_bytes", "processes"}
    assert untold(gpu) == activity | utilization | administrators
    assert gpu.untold["resident_pct"] == "NVML does not tell it of a GPU in MIG mode: see its instances."
    assert {gpu.untold[name] for name in administrators} == {
        "NVML does not tell it of a GPU in MIG mode: see its instances, or run diag as root."
    }
    assert "Hopper" in gpu.untold["sm_active_pct"]
    assert (gpu.pcie_width, gpu.pcie_width_max) == (8, 16)
    assert (large.index, large.parent_uuid, large.mig_profile) == (0, gpu.uuid, "3g.40gb")
    assert large.memory_used_bytes == 12_144_366_592
    assert large.processes == (GpuProcess(777, 12_000_000_000, "compute", "alive"),)
    assert (large.untold["power_w"], large.untold["xids"]) == (OF_WHOLE_GPU, OF_WHOLE_GPU)
    assert large.xid_count is None
    # A driver that does not name the profile: it is made of the sizes, and this one is a third of its GPU instance.
    assert (small.mig_profile, small.processes) == ("1c.3g.40gb", ())
    assert untold(large) == untold(small)


def test_instances_of_a_gpu_with_gpm_tell_their_own_activity() -> None:
    fake = FakeNvml("a100", "h100")
    fake.gpus[0]["nvmlGpmQueryDeviceSupport"] = 1
    with Nvml(fake) as nvml:
        nvml.read(1)
        fake.now_us += SECOND_US
        assert [gpu.sm_active_pct for gpu in nvml.read(2)] == [61.25] * 4
        assert len(fake.samples) == 2 * 4
    assert fake.samples == {}


def test_a_desktop_gpu_tells_less() -> None:
    (gpu,) = read_twice("rtx4090")
    absent = {"sm_active_pct", "tensor_active_pct", "nvlink_rx_bytes", "nvlink_tx_bytes", "ecc_corrected"}
    assert untold(gpu) == absent | {"ecc_uncorrected"}
    assert gpu.processes == (
        GpuProcess(1200, 310_000_000, "graphics", "alive"),
        GpuProcess(5001, 512_000_000, "compute", "alive"),
    )
    assert (gpu.clock_reasons, gpu.pcie_generation, gpu.pcie_generation_max) == (("gpu_idle",), 1, 4)
    assert "ECC" in gpu.untold["ecc_corrected"]
    assert "dmesg" in gpu.untold["xids"]


def test_an_old_driver_has_older_functions() -> None:
    (gpu,) = read_twice("t4")
    assert gpu.clock_reasons == ("sw_power_cap",)
    assert gpu.processes == (GpuProcess(900, 14_700_000_000, "compute", "alive"),)
    assert gpu.memory_used_bytes == 14_843_721_216
    # 2048 and 512 KB/s, asked during 20 ms each.
    assert (gpu.pcie_rx_bytes_per_s, gpu.pcie_tx_bytes_per_s) == (2048 * 1024, 512 * 1024)
    assert untold(gpu) == {"sm_active_pct", "tensor_active_pct", "nvlink_rx_bytes", "nvlink_tx_bytes"}
    assert "520" in gpu.untold["sm_active_pct"]


def test_a_hot_gpu_says_why_it_is_slow() -> None:
    (gpu,) = read_twice("v100")
    assert gpu.clock_reasons == ("hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown")
    assert (gpu.temperature_c, gpu.slowdown_temperature_c) == (88, 87)
    assert (gpu.sm_clock_hz, gpu.sm_clock_max_hz) == (735_000_000, 1_530_000_000)
    assert (gpu.ecc_corrected, gpu.ecc_uncorrected) == (1204, 2)
    assert (gpu.nvlink_rx_bytes, gpu.nvlink_tx_bytes) == (1000, 2000)


def test_xids_are_seen_once_at_the_gpu_that_had_them() -> None:
    with reading("h100", "v100") as (fake, nvml):
        assert [gpu.xids for gpu in nvml.read(1)] == [(), ()]
        fake.xids.extend([(1, 31), (1, 43), (0, 63)])
        first, second = nvml.read(7)
        assert first.xids == (Xid(63, 7),)
        assert second.xids == (Xid(31, 7), Xid(43, 7))
        assert [gpu.xids for gpu in nvml.read(8)] == [(), ()]
        assert [gpu.xid_count for gpu in nvml.read(9)] == [1, 2]
    assert fake.watched == set()


def test_a_flood_of_xids_ends() -> None:
    with reading("h100") as (fake, nvml):
        fake.xids.extend([(0, 13)] * 1000)
        assert 0 < len(nvml.read(1)[0].xids) < 1000


def test_without_the_numbers_of_the_machine_no_process_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diag.collect.nvml_listing.sees_all_processes", lambda: False)
    fake = FakeNvml("h100", "v100")
    fake.gpus[0] |= {f"nvmlDeviceGet{kind}RunningProcesses_v3": [] for kind in ("Compute", "MPSCompute")}
    with Nvml(fake) as nvml:
        hidden, seen = nvml.read(1)
    assert (hidden.processes, hidden.untold["processes"]) == (None, HIDDEN)
    assert seen.processes == (GpuProcess(31337, 31_000_000_000, "compute", None),), "whose number that is nobody knows"


def test_who_ended_and_who_lives_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diag.collect.nvml_processes.state_of", state_of)
    program = "import os\nprint(flush=True)\npid = os.fork()\nif not pid: os._exit(0)\nprint(pid, flush=True)\ninput()"
    with running(program) as process, reading("v100") as (fake, nvml):
        zombie = int(line(process))
        wait_for(lambda: state_of(zombie) == "zombie")
        held = [[process.pid, 1], [zombie, 2], [NO_PROCESS, 3]]
        fake.gpus[0]["nvmlDeviceGetComputeRunningProcesses_v3"] = held
        told = {each.pid: each.state for each in nvml.read(1)[0].processes or ()}
    assert told == {process.pid: "alive", zombie: "zombie", NO_PROCESS: "gone"}


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to become another user")
def test_the_process_of_another_user_is_no_dead_one() -> None:
    assert as_nobody(lambda: state_of(os.getppid())) == "alive"


def test_the_namespace_of_this_process_is_told(tmp_path: Path) -> None:
    assert isinstance(sees_all_processes(), bool)
    assert not sees_all_processes(tmp_path), "a folder is no namespace"
    assert not sees_all_processes(tmp_path / "absent")


def test_memory_of_a_process_may_be_unknown() -> None:
    with reading("v100") as (fake, nvml):
        fake.gpus[0]["nvmlDeviceGetComputeRunningProcesses_v3"] = [[9, None]]
        assert nvml.read(1)[0].processes == (GpuProcess(9, None, "compute", "alive"),)
