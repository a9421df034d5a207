"""What a benchmark's file says comes out of the case as it went in."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.errors import InputError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.launches.benchmarks import load_benchmarks
from diag.model.benchmark import Benchmark, Machine, MeasuredCeiling, Measurement, encoded
from diag.model.ceilings import Arithmetic, Ceiling
from diag.store.case import Case

BF16 = Arithmetic("bf16", "fp32", is_tensor=True)

GPU = Benchmark(
    Machine("cuda", "NVIDIA H100 80GB HBM3", 132, uuid="GPU-1", host="node", compute_capability=(9, 0)),
    ceilings=[
        MeasuredCeiling(
            Ceiling(
                7e14, "FLOP/s", "measured", "2 x 4096^3 / 196 us", "diag calibrate", BF16,
                sm_clock_hz=1.7e9, memory_clock_hz=2.6e9, error_share=0.01,
            ),
            repeats=30,
            conditions="clocks free",
        ),
        MeasuredCeiling(
            Ceiling(3e12, "bytes/s", "measured", "2 x 1 GiB / 0.7 ms", "diag calibrate", level="dram", access="copy"),
            repeats=30,
            conditions="clocks free",
            working_set_bytes=2 << 30,
        ),
    ],
    measurements=[
        Measurement(
            "gemm", "tiled", "M=64 N=64 K=64", 10, 5e3, 4.9e3, 6e3, "clocks free", dtype="bf16", flops=2 * 64**3,
            n_bytes=3 * 64 * 64 * 2, arithmetic=BF16, level="dram", max_rel_error=1e-3, tolerance=2e-3,
        )
    ],
    diag_version="0.0",
)  # fmt: skip
CPU = Benchmark(Machine("cpu", "AMD EPYC", 2, host="node"), GPU.ceilings[1:], [], "0.0")


def write(benchmark: Benchmark, file: Path) -> Path:
    file.write_bytes(encoded(benchmark))
    return file


def test_each_file_is_a_benchmark_in_the_order_of_the_sources(tmp_path: Path) -> None:
    files = [write(GPU, tmp_path / "a.json"), write(CPU, tmp_path / "b.json")]
    with open_inputs(files, ImportOptions(use_cache=False)) as case:
        assert load_benchmarks(case) == [GPU, CPU]


def test_a_case_without_one_has_none(tmp_path: Path) -> None:
    with Case.create(tmp_path / "empty.diag") as case:
        assert load_benchmarks(case) == []


@pytest.mark.parametrize("sql", ["UPDATE machine SET kind = 'abacus'", "UPDATE ceiling SET level = 'shelf'"])
def test_a_case_with_words_that_mean_nothing_is_refused(sql: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept.diag"
    with open_inputs([write(GPU, tmp_path / "a.json")], ImportOptions(keep=kept, use_cache=False)):
        pass
    with Case.open(kept, "rw") as case:
        case.db.execute(sql)
        with pytest.raises(InputError, match="Import the file again"):
            load_benchmarks(case)
