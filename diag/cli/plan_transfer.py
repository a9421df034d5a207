"""`diag plan transfer`: what it takes to move keys and values, and when it is better to work them out anew."""

from __future__ import annotations

from typing import Annotated

import typer

from diag.cli import plan_model_options as options
from diag.cli.choices import TextOrJson


def transfer(
    size: Annotated[str | None, typer.Option(metavar="SIZE", help="What is moved, without a model: 1GiB.")] = None,
    model: options.Model = None,
    config: options.Config = None,
    prompt: Annotated[int, typer.Option(min=1, max=1 << 24, metavar="N", help="Tokens whose KV is needed.")] = 4096,
    tp: options.TensorParallel = 1,
    link: Annotated[
        str, typer.Option("--bandwidth", metavar="RATE", help="Between replicas, for each card: 50GB/s, 400Gbit/s.")
    ] = "50GB/s",
    delay: Annotated[str, typer.Option("--latency", metavar="TIME", help="Of each message between them.")] = "0s",
    host_link: Annotated[
        str | None, typer.Option("--host-bandwidth", metavar="RATE", help="Of a card to its host. PCIe, if absent.")
    ] = None,
    gpu: options.GpuName = "h100",
    dtype: options.Dtype = None,
    kv_dtype: options.KvDtype = "bf16",
    mfu: options.ComputeShare = 0.6,
    mbu: options.MemoryShare = 0.8,
    flops: options.Flops = None,
    memory_rate: options.MemoryRate = None,
    bus: Annotated[str | None, typer.Option(metavar="RATE", help="Between cards of a replica: 350GB/s.")] = None,
    call: Annotated[str, typer.Option(metavar="TIME", help="Of the smallest all-reduce between them.")] = "10us",
    output_format: options.OutputFormat = TextOrJson.TEXT,
) -> None:
    """Tell how long keys and values are on their way, what of it a prefill hides, and when to recompute instead.

    Formulas and sources: docs/capacity.md.

    Example: diag plan transfer --size 1GiB --bandwidth 50GB/s
    Example: diag plan transfer --model llama-3-70b --tp 8 --prompt 8000 --bandwidth 400Gbit/s

    Exit status 3: A file that an option names could not be read.
    See also: docs/capacity.md, diag plan comm
    """
    from diag.cli import plan_subject
    from diag.cli.plan_answers import show
    from diag.cli.plan_questions import parsed
    from diag.errors import UsageError
    from diag.model import written
    from diag.model.kv_transfer import Way
    from diag.model.plan_transfer import Prompt, of_prompt, one_transfer
    from diag.model.precision import precision
    from diag.model.serving_roofline import ServedModel

    bandwidth = parsed("--bandwidth", link, written.bytes_per_s) or 0.0
    latency_ns = parsed("--latency", delay, written.time_ns) or 0.0
    n_bytes = parsed("--size", size, written.size_bytes)
    found = [one_transfer(n_bytes, Way("link", bandwidth, latency_ns))] if n_bytes is not None else []
    if model is not None or config is not None:
        of = plan_subject.planned_model(plan_subject.ModelWords(model, config, None, {}))
        plan_subject.check_tp(of, tp)
        on, weights = plan_subject.planned_card(gpu, None), plan_subject.weights_of(dtype, of)
        rates = plan_subject.RateWords(mfu, mbu, flops, memory_rate, bus, call)
        host = parsed("--host-bandwidth", host_link, written.bytes_per_s) or on.host_bytes_per_s
        if host is None:
            raise UsageError(f"What joins {on.name} to its host is not printed: name --host-bandwidth 50GB/s.")
        assert of.shape is not None
        served = ServedModel(of.shape, of.parts, weights, precision("bf16"), precision(kv_dtype), tp)
        found += of_prompt(
            Prompt(
                model=of,
                served=served,
                rates=plan_subject.card_rates(rates, on, weights, tp),
                tokens=prompt,
                fetch=Way("fetch", bandwidth, latency_ns),
                swap=Way("swap", host),
            ),
            [plan_subject.type_assumption(weights, kv_dtype), *plan_subject.rate_assumptions(rates, on, weights, tp)],
        )
    if not found:
        raise UsageError("What is moved? Name --size 1GiB, or --model llama-3-70b with --prompt 8000.")
    show(found, output_format)
