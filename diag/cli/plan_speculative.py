"""`diag plan speculative`: whether drafting pays, and up to how many sequences."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diag.cli import completion
from diag.cli import plan_model_options as options
from diag.cli.choices import TextOrJson
from diag.cli.terminal import StatusLine


def speculative(
    acceptance: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="Probability that a drafted token is accepted.")
    ] = 0.7,
    draft: Annotated[int, typer.Option("-k", "--draft", min=1, max=64, metavar="K", help="Tokens of a draft.")] = 4,
    draft_cost: Annotated[
        float | None, typer.Option(min=0, max=1000, metavar="X", help="Of a step of the draft, in steps of the target.")
    ] = None,
    verify_cost: Annotated[
        float | None, typer.Option(min=0.01, max=1000, metavar="X", help="Of a verification, in steps of the target.")
    ] = None,
    model: options.Model = None,
    config: options.Config = None,
    draft_model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="One known by name; with --model, both costs by the roofline.",
            autocompletion=completion.models,
        ),
    ] = None,
    draft_config: Annotated[Path | None, typer.Option(metavar="FILE", help="Its config.json instead.")] = None,
    sequences: Annotated[int, typer.Option(min=1, max=1 << 16, metavar="N", help="That share a step.")] = 1,
    context: Annotated[int, typer.Option(min=1, max=1 << 24, metavar="N", help="Tokens of each.")] = 2048,
    tp: options.TensorParallel = 1,
    gpu: options.GpuName = "h100",
    dtype: options.Dtype = None,
    kv_dtype: options.KvDtype = "bf16",
    mfu: options.ComputeShare = 0.6,
    mbu: options.MemoryShare = 0.8,
    flops: options.Flops = None,
    memory_rate: options.MemoryRate = None,
    bandwidth: options.BusRate = None,
    latency: options.CallTime = "10us",
    against: options.Against = None,
    output_format: options.OutputFormat = TextOrJson.TEXT,
) -> None:
    """Tell how many tokens a verification yields, whether that pays for what it costs, and from which acceptance on.

    Formulas and sources: docs/capacity.md.

    Example: diag plan speculative --acceptance 0.7 -k 4 --draft-cost 0.05 --verify-cost 1.1
    Example: diag plan speculative --model llama-3-70b --draft-model llama-3.2-1b --tp 8 --acceptance 0.7 -k 4

    Exit status 3: A file that an option names could not be read.
    Environment: DIAG_CACHE, DIAG_CACHE_BYTES, DIAG_PLUGINS, DIAG_NSYS, TMPDIR
    See also: docs/capacity.md, diag plan serving
    """
    from diag.cli import plan_against, plan_pair
    from diag.cli.plan_answers import show
    from diag.cli.plan_subject import ModelWords, RateWords
    from diag.errors import UsageError
    from diag.model.plan_speculative import Speculation, by_sequences, costs
    from diag.model.plan_speculative import speculative as answer
    from diag.model.units import count

    found = []
    if model is not None or config is not None:
        if draft_cost is not None or verify_cost is not None:
            raise UsageError(
                "With a model both costs come from the roofline: leave out --draft-cost and --verify-cost."
            )
        if draft_model is None and draft_config is None:
            raise UsageError("What drafts? Name --draft-model llama-3.2-1b or --draft-config config.json.")
        words = plan_pair.PairWords(
            ModelWords(model, config, None, {}), ModelWords(draft_model, draft_config, None, {}), gpu, tp, dtype,
            kv_dtype, context, RateWords(mfu, mbu, flops, memory_rate, bandwidth, latency),
        )  # fmt: skip
        pair, origin = plan_pair.pair(words)
        of = Speculation(acceptance, draft, *costs(pair, sequences, draft))
        found = [
            answer(
                of,
                [*origin, f"Both costs by the roofline, for {count(sequences, 'sequence')} in a step (--sequences)."],
                lambda k: costs(pair, sequences, k)[1],
            ),
            by_sequences(pair, acceptance, draft),
        ]
    elif draft_model is not None or draft_config is not None:
        raise UsageError("What verifies? Name --model llama-3-70b or --config config.json.")
    else:
        of = Speculation(acceptance, draft, draft_cost if draft_cost is not None else 0.1, verify_cost or 1.0)
        found = [answer(of, ["Costs as given, in steps of the target (--draft-cost, --verify-cost)."])]
    if against:
        with StatusLine() as status:
            found += plan_against.of_speculation(against, of, status)
    show(found, output_format)
