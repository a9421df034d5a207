"""Clocks of a device that are held down: by heat, by power, or by something else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from diag.model import units
from diag.model.clock_reasons import reason_of
from diag.model.live import GpuReading
from diag.model.live_run import LiveRun
from diag.model.live_series import Told
from diag.rules.finding import CRITICAL_SHARE, Answer, CannotTell, Evidence, Finding, Severity
from diag.rules.live import Device, device_rows, extent, gpu, is_busy, live_device_rule, not_held, subject_of
from diag.rules.thresholds import Limits

NEEDS = ("clock_reasons", "sm_clock_hz", "sm_clock_max_hz")
COLUMNS = ("clock_reasons", "sm_clock_hz", "sm_clock_max_hz", "temperature_c", "power_w", "resident_pct")


@live_device_rule("live.thermal", needs=NEEDS)
def throttled_by_heat(run: LiveRun, device: Device, limits: Limits) -> Iterator[Answer]:
    """The GPU is throttled because it is too hot.

    Asks      For how much of the window did heat hold the clocks down, and how much speed did it cost?
    Decides   Both together: a thermal clock event reason of the driver is in force for at least `share` of the window,
              and the SM clock is below its maximum then. What is lost is 1 - clock / maximum over that time: the most
              that work which is bound by the SM clock could win.
    Matters   A hot GPU does the same work slower, and in a job of many it keeps all others waiting.
    Do        Compare it with its neighbours and look at fans, air flow and inlet temperature.
    Refute    `nvidia-smi -q -d PERFORMANCE` shows no thermal slowdown under the same load.
    """
    held = _held(device, ("thermal",))
    if held.share < limits["share"]:
        yield not_held(subject_of(run, device), held)
        return
    title = f"{gpu(device)} is throttled by heat for {units.share(held.share)} of the time"
    yield _finding(
        run, device, held, title, "the same load shows no thermal slowdown in `nvidia-smi -q -d PERFORMANCE`"
    )


@live_device_rule("live.power", needs=NEEDS)
def throttled_by_power(run: LiveRun, device: Device, limits: Limits) -> Iterator[Answer]:
    """The GPU is throttled because of its power limit, or by a power brake.

    Asks      For how much of the window did power hold the clocks down, and how much speed did it cost?
    Decides   As live.thermal, for the reasons that are about power. The limit of the board is met by any load that
              keeps its pipes full: it is a warning at most. A power brake, which the server's power supply asks for,
              counts by what is lost.
    Matters   At its power limit a GPU is as fast as its power allows: less work by the SMs, or by memory, is then
              faster clocks for the rest. A limit below the default was set by somebody.
    Do        Compare the limit with its default (`nvidia-smi -q -d POWER`). Of a power brake, look at power supplies
              and the cap of the chassis.
    Refute    With the limit raised (`sudo nvidia-smi -pl WATTS`) the same work is not faster.
    """
    held = _held(device, ("power",))
    if held.share < limits["share"]:
        yield not_held(subject_of(run, device), held)
        return
    title = f"{gpu(device)} is at its power limit for {units.share(held.share)} of the time"
    is_brake = any("hw_power_brake_slowdown" in (reading.clock_reasons or ()) for reading in device.readings)
    if is_brake:
        title = f"{gpu(device)} is slowed down by a power brake of its server"
    most: Severity = "critical" if is_brake else "warning"
    yield _finding(run, device, held, title, "with a higher power limit the same work is not faster", most)


@live_device_rule("live.clocks", needs=(*NEEDS, "resident_pct"))
def clocks_held_down(run: LiveRun, device: Device, limits: Limits) -> Iterator[Answer]:
    """The clocks are held down by a setting, or for no reason that is known.

    Asks      While work is resident, is the SM clock far below its maximum for another reason than heat or power?
    Decides   Three together: kernels are resident for `busy` of the time or more, the SM clock is below `slow` of its
              maximum, and neither heat nor power is among the reasons; for at least `share` of the window. An idle GPU
              lowers its clocks, and that is harmless. The reasons that the driver gives are named: application clocks,
              sync boost, the display, a limit of the board; or none, as with clocks that were locked.
    Matters   What is bound by the SMs takes longer in proportion. Clocks are often set for a measurement and forgotten.
    Do        Undo the setting: `sudo nvidia-smi -rgc` (locked clocks), `sudo nvidia-smi -rac` (application clocks).
    Refute    After the setting is undone the clock under the same load is as low.
    """
    subject = subject_of(run, device)
    busy = device.when(lambda reading: is_busy(reading, limits))
    if not busy.spans:
        yield CannotTell(
            subject, "kernels were never resident for long enough, and an idle GPU lowers its clocks by itself"
        )
        return
    held = device.when(lambda reading: _is_slow_while_busy(reading, limits))
    if held.share < limits["share"]:
        yield not_held(subject, held)
        return
    reasons = _reasons(device, held, ("setting", "hardware", "unknown"))
    why = ", ".join(reasons) if reasons else "no reason is given"
    clock = device.mean("sm_clock_hz", held.spans) or 0.0
    most = max(device.known("sm_clock_max_hz"))
    title = f"{gpu(device)} runs at {units.quantity(clock, 'Hz')} of {units.quantity(most, 'Hz')} ({why})"
    yield _finding(run, device, held, title, "with the setting undone the clock under the same load is as low")


def _is_slow_while_busy(reading: GpuReading, limits: Limits) -> bool | None:
    if reading.clock_reasons is None or reading.sm_clock_hz is None or reading.sm_clock_max_hz is None:
        return None
    is_slow = reading.sm_clock_hz < limits["slow"] * reading.sm_clock_max_hz
    kinds = {reason_of(key).kind for key in reading.clock_reasons}
    busy = is_busy(reading, limits)
    return None if busy is None else busy and is_slow and not kinds & {"thermal", "power"}


def _held(device: Device, kinds: Collection[str]) -> Told:
    """When a reason of these kinds was in force and the clock was below its maximum."""

    def holds(reading: GpuReading) -> bool | None:
        if reading.clock_reasons is None or reading.sm_clock_hz is None or reading.sm_clock_max_hz is None:
            return None
        is_named = any(reason_of(key).kind in kinds for key in reading.clock_reasons)
        return is_named and reading.sm_clock_hz < reading.sm_clock_max_hz

    return device.when(holds)


def _reasons(device: Device, held: Told, kinds: Collection[str] | None = None) -> Counter[str]:
    """For how many ns each reason was in force in the time that is spoken of."""
    spans, found = set(held.spans), Counter[str]()
    for reading, span in zip(device.readings, device.spans, strict=True):
        for key in reading.clock_reasons or () if span in spans else ():
            if kinds is None or reason_of(key).kind in kinds:
                found[key] += span[1] - span[0]
    return Counter(dict(found.most_common()))


def _lost_ns(device: Device, held: Told) -> int:
    spans, lost_ns = set(held.spans), 0.0
    for reading, span in zip(device.readings, device.spans, strict=True):
        if span in spans and reading.sm_clock_hz is not None and reading.sm_clock_max_hz:
            lost_ns += (span[1] - span[0]) * max(0.0, 1 - reading.sm_clock_hz / reading.sm_clock_max_hz)
    return round(lost_ns)


def _finding(run: LiveRun, device: Device, held: Told, title: str, refute: str, most: Severity = "critical") -> Finding:
    """The share is what is lost and not for how long: a clock that is 1 % lower costs 1 %, all day long."""
    reasons, lost_ns, sql = _reasons(device, held), _lost_ns(device, held), device_rows(run, device, *COLUMNS)
    share = lost_ns / run.window_ns if run.window_ns else 0.0
    known = [reason_of(key) for key in reasons]
    clock, highest = device.mean("sm_clock_hz", held.spans) or 0.0, max(device.known("sm_clock_max_hz"))
    evidence = [
        Evidence("held down", held.held_ns, "ns", "snapshots with the reason, each for the time before it", sql),
        Evidence("lost", lost_ns, "ns", "sum of time x (1 - SM clock / maximum)", sql),
        Evidence("SM clock then", clock, "Hz", "mean over that time", sql),
        Evidence("highest SM clock", highest, "Hz", "of the device", sql),
    ]
    evidence += [Evidence(f"held down: {key}", ns, "ns", reason_of(key).means, sql) for key, ns in reasons.items()]
    figures = (("temperature_c", "°C"), ("slowdown_temperature_c", "°C"), ("power_w", "W"), ("power_limit_w", "W"))
    for name, unit in figures:
        if (mean := device.mean(name, held.spans)) is not None:
            evidence.append(Evidence(name.rpartition("_")[0].replace("_", " "), mean, unit, "mean over that time", sql))
    return Finding(
        title=title,
        claim=f"For {units.time(held.held_ns)} of {units.time(run.window_ns)} the SM clock was held at "
        f"{units.quantity(clock, 'Hz')} on average, of {units.quantity(highest, 'Hz')}: "
        f"{'; '.join(reason.means for reason in known) or 'the driver gives no reason'}.",
        subject=subject_of(run, device),
        share=share,
        recoverable_ns=lost_ns,
        level=most if share >= CRITICAL_SHARE and most != "critical" else None,
        counterfactual="At the highest clock, for work that is bound by the SMs; memory has a clock of its own.",
        evidence=evidence,
        refute=f"{refute[:1].upper()}{refute[1:]}.",
        next=[reason.do for reason in known] or ["See whether clocks are locked: nvidia-smi -q -d CLOCK"],
        extent=extent(held.spans),
    )
