"""Options that several verbs of `diag plan` share: the model, the card, how it is used, and how fast it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from diag.cli import completion
from diag.cli.choices import TextOrJson

# ---- the model -------------------------------------------------------------------------------------------------------

Model: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="One known by name: llama-3-70b.", autocompletion=completion.models)
]
Config: TypeAlias = Annotated[Path | None, typer.Option(metavar="FILE", help="A model's config.json, or its folder.")]
Params: TypeAlias = Annotated[str | None, typer.Option(metavar="N", help="Only a number of parameters: 70B.")]
Layers: TypeAlias = Annotated[int | None, typer.Option(min=1, metavar="N", help="Instead of the model's own.")]
Hidden: TypeAlias = Annotated[int | None, typer.Option(min=1, metavar="N", help="Its hidden size.")]
Heads: TypeAlias = Annotated[int | None, typer.Option(min=1, metavar="N", help="Its heads of queries.")]
KvHeads: TypeAlias = Annotated[int | None, typer.Option(min=1, metavar="N", help="Its heads of keys and values.")]
HeadDim: TypeAlias = Annotated[int | None, typer.Option(min=1, metavar="N", help="Elements of a head.")]
Intermediate: TypeAlias = Annotated[int | None, typer.Option(min=1, metavar="N", help="Width of its feed-forward.")]
Vocab: TypeAlias = Annotated[int | None, typer.Option(min=1, metavar="N", help="Entries of its vocabulary.")]
Tied: TypeAlias = Annotated[
    bool | None, typer.Option("--tied/--untied", help="Whether embedding and output head are one matrix.")
]

# ---- the card --------------------------------------------------------------------------------------------------------

GpuName: TypeAlias = Annotated[str, typer.Option(metavar="NAME", help="Of the card: h100, h200, b200, a100, l40s, ...")]
Memory: TypeAlias = Annotated[str | None, typer.Option(metavar="SIZE", help="Of a card, instead of its own: 80GB.")]
Reserve: TypeAlias = Annotated[float, typer.Option(min=0, max=0.99, metavar="SHARE", help="Of its memory, kept free.")]
TensorParallel: TypeAlias = Annotated[
    int, typer.Option("--tp", min=1, max=1024, metavar="N", help="Cards of a replica.")
]

# ---- how it is used --------------------------------------------------------------------------------------------------

Dtype: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="TYPE", help="Of layers' weights: bf16, fp8, int4, nvfp4, ... As stored, if absent."),
]
OtherDtype: TypeAlias = Annotated[str, typer.Option(metavar="TYPE", help="Of embedding, head, norms and routers.")]
KvDtype: TypeAlias = Annotated[str, typer.Option(metavar="TYPE", help="Of cached keys and values: bf16, fp8.")]
Block: TypeAlias = Annotated[
    int, typer.Option(min=1, max=65536, metavar="N", help="Tokens of a block of the KV cache.")
]
Graphs: TypeAlias = Annotated[str, typer.Option(metavar="SIZE", help="That captured CUDA graphs take on a card.")]
Workspace: TypeAlias = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Of activations on a card. Worked out, if absent.")
]
StepTokens: TypeAlias = Annotated[int, typer.Option(min=1, max=1 << 24, metavar="N", help="Most tokens of a step.")]
MaxSequences: TypeAlias = Annotated[
    int, typer.Option(min=1, max=1 << 16, metavar="N", help="Most sequences of a step.")
]
Context: TypeAlias = Annotated[int | None, typer.Option(min=1, max=1 << 30, metavar="N", help="Tokens of a sequence.")]

# ---- how fast it is --------------------------------------------------------------------------------------------------

ComputeShare: TypeAlias = Annotated[
    float, typer.Option("--mfu", min=0.01, max=1, metavar="SHARE", help="Of the printed FLOP/s, what is reached.")
]
MemoryShare: TypeAlias = Annotated[
    float, typer.Option("--mbu", min=0.01, max=1, metavar="SHARE", help="Of the printed bandwidths, what is reached.")
]
Flops: TypeAlias = Annotated[
    str | None, typer.Option(metavar="RATE", help="That a card reaches, instead of a share: 600TFLOP/s.")
]
MemoryRate: TypeAlias = Annotated[
    str | None, typer.Option(metavar="RATE", help="That its memory reaches, instead of a share: 2.7TB/s.")
]
BusRate: TypeAlias = Annotated[
    str | None, typer.Option("--bandwidth", metavar="RATE", help="Between cards of a replica: 350GB/s.")
]
CallTime: TypeAlias = Annotated[
    str, typer.Option("--latency", metavar="TIME", help="Of the smallest all-reduce between them.")
]

# ---- the answer ------------------------------------------------------------------------------------------------------

Seed: TypeAlias = Annotated[int, typer.Option(min=0, max=1 << 31, metavar="N", help="Of what is drawn.")]
Against: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Hold the plan against a case, or files of a run. May be repeated."),
]
OutputFormat: TypeAlias = Annotated[TextOrJson, typer.Option("--format", "-f", help="How to write it.")]
