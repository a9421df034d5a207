"""Nsight Compute reports with every field that is read, holding anything; and reports with damaged bytes or blocks."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diag.ingest.messages import Message, Scalar
from diag.ingest.ncu_rep import messages
from diag.ingest.ncu_rep.magic import MAGIC
from tests.builders.cubin import cubin
from tests.builders.ncu_report import KernelLaunch, NcuReport, Said
from tests.builders.nsys_report import message, varint
from tests.fuzz import byte_mutations, contract
from tests.fuzz.seeds import chance_of, every_seed

STRINGS = (
    b"gpu__time_duration.sum",
    b"sm__throughput.avg.pct_of_peak_sustained_elapsed",
    b"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    b"launch__device_id",
    b"launch__function_pcs",
    b"launch__occupancy_limit_warps",
    b"smsp__pcsamp_warps_issue_stalled_wait",
    b"inst_executed",
    b"\xff\xfe",
    b"",
)
MOST = (1 << 64) - 1

_numbers = st.one_of(st.integers(0, 12), st.sampled_from((80, 100, 1000, 1 << 31, 1 << 63, MOST)), st.integers(0, MOST))
_doubles = st.one_of(st.floats(0, 100), st.floats(), st.sampled_from((float("nan"), float("inf"), -1.0, 1e308)))
_texts = st.one_of(
    st.sampled_from((b"kernel", b"", b"\0", b"\xff", b"base", b"--cache-control none")), st.binary(max_size=40)
)
_FIXED = {Scalar.DOUBLE: (1, "<d"), Scalar.FLOAT: (5, "<f")}


def fields(declared: Message) -> st.SearchStrategy[bytes]:
    """Any of a message's fields with anything in them, each as its type wants it or, now and then, not."""
    parts = [st.one_of(st.just(b""), field(declared.fields[name])) for name in declared.fields]
    return st.tuples(*parts).map(b"".join)


def field(declared: Any) -> st.SearchStrategy[bytes]:
    number, type_ = declared.number, declared.type
    if isinstance(type_, Message):
        value = fields(type_).map(lambda inside: message({number: inside}))
    elif type_ in _FIXED:
        wire, form = _FIXED[type_]
        value = _doubles.map(lambda x: varint(number << 3 | wire) + struct.pack(form, x if wire == 1 else 1.5))
    elif type_ is Scalar.BYTES:
        value = _texts.map(lambda text: message({number: text}))
    else:
        value = _numbers.map(lambda n: message({number: n}))
    value = st.one_of(value, _numbers.map(lambda n: message({number: n}))) if number % 7 == 0 else value
    return st.lists(value, max_size=3).map(b"".join) if declared.repeated else value


def block(header: bytes, payload: list[bytes]) -> bytes:
    body = b"".join(map(prefixed, payload))
    return prefixed(header + message({5: len(body)})) + body


def prefixed(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


RESULT, RANGE, SOURCE, BLOCK = messages.RESULT, messages.RANGE_RESULT, messages.SOURCE, messages.BLOCK
START = MAGIC + prefixed(message({1: 7})) + prefixed(message({4: {1: list(STRINGS)}, 5: 0}))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    headers=st.lists(fields(BLOCK), max_size=3),
    sources=st.lists(fields(SOURCE), max_size=2),
    results=st.lists(fields(RESULT), min_size=1, max_size=4),
    ranges=st.lists(fields(RANGE), max_size=2),
)
def test_fields_that_hold_anything(
    headers: list[bytes],
    sources: list[bytes],
    results: list[bytes],
    ranges: list[bytes],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    numbers = message({1: len(sources), 2: len(results), 7: len(ranges)})
    path = tmp_path_factory.mktemp("any") / "kernels.ncu-rep"
    described = b"".join(block(header, []) for header in headers)
    path.write_bytes(START + described + block(numbers, [*sources, *results, *ranges]))
    contract.examine(path)


def sample() -> NcuReport:
    """Launches that the rules can judge, with instances, ranges, messages, lines and sources."""
    stalls = {"smsp__pcsamp_warps_issue_stalled_wait": {0x7000: 5, 0x7010: 6}}
    metrics: dict[str, int | float | str] = {
        "gpu__time_duration.sum": 1_000_000,
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 20.0,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 91.0,
        "launch__function_pcs": 0x7000,
        "launch__occupancy_limit_warps": 8,
        "launch__func_cache_config": "CachePreferNone",
        "smsp__pcsamp_warps_issue_stalled_wait": 11,
    }
    rules = [Said("Look at DRAM.", title="DRAM", speedup=(2, 12.5), focus=[("dram__bytes.sum", 91.5, 2, "much")])]
    pushed = {"<default domain>": ["step"], "lib": ["gemm"]}
    launches = [
        KernelLaunch(metrics, name, instances=stalls, pushed=pushed, started=pushed, rules=rules, cubin=5)
        for name in ("scale", "add", "scale")
    ]
    return NcuReport(
        [*launches, KernelLaunch(metrics, kind="range"), KernelLaunch(metrics, kind="graph")],
        command_line="/opt/ncu --set full ./app",
        cubins={5: cubin({"scale": (3, [(0, 10), (32, 12)]), "add": (2, [(0, 20)])})},
        sources={"/src/kernels.cu": "a\nb\n"},
    )


CONTENT = sample().encoded()


def test_the_sample_is_whole(tmp_path: Path) -> None:
    assert contract.examine(sample().write(tmp_path / "kernels.ncu-rep")) == "report"


def test_every_tenth_of_it(tmp_path: Path) -> None:
    path = tmp_path / "kernels.ncu-rep"
    for tenth in range(1, 10):
        path.write_bytes(CONTENT[: len(CONTENT) * tenth // 10])
        contract.examine(path)


@every_seed
def test_a_report_with_other_bytes(seed: int, scratch: Path) -> None:
    content, mutation = byte_mutations.damaged(CONTENT, chance_of("ncu rep", seed))
    path = scratch / "kernels.ncu-rep"
    path.write_bytes(content)
    print(f"seed {seed}: {mutation}")
    contract.examine(path)


@every_seed
def test_code_with_other_bytes(seed: int, scratch: Path) -> None:
    chance = chance_of("cubin", seed)
    code, mutation = byte_mutations.damaged(cubin({"scale": (3, [(0, 10), (32, 12)])}), chance)
    launch = KernelLaunch({"gpu__time_duration.sum": 1000, "launch__function_pcs": 0x7000}, "scale", cubin=5)
    print(f"seed {seed}: {mutation}")
    assert contract.examine(NcuReport([launch], cubins={5: code}).write(scratch / "kernels.ncu-rep")) == "report"
