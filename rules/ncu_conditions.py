"""Under which conditions a kernel was measured, and for which its figures therefore hold."""

from __future__ import annotations

from collections.abc import Iterator

from diag.launches.kernel import ProfiledKernel
from diag.model import units
from diag.model.quantities import Measured
from diag.rules import profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, CannotTell, Clear, Evidence
from diag.rules.measurement import Condition, duration, samples, steadiness, values
from diag.rules.thresholds import Limits


@kernel_rule("ncu.conditions")
def conditions(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """Figures that hold for the profiler's conditions, and not for the program's own run.

    Asks      At which clocks, with which caches, in how many passes was this measured, and was it measured at all?
    Decides   Says as information what sets the measurement apart from a run: a clock of the SMs or of memory below
              `slow` of the device's highest (ncu locks the SMs to their base clock unless told otherwise); a locked
              clock whose launches still differ by `spread`, so that passes did not do the same; caches that were
              flushed before each pass (ncu's default); replay of the application or of a range; a launch shorter than
              20 µs, which does not reach a steady state; a launch without values; warp samples that are missing,
              lost, or fewer than `coverage` of one per SM and interval. Clear when clocks, caches and replay are
              known and none of it holds. Only newer reports keep how ncu was called: without it, cannot tell, unless
              another condition holds.
    Matters   Durations and rates of a locked clock are not those of the run, hit rates of flushed caches are not
              those after the kernel before. Shares of peaks hold at any clock, but for memory beside the SMs.
    Do        To measure as in the run: `ncu --clock-control none --cache-control none`, the device warmed up. To
              compare two versions of a kernel: leave ncu's defaults, and compare under the same ones.
    Refute    With clocks and caches left alone the figures stay the same.
    """
    found = [
        condition
        for conditions_of in (values, duration, _clocks, steadiness, _caches, _replay, samples)
        for condition in conditions_of(kernel, limits)
    ]
    if found:
        yield profiled.finding(
            kernel,
            title=f"{kernel.launch.short_name}: {found[0].says}",
            claim=" ".join(f"{condition.says[0].upper()}{condition.says[1:]}." for condition in found),
            counterfactual="Nothing is won: this says what the figures hold for.",
            level="info",
            evidence=[condition.evidence for condition in found],
            refute="With clocks and caches left alone the figures stay the same.",
            steps=list(dict.fromkeys(condition.step for condition in found)),
        )
    elif unknown := _unknown(kernel):
        yield CannotTell(kernel_subject(kernel), f"the file does not say {' nor '.join(unknown)}")
    else:
        yield Clear(kernel_subject(kernel))


AS_IN_THE_RUN = "To measure as in the run: ncu --clock-control none --cache-control none, with the device warmed up"


def _clocks(kernel: ProfiledKernel, limits: Limits) -> Iterator[Condition]:
    how = {True: ", locked by ncu", False: ", not locked by ncu", None: ""}[kernel.launch.is_clock_locked]
    sides = (("sm_clock", "whole_clock", "the SMs", how), ("memory_clock", "whole_memory_clock", "device memory", ""))
    for clock, highest, what, locked in sides:
        ran, whole = kernel.quantity(clock), kernel.quantity(highest)
        if isinstance(ran, Measured) and isinstance(whole, Measured) and ran.value < limits["slow"] * whole.value:
            rates = f"{units.quantity(ran.value, 'Hz')} of {units.quantity(whole.value, 'Hz')}"
            yield Condition(f"{what} ran at {rates}{locked}", profiled.evidence(kernel, clock), AS_IN_THE_RUN)


def _caches(kernel: ProfiledKernel, _: Limits) -> Iterator[Condition]:
    if kernel.launch.cache_control == "all":
        says = "caches were flushed before each pass: hit rates are those of cold caches"
        yield Condition(says, _stated(kernel, "cache control", "flushed"), AS_IN_THE_RUN)


def _replay(kernel: ProfiledKernel, _: Limits) -> Iterator[Condition]:
    replay = kernel.launch.replay
    if replay not in (None, "kernel"):
        says = f"passes come from {replay} replay: each is another execution, with work of its own"
        step = "To replay the kernel alone: ncu --replay-mode kernel"
        yield Condition(says, _stated(kernel, "replay", str(replay)), step)


def _stated(kernel: ProfiledKernel, label: str, value: str) -> Evidence:
    sql = f"SELECT is_clock_locked, cache_control, replay, passes FROM launch WHERE id = {kernel.launch.id:d}"
    return Evidence(label, value, "text", "as the report states it", sql)


def _unknown(kernel: ProfiledKernel) -> list[str]:
    is_clock_known = all(isinstance(kernel.quantity(name), Measured) for name in ("sm_clock", "whole_clock"))
    return [
        *([] if is_clock_known else ["at which clock the SMs ran"]),
        *([] if kernel.launch.cache_control else ["whether caches were flushed"]),
        *([] if kernel.launch.replay else ["how passes were replayed"]),
    ]
