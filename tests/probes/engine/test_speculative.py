"""Drafts change how fast text comes, not which: the same distribution, and of guesses the very same tokens."""

from __future__ import annotations

from random import Random

import pytest
import torch

from diag.probes.engine.config import EngineConfig
from diag.probes.engine.models import random_model
from diag.probes.engine.plan import Chunk, Emission, StepPlan
from diag.probes.engine.runner import TorchRunner
from diag.probes.engine.sampler import drawn
from diag.probes.engine.sequence import SamplingParams
from diag.probes.engine.speculative import Verdict, check_drawn, check_guesses
from tests.probes.engine.chi_square import fits
from tests.probes.engine.dense import SHAPE

MODEL = random_model(SHAPE, seed=5, dtype="fp64")
PROMPT = (3, 1, 4, 1, 5)
BLOCKS = tuple(range(8))


def runner() -> TorchRunner:
    return TorchRunner(MODEL, EngineConfig(n_blocks=8, block_tokens=8))


def test_guesses_are_accepted_up_to_the_first_that_is_wrong() -> None:
    assert check_guesses((), (4,)) == Verdict((4,), 0)
    assert check_guesses((5, 6), (5, 6, 7)) == Verdict((5, 6, 7), 2)
    assert check_guesses((5, 6), (9, 6, 7)) == Verdict((9,), 0)


def decode(sampling: SamplingParams, n_tokens: int, drafts_of: Random | None) -> tuple[list[int], int]:
    """Tokens after the prompt and steps taken; drafts are right by a die, where there are some."""
    engine, text, start, n_steps = runner(), list(PROMPT), 0, 0
    truth = decode(sampling, n_tokens + 4, None)[0] if drafts_of else []
    while len(text) < len(PROMPT) + n_tokens:
        known = truth[len(text) - len(PROMPT) :][:3] if drafts_of else []
        drafts = tuple(token if drafts_of and drafts_of.random() < 0.7 else 0 for token in known)
        chunk = Chunk(0, tuple(text[start:]), start, BLOCKS, sampling, drafts)
        (emission,) = engine.run(StepPlan(n_steps, [chunk])).emissions
        assert emission.tokens[: emission.n_accepted] == drafts[: emission.n_accepted]
        start = len(text) + emission.n_accepted
        text += emission.tokens
        n_steps += 1
    return text[len(PROMPT) :][:n_tokens], n_steps


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_guesses_change_no_token_and_save_steps(temperature: float) -> None:
    """What was refused leaves nothing behind in the cache, as the next token is written over it."""
    sampling = SamplingParams(temperature=temperature, top_p=0.95, seed=11)
    plain, n_plain = decode(sampling, 30, None)
    guessed, n_guessed = decode(sampling, 30, Random(1))
    assert guessed == plain
    assert n_plain == 30
    assert n_guessed < 20


def test_drawn_drafts_leave_the_distribution_as_it_is() -> None:
    """Of the first token, and of the second given that the first was accepted."""
    generator = torch.Generator().manual_seed(3)
    target = torch.rand(3, 6, generator=generator, dtype=torch.float64) ** 2
    target /= target.sum(1, keepdim=True)
    proposed = torch.rand(2, 6, generator=generator, dtype=torch.float64) ** 2
    proposed /= proposed.sum(1, keepdim=True)
    dice = Random(4)
    verdicts = []
    for seed in range(6000):
        drafts = drawn(proposed, [dice.random(), dice.random()]).tolist()
        verdicts.append(check_drawn(target, proposed, drafts, seed=seed, position=20))
    assert fits([each.tokens[0] for each in verdicts], target[0].tolist())
    assert fits([each.tokens[1] for each in verdicts if each.n_accepted >= 1], target[1].tolist())
    assert fits([each.tokens[2] for each in verdicts if each.n_accepted == 2], target[2].tolist())
    accepted = sum(each.n_accepted >= 1 for each in verdicts) / len(verdicts)
    wanted = float(torch.minimum(target[0], proposed[0]).sum())
    assert accepted == pytest.approx(wanted, abs=4 * (wanted * (1 - wanted) / len(verdicts)) ** 0.5)


def test_the_test_of_distributions_can_fail() -> None:
    assert not fits([0] * 550 + [1] * 450, [0.4, 0.6])
    assert not fits([0, 1, 2], [0.5, 0.5, 0.0])


def test_a_draft_that_the_model_would_never_give_is_refused_and_one_that_it_must_give_is_not() -> None:
    never, must = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).double(), torch.tensor([[1.0, 0.0], [0.0, 1.0]]).double()
    evenly = torch.tensor([[0.5, 0.5]]).double()
    for seed in range(50):
        assert check_drawn(never, evenly, (0,), seed=seed, position=0) == Verdict((1,), 0)
        assert check_drawn(must, evenly, (0,), seed=seed, position=0) == Verdict((0, 1), 1)


def test_where_model_and_draft_agree_everything_is_accepted() -> None:
    p = torch.tensor([[0.25, 0.75], [0.5, 0.5]]).double()
    for seed in range(50):
        assert check_drawn(p, p[:1], (1,), seed=seed, position=0).n_accepted == 1


def run_drawn(seed: int, proposed: tuple[tuple[float, ...], ...], draft: int) -> Emission:
    sampling = SamplingParams(temperature=0.7, top_k=3, seed=seed)
    chunk = Chunk(0, PROMPT, 0, BLOCKS, sampling, drafts=(draft,), draft_probabilities=proposed, n_best=2)
    (emission,) = runner().run(StepPlan(0, [chunk])).emissions
    return emission


def test_the_runner_checks_drawn_drafts_against_their_distribution() -> None:
    likeliest, _ = decode(SamplingParams(), 1, None)
    sure = tuple(float(token == likeliest[0]) for token in range(SHAPE.vocab_size))
    unlikely = tuple(float(token != likeliest[0]) / (SHAPE.vocab_size - 1) for token in range(SHAPE.vocab_size))
    accepted = [run_drawn(seed, (sure,), likeliest[0]) for seed in range(20)]
    assert 0 < sum(each.n_accepted for each in accepted) < 20, "as often as the model gives it"
    assert all(each.tokens[0] == likeliest[0] for each in accepted if each.n_accepted)
    assert all(each.tokens[0] != likeliest[0] for each in accepted if not each.n_accepted), "its share is used up"
    outside = next(token for token in range(SHAPE.vocab_size) if not _is_among_top(token, 3))
    assert all(run_drawn(seed, (unlikely,), outside).n_accepted == 0 for seed in range(5))


def _is_among_top(token: int, k: int) -> bool:
    chunk = Chunk(0, PROMPT, 0, BLOCKS, SamplingParams(), n_best=k)
    (emission,) = runner().run(StepPlan(0, [chunk])).emissions
    return token in [each for each, _ in emission.best]
