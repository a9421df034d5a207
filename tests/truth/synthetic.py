"""Synthetic runs of a GPU with one fault of a known size, and twins that differ in the fault alone.

A fault is a function that does its part between two steps, for a budget of time: wrongly if sick, else right. It
returns what of the window it took, by the timeline's own clock. Sizes, places and names are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from tests.builders.nsys_export import NsysExport
from tests.truth.timeline import FULL_GRID, LATENCY_NS, RETURN_NS, Timeline

COMPUTING, COPYING = 7, 13
"""Streams."""


@dataclass(frozen=True)
class Place:
    """Where a fault does its part."""

    run: Timeline
    budget_ns: int
    is_sick: bool
    name: str


@dataclass(frozen=True)
class SyntheticFault:
    rule: str
    tells: str
    """What a finding of the rule says if it is about this fault; {name} stands for the drawn one."""
    inject: Callable[[Place], int]
    """Returns the time that the fault took, in ns: 0 for the twin."""
    ahead: Callable[[Place], None] = lambda place: None
    """What the twin does once before the loop, where the sick run does it in it."""


@dataclass(frozen=True)
class Made:
    export: NsysExport
    name: str
    injected: float
    """Share of the window."""


def make(fault: SyntheticFault, dose: float, seed: int, *, is_sick: bool) -> Made:
    """The run and its twin of the same seed have the same places, names and sizes."""
    draw = Random(seed)
    run = Timeline(draw)
    name = f"{draw.choice(('fold', 'merge', 'scan', 'shift'))}_{draw.choice(('rows', 'tiles', 'pages'))}_{seed % 97}x"
    steps, every = draw.randrange(20, 41), draw.choice((1, 1, 2, 3))
    kernels = [(f"layer{n}", draw.randrange(200_000, 900_000)) for n in range(draw.randrange(4, 9))]
    step_ns = sum(took_ns for _, took_ns in kernels)
    sizes = [draw.uniform(0.6, 1.4) if step % every == 0 else 0.0 for step in range(1, steps)]
    total_ns = dose / (1 - dose) * steps * step_ns
    budgets = [0, *(round(total_ns * size / sum(sizes)) for size in sizes)]
    fault.ahead(Place(run, round(total_ns), is_sick, name))
    injected_ns = 0
    for step, budget_ns in enumerate(budgets):
        begin = run.now
        if budget_ns:
            injected_ns += fault.inject(Place(run, budget_ns, is_sick, name))
        for kernel, took_ns in kernels:
            run.kernel(kernel, took_ns, COMPUTING)
        run.wait()
        run.main.range(f"step {step}", begin, run.now)
    return Made(run.export, name, injected_ns / run.window_ns)


# ---- copies --------------------------------------------------------------------------------------------------------


def _pageable(place: Place) -> int:
    memory = ("Pageable", "Device") if place.is_sick else ("Pinned", "Device")
    n_bytes = place.budget_ns * 8  # 8 GB/s
    start, end = place.run.copy(place.budget_ns, n_bytes, memory=memory, is_waited_for=place.is_sick, stream=COPYING)
    return end - start if place.is_sick else 0


def _items(place: Place) -> int:
    """Reads of single values, one after the other; the device idles in the calls but for the copies themselves."""
    lost = 0
    for _ in range(max(1, place.budget_ns // _ITEM_NS)):
        if place.is_sick:
            called, idle_from = place.run.now, place.run.last
            start, end = place.run.copy(
                1_500, 4, kind="Device-to-Host", memory=("Device", "Pageable"), is_waited_for=True, stream=COMPUTING
            )
            lost += start - max(called, idle_from) + place.run.now - end
        else:
            place.run.kernel(place.name, _ITEM_NS, COMPUTING)
    return lost


_ITEM_NS = LATENCY_NS + RETURN_NS


def _one_stream(place: Place) -> int:
    stream = COMPUTING if place.is_sick else COPYING
    start, end = place.run.copy(place.budget_ns, place.budget_ns * 25, stream=stream)
    return end - start if place.is_sick else 0


# ---- the host ------------------------------------------------------------------------------------------------------


def _drains(place: Place) -> int:
    """Small kernels, with a wait after each that returns late, or one wait for all of them."""
    lost, pieces = 0, max(1, place.budget_ns // 20_000)
    for _ in range(pieces):
        place.run.kernel(place.name, 30_000, COMPUTING)
        if place.is_sick:
            place.run.wait(20_000)
            lost += 20_000
    return lost


def _sleeps(place: Place) -> int:
    return _host_work(place, place.name, "clock_nanosleep")


def _formats(place: Place) -> int:
    return _host_work(place, f"write_text {place.name}", None)


def _loads(place: Place) -> int:
    return _host_work(place, f"DataLoader.__next__ {place.name}", "read")


def _host_work(place: Place, name: str, os_call: str | None) -> int:
    """On the launching thread, or on another one."""
    start, end = place.run.pause(place.budget_ns) if place.is_sick else (place.run.now, place.run.now + place.budget_ns)
    thread = place.run.main if place.is_sick else place.run.other
    thread.range(name, start, end)
    if os_call:
        thread.os_call(os_call, start, end)
    return end - start if place.is_sick else 0


def _locks(place: Place) -> int:
    start, end = place.run.pause(place.budget_ns if place.is_sick else 800)
    place.run.main.os_call("pthread_mutex_lock", start, end)
    return end - start if place.is_sick else 0


def _one_core(place: Place) -> int:
    """Preempted while the device waits, or while it works: at the begin of the step's kernels."""
    if place.is_sick:
        start, end = place.run.pause(place.budget_ns)
        place.run.main.off_cpu(start, end, state="Running")
        return end - start
    start, _ = place.run.kernel(place.name, place.budget_ns, COMPUTING)
    place.run.main.off_cpu(start + 1_000, start + max(place.budget_ns // 2, 2_000), state="Running")
    return 0


def _allocates(place: Place) -> int:
    lost = place.budget_ns if place.is_sick else 4_000
    place.run.call("cudaMalloc_v3020" if place.is_sick else "cudaMallocAsync_v11020", lost // 2)
    place.run.call("cudaFree_v3020" if place.is_sick else "cudaFreeAsync_v11020", lost // 2)
    return lost if place.is_sick else 0


def _loads_code(place: Place) -> int:
    if place.is_sick:
        place.run.call("cuModuleLoadData", place.budget_ns)
        return place.budget_ns
    return 0


def _loads_code_ahead(place: Place) -> None:
    if not place.is_sick:
        place.run.call("cuModuleLoadData", place.budget_ns)


# ---- kernels -------------------------------------------------------------------------------------------------------


def _tiny(place: Place) -> int:
    """Kernels of 2 us that are launched one each 5 us, or one kernel that does the work of all of them."""
    if not place.is_sick:
        place.run.kernel(place.name, place.budget_ns, COMPUTING)
        return 0
    begin = place.run.last
    for _ in range(max(1, place.budget_ns // 5_000)):
        place.run.kernel(place.name, 2_000, COMPUTING)
    return place.run.last - begin


def _communicates(place: Place) -> int:
    """Alone on the device, or beside a kernel as long."""
    if not place.is_sick:
        place.run.kernel(place.name, place.budget_ns + 50_000, COMPUTING)
    name = f"ncclDevKernel_AllReduce_Sum_f32_RING_LL({place.name})"
    start, end = place.run.kernel(name, place.budget_ns, COPYING)
    if place.is_sick:
        place.run.wait()
    return end - start if place.is_sick else 0


def _small_grid(place: Place) -> int:
    """A third of the SMs have no block, or all have some."""
    blocks = 44
    grid = {**FULL_GRID, "gridX": blocks} if place.is_sick else FULL_GRID
    took_ns = round(place.budget_ns / (1 - blocks / 132))
    place.run.kernel(place.name, took_ns, COMPUTING, **grid)
    return round(took_ns * (1 - blocks / 132)) if place.is_sick else 0


def _local_memory(place: Place) -> int:
    n_bytes = place.run.draw.randrange(8, 512, 8)
    start, end = place.run.kernel(
        place.name, place.budget_ns, COMPUTING, localMemoryPerThread=n_bytes if place.is_sick else 0
    )
    return end - start if place.is_sick else 0


FAULTS: Mapping[str, SyntheticFault] = {
    "pageable copies": SyntheticFault("transfer.pageable", "pageable", _pageable),
    "sync every step": SyntheticFault("sync.drain", "Synchroni", _drains),
    ".item() in the loop": SyntheticFault("transfer.synchronous", "Copies block", _items),
    "sleep in the loop": SyntheticFault("idle.gpu", "{name}", _sleeps),
    "slow data loader": SyntheticFault("idle.gpu", "data loader", _loads),
    "text formatting": SyntheticFault("idle.gpu", "{name}", _formats),
    "lock contention": SyntheticFault("host.locks", "waiting for a lock", _locks),
    "one core": SyntheticFault("host.oversubscription", "without a core", _one_core),
    "tiny kernels": SyntheticFault("kernels.tiny", "Tiny kernels", _tiny),
    "serialised streams": SyntheticFault("streams.serial", "stream", _one_stream),
    "allocation every step": SyntheticFault("memory.allocation", "Allocation in steady state", _allocates),
    "loading of code": SyntheticFault("load.steady", "Code is loaded", _loads_code, _loads_code_ahead),
    "no overlap": SyntheticFault("overlap.communication", "Exposed communication", _communicates),
    "tiny grid": SyntheticFault("kernels.grid", "{name}", _small_grid),
    "local memory": SyntheticFault("kernels.local_memory", "{name}", _local_memory),
}

ENTAILS: Mapping[str, tuple[str, ...]] = {
    ".item() in the loop": ("pageable copies", "sync every step"),
    "pageable copies": (".item() in the loop", "sync every step"),
}
"""Faults that another one brings along, and of which a run is rightly accused, too.

A copy to or from pageable memory blocks its thread, which is what a synchronising call does."""
