"""A transport for httpx in which a request costs the same with one connection as with a thousand.

httpx's own pool looks at every connection whenever a request begins or ends: at 256 in flight, of 100 tokens each, that
took two thirds of the CPU's time, and requests waited for it. Here each has a pool of its own, and those that are
idle lie on a stack.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator

import httpx


class Connections(httpx.AsyncBaseTransport):
    """Idle connections are used again for `idle_s`. There are as many as requests in flight at most."""

    def __init__(self, *, idle_s: float) -> None:
        self._limits = httpx.Limits(max_connections=1, keepalive_expiry=idle_s)
        self._tls: ssl.SSLContext | None = None  # made once, as it reads all certificates
        self._all: set[httpx.AsyncHTTPTransport] = set()
        self._idle: list[httpx.AsyncHTTPTransport] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        connection = self._idle.pop() if self._idle else self._new(request.url.scheme == "https")
        try:
            response = await connection.handle_async_request(request)
        except BaseException:
            self._idle.append(connection)
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Lent(response.stream, connection, self._idle)
        return response

    async def aclose(self) -> None:
        for connection in self._all:
            await connection.aclose()
        self._all.clear()
        self._idle.clear()

    def _new(self, is_encrypted: bool) -> httpx.AsyncHTTPTransport:
        if is_encrypted and self._tls is None:
            self._tls = httpx.create_ssl_context(trust_env=False)
        connection = httpx.AsyncHTTPTransport(
            verify=self._tls if self._tls is not None else False, trust_env=False, limits=self._limits
        )
        self._all.add(connection)
        return connection


class _Lent(httpx.AsyncByteStream):
    """The body of an answer; closed, its connection is idle again."""

    def __init__(
        self, body: httpx.AsyncByteStream, connection: httpx.AsyncHTTPTransport, idle: list[httpx.AsyncHTTPTransport]
    ) -> None:
        self._body, self._connection, self._idle = body, connection, idle

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._body.__aiter__()

    async def aclose(self) -> None:
        try:
            await self._body.aclose()
        finally:
            self._idle.append(self._connection)
