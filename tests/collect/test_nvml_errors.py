"""Errors of NVML while GPUs are read: each becomes a sentence, none ends the watch."""

from __future__ import annotations

import pytest

from diag.collect.nvml import Nvml
from diag.collect.nvml_errors import LOST, Code, sentence
from tests.collect.fake_nvml import FakeNvml, error, pynvml

EVERY_ERROR = sorted(
    name.removeprefix("NVMLError_") for name in vars(pynvml) if name.startswith("NVMLError_") and "Lib" not in name
)


def test_what_a_gpu_does_not_offer_is_asked_once() -> None:
    fake = FakeNvml("rtx4090")
    with Nvml(fake) as nvml:
        for time_ns in range(5):
            nvml.read(time_ns)
    assert fake.calls["nvmlGpmQueryDeviceSupport"] == 1
    assert fake.calls["nvmlDeviceGetTotalEccErrors"] == 2  # corrected and uncorrected
    assert fake.calls["nvmlDeviceGetUtilizationRates"] == 5
    # Five times the PCIe counters, once each of the two kinds of NVLink counters.
    assert fake.calls["nvmlDeviceGetFieldValues"] == 5 + 2


def test_facts_are_read_once() -> None:
    fake = FakeNvml("h100")
    with Nvml(fake) as nvml:
        for time_ns in range(5):
            (gpu,) = nvml.read(time_ns)
    for name in (
        "nvmlDeviceGetName",
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetEnforcedPowerLimit",
        "nvmlDeviceGetTemperatureThreshold",
        "nvmlDeviceGetMaxPcieLinkGeneration",
        "nvmlDeviceGetMaxPcieLinkWidth",
    ):
        assert fake.calls[name] == 1, name
    assert fake.calls["nvmlDeviceGetMaxClockInfo"] == 2
    assert (gpu.power_limit_w, gpu.slowdown_temperature_c) == (700.0, 89)


def test_a_fact_that_failed_is_asked_until_it_is_told() -> None:
    fake = FakeNvml("h100")
    fake.gpus[0]["errors"] = {"nvmlDeviceGetEnforcedPowerLimit": "Unknown"}
    with Nvml(fake) as nvml:
        (gpu,) = nvml.read(1)
        assert (gpu.power_limit_w, gpu.untold["power_limit_w"]) == (
            None,
            "NVML answered with error 999 (nvmlReturn_t).",
        )
        del fake.gpus[0]["errors"]
        (gpu,) = nvml.read(2)
    assert (gpu.power_limit_w, "power_limit_w" in gpu.untold) == (700.0, False)


@pytest.mark.parametrize("name", EVERY_ERROR)
def test_any_error_costs_its_field_alone(name: str) -> None:
    fake = FakeNvml("h100", "v100")
    fake.gpus[0]["errors"] = {"nvmlDeviceGetPowerUsage": name}
    with Nvml(fake) as nvml:
        sick, healthy = nvml.read(1)
    assert sick.power_w is None
    assert healthy.power_w == pytest.approx(118.2)
    assert sick.untold["power_w"].endswith(".")
    # A GPU that is lost is not asked on; any other error leaves the rest as it is.
    assert (sick.temperature_c is None) == (name == "GpuIsLost")


def test_a_gpu_lost_in_the_middle_stays_in_the_list() -> None:
    fake = FakeNvml("h100", "v100")
    with Nvml(fake) as nvml:
        nvml.read(1)
        fake.lose(0)
        fake.xids.append((0, 79))
        lost, other = nvml.read(2)
        asked = fake.calls.total()
        again, _ = nvml.read(3)
    assert (lost.uuid, lost.name) == ("GPU-11111111-aaaa-4bbb-8ccc-000000000100", "NVIDIA H100 80GB HBM3")
    assert [xid.number for xid in lost.xids] == [79]
    assert lost.sm_clock_max_hz == 1_980_000_000  # what was known of it remains
    assert (lost.resident_pct, lost.untold["resident_pct"]) == (None, LOST)
    assert (lost.memory_used_bytes, lost.untold["processes"]) == (None, LOST)
    assert other.temperature_c == 88
    assert again.untold == lost.untold
    assert fake.calls.total() - asked < asked / 2, "a lost GPU is not asked again"
    assert fake.samples == {}


