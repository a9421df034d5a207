"""Files of benchmarks: what is written is read again, and what nobody measured is refused in a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from diag.errors import InputError
from diag.ingest.benchmark import MOST_BYTES, load
from diag.ingest.detect import detect
from diag.ingest.importer import ImportOptions, open_inputs
from diag.model.benchmark import Benchmark, Machine, MeasuredCeiling, Measurement, encoded
from diag.model.ceilings import Arithmetic, Ceiling
from diag.model.collective import Primitive, Signature
from diag.model.communication import CollectiveMeasurement, Communication, CountedCalls

WHOLE = Benchmark(
    Machine("cpu", "AMD EPYC", 2, host="node"),
    ceilings=[
        MeasuredCeiling(
            Ceiling(5e10, "bytes/s", "measured", "bytes / time", "diag calibrate", level="dram", access="read"),
            9,
            "",
            1,
        ),
        MeasuredCeiling(
            Ceiling(5e11, "FLOP/s", "measured", "FLOP / time", "diag calibrate", Arithmetic("fp32", "fp32")), 9, ""
        ),
    ],
    measurements=[Measurement("softmax", "online", "rows=4", 5, 10.0, 9.0, 12.0, "2 threads", flops=3, n_bytes=4)],
    diag_version="1",
    collectives=[
        CollectiveMeasurement(
            Primitive.ALL_REDUCE, "gloo", 4, 1, "fp32", "sum", 1024, True, 9, 2e5, 1e5, 3e5, 0, "4 ranks share 2 cores"
        )
    ],
    communications=[
        Communication(
            "two_phase", "one_call", "bytes=1024", 4,
            [Signature("all reduce", "dp", 4, Primitive.ALL_REDUCE, "numbers", 1024.0, 1.0, True, "one call")],
            [CountedCalls(Primitive.ALL_REDUCE, 1024, 1)], 0,
        )
    ],
)  # fmt: skip


def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(encoded(WHOLE))
    return found


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(encoded(WHOLE))
    assert detect(file) == "benchmark"
    assert load(file) == WHOLE


def test_the_same_benchmark_is_the_same_bytes() -> None:
    assert encoded(WHOLE) == encoded(WHOLE)
    assert encoded(WHOLE).startswith(b'{\n "schema": "diag.benchmark/1"')


def test_the_schema_may_stand_anywhere(tmp_path: Path) -> None:
    body = document()
    body["schema"] = body.pop("schema")
    file = tmp_path / "a.json"
    file.write_text(json.dumps(body))
    assert detect(file) == "benchmark"


def test_the_case_says_what_was_captured(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(encoded(WHOLE))
    with open_inputs([file], ImportOptions(use_cache=False)) as case:
        (source,) = case.sources
        assert source.capabilities == {"ceiling": 2, "measurement": 1, "comm_measurement": 1}
        assert not source.has_timeline
        assert case.rows("SELECT level, access, per_s FROM ceiling WHERE level IS NOT NULL")[0]["per_s"] == 5e10


Change = Callable[[dict[str, Any]], object]


def ceiling(**changes: object) -> Change:
    return lambda body: body["ceilings"][0]["ceiling"].update(changes)


def measurement(**changes: object) -> Change:
    return lambda body: body["measurements"][0].update(changes)


def collective(**changes: object) -> Change:
    return lambda body: body["collectives"][0].update(changes)


def communication(**changes: object) -> Change:
    return lambda body: body["communications"][0].update(changes)


def signature(**changes: object) -> Change:
    return lambda body: body["communications"][0]["signatures"][0].update(changes)


def machine(**changes: object) -> Change:
    return lambda body: body["machine"].update(changes)


@pytest.mark.parametrize(
    "change",
    [
        ceiling(per_s=0.0),
        ceiling(per_s=-5e10),
        ceiling(per_s=1e300),
        ceiling(per_s="fast"),
        ceiling(per_s=None),
        ceiling(level="shelf"),
        ceiling(sm_clock_hz=-1.0),
        ceiling(arithmetic={"input": "fp31", "accumulator": "fp32"}),
        measurement(median_ns=0),
        measurement(p95_ns=-1),
        measurement(baseline_ns=0.0),
        measurement(flops=1e400),
        measurement(shape=["4"]),
        collective(op="all_shout"),
        collective(median_ns=0.0),
        collective(p95_ns=-1.0),
        collective(n_ranks=0),
        collective(n_ranks=1 << 40),
        collective(n_hosts=0),
        collective(n_wrong=-1),
        collective(size_bytes=1 << 61),
        communication(n_ranks=0),
        communication(n_ranks_otherwise=-1),
        communication(counted=[{"primitive": "all_reduce", "size_bytes": -4, "calls": 1}]),
        signature(calls=-1),
        signature(n_ranks=0),
        machine(kind="abacus"),
        machine(n_units="two"),
        machine(compute_capability=[9]),
        lambda body: body.update(schema="diag.benchmark/2"),
        lambda body: body.update(ceilings={"dram": 5e10}),
        lambda body: body.pop("machine"),
    ],
)
def test_what_nobody_measured_is_refused(change: Change, tmp_path: Path) -> None:
    body = document()
    change(body)
    file = tmp_path / "a.json"
    file.write_text(json.dumps(body))
    with pytest.raises(InputError, match="diag calibrate"):
        load(file)


def test_a_file_of_before_there_were_collectives_is_still_read(tmp_path: Path) -> None:
    body = document()
    del body["collectives"], body["communications"]
    file = tmp_path / "a.json"
    file.write_text(json.dumps(body))
    assert (load(file).collectives, load(file).communications) == ((), ())


def test_collectives_come_into_the_case(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(encoded(WHOLE))
    with open_inputs([file], ImportOptions(use_cache=False)) as case:
        (row,) = case.rows("SELECT * FROM comm_measurement")
    (given,) = WHOLE.collectives
    assert (row["op"], row["time_ns"], row["is_in_place"]) == ("all_reduce", given.median_ns, 1)
    same = (
        "backend",
        "n_ranks",
        "n_hosts",
        "dtype",
        "reduction",
        "size_bytes",
        "repeats",
        "n_wrong",
        "p5_ns",
        "p95_ns",
    )
    assert {name: row[name] for name in same} == {name: getattr(given, name) for name in same}
    assert row["conditions"] == given.conditions


@pytest.mark.parametrize("figure", ["1e400", "-1e400", "NaN", "Infinity", "1" * 400, "1" + "0" * 5000])
def test_numbers_beyond_any_machine_are_refused(figure: str, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(encoded(WHOLE).decode().replace("50000000000.0", figure))
    assert figure in file.read_text()
    with pytest.raises(InputError, match="diag calibrate"):
        load(file)


BROKEN: Mapping[str, bytes] = {
    "cut": encoded(WHOLE)[:200],
    "no text": b'{"schema": "diag.benchmark/1", "diag_version": "\xff\xfe"}',
    "deep": b'{"schema": "diag.benchmark/1", "machine": ' + b"[" * 200_000,
    "no object": b'["diag.benchmark/1"]',
    "empty": b"",
}


@pytest.mark.parametrize("name", BROKEN)
def test_damaged_files_are_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(BROKEN[name])
    with pytest.raises(InputError, match="diag calibrate"):
        load(file)


@pytest.mark.parametrize("integer", [1 << 63, -(1 << 63) - 1, 10**30])
def test_integers_beyond_the_case_are_refused(integer: int, tmp_path: Path) -> None:
    """SQLite keeps 64 bits."""
    for change in (machine(n_units=integer), measurement(flops=integer), measurement(repeats=integer)):
        body = document()
        change(body)
        file = tmp_path / "a.json"
        file.write_text(json.dumps(body))
        with pytest.raises(InputError), open_inputs([file], ImportOptions(use_cache=False)):
            pass


def test_a_file_of_any_size_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    with file.open("wb") as opened:
        opened.write(encoded(WHOLE))
        opened.truncate(MOST_BYTES + 1)
    with pytest.raises(InputError, match="larger than a benchmark"):
        load(file)
