"""The products and what an SM of each capability does, as tables: python -m tests.model.hardware_page docs/hardware.md

`make docs` writes them below the last heading of the page; what stands above is written by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from diag.model.ceilings import arithmetic
from diag.model.datasheets import datasheet_peaks
from diag.model.hardware import Product, parsed_capability, product
from diag.model.tables import table, tables
from diag.model.throughput import sm_throughput

HEADING = "## What the tables hold\n"

VECTOR = ("fp64", "fp32", "fp16", "int32")
TENSOR = ("tensor_fp64", "tensor_tf32", "tensor_fp16", "tensor_fp8", "tensor_fp4", "tensor_int8")
RATES = (*VECTOR, *TENSOR)
PEAKS = ("fp64", "fp32", "tensor_tf32", "tensor_fp16", "tensor_fp8")


def generated() -> str:
    return "\n".join([HEADING, *_capabilities(), "", *_products()]) + "\n"


def _capabilities() -> Iterator[str]:
    yield "Multiply-adds per clock and SM, dense, with sums in FP32 (FP64, INT32); each is two operations."
    yield ""
    yield from _rows(["capability", *(arithmetic(key).name for key in RATES), "L1, bytes"], _rates())


def _rates() -> Iterator[Sequence[str]]:
    for capability in table("throughput.toml"):
        if capability == "sources":
            continue
        throughput = sm_throughput(parsed_capability(capability))
        assert throughput is not None
        rates = (throughput.multiply_adds.get(arithmetic(key)) for key in RATES)
        yield [capability, *(f"{rate:,}" if rate else "–" for rate in rates), str(throughput.l1_bytes or "–")]


def _products() -> Iterator[str]:
    yield "Products as the driver spells them. Clocks in MHz; peaks in TFLOP/s, dense, as printed."
    yield ""
    names = ["product", "capability", "SMs", "base", "boost", "GB/s", *(arithmetic(key).name for key in PEAKS)]
    yield from _rows(names, (_row(known) for known in _listed()))


def _listed() -> list[Product]:
    known = [each for name in tables("products", "products") if (each := product(name))]
    return sorted(known, key=lambda each: (each.compute_capability, each.name))


def _row(known: Product) -> Sequence[str]:
    clocks = [f"{hz / 1e6:.0f}" if hz else "–" for hz in (known.base_clock_hz, known.boost_clock_hz)]
    memory = f"{known.memory_bytes_per_s / 1e9:,.4g}" if known.memory_bytes_per_s else "–"
    capability = ".".join(map(str, known.compute_capability))
    return [known.name, capability, str(known.sm_count or "–"), *clocks, memory, *_peaks(known)]


def _peaks(known: Product) -> Iterator[str]:
    printed = datasheet_peaks(known)
    for key in PEAKS:
        peak = printed.get(arithmetic(key))
        yield f"{peak.per_s / 1e12:,.4g}" if peak else "–"


def _rows(names: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(names)} |"
    yield "|" + "---|" * len(names)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def page(written: str) -> str:
    """The page with its tables written anew."""
    return written.partition(HEADING)[0] + generated()


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(page(path.read_text("utf-8")), encoding="utf-8")
