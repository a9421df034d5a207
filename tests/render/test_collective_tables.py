"""What probes of several ranks found, as text."""

from __future__ import annotations

from collections.abc import Sequence

from diag.model.benchmark import Benchmark, Measurement
from diag.model.collective import Primitive, Signature, time_ns
from diag.model.communication import CollectiveMeasurement, Communication, CountedCalls
from diag.render.collective_tables import render_collectives
from tests.builders.benchmark import CPU

ALL_REDUCE = Primitive.ALL_REDUCE


def call(size_bytes: int, ns: float, n_wrong: int = 0) -> CollectiveMeasurement:
    return CollectiveMeasurement(
        ALL_REDUCE, "nccl", 8, 1, "fp32", "sum", size_bytes, True, 9, ns, ns, ns, n_wrong, "8 GPUs"
    )


def on_a_line(sizes: Sequence[int]) -> list[CollectiveMeasurement]:
    """20 µs, and 350 GB/s."""
    return [call(size, time_ns(ALL_REDUCE, size, 8, 350e9, 20e3)) for size in sizes]


def said(benchmark: Benchmark, width: int = 100) -> str:
    shown = render_collectives(benchmark, width=width)
    assert max(map(len, shown.splitlines())) <= width
    return " ".join(shown.split())


def test_the_line_through_collectives_is_told_with_its_latency_and_bandwidth() -> None:
    shown = said(Benchmark(CPU, collectives=on_a_line([1 << n for n in range(10, 31, 4)])))
    assert "all-reduce: T = α + k·M/B with α = 20.0 µs ±" in shown
    assert "B = 350.0 GB/s ±" in shown
    assert "1.1 GB 5.4 ms none 348.7 GB/s 199.3 GB/s" in shown  # bus, algorithm: 7/4 of each other


def test_too_few_sizes_make_no_line() -> None:
    assert "all-reduce: no line, for only 2 sizes" in said(Benchmark(CPU, collectives=on_a_line([1 << 10, 1 << 20])))


def test_wrong_elements_are_shown_also_where_it_is_narrow() -> None:
    assert "1,234" in said(Benchmark(CPU, collectives=[call(4096, 1e4, n_wrong=1234)]), width=60)


SIGNATURE = Signature("a bucket", "dp", 4, ALL_REDUCE, "gradients", 4000.0, 3.0, False, "layers")
STEP = Measurement("data_parallel", "buckets", "layers=4", 9, 1e6, 9e5, 2e6, "gloo", "fp32")


def patterns(n_ranks_otherwise: int, **checked: float) -> Benchmark:
    counted = [CountedCalls(ALL_REDUCE, 4000, 2)]
    of_step = Communication("data_parallel", "buckets", "layers=4", 4, [SIGNATURE], counted, n_ranks_otherwise)
    return Benchmark(CPU, measurements=[Measurement(**{**vars(STEP), **checked})], communications=[of_step])


def test_a_pattern_says_whether_it_is_right_and_what_it_sends() -> None:
    shown = said(patterns(0, max_rel_error=1e-7, tolerance=1e-6))
    assert "1.0 ms 900.0 µs–2.0 ms right data_parallel buckets layers=4" in shown
    assert "3 4.0 kB 18.0 kB can be all-reduce data_parallel buckets: gradients" in shown
    assert "counted on every rank" in shown
    assert "wrong data_parallel" in said(patterns(0, max_rel_error=1e-5, tolerance=1e-6))
    assert "exact data_parallel" in said(patterns(0, max_rel_error=0.0, tolerance=0.0))
    assert "not checked data_parallel" in said(patterns(0))


def test_calls_that_were_not_declared_are_told() -> None:
    shown = said(patterns(2))
    assert "data_parallel buckets: 2 ranks called otherwise; counted on rank 0: 2 × all-reduce of 4.0 kB." in shown
    assert "counted on every rank" not in shown
