"""Quantities as people write them: sizes, rates and times with their units; only 'Ki', 'Mi' … are powers of two."""

from __future__ import annotations

import math
import re

_WRITTEN = re.compile(r"(\d+(?:\.\d+)?(?:e\d{1,2})?)\s*([a-zA-Zµ/]*)", re.ASCII)

_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_BINARY = {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}
_SIZES = {f"{prefix}{unit}": factor for prefix, factor in (_PREFIXES | _BINARY).items() for unit in ("b", "")}
_TIMES_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9}
_COUNTS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}
_FLOPS = {f"{prefix}flop{s}": factor for prefix, factor in _PREFIXES.items() for s in ("s", "/s")}


def size_bytes(text: str) -> int:
    """Raises ValueError for what is no size.

    >>> size_bytes("2GB"), size_bytes("25MiB"), size_bytes("1.5 kB"), size_bytes("512")
    (2000000000, 26214400, 1500, 512)
    """
    return max(1, round(_value(text, _SIZES, "a size", "2GB or 25MiB")))


def bytes_per_s(text: str) -> float:
    """Of bytes, or of bits where the unit is that of network cards. Raises ValueError for what is no rate.

    >>> bytes_per_s("350GB/s"), bytes_per_s("400Gbit/s"), bytes_per_s("900 GB/s")
    (350000000000.0, 50000000000.0, 900000000000.0)
    """
    example = "350GB/s or 400Gbit/s"
    bits = re.sub(r"bits?/s$|bps$", "", text.strip())
    if bits != text.strip():
        return _value(bits, _SIZES, "a rate", example) / 8
    if not text.strip().endswith("/s"):
        raise ValueError(f"{text!r} is not a rate. Write for example {example}.")
    return _value(text.strip().removesuffix("/s"), _SIZES, "a rate", example)


def time_ns(text: str) -> float:
    """Raises ValueError for what is no time.

    >>> time_ns("20us"), time_ns("1.5 ms"), time_ns("0s")
    (20000.0, 1500000.0, 0.0)
    """
    return _value(text, _TIMES_NS, "a time", "20us or 1.5ms", may_be_zero=True)


def flops_per_s(text: str) -> float:
    """Raises ValueError for what is no rate of FLOPs.

    >>> flops_per_s("400TFLOP/s"), flops_per_s("1 PFLOPs")
    (400000000000000.0, 1000000000000000.0)
    """
    return _value(text, _FLOPS, "a rate of FLOPs", "400TFLOP/s")


def count(text: str) -> float:
    """Raises ValueError for what is no count; 'b' is 10^9, as models are named.

    >>> count("70B"), count("8192"), count("1.3b")
    (70000000000.0, 8192.0, 1300000000.0)
    """
    return _value(text, _COUNTS, "a count", "70B or 8192")


MOST = 1e24
"""Larger figures are slips of the finger; smaller ones can be multiplied with each other."""


def _value(text: str, units: dict[str, int], what: str, example: str, *, may_be_zero: bool = False) -> float:
    match = _WRITTEN.fullmatch(text.strip())
    factor = units.get(match[2].lower()) if match else None
    if match and units is _SIZES and re.fullmatch(r"[kmgtpi]+b", match[2], re.IGNORECASE) and match[2][-1] == "b":
        raise ValueError(f"{text!r} may be bits or bytes: a capital B is a byte, and bit a bit. Write {example}.")
    if match is None or factor is None:
        raise ValueError(f"{text!r} is not {what}. Write for example {example}.")
    value = float(match[1]) * factor
    if not math.isfinite(value) or value > MOST or (value == 0 and not may_be_zero):
        raise ValueError(f"{text!r} cannot be {what} of anything. Write for example {example}.")
    return value
