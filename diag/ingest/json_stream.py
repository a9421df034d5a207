"""A JSON file that is one long list of events, read in chunks of typed events.

The list stands at the top, or under one key of the object at the top; the other keys, before it or after it, are the
metadata. A chunk ends where `}`, a comma and `{` follow each other: cut anywhere but between two events, the text
before is not JSON, and the next place is tried. Where no guess holds, the standard library's scanner finds each event.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Generic, NoReturn, TypeVar

import msgspec

from diag.errors import InputError
from diag.ingest.input_file import Bounds

Event = TypeVar("Event")

CHUNK_BYTES = 4 << 20
LARGEST_VALUE_BYTES = 16 << 20
"""A single event or metadata value above this is refused: it would have to be held in memory."""
MOST_KEYS = 1000
"""More metadata than any trace has."""

_COMPRESSED_BYTES = 1 << 18
_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"
_LIST_END = re.compile(rb'\}\s*\](?=\s*(?:,\s*"|\}|\Z))')
_BETWEEN = re.compile(rb"\}\s*,\s*(?=\{)")
_TAILS = (1 << 12, 1 << 16, 1 << 20)
_SPLIT = msgspec.json.Decoder(list[msgspec.Raw])


class FileBytes:
    """The bytes of a file, gunzipped when they are gzip, in blocks.

    Raises InputError when the file cannot be read, is a damaged gzip, or unpacks to more than the bounds allow.
    A gzip file that stops early yields what it holds.
    """

    def __init__(self, path: Path, bounds: Bounds) -> None:
        self.path = path
        self.bounds = bounds
        self.n_read = 0
        """Bytes of the file, so far."""

    def __iter__(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file:
                magic = file.read(len(_GZIP_MAGIC))
                file.seek(0)
                yield from self._inflated(file) if magic == _GZIP_MAGIC else self._read(file, CHUNK_BYTES)
        except OSError as error:
            raise InputError(f"Cannot read {self.path}: {error.strerror or error}.") from error
        except zlib.error as error:
            raise InputError(
                f"{self.path} is a damaged gzip file ({error}). Copy it again from where it came."
            ) from error

    def _read(self, file: BinaryIO, size: int) -> Iterator[bytes]:
        while block := file.read(size):
            self.n_read += len(block)
            yield block

    def _inflated(self, file: BinaryIO) -> Iterator[bytes]:
        inflate = zlib.decompressobj(wbits=31)
        plain_bytes = 0
        for block in self._read(file, _COMPRESSED_BYTES):
            while block:
                if inflate.eof:
                    if not block.startswith(_GZIP_MAGIC[: len(block)]):
                        return  # padding after the last member, which gzip ignores, too
                    inflate = zlib.decompressobj(wbits=31)
                plain = inflate.decompress(block, CHUNK_BYTES)
                plain_bytes += len(plain)
                if plain_bytes > self.bounds.plain_bytes:
                    raise InputError(
                        f"{self.path} unpacks to more than {self.bounds.plain_bytes} bytes. "
                        "If you trust it, raise the limit with --max-size."
                    )
                yield plain
                block = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
        yield inflate.flush()


@dataclass(frozen=True)
class Chunk(Generic[Event]):
    """Events that follow each other in the file, and how many between them were not of the type."""

    events: list[Event]
    wrong: int = 0


class EventStream(Generic[Event]):
    """Iterates over the list under `key` (or at the top) of a JSON text that comes in blocks.

    `metadata` fills while iterating. `lost` says afterwards what a damaged end took away, or is None.
    Raises InputError when the text is not JSON, or not of this form.
    """

    def __init__(self, blocks: Iterator[bytes], event: type[Event], *, key: str, path: Path) -> None:
        self.metadata: dict[str, Any] = {}
        self.lost: str | None = None
        self.is_cut = False  # events are lost, and not only what follows them
        self.count = 0
        self._blocks = blocks
        self._one = msgspec.json.Decoder(event)
        self._many = msgspec.json.Decoder(list[event])  # type: ignore[valid-type]
        self._key = key
        self._path = path
        self._buffer = b""
        self._at = 0
        """Offset of the buffer's first byte in the text."""

    def __iter__(self) -> Iterator[Chunk[Event]]:
        self._more()
        if self._buffer.startswith(_BYTE_ORDER_MARK):
            self._drop(len(_BYTE_ORDER_MARK))
        opening = self._peek()
        if not opening:
            self._refuse("is empty")
        if opening not in b"[{":
            self._refuse("is not JSON: it begins with neither { nor [")
        self._drop(1)
        yield from self._events() if opening == b"[" else self._members()

    # ---- the object at the top ---------------------------------------------------------------------------------

    def _members(self) -> Iterator[Chunk[Event]]:
        listed = False
        while (token := self._peek()) != b"}":
            try:
                name = self._value()
                if self._peek() != b":":
                    raise _Malformed("a colon is missing")
                self._drop(1)
                if name == self._key and self._peek() == b"[":
                    self._drop(1)
                    listed = True
                    yield from self._events()
                else:
                    self._keep(str(name), self._value())
                token = self._peek()
                if token == b",":
                    self._drop(1)
                elif token != b"}":
                    raise _Malformed("a comma is missing")
            except _Malformed as error:
                if not listed:
                    self._refuse_at(error.offset, error.why)
                self.lost = self.lost or "what follows the events in the file is damaged or missing and was left out"
                return
        if not listed:
            self._refuse(f'has no list "{self._key}"')

    def _keep(self, name: str, value: Any) -> None:
        if len(self.metadata) >= MOST_KEYS:
            self._refuse(f'is no trace: it has more than {MOST_KEYS} keys beside "{self._key}"')
        self.metadata[name] = value

    def _value(self) -> Any:
        """The value at the start of the buffer, which it leaves."""
        self._peek()
        while True:
            end = self._end_of_value(self._text(), 0)
            if end is not None:
                text = self._buffer[:end]
                self._drop(end)
                try:
                    return msgspec.json.decode(_repaired(text))
                except (msgspec.DecodeError, RecursionError) as error:
                    raise _Malformed(str(error)) from error
            if not self._more():
                raise _Malformed("it ends too early")

    # ---- the list ----------------------------------------------------------------------------------------------

    def _events(self) -> Iterator[Chunk[Event]]:
        while True:
            while len(self._buffer) < CHUNK_BYTES and self._more():
                pass
            token = self._peek()
            if token == b",":
                self._drop(1)
                token = self._peek()
            if token == b"]":
                self._drop(1)
                return
            if not token:
                self.is_cut = True
                self.lost = f"the file ends before its list of events does; {self.count:,} events were read"
                return
            chunk = self._guessed() or self._scanned()
            if chunk is None:
                self.is_cut = True
                self.lost = f"the file ends in the middle of an event; {self.count:,} events before it were read"
                self._drop(len(self._buffer))
                return
            self.count += len(chunk.events) + chunk.wrong
            yield chunk

    def _guessed(self) -> Chunk[Event] | None:
        """The events up to the likeliest end of the list, or else up to the last likely place between two of them."""
        for kept, dropped in self._cuts():
            text = b"[" + self._buffer[:kept] + b"]"
            try:
                chunk = self._decoded(text)
            except msgspec.DecodeError:
                continue
            except RecursionError:
                self._refuse_at(0, "its values are nested too deeply")
            self._drop(dropped)
            return chunk
        return None

    def _cuts(self) -> Iterator[tuple[int, int]]:
        """Places to try: length of the events' text, and of that text with the separator after it."""
        if end := _LIST_END.search(self._buffer):
            yield end.start() + 1, end.end() - 1
        for size in _TAILS:
            gaps = list(_BETWEEN.finditer(self._buffer, max(0, len(self._buffer) - size)))
            if gaps:
                yield from ((gap.start() + 1, gap.end()) for gap in islice(reversed(gaps), 3))
                return

    def _decoded(self, text: bytes) -> Chunk[Event]:
        """Raises DecodeError when `text` is not a JSON list."""
        try:
            return Chunk(self._many.decode(text))
        except msgspec.ValidationError:
            return self._decoded_singly(_SPLIT.decode(text))

    def _decoded_singly(self, texts: list[bytes] | list[msgspec.Raw]) -> Chunk[Event]:
        events = []
        for text in texts:
            try:
                events.append(self._one.decode(text))
            except msgspec.ValidationError:
                pass
            except msgspec.DecodeError:
                events += self._decoded_repaired(bytes(text))
        return Chunk(events, len(texts) - len(events))

    def _decoded_repaired(self, text: bytes) -> list[Event]:
        try:
            return [self._one.decode(_repaired(text))]
        except msgspec.DecodeError:
            return []

    def _scanned(self) -> Chunk[Event] | None:
        """The whole events of the buffer, found one by one; None when the text ends within the first of them."""
        while True:
            text = self._text()
            ends = list(self._ends(text))
            if ends:
                starts = [0, *ends[:-1]]
                texts = [self._buffer[a:b].lstrip(_SPACE + b",") for a, b in zip(starts, ends, strict=True)]
                self._drop(ends[-1])
                return self._decoded_singly(texts)
            if not self._more():
                return None

    def _ends(self, text: str) -> Iterator[int]:
        """Where each value of a list ends, as far as values are whole and sound."""
        at = 0
        try:
            while (end := self._end_of_value(text, at)) is not None:
                yield end
                separator = _SEPARATOR.match(text, end)
                if not separator:
                    return
                at = separator.end()
        except _Malformed as error:
            if not at:
                self._refuse_at(error.offset, error.why)

    def _end_of_value(self, text: str, at: int) -> int | None:
        """None when the value at `at` goes on after the buffer. Raises _Malformed when it is no JSON."""
        try:
            end: int = _SCANNER.raw_decode(text, at)[1]
        except json.JSONDecodeError as error:
            if error.msg.startswith("Unterminated string") or error.pos >= len(text) - _LONGEST_PIECE:
                return None
            raise _Malformed(error.msg[:1].lower() + error.msg[1:], error.pos) from error
        except _Literal as error:
            raise _Malformed(f"it holds {error}; have its writer put null instead", at) from error
        except RecursionError as error:
            raise _Malformed("its values are nested too deeply", at) from error
        is_number = text[end - 1] in _DIGITS
        return None if is_number and text[end : end + 1] in _DIGITS + ".eE" else end

    # ---- the buffer --------------------------------------------------------------------------------------------

    def _text(self) -> str:
        """The buffer, one character per byte: what delimits JSON is ASCII, what strings say does not matter here."""
        return self._buffer.decode("latin-1")

    def _more(self) -> bool:
        """Adds the next block; False at the end of the file."""
        if len(self._buffer) > LARGEST_VALUE_BYTES:
            self._refuse_at(0, f"a value has more than {LARGEST_VALUE_BYTES >> 20} MB, or a quotation mark is missing")
        for block in self._blocks:
            if block:
                self._buffer += block
                return True
        return False

    def _peek(self) -> bytes:
        """The first byte that is not white space, moving to it; b"" at the end of the file."""
        while True:
            rest = self._buffer.lstrip(_SPACE)
            self._drop(len(self._buffer) - len(rest))
            if rest or not self._more():
                return self._buffer[:1]

    def _drop(self, count: int) -> None:
        self._buffer = self._buffer[count:]
        self._at += count

    def _refuse(self, what: str) -> NoReturn:
        raise InputError(f"{self._path} {what}. Give a trace written by torch.profiler (export_chrome_trace).")

    def _refuse_at(self, offset: int, why: str) -> NoReturn:
        raise InputError(
            f"{self._path} is not valid JSON at byte {self._at + offset}: {why}. "
            "Export the trace again, or repair it there."
        )


class _Malformed(Exception):
    """A value is no JSON: `why`, and how far into the buffer."""

    def __init__(self, why: str, offset: int = 0) -> None:
        self.why = why
        self.offset = offset


class _Literal(ValueError):
    """NaN, Infinity or -Infinity."""


def _repaired(text: bytes) -> bytes:
    """`text` with what is not UTF-8 in it replaced."""
    return text.decode("utf-8", "replace").encode()


def _no_literal(name: str) -> NoReturn:
    raise _Literal(name)


# Only where values end is asked, so that no number is worth converting, and no number too long to be converted.
_SCANNER = json.JSONDecoder(strict=False, parse_int=len, parse_float=len, parse_constant=_no_literal)
_SEPARATOR = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")
_DIGITS = "0123456789"
_LONGEST_PIECE = len(r'"\u0000')
"""Within so many characters of the end, an error may be due to the end."""