def test_events_and_the_end_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after the loss of a GPU, of which NVML speaks in every call then."""

    def fails(*_: object) -> None:
        raise error("GpuIsLost")

    fake = FakeNvml("h100", "v100")
    with Nvml(fake) as nvml:
        nvml.read(1)
        for name in ("nvmlEventSetWait_v2", "nvmlEventSetFree", "nvmlGpmSampleFree", "nvmlShutdown"):
            monkeypatch.setattr(fake, name, fails)
        assert [gpu.temperature_c for gpu in nvml.read(2)] == [66, 88]


def test_without_an_event_set_there_are_no_xids_but_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses() -> None:
        raise error("NoPermission")

    fake = FakeNvml("v100")
    monkeypatch.setattr(fake, "nvmlEventSetCreate", refuses)
    with Nvml(fake) as nvml:
        (gpu,) = nvml.read(1)
    assert (gpu.temperature_c, gpu.untold["xids"]) == (88, "Only administrators may read it: run diag as root.")


def test_instances_that_cannot_be_listed_leave_their_gpu() -> None:
    fake = FakeNvml("a100")
    fake.gpus[0]["errors"]["nvmlDeviceGetMaxMigDeviceCount"] = "NoPermission"
    with Nvml(fake) as nvml:
        assert len(nvml.read(1)) == 1
        assert nvml.untold["gpus"].startswith("MIG instances of GPU 0: Only administrators")


def test_a_gpu_lost_before_is_named() -> None:
    with Nvml(FakeNvml("lost", "v100")) as nvml:
        assert [gpu.index for gpu in nvml.read(1)] == [1]
        assert nvml.untold["gpus"] == f"GPU 0: {LOST}"


def test_a_gpu_that_is_kept_away_is_named() -> None:
    fake = FakeNvml("h100", "v100")
    fake.gpus[1]["errors"] = {"nvmlDeviceGetHandleByIndex": "NoPermission"}
    with Nvml(fake) as nvml:
        assert len(nvml.read(1)) == 1
        assert nvml.untold["gpus"].startswith("GPU 1: this process may not open it.")


def test_permission_for_activity_says_how_to_get_it() -> None:
    fake = FakeNvml("h100")
    fake.gpus[0]["errors"] = {"nvmlGpmQueryDeviceSupport": "NoPermission"}
    with Nvml(fake) as nvml:
        said = nvml.read(1)[0].untold["sm_active_pct"]
    assert "CAP_SYS_ADMIN" in said or "SYS_ADMIN" in said
    assert "NVreg_RestrictProfilingToAdminUsers=0" in said


@pytest.mark.parametrize("answer", ["NotSupported", float("nan")])
def test_activity_that_was_not_counted_has_a_reason(answer: object) -> None:
    fake = FakeNvml("h100")
    fake.gpus[0]["gpm"]["NVML_GPM_METRIC_ANY_TENSOR_UTIL"] = answer
    with Nvml(fake) as nvml:
        nvml.read(1)
        fake.now_us += 1
        (gpu,) = nvml.read(2)
    assert gpu.tensor_active_pct is None
    assert gpu.untold["tensor_active_pct"].endswith(".")


def test_events_may_be_refused() -> None:
    fake = FakeNvml("h100")
    fake.gpus[0]["errors"] = {"nvmlDeviceGetSupportedEventTypes": "NoPermission"}
    with Nvml(fake) as nvml:
        (gpu,) = nvml.read(1)
    assert (gpu.xids, gpu.untold["xids"]) == ((), "Only administrators may read it: run diag as root.")


def test_the_codes_are_those_of_the_real_library() -> None:
    assert {code.name: code.value for code in Code} == {
        code.name: getattr(pynvml, f"NVML_ERROR_{code.name}") for code in Code
    }


def test_every_code_is_a_sentence() -> None:
    for code in [*Code, 4711]:
        for field in ("power_w", "sm_active_pct", "ecc_corrected"):
            said = sentence(code, field)
            assert said[0].isupper(), said
            assert said.endswith((".", "ERR_NVGPUCTRPERM")), said
