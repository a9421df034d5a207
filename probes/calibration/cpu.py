"""Ceilings of a CPU: all its cores at once, in code that is not that of the probes which are held against it.

Vector addition and matrix products of the probes go through torch.add and torch.matmul. Here memory is read, filled,
copied and combined by other operators, and arithmetic is done by convolutions (oneDNN, whose kernels are made for the
CPU at hand) and batched products (the BLAS library, which on a CPU of another vendor may use half of its units): the
better of them is the ceiling. A core has one kind of units for products, be it of vectors or of matrices.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Literal

import torch

from diag import __version__
from diag.errors import OutOfMemory
from diag.model import units
from diag.model.benchmark import Benchmark, Machine
from diag.model.ceilings import Arithmetic, Level
from diag.probes.calibration import host
from diag.probes.calibration.host import Caches, HostClock
from diag.probes.calibration.results import CALLS, Progress, launch_latency, measured_ceiling
from diag.probes.calibration.sampling import Plan, Trial, sampled

Access = Literal["read", "fill", "copy", "triad"]

ARRAYS: Mapping[Access, int] = {"read": 1, "fill": 1, "copy": 2, "triad": 3}
"""That each access goes through. A fill may have to read each line before it writes it: that does not count."""

FLOAT_BYTES = 4
LINE_FLOATS = 16
CALL_BYTES = 16 << 20
"""That each thread moves in one call within the caches: enough for the call itself to cost nothing."""

CHUNK_BYTES = 16 << 20
"""Of each array, in one call to memory: shorter calls are disturbed less often."""

PAST = 6
"""Caches of the last level that each of the three arrays fills. Caches do not throw out what is oldest: of four times
their size a quarter still comes from them, and every access seems a quarter faster than memory is (measured on an EPYC
with 32 MB: 96 GB/s of 150 MB in turn, 77 of 400 MB, 74 of 800 MB)."""


def threads() -> int:
    """Cores that take part: those that torch uses, as far as this process may run on them."""
    return min(int(torch.get_num_threads()), len(os.sched_getaffinity(0)))


def machine_of() -> Machine:
    """This CPU, as ceilings and what is held against them know it."""
    return Machine("cpu", host.cpu_name(), threads(), host=platform.node() or None)


def state() -> str:
    """For people: what of the machine's state the times depend on."""
    return f"{units.count(threads(), 'thread')}, clock governor {host.governor()}, torch {torch.__version__}"


def calibrated(plan: Plan, progress: Progress) -> Benchmark:
    machine = machine_of()
    latency = Trial(_thousand_calls(), CALLS, f"{CALLS} calls of neg_ on one element")
    *results, last = sampled([*trials(host.caches(), machine.n_units), latency], HostClock(), plan, progress)
    shared = sum(each.disturbed for each in results) / sum(each.disturbed + each.repeats for each in results)
    conditions = f"{state()}, {units.share(shared)} of the calls left out, for other programs had a core"
    return Benchmark(
        machine=machine,
        ceilings=[measured_ceiling(each, conditions) for each in results],
        measurements=[launch_latency("eager operator", last, conditions)],
        diag_version=__version__,
    )


def _thousand_calls() -> Callable[[], object]:
    """The least that an eager operator takes: one element, in place."""
    one = torch.ones(1)

    def run() -> None:
        for _ in range(CALLS):
            one.neg_()

    return run


def trials(caches: Caches, n_threads: int) -> Sequence[Trial]:
    """All of a CPU. Raises OutOfMemory where memory cannot hold arrays that its caches do not."""
    return [*memory_trials(caches, n_threads), *arithmetic_trials(n_threads)]


