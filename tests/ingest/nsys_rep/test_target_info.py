"""The machine in reports that are built field by field."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from diag.ingest.nsys_rep import properties
from diag.ingest.nsys_rep.target_info import host_rows
from tests.builders.nsys_report import Report, message
from tests.ingest.nsys_rep.conversion import converted_build, rows

VM = 1 << 48


def with_host(host: dict[int, Any], folder: Path) -> Path:
    return converted_build(Report([], host=host), folder)


def state(*values: tuple[int, bytes]) -> dict[int, Any]:
    return {1: b"Local (CLI)", 2: {1: [{1: number, 2: value} for number, value in values]}, 3: VM}


def test_properties_that_are_texts_and_known(tmp_path: Path) -> None:
    host = state((619, b"node7"), (610, b"TOKEN=secret\0"), (897, message({1: {2: b"GPU"}})), (99999, b"?"), (1, b"8"))
    export = with_host({1: host}, tmp_path)
    assert rows(export, "TARGET_INFO_SYSTEM_ENV") == [
        (VM, b"Local (CLI)", b"Hostname", 619, b"node7"),
        (VM, b"Local (CLI)", b"CpuCores", 1, b"8"),
    ]
    assert b"secret" not in export.read_bytes()


def test_names_of_properties_are_words_and_differ() -> None:
    names = list(properties.NAMES.values())
    assert len(set(names)) == len(names) == 172
    assert all(set(name) <= {*string.ascii_letters, *string.digits, "_"} for name in names)
    assert set(names) >= properties.LEFT_OUT
    assert (properties.NAMES[619], properties.NAMES[610]) == ("Hostname", "DeviceEnvironment")


def test_network_cards(tmp_path: Path) -> None:
    nic = {1: 3, 2: b"mlx5_0", 3: 4117, 4: 5555, 5: 1, 6: 630762345962706618}
    export = with_host({1: state((properties.NICS, message({1: nic})))}, tmp_path)
    assert rows(export, "TARGET_INFO_NIC_INFO") == [(630762345962706618, b"Local (CLI)", 3, b"mlx5_0", 4117, 5555, 1)]


def test_network_cards_that_cannot_be_decoded_are_none(tmp_path: Path) -> None:
    export = with_host({1: state((properties.NICS, b"\xff\xff"), (1, b"8"))}, tmp_path)
    assert rows(export, "TARGET_INFO_NIC_INFO") is None
    assert rows(export, "TARGET_INFO_SYSTEM_ENV") is not None


@given(st.binary(max_size=200))
def test_other_bytes_are_rows_or_no_message(data: bytes) -> None:
    try:
        described = list(host_rows(data))
    except DecodeError:
        return
    assert all(set(columns) == set(table.columns) for table, columns in described)
