"""What was counted for each instruction of a launch."""

from __future__ import annotations

from pathlib import Path

from diag.launches.instructions import Instruction, instructions
from tests.builders.imported import imported
from tests.builders.ncu_report import NcuReport

RAN, SECTORS = "inst_executed", "memory_l2_theoretical_sectors_global"
REPORT = NcuReport.of({RAN: 30, SECTORS: 8}, instances={RAN: {0x20: 20, 0x10: 10}, SECTORS: {0x10: 8}})


def test_counts_are_by_address_and_metric(tmp_path: Path) -> None:
    with imported(REPORT, tmp_path) as case:
        assert instructions(case, 1, [RAN, SECTORS]) == [
            Instruction(0x10, {RAN: 10, SECTORS: 8}, None, None, None),
            Instruction(0x20, {RAN: 20}, None, None, None),
        ]


def test_code_and_line_are_there_where_they_are_known(tmp_path: Path) -> None:
    with imported(REPORT, tmp_path) as case:
        case.db.execute("INSERT INTO name (id, text, pattern) VALUES (999, '/src/a.cu', '/src/a.cu')")
        case.db.execute(
            "INSERT INTO launch_instruction (launch_id, address, sass, file_id, line) VALUES (1, 16, 'LDG R2', 999, 7)"
        )
        (first,) = instructions(case, 1, [SECTORS])
    assert first.where == "0x10 (LDG R2; a.cu:7)"


def test_what_was_not_counted_has_no_instructions(tmp_path: Path) -> None:
    with imported(REPORT, tmp_path) as case:
        assert instructions(case, 1, ["memory_l1_wavefronts_shared"]) == []
