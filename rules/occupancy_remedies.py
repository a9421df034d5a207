"""What keeps more blocks from an SM, in words, and what it takes to fit one more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from diag.model import units
from diag.model.hardware import SmLimits
from diag.model.occupancy import Block, Occupancy, most_registers, most_shared_bytes, theoretical_occupancy
from diag.rules.finding import Evidence


@dataclass(frozen=True)
class Limiters:
    """What bounds an occupancy, and a step for each of them that would raise it."""

    words: str
    steps: tuple[str, ...]


def limiters(sm: SmLimits, block: Block, launched: Occupancy) -> Limiters:
    """
    The driver makes the carve-out as small as the other limits allow, so that it often bounds too without being the
    cause. It is the cause only if the whole of the SM's shared memory would hold more blocks.
    """
    best = theoretical_occupancy(sm, replace(block, carve_out_bytes=None)) or launched
    if best.blocks_per_sm > launched.blocks_per_sm:
        return Limiters("the shared-memory carve-out", (_CARVE_OUT,))
    words = " and ".join(limiter.replace("_", " ") for limiter in best.limiters)
    return Limiters(words, tuple(_step(sm, block, best.blocks_per_sm + 1, limiter) for limiter in best.limiters))


_CARVE_OUT = (
    "Ask for more shared memory beside the L1 cache: cudaFuncSetAttribute(kernel, "
    "cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared)."
)


def _step(sm: SmLimits, block: Block, more: int, limiter: str) -> str:
    """What it takes to fit `more` blocks on an SM, as far as one limiter goes."""
    match limiter:
        case "registers":
            return (
                f"{more} blocks per SM fit with at most {most_registers(sm, block.warps, more)} registers per thread "
                f"(now {block.registers_per_thread}): `__launch_bounds__({block.threads}, {more})`, fewer values alive "
                "at a time, smaller tiles."
            )
        case "shared_memory":
            return (
                f"{more} blocks per SM fit with at most {most_shared_bytes(sm, more):,} bytes of shared memory per "
                f"block (now {block.shared_bytes:,}): smaller tiles, fewer pipeline stages."
            )
        case "barriers":
            return (
                f"{more} blocks per SM fit with at most {(sm.barriers_per_sm or 0) // more} barriers each (now "
                f"{block.barriers}): let groups of warps share them."
            )
        case "blocks":
            return (
                f"An SM holds no more than {sm.blocks_per_sm} blocks: make them larger than the {block.threads} "
                "threads of now."
            )
        case _:
            return f"Blocks of {block.threads} threads do not fill the {sm.warps_per_sm} warps of an SM: try smaller."


def describe(block: Block) -> str:
    return (
        f"blocks of {block.threads} threads with {block.registers_per_thread} registers each and "
        f"{units.size(block.shared_bytes)} of shared memory"
    )


def evidence(occupancy: Occupancy) -> Iterator[Evidence]:
    formula = "blocks per SM x warps per block / warp slots per SM"
    yield Evidence("theoretical occupancy", occupancy.theoretical_pct / 100, "share", formula)
    for name, blocks in vars(occupancy.limits).items():
        if blocks is not None:
            label = f"blocks per SM by {name.replace('_', ' ')}"
            yield Evidence(label, blocks, "count", "if this resource alone counted (docs/definitions.md)")
