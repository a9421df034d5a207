"""Theoretical occupancy against Nsight Compute, against its own definition, and against what must hold always."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diag.model.hardware import SmLimits, sm_limits
from diag.model.occupancy import (
    Block,
    allocated_registers,
    allocated_shared_bytes,
    most_registers,
    most_shared_bytes,
    tail_loss,
    theoretical_occupancy,
)


def limits_of(capability: str) -> SmLimits:
    major, minor = capability.split(".")
    limits = sm_limits((int(major), int(minor)))
    assert limits is not None
    return limits


# What Nsight Compute printed for launches on a T4, an RTX 2080 Ti, an A100, an A10G and a GH200: capability, threads,
# registers, shared memory, carve-out; then Block Limit SM, Registers, Shared Mem, Warps and Theoretical Occupancy. It
# prints the limit of the SM where a kernel has no shared memory.
NCU = [
    ("7.5", 256, 32, 0, 32768, 16, 8, 16, 4, 100.0),
    ("7.5", 64, 16, 0, 32768, 16, 64, 16, 16, 100.0),
    ("8.0", 256, 30, 0, 32768, 32, 8, 32, 8, 100.0),
    ("8.6", 1024, 36, 0, 8192, 16, 1, 8, 1, 66.667),
    ("8.6", 1024, 36, 8192, 16384, 16, 1, 1, 1, 66.667),
    ("8.6", 512, 51, 4096, 16384, 16, 2, 3, 3, 66.667),
    ("8.6", 256, 150, 8192, 16384, 16, 1, 1, 6, 16.667),
    ("8.6", 256, 121, 8192, 65536, 16, 2, 7, 6, 33.333),
    ("8.6", 256, 71, 8192, 65536, 16, 3, 7, 6, 50.0),
    ("8.6", 256, 128, 32768, 102400, 16, 2, 3, 6, 33.333),
    ("8.6", 256, 115, 16384, 65536, 16, 2, 3, 6, 33.333),
    ("8.6", 128, 122, 12544, 65536, 16, 4, 4, 12, 33.333),
    ("9.0", 128, 77, 16 + 2096, 65536, 32, 6, 20, 16, 37.5),
]


@pytest.mark.parametrize(
    (
        "capability",
        "threads",
        "registers",
        "shared",
        "carve_out",
        "blocks",
        "by_registers",
        "by_shared",
        "warps",
        "pct",
    ),
    NCU,
)
def test_it_is_what_nsight_compute_prints(
    capability: str,
    threads: int,
    registers: int,
    shared: int,
    carve_out: int,
    blocks: int,
    by_registers: int,
    by_shared: int,
    warps: int,
    pct: float,
) -> None:
    told = theoretical_occupancy(limits_of(capability), Block(threads, registers, shared, carve_out))
    assert told is not None
    assert (told.limits.blocks, told.limits.registers, told.limits.warps) == (blocks, by_registers, warps)
    assert (told.limits.shared_memory or blocks) == by_shared
    assert told.theoretical_pct == pytest.approx(pct, abs=0.01)


def test_worked_in_the_head() -> None:
    """H100: 64 warp slots. 128 registers per thread are 4,096 per warp: 4 warps fit into each quarter of 65,536."""
    told = theoretical_occupancy(limits_of("9.0"), Block(threads=64, registers_per_thread=128, shared_bytes=0))
    assert told is not None
    assert (told.blocks_per_sm, told.warps_per_sm, told.theoretical_pct) == (8, 16, 25.0)
    assert told.limiters == ("registers",)


def test_all_limiters_are_named() -> None:
    """32 registers: 1,024 per warp, 64 warps, as many as there are slots: 16 blocks of 4 warps."""
    told = theoretical_occupancy(limits_of("9.0"), Block(threads=128, registers_per_thread=32, shared_bytes=0))
    assert told is not None
    assert told.limiters == ("registers", "warps")


def test_what_is_not_used_does_not_limit() -> None:
    told = theoretical_occupancy(limits_of("7.0"), Block(threads=32, registers_per_thread=0, shared_bytes=0))
    assert told is not None
    assert (told.limits.registers, told.limits.shared_memory) == (None, None)
    assert told.limiters == ("blocks",)


def test_from_ampere_on_the_system_takes_a_kibibyte_of_each_block() -> None:
    block = Block(threads=32, registers_per_thread=16, shared_bytes=1024)
    turing, ampere = (
        theoretical_occupancy(limits_of(c), replace(block, carve_out_bytes=32768)) for c in ("7.5", "8.0")
    )
    assert turing is not None
    assert ampere is not None
    assert (turing.limits.shared_memory, ampere.limits.shared_memory) == (32, 16)


@pytest.mark.parametrize("carve_out", [None, 0, 1 << 30])
def test_a_carve_out_that_cannot_be_is_as_if_not_known(carve_out: int | None) -> None:
    told = theoretical_occupancy(limits_of("9.0"), Block(128, 32, 10_000, carve_out))
    assert told is not None
    assert told.limits.shared_memory == 233472 // 11_136  # 10,000 + 1,024 rounded up to 128 bytes


def test_a_carve_out_gives_way_to_the_smallest_that_holds_a_block() -> None:
    """A100: 20,000 + 1,024 bytes rounded up are 21,120; of 8, 16, 32, ... KiB the third holds them, once."""
    told = theoretical_occupancy(limits_of("8.0"), Block(128, 32, 20_000, 8192))
    assert told is not None
    assert told.limits.shared_memory == 1


def test_barriers_limit_blocks() -> None:
    """GH200, as Nsight Compute draws it: 64 barriers of an SM allow 6 blocks of 10 each, and 5 of 11."""
    sm, block = limits_of("9.0"), Block(threads=128, registers_per_thread=77, shared_bytes=2112, carve_out_bytes=65536)
    six, five = (theoretical_occupancy(sm, replace(block, barriers=n)) for n in (10, 11))
    assert six is not None
    assert five is not None
    assert (six.limits.barriers, six.limiters) == (6, ("registers", "barriers"))
    assert (five.blocks_per_sm, five.limiters) == (5, ("barriers",))


def test_what_is_allocated_is_rounded_up() -> None:
    """GH200: 77 registers are 80 for each thread of a warp; 2,112 bytes and the system's 1,024 come in units of 128."""
    sm, block = limits_of("9.0"), Block(threads=128, registers_per_thread=77, shared_bytes=2112)
    assert allocated_registers(sm, block) == 4 * 80 * 32
    assert allocated_shared_bytes(sm, block) == 3200


