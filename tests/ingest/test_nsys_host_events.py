"""Host events of Nsight Systems exports: calls, stacks, switches and samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.timeline.trace import Trace
from tests.builders.imported import imported
from tests.builders.nsys_export import NsysExport
from tests.ingest.exports import capabilities, rows, small


def test_nested_os_calls_are_a_union(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.os_call("fwrite", 0, 100)
    thread.os_call("write", 20, 80, nesting=1)
    with imported(export, tmp_path) as case:
        (host,) = Trace(case, case.sources[0]).threads.values()
        assert host.in_os.measure_ns == 100
        assert capabilities(case)["os_call"] == 2


def test_stacks_of_os_calls_and_samples_stay_apart(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.os_call("write", 0, 100, stack=1)
    thread.os_call("read", 200, 300)
    export.insert_stack("OSRT_CALLCHAINS", 1, "__write", "save")
    thread.sample(10, "format_float", "save")
    with imported(export, tmp_path) as case:
        stack = "SELECT n.text FROM {table} t JOIN stack s ON s.id = t.stack_id JOIN name n ON n.id = s.symbol_id"
        assert rows(case, stack.format(table="os_call")) == [("__write",), ("save",)]
        assert rows(case, stack.format(table="cpu_sample")) == [("format_float",), ("save",)]
        assert rows(case, "SELECT COUNT(*) FROM os_call WHERE stack_id IS NULL") == [(1,)]


def test_context_switches(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.off_cpu(10, 40)
    thread.switch(90, is_in=False)
    with imported(export, tmp_path) as case:
        (host,) = Trace(case, case.sources[0]).threads.values()
        assert host.off_cpu is not None
        assert host.off_cpu.clip(0, 100).measure_ns == 30 + 10


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("Buffer flush (Profiler)", "profiler"),
        ("Instrumentation (Profiler)", "profiler"),
        ("Resource creation/destruction (Profiler)", "profiler"),
        ("Driver JIT compiler (CUDA)", "jit"),
        ("Runtime module loading (CUDA)", "module loading"),
        ("Lazy function loading (CUDA)", "lazy loading"),
        ("Command buffer full (CUDA)", "command buffer full"),
        ("Undefined", "unknown"),
    ],
)
def test_overheads_by_their_label(label: str, kind: str, tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.process.gpu().kernel(0, 10)
    thread.overhead(label, 0, 10)
    thread.profiler_overhead("something", 20, 30, label)
    with imported(export, tmp_path) as case:
        assert rows(case, "SELECT kind FROM overhead") == [(kind,), (kind,)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("CUDA profiling data flush overhead", "profiler"),
        ("Buffer flush", "profiler"),
        ("CUDA profiling initialization", "profiler"),
        ("Driver compiler", "jit"),
        ("Command buffer full", "command buffer full"),
        ("Lazy function loading", "lazy loading"),
        ("Something else", "unknown"),
    ],
)
def test_old_overheads_by_their_name(name: str, kind: str, tmp_path: Path) -> None:
    export = NsysExport("3.16")
    export.process().thread().profiler_overhead(name, 0, 10)
    export.process().gpu().kernel(0, 10)
    with imported(export, tmp_path) as case:
        assert rows(case, "SELECT kind FROM overhead") == [(kind,)]


def test_what_the_profiler_said(tmp_path: Path) -> None:
    export = small()
    export.diagnostic("Warning", "Not all CUDA events might have been collected.", at=-5)
    export.diagnostic("Info", "Profiling has started.")
    with imported(export, tmp_path) as case:
        assert rows(case, "SELECT severity, text, time_ns FROM diagnostic") == [
            ("warning", "Not all CUDA events might have been collected.", -5),
            ("info", "Profiling has started.", 0),
        ]
