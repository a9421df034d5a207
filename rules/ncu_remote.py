"""Memory that a kernel reaches over a link: the host's, or that of another GPU."""

from __future__ import annotations

from collections.abc import Iterator

from diag.launches.kernel import ProfiledKernel
from diag.model import hardware, units
from diag.rules import profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, CannotTell, Clear, Evidence
from diag.rules.thresholds import Limits
from diag.rules.traffic import Cost


@kernel_rule("ncu.remote_memory", needs=("host_bytes", "peer_bytes", "duration"))
def remote_memory(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """Kernels that read or write memory beyond a link.

    Asks      How long do the bytes of host and peer memory that a kernel touches take on their way?
    Decides   part = bytes that L2 missed in host or peer memory / (rate of the host link * duration); fires at `part`.
              The rate is that of the product's link at its full width (datasheet); a product whose link is not known
              cannot be judged, unless it touched nothing. NVIDIA's rule asks for half of the peak of the L2 cache
              instead, which a kernel that waits for a link of a sixtieth of its bandwidth never reaches. Peer memory
              may come over NVLink, several times as fast: then the part is smaller, and the finding is less sure.
              Memory of an integrated GPU lies behind no link. At most what the kernel's busiest unit leaves can be won,
              and no more than the larger of the part and of the time that warps wait for memory.
    Matters   A link carries 16 to 64 GB/s, device memory a thousand or more.
    Do        Copy what is read more than once to the device before the launch; for managed memory, prefetch it
              (cudaMemPrefetchAsync) or advise where it lives (cudaMemAdvise). Data that is read once may stay where
              it is if the reads are coalesced.
    Refute    The same kernel on a copy in device memory takes as long.
    """
    host, peer, duration_ns = (kernel.value(name) for name in ("host_bytes", "peer_bytes", "duration"))
    gpu = kernel.launch.gpu
    if not host + peer or hardware.is_integrated(gpu.name):
        yield Clear(kernel_subject(kernel))
        return
    if (link := hardware.host_link(gpu.name)) is None:
        yield CannotTell(kernel_subject(kernel), _UNKNOWN_LINK.format(name=gpu.name or "this device"))
        return
    part = min((host + peer) * 1e9 / (link.bytes_per_s * duration_ns), 1.0) if duration_ns else 0.0
    if part < limits["part"]:
        yield Clear(kernel_subject(kernel))
        return
    bound = _cost(kernel, part)
    yield profiled.finding(
        kernel,
        title=f"{kernel.launch.short_name} reaches over a link for {units.size(host + peer)} of "
        f"{'host memory' if host >= peer else 'the memory of another GPU'}",
        claim=f"In {units.time(duration_ns)} it touches {units.size(host)} of host memory and {units.size(peer)} of "
        f"other GPUs'. At the {units.size(link.bytes_per_s)}/s of {link.name} they are on their way during "
        f"{units.share(part)} of that time.",
        counterfactual=f"With the data in device memory, at most {units.share(bound.fraction)} of its time: "
        f"{bound.because}.",
        fraction=bound.fraction,
        confidence="high" if host >= peer else "medium",
        evidence=[
            *(profiled.evidence(kernel, name) for name in ("host_bytes", "peer_bytes", "duration")),
            Evidence("time on the link", part, "share", f"bytes / ({units.size(link.bytes_per_s)}/s * duration)"),
        ],
        refute="The kernel takes as long on a copy of the data in device memory.",
        steps=[
            "Copy or prefetch what it reads before the launch (cudaMemcpyAsync, cudaMemPrefetchAsync).",
            "nsys profile --cuda-um-gpu-page-faults=true: whether managed memory moves during the kernel.",
        ],
    )


_UNKNOWN_LINK = "the link between {name} and its host is not known, so that its time on it cannot be told"


def _cost(kernel: ProfiledKernel, part: float) -> Cost:
    """What lies on the link or, if that is more, what warps wait for; never what the busiest unit needs anyway."""
    busiest = max(kernel.known(name) or 0.0 for name in ("sm_throughput", "memory_throughput")) / 100
    waiting = kernel.known("l1_wait")
    if waiting is None or max(part, waiting) >= 1 - busiest:
        return Cost(1 - busiest, f"its busiest unit needs {units.share(busiest)} of the time for the same work")
    return Cost(max(part, waiting), f"warps wait for memory during {units.share(waiting)} of their time")
