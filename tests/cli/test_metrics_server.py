"""The HTTP server behind `diag watch --listen`."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from diag.cli import metrics_server
from diag.cli.metrics_server import MOST_REQUESTS, MetricsServer, parse_address
from diag.errors import UsageError


@pytest.fixture
def page() -> list[str | None]:
    return ["up 1\n"]


@pytest.fixture
def server(page: list[str | None]) -> Iterator[MetricsServer]:
    with MetricsServer(("127.0.0.1", 0), "text/plain; version=0.0.4", lambda: page[0]) as server:
        yield server


def asked(url: str, **how: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, **how), timeout=10) as answer:  # type: ignore[arg-type]
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, b""


def connected(server: MetricsServer) -> socket.socket:
    port = int(server.url.rsplit(":")[-1].removesuffix("/metrics"))
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def test_it_serves_the_newest_page_and_nothing_else(server: MetricsServer, page: list[str | None]) -> None:
    assert asked(server.url) == (200, b"up 1\n")
    page[0] = "up 2\n"
    assert asked(server.url + "?x=1") == (200, b"up 2\n")
    page[0] = None
    assert asked(server.url)[0] == 503
    assert asked(server.url.removesuffix("metrics"))[0] == 404
    assert asked(server.url, method="POST")[0] == 501


def test_a_page_in_a_browser_cannot_read_along(server: MetricsServer) -> None:
    assert status_for(server, "rebound.example:80") == b"403"
    for host in ("localhost:9400", "127.0.0.1", "[::1]:9400", ""):
        assert status_for(server, host) == b"200"


def status_for(server: MetricsServer, host: str) -> bytes:
    with connected(server) as one:
        one.sendall(f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        return one.recv(4096).split()[1]


@pytest.mark.parametrize(
    "request_",
    [b"\0\1\2\r\n\r\n", b"GET /" + b"a" * 100_000, b"GET /metrics HTTP/9.9\r\n\r\n", b"OPTIONS * HTTP/1.1\r\n\r\n"],
)
def test_whatever_is_asked_the_next_one_is_served(server: MetricsServer, request_: bytes) -> None:
    with connected(server) as odd:
        odd.sendall(request_ + b"<script>")
        odd.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: odd.recv(4096), b""))
    assert b"up 1" not in answer
    assert b"<script>" not in answer
    assert asked(server.url)[0] == 200


def test_a_crowd_is_turned_away_and_does_not_stay(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    idle = [connected(server) for _ in range(MOST_REQUESTS)]
    with connected(server) as one_more:
        assert one_more.recv(1) == b""
    for each in idle:  # each is told to go after LONGEST_WAIT_S
        assert each.recv(1) == b""
        each.close()
    assert asked(server.url)[0] == 200


def test_who_sends_byte_by_byte_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "LONGEST_REQUEST_S", 0.2)
    with MetricsServer(("127.0.0.1", 0), "text/plain", lambda: "up 1\n") as server, connected(server) as slow:
        slow.sendall(b"GET /metrics HTTP/1.0\r\nX: ")
        assert slow.recv(1) == b""


def test_addresses() -> None:
    assert parse_address(":9400") == ("127.0.0.1", 9400)
    for wrong in ("", "x", "70000", "1:2:x", "-1", "¹"):
        with pytest.raises(UsageError, match="--listen"):
            parse_address(wrong)


def test_a_port_in_use_and_a_host_that_is_none_are_told(server: MetricsServer) -> None:
    port = int(server.url.rsplit(":")[-1].removesuffix("/metrics"))
    for address in [("127.0.0.1", port), ("no.such.host.invalid", 0)]:
        with pytest.raises(UsageError, match="Choose another --listen"):
            MetricsServer(address, "text/plain", str)
