"""`diag plan memory`: what of a model lies on each card, and whether it fits."""

from __future__ import annotations

from typing import Annotated

import typer

from diag.cli import plan_model_options as options
from diag.cli.choices import TextOrJson
from diag.cli.terminal import StatusLine


def memory(
    model: options.Model = None,
    config: options.Config = None,
    params: options.Params = None,
    layers: options.Layers = None,
    hidden: options.Hidden = None,
    heads: options.Heads = None,
    kv_heads: options.KvHeads = None,
    head_dim: options.HeadDim = None,
    intermediate: options.Intermediate = None,
    vocab: options.Vocab = None,
    tied: options.Tied = None,
    gpu: options.GpuName = "h100",
    memory: options.Memory = None,
    reserve: options.Reserve = 0.1,
    tp: options.TensorParallel = 1,
    replicas: Annotated[int, typer.Option(min=1, max=65536, metavar="N", help="Copies of the model.")] = 1,
    dtype: options.Dtype = None,
    other_dtype: options.OtherDtype = "bf16",
    kv_dtype: options.KvDtype = "bf16",
    block: options.Block = 16,
    graphs: options.Graphs = "1GiB",
    workspace: options.Workspace = None,
    step_tokens: options.StepTokens = 8192,
    max_sequences: options.MaxSequences = 256,
    sequences: Annotated[
        int | None, typer.Option(min=1, max=1 << 24, metavar="N", help="That should fit at once, each of --context.")
    ] = None,
    context: options.Context = None,
    training: Annotated[bool, typer.Option("--training", help="A training step with AdamW instead.")] = False,
    dp: Annotated[int, typer.Option(min=1, max=65536, metavar="N", help="Data parallel replicas (training).")] = 1,
    pp: Annotated[int, typer.Option(min=1, max=1024, metavar="N", help="Pipeline stages (training).")] = 1,
    zero: Annotated[int, typer.Option(min=0, max=3, metavar="N", help="Stage of ZeRO; 0: DDP, 3: FSDP.")] = 0,
    seq: Annotated[
        int | None, typer.Option(min=1, max=1 << 24, metavar="N", help="Tokens of a sequence (training).")
    ] = None,
    micro_batch: Annotated[int, typer.Option(min=1, max=65536, metavar="N", help="Sequences of a micro-batch.")] = 1,
    micro_batches: Annotated[int, typer.Option(min=1, max=65536, metavar="N", help="Of a replica in a step.")] = 1,
    recompute: Annotated[str, typer.Option(metavar="HOW", help="Of activations: none, selective, full.")] = "none",
    flash: Annotated[bool, typer.Option("--flash/--no-flash", help="Whether attention keeps no probabilities.")] = True,
    sequence_parallel: Annotated[
        bool, typer.Option("--sequence-parallel", help="Tensor parallel ranks share out the tokens.")
    ] = False,
    fp32_gradients: Annotated[bool, typer.Option("--fp32-gradients", help="Gradients in FP32.")] = False,
    prefetch: Annotated[int, typer.Option(min=0, max=1024, metavar="N", help="Layers that FSDP gathers ahead.")] = 1,
    against: options.Against = None,
    output_format: options.OutputFormat = TextOrJson.TEXT,
) -> None:
    """Tell whether a model fits on its cards, and how many tokens of KV cache remain; or a training step (--training).

    Formulas and sources: docs/capacity.md.

    Example: diag plan memory --model llama-3-70b --tp 8
    Example: diag plan memory --model llama-3-70b --tp 8 --sequences 64 --context 2500
    Example: diag plan memory --config config.json --dtype int4 --gpu l40s
    Example: diag plan memory --params 7B --training --dp 8 --zero 3

    Exit status 3: A file that an option names could not be read.
    Environment: DIAG_CACHE, DIAG_CACHE_BYTES, DIAG_PLUGINS, DIAG_NSYS, TMPDIR
    See also: docs/capacity.md, diag plan serving
    """
    from diag.cli import plan_against, plan_subject, plan_training_layout
    from diag.cli.plan_answers import show
    from diag.model.plan_memory import Wanted
    from diag.model.plan_memory import memory as answer
    from diag.model.plan_training_memory import training as training_answer

    numbers = {
        "n_layers": layers, "hidden_size": hidden, "n_heads": heads, "n_kv_heads": kv_heads, "head_dim": head_dim,
        "intermediate_size": intermediate, "vocab_size": vocab,
    }  # fmt: skip
    of = plan_subject.planned_model(plan_subject.ModelWords(model, config, params, numbers, tied))
    plan_training_layout.check_asked(
        training,
        {
            "--dp": dp > 1, "--pp": pp > 1, "--zero": zero > 0, "--seq": seq is not None,
            "--micro-batch": micro_batch > 1, "--micro-batches": micro_batches > 1, "--recompute": recompute != "none",
            "--no-flash": not flash, "--sequence-parallel": sequence_parallel, "--fp32-gradients": fp32_gradients,
            "--prefetch": prefetch != 1,
        },
        {
            "--sequences": sequences is not None, "--context": context is not None, "--replicas": replicas > 1,
            "--dtype": dtype is not None, "--other-dtype": other_dtype != "bf16", "--kv-dtype": kv_dtype != "bf16",
            "--block": block != 16, "--graphs": graphs != "1GiB", "--workspace": workspace is not None,
            "--step-tokens": step_tokens != 8192, "--max-sequences": max_sequences != 256,
        },
    )  # fmt: skip
    plan_subject.check_sequences(of, sequences, context)
    words = plan_subject.UseWords(
        gpu, memory, reserve, dtype, other_dtype, kv_dtype, block, graphs, workspace, step_tokens, max_sequences
    )
    use = plan_subject.card_use(words, of, tp)
    if training:
        layout = plan_training_layout.layout(
            of, tp=tp, pp=pp, dp=dp, zero=zero, sequence=seq, micro_batch=micro_batch, micro_batches=micro_batches,
            recompute=recompute, flash=flash, sequence_parallel=sequence_parallel, fp32_gradients=fp32_gradients,
            prefetch=prefetch,
        )  # fmt: skip
        found = [training_answer(of, use.card, reserve, layout)]
    else:
        layout = None
        found = [answer(of, use, Wanted(sequences, context), replicas)]
    if against:
        with StatusLine() as status:
            found += plan_against.of_memory(against, of, use, layout, status)
    show(found, output_format)
