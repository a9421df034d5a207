"""Figures of findings as plain SQL on the originals gives them; `checks` says which of them each report must equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.validation.originals import Both, ByHand, Union, Value, Without


@dataclass(frozen=True)
class Figure:
    """`label` is that of the evidence, or `share` or `recoverable` for what the finding itself says."""

    label: str
    by_hand: ByHand
    off_by: float = 0.0
    """How far the two may be apart, relative: for medians and quartiles, which round in other ways."""


# ---- idle time -----------------------------------------------------------------------------------------------------

_HOST_LATE = Value('SELECT SUM("end" - start) FROM late')
WINDOW = 'SELECT MIN(start), MAX("end") FROM work'
_GAPS = 'SELECT start, "end" FROM gap'
TO_LAUNCH = 'SELECT start, "end" FROM gap WHERE called >= start'

IDLE = (
    Figure("idle", Without(WINDOW, 'SELECT start, "end" FROM work')),
    Figure("host late", _HOST_LATE),
    Figure("launch latency", Value('SELECT SUM("end" - MIN(called, "end")) FROM gap WHERE called >= start')),
)
DEVICE_SIDE = Figure("device side", Value('SELECT SUM("end" - start) FROM gap WHERE called < start'))
NOT_CAPTURED = Figure("not captured", Value('SELECT SUM("end" - start) FROM gap WHERE called IS NULL'))


def inside(label: str, name: str) -> Figure:
    """Idle time in ranges of the thread that most host-late time belongs to."""
    thread = '(SELECT tid FROM late GROUP BY tid ORDER BY SUM("end" - start) DESC LIMIT 1)'
    ranges = f"SELECT start, \"end\" FROM range WHERE name LIKE '{name}' AND tid = {thread}"
    return Figure(f"idle inside '{label}'", Both(_GAPS, ranges))


def late_on(tid: int) -> Figure:
    return Figure(f"host late: thread {tid}", Value(f'SELECT SUM("end" - start) FROM late WHERE tid = {tid}'))


def samples(label: str, symbols: str) -> Figure:
    """Of the launching thread's samples in host-late time outside CUDA calls, the share with such a function."""
    samples = (
        "SELECT c.id FROM late CROSS JOIN COMPOSITE_EVENTS c ON c.globalTid % 0x1000000 = late.tid "
        'AND c.start >= late.start AND c.start < late."end" WHERE c.start >= '
        '(SELECT "end" FROM call WHERE call.tid = late.tid AND call.start <= c.start ORDER BY start DESC LIMIT 1)'
    )
    found = f"SELECT DISTINCT s.id FROM SAMPLING_CALLCHAINS s JOIN StringIds n ON n.id = s.symbol WHERE {symbols}"
    return Figure(label, Value(f"SELECT AVG(id IN ({found})) FROM ({samples})"), off_by=0.03)


# ---- launches ------------------------------------------------------------------------------------------------------


def _nth(of: str, rows: str, which: str) -> Value:
    """A median or quartile: the row of that rank."""
    ranked = f"SELECT {of} AS d, ROW_NUMBER() OVER (ORDER BY {of}) AS i, COUNT(*) OVER () AS n FROM {rows}"
    return Value(f"SELECT AVG(d) FROM ({ranked}) WHERE {which}")


_MEDIAN = "i IN ((n + 1) / 2, (n + 2) / 2)"
_USUAL = "i = 1 + (n - 1) / 4"
_LAUNCHING = "(SELECT * FROM call WHERE correlation IN (SELECT correlation FROM work))"
_PERIODS = f"(SELECT start - LAG(start) OVER (PARTITION BY tid ORDER BY start) AS period FROM {_LAUNCHING})"
_USUAL_CALL = _nth('"end" - start', _LAUNCHING, _USUAL).sql
_SYNCHRONISING = "SELECT start, \"end\" FROM call WHERE name LIKE '%Synchronize%'"


_SHORT = f'SELECT start, "end" FROM gap WHERE called >= start AND "end" - start <= 20 * ({_USUAL_CALL})'
_PACED = Without(_SHORT, _SYNCHRONISING)

LAUNCH_BOUND = (
    Figure(
        "launches into an empty queue",
        Value("SELECT AVG(called >= COALESCE(busy_until, called)) FROM launched WHERE called IS NOT NULL"),
        off_by=1e-3,
    ),
    Figure("time between launches", _nth("period", f"{_PERIODS} WHERE period IS NOT NULL", _MEDIAN), off_by=1e-3),
    Figure("launching call", _nth('"end" - start', _LAUNCHING, _USUAL), off_by=0.02),
    Figure("kernel", _nth('"end" - start', "kernel", _MEDIAN), off_by=1e-3),
    Figure("gaps paced by launching", _PACED, off_by=1e-3),
)


# ---- launches that repeat --------------------------------------------------------------------------------------------

_WHAT = (
    "SELECT correlation, name || '/' || gridX AS what, 0 AS refused FROM kernel UNION ALL "
    "SELECT correlation, name, name LIKE '%Pageable%' FROM copy UNION ALL SELECT correlation, 'memset', 0 FROM fill"
)


