"""The verdict: one sentence that says what the run is limited by, and what it is not limited by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from diag.launches.kernel import ProfiledKernel
from diag.model import units
from diag.rules import profiled
from diag.rules.engine import kernel_subject
from diag.rules.finding import WARNING_SHARE, Clear, Finding, Subject, is_about_capture
from diag.rules.report import Verdict
from diag.rules.serving_rows import ServingRunRow
from diag.rules.timeline_report import DeviceRow

KERNEL_CAUSES = (
    "ncu.waves",
    "ncu.imbalance",
    "ncu.divergence",
    "ncu.coalescing",
    "ncu.bank_conflicts",
    "ncu.spills",
    "ncu.l1_hit_rate",
    "ncu.dram_traffic",
    "ncu.remote_memory",
    "ncu.fp64",
    "ncu.tensor_cores",
    "ncu.occupancy",
    "ncu.stalls",
)
"""Why a profiled kernel stays below its roofs, where that one is known."""

GIVES_WAY_TO: Mapping[str, Sequence[str]] = {
    "idle.gpu": (
        "launch.bound",
        "load.steady",
        "sync.drain",
        "transfer.synchronous",
        "memory.allocation",
        "host.locks",
        "host.gil",
        "host.oversubscription",
        "host.page_faults",
        "host.gc",
    ),
    "overlap.communication": ("ranks.straggler", "ranks.skew"),
    "comm.exposed": ("ranks.straggler", "ranks.skew"),
    "graph.coverage": ("launch.bound",),
    "live.waits_for_host": ("live.data_loader",),
    "ncu.speed_of_light": KERNEL_CAUSES,
    "ncu.roofline": KERNEL_CAUSES,
    "ncu.issue_slots": KERNEL_CAUSES,
    "host.os_calls": ("host.locks", "host.gil"),
}
"""Rules that name a cause of what another one finds: a verdict names the cause."""


def verdict(
    findings: Sequence[Finding],
    clear: Sequence[Clear],
    devices: Sequence[DeviceRow],
    kernels: Sequence[ProfiledKernel] = (),
    serving: Sequence[ServingRunRow] = (),
    *,
    explained: Mapping[str, Explained],
    is_cut: bool = False,
) -> Verdict:
    """Takes the first of the ranked findings that time can be won from, or that is at least a warning.

    A job that stands still comes before whatever else is slow in it. A warning about a device, the ranks of a job or a
    load on a server comes before anything about the host alone, which matters when one of these feels it.
    """
    candidates = _candidates(findings)
    top = _most_specific(candidates, explained) if candidates else None
    cut = "A file is cut short: all of this speaks of what comes before." if is_cut else ""
    longest = _longest(kernels, top) if not devices else None
    beside = f"{_weight(longest)}." if longest else ""
    if longest is not None and (top is None or top.severity == "info") and _is_at_its_limit(longest, clear):
        return Verdict(_weight(longest), " ".join(filter(None, (_AT_ITS_LIMIT, _ALONE, cut))), None)
    if top is None:
        healthy = _healthy(findings, clear, devices, serving)
        return replace(healthy, summary=" ".join(filter(None, (healthy.summary, beside, cut))))
    says_more = top.rule != "idle.gpu" and top.subject.launch is None
    excluded = list(_excluded(top.subject, findings, devices)) if says_more else []
    title = "; ".join((top.title, ", ".join(excluded))) if excluded else top.title
    agreement = _agreement(top, findings, devices)
    blind = "" if devices else _what_is_unseen(top)
    return Verdict(title, " ".join(filter(None, (top.claim, agreement, beside, blind, cut))), top.id)


def _is_felt(subject: Subject) -> bool:
    """Whether it is about what a device, a job of several ranks, or who sends requests, waits for."""
    return subject.device is not None or subject.ranks is not None or subject.load is not None


def _longest(kernels: Sequence[ProfiledKernel], top: Finding | None) -> ProfiledKernel | None:
    """What takes most of the kernel time that was profiled; None where `top` is about it, or it is one of equals."""
    by_share = sorted(kernels, key=lambda kernel: -(profiled.share_of_time(kernel) or 0.0))
    if len(by_share) < 2 or (top is not None and top.subject.same_kernel(kernel_subject(by_share[0]))):
        return None
    first, second = (profiled.share_of_time(kernel) or 0.0 for kernel in by_share[:2])
    return by_share[0] if first >= 2 * second else None


def _weight(kernel: ProfiledKernel) -> str:
    """Its share of the time, and of the peak of its busier side where that was measured."""
    sides = {"the SMs'": "sm_throughput", "the memory system's": "memory_throughput"}
    found = [(kernel.known(name), side) for side, name in sides.items()]
    reached, side = max(((pct, side) for pct, side in found if pct is not None), default=(None, ""))
    at = "" if reached is None else f", at {reached:.1f} % of {side} peak"
    return (
        f"{kernel.launch.short_name} takes {units.share(profiled.share_of_time(kernel) or 0.0)} of the kernel time{at}"
    )


def _is_at_its_limit(kernel: ProfiledKernel, clear: Sequence[Clear]) -> bool:
    """Whether its speed of light was measured and found in order."""
    about = kernel_subject(kernel)
    return any(each.rule == "ncu.speed_of_light" and each.subject.same_kernel(about) for each in clear)


def _what_is_unseen(top: Finding) -> str:
    """Where no device's timeline is at hand."""
    if top.rule.startswith(("probe.", "comm.")):
        return _PROBES_ALONE
    if top.rule.startswith(("nccl.", "job.", "serving.")) or _is_about_hang(top):
        return ""
    if top.rule.startswith("live."):
        return _WATCHED_ONLY
    if top.subject.launch is not None:
        return _ALONE
    return _HOST_ONLY if top.subject.device is None else _WATCHED_ONLY


