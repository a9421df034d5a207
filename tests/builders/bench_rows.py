"""Rows as a serving benchmark writes them that keeps figures of the whole and no single requests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self


def row(rate: float | str, n: int, duration_s: float, e2e_ms: float, **others: object) -> Mapping[str, object]:
    """Of SGLang's `bench_serving`; `others` by the names of the file."""
    return {
        "backend": "synthetic", "dataset_name": "random", "request_rate": rate, "max_concurrency": None,
        "total_input_tokens": 500 * n, "total_output_tokens": 500 * n, "mean_e2e_latency_ms": e2e_ms,
        "median_e2e_latency_ms": e2e_ms, "median_ttft_ms": 90.0, "median_itl_ms": 15.0, "output_throughput": 500.0,
        "random_input_len": 1024, "random_output_len": 1024, "random_range_ratio": 0.0, "duration": duration_s,
        "completed": n, **others,
    }  # fmt: skip


@dataclass(frozen=True)
class BenchRows:
    rows: Sequence[Mapping[str, object]]

    def write(self, path: Path) -> Path:
        path.write_text("".join(f"{json.dumps(row)}\n" for row in self.rows))
        return path

    def backwards(self) -> Self:
        return type(self)(self.rows[::-1])
