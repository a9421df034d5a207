"""Whatever ran when: both readers see the same sets of time, and they are those that counting single ns gives."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules.analysis import AnalysisOptions
from diag.rules.report import Report
from diag.rules.stored import report_of
from diag.rules.timeline_report import DeviceRow
from tests.builders.nsys_export import NsysExport
from tests.fuzz import invariants

LAST_NS = 300
EPOCH_US = 1_700_000_000_000_000


@dataclass(frozen=True)
class Work:
    """A kernel or a copy on one of two devices."""

    is_kernel: bool
    device: int
    start_ns: int
    end_ns: int

    @property
    def ns(self) -> set[int]:
        return set(range(self.start_ns, self.end_ns))


works = st.builds(
    lambda is_kernel, device, start_ns, length_ns: Work(is_kernel, device, start_ns, start_ns + length_ns),
    st.booleans(),
    st.integers(0, 1),
    st.integers(0, LAST_NS),
    st.integers(0, 60),
)
some_work = st.lists(works, min_size=1, max_size=40)


def _reported(path: Path) -> Report:
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        report = report_of(case, AnalysisOptions())
        invariants.check(report, case)
        return report


def _export_of(work: list[Work], folder: Path) -> Path:
    export = NsysExport()
    main = export.process().thread()
    for item in work:
        gpu, correlation = main.process.gpu(item.device), main.call("cuda", item.start_ns, item.start_ns + 1)
        if item.is_kernel:
            gpu.kernel(item.start_ns, item.end_ns, correlation=correlation)
        else:
            gpu.copy(item.start_ns, item.end_ns, 1, correlation=correlation)
    # CUPTI's way to say that a time is not known, which the first ns of a trace must not look like.
    export.then(
        *(
            f'UPDATE {table} SET start = start + 1000, "end" = "end" + 1000'
            for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME")
            if table in export.rows
        )
    )
    return export.write(folder / "report.sqlite")


def _trace_of(work: list[Work], folder: Path) -> Path:
    events = [
        {
            "ph": "X",
            "cat": "kernel" if item.is_kernel else "gpu_memcpy",
            "name": "gemm" if item.is_kernel else "Memcpy HtoD (Pinned -> Device)",
            "pid": item.device,
            "tid": 7,
            "ts": f"@{EPOCH_US}.{item.start_ns:03d}@",
            "dur": (item.end_ns - item.start_ns) / 1000,
            "args": {"device": item.device, "context": 1, "stream": 7},
        }
        for item in work
    ]
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}).replace('"@', "").replace('@"', ""))
    return path


@given(some_work)
@settings(max_examples=60)
def test_sets_of_time_are_those_of_counting(work: list[Work]) -> None:
    with TemporaryDirectory() as name:
        for path in (_export_of(work, Path(name)), _trace_of(work, Path(name))):
            devices = {row.device: row for row in _reported(path).devices}
            assert devices.keys() == {item.device for item in work}
            for number, row in devices.items():
                _check_device(row, [item for item in work if item.device == number])


def _check_device(row: DeviceRow, work: list[Work]) -> None:
    busy = set[int]().union(*(item.ns for item in work))
    window_ns = max(item.end_ns for item in work) - min(item.start_ns for item in work)
    assert row.window_ns == window_ns
    assert row.busy_ns == len(busy)
    assert row.idle_ns == window_ns - len(busy)
    assert row.kernel_ns == len(set[int]().union(*(item.ns for item in work if item.is_kernel)))
    assert row.copy_ns == len(set[int]().union(*(item.ns for item in work if not item.is_kernel)))
    assert (row.n_kernels, row.n_copies) == (
        sum(item.is_kernel for item in work),
        sum(not item.is_kernel for item in work),
    )


@given(some_work)
@settings(max_examples=30)
def test_the_order_of_rows_does_not_matter(work: list[Work]) -> None:
    with TemporaryDirectory() as name:
        there, back = (_reported(_trace_of(order, Path(name))) for order in (work, work[::-1]))
    assert (there.devices, there.kernels, there.verdict) == (back.devices, back.kernels, back.verdict)
