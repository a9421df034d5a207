"""Triton kernels that keep the memory or the FMA units of a GPU busy, and nothing else.

Memory: each program takes every n-th block of an array, round and round, so that the array's size decides whether it
comes from L2 or from device memory. Loads pass by L1 (`.cg`), which would otherwise answer in the place of L2; only
`read_near` asks L1, for little.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def read(source, sums, n_blocks, rounds, stride: tl.constexpr, block_size: tl.constexpr):
    """Every `stride`-th float, summed so that no load can be left out; one store for each program."""
    total = tl.zeros((block_size,), tl.float32)
    for block in range(tl.program_id(0), n_blocks * rounds, tl.num_programs(0)):
        at = (block % n_blocks).to(tl.int64) * block_size + tl.arange(0, block_size)
        total += tl.load(source + at * stride, cache_modifier=".cg")
    tl.store(sums + tl.program_id(0), tl.sum(total))


@triton.jit
def read_near(source, sums, rounds, blocks: tl.constexpr, block_size: tl.constexpr):
    """Each program reads `blocks` blocks of its own, over and over, which stay in the L1 cache of its SM."""
    total = tl.zeros((block_size,), tl.float32)
    first = tl.program_id(0).to(tl.int64) * blocks * block_size
    for turn in range(rounds):
        total += tl.load(source + first + turn % blocks * block_size + tl.arange(0, block_size))
    tl.store(sums + tl.program_id(0), tl.sum(total))


@triton.jit
def fill(target, n_blocks, rounds, block_size: tl.constexpr):
    for block in range(tl.program_id(0), n_blocks * rounds, tl.num_programs(0)):
        at = (block % n_blocks).to(tl.int64) * block_size + tl.arange(0, block_size)
        tl.store(target + at, tl.full((block_size,), 1.0, tl.float32))


@triton.jit
def copy(source, target, n_blocks, rounds, block_size: tl.constexpr):
    for block in range(tl.program_id(0), n_blocks * rounds, tl.num_programs(0)):
        at = (block % n_blocks).to(tl.int64) * block_size + tl.arange(0, block_size)
        tl.store(target + at, tl.load(source + at, cache_modifier=".cg"))


@triton.jit
def triad(a, b, target, n_blocks, rounds, block_size: tl.constexpr):
    """target = a + 0.5 b."""
    for block in range(tl.program_id(0), n_blocks * rounds, tl.num_programs(0)):
        at = (block % n_blocks).to(tl.int64) * block_size + tl.arange(0, block_size)
        x, y = tl.load(a + at, cache_modifier=".cg"), tl.load(b + at, cache_modifier=".cg")
        tl.store(target + at, x + 0.5 * y)


@triton.jit
def multiply_adds(values, factors, n_steps, block_size: tl.constexpr):
    """x = x f + g, `n_steps` times for each value: a thread has several independent chains, which hides the latency.

    f and g come from memory, so that no compiler can work them out.
    """
    at = tl.program_id(0) * block_size + tl.arange(0, block_size)
    x, f, g = tl.load(values + at), tl.load(factors), tl.load(factors + 1)
    for _ in range(n_steps):
        x = x * f + g
    tl.store(values + at, x)


@triton.jit
def nothing(unused):
    """An empty kernel: what a launch costs."""
