"""Lesson 8: what an all-reduce moves, and how long it takes: α + n/β, by two sizes, tried on a third."""

from __future__ import annotations

from collections.abc import Sequence

from diag.learn.exercises.collectives import exercise
from diag.learn.lesson import Figure, Lab, Lesson, Measured, Question
from diag.model import units
from diag.model.collective import Primitive, bus_factor
from diag.model.communication import CollectiveMeasurement

WIRE_RANKS = 4
WIRE_BYTES = {"tiny": 1 << 18, "small": 1 << 24, "full": 1 << 26}
"""Of the buffer whose bytes are counted, by scale."""

LEAST, SIXTEENFOLD, THIRD, QUARTER, MOST = 1 << 10, 1 << 14, 1 << 20, 1 << 22, 1 << 24
"""Sizes that are spoken of, among those of a sweep, each four times the one before."""


def measure(lab: Lab) -> Measured:
    from diag.ingest.benchmark import load
    from diag.learn.wire import sent_bytes
    from diag.probes.collective import launch, world
    from diag.probes.collective.request import Request

    lab.progress(f"counting what {WIRE_RANKS} ranks send")
    sent = sent_bytes(WIRE_RANKS, WIRE_BYTES[lab.scale])
    wanted = "auto" if lab.device == "cuda" else "cpu"
    n_ranks = world.default_ranks(wanted)
    file = lab.folder / "ranks.benchmark.json"
    request = Request(["all_reduce"], lab.scale, shape={"least": LEAST, "most": MOST})
    launch.run(request, n_ranks, world.device_of(wanted, n_ranks), file, lab.progress)
    third = ("--gpus", str(n_ranks), "--size", f"{THIRD >> 20}MiB")
    return Measured(
        figures(sent / WIRE_BYTES[lab.scale], load(file).collectives),
        [("report", str(file)), ("plan", "comm", *third, "--fit", str(file))],
    )


def figures(sent: float, measured: Sequence[CollectiveMeasurement]) -> list[Figure]:
    """`sent`: by one of WIRE_RANKS, over the bytes of the buffer; `measured`: all-reduces of one job."""
    n_ranks = measured[0].n_ranks
    factor = bus_factor(Primitive.ALL_REDUCE, n_ranks)
    took_ns = {each.size_bytes: float(each.median_ns) for each in measured}
    least_ns, most_ns = (_of(took_ns, size, n_ranks) for size in (LEAST, MOST))
    bytes_per_s = 1e9 * factor * (MOST - LEAST) / (most_ns - least_ns) if most_ns > least_ns else 0.0
    predicted_ns = least_ns + (1e9 * factor * THIRD / bytes_per_s if bytes_per_s else 0.0)
    third_ns = _of(took_ns, THIRD, n_ranks)
    least, sixteenfold, third, quarter, most = map(units.size, (LEAST, SIXTEENFOLD, THIRD, QUARTER, MOST))
    written = f"bytes that one of {WIRE_RANKS} ranks writes to its sockets / bytes of the buffer"
    rate = f"{factor:g} x (bytes of {most} - of {least}) / (time - time)"
    small, large = _of(took_ns, SIXTEENFOLD, n_ranks) / least_ns, most_ns / _of(took_ns, QUARTER, n_ranks)
    return [
        Figure("wire_share", sent, "x", written),
        Figure("latency_ns", least_ns, "ns", f"median time of {least}, {n_ranks} ranks"),
        Figure("small_ratio", small, "x", f"{sixteenfold} / {least}"),
        Figure("large_ratio", large, "x", f"{most} / {quarter}"),
        Figure("bytes_per_s", bytes_per_s, "bytes/s", rate),
        Figure("predicted_ns", predicted_ns, "ns", f"α + {factor:g} x {third} / β"),
        Figure("third_ns", third_ns, "ns", f"median time of {third}"),
    ]


def _of(took_ns: dict[int, float], size_bytes: int, n_ranks: int) -> float:
    """Sizes are rounded down to the same number of elements for each rank."""
    each_bytes = 4 * n_ranks
    return took_ns[size_bytes // each_bytes * each_bytes]


LESSON = Lesson(
    number=8,
    slug="collectives",
    questions=(
        Question("wire_share", "x", close=1.05),
        Question("latency_ns", "us", close=2.0),
        Question("small_ratio", "x", close=1.5),
        Question("large_ratio", "x", close=1.5),
    ),
    measure=measure,
    exercise=exercise,
)
