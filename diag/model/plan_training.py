"""What a layout of a training job communicates in a step, and how long: bubbles, experts, context, placement."""

from __future__ import annotations

import math
from collections.abc import Sequence

from diag.model import units
from diag.model.context_parallel import ring_step, tokens_to_hide, ulysses_bytes
from diag.model.experts import capacity, load
from diag.model.parallelism import Step, Transformer, signatures
from diag.model.pipeline import bubble_share, micro_batches_for
from diag.model.placement import Layout, Placement, network_bytes, placements, step_ns
from diag.model.plan import Answer, Column, Figure

BUBBLES = (0.10, 0.05)
"""Shares for which the number of micro-batches is told."""


def pipeline(stages: int, micro_batches: int, chunks: int) -> Answer:
    formula = "(p-1)/(v·m+p-1)" if chunks > 1 else "(p-1)/(m+p-1)"
    figures = [Figure("bubble", bubble_share(stages, micro_batches, chunks), "share", f"of the step: {formula}")]
    rounded = "(p-1)(1-b)/(v·b), rounded up" + (" to a multiple of p" if chunks > 1 else "")
    for share in BUBBLES:
        most = micro_batches_for(stages, share, chunks)
        label = f"micro-batches for {units.share(share)}"
        figures.append(Figure(label, most, "count", rounded))
    interleaved = f", {chunks} chunks each" if chunks > 1 else ""
    return Answer(
        f"Pipeline of {stages} stages{interleaved}, {units.count(micro_batches, 'micro-batch')}",
        figures,
        ["Every micro-batch takes every stage equally long, and sending takes no time (see the layout for that)."],
    )


def experts(tokens: int, n_experts: int, top_k: int, factor: float, loads: Sequence[int]) -> Answer:
    """`loads`: tokens that the router sent to each expert; empty where they are not known."""
    most = capacity(tokens, n_experts, top_k, factor)
    figures = [Figure("capacity of an expert", most, "count", f"⌈{factor:g} · {tokens:,} · {top_k} / {n_experts:,}⌉")]
    if loads:
        found = load(loads, most)
        figures += [
            Figure("tokens dropped", found.dropped, "count", "sum of what each expert gets above its capacity"),
            Figure("share dropped", found.dropped_share, "share", f"of {found.assigned:,} assigned"),
            Figure("imbalance", found.imbalance, "ratio", "largest load / mean: all wait for that expert"),
            Figure("places left empty", found.padded, "count", "sum of what each expert lacks to its capacity"),
        ]
    return Answer(
        f"{n_experts:,} experts, {units.count(tokens, 'token')}, {top_k} of them for each token",
        figures,
        ["Tokens above the capacity of an expert are dropped, which skips the layer for them."],
    )


def context(n_ranks: int, model: Transformer, bus_bytes_per_s: float | None, flops_per_s: float | None) -> Answer:
    one = ring_step(n_ranks, model.sequence, model.hidden, model.element_bytes)
    exchanged = ulysses_bytes(n_ranks, model.sequence, model.hidden, model.element_bytes)
    figures = [
        Figure("ring: bytes of a step", one.moved_bytes, "bytes", "keys and values of a block: 2·(S/n)·h·e"),
        Figure("ring: work of a step", one.flops, "FLOP", "4·(S/n)²·h"),
        Figure("ring: sent in a layer", (n_ranks - 1) * one.moved_bytes, "bytes", "n - 1 steps, forward"),
        Figure("Ulysses: sent in a layer", exchanged, "bytes", "4 all-to-alls, forward: (n-1)/n·(S/n)·h·e each"),
    ]
    if bus_bytes_per_s and flops_per_s:
        tokens = tokens_to_hide(bus_bytes_per_s, flops_per_s, model.element_bytes)
        figures += [
            Figure("tokens a rank to hide the ring", math.ceil(tokens), "count", "F·e/(2·B)"),
            Figure("tokens a rank here", model.sequence // n_ranks, "count", "S/n"),
        ]
    return Answer(
        f"A sequence of {units.count(model.sequence, 'token')} over {n_ranks} ranks",
        figures,
        ["One sequence, as many key and value heads as query heads, no part of the mask skipped."],
    )


def layout(
    layout: Layout, model: Transformer, step: Step, domain_gpus: int, domain_per_s: float, network_per_s: float
) -> Answer:
    """All calls of a step with where they go, and two bounds on what they cost."""
    places: dict[str, Placement] = {place.axis: place for place in placements(layout, domain_gpus)}
    calls = [(each, places[each.group]) for each in signatures(model, layout, step)]
    times = [step_ns(each, place, domain_per_s, network_per_s) for each, place in calls]
    across = [network_bytes(each, place) for each, place in calls]
    exposed = [ns for ns, (each, _) in zip(times, calls, strict=True) if each.is_critical]
    table = (
        Column("can hide", "text", ["no" if each.is_critical else "yes" for each, _ in calls]),
        Column("time a step", "ns", times),
        Column("on network", "bytes", across),
        Column("sent a step", "bytes", [each.step_volume_bytes for each, _ in calls]),
        Column("calls", "count", [_whole(each.calls) for each, _ in calls]),
        Column("size", "bytes", [each.size_bytes for each, _ in calls]),
        Column("domains", "count", [place.n_domains for _, place in calls]),
        Column(
            "what", "text", [f"{each.group} {each.n_ranks}, {each.name} ({each.primitive.words})" for each, _ in calls]
        ),
    )
    figures = [
        Figure("sent over the network by a GPU", sum(across), "bytes", "sum of the column: each byte once a domain"),
        Figure("communication, nothing hidden", sum(times), "ns", "upper bound: all calls one after the other"),
        Figure("communication, all hidden that can be", sum(exposed), "ns", "lower bound: calls that are waited for"),
    ]
    sizes = " x ".join(
        f"{axis} {layout.size(axis) if axis != 'dp' else layout.dp}" for axis in ("tp", "cp", "dp", "pp")
    )
    return Answer(
        f"A step on {layout.n_ranks:,} GPUs: {sizes}" + (f", ep {layout.ep}" if layout.ep > 1 else ""),
        figures,
        [
            "Ranks count through tensor, context, data and pipeline parallel, in this order, and fill domains of "
            f"{domain_gpus} GPUs; with several ways to lie, the worst group counts.",
            f"{units.quantity(domain_per_s, 'bytes/s')} on the bus inside of a domain, "
            f"{units.quantity(network_per_s, 'bytes/s')} of the network for each GPU, no latency.",
            f"A transformer of {model.layers} layers with one sequence in a micro-batch; recomputation and "
            "embeddings are left out, and parameters are those outside of experts.",
        ],
        table,
    )


def _whole(calls: float) -> float:
    """Layers need not divide by the stages."""
    return int(calls) if calls == int(calls) else round(calls, 1)
