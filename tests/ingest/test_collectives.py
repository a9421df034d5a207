"""Payloads and categories of NVTX, and communication operations as NCCL and PyTorch describe them."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diag.ingest.collectives import of_args, of_payload
from diag.ingest.kineto_events import Args
from diag.ingest.nsys_payload import Entry, Payloads
from diag.store.case import Case
from tests.builders.imported import imported
from tests.builders.kineto import imported as imported_trace
from tests.builders.nsys_export import NsysExport, Thread

DOMAIN = 1
INIT, REDUCE, SEND, REDUCTION = 16777218, 16777220, 16777225, 16777300
"""Schema ids as NCCL registers them."""

UINT64, INT, SIZE = 18, 5, 22
_COMMUNICATOR, _BYTES = (UINT64, "NCCL communicator ID", None), (SIZE, "Message size [bytes]", 8)
_ENTRIES = {
    INIT: [_COMMUNICATOR, (INT, "No. of ranks", 8), (INT, "Rank", 12), (INT, "CUDA device", 16)],
    REDUCE: [_COMMUNICATOR, _BYTES, (REDUCTION, "Reduction operation", 16)],
    SEND: [_COMMUNICATOR, _BYTES, (INT, "Peer rank", 16)],
}


def with_schemas() -> tuple[NsysExport, Thread]:
    export = NsysExport()
    for schema, entries in _ENTRIES.items():
        for index, (kind, name, offset) in enumerate(entries):
            for _ in range(2):  # each process that loads NCCL registers them
                export.insert(
                    "NVTX_PAYLOAD_SCHEMA_ENTRIES",
                    domainId=DOMAIN, schemaId=schema, idx=index, type=kind, name=name, offset=offset,
                )  # fmt: skip
    for value, name in enumerate(("Sum", "Product")):
        export.insert(
            "NVTX_PAYLOAD_ENUM_ENTRIES", domainId=DOMAIN, schemaId=REDUCTION, idx=value, name=name, value=value
        )
    main = export.process().thread()
    main.domain(DOMAIN, "NCCL")
    return export, main


def payload(schema: int, body: bytes) -> bytes:
    return struct.pack("<4Q", DOMAIN, schema, len(body), 32) + body


ALL_REDUCE = payload(REDUCE, struct.pack("<QQi4x", 0xABC, 4096, 1))
INITIALISE = payload(INIT, struct.pack("<Qiii4x", 0xABC, 8, 3, 1))
SEND_TO_5 = payload(SEND, struct.pack("<QQi4x", 0xABC, 1 << 20, 5))


def rows(case: Case, sql: str) -> list[tuple[Any, ...]]:
    return case.db.execute(sql).fetchall()


COLLECTIVES = (
    "SELECT op, communicator, group_size, rank, peer, reduction, input_bytes FROM collective ORDER BY start_ns"
)


@pytest.mark.parametrize("encode", [bytes, bytes.hex], ids=["blob", "hexadecimal"])
def test_nccl_describes_its_operations(encode: Any, tmp_path: Path) -> None:
    export, main = with_schemas()
    for at, (name, data) in enumerate(
        (("ncclCommInitRank", INITIALISE), ("ncclAllReduce", ALL_REDUCE), ("ncclSend", SEND_TO_5))
    ):
        main.range(name, 10 * at, 10 * at + 5, domain=DOMAIN, binaryData=encode(data))
    with imported(export, tmp_path) as case:
        communicator = "0x0000000000000abc"
        assert rows(case, COLLECTIVES) == [
            ("ncclCommInitRank", communicator, 8, 3, None, None, None),
            ("ncclAllReduce", communicator, None, None, None, "Product", 4096),
            ("ncclSend", communicator, None, None, 5, None, 1 << 20),
        ]
        stored = [json.loads(text) for (text,) in rows(case, "SELECT payload FROM cpu_range ORDER BY start_ns")]
        assert stored[1] == {
            "NCCL communicator ID": 0xABC, "Message size [bytes]": 4096, "Reduction operation": "Product"
        }  # fmt: skip
        assert case.sources[0].capabilities["collective"] == 3
        assert case.notes(1) == []


@pytest.mark.parametrize(
    "data",
    [b"", b"short", payload(999, bytes(24)), ALL_REDUCE[:40], payload(REDUCE, b""), bytes(9000)],
    ids=["empty", "no header", "no such schema", "cut", "without a value", "too long"],
)
def test_payloads_that_make_no_sense_are_left_out(data: bytes, tmp_path: Path) -> None:
    export, main = with_schemas()
    main.range("ncclAllReduce", 0, 5, domain=DOMAIN, binaryData=data)
    main.range("ncclSend", 10, 15, domain=DOMAIN, binaryData=SEND_TO_5)
    with imported(export, tmp_path) as case:
        assert [op for (op, *_) in rows(case, COLLECTIVES)] == ["ncclSend"]
        assert rows(case, "SELECT COUNT(*) FROM cpu_range") == [(2,)]


def test_schemas_that_contradict_each_other_decode_nothing(tmp_path: Path) -> None:
    export, main = with_schemas()
    export.insert(
        "NVTX_PAYLOAD_SCHEMA_ENTRIES", domainId=DOMAIN, schemaId=SEND, idx=1, type=INT, name="Peer rank", offset=8
    )
    main.range("ncclSend", 10, 15, domain=DOMAIN, binaryData=SEND_TO_5)
    with imported(export, tmp_path) as case:
        assert rows(case, COLLECTIVES) == []
        assert len(case.notes(1)) == 2


def test_payloads_as_text_and_as_numbers(tmp_path: Path) -> None:
    export = NsysExport()
    main = export.process().thread()
    main.range("layer", 0, 5, jsonText='{"Name": "conv"}')
    main.range("layer by id", 10, 15, jsonTextId=export.string('{"Name": "pool"}'))
    main.range("size", 20, 25, int64Value=-7)
    main.range("damaged", 30, 35, jsonText="{not json")
    main.range("long", 40, 45, jsonText=json.dumps("x" * 5000))
    main.range("deep", 50, 55, jsonText="[" * 4000)
    main.range("none", 60, 65)
    with imported(export, tmp_path) as case:
        found = [text for (text,) in rows(case, "SELECT payload FROM cpu_range ORDER BY start_ns")]
        assert found == ['{"Name": "conv"}', '{"Name": "pool"}', "-7", None, None, None, None]
        assert "Payloads of 3 NVTX ranges are damaged or too long and were left out." in case.notes(1)


def test_categories_are_those_of_process_and_domain(tmp_path: Path) -> None:
    export = NsysExport()
    for pid, name in ((100, "io"), (200, "compute")):
        thread = export.process(pid).thread()
        thread.category(3, name)
        thread.range(f"by {name}", pid, pid + 5, category=3)
        thread.range(f"without by {name}", pid + 10, pid + 15)
        thread.range(f"unnamed by {name}", pid + 20, pid + 25, category=4)
    with imported(export, tmp_path) as case:
        sql = "SELECT n.text FROM cpu_range r LEFT JOIN name n ON n.id = r.category_id ORDER BY r.start_ns"
        assert rows(case, sql) == [("io",), (None,), ("#4",), ("compute",), (None,), ("#4",)]


def test_a_range_is_linked_to_the_kernel_that_it_launched(tmp_path: Path) -> None:
    export, main = with_schemas()
    gpu = main.process.gpu()
    main.range("ncclAllReduce", 0, 10, domain=DOMAIN, binaryData=ALL_REDUCE)
    main.launch(gpu, called=5, start=20, end=30, name="ncclDevKernel_AllReduce_Sum_f32")
    main.launch(gpu, called=11, start=40, end=50, name="gemm")
    main.range("ncclAllReduce", 60, 70, domain=DOMAIN, binaryData=ALL_REDUCE)  # in a group: launched when that ends
    with imported(export, tmp_path) as case:
        sql = """
            SELECT c.start_ns, n.text, r.start_ns
              FROM collective c
              LEFT JOIN gpu_op g ON g.id = c.gpu_op_id LEFT JOIN name n ON n.id = g.name_id
              LEFT JOIN cpu_range r ON r.id = c.cpu_range_id
             ORDER BY 1
        """
        assert rows(case, sql) == [(0, "ncclDevKernel_AllReduce_Sum_f32", 0), (60, None, 60)]


# ---- PyTorch -------------------------------------------------------------------------------------------------------

ARGS: dict[str, Any] = {
    "Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 100, "Out msg nelems": 100, "Group size": 2,
    "Process Group Name": "0", "Process Group Ranks": "[0, 1]", "In split size": "[]", "Out split size": "[]", "Seq": 4,
}  # fmt: skip


def trace_of(folder: Path, *events: dict[str, Any]) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def nccl_kernel(external_id: int = 5, **args: Any) -> dict[str, Any]:
    place = {"device": 0, "context": 1, "stream": 20, "correlation": 9, "External id": external_id}
    return {
        "ph": "X",
        "cat": "kernel",
        "name": "ncclKernel",
        "pid": 0,
        "tid": 20,
        "ts": 20,
        "dur": 5,
        "args": place | args,
    }


def host_record(external_id: int = 5, **args: Any) -> dict[str, Any]:
    event = {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 42, "tid": 43, "ts": 10, "dur": 3}
    return event | {"args": {"External id": external_id} | args}


def test_pytorch_describes_its_kernels(tmp_path: Path) -> None:
    path = trace_of(tmp_path, host_record(**ARGS, Rank=1), nccl_kernel(**ARGS), nccl_kernel(6))
    with imported_trace(path, tmp_path) as case:
        sql = """
            SELECT gpu_op_id, start_ns, op, dtype, input_bytes, output_bytes, group_name, group_size, ranks, rank,
                   sequence
              FROM collective
        """
        assert rows(case, sql) == [(1, 10_000, "allreduce", "BFloat16", 200, 200, "0", 2, "[0, 1]", 1, 4)]
        assert case.sources[0].capabilities["collective"] == 1


def test_operations_without_a_kernel_stay_waits_do_not(tmp_path: Path) -> None:
    args = ARGS | {"Collective name": "send", "Dst Rank": 3, "In split size": "[60, 40]"}
    path = trace_of(
        tmp_path, host_record(1, **args), host_record(2, **ARGS | {"Collective name": "wait"}), nccl_kernel()
    )
    with imported_trace(path, tmp_path) as case:
        assert rows(case, "SELECT op, peer, split_sizes, gpu_op_id FROM collective") == [
            ("send", 3, "[[60, 40], []]", None)
        ]


@pytest.mark.parametrize(
    ("name", "value", "column"),
    [
        ("In msg nelems", "100", "input_bytes"),
        ("In msg nelems", 2**70, "input_bytes"),
        ("Group size", [2], "group_size"),
        ("dtype", 3, "dtype"),
        ("Process Group Ranks", {"a": 1}, "ranks"),
        ("Process Group Name", "x" * 5000, "group_name"),
    ],
)
def test_odd_arguments_are_left_out_and_counted(name: str, value: object, column: str, tmp_path: Path) -> None:
    with imported_trace(trace_of(tmp_path, nccl_kernel(**ARGS | {name: value})), tmp_path) as case:
        assert rows(case, f"SELECT op, {column} FROM collective") == [("allreduce", None)]
        assert rows(case, "SELECT COUNT(*) FROM gpu_op") == [(1,)]
        assert "1 arguments of communication had odd values and were left out" in case.notes(1)


@pytest.mark.parametrize("ranks", ["[0, 1, ..., 7]", "not a list", "[0, 'a']", "[]", '["0"]'])
def test_ranks_that_are_no_list_of_numbers_are_not_told(ranks: str, tmp_path: Path) -> None:
    path = trace_of(tmp_path, nccl_kernel(**ARGS | {"Process Group Ranks": ranks}))
    with imported_trace(path, tmp_path) as case:
        assert rows(case, "SELECT op, ranks FROM collective") == [("allreduce", None)]


def test_a_stream_that_waits_for_an_event_tells_of_its_record(tmp_path: Path) -> None:
    args = {
        "cuda_sync_kind": "Stream Wait Event", "stream": 20, "correlation": 7, "device": 0, "context": 1,
        "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 3, "wait_on_cuda_event_id": 8,
    }  # fmt: skip
    wait = {
        "ph": "X",
        "cat": "cuda_sync",
        "name": "Stream Wait Event",
        "pid": 0,
        "tid": 20,
        "ts": 12,
        "dur": 0,
        "args": args,
    }
    with imported_trace(trace_of(tmp_path, nccl_kernel(), wait), tmp_path) as case:
        assert rows(case, "SELECT event, awaited_stream, record_correlation FROM sync") == [(8, 7, 3)]
        assert rows(case, "SELECT event, stream, correlation FROM cuda_event") == [(8, 7, 3)]
        assert case.sources[0].capabilities["cuda_event"] == 1


# ---- whatever a file holds -----------------------------------------------------------------------------------------


@given(st.binary(max_size=200))
def test_any_bytes_decode_to_values_or_to_nothing(data: bytes) -> None:
    entries = Entry("a", 0, struct.Struct("<Q"), {}), Entry("b", 8, struct.Struct("<d"), {})
    payloads = Payloads({(DOMAIN, SEND): entries})
    for raw in (data, payload(SEND, data), payload(SEND, data).hex().encode()):
        values = payloads.decode(raw)
        assert values is None or json.dumps(values, allow_nan=False)
        if values:
            row = of_payload({"Message size [bytes]": values["a"], "NCCL communicator ID": values["a"]})
            assert all(not isinstance(value, int) or abs(value) < 2**63 for value in row.values())


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_any_arguments_are_taken_or_counted(value: object) -> None:
    raw = msgspec.Raw(json.dumps(value).encode())
    fields = [field for field in Args.__struct_fields__ if isinstance(getattr(Args(), field), msgspec.Raw)]
    row, _ = of_args(Args(**dict.fromkeys(fields, raw)))  # type: ignore[arg-type]
    assert row is None or all(type(item) in (int, str, type(None)) for item in row.values())
