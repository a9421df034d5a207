"""`diag plan serving`: how many requests cards serve, in which layout, and what one costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diag.cli import plan_model_options as options
from diag.cli.choices import TextOrJson
from diag.cli.terminal import StatusLine


def serving(
    model: options.Model = None,
    config: options.Config = None,
    layers: options.Layers = None,
    hidden: options.Hidden = None,
    heads: options.Heads = None,
    kv_heads: options.KvHeads = None,
    head_dim: options.HeadDim = None,
    intermediate: options.Intermediate = None,
    vocab: options.Vocab = None,
    tied: options.Tied = None,
    gpus: Annotated[int, typer.Option(min=1, max=1024, metavar="N", help="Cards that serve it.")] = 8,
    tp: Annotated[
        int | None, typer.Option(min=1, max=1024, metavar="N", help="Cards of a replica. All sizes, if absent.")
    ] = None,
    domain: Annotated[
        int, typer.Option(min=1, max=1024, metavar="N", help="Cards that share NVLink: the largest replica tried.")
    ] = 8,
    rate: Annotated[
        float | None, typer.Option(min=1e-6, max=1e9, metavar="PER_S", help="Requests per second that arrive.")
    ] = None,
    stay: Annotated[
        str | None, typer.Option(metavar="TIME", help="That a request stays: with --rate, how many are in flight.")
    ] = None,
    prompt: Annotated[
        str, typer.Option(metavar="TOKENS", help="2500, 100-200 (uniform) or lognormal:500:0.8 (median, sigma).")
    ] = "lognormal:1000:0.8",
    output: Annotated[str, typer.Option(metavar="TOKENS", help="In the same way.")] = "lognormal:250:0.8",
    lengths: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Take both from the requests of a measured run.")
    ] = None,
    ttft: Annotated[str | None, typer.Option(metavar="TIME", help="Objective: 1s.")] = None,
    tpot: Annotated[str | None, typer.Option(metavar="TIME", help="Objective: 50ms.")] = None,
    overflow: Annotated[
        float, typer.Option(min=0, max=0.5, metavar="SHARE", help="Of moments in which the KV pool may be too small.")
    ] = 0.01,
    safety: Annotated[
        float, typer.Option(min=0.01, max=1, metavar="SHARE", help="Of what is possible, what is admitted.")
    ] = 0.8,
    price: Annotated[
        float | None, typer.Option(min=0.001, max=1e6, metavar="N", help="Of a card for an hour, in dollars.")
    ] = None,
    gpu: options.GpuName = "h100",
    memory: options.Memory = None,
    reserve: options.Reserve = 0.1,
    dtype: options.Dtype = None,
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
    seed: options.Seed = 0,
    against: options.Against = None,
    output_format: options.OutputFormat = TextOrJson.TEXT,
) -> None:
    """Tell which layout of cards serves most requests within the objectives, how many fit at once, and what one costs.

    Also how many requests are in flight (--rate, --stay). Formulas and sources: docs/capacity.md.

    Example: diag plan serving --rate 8 --stay 6s
    Example: diag plan serving --model llama-3-70b --gpus 8 --ttft 1s --tpot 50ms --rate 6 --price 2.5
    Example: diag plan serving --model llama-3-70b --lengths run.jsonl --ttft 1s --tpot 50ms --against run.jsonl

    Exit status 3: A file that an option names could not be read.
    Environment: DIAG_CACHE, DIAG_CACHE_BYTES, DIAG_PLUGINS, DIAG_NSYS, TMPDIR
    See also: docs/capacity.md, docs/serving.md, diag probe serve
    """
    from diag.cli import plan_against, plan_load, plan_subject
    from diag.cli.plan_answers import show
    from diag.errors import UsageError
    from diag.model.plan_serving import Load, lay_out, little
    from diag.model.plan_serving import serving as answers

    numbers = {
        "n_layers": layers, "hidden_size": hidden, "n_heads": heads, "n_kv_heads": kv_heads, "head_dim": head_dim,
        "intermediate_size": intermediate, "vocab_size": vocab,
    }  # fmt: skip
    stay_ns = plan_load.stay_ns(rate, stay)
    found = [little(rate, stay_ns)] if rate is not None and stay_ns is not None else []
    if found and model is None and config is None and not any(numbers.values()):
        if against:
            raise UsageError("--against needs a plan to compare: name --model or --config.")
        show(found, output_format)
        return
    of = plan_subject.planned_model(plan_subject.ModelWords(model, config, None, numbers, tied))
    words = plan_subject.UseWords(
        gpu, memory, reserve, dtype, other_dtype, kv_dtype, block, graphs, workspace, step_tokens, max_sequences
    )
    rates = plan_subject.RateWords(mfu, mbu, flops, memory_rate, bandwidth, latency)
    with StatusLine() as status:
        load = Load(
            requests=plan_load.requests(prompt, output, lengths, seed, status),
            requests_per_s=rate,
            objectives=plan_load.objectives(ttft, tpot),
            overflow_share=overflow,
            safety=safety,
            price_per_hour=price,
            seed=seed,
        )
        layouts = [
            lay_out(of, use, plan_subject.card_rates(rates, use.card, use.weights, use.tp), gpus // use.tp, load)
            for size in plan_load.group_sizes(of, gpus, tp, domain)
            for use in [plan_subject.card_use(words, of, size)]
        ]
        widest = layouts[0].use
        said = [
            *widest.assumptions(of),
            *plan_subject.rate_assumptions(rates, widest.card, widest.weights, widest.tp),
        ]
        found += answers(of, layouts, load, said)
        if against:
            found += plan_against.of_serving(against, layouts, status)
    show(found, output_format)
