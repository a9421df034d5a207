"""Does speculative decoding pay: tokens of a verification against what draft and verification cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from diag.model import units
from diag.model.plan import Answer, Column, Figure
from diag.model.serving_roofline import CardRates, ServedModel, decode
from diag.model.speculative_gain import breakeven_acceptance, cost, speedup, tokens_per_verification


@dataclass(frozen=True)
class Speculation:
    """Costs in steps of the target without speculation."""

    acceptance: float  # α
    drafted: int  # K
    draft_cost: float  # c
    verify_cost: float  # v


def speculative(
    of: Speculation, origin: Sequence[str], verify_cost: Callable[[int], float] | None = None, most: int = 12
) -> Answer:
    """`origin`: where the costs come from, a sentence each; `verify_cost`: v by K, where it is not the same for all."""
    v_of = verify_cost or (lambda _: of.verify_cost)
    gained = tokens_per_verification(of.acceptance, of.drafted)
    times = speedup(of.acceptance, of.drafted, of.draft_cost, of.verify_cost)
    rows = range(1, max(of.drafted, most) + 1)
    gains = [speedup(of.acceptance, k, of.draft_cost, v_of(k)) for k in rows]
    best = rows[gains.index(max(gains))]
    figures = [
        Figure("tokens a verification", gained, "tokens", f"1 + α + … + α^{of.drafted}, α = {of.acceptance:g}"),
        Figure(
            "cost",
            cost(of.drafted, of.draft_cost, of.verify_cost),
            "steps",
            f"K·c + v = {of.drafted} x {of.draft_cost:.3g} + {of.verify_cost:.3g}",
        ),
        Figure("speed-up", times, "x", "tokens / cost"),
        *_breakeven(of),
    ]
    word = f"Pays: {times:.2f} times as fast" if times > 1 else f"Does not pay: {times:.2f} times as fast"
    return Answer(
        f"Speculative decoding: drafts of {units.count(of.drafted, 'token')}, {units.share(of.acceptance)} accepted",
        figures,
        [
            *origin,
            "Each drafted token is accepted with the same probability, whatever became of others (--acceptance).",
        ],
        (
            Column("speed-up", "x", gains),
            Column("tokens", "tokens", [tokens_per_verification(of.acceptance, k) for k in rows]),
            Column("cost", "steps", [cost(k, of.draft_cost, v_of(k)) for k in rows]),
            Column("K", "text", [str(k) for k in rows]),
        ),
        f"{word}. Of drafts up to {rows[-1]} tokens, {best} gains most.",
    )


def _breakeven(of: Speculation) -> Iterator[Figure]:
    least = breakeven_acceptance(of.drafted, of.draft_cost, of.verify_cost)
    if least is not None:
        yield Figure("pays from acceptance", least, "share", "α at which tokens = cost")
    most = (tokens_per_verification(of.acceptance, of.drafted) - of.verify_cost) / of.drafted
    if most > 0:
        yield Figure("pays up to a draft step of", most, "steps", "(tokens - v) / K")
    slowest = tokens_per_verification(of.acceptance, of.drafted) - of.drafted * of.draft_cost
    if slowest > 0:
        yield Figure("and up to a verification of", slowest, "steps", "tokens - K·c")


@dataclass(frozen=True, eq=False)
class Pair:
    """Target and draft on the same cards."""

    target: ServedModel
    target_rates: CardRates
    draft: ServedModel
    draft_rates: CardRates
    context_tokens: float


def costs(pair: Pair, sequences: float, drafted: int) -> tuple[float, float]:
    """c and v by the roofline at so many sequences: more of them make a verification bound by arithmetic."""
    plain_ns = decode(pair.target, pair.target_rates, sequences, pair.context_tokens).total_ns
    verify_ns = decode(pair.target, pair.target_rates, sequences, pair.context_tokens, drafted + 1).total_ns
    draft_ns = decode(pair.draft, pair.draft_rates, sequences, pair.context_tokens).total_ns
    return draft_ns / plain_ns, verify_ns / plain_ns


def by_sequences(pair: Pair, acceptance: float, drafted: int) -> Answer:
    """Where the gain goes as more sequences share a step."""
    sizes = [1, 4, 16, 64, 256, 1024]
    of = [(n, *costs(pair, n, drafted)) for n in sizes]
    gains = [speedup(acceptance, drafted, c, v) for _, c, v in of]
    last = max((n for n, gain in zip(sizes, gains, strict=True) if gain > 1), default=None)
    verdict = "Pays at none of these." if last is None else f"Pays up to {last:,} sequences in a step, of those tried."
    return Answer(
        f"And with more sequences in a step, K = {drafted}",
        [],
        [f"A context of {pair.context_tokens:,.0f} tokens for each (--context)."],
        (
            Column("speed-up", "x", gains),
            Column("draft c", "steps", [c for _, c, _ in of]),
            Column("verification v", "steps", [v for *_, v in of]),
            Column("batch", "text", [f"{n:,}" for n in sizes]),
        ),
        verdict,
    )
