"""Reports that other people made: nothing of them is lost, and what is known of their devices stands in the case."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.launch_records import LaunchRecord
from diag.ingest.ncu_rep.read import read

LAUNCHES = {
    "a100-selfjoin-14launches": 14,
    "a100-selfjoin-2020.3": 4,
    "a100-selfjoin-full": 4,
    "a100-selfjoin-higgs": 1,
    "a10g-esmm-basic": 11,
    "a10g-esmm-no-rules": 12,
    "a10g-esmm-small": 6,
    "cuda-course": 2,
    "gh200-nuclear-fast": 1,
}
"""As `ncu --import` counts them."""

SAMPLED = ("a100-selfjoin-14launches", "a100-selfjoin-full")
"""Those that were measured instruction by instruction."""

NO_SASS = "Instructions are known by address and line: their text (SASS) takes --with-ncu-report."

DEVICES = {
    "NVIDIA A100-PCIE-40GB": (8, 0, 108, 1_410_000_000, 1_555_200_000_000, 41_943_040, 64, 32, 65_536, 167_936),
    "NVIDIA A10G": (8, 6, 80, 1_710_000_000, 600_096_000_000, 6_291_456, 48, 16, 65_536, 102_400),
    "NVIDIA GeForce RTX 2080 Ti": (7, 5, 68, 1_620_000_000, 616_000_000_000, 5_767_168, 32, 16, 65_536, 65_536),
    "NVIDIA GH200 120GB": (9, 0, 132, 1_980_000_000, 4_022_784_000_000, 62_914_560, 64, 32, 65_536, 233_472),
}
_DEVICE = """
    SELECT DISTINCT d.name, compute_major, compute_minor, sm_count, clock_hz, memory_bandwidth_per_s, l2_bytes,
           max_warps_per_sm, max_blocks_per_sm, max_registers_per_sm, max_shared_per_sm_bytes
      FROM launch l JOIN device d ON d.id = l.device_id
"""


def report(real_reports: list[Path], name: str) -> list[LaunchRecord]:
    (path,) = (path for path in real_reports if path.stem == name)
    return list(read(path).launches)


def test_every_launch_is_read_and_nothing_is_amiss(real_reports: list[Path]) -> None:
    for path in real_reports:
        found = read(path)
        assert len(list(found.launches)) == LAUNCHES[path.stem]
        assert found.problems == ([NO_SASS] if path.stem in SAMPLED else [])
        assert not found.facts.is_cut


def test_cut_at_each_tenth_it_gives_the_launches_before(real_reports: list[Path], tmp_path: Path) -> None:
    for path in real_reports:
        whole, content = list(read(path).launches), path.read_bytes()
        for tenth in range(1, 10):
            cut = tmp_path / path.name
            cut.write_bytes(content[: len(content) * tenth // 10])
            found = read(cut)
            assert found.facts.is_cut
            launches = [replace(launch, instructions=()) for launch in found.launches]
            expected = [replace(launch, instructions=()) for launch in whole[: len(launches)]]
            assert repr(launches) == repr(expected), "repr: some of the values are not a number"


def test_limits_of_the_device_that_each_launch_ran_on(real_reports: list[Path]) -> None:
    for path in real_reports:
        with open_inputs([path], ImportOptions(use_cache=False)) as case:
            ((name, *limits),) = case.rows(_DEVICE)
        assert tuple(limits) == DEVICES[name], path


def test_clocks_are_locked_and_conditions_known_where_the_command_line_is_kept(real_reports: list[Path]) -> None:
    for path in real_reports:
        found = read(path)
        is_kept = path.stem not in ("a100-selfjoin-2020.3", "a100-selfjoin-full")  # made by 2021.2
        expected = ("all", "kernel") if is_kept else (None, None)
        assert (found.facts.cache_control, found.facts.replay) == expected
        assert all(launch.is_clock_locked for launch in found.launches)


def test_speedups_of_a_newer_report(real_reports: list[Path]) -> None:
    """As `IRuleResult.speedup_estimation()` of ncu_report 2026.3.1 says."""
    (launch,) = report(real_reports, "gh200-nuclear-fast")
    assert [(rule.rule, rule.type, rule.speedup_pct, rule.speedup_kind) for rule in launch.rules] == [
        ("SOLBottleneck", "optimization", None, None),
        ("TheoreticalOccupancy", "optimization", 62.5, "local"),
        ("WorkloadImbalance", "optimization", 21.404961008137015, "global"),
    ]
    assert [each.metric for each in launch.rules[1].focus] == ["smsp__maximum_warps_avg_per_active_cycle"]


def test_every_message_of_an_older_report(real_reports: list[Path]) -> None:
    """One rule said that global accesses are uncoalesced, at each of ten instructions."""
    first = report(real_reports, "a100-selfjoin-full")[0]
    uncoalesced = [rule for rule in first.rules if rule.rule == "UncoalescedGlobalAccess"]
    assert len(uncoalesced) == 10
    assert {rule.type for rule in uncoalesced} == {"warning"}


def test_lines_of_a_program_that_was_compiled_with_them(real_reports: list[Path]) -> None:
    """As `IAction.source_info(address)` of ncu_report 2026.3.1 says, also up to the last no-operation."""
    first, _ = report(real_reports, "cuda-course")
    lines = {each.address: each.line for each in first.instructions}
    start = 0x7F5977A32D00
    assert len(lines) == 112
    assert [lines[start], lines[start + 0x110], lines[start + 0x6F0]] == [3, 5, 19]
    assert {each.file for each in first.instructions} == {"/home/userxx/PythonProject/QZDemo/cudaCode/main.cu"}
