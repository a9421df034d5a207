"""Options of `diag probe serve`: of the server, of the requests, and of how they come."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

# ---- what serves -----------------------------------------------------------------------------------------------------


class ApiChoice(enum.StrEnum):
    COMPLETIONS = "completions"
    CHAT = "chat"


Url: TypeAlias = Annotated[
    str | None, typer.Option(metavar="URL", help="Of an OpenAI-compatible server (default: the mini-engine, here).")
]
Api: TypeAlias = Annotated[ApiChoice | None, typer.Option(help="Which of its addresses (default: completions).")]
Model: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Of a server (default: its first); of the engine: tiny, small, 1b or a folder."),
]
ApiKeyEnv: TypeAlias = Annotated[
    str | None, typer.Option(metavar="VARIABLE", help="The environment variable that holds its API key.")
]
Body: TypeAlias = Annotated[
    str | None, typer.Option(metavar="JSON", help="More fields of each request; null takes one away.")
]
TokenIds: TypeAlias = Annotated[
    int | None, typer.Option(min=2, metavar="N", help="Send prompts as token ids below N, for exact lengths.")
]
Engine: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="Of the mini-engine; may be repeated. A wrong KEY lists them all."),
]

# ---- how requests come -----------------------------------------------------------------------------------------------

Rate: TypeAlias = Annotated[
    list[float] | None, typer.Option(metavar="PER_S", help="Open loop: requests a second; several are a sweep.")
]
Arrival: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="poisson, gamma, constant, at_once, trace or closed (default: what fits)."),
]
Burstiness: TypeAlias = Annotated[
    float | None, typer.Option(metavar="CV", help="Of gamma: deviation of the gaps by their mean; Poisson has 1.")
]
Concurrency: TypeAlias = Annotated[
    list[int] | None, typer.Option(metavar="N", help="Closed loop: requests in flight; several are a sweep.")
]
Requests: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", help="How many are measured (default: 100, or those of the trace).")
]
Seconds: TypeAlias = Annotated[
    float | None, typer.Option(metavar="S", help="Send no more after S; those in flight may end.")
]
TraceFile: TypeAlias = Annotated[
    Path | None, typer.Option("--trace", metavar="FILE", help="Arrivals and lengths, as JSON lines or CSV.")
]
Warmup: TypeAlias = Annotated[int, typer.Option(metavar="N", help="Requests before, which warm up the engine only.")]
WarmCache: TypeAlias = Annotated[
    bool, typer.Option("--warm-cache", help="Send the shared prefix before, so that it is cached.")
]
Timeout: TypeAlias = Annotated[float, typer.Option(metavar="S", help="For a whole answer.")]
Retries: TypeAlias = Annotated[int, typer.Option(metavar="N", help="Of what failed; each is a record of its own.")]
MostInFlight: TypeAlias = Annotated[int, typer.Option(metavar="N", help="Open loop: more wait, and the log says so.")]

# ---- what they ask for -----------------------------------------------------------------------------------------------

PromptTokens: TypeAlias = Annotated[
    str | None, typer.Option(metavar="LENGTH", help="128, uniform:100-200, lognormal:MEDIAN,SIGMA[,LONGEST].")
]
OutputTokens: TypeAlias = Annotated[str | None, typer.Option(metavar="LENGTH", help="The most of each answer.")]
SharedPrefix: TypeAlias = Annotated[
    float, typer.Option(metavar="SHARE", help="Of each prompt's tokens, its first ones, that all have in common.")
]
Seed: TypeAlias = Annotated[int, typer.Option(metavar="N", help="Of arrivals, lengths and tokens.")]

# ---- what becomes of it ----------------------------------------------------------------------------------------------

Output: TypeAlias = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Keep the log, for: diag report FILE")
]
Label: TypeAlias = Annotated[str | None, typer.Option(metavar="TEXT", help="What to call the run.")]
Slo: TypeAlias = Annotated[
    str | None, typer.Option(metavar="LIMITS", help="For goodput: ttft=500ms,tpot=50ms (also e2e).")
]
