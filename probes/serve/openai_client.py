"""A client of any server that speaks OpenAI's completions or chat completions, streamed.

Times are taken when bytes arrive, before they are parsed; the connection of a first request is part of its TTFT, as its
user would see. The server is not trusted: redirects are not followed, and lines, answers and silences are bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

import msgspec

from diag import __version__
from diag.errors import InputError, ToolMissing, UsageError
from diag.probes.serve.client import Answer, Clock, NotServed
from diag.probes.serve.endpoint import Endpoint
from diag.probes.serve.prompt_text import text
from diag.probes.serve.sse import EventStream, MalformedStream
from diag.probes.serve.stream import StreamReader, shown
from diag.probes.serve.workload import PlannedRequest

try:
    import httpx

    from diag.probes.serve.connections import Connections
except ImportError as error:
    raise ToolMissing("Load on a server needs httpx. Install it: pip install 'gpu-diag[probes]'") from error

MOST_BYTES = 1 << 26
"""Of one answer."""
MOST_BYTES_OF_ERROR = 1 << 12
MOST_BYTES_OF_MODELS = 1 << 20
CONNECT_S = 10.0
IDLE_S = 2.0
"""For which an idle connection is kept: servers close theirs after 5 s or so, maybe just when a request takes it."""
LAST_BYTES_S = 1.0
"""After all is done; then the connection is not used again."""

REFUSALS = frozenset({429, 503})
"""Statuses of servers that have no room."""


@dataclass(frozen=True)
class Server:
    endpoint: Endpoint
    model: str
    api_key: str | None = field(default=None, repr=False)
    body: Mapping[str, Any] = field(default_factory=dict)  # more fields of each request; None takes one away
    sends_tokens: bool = False  # prompts as numbers, for exact lengths
    silence_s: float = 120.0  # without a byte, after which an answer is given up


class OpenAiClient:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._http: httpx.AsyncClient | None = None

    async def __aenter__(self) -> OpenAiClient:
        self._http = httpx.AsyncClient(
            headers=_headers(self._server.api_key),
            timeout=httpx.Timeout(self._server.silence_s, connect=CONNECT_S),
            transport=Connections(idle_s=IDLE_S),
            trust_env=False,
            follow_redirects=False,
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._http is not None
        await self._http.aclose()

    async def send(self, request: PlannedRequest, attempt_id: str, answer: Answer, clock: Clock) -> None:  # noqa: ARG002
        try:
            await self._exchange(request, answer, clock)
        except MalformedStream as error:
            raise NotServed("failed", self._without_key(str(error))) from error
        except httpx.HTTPError as error:
            raise NotServed("failed", self._without_key(self._broken(error))) from error

    async def _exchange(self, request: PlannedRequest, answer: Answer, clock: Clock) -> None:
        assert self._http is not None
        server = self._server
        if server.sends_tokens:
            answer.prompt_tokens = len(request.prompt)
        body = msgspec.json.encode(body_of(request, server))
        async with self._http.stream("POST", server.endpoint.url, content=body) as response:
            await self._check(response)
            reader = await _read(response, answer, clock)
        if not reader.is_finished:
            raise NotServed("failed", f"the stream ended unfinished, after {sum(answer.token_counts)} tokens")
        if not answer.token_ns and not answer.output_tokens:
            raise NotServed("failed", "the stream finished without any output")

    async def _check(self, response: httpx.Response) -> None:
        """Raises NotServed for all but a stream of events."""
        status = response.status_code
        if response.is_redirect:
            to = response.headers.get("location", "nowhere")
            raise NotServed("failed", f"status {status}, redirected to {to[:300]}: name that address with --url")
        if status != 200:
            said = self._without_key(shown(await _beginning(response, MOST_BYTES_OF_ERROR)))
            raise NotServed("rejected" if status in REFUSALS else "failed", f"status {status}: {said}".rstrip(": "))
        kind = response.headers.get("content-type", "nothing")
        if not kind.startswith("text/event-stream"):
            raise NotServed("failed", f"the server answered with {kind[:100]}, not with a stream of events")
        if response.headers.get("content-encoding", "identity") != "identity":
            raise NotServed("failed", "the server compresses its stream, though it was asked not to")

    def _broken(self, error: httpx.HTTPError) -> str:
        match error:
            case httpx.ConnectTimeout():
                return f"no connection within {CONNECT_S:g} s"
            case httpx.ReadTimeout():
                return f"no byte for {self._server.silence_s:g} s"
            case httpx.ConnectError():
                return f"cannot connect: {error}"
        return f"the connection broke: {str(error) or type(error).__name__}"

    def _without_key(self, text: str) -> str:
        """Servers may repeat a key that they do not know."""
        key = self._server.api_key
        return text if key is None else text.replace(key, "(the API key)")


async def _read(response: httpx.Response, answer: Answer, clock: Clock) -> StreamReader:
    """Up to the end of the answer. Raises MalformedStream."""
    events, reader, reads, n_bytes = EventStream(), StreamReader(answer), Reads(clock), 0
    try:
        async with asyncio.timeout(None) as limit:
            async for chunk in response.aiter_raw():
                now_ns = reads.time_ns()
                n_bytes += len(chunk)
                if n_bytes > MOST_BYTES:
                    raise MalformedStream(f"the answer is longer than {MOST_BYTES:,} bytes")
                for event in events.feed(chunk):
                    if not reader.is_done:
                        reader.event(event, now_ns)
                if reader.is_done and answer.ended_ns is None:
                    answer.ended_ns = now_ns
                    limit.reschedule(asyncio.get_running_loop().time() + LAST_BYTES_S)
    except (TimeoutError, httpx.HTTPError):
        if not reader.is_done:
            raise
    return reader


class Reads:
    """When bytes came from the network: what is handed over without waiting in between came by the same read."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._time_ns: int | None = None

    def time_ns(self) -> int:
        """Of the read that brought what was just handed over."""
        if self._time_ns is None:
            self._time_ns = self._clock()
            self._loop.call_soon(self._waited)
        return self._time_ns

    def _waited(self) -> None:
        self._time_ns = None