def test_a_block_may_have_half_of_the_registers_of_an_sm() -> None:
    """Capability 6.2: 32,768 for a block. 1,024 threads of 32 registers take them all, of 33 they do not run."""
    sm = limits_of("6.2")
    told = theoretical_occupancy(sm, Block(threads=1024, registers_per_thread=32, shared_bytes=0))
    assert told is not None
    assert told.limits.registers == 2
    assert theoretical_occupancy(sm, Block(threads=1024, registers_per_thread=33, shared_bytes=0)) is None
    assert most_registers(sm, warps=32, blocks=1) == 32


@pytest.mark.parametrize(
    "block",
    [
        Block(threads=0, registers_per_thread=32, shared_bytes=0),
        Block(threads=4096, registers_per_thread=32, shared_bytes=0),
        Block(threads=1024, registers_per_thread=255, shared_bytes=0),
        Block(threads=128, registers_per_thread=32, shared_bytes=1 << 20),
        Block(threads=128, registers_per_thread=-1, shared_bytes=0),
        Block(threads=128, registers_per_thread=32, shared_bytes=-1),
    ],
)
def test_a_block_that_cannot_run_has_no_occupancy(block: Block) -> None:
    assert theoretical_occupancy(limits_of("9.0"), block) is None


# ---- what holds always ---------------------------------------------------------------------------------------------

