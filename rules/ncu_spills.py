"""Local memory: what did not stay in registers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from diag.launches.instructions import instructions
from diag.launches.kernel import ProfiledKernel
from diag.launches.machine_code import LocalUse, local_use
from diag.model import units
from diag.rules import profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, Clear, Evidence
from diag.rules.thresholds import Limits
from diag.rules.traffic import cost, sectors_through_l1

_NEEDS = ("local_instructions", "local_sectors", "local_and_global_sectors")


@kernel_rule("ncu.spills", needs=_NEEDS)
def spills(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """Registers that spill, and arrays that live in local memory.

    Asks      What part of the sectors that the L1 caches look up belongs to local memory?
    Decides   part = local sectors / (local + global sectors, or what came from L2 if that is more, as with copies of
              the tensor memory accelerator); fires at `part`, if loads or stores of local memory ran
              at all: memory that is reserved for a stack (STACK of cuobjdump, local memory per thread) costs nothing
              until it is touched. Whether registers spilled or an array is indexed at run time is told by the
              instructions that the compiler marked (ncu 2025.1 and later), else by the machine code: spills have a
              fixed place in the frame ([R1+0x10]), elements of arrays an address that is worked out. Without either it
              stays open. At most that part of the time can be won if a memory unit is at `limit` of its peak, else that
              part of the larger of how busy it is and how long warps wait for it.
    Matters   A register costs nothing to read, local memory as much as global: it lies in device memory behind L1.
    Do        Spills: let fewer values live at once (smaller tiles, less unrolling), or allow more registers
              (`__launch_bounds__`, `-maxrregcount`) at the price of occupancy. Arrays: index them with what the
              compiler knows (unroll the loop), or keep them in shared memory.
    Refute    The accesses go and the time stays: then L1 held them and other warps filled the wait.
    """
    sectors = sectors_through_l1(kernel, kernel.value("local_and_global_sectors"))
    part = kernel.value("local_sectors") / sectors if sectors else 0.0
    if not kernel.value("local_instructions") or part < limits["part"]:
        yield Clear(kernel_subject(kernel))
        return
    use = _use(kernel)
    bound = cost(kernel, part, limits["limit"], units_at=("l1_throughput", "memory_throughput"), wait="l1_wait")
    yield profiled.finding(
        kernel,
        title=f"{kernel.launch.short_name} {_TITLES[use]}: {units.share(part)} of its L1 sectors",
        claim=f"{units.share(part)} of the sectors that the L1 caches look up for it are local memory, for "
        f"{units.quantity(kernel.value('local_instructions'), 'inst')}. {_CLAIMS[use]}",
        counterfactual=f"Were all of it in registers, at most {units.share(bound.fraction)} of its time: "
        f"{bound.because}.",
        fraction=bound.fraction,
        confidence="medium" if kernel.known("l1_fill") is None else "high",
        evidence=[
            *(profiled.evidence(kernel, name) for name in _NEEDS),
            Evidence("local part", part, "share", "local sectors / max(local + global sectors, bytes from L2 / 32)"),
            *profiled.known(kernel, "l1_fill", "local_missed_sectors", "spill_instructions"),
            *_registers(kernel),
            *profiled.known(kernel, "l1_throughput", "memory_throughput", "l1_wait"),
        ],
        refute="With more registers or without the array the accesses are gone, and the kernel takes as long.",
        steps=_STEPS[use],
    )


def _use(kernel: ProfiledKernel) -> LocalUse:
    marked = kernel.known("spill_instructions")
    if marked is not None:
        return "spills" if marked else "arrays"
    ran = instructions(kernel.case, kernel.launch.id, ("inst_executed",))
    return local_use([each.sass for each in ran if each.sass and each.counts["inst_executed"]])


_TITLES: Mapping[LocalUse, str] = {
    "spills": "spills registers",
    "arrays": "keeps arrays in local memory",
    "either": "spills registers or keeps arrays in local memory",
}
_CLAIMS: Mapping[LocalUse, str] = {
    "spills": "They save and restore registers.",
    "arrays": "They reach into arrays at places that only the running kernel knows.",
    "either": "Whether they save registers or reach into arrays is not told by what was collected.",
}
_FEWER = "Let fewer values live at once: smaller tiles per thread, less unrolling, or recompute what is cheap."
_MORE = "nvcc -Xptxas -v names the spills; raise the limit of __launch_bounds__ or -maxrregcount and compare the time."
_STATIC = "Index the array with constants after unrolling, or move it to shared memory."
_STEPS: Mapping[LocalUse, Sequence[str]] = {
    "spills": (_MORE, _FEWER),
    "arrays": (_STATIC,),
    "either": ("cuobjdump -sass: LDL and STL at [R1+...] are spills, at other addresses arrays.", _MORE, _STATIC),
}


def _registers(kernel: ProfiledKernel) -> Iterator[Evidence]:
    if (registers := kernel.launch.registers_per_thread) is not None:
        sql = f"SELECT registers_per_thread FROM launch WHERE id = {kernel.launch.id:d}"
        yield Evidence(
            "registers per thread", registers, "registers", "of the launch; 255 is the most there can be", sql
        )
