"""Which address of an OpenAI-compatible server requests go to, and in which form."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from diag.errors import UsageError

Api: TypeAlias = Literal["completions", "chat"]

_PATHS: dict[Api, str] = {"completions": "/completions", "chat": "/chat/completions"}


@dataclass(frozen=True)
class Endpoint:
    url: str  # where requests go
    models_url: str  # which models there are
    api: Api

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc


def endpoint(url: str, api: Api | None) -> Endpoint:
    """Of a server's address, with its path or without. Raises UsageError.

    >>> endpoint("http://127.0.0.1:8000", None).url
    'http://127.0.0.1:8000/v1/completions'
    >>> endpoint("https://example.org/proxy/v1/", "chat").url
    'https://example.org/proxy/v1/chat/completions'
    >>> endpoint("http://[::1]:8000/v1/chat/completions", None)
    Endpoint(url='http://[::1]:8000/v1/chat/completions', models_url='http://[::1]:8000/v1/models', api='chat')
    """
    try:
        parts = urlsplit(url)
        is_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_host = False
        parts = urlsplit("")
    if not is_host or parts.scheme not in ("http", "https") or not re.fullmatch(r"[!-~]+", url):
        raise UsageError(f"--url {url} is no address of a server. Write for example --url http://127.0.0.1:8000")
    if parts.username is not None or parts.password is not None:
        raise UsageError("--url holds a user or a password. Name a variable that holds a key with --api-key-env.")
    if parts.query or parts.fragment:
        raise UsageError(f"--url {url} has a query. Leave out what follows the path.")
    base, named = _without_api(parts.path.rstrip("/"))
    if named and api and named != api:
        raise UsageError(f"--url {url} is the address of {named}, and --api is {api}. Leave one of them out.")
    chosen = named or api or "completions"
    if not base.endswith("/v1"):
        base += "/v1"

    def at(path: str) -> str:
        return urlunsplit((parts.scheme, parts.netloc, base + path, "", ""))

    return Endpoint(at(_PATHS[chosen]), at("/models"), chosen)


def _without_api(path: str) -> tuple[str, Api | None]:
    for api in ("chat", "completions"):  # the longer first, which ends like the other
        if path.endswith(_PATHS[api]):
            return path.removesuffix(_PATHS[api]), api
    return path, None


def api_key(variable: str | None) -> str | None:
    """Out of the environment, so that it stands in no command line and in no log. Raises UsageError."""
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key or not re.fullmatch(r"[!-~]+", key):
        raise UsageError(f"--api-key-env {variable}: that variable holds no key. Set it first: export {variable}=...")
    return key
