"""NVTX ranges of Nsight Systems exports."""

from __future__ import annotations

from pathlib import Path

from diag.timeline.trace import Trace
from tests.builders.imported import imported
from tests.builders.nsys_export import NsysExport
from tests.ingest.exports import RANGES, rows


def test_texts_inline_or_by_id(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.range("inline", 0, 10)
    thread.range("by id", 20, 30, by_id=True)
    thread.range("", 40, 50)
    thread.range(None, 60, 70)
    with imported(export, tmp_path) as case:
        assert [text for _, text, _, _ in rows(case, RANGES)] == ["inline", "by id", "", ""]


def test_marks_and_open_ranges(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.range("closed", 0, 10)
    thread.range("open", 5, None)
    thread.mark("here", 7)
    with imported(export, tmp_path) as case:
        assert rows(case, RANGES) == [("nvtx", "closed", 0, 10), ("nvtx", "open", 5, None), ("mark", "here", 7, 7)]
        assert case.notes(1) == ["1 NVTX ranges were still open when the capture ended."]


def test_a_range_may_end_on_another_thread(tmp_path: Path) -> None:
    export = NsysExport()
    process = export.process()
    first, second = process.thread(101, "producer"), process.thread(102, "consumer")
    first.start_end("request", 0, 100, ends_on=second)
    first.range("work", 50, 150)
    with imported(export, tmp_path) as case:
        sql = (
            "SELECT b.name, e.name FROM cpu_range r JOIN thread b ON b.id = r.thread_id "
            "JOIN thread e ON e.id = r.end_thread_id WHERE r.kind = 'process'"
        )
        assert rows(case, sql) == [("producer", "consumer")]
        assert rows(case, "SELECT COUNT(*) FROM cpu_range WHERE parent_id IS NOT NULL") == [(0,)]
        (trace,) = (Trace(case, source) for source in case.sources)
        assert [len(thread.ranges) for thread in trace.threads.values()] == [1, 0]


def test_ranges_nest(tmp_path: Path) -> None:
    export = NsysExport()
    thread = export.process().thread()
    thread.range("inner", 10, 20)
    thread.range("outer", 10, 90)
    thread.range("next", 30, 40)
    with imported(export, tmp_path) as case:
        sql = (
            "SELECT c.text, p.text FROM cpu_range r JOIN cpu_range q ON q.id = r.parent_id "
            "JOIN name c ON c.id = r.name_id JOIN name p ON p.id = q.name_id ORDER BY 1"
        )
        assert rows(case, sql) == [("inner", "outer"), ("next", "outer")]


def test_domains_are_those_of_the_process(tmp_path: Path) -> None:
    export = NsysExport()
    first, second = export.process(100).thread(), export.process(200).thread()
    first.domain(1, "NCCL")
    second.domain(1, "cuDNN")
    first.range("a", 0, 10, domain=1)
    second.range("b", 0, 10, domain=1)
    second.range("c", 20, 30)
    with imported(export, tmp_path) as case:
        sql = (
            "SELECT n.text, d.text FROM cpu_range r JOIN name n ON n.id = r.name_id "
            "LEFT JOIN name d ON d.id = r.domain_id"
        )
        assert set(rows(case, sql)) == {("a", "NCCL"), ("b", "cuDNN"), ("c", None)}
