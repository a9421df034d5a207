"""How well the lanes of a warp share the sectors of global memory that they touch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from diag.launches.instructions import Instruction, instructions
from diag.launches.kernel import ProfiledKernel
from diag.model import units
from diag.model.quantities import Missing, together
from diag.rules import profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, CannotTell, Clear, Confidence, Evidence
from diag.rules.thresholds import Limits
from diag.rules.traffic import cost, is_none_there, sectors_through_l1


@kernel_rule("ncu.coalescing")
def coalescing(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """Global memory accesses whose lanes lie too far apart.

    Asks      Do global loads and stores touch more 32-byte sectors than the bytes that their lanes ask for fill?
    Decides   excess = 1 - ideal sectors / sectors, both counted per instruction for the lanes that took part and the
              width of its access (SourceCounters); fires at `excess`. What is ideal depends on the width: 4 sectors
              per request for 4 bytes a lane, 8 for 8, 16 for 16. Without these counts, bytes used per sector or, from
              older versions, sectors per request against the mean width decide loads and stores apart: more sectors
              than 32 lanes of that width fill are excess. Fewer do not show that all is well, because idle lanes ask
              for nothing; then the rule cannot tell. At most the excess part of the time can be won if a memory unit
              is at `limit` of its peak, else that part of the larger of how busy it is and how long warps wait for it.
              Where more comes from L2 than all these sectors hold, as with copies of the tensor memory accelerator, the
              excess is a part of that.
    Matters   A sector moves whole through L2, fabric and L1, whatever part of it is used, and pushes others out.
    Do        Let neighbouring lanes read neighbouring addresses: structures of arrays, the index of the lane last in
              the address, rows padded to 128 bytes; stage what must be read across through shared memory.
    Refute    The time stays when the excess is gone: then it was hidden behind something slower.
    """
    counted = _counted(kernel)
    if counted is None:
        yield _from_tables(kernel, limits)
        return
    part = counted.excess * counted.sectors / max(sectors_through_l1(kernel, counted.sectors), 1)
    if part < limits["excess"]:
        yield Clear(kernel_subject(kernel))
    else:
        yield _finding(kernel, counted.excess, part, limits, counted.evidence(kernel), _blame(counted), "high")


# ---- counts per instruction ----------------------------------------------------------------------------------------

SECTORS, IDEAL = "memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal"
REQUESTS, LANES, WIDTH = "inst_executed", "thread_inst_executed_true", "memory_access_size_type"
KIND = "memory_access_type"
KINDS = {2: "loads", 4: "stores"}
"""Values of the metric, as instructions of real reports carry them: LDG 2, STG 4; atomics have none."""


@dataclass(frozen=True)
class _Counts:
    sectors: float
    ideal: float
    instructions: Sequence[Instruction] = ()

    @property
    def excess(self) -> float:
        return max(1 - self.ideal / self.sectors, 0.0) if self.sectors else 0.0

    def of(self, kind: int) -> _Counts:
        chosen = [each for each in self.instructions if each.counts.get(KIND) == kind]
        return _Counts(_total(chosen, SECTORS), _total(chosen, IDEAL), chosen)

    def evidence(self, kernel: ProfiledKernel) -> Iterator[Evidence]:
        yield profiled.evidence(kernel, "global_sectors")
        yield profiled.evidence(kernel, "ideal_global_sectors")
        yield Evidence("excess", self.excess, "share", f"1 - {IDEAL} / {SECTORS}")
        for kind, name in KINDS.items():
            if (part := self.of(kind)).sectors:
                sql = _PER_INSTRUCTION.format(launch=kernel.launch.id)
                formula = f"1 - {IDEAL} / {SECTORS} over the instructions whose {KIND} is {kind}"
                yield Evidence(f"excess of {name}", part.excess, "share", formula, sql)
        yield from _of_the_worst(kernel, self)
        yield from profiled.known(kernel, *_PER_REQUEST)


def _total(instructions: Sequence[Instruction], metric: str) -> float:
    return sum(each.counts.get(metric, 0) for each in instructions)


def _counted(kernel: ProfiledKernel) -> _Counts | None:
    sectors, ideal = kernel.known("global_sectors"), kernel.known("ideal_global_sectors")
    if sectors is None or ideal is None:
        return None
    counts = (SECTORS, IDEAL, REQUESTS, LANES, WIDTH, KIND)
    return _Counts(sectors, ideal, [*filter(_is_global, instructions(kernel.case, kernel.launch.id, counts))])


def _is_global(instruction: Instruction) -> bool:
    return instruction.counts.get(SECTORS, 0) > 0


def _worst(counted: _Counts) -> Instruction | None:
    """The instruction with most of the excess; None where none was counted apart."""
    worst = max(counted.instructions, key=_excess_sectors, default=None)
    return worst if worst is not None and _excess_sectors(worst) else None


def _blame(counted: _Counts) -> str:
    if (worst := _worst(counted)) is None:
        return ""
    part = _excess_sectors(worst) / (counted.sectors - counted.ideal)
    blame = f" {units.share(part)} of the excess comes from the instruction at {worst.where}"
    if not (requests := worst.counts.get(REQUESTS)):
        return f"{blame}."
    is_now, could_be = (worst.counts.get(name, 0) / requests for name in (SECTORS, IDEAL))
    return f"{blame}: {is_now:.2f} sectors per request, where its lanes fill {could_be:.2f}."


def _of_the_worst(kernel: ProfiledKernel, counted: _Counts) -> Iterator[Evidence]:
    if (worst := _worst(counted)) is None:
        return
    sql = _PER_INSTRUCTION.format(launch=kernel.launch.id)
    at = f"the instruction at {worst.where}"
    yield Evidence(f"excess of {at}", _excess_sectors(worst), "sectors", f"{SECTORS} - {IDEAL}", sql)
    if (lanes := worst.counts.get(LANES)) and (bits := worst.counts.get(WIDTH)):
        used = lanes * bits / 8 / worst.counts[SECTORS]
        formula = f"{LANES} * {WIDTH} / 8 / {SECTORS}; above 32 where lanes share bytes"
        yield Evidence(f"bytes per sector that lanes of {at} ask for", used, "bytes/sector", formula, sql)


def _excess_sectors(instruction: Instruction) -> float:
    return max(instruction.counts.get(SECTORS, 0) - instruction.counts.get(IDEAL, 0), 0)


_PER_REQUEST = (
    "load_sectors_per_request",
    "store_sectors_per_request",
    "bytes_per_lane",
    "l2_read_sectors_per_request",
)
_PER_INSTRUCTION = (
    "SELECT printf('0x%x', i.key) AS address, m.name, i.value FROM launch_instance i JOIN metric m ON m.id = "
    f"i.metric_id WHERE i.launch_id = {{launch:d}} AND m.name IN ('{SECTORS}', '{IDEAL}', '{REQUESTS}', '{LANES}', "
    f"'{WIDTH}', '{KIND}') ORDER BY i.key"
)

# ---- tables of loads and stores ------------------------------------------------------------------------------------


def _from_tables(kernel: ProfiledKernel, limits: Limits) -> Answer:
    """What bytes per sector, or sectors per request and the mean width, can tell without counts per instruction."""
    kinds = [kind for kind in ("load", "store") if not is_none_there(kernel, f"{kind}_sectors_per_request")]
    excess = {kind: 1 - used for kind in kinds if (used := kernel.known(f"{kind}_bytes_used_at_most")) is not None}
    part = max(excess.values(), default=0.0) * _part_of_loads_and_stores(kernel)
    if excess and part >= limits["excess"]:
        worst = max(excess, key=lambda kind: excess[kind])
        evidence = profiled.known(
            kernel, f"{worst}_bytes_used_at_most", f"{worst}_sectors_per_request", "bytes_per_lane"
        )
        of_them = f" They are those of its {worst}s."
        return _finding(kernel, excess[worst], part, limits, evidence, of_them, "medium")
    if excess.keys() == set(kinds) and all(_is_well_used(kernel, kind, limits) for kind in kinds):
        return Clear(kernel_subject(kernel))
    because = together([found for need in _NEEDS if isinstance(found := kernel.quantity(need), Missing)])
    return CannotTell(kernel_subject(kernel), because)


_NEEDS = ("global_sectors", "ideal_global_sectors")


def _part_of_loads_and_stores(kernel: ProfiledKernel) -> float:
    """Of all sectors that L1 caches handle; 1 where they were not counted."""
    sectors = kernel.known("local_and_global_sectors")
    return sectors / max(sectors_through_l1(kernel, sectors), 1) if sectors else 1.0


def _is_well_used(kernel: ProfiledKernel, kind: str, limits: Limits) -> bool:
    """Whether active lanes fill their sectors; more bytes than a sector has mean that lanes share some."""
    used = kernel.known(f"{kind}_bytes_used")
    return used is not None and 1 - limits["excess"] <= used <= 1


def _finding(
    kernel: ProfiledKernel,
    excess: float,
    part_of_traffic: float,
    limits: Limits,
    evidence: Iterable[Evidence],
    blame: str,
    confidence: Confidence,
) -> Answer:
    bound = cost(
        kernel, part_of_traffic, limits["limit"], units_at=("l1_throughput", "memory_throughput"), wait="l1_wait"
    )
    amount = units.share(excess) if confidence == "high" else f"at least {units.share(excess)}"
    return profiled.finding(
        kernel,
        title=f"Global accesses of {kernel.launch.short_name} are uncoalesced: {amount} of their sectors are excess",
        claim=f"Of the sectors that its lanes touch, {amount} would not be needed if the same bytes lay side by side."
        f"{blame}",
        counterfactual=f"Without the excess, at most {units.share(bound.fraction)} of its time: {bound.because}.",
        fraction=bound.fraction,
        confidence=confidence,
        evidence=[*evidence, *profiled.known(kernel, "l1_fill", "l1_throughput", "memory_throughput", "l1_wait")],
        refute="With neighbouring lanes on neighbouring addresses the kernel takes as long.",
        steps=[
            "ncu --section SourceCounters --import-source yes: the lines with most excess sectors.",
            "Lay the data out so that the lane is the last index (structure of arrays), or read it in rows into shared "
            "memory and pick from there.",
        ],
    )
