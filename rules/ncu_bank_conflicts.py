"""How often the lanes of a warp want different words of one bank of shared memory."""

from __future__ import annotations

from collections.abc import Iterator

from diag.launches.instructions import Instruction, instructions
from diag.launches.kernel import ProfiledKernel
from diag.model import units
from diag.rules import profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, Clear, Evidence
from diag.rules.thresholds import Limits
from diag.rules.traffic import cost


@kernel_rule("ncu.bank_conflicts", needs=("shared_wavefronts", "bank_conflicts"))
def bank_conflicts(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """Shared memory accesses that take turns at its banks.

    Asks      How many wavefronts does shared memory take beyond those that the widths of its accesses need?
    Decides   excess = wavefronts in excess / all wavefronts of shared memory; fires at `excess`. The counts per
              instruction (SourceCounters) go first: they are worked out from the addresses. Those of the hardware
              stand in for them; they also count turns that other traffic of the L1 data stage took. An n-way conflict
              takes n wavefronts for one: n is wavefronts / (wavefronts - excess). At most the excess part of what
              shared memory takes of the data stage can be won: of all the time if the stage is at `limit` of its peak,
              else of the larger of how busy it is and how long warps wait for shared memory.
    Matters   Wavefronts of one access come one after the other, and every access behind it waits.
    Do        Pad rows by one word ([32][33]), permute the columns of a tile (swizzle, XOR of row and column), or let
              neighbouring lanes read neighbouring words; vector accesses of 8 and 16 bytes need 2 and 4 wavefronts.
    Refute    The time stays when the excess is gone: then other warps filled the turns.
    """
    wavefronts, excess = kernel.value("shared_wavefronts"), kernel.value("bank_conflicts")
    part = excess / wavefronts if wavefronts else 0.0
    if part < limits["excess"]:
        yield Clear(kernel_subject(kernel))
        return
    ways = wavefronts / max(wavefronts - excess, 1)
    of_the_stage = min(kernel.known("shared_part_of_l1_data") or 1.0, 1.0)
    stage = ("l1_data_throughput",)
    bound = cost(kernel, part * of_the_stage, limits["limit"], units_at=stage, wait="shared_wait")
    yield profiled.finding(
        kernel,
        title=f"{units.share(part)} of the shared memory wavefronts of {kernel.launch.short_name} are bank conflicts",
        claim=f"On average {ways:.1f} wavefronts stand where one would do.{_blame(kernel)}",
        counterfactual=f"Without conflicts, at most {units.share(bound.fraction)} of its time: {bound.because}.",
        fraction=bound.fraction,
        confidence="high" if kernel.metrics.get(IDEAL) is not None else "medium",
        evidence=[
            profiled.evidence(kernel, "shared_wavefronts"),
            profiled.evidence(kernel, "bank_conflicts"),
            Evidence("wavefronts for one", ways, "ratio", "wavefronts / (wavefronts - those in excess)"),
            *_of_instructions(kernel),
            *profiled.known(kernel, "shared_part_of_l1_data", "l1_data_throughput", "shared_wait"),
        ],
        refute="With rows padded by one word the kernel takes as long.",
        steps=[
            "ncu --section SourceCounters --import-source yes: the lines with most excessive shared wavefronts.",
            "Pad the rows of the tile by one word, or swizzle its columns, and measure again.",
        ],
    )


WAVEFRONTS, IDEAL = "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"


def _excess(instruction: Instruction) -> float:
    return max(instruction.counts.get(WAVEFRONTS, 0) - instruction.counts.get(IDEAL, 0), 0)


def _worst(kernel: ProfiledKernel) -> Instruction | None:
    """The instruction with most wavefronts in excess; None where none was counted apart."""
    counted = instructions(kernel.case, kernel.launch.id, (WAVEFRONTS, IDEAL))
    worst = max(counted, key=_excess, default=None)
    return worst if worst is not None and _excess(worst) else None


def _blame(kernel: ProfiledKernel) -> str:
    if (worst := _worst(kernel)) is None:
        return ""
    ways = worst.counts[WAVEFRONTS] / max(worst.counts.get(IDEAL, 0), 1)
    part = _excess(worst) / max(kernel.value("bank_conflicts"), 1)
    return f" {units.share(part)} of the excess comes from the instruction at {worst.where}, {ways:.1f} for one."


def _of_instructions(kernel: ProfiledKernel) -> Iterator[Evidence]:
    if (worst := _worst(kernel)) is not None:
        sql = _PER_INSTRUCTION.format(launch=kernel.launch.id)
        label = f"excess of the instruction at {worst.where}"
        yield Evidence(label, _excess(worst), "wavefronts", f"{WAVEFRONTS} - {IDEAL}", sql)


_PER_INSTRUCTION = (
    "SELECT printf('0x%x', i.key) AS address, m.name, i.value FROM launch_instance i JOIN metric m ON m.id = "
    f"i.metric_id WHERE i.launch_id = {{launch:d}} AND m.name IN ('{WAVEFRONTS}', '{IDEAL}') ORDER BY i.key"
)
