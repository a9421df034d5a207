"""Device time of operators beside their modelled work."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from diag.timeline.operators import OperatorTime, arguments_of, load_modelled_calls, operator_times
from diag.timeline.trace import Trace
from tests.builders.kineto import imported

Event = dict[str, Any]


def operator(name: str, start: float, end: float, shapes: Sequence[Any], **args: Any) -> Event:
    """Times are microseconds, as in every trace of PyTorch."""
    types = ["float" if shape else "Scalar" for shape in shapes]
    args = {"Input Dims": shapes, "Input type": types, **args}
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": end - start, "args": args}


def launched(correlation: int, called: float, start: float, end: float) -> list[Event]:
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": called, "dur": 1}
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": start, "dur": end - start}
    return [
        call | {"args": {"correlation": correlation}},
        kernel | {"args": {"correlation": correlation, "device": 0, "stream": 7}},
    ]


def times(folder: Path, *events: Event) -> list[OperatorTime]:
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    with imported(path, folder) as case:
        (source,) = case.sources
        trace = Trace(case, source)
        calls = load_modelled_calls(case, source.id)
        return [time for device in trace.devices for time in operator_times(calls, device)]


A, B = [8, 16], [16, 4]


def test_work_belongs_to_the_innermost_operator_that_has_a_model(tmp_path: Path) -> None:
    (time,) = times(
        tmp_path,
        operator("aten::linear", 0, 50, [A, [4, 16], []]),
        operator("aten::addmm", 10, 40, [[4], A, B]),
        operator("aten::view", 20, 39, [A]),
        *launched(1, 25, 100, 103),
    )
    assert (time.name, time.shapes, time.count, time.gpu_ns) == ("aten::addmm", "[[4],[8,16],[16,4]]", 1, 3000)
    assert time.work.flops == 2 * 8 * 16 * 4


def test_calls_of_the_same_shapes_count_together_and_overlapping_kernels_once(tmp_path: Path) -> None:
    (time,) = times(
        tmp_path,
        operator("aten::mm", 0, 10, [A, B]),
        operator("aten::mm", 20, 30, [A, B]),
        operator("aten::mm", 40, 50, [A, B]),  # launches nothing
        *launched(1, 5, 100, 104),
        *launched(2, 25, 102, 106),
    )
    assert (time.count, time.gpu_ns) == (2, 6000)


def test_other_shapes_are_another_row_and_the_longest_comes_first(tmp_path: Path) -> None:
    found = times(
        tmp_path,
        operator("aten::mm", 0, 10, [A, B]),
        operator("aten::mm", 20, 30, [B, [4, 2]]),
        *launched(1, 5, 100, 101),
        *launched(2, 25, 102, 106),
    )
    assert [(time.shapes, time.gpu_ns) for time in found] == [("[[16,4],[4,2]]", 4000), ("[[8,16],[16,4]]", 1000)]


def test_values_of_arguments_are_kept_where_the_work_depends_on_them(tmp_path: Path) -> None:
    values = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]
    shapes = [[1, 3, 8, 8], [5, 3, 3, 3], [], [], [], [], [], [], []]
    (time,) = times(
        tmp_path,
        operator("aten::convolution", 0, 10, shapes, **{"Concrete Inputs": values}),
        *launched(1, 5, 100, 101),
    )
    assert time.work.flops == 2 * (5 * 4 * 4) * (3 * 3 * 3)


@pytest.mark.parametrize("text", ["", "null", "{}", "[", "[" * 100_000, '["a", {"b": 1}, [1.5], [[1, 2]], null]'])
def test_what_is_no_list_of_sizes_is_no_tensor(text: str) -> None:
    assert not any(arguments_of(text, text, text).shapes)


def test_work_launched_outside_of_all_operators_is_of_none(tmp_path: Path) -> None:
    (time,) = times(
        tmp_path,
        operator("aten::mm", 0, 10, [A, B]),
        operator("aten::mm", 20, 30, [A, B]),
        *launched(1, 25, 100, 103),
        *launched(2, 50, 200, 207),
    )
    assert (time.count, time.gpu_ns) == (1, 3000)
