"""Server-sent events, out of bytes as they arrive (HTML standard, section 9.2), as far as these streams use them."""

from __future__ import annotations

from collections.abc import Iterator

LONGEST_LINE = 1 << 20


class MalformedStream(Exception):
    """In words for the log."""


class EventStream:
    """`feed` gives the data of each event that its bytes complete. Lines end in LF or CR LF."""

    def __init__(self, longest_line: int = LONGEST_LINE) -> None:
        self._longest = longest_line
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0  # of the data, each line with its end

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Raises MalformedStream for a line or an event that is too long to be one."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            if (event := self._line(line.removesuffix(b"\r"))) is not None:
                yield event
        if len(self._rest) > self._longest:
            raise MalformedStream(f"a line of the stream is longer than {self._longest:,} bytes")

    def _line(self, line: bytes) -> bytes | None:
        """The data of the event that this line ends, if it does and there are any. Comments and other fields: none."""
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
            self._size += len(self._data[-1]) + 1
            if self._size > self._longest:
                raise MalformedStream(f"an event of the stream is longer than {self._longest:,} bytes")
        elif not line and self._data:
            event = b"\n".join(self._data)
            self._data.clear()
            self._size = 0
            return event
        return None