def _is_about_hang(finding: Finding) -> bool:
    return finding.rule.startswith("hang.") and finding.severity == "critical"


_PROBES_ALONE = "It was measured by itself: no run of a program is in sight here."
_WATCHED_ONLY = "It was watched from outside: which kernels ran, and when, only a timeline tells."
_HOST_ONLY = "No GPU work is in sight here: this speaks for the host only."
_AT_ITS_LIMIT = "No rule finds much to win in it: to take less time it has to do less."
_ALONE = "No timeline of the run is at hand: shares are of the kernel time that was profiled."


def _candidates(findings: Sequence[Finding]) -> Sequence[Finding]:
    serious = [finding for finding in findings if finding.recoverable_ns or finding.severity != "info"]
    of_hang = [finding for finding in serious if _is_about_hang(finding)]
    return of_hang or [f for f in serious if _is_felt(f.subject) and f.severity != "info"] or serious


@dataclass(frozen=True)
class Explained:
    """How much of what a finding speaks of, in ns, another one on the same device or kernel gives the cause of."""

    whole_ns: int
    explained_ns: int
    cause: str | None  # the id of the one that explains most


def explained_by(findings: Sequence[Finding]) -> dict[str, Explained]:
    """By the ids of findings that a verdict may be about."""
    together: defaultdict[Hashable, list[Finding]] = defaultdict(list)
    for finding in _candidates(findings):
        about = finding.subject
        together[about.launch or (about.source, about.process, about.device)].append(finding)
    return {top.id: _explained(top, of) for of in together.values() for top in of if top.rule in GIVES_WAY_TO}


def _explained(top: Finding, beside: Sequence[Finding]) -> Explained:
    causes = [finding for finding in beside if finding.rule in GIVES_WAY_TO[top.rule]]
    if top.subject.launch is not None:
        explained_ns, whole_ns = [finding.recoverable_ns or 0 for finding in causes], top.recoverable_ns or 0
    else:
        explained_ns = [(finding.extent & top.extent).measure_ns for finding in causes]
        whole_ns = top.extent.measure_ns
    most_ns = max(explained_ns, default=0)
    return Explained(whole_ns, most_ns, causes[explained_ns.index(most_ns)].id if causes else None)


