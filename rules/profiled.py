"""What the rules about profiled kernels share: what a kernel weighs, and findings and evidence about it."""

from __future__ import annotations

from collections.abc import Sequence

from diag.launches.kernel import ProfiledKernel
from diag.model.quantities import Measured, quantities
from diag.rules.engine import kernel_subject
from diag.rules.finding import CONFIDENCES, Confidence, Evidence, Finding, Severity
from diag.rules.launch_report import Clocks
from diag.timeline.intervals import Intervals


def whole_ns(kernel: ProfiledKernel) -> float | None:
    """What shares of a kernel are of: the window of its device, or all the kernel time that was profiled."""
    return kernel.run.device.window_ns if kernel.run else kernel.profiled_ns


def total_ns(kernel: ProfiledKernel) -> float | None:
    """The kernel's own time: in the timeline where it has a place in one, else as profiled."""
    return kernel.run.total_ns if kernel.run else kernel.total_ns


def share_of_time(kernel: ProfiledKernel) -> float | None:
    """The kernel's share of the window (union of its launches), or of the kernel time that was profiled."""
    whole = whole_ns(kernel)
    own = kernel.run.time.measure_ns if kernel.run else kernel.total_ns
    return own / whole if whole and own is not None else None


def recoverable_ns(kernel: ProfiledKernel, fraction: float) -> int | None:
    """At most what could be won if every launch took this fraction less: never more than the launches cover."""
    total = total_ns(kernel)
    if total is None:
        return None
    most = kernel.run.time.measure_ns if kernel.run else total
    return int(min(max(fraction, 0.0) * total, most))


def busiest(kernel: ProfiledKernel) -> float:
    """How much of its peak the busier side of the device reaches, as a share; 0 where neither is known."""
    return max(kernel.known(name) or 0.0 for name in ("sm_throughput", "memory_throughput")) / 100


def headroom(kernel: ProfiledKernel) -> float:
    """What that side leaves of the time: the same work takes no less than the rest, however well it is spread."""
    return 1 - min(busiest(kernel), 1.0)


def finding(
    kernel: ProfiledKernel,
    *,
    title: str,
    claim: str,
    counterfactual: str,
    refute: str,
    steps: Sequence[str],
    evidence: Sequence[Evidence],
    fraction: float | None = None,
    confidence: Confidence = "high",
    level: Severity | None = None,
) -> Finding:
    """A finding about a profiled kernel. `fraction` of its time could be won at most; None: no bound can be given.

    Its share is that of the time that could be won, so that its severity is what it is worth; without a bound, the
    share is the kernel's own and the finding an information.
    """
    whole = whole_ns(kernel)
    won_ns = None if fraction is None else recoverable_ns(kernel, fraction)
    share = share_of_time(kernel) if won_ns is None else won_ns / whole if whole else None
    return Finding(
        title=title,
        claim=claim,
        subject=kernel_subject(kernel),
        counterfactual=counterfactual,
        refute=refute,
        next=steps,
        evidence=evidence,
        share=share,
        whole_ns=None if kernel.run or whole is None else int(whole),
        recoverable_ns=won_ns,
        confidence=_weaker(confidence, kernel.run.confidence) if kernel.run else confidence,
        level=level if level is not None or won_ns is not None else "info",
        extent=kernel.run.time if kernel.run else Intervals.empty(),
    )


def clocks(kernel: ProfiledKernel) -> Clocks:
    """Under which its launch was measured: rates of a run at other clocks are others."""
    return Clocks(kernel.known("sm_clock"), kernel.known("memory_clock"), kernel.launch.is_clock_locked)


def _weaker(one: Confidence, other: Confidence) -> Confidence:
    return max(one, other, key=CONFIDENCES.index)


def evidence(kernel: ProfiledKernel, name: str, label: str | None = None) -> Evidence:
    """A quantity that the rule needs, with its formula over ncu's metrics and SQL for their values."""
    measured = kernel.quantity(name)
    assert isinstance(measured, Measured), f"{name} is not among the needs of the rule"
    value = int(measured.value) if measured.unit in _WHOLE else measured.value
    return Evidence(
        label or quantities()[name].means, value, measured.unit, measured.formula, metrics_sql(kernel, measured)
    )


_WHOLE = ("ns", "bytes", "count")


def sm_count(kernel: ProfiledKernel) -> int | None:
    """As the report says, else as the device is known for."""
    counted = kernel.known("device_sms")
    return kernel.launch.gpu.sm_count if counted is None else int(counted)


def known(kernel: ProfiledKernel, *names: str) -> list[Evidence]:
    """Evidence of those quantities that have a value."""
    return [evidence(kernel, name) for name in names if kernel.known(name) is not None]


def metrics_sql(kernel: ProfiledKernel, measured: Measured) -> str:
    """The metrics of the launch that speaks for the kernel. Their names come from formulas, never from an input."""
    names = ", ".join(f"'{metric}'" for metric in measured.metrics)
    return (
        "SELECT m.name, m.unit, v.value FROM launch_metric v JOIN metric m ON m.id = v.metric_id "
        f"WHERE v.launch_id = {kernel.launch.id:d} AND m.name IN ({names})"
    )
