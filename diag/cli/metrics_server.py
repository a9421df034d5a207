"""`diag watch --listen`: a small HTTP server of GET /metrics, and of nothing else."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from diag.errors import UsageError

LOOPBACK = "127.0.0.1"
MOST_REQUESTS = 8
"""Served at once; who comes later is turned away."""
LONGEST_REQUEST_S = 10.0
LONGEST_WAIT_S = 2.0
"""For the next bytes of a request."""


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of [HOST:]PORT. Raises UsageError.

    >>> parse_address("9400"), parse_address("0.0.0.0:9400"), parse_address("[::1]:0")
    (('127.0.0.1', 9400), ('0.0.0.0', 9400), ('::1', 0))
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise UsageError(f"--listen {text} is not [HOST:]PORT. Write a port up to 65535, as in --listen 9400")
    return host or LOOPBACK, int(port)


class MetricsServer:
    """Serves what `page` gives, in a thread of its own, while it is open."""

    def __init__(self, address: tuple[str, int], content_type: str, page: Callable[[], str | None]) -> None:
        """Raises UsageError where nobody can listen there."""
        try:
            self._server = _Server(address, content_type, page)
        except (OSError, UnicodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "no such host"
            host, port = address
            raise UsageError(f"Nobody can listen at {host}, port {port}: {why}. Choose another --listen.") from error

    @property
    def url(self) -> str:
        host, port = str(self._server.server_address[0]), self._server.server_address[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"

    def __enter__(self) -> MetricsServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a request that hangs does not keep the program

    def __init__(self, address: tuple[str, int], content_type: str, page: Callable[[], str | None]) -> None:
        self.content_type, self.page = content_type, page
        self._free = threading.BoundedSemaphore(MOST_REQUESTS)
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)
        self.is_loopback = ipaddress.ip_address(str(self.server_address[0])).is_loopback

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        too_long = threading.Timer(LONGEST_REQUEST_S, self.shutdown_request, [request])
        too_long.daemon = True
        too_long.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            too_long.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who asked has gone away; there is nobody to tell."""


def is_local(host: str) -> bool:
    """Whether a request's Host is an address, localhost or absent.

    A page in a browser here may have a name of its own made to mean this address ("DNS rebinding"), and read along.

    >>> is_local("localhost:9400"), is_local("[::1]:9400"), is_local("10.1.2.3"), is_local(""), is_local("a.example:80")
    (True, True, True, True, False)
    """
    try:
        name = urlsplit(f"//{host}").hostname
        return name in (None, "localhost") or bool(ipaddress.ip_address(str(name)))
    except ValueError:
        return False


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = LONGEST_WAIT_S
    server_version = "diag"
    sys_version = ""

    def do_GET(self) -> None:
        if self.server.is_loopback and not is_local(self.headers.get("Host", "")):
            self.send_error(403, "Ask by address")
            return
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404, "Only /metrics is here")
            return
        page = self.server.page()
        if page is None:
            self.send_error(503, "Nothing has been read yet")
            return
        body = page.encode()
        self.send_response(200)
        self.send_header("Content-Type", self.server.content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Standard error belongs to the watcher."""