SMS = st.sampled_from(["5.0", "5.3", "6.0", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0"]).map(limits_of)
BLOCKS = st.builds(
    Block,
    threads=st.integers(1, 1024),
    registers_per_thread=st.integers(0, 255),
    shared_bytes=st.integers(0, 48 << 10),
    carve_out_bytes=st.none() | st.sampled_from([8 << 10, 16 << 10, 32 << 10, 64 << 10, 100 << 10]),
    barriers=st.none() | st.integers(0, 16),
)


def resident(sm: SmLimits, block: Block) -> int:
    told = theoretical_occupancy(sm, block)
    return told.blocks_per_sm if told else 0


@given(SMS, BLOCKS)
def test_nothing_is_used_more_than_there_is(sm: SmLimits, block: Block) -> None:
    if told := theoretical_occupancy(sm, block):
        n = told.blocks_per_sm
        assert 1 <= n <= sm.blocks_per_sm
        assert 0 < told.theoretical_pct <= 100
        assert told.warps_per_sm == n * block.warps <= sm.warps_per_sm
        assert n * block.warps * 32 * block.registers_per_thread <= sm.registers_per_sm
        assert n * (block.shared_bytes + sm.reserved_shared_per_block_bytes) <= sm.shared_per_sm_bytes


@given(SMS, BLOCKS)
def test_the_limiters_are_those_that_allow_least(sm: SmLimits, block: Block) -> None:
    if told := theoretical_occupancy(sm, block):
        limits = {name: blocks for name, blocks in vars(told.limits).items() if blocks is not None}
        assert told.limiters
        assert set(told.limiters) == {name for name, blocks in limits.items() if blocks == min(limits.values())}


@given(SMS, BLOCKS, st.integers(0, 64), st.integers(0, 8192))
def test_more_resources_per_block_never_fit_more_blocks(
    sm: SmLimits, block: Block, registers: int, shared: int
) -> None:
    free = replace(block, carve_out_bytes=None)
    for larger in (
        replace(free, registers_per_thread=free.registers_per_thread + registers),
        replace(free, shared_bytes=free.shared_bytes + shared),
        replace(free, threads=min(1024, free.threads + registers)),
        replace(free, barriers=(free.barriers or 0) + registers % 16),
    ):
        assert resident(sm, larger) <= resident(sm, free)


@given(SMS, BLOCKS)
def test_a_carve_out_never_fits_more_than_the_whole(sm: SmLimits, block: Block) -> None:
    assert resident(sm, block) <= resident(sm, replace(block, carve_out_bytes=None))


@given(SMS, st.integers(1, 32), st.integers(1, 8))
def test_the_registers_that_fit_are_the_most_that_do(sm: SmLimits, warps: int, blocks: int) -> None:
    most = most_registers(sm, warps, blocks)
    if blocks * warps <= sm.warps_per_sm and most:
        block = Block(32 * warps, most, 0)
        limits = [theoretical_occupancy(sm, replace(block, registers_per_thread=r)) for r in (most, most + 8)]
        assert limits[0] is not None
        assert (limits[0].limits.registers or 0) >= blocks
        assert most + 8 > sm.registers_per_thread or limits[1] is None or (limits[1].limits.registers or 0) < blocks


@given(SMS, st.integers(1, 32))
def test_the_shared_memory_that_fits_does(sm: SmLimits, blocks: int) -> None:
    most = most_shared_bytes(sm, blocks)
    told = theoretical_occupancy(sm, Block(32, 16, most))
    assert told is not None
    assert told.limits.shared_memory is None or told.limits.shared_memory >= blocks


@given(st.integers(1, 100_000), st.integers(1, 5_000))
def test_a_tail_loses_less_than_half_and_never_more_than_its_wave(blocks: int, capacity: int) -> None:
    loss = tail_loss(blocks, capacity)
    assert 0 <= loss < 0.5
    assert loss * -(-blocks // capacity) < 1
    assert loss == 0 or blocks % capacity


def test_one_block_too_many_costs_nearly_half() -> None:
    assert tail_loss(blocks=101, capacity=100) == pytest.approx(1 - 101 / 200)
    assert tail_loss(blocks=1001, capacity=100) == pytest.approx(1 - 1001 / 1100)
