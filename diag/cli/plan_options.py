"""Options of `diag plan comm`: of one collective, of the fabric, of the layout of a job, and of what it trains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from diag.cli.choices import TextOrJson

# ---- one collective --------------------------------------------------------------------------------------------------

Gpus: TypeAlias = Annotated[int | None, typer.Option(min=1, metavar="N", help="GPUs of one collective.")]
CallSize: TypeAlias = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Its size, as nccl-tests counts it: 2GB.")
]
Operation: TypeAlias = Annotated[str, typer.Option(metavar="NAME", help="all_reduce, all_gather, reduce_scatter, ...")]

# ---- how fast it is --------------------------------------------------------------------------------------------------

BusRate: TypeAlias = Annotated[
    str | None, typer.Option(metavar="RATE", help="Of the bus, in a domain of NVLink: 350GB/s.")
]
HopTime: TypeAlias = Annotated[str | None, typer.Option(metavar="TIME", help="Of one hop between neighbours: 5us.")]
FitFile: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Take both, with errors, from nccl-tests or a case.")
]
NetworkRate: TypeAlias = Annotated[
    str | None, typer.Option(metavar="RATE", help="Of the network, for each GPU: 400Gbit/s.")
]
DomainGpus: TypeAlias = Annotated[int, typer.Option(min=1, metavar="N", help="GPUs that share NVLink.")]

# ---- the layout of a job ---------------------------------------------------------------------------------------------

TensorParallel: TypeAlias = Annotated[int, typer.Option(min=1, metavar="N", help="Tensor parallel ranks.")]
ContextParallel: TypeAlias = Annotated[int, typer.Option(min=1, metavar="N", help="Context parallel ranks.")]
DataParallel: TypeAlias = Annotated[int, typer.Option(min=1, metavar="N", help="Data parallel replicas.")]
PipelineStages: TypeAlias = Annotated[int, typer.Option(min=1, metavar="N", help="Pipeline stages.")]
ExpertParallel: TypeAlias = Annotated[
    int, typer.Option(min=1, metavar="N", help="Expert parallel ranks, out of cp x dp.")
]
MicroBatches: TypeAlias = Annotated[int, typer.Option(min=1, metavar="N", help="Of a replica in a step.")]
Chunks: TypeAlias = Annotated[int, typer.Option(min=1, metavar="N", help="Of the model on each stage (interleaved).")]
SequenceParallel: TypeAlias = Annotated[
    bool, typer.Option("--sequence-parallel", help="Tensor parallel ranks share out the tokens.")
]
Zero: TypeAlias = Annotated[int, typer.Option(min=0, max=3, metavar="N", help="Stage of ZeRO; 0: DDP, 3: FSDP.")]

# ---- what it trains --------------------------------------------------------------------------------------------------

Parameters: TypeAlias = Annotated[str | None, typer.Option(metavar="N", help="Parameters outside of experts: 70B.")]
Layers: TypeAlias = Annotated[int | None, typer.Option(min=1, metavar="N", help="Of the transformer.")]
HiddenSize: TypeAlias = Annotated[int | None, typer.Option(min=1, metavar="N", help="Its hidden size.")]
SequenceTokens: TypeAlias = Annotated[int | None, typer.Option(min=1, metavar="N", help="Tokens of a sequence.")]
Dtype: TypeAlias = Annotated[str, typer.Option(metavar="TYPE", help="Of what is sent: bf16, fp16, fp32, fp8.")]
AttentionRate: TypeAlias = Annotated[
    str | None, typer.Option(metavar="RATE", help="Of a GPU in attention: 400TFLOP/s.")
]

# ---- experts ---------------------------------------------------------------------------------------------------------

Experts: TypeAlias = Annotated[int | None, typer.Option(min=1, metavar="N", help="Of an MoE layer.")]
TopK: TypeAlias = Annotated[int, typer.Option(min=1, metavar="K", help="Experts of a token.")]
CapacityFactor: TypeAlias = Annotated[
    float, typer.Option(min=0.01, max=1000, metavar="X", help="Room of an expert over its share.")
]
ExpertLoad: TypeAlias = Annotated[
    str | None, typer.Option(metavar="N,N,...", help="Tokens that each expert got: what is dropped?")
]

# ---- the answer ------------------------------------------------------------------------------------------------------

OutputFormat: TypeAlias = Annotated[TextOrJson, typer.Option("--format", "-f", help="How to write it.")]