async def _beginning(response: httpx.Response, most: int) -> bytes:
    read = b""
    async for chunk in response.aiter_raw():
        read += chunk
        if len(read) >= most:
            break
    return read[:most]


def _headers(api_key: str | None) -> dict[str, str]:
    """Not compressed, as each event would wait for the next to be worth it."""
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "user-agent": f"diag/{__version__}",
    }
    return headers if api_key is None else {**headers, "authorization": f"Bearer {api_key}"}


def parsed_body(text: str | None) -> Mapping[str, Any]:
    """More fields of each request, as a JSON object. Raises UsageError."""
    if text is None:
        return {}
    try:
        fields = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"--body is not JSON: {error}. Write for example --body '{{\"ignore_eos\": true}}'") from error
    if not isinstance(fields, dict):
        raise UsageError("--body is no JSON object. Write for example --body '{\"ignore_eos\": true}'")
    if "stream" in fields:
        raise UsageError("--body cannot say 'stream': without it there would be no times of tokens.")
    return fields


def body_of(request: PlannedRequest, server: Server) -> dict[str, Any]:
    prompt: object = list(request.prompt) if server.sends_tokens else text(request.prompt)
    asked = {"prompt": prompt} if server.endpoint.api == "completions" else {
        "messages": [{"role": "user", "content": prompt}]
    }  # fmt: skip
    body = {
        "model": server.model,
        **asked,
        "max_tokens": request.max_output_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        **server.body,
    }
    return {name: value for name, value in body.items() if value is not None}


_Name: TypeAlias = Annotated[str, msgspec.Meta(max_length=512)]


class _Model(msgspec.Struct):
    id: _Name
    owned_by: _Name | None = None


class _Models(msgspec.Struct):
    data: list[_Model]


async def first_model(endpoint: Endpoint, api_key: str | None) -> tuple[str, str | None]:
    """The model that a server lists first, and whose it is ('vllm', 'sglang'). Raises InputError."""
    hint = f"Is the server at {endpoint.host} running? If it lists no models, name one with --model."
    try:
        async with (
            asyncio.timeout(CONNECT_S),
            httpx.AsyncClient(headers=_headers(api_key), timeout=None, trust_env=False) as http,
            http.stream("GET", endpoint.models_url) as response,
        ):
            if response.status_code != 200:
                raise InputError(f"{endpoint.models_url} answers with status {response.status_code}. {hint}")
            models = msgspec.json.decode(await _beginning(response, MOST_BYTES_OF_MODELS), type=_Models).data
    except (httpx.HTTPError, TimeoutError) as error:
        raise InputError(
            f"{endpoint.models_url} does not answer ({str(error) or type(error).__name__}). {hint}"
        ) from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{endpoint.models_url} lists no models in OpenAI's form. {hint}") from error
    if not models:
        raise InputError(f"{endpoint.models_url} lists no model. {hint}")
    return models[0].id, models[0].owned_by