def _most_specific(candidates: Sequence[Finding], explained: Mapping[str, Explained]) -> Finding:
    """What explains most, and at least half, of the time that the first could win; else that itself."""
    top = candidates[0]
    told = explained.get(top.id)
    if told is None:
        return top
    # What ranks wait for each other is as long on the clock of each.
    of_ranks = [f for f in candidates if f.subject.ranks is not None and f.rule in GIVES_WAY_TO[top.rule]]
    found = [(min(finding.recoverable_ns or 0, told.whole_ns), finding.id) for finding in of_ranks]
    most_ns, cause = max([(told.explained_ns, told.cause or ""), *found], key=lambda each: each[0])
    is_enough = 2 * most_ns >= told.whole_ns
    return next((finding for finding in candidates if is_enough and finding.id == cause), top)


def _excluded(subject: Subject, findings: Sequence[Finding], devices: Sequence[DeviceRow]) -> Iterator[str]:
    """What the same subject is shown not to suffer from, whatever the thresholds are."""
    about = (subject.source, subject.process, subject.device)
    judged = [each for each in devices if (each.source, each.process, each.device) == about and each.has_shares]
    if any(device.share(device.idle_ns) < WARNING_SHARE for device in judged):
        yield "not idle"
    if any(finding.rule == "launch.back_pressure" and finding.subject.same_device(subject) for finding in findings):
        yield "not CPU-bound"


def _agreement(top: Finding, findings: Sequence[Finding], devices: Sequence[DeviceRow]) -> str:
    """Whether the other devices show the same, cause included."""
    judged = [device for device in devices if device.has_shares]
    if top.subject.device is None or len(judged) < 2:
        return ""
    same = [finding for finding in findings if (finding.rule, finding.title) == (top.rule, top.title)]
    if len(same) < len(judged):
        others = len(judged) - len(same)
        speaks = f"This speaks for GPU {top.subject.device} of process {top.subject.process}"
        return f"{speaks}; {others} of {len(judged)} devices {'differs' if others == 1 else 'differ'}."
    shares = sorted(finding.share or 0.0 for finding in same)
    low, high = units.share(shares[0]), units.share(shares[-1])
    spread = low if low == high else f"{low} to {high}"
    holds = "both devices" if len(judged) == 2 else f"all {len(judged)} devices"
    return f"The same holds for {holds} ({spread} of their windows)."


def _healthy(
    findings: Sequence[Finding],
    clear: Sequence[Clear],
    devices: Sequence[DeviceRow],
    serving: Sequence[ServingRunRow],
) -> Verdict:
    judged = [device for device in devices if device.has_shares]
    if judged:
        longest = max(judged, key=lambda device: device.window_ns)
        summary = (
            f"The device is busy {units.share(longest.share(longest.busy_ns))} of its window of "
            f"{units.time(longest.window_ns)}, and no rule found time to win on the timeline. "
            "Look into the kernels next."
        )
        return Verdict("No fault found on the timeline", summary, None)
    if serving and any(answer.subject.load is not None and not is_about_capture(answer.rule) for answer in clear):
        return Verdict("No fault found in serving", _served(serving), None)
    if any(not is_about_capture(answer.rule) for answer in clear):
        return Verdict("No fault found in what was captured", "See below for what could not be told, and why.", None)
    return Verdict("Cannot tell", "Too little was captured for any rule to decide; see below what is missing.", None)


def _served(runs: Sequence[ServingRunRow]) -> str:
    """How the load went that completed most requests a second."""
    best = max(runs, key=lambda run: run.requests_per_s or 0.0)
    rate = None if best.requests_per_s is None else units.quantity(best.requests_per_s, "requests/s")
    ttft = next((of for of in best.latencies if of.name == "ttft" and of.p50_ns is not None), None)
    done = None if best.completed is None else f"{units.count(best.completed, 'request')} completed"
    parts = (
        " at ".join(filter(None, (done, rate))),
        None if ttft is None or ttft.p50_ns is None else f"TTFT P50 {units.time(ttft.p50_ns)}",
        None if ttft is None or ttft.p99_ns is None else f"P99 {units.time(ttft.p99_ns)}",
    )
    of_several = f"Of {len(runs)} loads, {best.name} completed most: " if len(runs) > 1 else ""
    return f"{of_several}{', '.join(filter(None, parts))}. See below for what could not be told, and why."
