"""Real reports, whole and damaged, read with NVIDIA's own package."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from diag.errors import InputError
from diag.ingest.launch_records import LaunchRecord, ReportFacts
from diag.ingest.ncu_official.limits import Limits
from diag.ingest.ncu_official.read import read
from tests.cli.conftest import snapshot
from tests.ingest.ncu_official.needs import official_reader

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
pytestmark = pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")

FOLDER = Path(REPORTS or "no-reports", "ncu")
COURSE = FOLDER / "cuda-course.ncu-rep"
FULL = FOLDER / "a100-selfjoin-full.ncu-rep"


@pytest.fixture(autouse=True)
def _needs_the_package() -> None:
    official_reader()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    folder = tmp_path / "reports"
    folder.mkdir()
    path = folder / "kernels.ncu-rep"
    path.write_bytes(COURSE.read_bytes())
    return path


def test_a_launch_is_told_in_full() -> None:
    facts, (launch, *_) = taken(FULL)
    (device,) = facts.devices
    assert (device.ordinal, device.name, device.compute_capability) == (0, "NVIDIA A100-PCIE-40GB", (8, 0))
    assert device.attributes["multiprocessor_count"] == 108
    assert (launch.kind, launch.short_name, launch.grid, launch.block) == (
        "kernel",
        "nodeCalculationsKernel",
        (2048, 1, 1),
        (1024, 1, 1),
    )
    assert (launch.device, launch.context, launch.stream) == (0, 1, 15)
    metrics = {metric.name: metric for metric in launch.metrics}
    assert (metrics["launch__registers_per_thread"].unit, metrics["launch__registers_per_thread"].value) == (
        "register/thread",
        32.0,
    )
    executed = metrics["inst_executed"]
    assert executed.value == 1_254_131_714_019 == sum(int(part.value or 0) for part in executed.instances)
    assert executed.instances[0].key == 23_318_635_720_704
    first = launch.instructions[0]
    assert (first.address, first.sass) == (23_318_635_720_704, "IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28]")
    assert {instruction.address for instruction in launch.instructions} >= {part.key for part in executed.instances}
    (pipe,) = [rule for rule in launch.rules if rule.rule == "HighPipeUtilization"]
    assert (pipe.section, pipe.type, pipe.message) == (
        "ComputeWorkloadAnalysis",
        "info",
        "No pipeline is over-utilized.",
    )


def test_lines_of_source_code_are_told() -> None:
    _, launches = taken(COURSE)
    assert [len(launch.instructions) for launch in launches] == [112, 184]
    first = launches[0].instructions[0]
    assert (first.address, Path(first.file or "").name, first.line) == (140_022_235_999_488, "main.cu", 3)


def test_numbers_of_bytes_are_no_addresses() -> None:
    """The library has code for any number from 54,912 on, and occupancy is told per bytes of shared memory."""
    _, (launch,) = taken(FOLDER / "gh200-nuclear-fast.ncu-rep")
    occupancy = {metric.name: metric for metric in launch.metrics}["launch__occupancy_per_shared_mem_size"]
    assert 100_352 in {part.key for part in occupancy.instances}
    assert launch.instructions == []


def test_estimated_speedups_are_told() -> None:
    _, (launch,) = taken(FOLDER / "gh200-nuclear-fast.ncu-rep")
    gains = {rule.rule: (round(rule.speedup_pct or 0, 3), rule.speedup_kind) for rule in launch.rules}
    assert gains["TheoreticalOccupancy"] == (62.5, "local")
    assert gains["WorkloadImbalance"] == (21.405, "global")
    (focus,) = next(rule for rule in launch.rules if rule.rule == "TheoreticalOccupancy").focus
    assert (focus.metric, focus.value, focus.severity) == ("smsp__maximum_warps_avg_per_active_cycle", 6.0, "high")


def test_many_workers_read_what_one_reads() -> None:
    facts, launches = taken(FULL, Limits(growth_bytes=1 << 40))
    assert taken(FULL, Limits(growth_bytes=0)) == (facts, launches)
    assert len(launches) == 4


def cut(tenths: int, folder: Path) -> Path:
    whole = FULL.read_bytes()
    path = folder / "cut.ncu-rep"
    path.write_bytes(whole[: len(whole) * tenths // 10])
    return path


@pytest.mark.parametrize("tenths", range(4))
def test_a_report_cut_before_its_first_launch_ends_has_none(tenths: int, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="finds no launch in it"):
        read(cut(tenths, tmp_path))


@pytest.mark.parametrize(("tenths", "n_launches"), [(4, 1), (5, 1), (6, 2), (7, 2), (8, 3), (9, 3)])
def test_a_cut_report_gives_its_whole_launches(tenths: int, n_launches: int, tmp_path: Path) -> None:
    found = read(cut(tenths, tmp_path))
    assert list(found.launches) == taken(FULL)[1][:n_launches]
    assert found.problems == ["1 damaged launch left out."]


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"NVR\x00" + bytes(60), b"NVR\x00" + bytes(range(256)) * 9, b"SQLite format 3\x00" * 99]
)
def test_what_is_no_report_has_no_launch(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.ncu-rep").write_bytes(content)
    with pytest.raises(InputError, match="finds no launch in it"):
        read(tmp_path / "x.ncu-rep")


def test_little_memory_is_one_sentence() -> None:
    with pytest.raises(InputError, match="needs more memory than it may have"):
        read(COURSE, limits=Limits(memory_bytes=150 << 20))


def test_a_long_answer_is_one_sentence() -> None:
    with pytest.raises(InputError, match=r"tells more of it than 10.0 kB"):
        read(COURSE, limits=Limits(answer_bytes=10_000))


@pytest.mark.parametrize("name", ["a b.ncu-rep", "caf\udce9.bin", "new\nline", "é漢.nsight-cuprof-report"])
def test_a_report_may_have_any_name(name: str, copy: Path) -> None:
    path = copy.rename(copy.with_name(name))
    before = snapshot(path.parent)
    assert len(taken(path)[1]) == 2
    assert snapshot(path.parent) == before


def taken(report: Path, limits: Limits = Limits()) -> tuple[ReportFacts, list[LaunchRecord]]:
    found = read(report, limits=limits)
    launches: Iterator[LaunchRecord] = found.launches
    return found.facts, list(launches)
