"""GPUs, contexts and streams in reports that are built field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from diag.ingest.nsys_rep.devices import device_rows
from tests.builders.nsys_report import Report, message
from tests.ingest.nsys_rep.conversion import converted_build, named_rows, rows

VM = 1 << 48
TEXTS_OF_GPU = (2, 3, 5, 7, 16, 17)
GPU_FIELDS = {number: b"text %d" % number if number in TEXTS_OF_GPU else 1000 + number for number in range(1, 45)}
# Which field stands in which column of the export that nsys 2022.4 makes of a report with such a GPU, from `id` on.
GPU_FIELDS_BY_COLUMN = (1, 2, 3, 4, 10, 11, 12, 13, 14, 9, 5, 6, 7, 15, 16, 17, *range(21, 45))


def with_devices(devices: dict[int, Any], folder: Path) -> Path:
    return converted_build(Report([], behind_strings=[b"", message(devices)]), folder)


def test_every_column_of_a_gpu(tmp_path: Path) -> None:
    export = with_devices({1: {1: VM, 2: {7: GPU_FIELDS}}}, tmp_path)
    assert rows(export, "TARGET_INFO_GPU") == [(VM, *(GPU_FIELDS[number] for number in GPU_FIELDS_BY_COLUMN))]


def test_what_a_gpu_does_not_say_is_null(tmp_path: Path) -> None:
    (gpu,) = named_rows(with_devices({1: {1: VM, 2: {7: {1: 0, 2: b"Xavier"}}}}, tmp_path), "TARGET_INFO_GPU")
    assert {name: value for name, value in gpu.items() if value is not None} == {"vmId": VM, "id": 0, "name": b"Xavier"}


def test_gpus_of_several_machines(tmp_path: Path) -> None:
    machines = [{1: VM, 2: {7: [{1: 0}, {1: 1}]}}, {1: 2 * VM, 2: {7: {1: 0}}}]
    gpus = named_rows(with_devices({1: machines}, tmp_path), "TARGET_INFO_GPU")
    assert [(gpu["vmId"], gpu["id"]) for gpu in gpus] == [(VM, 0), (VM, 1), (2 * VM, 0)]


def test_contexts_are_in_the_table_that_their_fields_belong_to(tmp_path: Path) -> None:
    old = {1: 7, 2: 0, 3: 1, 4: 42, 5: 0, 6: 1}
    export = with_devices({14: [old, {**old, 6: 2, 7: 0, 8: 0}, {**old, 6: 3, 7: 1, 8: 1}]}, tmp_path)
    assert rows(export, "TARGET_INFO_CUDA_NULL_STREAM") == [(7, 0, 1, 42, 0, 1)]
    assert rows(export, "TARGET_INFO_CUDA_CONTEXT_INFO") == [
        (7, 0, 1, 42, 0, 2, 0, 0),
        (7, 0, 1, 42, 0, 3, None, None),  # which field is the parent is not known
    ]


def test_streams(tmp_path: Path) -> None:
    export = with_devices({15: [{1: 12, 2: 0, 3: 1, 4: 42, 5: 1, 6: 4294967291, 7: 1}]}, tmp_path)
    assert rows(export, "TARGET_INFO_CUDA_STREAM") == [(12, 0, 1, 42, 1, 4294967291, 1)]


def test_names_that_a_program_gave_by_nvtx(tmp_path: Path) -> None:
    named = {1: b"mine", **{number: 100 + number for number in range(2, 8)}}
    export = with_devices({11: named, 12: named, 13: named}, tmp_path)
    assert rows(export, "TARGET_INFO_NVTX_CUDA_DEVICE") == [(b"mine", 102, 103, 105)]
    assert rows(export, "TARGET_INFO_NVTX_CUDA_CONTEXT") == [(b"mine", 102, 103, 104, 105, 106)]
    assert rows(export, "TARGET_INFO_NVTX_CUDA_STREAM") == [(b"mine", 102, 103, 104, 105, 106, 107)]


def test_a_description_that_is_damaged_is_a_loss(tmp_path: Path) -> None:
    export = converted_build(Report([], behind_strings=[b"\xff", b"\xff"]), tmp_path)
    ((*_, losses),) = rows(export, "DIAG_READING") or []
    assert losses == b"the names of threads cannot be decoded; the descriptions of devices cannot be decoded"


@given(st.binary(max_size=200))
def test_other_bytes_are_rows_or_no_message(data: bytes) -> None:
    try:
        described = list(device_rows(data))
    except DecodeError:
        return
    assert all(set(columns) == set(table.columns) for table, columns in described)
