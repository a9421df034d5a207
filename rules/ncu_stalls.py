"""What warps wait for while the schedulers have nothing to issue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from diag.launches import stalls
from diag.launches.kernel import ProfiledKernel
from diag.launches.stalls import ShareOf, Stall, Wait
from diag.model import units
from diag.model.quantities import Measured, Missing
from diag.model.stall_reasons import StallClass, latency_shares
from diag.rules import profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, CannotTell, Clear, Evidence
from diag.rules.thresholds import Limits


@kernel_rule("ncu.stalls", needs=("issue_slots_busy", "sm_throughput", "memory_throughput"))
def warp_stalls(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """Warps that wait, while nothing is issued, for something that is not at its limit.

    Asks      Which class of reasons takes the largest part of the time between two instructions of a warp?
    Decides   Classes: memory latency, the queue of memory instructions, shared memory and MIO, execution,
              synchronisation, instruction fetch and control flow (diag/model/data/stalls.toml). Selected and not
              selected warps could issue and are no stalls. A stall alone proves nothing; the rule fires when all of
              this holds: one class takes `share` or more of the latency (without those counters, of the warp samples),
              issue slots are busy in less than `busy` of the cycles, neither the SMs nor the memory system are at
              `limit` of their peak, and the resource that the class waits for was measured below it (memory
              throughput, instructions to the MIO, SM throughput; for the other classes active warps and branches,
              which have no peak). At a limit of the device waits are its sign: the loading warps of a product wait
              while the tensor cores work.
              Recoverable: time · min(share of the class, 1 - busy, what the busier side of the device leaves of its
              peak): without these waits a warp comes back so much earlier, but no scheduler issues more than once per
              cycle, and the same work takes its time.
    Matters   The class decides the remedy; without empty slots the same waits cost nothing.
    Do        What the class asks for (the next steps of the finding). The named instructions are those that could not
              be issued: what they wait for is asked for a little earlier in the code.
    Refute    Twice the warps, or twice the independent work per thread, and slots stay as empty: then what they wait
              for is at a limit that was not measured.
    """
    found = _of_one_source(stalls.stalls_of(kernel))
    if not found:
        yield CannotTell(kernel_subject(kernel), _UNMEASURED)
        return
    stall_class, waits = stalls.by_class(found)[0]
    share, busy = sum(stall.share for stall in waits), kernel.value("issue_slots_busy")
    if busy >= limits["busy"] or profiled.busiest(kernel) >= limits["limit"]:
        yield Clear(kernel_subject(kernel))
        return
    if share < limits["share"]:
        unknown = 1 - stalls.known_share(kernel, waits[0].share_of)
        untold = CannotTell(kernel_subject(kernel), _PARTLY.format(share=units.share(unknown)))
        yield untold if unknown >= limits["share"] else Clear(kernel_subject(kernel))
        return
    resource = _resource(kernel, stall_class)
    if isinstance(resource, str):
        yield CannotTell(kernel_subject(kernel), resource)
        return
    if stall_class.saturates and resource.value >= 100 * limits["limit"]:
        yield Clear(kernel_subject(kernel))
        return
    hottest = stalls.waits_at(kernel, [stall.reason for stall in waits])[:HOTTEST]
    yield profiled.finding(
        kernel,
        title=f"Warps of {kernel.launch.short_name} wait for {units.share(share)} of their time: {stall_class.title}",
        claim=f"{units.share(share)} of {_WHOLE[waits[0].share_of]} goes to waiting for {stall_class.waits_for}, most "
        f"to {waits[0].reason} ({units.share(waits[0].share)}). A scheduler issues in {units.share(busy)} of its "
        "cycles." + (f" Most often the wait is at {hottest[0].instruction.where}." if hottest else ""),
        counterfactual="As if these waits took no time; a scheduler issues once per cycle at most, and the busier side "
        "of the device reaches no more than its peak.",
        fraction=min(share, 1 - busy, profiled.headroom(kernel)),
        confidence="high" if waits[0].share_of == "latency" else "medium",
        evidence=[
            *(_stall(kernel, stall) for stall in waits if stall.share >= SHOWN),
            profiled.evidence(kernel, "issue_slots_busy", "issue slots busy"),
            *profiled.known(kernel, *dict.fromkeys(("eligible_warps", *stall_class.evidence, *_SIDES))),
            *(_place(kernel, waits, place) for place in hottest if place.samples >= SHOWN * hottest[0].samples),
        ],
        refute="More warps, or more independent work per thread, leave the slots as empty.",
        steps=stall_class.do if hottest else [*stall_class.do, _FIND_THE_CODE],
    )


_SIDES = ("sm_throughput", "memory_throughput")

HOTTEST = 3
"""Instructions that are shown."""
SHOWN = 0.01
"""What is less than a hundredth is left out."""

_WHOLE: Mapping[ShareOf, str] = {
    "latency": "the time between two instructions of a warp",
    "samples": "the warp samples",
}
_FIND_THE_CODE = "Find where they wait: ncu --section SourceCounters --import-source yes, code built with -lineinfo"
_UNMEASURED = (
    f"neither {latency_shares()[0].reason.format(reason='long_scoreboard')} and the like nor {stalls.SAMPLES}"
    "long_scoreboard and the like were collected (ncu --section WarpStateStats --section SourceCounters)"
)
_PARTLY = "for what warps wait {share} of their time was not collected (ncu --section WarpStateStats)"


def _of_one_source(found: Sequence[Stall]) -> list[Stall]:
    """Shares of latency where there are any: counters see every cycle, the sampler a few."""
    return [stall for stall in found if stall.share_of == found[0].share_of]


def _resource(kernel: ProfiledKernel, stall_class: StallClass) -> Measured | str:
    """How much of what the class waits for is used, or why that is not known: then the stall stands alone."""
    if stall_class.resource is None:
        return f"warps wait for {stall_class.waits_for}"
    resource = kernel.quantity(stall_class.resource)
    if isinstance(resource, Missing):
        return f"waiting for {stall_class.title} proves nothing alone: {resource.because}"
    return resource


def _stall(kernel: ProfiledKernel, stall: Stall) -> Evidence:
    measured = Measured(stall.share, "share", stall.formula, stall.metrics)
    return Evidence(stall.reason, stall.share, "share", stall.formula, profiled.metrics_sql(kernel, measured))


def _place(kernel: ProfiledKernel, waits: Sequence[Stall], place: Wait) -> Evidence:
    reasons = ", ".join(stall.reason for stall in waits if stall.share >= SHOWN)
    formula = f"samples in {reasons} at this instruction, while nothing was issued where that is known"
    sql = _STALLS_AT.format(launch_id=kernel.launch.id, address=place.instruction.address)
    return Evidence(f"waiting at {place.instruction.where}", place.samples, "samples", formula, sql)


_STALLS_AT = (
    "SELECT reason, samples, not_issued FROM launch_stall WHERE launch_id = {launch_id:d} AND address = {address:d} "
    "ORDER BY samples DESC"
)
