"""`diag probe serve`: puts a server under load, and writes down what became of each request."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diag.cli import probe_serve_options as options
from diag.cli.signals import ENDING
from diag.cli.terminal import StatusLine, note, width, write
from diag.errors import NothingToTell, UsageError

if TYPE_CHECKING:
    from diag.model.serving_metrics import Objective
    from diag.probes.serve.load import Progress
    from diag.probes.serve.running import Planned, Ran, Target


def serve(
    url: options.Url = None,
    api: options.Api = None,
    model: options.Model = None,
    api_key_env: options.ApiKeyEnv = None,
    body: options.Body = None,
    token_ids: options.TokenIds = None,
    engine: options.Engine = None,
    rate: options.Rate = None,
    arrival: options.Arrival = None,
    burstiness: options.Burstiness = None,
    concurrency: options.Concurrency = None,
    requests: options.Requests = None,
    seconds: options.Seconds = None,
    trace: options.TraceFile = None,
    warmup: options.Warmup = 0,
    warm_cache: options.WarmCache = False,
    timeout: options.Timeout = 600.0,
    retries: options.Retries = 0,
    most_in_flight: options.MostInFlight = 4096,
    prompt_tokens: options.PromptTokens = None,
    output_tokens: options.OutputTokens = None,
    shared_prefix: options.SharedPrefix = 0.0,
    seed: options.Seed = 0,
    output: options.Output = None,
    label: options.Label = None,
    slo: options.Slo = None,
) -> None:
    """Put a server under load, and measure what its users would see: TTFT, TPOT, ITL, rates, errors.

    With --rate requests come at their own pace (an open loop), with --concurrency as soon as others have ended (a
    closed one). When each was due and when it was sent are both kept. Several rates or concurrencies run in turn.

    Without --url it is the mini-engine that is put under load, in this process.

    Example: diag probe serve --url http://127.0.0.1:8000 --rate 4 --requests 200 -o run.jsonl
    Example: diag probe serve --engine n_blocks=64 --engine prefix_cache=none --concurrency 16 -o engine.jsonl
    Example: diag probe serve --url http://127.0.0.1:8000 --api chat --concurrency 1 --concurrency 8 -o sweep.jsonl

    Exit status 3: The server or the engine cannot be had, or the log not be written.
    Exit status 4: No request completed.
    Environment: TMPDIR
    See also: docs/load.md, docs/engine.md, diag report, diag plan serving
    """
    from diag.model.units import time
    from diag.probes.serve.asked import Asked, planned
    from diag.probes.serve.load import Limits
    from diag.probes.serve.log_file import check_target

    asked = Asked(
        arrival=arrival,
        rates_per_s=rate or (),
        burstiness=burstiness,
        concurrencies=concurrency or (),
        n_requests=requests,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        shared_prefix_share=shared_prefix,
        trace=trace,
        n_warmup=warmup,
        warms_cache=warm_cache,
        seed=seed,
        label=label,
        limits=Limits(seconds=seconds, timeout_s=timeout, n_retries=retries, most_in_flight=most_in_flight),
    )
    loads, objective = planned(asked), _objective(slo)
    if output is not None:
        check_target(output)
    ENDING.kept = "nothing had been sent"
    target = (
        _engine(engine or (), model, {"api": api, "api-key-env": api_key_env, "body": body, "token-ids": token_ids})
        if url is None
        else _server(url, api, model, api_key_env, body, token_ids, engine or ())
    )
    ran = _ran(loads, target, output)
    write(_rendered(loads, ran, objective, output))
    if url is not None and (late := [each.lag.mean_ns for each in ran if each.lag.is_too_large]):
        note(
            f"The load generator was late by {time(max(late))} on average, and so are the times that it took: it, or "
            "this machine, was too busy. Lower the load, or run it from another machine."
        )
    if not any(request.is_completed for each in ran for request in each.requests):
        raise NothingToTell("No request completed; above stands why.")


def _objective(slo: str | None) -> Objective | None:
    from diag.model.written_objective import objective

    try:
        return None if slo is None else objective(slo)
    except ValueError as error:
        raise UsageError(f"--slo: {error}") from error


def _engine(settings: Sequence[str], model: str | None, of_servers: Mapping[str, object]) -> Target:
    from diag.probes.machine import check_torch
    from diag.probes.serve.engine_settings import parse

    if said := next((name for name, value in of_servers.items() if value is not None), None):
        raise UsageError(f"--{said} is for a server. Name one with --url, or leave it out.")
    parsed = parse(settings)
    check_torch()
    from diag.probes.serve.mini_engine import mini_engine

    return mini_engine(parsed, model)


def _server(
    url: str,
    api: options.ApiChoice | None,
    model: str | None,
    key_of: str | None,
    body: str | None,
    token_ids: int | None,
    settings: Sequence[str],
) -> Target:
    import asyncio

    from diag.probes.serve.endpoint import api_key, endpoint
    from diag.probes.serve.openai_client import OpenAiClient, Server, first_model, parsed_body
    from diag.probes.serve.running import Target

    if settings:
        raise UsageError("--engine sets the mini-engine, and --url names another server. Leave one of them out.")
    at, key, fields = endpoint(url, None if api is None else api.value), api_key(key_of), parsed_body(body)
    if token_ids is not None and at.api == "chat":
        raise UsageError(
            "--token-ids is for completions: a chat takes text. Leave it out, or choose --api completions."
        )
    name, owner = (model, None) if model is not None else asyncio.run(first_model(at, key))
    server = Server(at, name, key, fields, sends_tokens=token_ids is not None)
    return Target(lambda _clock, _steps: OpenAiClient(server), backend=owner, model=name, vocabulary=token_ids)


def _ran(loads: Sequence[Planned], target: Target, output: Path | None) -> Sequence[Ran]:
    """Of each run; the log is whole when they have ended, also when an interrupt ended them."""
    from diag.probes.serve.log_file import LogFile
    from diag.probes.serve.running import run

    kept = None if output is None else f"what had ended by then is in {output}"
    ENDING.kept = kept or "nothing is kept of a run without -o FILE"
    runs: list[Ran] = []
    with (
        tempfile.TemporaryDirectory(prefix="diag-") as folder,
        StatusLine() as status,
        LogFile(output or Path(folder) / "run.jsonl") as log,
    ):
        for each in loads:
            which = f"run {len(runs) + 1} of {len(loads)}: " if len(loads) > 1 else ""
            runs.append(run(each, target, log, _shown(status, which)))
    return runs


def _shown(status: StatusLine, which: str) -> Callable[[Progress], None]:
    return lambda progress: status(which + _said(progress))


def _said(progress: Progress) -> str:
    if progress.phase != "measured":
        return f"warming up the {progress.phase.removesuffix('_warmup')}, {progress.n_in_flight:,} in flight"
    ended = ", ".join(f"{n:,} {outcome}" for outcome, n in sorted(progress.ended.items()))
    return f"{progress.n_in_flight:,} in flight, {ended or 'none ended yet'}"


def _rendered(
    loads: Sequence[Planned],
    ran: Sequence[Ran],
    objective: Objective | None,
    output: Path | None,
) -> str:
    from diag.render.escape import one_line
    from diag.render.serving_summary import render_summary

    texts = [
        render_summary(each.requests, width=width(), title=load.title, objective=objective)
        for load, each in zip(loads, ran, strict=True)
    ]
    ending = "Keep the log with -o FILE, for: diag report FILE" if output is None else f"Next: diag report {output}"
    return "\n".join([*texts, one_line(ending) + "\n"])
