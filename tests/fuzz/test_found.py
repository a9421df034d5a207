"""What mutations and random runs once found, each as the smallest input that shows it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np

from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules import thresholds
from diag.rules.analysis import AnalysisOptions, analyse
from diag.rules.finding import Finding
from diag.timeline import nesting
from tests.builders.imported import imported
from tests.builders.nsys_export import NsysExport
from tests.fuzz import contract, samples
from tests.rules.scenes import Scene, starved


def _findings(export: NsysExport, folder: Path) -> list[Finding]:
    with imported(export, folder) as case:
        return list(analyse(case).findings)


def test_a_threshold_of_zero_fires_on_nothing_less_than_something(scratch: Path, tmp_path: Path) -> None:
    mine = tmp_path / "zero.toml"
    tables = thresholds.load().items()
    mine.write_text("".join(f'["{rule}"]\n' + "".join(f"{name} = 0\n" for name in table) for rule, table in tables))
    options = AnalysisOptions(thresholds=mine)
    for number, export in enumerate((starved().export, samples.nsys_export())):
        assert contract.examine(export.write(scratch / f"{number}.sqlite"), options=options) == "report"


def test_ranges_that_cross_count_their_common_time_once(tmp_path: Path) -> None:
    """Ten ranges of 100, each 10 after the one before it: together they cover 190, and not 1000."""
    export = NsysExport()
    main = export.process().thread()
    for start in range(1, 101, 10):
        main.range("old", start, start + 100)
    hot = next(finding for finding in _findings(export, tmp_path) if finding.rule == "host.hot")
    assert (hot.share, hot.recoverable_ns) == (1.0, 190)


def test_sizes_that_no_copy_has(tmp_path: Path) -> None:
    scene = starved()
    for n_bytes in (-1, 1 << 62, 1 << 62, 1 << 62):
        scene.gpu.copy(1000, 1010, n_bytes)
        scene.gpu.fault(1000, 1010, 4096, count=n_bytes)
    with imported(scene.export, tmp_path) as case:
        (row,) = analyse(case).devices
        assert sum(copy.bytes for copy in row.copies) == 3 << 62
        assert case.value("SELECT MIN(count) FROM page_fault") == 1
        assert case.value("SELECT COUNT(*) FROM gpu_op WHERE kind = 'copy' AND bytes IS NULL") == 1


def test_bytes_of_memory_events_that_do_not_fit(tmp_path: Path) -> None:
    document = samples.kineto_document()
    for event in document["traceEvents"]:
        if event["name"] == "[memory]":
            event["args"]["Bytes"] = -(2**63)
        elif event["name"] == "record_param_comms":
            event["args"] |= {"In msg nelems": 2**57}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document))
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        assert analyse(case).devices
        assert case.value("SELECT COUNT(*) FROM allocation") == 0


def test_a_case_without_described_devices_is_whole(tmp_path: Path) -> None:
    kept = tmp_path / "kept.diag"
    export = starved().export.write(tmp_path / "run.sqlite")
    with open_inputs([export], ImportOptions(use_cache=False, keep=kept)):
        pass
    with open_inputs([kept], ImportOptions(use_cache=False)) as case:
        assert analyse(case).devices


def test_ranges_may_nest_or_cross_in_any_number(tmp_path: Path) -> None:
    """Each launch inside as many ranges of one name, and ranges of which each crosses all others."""
    n = 20_000
    began = time.process_time()
    scene = Scene()
    for _ in range(n):
        scene.main.range("r", 1_000, 3_000)
        scene.main.launch(scene.gpu, 1_500, 2_000, 3_000)
    with imported(scene.export, tmp_path) as case:
        (row,) = analyse(case).ranges
    assert (row.count, row.gpu_ns) == (n, 1_000)
    starts = np.arange(10 * n)
    assert (nesting.parents(starts, starts + 10 * n) == -1).all()
    assert time.process_time() - began < contract.SECONDS
