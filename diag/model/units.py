"""Quantities as people read them. Rates and sizes are decimal (1 GB = 10^9 bytes), as vendors give bandwidths."""

from __future__ import annotations

_TIMES = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
_SIZES = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B"))


def time(ns: float) -> str:
    """
    >>> time(654_449_014), time(2_272), time(12), time(0)
    ('654.4 ms', '2.3 µs', '12 ns', '0 ns')
    """
    return _scaled(ns, _TIMES)


def size(n_bytes: float) -> str:
    """
    >>> size(25_475_252_224), size(3136)
    ('25.5 GB', '3.1 kB')
    """
    return _scaled(n_bytes, _SIZES)


def rate(n_bytes: float, ns: float) -> str:
    """
    >>> rate(25_475_252_224, 920_871_273)
    '27.7 GB/s'
    """
    return size(n_bytes * 1e9 / ns) + "/s" if ns else "-"


def share(value: float) -> str:
    """
    >>> share(0.36778), share(0.006764), share(0.00004), share(0)
    ('36.8 %', '0.68 %', '< 0.01 %', '0 %')
    """
    if value == 0:
        return "0 %"
    if 0 < value < 0.0001:
        return "< 0.01 %"
    return f"{value * 100:.2f} %" if abs(value) < 0.01 else f"{value * 100:.1f} %"


def count(n: int, noun: str) -> str:
    """
    >>> count(1, "gap"), count(1044, "copy")
    ('1 gap', '1,044 copies')
    >>> count(3, "launch")
    '3 launches'
    """
    if n == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{n:,} {noun[:-1]}ies"
    return f"{n:,} {noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


PLAIN = frozenset({"ns", "bytes", "bytes/s", "share", "count", "text"})
"""Units of evidence that are shown in another form than "number unit"."""
SCALED = frozenset({"Hz", "FLOP", "FLOP/s", "OP", "OP/s", "inst", "inst/s"})
"""Units that come in thousands of thousands."""
MEASURED = frozenset(
    {
        "%",
        "FLOP/byte",
        "inst/byte",
        "OP/byte",
        "inst/cycle",
        "inst/warp",
        "cycles",
        "cycles/inst",
        "bytes/sector",
        "bytes/lane",
    }
    | {"tokens", "tokens/s", "requests/s", "sequences", "steps", "x", "$"}  # of plans
    | {"sectors", "requests", "sectors/request", "wavefronts", "wavefronts/request", "warps", "warps/cycle", "threads"}
    | {"threads/inst", "blocks", "waves", "samples", "registers", "ratio"}
    | {"cores", "W", "°C"}
)
EVIDENCE = PLAIN | SCALED | MEASURED
"""Every unit that a figure may have."""

_DECIMAL = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"), (1, ""))


def quantity(value: float, unit: str) -> str:
    """
    >>> quantity(658_549_185, "ns"), quantity(0.5, "share"), quantity(1_410_000_000, "Hz"), quantity(12, "count")
    ('658.5 ms', '50.0 %', '1.4 GHz', '12')
    >>> quantity(83.26, "%"), quantity(1 / 12, "FLOP/byte"), quantity(19.5e12, "FLOP/s")
    ('83.3 %', '0.0833 FLOP/byte', '19.5 TFLOP/s')
    """
    match unit:
        case "ns":
            return time(value)
        case "bytes":
            return size(value)
        case "bytes/s":
            return rate(value, 1e9)
        case "share":
            return share(value)
        case "count":
            return f"{value:,}".removesuffix(".0")
        case "%":
            return f"{value:.1f} %"
    if unit in SCALED:
        return _scaled(value, tuple((factor, f"{prefix}{unit}") for factor, prefix in _DECIMAL))
    return f"{_significant(value)} {unit}"


def _significant(value: float) -> str:
    """Three digits of what is small, all digits of what is large and whole."""
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def _scaled(value: float, scale: tuple[tuple[int, str], ...]) -> str:
    for factor, unit in scale[:-1]:
        if abs(value) >= factor:
            return f"{value / factor:.1f} {unit}"
    return f"{value:.0f} {scale[-1][1]}"
