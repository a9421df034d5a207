"""What Linux says of a CPU, wherever it says it; and calls that other programs disturb are left out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from diag.probes.calibration import host
from diag.probes.calibration.host import COMMON_CACHES, Caches, HostClock
from diag.probes.calibration.sampling import Visit


def write(folder: Path, caches: Mapping[str, tuple[str, str, str]]) -> Path:
    for name, (level, kind, size) in caches.items():
        (folder / name).mkdir()
        for file, said in (("level", level), ("type", kind), ("size", size)):
            (folder / name / file).write_text(f"{said}\n")
    return folder


def test_data_caches_by_level(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        {
            "index0": ("1", "Data", "48K"),
            "index1": ("1", "Instruction", "32K"),
            "index2": ("2", "Unified", "1024K"),
            "index3": ("3", "Unified", "32M"),
        },
    )
    assert host.caches(folder) == Caches(48 << 10, 1 << 20, 32 << 20)


def test_a_cpu_without_a_third_level_has_none(tmp_path: Path) -> None:
    folder = write(tmp_path, {"index0": ("1", "Data", "64K"), "index1": ("2", "Unified", "512K")})
    assert host.caches(folder).l3_bytes == 0


@pytest.mark.parametrize("caches", [{}, {"index0": ("one", "Data", "48K")}, {"index0": ("1", "Data", "")}])
def test_where_nothing_is_said_caches_are_common_ones(
    caches: Mapping[str, tuple[str, str, str]], tmp_path: Path
) -> None:
    assert host.caches(write(tmp_path, caches)) == COMMON_CACHES


def test_names_and_features(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text("processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: avx2 avx512_bf16\n\nprocessor\t: 1\n")
    assert host.cpu_name(file) == "AMD EPYC"
    assert host.cpu_features(file) == {"avx2", "avx512_bf16"}
    assert host.cpu_features(tmp_path / "absent") == set()


def test_what_the_system_does_not_tell_is_unknown(tmp_path: Path) -> None:
    assert host.governor(tmp_path / "absent") == "unknown"
    assert host.available_bytes(tmp_path / "absent") is None


def test_waiting_is_added_over_threads(tmp_path: Path) -> None:
    for thread, said in (("1", "100 20 3"), ("2", "500 7 1"), ("3", ""), ("4", None)):
        (tmp_path / thread).mkdir()
        if said is not None:
            (tmp_path / thread / "schedstat").write_text(said)
    assert host.waited_ns(tmp_path) == 27


def visit_with(monkeypatch: pytest.MonkeyPatch, is_disturbed: list[bool], disturbance_ns: int, seconds: float) -> Visit:
    """A visit of so long to calls of one second each, of which some are disturbed."""
    waited, calls, now = 0, iter([False, *is_disturbed]), 0.0

    def run() -> None:
        nonlocal waited, now
        waited += disturbance_ns if next(calls) else 0
        now += 1.0

    monkeypatch.setattr(host, "waited_ns", lambda: waited)
    monkeypatch.setattr("time.monotonic", lambda: now)
    return HostClock().visit(run, seconds)


def test_calls_that_waited_for_a_core_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    visit = visit_with(monkeypatch, [False, True, False, True, False, False, False, True], 10**9, 8.0)
    assert (len(visit.times_ns), visit.disturbed, visit.is_shared) == (5, 3, False)


def test_a_visit_without_calls_left_alone_keeps_all_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    visit = visit_with(monkeypatch, [True, True, False, True, True, True] * 2, 10**9, 6.0)
    assert visit.is_shared
    assert len(visit.times_ns) == 12


def test_it_stays_longer_for_calls_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    visit = visit_with(monkeypatch, [True, True, False, False, False, True, False, False], 10**9, 4.0)
    assert (len(visit.times_ns), visit.disturbed, visit.is_shared) == (5, 3, False)


def test_a_moment_on_the_queue_is_no_disturbance(monkeypatch: pytest.MonkeyPatch) -> None:
    assert visit_with(monkeypatch, [True] * 6, 0, 6.0).disturbed == 0
