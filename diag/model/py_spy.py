"""What `py-spy dump --json` writes of a process: a list of threads. What is not named here is left out."""

from __future__ import annotations

from typing import Annotated

import msgspec

_Number = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class PySpyFrame(msgspec.Struct):
    name: str
    filename: str
    line: int


class PySpyThread(msgspec.Struct):
    """Local variables are among what is left out."""

    frames: list[PySpyFrame]
    active: bool
    owns_gil: bool
    pid: _Number | None = None
    thread_name: str | None = None
    os_thread_id: _Number | None = None
