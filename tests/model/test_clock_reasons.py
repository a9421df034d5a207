"""Why clocks are held down: every bit has a name, those that NVML documents have a meaning."""

from __future__ import annotations

import pytest

from diag.model.clock_reasons import REASONS, keys_of, reason_of


def test_no_bit_is_lost() -> None:
    every = keys_of((1 << 64) - 1)
    assert len(every) == len(set(every)) == 64
    assert every[:3] == ("gpu_idle", "applications_clocks_setting", "sw_power_cap")
    assert [reason_of(key).bit for key in every] == list(range(64))
    assert [reason_of(key).kind for key in every[11:]] == ["unknown"] * 53


def test_each_reason_says_what_it_means_and_what_to_do() -> None:
    assert all(key == reason.key and reason.means and reason.do.endswith(".") for key, reason in REASONS.items())
    assert {key for key, reason in REASONS.items() if reason.kind == "thermal"} == {
        "sw_thermal_slowdown",
        "hw_thermal_slowdown",
    }
    assert {key for key, reason in REASONS.items() if reason.kind == "power"} == {
        "sw_power_cap",
        "hw_power_brake_slowdown",
    }
    assert {key for key, reason in REASONS.items() if reason.kind == "harmless"} == {"gpu_idle"}


def test_a_key_from_nowhere_is_still_a_reason() -> None:
    assert (reason_of("from the future").kind, reason_of("from the future").bit) == ("unknown", -1)


def test_the_bits_are_those_of_the_real_library() -> None:
    pynvml = pytest.importorskip("pynvml", reason="needs nvidia-ml-py")
    prefixes = ("nvmlClocksEventReason", "nvmlClocksThrottleReason")
    named = {
        next(name.removeprefix(prefix) for prefix in prefixes if name.startswith(prefix)): mask
        for name, mask in vars(pynvml).items()
        if name.startswith(prefixes) and not name.endswith(("None", "All", "UserDefinedClocks"))
    }
    ours = {"".join(map(str.capitalize, key.split("_"))): 1 << reason.bit for key, reason in REASONS.items()}
    assert named == ours
