"""`diag doctor` on profilers, on permissions, and on the way of a range through nsys."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from diag.collect.ncu_tool import Ncu
from diag.doctor import machine, permissions, profilers
from diag.doctor.permissions import CAP_PERFMON, CAP_SYS_ADMIN, CAP_SYS_PTRACE
from diag.ingest.nsys_tool import Nsys, find_nsys
from tests.builders.nsys_report import script

NSYS = Nsys(Path("/opt/nsys"), (2022, 4, 2, 1), None)
NONE: frozenset[int] = frozenset()


def written(folder: Path, text: str) -> Path:
    (folder / "value").write_text(text)
    return folder / "value"


def test_profilers_are_named_with_their_versions() -> None:
    assert profilers.nsys_check(NSYS).said == "2022.4.2 at /opt/nsys"
    assert profilers.ncu_check(Ncu(Path("/opt/ncu"), (2024, 3, 2, 0))).said == "2024.3.2 at /opt/ncu"
    for absent in (profilers.nsys_check(None), profilers.ncu_check(None)):
        assert (absent.state, "Install it" in str(absent.fix)) == ("missing", True)


def test_packages_that_are_missing_are_an_option() -> None:
    assert profilers.packages_check({"torch": "2.9", "triton": "3.6", "nvtx": "0.2.11"}).state == "ok"
    assert profilers.packages_check({"torch": "2.9"}).said == "torch 2.9, triton missing, nvtx missing"


@pytest.mark.parametrize(
    ("text", "held", "state"),
    [
        ("RmProfilingAdminOnly: 1\nOther: 2\n", NONE, "limited"),
        ("RmProfilingAdminOnly: 1\n", frozenset({CAP_SYS_ADMIN}), "ok"),
        ("RmProfilingAdminOnly: 0\n", NONE, "ok"),
        ("Other: 2\n", NONE, "missing"),
    ],
)
def test_counters(text: str, held: frozenset[int], state: str, tmp_path: Path) -> None:
    check = permissions.counters(held, written(tmp_path, text))
    assert check.state == state
    assert ("NVreg_RestrictProfilingToAdminUsers=0" in str(check.fix)) == (state == "limited")


def test_counters_without_a_driver(tmp_path: Path) -> None:
    assert permissions.counters(NONE, tmp_path / "params").state == "missing"


@pytest.mark.parametrize(
    ("level", "held", "state"),
    [
        ("-1", NONE, "ok"),
        ("2\n", NONE, "ok"),
        ("3", NONE, "limited"),
        ("4", NONE, "limited"),
        ("4", frozenset({CAP_PERFMON}), "ok"),
        ("", NONE, "missing"),
    ],
)
def test_samples_of_the_cpu(level: str, held: frozenset[int], state: str, tmp_path: Path) -> None:
    check = permissions.cpu_samples(held, written(tmp_path, level))
    assert check.state == state
    assert ("perf_event_paranoid=2" in str(check.fix)) == (state == "limited")


@pytest.mark.parametrize(
    ("level", "held", "state"),
    [
        ("0", NONE, "ok"),
        ("1", NONE, "limited"),
        ("1", frozenset({CAP_SYS_PTRACE}), "ok"),
        ("3", frozenset({CAP_SYS_PTRACE}), "limited"),
    ],
)
def test_stacks_of_other_processes(level: str, held: frozenset[int], state: str, tmp_path: Path) -> None:
    assert permissions.other_processes(held, written(tmp_path, level)).state == state
    assert permissions.other_processes(held, tmp_path / "absent").state == "ok"


def test_capabilities_are_read_bit_by_bit(tmp_path: Path) -> None:
    status = written(tmp_path, "CapPrm:\t0\nCapEff:\t0000004000280000\n")
    assert permissions.capabilities(status) == {CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON}
    assert permissions.capabilities(tmp_path / "absent") == frozenset()


def test_the_driver_and_the_models_of_its_gpus(tmp_path: Path) -> None:
    (tmp_path / "nvidia0").touch()
    (tmp_path / "gpus" / "0000:01:00.0").mkdir(parents=True)
    (tmp_path / "gpus" / "0000:01:00.0" / "information").write_text("Model: \t\t NVIDIA H100\nIRQ:   1\n")
    (tmp_path / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\nGCC\n")
    devices, driver, *_ = machine.gpu(tmp_path, tmp_path)
    assert devices.said == "nvidia0: NVIDIA H100"
    assert driver.said == "version 550.54.15"


def test_a_range_cannot_be_tried_without_the_tools() -> None:
    assert profilers.nvtx_check(None, {"nvtx": "0.2.11"}).state == "missing"
    assert profilers.nvtx_check(NSYS, {}).state == "missing"


@pytest.mark.skipif(find_nsys() is None or find_spec("nvtx") is None, reason="needs an installed nsys and nvtx")
def test_a_range_goes_through_nsys_or_it_is_said_that_it_does_not() -> None:
    nsys, found = find_nsys(), profilers.packages()
    check = profilers.nvtx_check(nsys, found)
    assert check.state == "ok" or "no report in 2 attempts" in check.said, check
    # Where the program has no range, none is found.
    silent = profilers.nvtx_check(nsys, found, python="/bin/true")
    assert silent.state == "limited"
    assert "not recorded with nvtx" in silent.said or "no report in 2 attempts" in silent.said


def test_an_nsys_that_records_nothing_is_limited(tmp_path: Path) -> None:
    nsys = Nsys(script(tmp_path / "nsys", "exit 0"), (2024, 1), None)
    check = profilers.nvtx_check(nsys, {"nvtx": "0.2.11"}, sys.executable)
    assert (check.state, "wrote no report" in check.said) == ("limited", True)
