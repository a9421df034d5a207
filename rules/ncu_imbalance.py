"""Whether all SMs work until the end of the launch."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from diag.launches.kernel import ProfiledKernel
from diag.model import units
from diag.model.quantities import Measured
from diag.rules import profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, CannotTell, Clear
from diag.rules.measurement import STEADY_NS
from diag.rules.thresholds import Limits


@kernel_rule("ncu.imbalance", needs=("sm_idle", "duration"))
def imbalance(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """SMs that are done while others still work.

    Asks      How long has an SM no work, on average, while the launch goes on?
    Decides   Fires at `share` of the launch. The idle time is that of the longest SM less the average (without the
              longest one's cycles, all that elapsed less the average). With fewer blocks than SMs it follows from the
              grid and says nothing of balance; in launches shorter than 20 µs starting and ending is as much: cannot
              tell. What equal blocks in this number of waves would leave idle is shown beside it: 1 - waves / whole
              waves.
              Recoverable: time · idle share, as if the SMs' active cycles, as many as they are, were spread evenly,
              and no more than the busier side of the device leaves of its peak.
    Matters   The launch ends with its last block; until then the SMs that are done wait.
    Do        Blocks of equal work: split long items, sort them so that long ones start first, or let blocks fetch
              their work from a counter. Where the last wave is the reason: smaller blocks, or a whole number of
              waves.
    Refute    With items in another order the idle time stays: then it is the last wave or a slow SM, not the work.
    """
    idle, duration_ns = kernel.value("sm_idle"), kernel.value("duration")
    if because := _says_nothing(kernel, duration_ns):
        yield CannotTell(kernel_subject(kernel), because)
        return
    if idle < limits["share"]:
        yield Clear(kernel_subject(kernel))
        return
    yield profiled.finding(
        kernel,
        title=f"SMs are idle for {units.share(idle)} of {kernel.launch.short_name}, while others work",
        claim=f"On average an SM has work for {units.share(1 - idle)} of the launch.{_tail(kernel)}",
        counterfactual="As if the SMs' active cycles were spread evenly, as far as the busier side has room.",
        fraction=min(idle, profiled.headroom(kernel)),
        evidence=[
            profiled.evidence(kernel, "sm_idle", "SM idle"),
            *profiled.known(kernel, "waves_per_sm", "sm_throughput", "memory_throughput"),
        ],
        refute="With the work in another order the idle time stays the same.",
        steps=[
            "Equal work per block: split long items, start them first, or fetch work from a counter",
            "Smaller blocks, or a whole number of waves",
        ],
    )


def _says_nothing(kernel: ProfiledKernel, duration_ns: float) -> str | None:
    blocks, sms = kernel.launch.blocks, profiled.sm_count(kernel)
    if blocks is None or sms is None:
        return "the number of blocks or of SMs is not known"
    if blocks < sms:
        return f"{units.count(blocks, 'block')} for {sms} SMs: that some are idle follows from the grid"
    if duration_ns < STEADY_NS:
        return f"the launch takes {units.time(duration_ns)}: starting and ending it leaves SMs idle, too"
    return None


def _tail(kernel: ProfiledKernel) -> str:
    waves = kernel.quantity("waves_per_sm")
    if not isinstance(waves, Measured) or waves.value <= 0:
        return ""
    return (
        f" It has {waves.value:.2f} waves of blocks: equal blocks would leave up to "
        f"{units.share(1 - waves.value / ceil(waves.value))} idle."
    )
