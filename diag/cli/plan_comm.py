"""`diag plan comm`: what collectives and layouts of a job communicate, and how long that takes.

One verb and not one for each question: bandwidth and sizes are those of one job, and most questions share them. Each
is answered as soon as the options are there that it needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diag.cli.choices import TextOrJson
from diag.cli.terminal import StatusLine, width, write


def comm(
    gpus: Annotated[int | None, typer.Option(min=1, metavar="N", help="GPUs of one collective.")] = None,
    size: Annotated[str | None, typer.Option(metavar="SIZE", help="Its size, as nccl-tests counts it: 2GB.")] = None,
    op: Annotated[str, typer.Option(metavar="NAME", help="all_reduce, all_gather, reduce_scatter, ...")] = "all_reduce",
    bandwidth: Annotated[
        str | None, typer.Option(metavar="RATE", help="Of the bus, in a domain of NVLink: 350GB/s.")
    ] = None,
    latency: Annotated[str | None, typer.Option(metavar="TIME", help="Of one hop between neighbours: 5us.")] = None,
    fit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Take both, with errors, from nccl-tests or a case.")
    ] = None,
    network: Annotated[
        str | None, typer.Option(metavar="RATE", help="Of the network, for each GPU: 400Gbit/s.")
    ] = None,
    domain: Annotated[int, typer.Option(min=1, metavar="N", help="GPUs that share NVLink.")] = 8,
    tp: Annotated[int, typer.Option(min=1, metavar="N", help="Tensor parallel ranks.")] = 1,
    cp: Annotated[int, typer.Option(min=1, metavar="N", help="Context parallel ranks.")] = 1,
    dp: Annotated[int, typer.Option(min=1, metavar="N", help="Data parallel replicas.")] = 1,
    pp: Annotated[int, typer.Option(min=1, metavar="N", help="Pipeline stages.")] = 1,
    ep: Annotated[int, typer.Option(min=1, metavar="N", help="Expert parallel ranks, out of cp x dp.")] = 1,
    micro_batches: Annotated[int, typer.Option(min=1, metavar="N", help="Of a replica in a step.")] = 1,
    chunks: Annotated[int, typer.Option(min=1, metavar="N", help="Of the model on each stage (interleaved).")] = 1,
    sequence_parallel: Annotated[
        bool, typer.Option("--sequence-parallel", help="Tensor parallel ranks share out the tokens.")
    ] = False,
    zero: Annotated[int, typer.Option(min=0, max=3, metavar="N", help="Stage of ZeRO; 0: DDP, 3: FSDP.")] = 0,
    params: Annotated[str | None, typer.Option(metavar="N", help="Parameters outside of experts: 70B.")] = None,
    layers: Annotated[int | None, typer.Option(min=1, metavar="N", help="Of the transformer.")] = None,
    hidden: Annotated[int | None, typer.Option(min=1, metavar="N", help="Its hidden size.")] = None,
    seq: Annotated[int | None, typer.Option(min=1, metavar="N", help="Tokens of a sequence.")] = None,
    dtype: Annotated[str, typer.Option(metavar="TYPE", help="Of what is sent: bf16, fp16, fp32, fp8.")] = "bf16",
    flops: Annotated[str | None, typer.Option(metavar="RATE", help="Of a GPU in attention: 400TFLOP/s.")] = None,
    experts: Annotated[int | None, typer.Option(min=1, metavar="N", help="Of an MoE layer.")] = None,
    top_k: Annotated[int, typer.Option(min=1, metavar="K", help="Experts of a token.")] = 1,
    capacity_factor: Annotated[
        float, typer.Option(min=0.01, max=1000, metavar="X", help="Room of an expert over its share.")
    ] = 1.0,
    load: Annotated[
        str | None, typer.Option(metavar="N,N,...", help="Tokens that each expert got: what is dropped?")
    ] = None,
    output_format: Annotated[TextOrJson, typer.Option("--format", "-f", help="How to write it.")] = TextOrJson.TEXT,
) -> None:
    """Tell what a collective takes (--gpus, --size), or a training step (--params, --layers, --hidden, --seq).

    Also the bubble of a pipeline (--pp, --micro-batches), the capacity of experts (--experts, --seq) and what context
    parallelism moves (--cp, --hidden, --seq). Formulas and sources: docs/collectives.md.

    Example: diag plan comm --gpus 8 --size 2GB --bandwidth 350GB/s

    Example: diag plan comm --gpus 64 --size 1MB --fit nccl-tests.txt

    Example: diag plan comm --pp 4 --micro-batches 12

    Example: diag plan comm --tp 8 --pp 4 --dp 16 --micro-batches 32 --params 70B --layers 80 --hidden 8192 --seq 8192
    --bandwidth 350GB/s --network 400Gbit/s
    """
    from diag.cli import plan_questions as questions
    from diag.model.parallelism import Step
    from diag.model.placement import Layout
    from diag.render.plan import render_json, render_text

    layout = Layout(tp, cp, ep, dp, pp)
    questions.check_gpus(gpus, size, layout)
    model = questions.transformer(params, layers, hidden, seq, dtype, top_k, has_experts=ep > 1)
    with StatusLine() as status:
        speeds = questions.speeds(bandwidth, latency, fit, network, questions.primitive(op), gpus, status)
    found = [
        *questions.of_call(op, size, gpus, domain, speeds),
        *questions.of_pipeline(pp, micro_batches, chunks),
        *questions.of_experts(experts, seq, top_k, capacity_factor, load),
        *questions.of_context(cp, hidden, seq, dtype, flops, speeds),
        *questions.of_layout(
            layout, model, Step(micro_batches, chunks, questions.zero_stage(zero), sequence_parallel), domain, speeds
        ),
    ]
    questions.check_any(found)
    write(render_json(found) if output_format is TextOrJson.JSON else render_text(found, width=width()))
