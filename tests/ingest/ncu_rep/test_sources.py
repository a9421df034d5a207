"""Which line an instruction comes from, and source files that a report carries."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from diag.ingest.launch_records import Instruction
from diag.ingest.ncu_rep.elf import DamagedElf
from diag.ingest.ncu_rep.line_table import DamagedTable, Row, rows_of
from diag.ingest.ncu_rep.machine_code import LARGEST_TABLE_BYTES, functions_with_lines
from diag.ingest.ncu_rep.read import read
from tests.builders.cubin import cubin
from tests.builders.ncu_report import KernelLaunch, NcuReport

START = 0x7F00_0000_0000
TWO = {"scale": (3, [(0, 10), (32, 12)]), "add": (2, [(0, 20)])}


def instructions_of(report: NcuReport, folder: Path) -> list[list[Instruction]]:
    return [list(launch.instructions) for launch in read(report.write(folder / "kernels.ncu-rep")).launches]


def at(offset: int, line: int) -> Instruction:
    return Instruction(START + offset, None, "/src/kernels.cu", line)


def test_each_launch_finds_the_lines_of_its_kernel(tmp_path: Path) -> None:
    """Older reports say where the kernel was loaded to as a value, newer ones as an instance; most hold no lines."""
    older = {"launch__function_pcs": float(START)}
    newer = KernelLaunch({"launch__function_pcs": 1}, "add", instances={"launch__function_pcs": {0: START}}, cubin=5)
    report = NcuReport(
        [
            KernelLaunch(older, "scale", cubin=5),
            newer,
            KernelLaunch(older, "scale", cubin=6),
            KernelLaunch(older, "scale", cubin=7),
            KernelLaunch({}, "scale", cubin=5),
            KernelLaunch(older, "other", cubin=5),
        ],
        cubins={5: cubin(TWO), 6: cubin()},
    )
    assert instructions_of(report, tmp_path) == [
        [at(0, 10), at(16, 10), at(32, 12)],
        [at(0, 20), at(16, 20)],
        [],
        [],
        [],
        [],
    ]


def test_source_files(tmp_path: Path) -> None:
    report = read(NcuReport([KernelLaunch({})], sources={"/src/a.cu": "int a;\n"}).write(tmp_path / "kernels.ncu-rep"))
    assert list(report.launches)
    assert report.facts.sources == {"/src/a.cu": "int a;\n"}


@pytest.mark.parametrize("version", [2, 3, 4])
def test_tables_of_each_version(version: int) -> None:
    functions = functions_with_lines(cubin(TWO, version=version))
    assert {name: list(each.instructions(START, 16)) for name, each in functions.items()} == {
        "scale": [at(0, 10), at(16, 10), at(32, 12)],
        "add": [at(0, 20), at(16, 20)],
    }


def test_instructions_before_volta_take_half(tmp_path: Path) -> None:
    functions = functions_with_lines(cubin(TWO))
    assert [each.address - START for each in functions["add"].instructions(START, 8)] == [0, 8, 16, 24]


def test_a_table_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    launch = KernelLaunch({"launch__function_pcs": START}, "scale", cubin=5)
    report = read(NcuReport([launch], cubins={5: cubin(TWO, version=5)}).write(tmp_path / "kernels.ncu-rep"))
    (found,) = report.launches
    assert found.instructions == ()
    assert report.problems == ["The table of lines of some machine code cannot be read: version 5 is not known."]


def test_a_table_that_is_too_large_is_not_read() -> None:
    lines = [(0, 1 + n % 2) for n in range(LARGEST_TABLE_BYTES // 5 + 1)]
    with pytest.raises(DamagedTable, match="larger than 1 MB"):
        functions_with_lines(cubin({"scale": (1, lines)}))


def test_a_cubin_cut_anywhere() -> None:
    whole = cubin(TWO)
    for end in range(len(whole)):
        with pytest.raises(DamagedElf):
            functions_with_lines(whole[:end])


@pytest.mark.parametrize("field", [24, 32])
def test_sections_whose_place_or_size_is_only_claimed(field: int) -> None:
    """Code of 16 EiB would have as many instructions."""
    content = bytearray(cubin(TWO))
    (table_at,) = struct.unpack_from("<Q", content, 40)
    first_function = table_at + 64
    struct.pack_into("<Q", content, first_function + field, (1 << 64) - 1)
    with pytest.raises(DamagedElf):
        functions_with_lines(bytes(content))


def test_a_table_of_sections_beyond_the_end() -> None:
    content = bytearray(cubin(TWO))
    struct.pack_into("<Q", content, 40, (1 << 64) - 1)
    with pytest.raises(DamagedElf):
        functions_with_lines(bytes(content))


def test_a_table_cut_anywhere_or_with_any_byte() -> None:
    content = cubin(TWO)
    start = content.index(b"\x02\x00", 64 + 16 * 5) - 4
    (n_bytes,) = struct.unpack_from("<I", content, start)
    table = content[start : start + 4 + n_bytes]
    assert list(rows_of(table))[-1] == Row(32, None, None)
    for at_byte in range(len(table)):
        with pytest.raises(DamagedTable):
            list(rows_of(table[: at_byte or 1]))
        for other in (0, 1, 0x7F, 0x80, 0xFF):
            try:
                rows = list(rows_of(table[:at_byte] + bytes([other]) + table[at_byte + 1 :]))
            except DamagedTable:
                continue
            assert len(rows) <= len(table)


def test_special_opcodes_and_those_of_vendors() -> None:
    """Opcode 10 + (2 - -5) + 14·3 = 59 goes on by 3 bytes and 2 lines; opcode 8 by (255 - 10) / 14 = 17 bytes."""
    header = b"\x01\x01\xfb\x0e\x0a" + bytes((0, 1, 1, 1, 1, 0, 0, 0, 1)) + b"\0" + b"a.cu\0\0\0\0" + b"\0"
    vendor = b"\x00\x03\x90\x01\x02"
    program = vendor + bytes([59]) + b"\x08\x01" + b"\x09\x05\x00\x05\x07\x06\x07\x01" + b"\x00\x01\x01"
    unit = struct.pack("<HI", 2, len(header)) + header + program
    assert list(rows_of(struct.pack("<I", len(unit)) + unit)) == [
        Row(3, "a.cu", 3),
        Row(20, "a.cu", 3),
        Row(25, "a.cu", 3),
        Row(25, None, None),
    ]