# ---- memory --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Buffers:
    """Three arrays of floats, larger than all caches. Every trial looks at a part of them."""

    arrays: Sequence[Any]

    @classmethod
    def past(cls, caches: Caches) -> Buffers:
        n_bytes = max(64 << 20, min(PAST * caches.largest_bytes, 2 << 30)) // CHUNK_BYTES * CHUNK_BYTES
        free = host.available_bytes()
        if free is not None and 3 * n_bytes > free // 2:
            raise OutOfMemory(
                f"Calibration takes {units.size(3 * n_bytes)} of memory, past all caches, and may use half of the "
                f"{units.size(free)} that are free. End other programs first."
            )
        return cls([torch.ones(n_bytes // FLOAT_BYTES) for _ in range(3)])

    @property
    def chunks(self) -> list[Any]:
        return [chunk for array in self.arrays for chunk in array.split(CHUNK_BYTES // FLOAT_BYTES)]


def memory_trials(caches: Caches, n_threads: int) -> Iterator[Trial]:
    buffers = Buffers.past(caches)
    for level, n_bytes in _working_sets(caches, n_threads).items():
        for access in ARRAYS:
            yield _cached(buffers, level, access, n_bytes, n_threads)
    for access in ARRAYS:
        yield _streamed(buffers, access)
    yield _strided(buffers)


def _working_sets(caches: Caches, n_threads: int) -> Mapping[Level, int]:
    """Bytes of each thread. Three quarters of a cache, for other data want some of it, but more than the one before."""
    sets: dict[Level, int] = {"l1": caches.l1_bytes * 3 // 4, "l2": caches.l2_bytes * 3 // 4}
    of_l3 = caches.l3_bytes // 2 // n_threads
    return sets | ({"l3": of_l3} if of_l3 > 2 * caches.l2_bytes else {})


def _cached(buffers: Buffers, level: Level, access: Access, n_bytes: int, n_threads: int) -> Trial:
    """The same bytes over and over in one call, as no loop in Python could.

    The view has a slab for each thread, and in it rows that begin one cache line after the row before: a window that
    hardly moves. (Rows that do not move at all, torch refuses to write to.)
    """
    row = n_bytes // ARRAYS[access] // FLOAT_BYTES // LINE_FLOATS * LINE_FLOATS
    rows = max(4, CALL_BYTES // (row * FLOAT_BYTES * ARRAYS[access]))
    slab = row + LINE_FLOATS * (rows + 64)  # apart: no line belongs to two threads
    views = [array.as_strided((n_threads, rows, row), (slab, LINE_FLOATS, 1)) for array in buffers.arrays]
    work = views[0].numel() * FLOAT_BYTES * ARRAYS[access]
    each = f"{n_threads} threads x {rows} rows x {row} floats x {FLOAT_BYTES} bytes x {_plural(ARRAYS[access])}"
    return Trial(_ACCESSES[access](*views), work, each, None, level, access, n_threads * n_bytes)


def _streamed(buffers: Buffers, access: Access) -> Trial:
    """The next chunks of all that there are, so that each byte comes from memory, and of as much for each access."""
    chunks, n = buffers.chunks, ARRAYS[access]
    groups = [chunks[first : first + n] for first in range(0, len(chunks) - n + 1, n)]
    runs = [_ACCESSES[access](*(group * 3)[:3]) for group in groups]
    formula = f"{chunks[0].numel()} floats x {FLOAT_BYTES} bytes x {_plural(n)}"
    return Trial(_in_turn(runs), CHUNK_BYTES * n, formula, None, "dram", access, len(groups) * n * CHUNK_BYTES)


def _strided(buffers: Buffers) -> Trial:
    """One float of each cache line: what is fetched and not used does not count."""
    runs = [chunk[::LINE_FLOATS].sum for chunk in buffers.chunks]
    n_floats = CHUNK_BYTES // FLOAT_BYTES // LINE_FLOATS
    access = f"read, stride {LINE_FLOATS * FLOAT_BYTES} bytes"
    formula = f"{n_floats} floats x {FLOAT_BYTES} bytes"
    return Trial(_in_turn(runs), n_floats * FLOAT_BYTES, formula, None, "dram", access, len(runs) * CHUNK_BYTES)


def _in_turn(runs: Sequence[Callable[[], object]]) -> Callable[[], object]:
    """Another one with each call."""
    endless = cycle(runs)

    def run() -> object:
        return next(endless)()

    return run


def _plural(arrays: int) -> str:
    return f"{arrays} array{'s' if arrays > 1 else ''}"


_ACCESSES: Mapping[Access, Callable[[Any, Any, Any], Callable[[], object]]] = {
    "read": lambda a, _b, _c: a.sum,
    "fill": lambda a, _b, _c: lambda: a.fill_(1.0),
    "copy": lambda a, b, _c: lambda: b.copy_(a),
    "triad": lambda a, b, c: lambda: torch.lerp(a, b, 0.5, out=c),  # c = a + (b - a) / 2
}

# ---- arithmetic ----------------------------------------------------------------------------------------------------

CHANNELS, PIXELS, TAPS = 128, 28, 3
BATCHED = 256


def arithmetic_trials(n_threads: int) -> Iterator[Trial]:
    fp32, fp64, bf16 = Arithmetic("fp32", "fp32"), Arithmetic("fp64", "fp64"), Arithmetic("bf16", "fp32")
    yield _convolution(fp32, torch.float32, n_threads)
    yield _products(fp32, torch.float32, n_threads)
    yield _products(fp64, torch.float64, n_threads)
    if host.cpu_features() & {"avx512_bf16", "amx_bf16", "bf16"}:
        yield _convolution(bf16, torch.bfloat16, n_threads)
        yield _products(bf16, torch.bfloat16, n_threads)


def _convolution(of: Arithmetic, dtype: Any, n_threads: int) -> Trial:
    """Two images for each thread, channels last: what oneDNN does best (one each: 4 % less on an EPYC)."""
    side, images = PIXELS + TAPS - 1, 2 * n_threads
    images_in = torch.ones(images, CHANNELS, side, side, dtype=dtype).to(memory_format=torch.channels_last)
    weights = torch.ones(CHANNELS, CHANNELS, TAPS, TAPS, dtype=dtype).to(memory_format=torch.channels_last)
    return Trial(
        run=lambda: torch.nn.functional.conv2d(images_in, weights),
        work=2 * images * CHANNELS**2 * TAPS**2 * PIXELS**2,
        formula=f"convolution: 2 x {images} images x {CHANNELS}² channels x {TAPS}² taps x {PIXELS}² pixels",
        arithmetic=of,
    )


def _products(of: Arithmetic, dtype: Any, n_threads: int) -> Trial:
    """Small enough for the second level of the caches, one for each thread."""
    batch = n_threads
    a, b, c = (torch.ones(batch, BATCHED, BATCHED, dtype=dtype) for _ in range(3))
    formula = f"batched products: 2 x {batch} x {BATCHED}³"
    return Trial(lambda: torch.bmm(a, b, out=c), 2 * batch * BATCHED**3, formula, arithmetic=of)
