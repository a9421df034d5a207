"""`diag plan quantisation`: what narrower types make faster, where, and why not by the ratio of their bits."""

from __future__ import annotations

from typing import Annotated

import typer

from diag.cli import plan_model_options as options
from diag.cli.choices import TextOrJson


def quantisation(
    model: options.Model = None,
    config: options.Config = None,
    to: Annotated[str, typer.Option(metavar="TYPE", help="The type that is taken apart: int4, fp8, nvfp4.")] = "int4",
    base: Annotated[str, typer.Option("--from", metavar="TYPE", help="What it is compared with.")] = "bf16",
    sequences: Annotated[int, typer.Option(min=1, max=1 << 16, metavar="N", help="Of a decode step.")] = 16,
    context: Annotated[int, typer.Option(min=1, max=1 << 24, metavar="N", help="Tokens of each.")] = 2048,
    prompt: Annotated[int, typer.Option(min=1, max=1 << 24, metavar="N", help="Tokens of a prompt.")] = 2048,
    tp: options.TensorParallel = 1,
    gpu: options.GpuName = "h100",
    memory: options.Memory = None,
    reserve: options.Reserve = 0.1,
    other_dtype: options.OtherDtype = "bf16",
    kv_dtype: options.KvDtype = "bf16",
    block: options.Block = 16,
    graphs: options.Graphs = "1GiB",
    workspace: options.Workspace = None,
    step_tokens: options.StepTokens = 8192,
    max_sequences: options.MaxSequences = 256,
    mfu: options.ComputeShare = 0.6,
    mbu: options.MemoryShare = 0.8,
    flops: options.Flops = None,
    memory_rate: options.MemoryRate = None,
    bandwidth: options.BusRate = None,
    latency: options.CallTime = "10us",
    output_format: options.OutputFormat = TextOrJson.TEXT,
) -> None:
    """Tell what types of weights make faster, a decode step or a prompt, and why 4 bits are not 4 times as fast.

    Formulas and sources: docs/capacity.md.

    Example: diag plan quantisation --model llama-3-70b --tp 4
    Example: diag plan quantisation --model llama-3-8b --to fp8 --sequences 64 --gpu l40s

    Exit status 3: A file that an option names could not be read.
    See also: docs/capacity.md, diag plan memory
    """
    from diag.cli import plan_subject
    from diag.cli.plan_answers import show
    from diag.model.plan_quantisation import Case
    from diag.model.plan_quantisation import quantisation as answers
    from diag.model.precision import precision

    of = plan_subject.planned_model(plan_subject.ModelWords(model, config, None, {}))
    wide, narrow = precision(base), precision(to)
    words = plan_subject.UseWords(
        gpu, memory, reserve, base, other_dtype, kv_dtype, block, graphs, workspace, step_tokens, max_sequences
    )
    use = plan_subject.card_use(words, of, tp)
    rates = plan_subject.RateWords(mfu, mbu, flops, memory_rate, bandwidth, latency)
    case = Case(
        model=of,
        use=use,
        rates=lambda weights: plan_subject.card_rates(rates, use.card, weights, tp),
        sequences=sequences,
        context_tokens=context,
        prompt_tokens=prompt,
    )
    types = list(
        {each.name: each for each in (wide, *map(precision, ("fp8", "int8", "int4", "nvfp4")), narrow)}.values()
    )
    said = [*use.assumptions(of), *plan_subject.rate_assumptions(rates, use.card, wide, tp)]
    found = answers(case, types, narrow, said)
    show(found, output_format)
