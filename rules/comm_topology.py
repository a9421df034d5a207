"""How the GPUs of a host reach each other and the network, by `nvidia-smi topo -m`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from diag.model import units
from diag.model.nvlink import bonded_links
from diag.ranks.host_links import NEARNESS, HostLinks
from diag.ranks.job import Job
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Subject
from diag.rules.thresholds import Limits

_LINKS = "SELECT a, b, kind FROM link WHERE source_id = {source_id:d} ORDER BY a, b"
FAR = ("NODE", "SYS")
"""Over the interconnect of PCIe host bridges, or between the sockets."""


@job_rule("comm.topology", needs=("link",))
def pairs_without_nvlink(job: Job, limits: Limits) -> Iterator[Answer]:
    """Some pairs of GPUs have NVLink, and others only PCIe between them.

    Asks      Do all pairs of GPUs of a host reach each other the same way?
    Decides   Fires where some pairs are connected by NVLink (NV#) and others by PCIe alone (nvidia-smi topo -m).
    Matters   A ring that has to leave NVLink for one hop runs at the rate of that hop; groups of ranks should lie where
              all pairs have NVLink. Between sockets (SYS) a copy crosses their interconnect too.
    Do        Put tensor-parallel groups on GPUs that NVLink connects (CUDA_VISIBLE_DEVICES, order of local ranks). If
              the host should have NVLink everywhere, look for a bridge or a switch that is missing
              (nvidia-smi nvlink -s, the fabric manager).
    Refute    nccl-tests over all GPUs reaches as much as over those that NVLink connects.
    """
    for host in job.host_links:
        subject, pairs = Subject(host.source_id), host.gpu_pairs
        without = {pair: kind for pair, kind in pairs.items() if not bonded_links(kind)}
        if not pairs:
            yield CannotTell(subject, "it lists one GPU only: no pair to compare")
        elif not without or len(without) == len(pairs):
            yield Clear(subject)
        else:
            yield _mixed(host, subject, list(without.items()))


def _mixed(host: HostLinks, subject: Subject, without: list[tuple[tuple[str, str], str]]) -> Finding:
    n_pairs, kinds = len(host.gpu_pairs), Counter(kind for _, kind in without)
    (a, b), example = without[0]
    ways = ", ".join(f"{count} over {kind}" for kind, count in sorted(kinds.items()))
    return Finding(
        title=f"{len(without)} of {n_pairs} pairs of GPUs have no NVLink between them",
        claim=f"They go over PCIe ({ways}), {a} and {b} over {example}, while the others have NVLink.",
        subject=subject,
        level="warning" if any(kind in FAR for kind in kinds) else "info",
        counterfactual="Groups of ranks inside of NVLink would communicate at its rate.",
        refute="nccl-tests over all GPUs reaches as much as over those that NVLink connects.",
        next=[
            "Compare nccl-tests on GPUs with NVLink and across: CUDA_VISIBLE_DEVICES=0,1 all_reduce_perf -b 1G -e 1G"
        ],
        evidence=[
            Evidence("pairs without NVLink", len(without), "count", f"of {n_pairs}", _sql(host)),
            Evidence("pairs with NVLink", n_pairs - len(without), "count", f"of {n_pairs}", _sql(host)),
        ],
    )


@job_rule("comm.nics", needs=("link",))
def far_from_the_network(job: Job, limits: Limits) -> Iterator[Answer]:
    """Some GPUs are farther from a network card than others.

    Asks      Does every GPU of a host have a network card as near as the others have?
    Decides   Of each GPU the shortest way to any card (PIX, PXB, PHB, NODE, SYS, by nvidia-smi topo -m). Fires where
              some have one below the same PCIe switch or host bridge, and others only over NODE or SYS.
    Matters   GPUDirect RDMA needs GPU and card below one switch; from afar, data cross host bridges or the sockets'
              interconnect, and one slow rank slows down the ring of all.
    Do        Check which cards the container or virtual machine is given, NCCL_IB_HCA, and PCIe settings (ACS). With
              fewer cards than GPUs, NCCL sends over the GPU next to a card (PXN) where NVLink lets it.
    Refute    nccl-tests between two hosts, one GPU of each at a time, reaches the same from every GPU.
    """
    for host in job.host_links:
        subject = Subject(host.source_id)
        nearest = {gpu: host.nearest_card(gpu) for gpu in host.gpus}
        known = {gpu: way for gpu, way in nearest.items() if way is not None}
        far = [gpu for gpu, way in known.items() if way in FAR]
        if not host.cards or len(known) < len(nearest) or not known:
            yield CannotTell(subject, "it lists no network card, or does not say how each GPU reaches one")
        elif not far or len(far) == len(known):
            yield Clear(subject)
        else:
            yield _far(host, subject, far, known)


def _far(host: HostLinks, subject: Subject, far: list[str], ways: dict[str, str]) -> Finding:
    best = min(ways.values(), key=NEARNESS.index)
    return Finding(
        title=f"{units.count(len(far), 'GPU')} of {len(ways)} have no network card near them",
        claim=f"{', '.join(far)} reach their nearest card over {', '.join(sorted({ways[gpu] for gpu in far}))}, "
        f"others over {best}.",
        subject=subject,
        level="info",
        counterfactual="With a card below the same switch their data would cross neither host bridge nor socket.",
        refute="nccl-tests between two hosts, one GPU of each at a time, reaches the same from every GPU.",
        next=["Compare nccl-tests between two hosts from a near and from a far GPU: CUDA_VISIBLE_DEVICES"],
        evidence=[
            Evidence("GPUs far from a card", len(far), "count", "nearest card over NODE or SYS", _sql(host)),
            Evidence("nearest of the others", best, "text", "shortest way of nvidia-smi topo -m", _sql(host)),
        ],
    )


def _sql(host: HostLinks) -> str:
    return _LINKS.format(source_id=host.source_id)
