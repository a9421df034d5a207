"""Data that moves through the memory system more often than it must."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from diag.launches.kernel import ProfiledKernel
from diag.model import units
from diag.model.quantities import Missing, quantities
from diag.rules import profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, CannotTell, Clear, Confidence, Evidence
from diag.rules.thresholds import Limits
from diag.rules.traffic import cost_beside_instructions

_FOOTPRINT_UNKNOWN = (
    "nothing bounds what the kernel can read: neither profiler__replayer_bytes_mem_accessible.avg (ncu --replay-mode "
    "kernel) nor traffic with empty caches (ncu --cache-control all) was captured, or it reads memory of other devices"
)
_REACH_UNKNOWN = (
    "profiler__replayer_bytes_mem_accessible.avg was not collected (ncu --replay-mode kernel), so that nothing bounds "
    "what the kernel can read"
)


@kernel_rule("ncu.l1_hit_rate", needs=("l1_fill", "l1_hit_rate", "l2_throughput", "l1_wait"))
def l1_hit_rate(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """Data that SMs fetch from the L2 cache again and again.

    Asks      Do L1 caches lose data that their SM asks for again, in a kernel that waits for memory?
    Decides   A low hit rate alone is no fault: what is read once has none. It counts when the L2 cache is at `busy` of
              its peak, or warps spend `wait` of their time waiting for memory, and a bound proves that data came more
              than once: refetch = bytes from L2 / (SMs * footprint), since no SM needs more than all of the footprint.
              That is at most what was allocated, and at most what came from device memory or from the SMs if the
              caches were empty before the launch (--cache-control all, the default of ncu). Fires at `refetch`. A
              smaller loss stays unseen, for nobody counts what a single SM reads. At most the refetched part can be won
              of all the time if the L2 is at `limit` of its peak, else of the larger of how busy it is and how long
              warps wait.
    Matters   L2 answers in some 200 cycles, L1 in some 30, with several times the bandwidth over all SMs.
    Do        Work on tiles that fit into shared memory or L1; let warps of a block that read the same data run at the
              same time; give L1 more of the carve-out if shared memory is not needed.
    Refute    With tiles of half the size as many bytes come from L2: then another SM's share was counted.
    """
    fill, footprint, sms = kernel.value("l1_fill"), _footprint(kernel), kernel.launch.gpu.sm_count
    is_bound = kernel.value("l2_throughput") >= 100 * limits["busy"] or kernel.value("l1_wait") >= limits["wait"]
    if not is_bound:
        yield Clear(kernel_subject(kernel))
        return
    if footprint is None or sms is None:
        because = _FOOTPRINT_UNKNOWN if footprint is None else "the number of SMs of the device is not known"
        yield CannotTell(kernel_subject(kernel), because)
        return
    refetch = fill / (sms * footprint.at_most_bytes)
    if refetch < limits["refetch"]:
        yield Clear(kernel_subject(kernel))
        return
    part = 1 - 1 / refetch
    bound = cost_beside_instructions(kernel, part, limits["limit"], units_at=("l2_throughput",), wait="l1_wait")
    yield profiled.finding(
        kernel,
        title=f"Each SM fetches what {kernel.launch.short_name} reads {refetch:.1f} times from L2",
        claim=f"{units.size(fill)} came from the L2 cache into {sms} L1 caches, though there are no more than "
        f"{units.size(footprint.at_most_bytes)} to read: on average each SM fetched all of it at least {refetch:.1f} "
        f"times. L1 held {kernel.value('l1_hit_rate'):.1f} % of what was asked.",
        counterfactual=f"Fetched once per SM, at most {units.share(bound.fraction)} of its time: {bound.because}.",
        fraction=bound.fraction,
        confidence=footprint.confidence,
        evidence=[
            profiled.evidence(kernel, "l1_fill"),
            footprint.evidence,
            Evidence("fetches per SM", refetch, "ratio", f"bytes from L2 / ({sms} SMs * footprint)"),
            profiled.evidence(kernel, "l1_hit_rate"),
            profiled.evidence(kernel, "l2_throughput"),
            profiled.evidence(kernel, "l1_wait"),
            *profiled.known(kernel, "far_l2"),
        ],
        refute="With tiles of half the size as many bytes come from L2.",
        steps=[
            "Block the loop so that a tile stays in shared memory or L1 until all work on it is done.",
            "ncu --section MemoryWorkloadAnalysis_Tables: hit rates of loads and stores apart.",
        ],
    )


@kernel_rule("ncu.dram_traffic", needs=("dram_throughput", "dram_read", "dram_written"))
def dram_traffic(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """Device memory that is read more than once, or that nobody asked for.

    Asks      Does a kernel that is limited by device memory read more from it than it must?
    Decides   Only above `busy` of the peak of device memory: below, its traffic sets no pace. Two bounds prove excess:
              bytes read beyond all that the kernel can reach (what was allocated) were read before; bytes read beyond
              those that SMs asked the L2 for and missed, with loads, reductions or atomics, came along with others,
              since L2 fetches 64 bytes where 32 are wanted. Stores of parts of sectors make L2 read the rest, too:
              where what is stored could be it, confidence is low. excess is the larger part of all bytes that are read
              and written; fires at `excess`. A kernel that streams has an L2 hit rate near 0 and neither: it is clear.
              What is read twice of a footprint far below the allocation stays unseen: compare the bytes with the sizes
              of the inputs. At most the excess part of the time can be won above `limit` of the peak, else that part
              of the larger of how busy device memory is and how long warps wait; and no more than the SMs leave of
              theirs.
    Matters   Device memory is the slowest part on the device: a kernel at its limit takes as long as its bytes do.
    Do        Read again: order the blocks so that neighbours in time share data (swizzled tile order), work on parts
              that fit into L2, pin what is hot (access policy window), fuse with the kernel that made the data. Came
              along: read whole 64-byte halves of lines, or lower cudaLimitMaxL2FetchGranularity to 32.
    Refute    The inputs are as large as what was read.
    """
    read, moved = kernel.value("dram_read"), kernel.value("dram_read") + kernel.value("dram_written")
    excess = {why: _beyond(kernel, bound) for why, bound in _BOUNDS.items()}
    known = {why: n_bytes for why, n_bytes in excess.items() if n_bytes is not None}
    why = max(known, key=lambda each: known[each], default=None)
    part = known[why] / moved if why and moved else 0.0
    if kernel.value("dram_throughput") < 100 * limits["busy"] or (
        part < limits["excess"] and len(known) == len(excess)
    ):
        yield Clear(kernel_subject(kernel))
        return
    if why is None or part < limits["excess"]:
        yield CannotTell(kernel_subject(kernel), _unbounded(kernel))
        return
    bound = cost_beside_instructions(kernel, part, limits["limit"], units_at=("dram_throughput",), wait="l1_wait")
    yield profiled.finding(
        kernel,
        title=f"{units.share(known[why] / read)} of what {kernel.launch.short_name} reads from device memory "
        f"{_SAYS[why]}",
        claim=f"It reads {units.size(read)} from device memory and writes {units.size(moved - read)}; device memory is "
        f"at {kernel.value('dram_throughput'):.1f} % of its peak. At least {units.size(known[why])} of that "
        f"{_SAYS[why]}.",
        counterfactual=f"Without it, at most {units.share(bound.fraction)} of its time: {bound.because}.",
        fraction=bound.fraction,
        confidence=_confidence(kernel, why, known[why]),
        evidence=[
            *(profiled.evidence(kernel, name) for name in ("dram_read", "dram_written", "dram_throughput")),
            *profiled.known(kernel, *_BOUNDS.values()),
            *_parts(known, moved),
            *profiled.known(kernel, "l2_written", "l2_hit_rate", "far_l2", "l1_wait"),
        ],
        refute="The inputs of the kernel are as large as what it reads.",
        steps=[_STEPS[why], "ncu --section MemoryWorkloadAnalysis_Tables after the change."],
    )


_BOUNDS = {"again": "accessible_memory", "along": "l2_misses_of_reads"}
_SAYS = {"again": "was read before", "along": "came along with what was asked for"}
_STEPS = {
    "again": "Order blocks so that those that run together share their inputs, in parts that fit into the L2 cache.",
    "along": "Read both sectors of a 64-byte half line, or cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 32).",
}


def _beyond(kernel: ProfiledKernel, bound: str) -> float | None:
    """Bytes read beyond a bound of what must be; None where the bound is not known."""
    at_most = kernel.known(bound)
    return None if at_most is None else max(kernel.value("dram_read") - at_most, 0.0)


def _parts(known: Mapping[str, float], moved: float) -> Iterator[Evidence]:
    for why, n_bytes in known.items():
        formula = f"(bytes read - {quantities()[_BOUNDS[why]].means.lower()}) / (bytes read + written)"
        yield Evidence(f"{_SAYS[why]}, of all traffic", n_bytes / moved, "share", formula)


def _confidence(kernel: ProfiledKernel, why: str, n_bytes: float) -> Confidence:
    if why == "again":
        return "high"
    stored = kernel.known("l2_written")
    return "medium" if stored is not None and stored < n_bytes else "low"


def _unbounded(kernel: ProfiledKernel) -> str:
    """What is missing: without the memory within reach nothing bounds what the kernel can read."""
    if kernel.known(_BOUNDS["again"]) is None:
        return _REACH_UNKNOWN
    asked = kernel.quantity(_BOUNDS["along"])
    return asked.because if isinstance(asked, Missing) else _REACH_UNKNOWN


@dataclass(frozen=True)
class _Footprint:
    """The most that a kernel can have read of different bytes."""

    at_most_bytes: float
    evidence: Evidence
    confidence: Confidence


def _footprint(kernel: ProfiledKernel) -> _Footprint | None:
    """The smaller of what was allocated and of what came into empty caches; None where neither is known.

    Memory of the host or of another GPU is counted in neither.
    """
    if kernel.known("host_bytes") or kernel.known("peer_bytes"):
        return None
    bounds: list[tuple[str, Confidence]] = [("accessible_memory", "high")]
    if kernel.launch.cache_control != "none":
        bounds.append(("cold_footprint", "high" if kernel.launch.cache_control == "all" else "medium"))
    known = [(value, name, confidence) for name, confidence in bounds if (value := kernel.known(name))]
    if not known:
        return None
    at_most_bytes, name, confidence = min(known)
    return _Footprint(at_most_bytes, profiled.evidence(kernel, name), confidence)
