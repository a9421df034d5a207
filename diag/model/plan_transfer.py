"""Where keys and values come from: sent from a prefill replica, swapped in, fetched, or worked out anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diag.model import units
from diag.model.kv_cache import KvShape, bytes_per_token, replicas
from diag.model.kv_transfer import Way, breakeven_tokens, exposed_ns, layerwise_ns, transfer_ns
from diag.model.plan import Answer, Column, Figure
from diag.model.planned_model import PlannedModel
from diag.model.serving_roofline import CardRates, ServedModel, prefill


def one_transfer(size_bytes: float, way: Way) -> Answer:
    latency = f" + {units.time(way.latency_ns)}" if way.latency_ns else ""
    formula = f"{size_bytes:,.0f} B / {units.quantity(way.bytes_per_s, 'bytes/s')}{latency}"
    return Answer(
        f"{units.size(size_bytes)} over the {way.name}",
        [Figure("at least", transfer_ns(size_bytes, way), "ns", formula)],
        [f"All of {units.quantity(way.bytes_per_s, 'bytes/s')} is there for it (--bandwidth, --latency)."],
    )


@dataclass(frozen=True, eq=False)
class Prompt:
    """A prompt whose keys and values are needed on a replica of `served.tp` cards, each with ways of its own."""

    model: PlannedModel
    served: ServedModel
    rates: CardRates
    tokens: int
    fetch: Way  # from another replica, for each card
    swap: Way  # from the host, for each card


def of_prompt(prompt: Prompt, assumptions: Sequence[str]) -> list[Answer]:
    """`assumptions`: where the rates of a card come from."""
    return [_split(prompt, assumptions), _sources(prompt)]


def _kv_bytes(prompt: Prompt) -> float:
    """On one card: what its link carries."""
    return prompt.tokens * prompt.served.kv_token_bytes


def _split(prompt: Prompt, assumptions: Sequence[str]) -> Answer:
    """Prefill here, decode there: what of the transfer lies on the critical path."""
    shape = prompt.served.shape
    compute_ns = prefill(prompt.served, prompt.rates, prompt.tokens).total_ns
    size = _kv_bytes(prompt)
    whole_ns = transfer_ns(size, prompt.fetch)
    layer_compute_ns = compute_ns / shape.n_layers
    layer_send_ns = transfer_ns(size / shape.n_layers, prompt.fetch)
    by_layer_ns = layerwise_ns(shape.n_layers, layer_compute_ns, layer_send_ns)
    exposed = exposed_ns(shape.n_layers, layer_compute_ns, layer_send_ns)
    kv = KvShape.of(shape)
    of_token = bytes_per_token(kv, prompt.served.kv.bytes_each)
    copies = replicas(kv, prompt.served.tp)
    figures = [
        Figure("KV of the prompt", prompt.tokens * of_token, "bytes", f"{prompt.tokens:,} x {of_token:,.0f} B"),
        Figure(
            "sent by each card", size, "bytes", f"/ {prompt.served.tp} cards" + (f" x {copies:g}" if copies > 1 else "")
        ),
        Figure("prefill", compute_ns, "ns", "what there is to hide behind"),
        Figure("sent as a whole", whole_ns, "ns", "latency + bytes / bandwidth, after prefill"),
        Figure("a layer: computed", layer_compute_ns, "ns", f"prefill / {shape.n_layers} layers"),
        Figure("a layer: sent", layer_send_ns, "ns", "latency + bytes of a layer / bandwidth"),
        Figure("layer by layer, to the end", by_layer_ns, "ns", "c + (L-1)·max(c, s) + s"),
        Figure("of it exposed", exposed, "ns", "on the critical path of the first token after the split"),
    ]
    side = "hidden but for its last layer" if layer_send_ns <= layer_compute_ns else "the link is the limit"
    return Answer(
        f"Prefill and decode apart: a prompt of {units.count(prompt.tokens, 'token')} of {prompt.model.name}",
        figures,
        [
            prompt.model.origin,
            *assumptions,
            f"Each card sends its part over {_words(prompt.fetch)} (--bandwidth, --latency).",
            "Every layer takes the same time and is sent as soon as it is done.",
        ],
        verdict=f"Sent layer by layer, {units.time(exposed)} lie on the critical path instead of "
        f"{units.time(whole_ns)}: {side}.",
    )


def _words(way: Way) -> str:
    latency = f" and {units.time(way.latency_ns)} for each message" if way.latency_ns else ""
    return f"{units.quantity(way.bytes_per_s, 'bytes/s')}{latency}"


def _sources(prompt: Prompt) -> Answer:
    """Recompute against swap against fetch."""
    recompute_ns = prefill(prompt.served, prompt.rates, prompt.tokens).total_ns
    linear_ns, square_ns = _prefill_terms(prompt)
    ways = [prompt.swap, prompt.fetch]
    times = [transfer_ns(_kv_bytes(prompt), way) for way in ways]
    fastest = min(zip([recompute_ns, *times], ["recompute", *(way.name for way in ways)], strict=True))
    figures = [
        Figure("recompute", recompute_ns, "ns", f"prefill of {prompt.tokens:,} tokens"),
        *(
            Figure(way.name, ns, "ns", f"{units.size(_kv_bytes(prompt))} at {_words(way)}")
            for way, ns in zip(ways, times, strict=True)
        ),
        *_breakeven(prompt, ways, linear_ns, square_ns),
    ]
    return Answer(
        f"Where to have {prompt.tokens:,} tokens from",
        figures,
        [
            f"The swap comes from the host over {_words(prompt.swap)} (--host-bandwidth), the fetch from another "
            f"replica over {_words(prompt.fetch)}; all cards at once.",
            "While it recomputes, a replica does nothing else: a transfer also leaves the arithmetic to others.",
        ],
        _table(prompt, ways),
        f"At {prompt.tokens:,} tokens: {fastest[1]}, {units.time(fastest[0])}.",
    )


def _breakeven(prompt: Prompt, ways: Sequence[Way], linear_ns: float, square_ns: float) -> Iterator[Figure]:
    for way in ways:
        least = breakeven_tokens(way, prompt.served.kv_token_bytes, linear_ns, square_ns)
        label = f"{way.name} is faster from"
        if least is None:
            continue
        yield Figure(label, round(least), "tokens", "α + m·n/B = l·n + q·n², solved for n")


def _prefill_terms(prompt: Prompt) -> tuple[float, float]:
    """l and q of a prefill that is bound by arithmetic: t(n) = l·n + q·n², through the times of n and 2·n."""
    n = float(max(prompt.tokens, 1024))
    once, twice = (_bound_free_ns(prompt, tokens) for tokens in (n, 2 * n))
    square = max(0.0, (twice - 2 * once) / (2 * n * n))
    return once / n - square * n, square


def _bound_free_ns(prompt: Prompt, tokens: float) -> float:
    step = prefill(prompt.served, prompt.rates, tokens)
    return step.compute_ns + step.communication_ns


def _table(prompt: Prompt, ways: Sequence[Way]) -> tuple[Column, ...]:
    sizes = [prompt.tokens // 16, prompt.tokens // 4, prompt.tokens, 4 * prompt.tokens, 16 * prompt.tokens]
    sizes = [n for n in sizes if n]
    m = prompt.served.kv_token_bytes
    return (
        Column("recompute", "ns", [prefill(prompt.served, prompt.rates, n).total_ns for n in sizes]),
        *(Column(way.name, "ns", [transfer_ns(n * m, way) for n in sizes]) for way in ways),
        Column("tokens", "text", [f"{n:,}" for n in sizes]),
    )
