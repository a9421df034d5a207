"""Errors of a device that its driver reports while a workload is watched: XIDs and ECC."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from diag.model import units
from diag.model.live_run import LiveRun
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.live import Device, device_rows, gpu, live_device_rule, subject_of, unreadable
from diag.rules.thresholds import Limits

MEANINGS: Mapping[int, str] = {
    13: "a kernel hit an exception, mostly an access outside of its memory",
    31: "a kernel touched memory that is not mapped",
    43: "the GPU stopped working on a program after a fault of it",
    45: "the work of a program was cleaned up, mostly after an earlier error or as it was killed",
    48: "an ECC error in memory that could not be corrected",
    61: "the GPU's microcontroller halted",
    62: "the GPU's microcontroller halted",
    63: "a row of memory was remapped, or a page retired",
    64: "a row of memory could not be remapped, or a page not retired",
    74: "an error of NVLink",
    79: "the GPU has fallen off the bus",
    92: "many ECC errors that were corrected",
    94: "an ECC error that was contained: the programs that it hit end",
    95: "an ECC error that was not contained: every program on the GPU is hit",
    119: "the GPU's system processor (GSP) does not answer",
    120: "the GPU's system processor (GSP) failed",
}
"""Source: NVIDIA, "XID Errors", in words of our own."""

OF_PROGRAMS = frozenset({13, 31, 43, 45})
"""Mostly a program's own fault, and not one of the hardware."""


@live_device_rule("live.xid", needs=(), fewest=1)
def driver_reported_errors(run: LiveRun, device: Device, limits: Limits) -> Iterator[Answer]:
    """The driver reported an error of the GPU.

    Asks      Did the driver report XID errors while the workload was watched?
    Decides   Fires on any, as a critical fault: results since then may be wrong, and the GPU may be lost to the job.
              XIDs before the first snapshot are not seen.
    Matters   An XID means that the driver had to step in. What a program computed on that GPU cannot be trusted, and a
              rank that lost its GPU leaves all others waiting in their collectives.
    Do        Look the number up in NVIDIA's "XID Errors". For 13 and 31 run `compute-sanitizer` on the program. For
              memory, NVLink and bus errors drain the node and run `dcgmi diag -r 3`.
    Refute    `dmesg` or the system journal has no line "NVRM: Xid" for that GPU at that time.
    """
    xids = [xid for reading in device.readings for xid in reading.xids]
    told = device.last.untold.get("xids")
    if not xids:
        yield Clear(subject_of(run, device)) if told is None else CannotTell(subject_of(run, device), told)
        return
    numbers = sorted({xid.number for xid in xids})
    rows = device_rows(run, device, "xids")
    named = "; ".join(f"{number}: {MEANINGS.get(number, 'see the list of NVIDIA')}" for number in numbers)
    yield Finding(
        title=f"{gpu(device)} reported XID {', '.join(map(str, numbers))}",
        claim=f"The driver reported {units.count(len(xids), 'error')} of {device.last.uuid} ({named}).",
        subject=subject_of(run, device),
        level="critical",
        counterfactual="Nothing would be faster; the results would be right, and the GPU would stay.",
        evidence=[
            Evidence(f"XID {number}", sum(xid.number == number for xid in xids), "count", "events of the driver", rows)
            for number in numbers
        ],
        refute='The system journal has no "NVRM: Xid" for this GPU at that time.',
        next=[
            "Read what the driver wrote: sudo dmesg | grep -i xid",
            "Run the program under compute-sanitizer."
            if set(numbers) <= OF_PROGRAMS
            else "Take the GPU out of use and test it: dcgmi diag -r 3",
        ],
    )


@live_device_rule("live.ecc", needs=(), fewest=1)
def memory_errors(run: LiveRun, device: Device, limits: Limits) -> Iterator[Answer]:
    """Memory errors that ECC could not correct.

    Asks      Has the device had ECC errors that could not be corrected?
    Decides   Fires on any since the driver was loaded: critical if their number grew while the workload was watched,
              else a warning. Corrected ones are shown, and are harmless by themselves.
    Matters   An uncorrected error is a wrong value in memory. The driver ends the program that read it, or all of them.
    Do        Reset the GPU, so that the row is remapped; if they come back, have it replaced (RMA).
    Refute    `nvidia-smi -q -d ECC` shows no uncorrected error, volatile or aggregate.
    """
    subject = subject_of(run, device)
    counts = device.known("ecc_uncorrected")
    if not counts:
        yield CannotTell(subject, unreadable(device, ["ecc_uncorrected"]) or "ECC counters were not readable")
        return
    if not counts[-1]:
        yield Clear(subject)
        return
    grown = counts[-1] - counts[0]
    rows = device_rows(run, device, "ecc_uncorrected", "ecc_corrected")
    corrected = device.known("ecc_corrected")
    yield Finding(
        title=f"{gpu(device)} has memory errors that could not be corrected",
        claim=f"{units.count(counts[-1], 'uncorrected ECC error')} since the driver was loaded; "
        f"{'some' if grown > 0 else 'none'} of them while it was watched.",
        subject=subject,
        level="critical" if grown > 0 else "warning",
        counterfactual="Nothing would be faster; the values in memory would be right.",
        evidence=[
            Evidence("uncorrected", counts[-1], "count", "since the driver was loaded", rows),
            Evidence("uncorrected while watched", max(0, grown), "count", "last reading - first reading", rows),
            *(
                Evidence("corrected", corrected[-1], "count", "since the driver was loaded", rows)
                for _ in corrected[:1]
            ),
        ],
        refute="`nvidia-smi -q -d ECC` shows no uncorrected error.",
        next=[
            "Read where: nvidia-smi -q -d ECC,ROW_REMAPPER",
            "Drain the node and reset the GPU: nvidia-smi -r -i INDEX",
        ],
    )