def _repeating() -> Value:
    """Launches in ten consecutive ones of a thread that occur three times; nothing in between may break a capture.

    A call that synchronises begins a new group, a pageable copy is one of its own.
    """
    events = (
        f"SELECT tid, start, what, refused, 0 AS breaks FROM ({_WHAT}) JOIN call USING (correlation) UNION ALL "
        "SELECT tid, start, NULL, 0, 1 FROM call WHERE name LIKE '%Synchronize%'"
    )
    before = "OVER (PARTITION BY tid ORDER BY start)"
    groups = f"SELECT *, SUM(breaks + 2 * refused) {before} - refused AS part FROM ({events})"
    numbered = (
        f"SELECT *, ROW_NUMBER() OVER (PARTITION BY tid, part ORDER BY start) AS i FROM ({groups}) WHERE NOT breaks"
    )
    stretches = (
        f"SELECT tid, part, i, GROUP_CONCAT(what, '|') OVER ten AS stretch, COUNT(*) OVER ten AS n FROM ({numbered}) "
        "WINDOW ten AS (PARTITION BY tid, part ORDER BY i ROWS BETWEEN CURRENT ROW AND 9 FOLLOWING)"
    )
    repeated = f"SELECT *, COUNT(*) OVER (PARTITION BY stretch) AS times FROM ({stretches}) WHERE n = 10"
    members = (
        f"SELECT DISTINCT tid, part, i + value AS i FROM ({repeated}), json_each('[0,1,2,3,4,5,6,7,8,9]') "
        "WHERE times >= 3"
    )
    return Value(f"SELECT COUNT(*) FROM ({members})")


REPEATING = Figure("launches that repeat", _repeating())

GRAPHS = (
    REPEATING,
    Figure("launches of graphs", Value("SELECT COUNT(*) FROM call WHERE name LIKE '%GraphLaunch%'")),
)

# ---- copies --------------------------------------------------------------------------------------------------------

KERNELS = 'SELECT start, "end" FROM kernel'


def busy(label: str, where: str) -> Figure:
    return Figure(label, Union(f'SELECT start, "end" FROM copy WHERE {where}'))


def transfer_bound(label: str, pid: int, top: str) -> Sequence[Figure]:
    """`top`: the copies that the label speaks of. Copies to the device are of kind 1, from it of kind 2."""
    copies = f'SELECT start, "end" FROM copy WHERE copyKind IN (1, 2) AND pid = {pid}'
    kernels = f"{KERNELS} WHERE pid = {pid}"
    rate = f'SELECT SUM(bytes) * 1e9 / SUM("end" - start) FROM copy WHERE {top} AND pid = {pid}'
    return (
        busy(f"h2d {label}", f"{top} AND pid = {pid}"),
        Figure(f"rate h2d {label.split(',', maxsplit=1)[0]}", Value(rate), off_by=1e-6),
        Figure("exposed copies", Without(copies, kernels)),
        Figure("kernels", Union(kernels)),
        Figure("won by perfect overlap", Without(kernels, copies)),
    )


# ---- kernels, communication, host ------------------------------------------------------------------------------------


def hot(kernel: str) -> Sequence[Figure]:
    of = f"kernel WHERE name LIKE '{kernel}'"
    return (
        Figure("launches", Value(f"SELECT COUNT(*) FROM {of}")),
        Figure("total", Value(f'SELECT SUM("end" - start) FROM {of}')),
        Figure("median", _nth('"end" - start', of, _MEDIAN), off_by=1e-4),
        Figure("longest", Value(f'SELECT MAX("end" - start) FROM {of}')),
    )


_NCCL = f"{KERNELS} WHERE name LIKE 'nccl%'"
_OTHERS = f"{KERNELS} WHERE name NOT LIKE 'nccl%'"
COMMUNICATION = (
    Figure("communication", Union(_NCCL)),
    Figure("exposed communication", Without(_NCCL, _OTHERS)),
)


def self_time(label: str, name: str, tid: int) -> Figure:
    """A range's time less that of all ranges inside it."""
    ranges = f"SELECT start, \"end\" FROM range WHERE name LIKE '{name}' AND tid = {tid}"
    inside = (
        f'SELECT r.start, r."end" FROM range x CROSS JOIN range r ON r.tid = x.tid '
        f'AND r.start BETWEEN x.start AND x."end" AND r."end" <= x."end" '
        f"WHERE x.name LIKE '{name}' AND x.tid = {tid} "
        'AND (r.start, r."end", r.name) <> (x.start, x."end", x.name)'
    )
    return Figure(f"self time of '{label}'", Without(ranges, inside))


SIMT = (
    "name LIKE '%scudnn%' OR name LIKE '%implicit_convolve_sgemm%' OR name LIKE '%dgrad_engine<float%' "
    "OR name LIKE '%wgrad_alg%_engine<float%' OR name LIKE '%sgemm%'"
)
_ELEMENTWISE = "name LIKE '%elementwise_kernel%' OR name LIKE '%reduce_kernel%' OR name LIKE '%CatArrayBatchedCopy%'"


def chains(counted: str) -> Value:
    """Elementwise kernels in a row on a stream, each at most ten times the longer of both after the last."""
    stream = "OVER (PARTITION BY stream ORDER BY start)"
    work = (
        f'SELECT stream, start, "end", {_ELEMENTWISE} AS member FROM kernel UNION ALL SELECT tid, start, "end", 0 '
        "FROM event WHERE cat IN ('memcpy', 'memset')"
    )
    follows = (
        f'SELECT *, member AND LAG(member) {stream} AND start - LAG("end") {stream} <= '
        f'10 * MAX("end" - start, LAG("end" - start) {stream}) AS follows FROM ({work})'
    )
    numbered = f"SELECT *, SUM(NOT COALESCE(follows, 0)) {stream} AS chain FROM ({follows}) WHERE member"
    chains = (
        'SELECT COUNT(*) AS n, SUM("end" - start) - MAX("end" - start) AS won '
        f"FROM ({numbered}) GROUP BY stream, chain HAVING n > 1"
    )
    return Value(f"SELECT {counted} FROM ({chains})")
