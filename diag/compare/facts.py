"""What tells whether two recordings may be compared; None where a recording does not tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Weights = Mapping[str, float]
"""How much of a recording each of many things makes up: time by kernel, calls by operator."""

Variants = Mapping[str, Weights]
"""Of each thing that may come in several ways, how often in each: launches of a kernel by grid."""


@dataclass(frozen=True)
class Facts:
    # hardware
    gpus: str | None = None  # '2 × NVIDIA H100'
    n_gpus: int | None = None
    limits: Mapping[str, str] | None = None  # SMs, memory, highest SM clock: what is known of them
    mig: str | None = None  # instances of a GPU that is shared out, 'none' of a whole one
    pieces: str | None = None  # UUIDs
    hosts: str | None = None
    world_size: str | None = None
    # model and precision
    kernels: Weights | None = None  # ns by short name
    operators: Weights | None = None  # calls by name
    ranges: Weights | None = None  # instances by pattern
    precision: str | None = None
    operator_types: str | None = None
    # lengths
    shapes: Variants | None = None  # calls of an operator, by the shapes of its inputs
    grids: Variants | None = None  # launches of a kernel with a certain block, by its grid
    # arrival
    request_rate_per_s: float | None = None
    # loads on a server
    n_loads: int = 0
    served_model: str | None = None
    arrivals: str | None = None
    concurrency: int | None = None  # of a single load
    burstiness: float | None = None
    prompt_tokens: float | None = None  # of a completed request, on average
    output_lengths: str | None = None  # that were asked for, in words
    shared_prefix_share: float | None = None
    output_tokens: float | None = None
    # configuration and warmth
    tools: str | None = None
    tool_versions: str | None = None
    captured: str | None = None  # what costs time to capture
    graph_mode: str | None = None
    part: str = "all"
    is_cut: bool | None = None
    startup_share: float | None = None  # of the window
    profiler_share: float | None = None  # of the window: what the profiler says that it cost
    clocks: str | None = None  # of a profile: locked or not
    cache_control: str | None = None
    replay: str | None = None
    # metric
    bases: str | None = None
    tick_ns: int | None = None
