"""A server of OpenAI's API on loopback that does to each request what a test wants."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self


@dataclass
class Reply:
    """`body` is what the client asked. Each event is a chunk of its own; `raw` are bytes of the body as they are."""

    number: int
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    writer: asyncio.StreamWriter
    is_kept: bool = True  # the connection, for the next request
    pending: bytes = b""

    async def head(self, status: int = 200, kind: str = "text/event-stream", **more: str) -> None:
        lines = [f"HTTP/1.1 {status} Said", f"content-type: {kind}", "transfer-encoding: chunked"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in more.items()]
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        await self.writer.drain()

    async def raw(self, data: bytes) -> None:
        self.writer.write(self.pending + f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.pending = b""
        await self.writer.drain()

    def chunk(self, event: object) -> None:
        """Written, and sent with what comes next."""
        data = b"data: " + json.dumps(event).encode() + b"\n\n"
        self.pending += f"{len(data):x}\r\n".encode() + data + b"\r\n"

    async def events(self, *events: object) -> None:
        """In one write."""
        await self.raw(b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in events))

    async def end(self) -> None:
        await self.raw(b"data: [DONE]\n\n")
        await self.raw(b"")

    async def say(self, status: int, text: str, **more: str) -> None:
        """An answer that is no stream."""
        await self.head(status, "application/json", **more)
        await self.raw(text.encode())
        await self.raw(b"")

    def cut(self) -> None:
        self.is_kept = False


def token(text: str = " word", finish: str | None = None) -> Mapping[str, Any]:
    return {"choices": [{"index": 0, "text": text, "finish_reason": finish}]}


def usage(prompt: int, completion: int, cached: int | None = None) -> Mapping[str, Any]:
    details = None if cached is None else {"cached_tokens": cached}
    return {"prompt_tokens": prompt, "completion_tokens": completion, "prompt_tokens_details": details}


async def answer(reply: Reply, *, every_s: float = 0.0) -> None:
    """As many tokens as were asked for, one by one, with the server's count at the end."""
    n = int(reply.body["max_tokens"])
    await reply.head()
    for number in range(n):
        await reply.events(token(finish="length" if number == n - 1 else None))
        await asyncio.sleep(every_s)
    await reply.events({"choices": [], "usage": usage(len(str(reply.body.get("prompt", "")).split()), n)})
    await reply.end()


Behaviour = Callable[[Reply], Awaitable[None]]


@dataclass
class Server:
    """Open as a context. `asked` are the bodies of all requests, `n_open` the connections that there are."""

    behave: Behaviour = answer
    models: str = '{"data": [{"id": "tiny", "owned_by": "vllm"}]}'
    asked: list[Mapping[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    n_open: int = 0
    url: str = ""

    def __enter__(self) -> Self:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(10)
        assert not self._thread.is_alive()

    def is_left_alone(self, within_s: float = 5.0) -> bool:
        """Whether all connections end in time."""
        ended = threading.Event()

        async def wait() -> None:
            while self.n_open:
                await asyncio.sleep(0.005)
            ended.set()

        asyncio.run_coroutine_threadsafe(wait(), self._loop)
        return ended.wait(within_s)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=1 << 24)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.n_open += 1
        requests = asyncio.create_task(self._requests(reader, writer))
        try:
            await requests
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.n_open -= 1
            writer.close()

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until one of both ends the connection, which is noticed also in the middle of an answer."""
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = dict(_header(line) for line in head[1:] if line)
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            if head[0].startswith("GET"):
                reply = Reply(-1, {}, headers, writer)
                await reply.say(200, self.models)
                continue
            reply = Reply(len(self.asked), json.loads(body), headers, writer)
            self.asked.append(reply.body)
            self.headers.append(headers)
            await _unless_gone(self.behave(reply), reader)
            if not reply.is_kept:
                return


async def _unless_gone(behaving: Awaitable[None], reader: asyncio.StreamReader) -> None:
    behaviour = asyncio.ensure_future(behaving)
    gone = asyncio.create_task(_end_of(reader))
    try:
        await asyncio.wait([behaviour, gone], return_when=asyncio.FIRST_COMPLETED)
        if not behaviour.done():
            raise ConnectionAbortedError
        behaviour.result()
    finally:
        behaviour.cancel()
        gone.cancel()


async def _end_of(reader: asyncio.StreamReader) -> None:
    """The client sends nothing before it has its answer, so all that can come is the end."""
    while not reader.at_eof():
        await asyncio.sleep(0.005)


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip().lower(), value.strip()


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """One after the other, and again from the first."""

    async def behave(reply: Reply) -> None:
        await behaviours[reply.number % len(behaviours)](reply)

    return behave
