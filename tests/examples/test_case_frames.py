"""The notebook runs from top to bottom and says what the made-up trace must give."""

from __future__ import annotations

import gzip
import json
import runpy
import warnings
from pathlib import Path
from typing import Any

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples/case_frames.ipynb"
TRACE = ROOT / "examples/data/synthetic-training.pt.trace.json.gz"

BUSY_NS_OF_A_STEP = 8 * (420_125 + 38_500 + 55_250) + 1_100_000 + 4_000 + 2_000


def notebook() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(NOTEBOOK.read_text("utf-8"))
    return found


def test_the_trace_is_what_its_script_writes(tmp_path: Path) -> None:
    runpy.run_path(str(ROOT / "examples/synthetic_training.py"))["write"](tmp_path / "trace.json.gz")
    assert gzip.decompress((tmp_path / "trace.json.gz").read_bytes()) == gzip.decompress(TRACE.read_bytes())


def test_the_notebook_is_a_notebook_without_outputs() -> None:
    document = notebook()
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in document["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(cell.get("outputs", []) == [] for cell in document["cells"])
    nbformat.validate(document)


def test_the_notebook_runs_and_its_figures_are_right(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(NOTEBOOK.parent)
    monkeypatch.setenv("DIAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        for cell in notebook()["cells"]:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    assert "GPU starved by the host inside 'load batch'" in capsys.readouterr().out
    assert names["by_kernel"].loc["ampere_sgemm_128x64_tn"].tolist() == [160, 160 * 420_125, 420_125]
    assert names["device"].busy.measure_ns == 20 * BUSY_NS_OF_A_STEP
    assert len(names["gaps"].query("length_ns > 4_000_000")) == 19
    idle_ns = names["device"].window_ns - 20 * BUSY_NS_OF_A_STEP
    assert names["idle_ms"].sum() == pytest.approx(idle_ns / 1e6)
    assert names["idle_ms"].idxmax() == "host late"
    assert names["by_kind"].loc[("h2d", "pageable", "device"), "GB/s"] == pytest.approx((12 << 20) / 1_100_000)
    assert names["slowest_calls"]["call"].tolist() == ["cudaStreamSynchronize", "cudaLaunchKernel", "cudaMemcpyAsync"]
    by_row, in_tiles = names["roofs"].to_dict("records")
    assert (by_row["kernel"], in_tiles["kernel"]) == ("transpose_rows", "transpose_tiles")
    assert (by_row["of the peak of L2"], in_tiles["of its peak"]) == (0.9, 0.9)
    assert in_tiles["DRAM, GB/s"] == pytest.approx(0.9 * 1555, rel=1e-3)
    assert by_row["L2, GB/s"] == pytest.approx(0.9 * 2600, rel=1e-3)
    assert names["axes"].get_title() == "work on the device"
