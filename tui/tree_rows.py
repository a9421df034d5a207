"""The lines of the call tree that are in sight: what is open, what a search leaves, in which order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from diag.model import units
from diag.render.timeline_rows import thread_label
from diag.store.case import Case
from diag.timeline.call_tree import Node, call_tree
from diag.timeline.joined import traces_of
from diag.tui.widgets.row_table import Column, Sort, ordered

Path = tuple[int | str, ...]
"""Of a line: the number of its tree, then the names down to it."""

OPEN, CLOSED, LEAF = "▾ ", "▸ ", "· "
INDENT = "│ "
DEEPEST_INDENT = 12
"""Levels; what lies deeper is set no further to the right, as its name must stay in sight."""


@dataclass(frozen=True)
class ThreadTree:
    """All that one host thread did in ranges. A capture may hold many threads."""

    label: str
    source: int
    process: int  # pid
    thread: int  # id in the case
    roots: Sequence[Node]

    @property
    def as_node(self) -> Node:
        """The thread as what encloses its outermost ranges. Its times are sums: those nest in nothing."""
        return Node(
            name=self.label,
            count=sum(root.count for root in self.roots),
            host_ns=sum(root.host_ns for root in self.roots),
            host_self_ns=0,
            gpu=(),
            children=self.roots,
        )


@dataclass(frozen=True)
class Line:
    tree: ThreadTree
    node: Node
    path: Path
    is_open: bool

    @property
    def is_thread(self) -> bool:
        return len(self.path) == 1

    @property
    def lead(self) -> str:
        mark = (OPEN if self.is_open else CLOSED) if self.node.children else LEAF
        return INDENT * min(len(self.path) - 1, DEEPEST_INDENT) + mark


def trees_of(case: Case) -> list[ThreadTree]:
    """Of every thread with ranges: those that launched most GPU time first, then those with most host time."""
    found = []
    for trace in traces_of(case):
        for thread_id, thread in trace.threads.items():
            devices = [each for each in trace.devices if each.process_id == thread.process_id]
            if roots := call_tree(thread, devices):
                pid = trace.process_of(thread_id).pid
                label = f"{thread_label(thread.tid, thread.name)} of pid {pid}"
                found.append(ThreadTree(label, trace.source.id, pid, thread_id, roots))
    return sorted(found, key=lambda tree: (-_most_gpu_ns(tree.roots), -tree.as_node.host_ns, tree.label))


def _most_gpu_ns(nodes: Iterable[Node]) -> int:
    return sum(node.gpu_ns for node in nodes)


def columns(has_gpu: bool) -> list[Column[Line]]:
    of_gpu: list[Column[Line]] = [
        Column("gpu", "GPU", 9, lambda line: _time(line.node.gpu_ns), lambda line: line.node.gpu_ns),
        Column(
            "gpu-self", "GPU self", 9, lambda line: _time(line.node.gpu_self_ns), lambda line: line.node.gpu_self_ns
        ),
    ]
    of_host: list[Column[Line]] = [
        Column("host", "host", 9, lambda line: units.time(line.node.host_ns), lambda line: line.node.host_ns),
        Column("host-self", "host self", 9, _host_self, lambda line: line.node.host_self_ns),
        Column("count", "count", 9, lambda line: f"{line.node.count:,}", lambda line: line.node.count),
    ]
    name: Column[Line] = Column(
        "name", "range", None, lambda line: line.node.name, lambda line: line.node.name, lead=lambda line: line.lead
    )
    return [name, *(of_gpu if has_gpu else []), *of_host]


def _time(time_ns: int) -> str:
    return units.time(time_ns) if time_ns else ""


def _host_self(line: Line) -> str:
    return "" if line.is_thread else units.time(line.node.host_self_ns)


def lines(trees: Sequence[ThreadTree], opened: Set[Path], sort: Sort, wanted: str = "") -> list[Line]:
    """What is in sight: below each open line its children in order; of a search, what matches and the way to it."""
    by = columns(has_gpu=True)
    found: list[Line] = []
    for number, tree in enumerate(trees):
        found += _below(tree, tree.as_node, (number,), opened, sort, by, wanted.casefold())
    return found


def _below(
    tree: ThreadTree, node: Node, path: Path, opened: Set[Path], sort: Sort, by: Sequence[Column[Line]], wanted: str
) -> Iterator[Line]:
    is_open = bool(node.children) and (bool(wanted) or path in opened)
    children = [Line(tree, child, (*path, child.name), is_open=False) for child in node.children] if is_open else []
    below = [
        line
        for child in ordered(children, by, sort)
        for line in _below(tree, child.node, child.path, opened, sort, by, wanted)
    ]
    if below or not wanted or wanted in node.name.casefold():
        yield Line(tree, node, path, is_open)
        yield from below


def paths_below(line: Line) -> Iterator[Path]:
    """The line's own and those of all that it encloses."""
    yield line.path
    for child in line.node.children:
        yield from paths_below(Line(line.tree, child, (*line.path, child.name), is_open=False))


# ---- single ranges -------------------------------------------------------------------------------------------------


def longest_of(case: Case, line: Line) -> tuple[int, int] | None:
    """Start and end of the longest range of the line's name on its thread; None where the case keeps columns only."""
    row = case.db.execute(_LONGEST, (line.tree.thread, line.node.name)).fetchone()
    return None if row is None else (row[0], row[1])


def rows_sql(line: Line) -> str:
    """SQL that shows the ranges of the line's name on its thread."""
    name = line.node.name.replace("'", "''").replace("\x00", "")
    return _ROWS.format(thread=line.tree.thread, name=name)


_LONGEST = """
    SELECT r.start_ns, r.end_ns
      FROM cpu_range r JOIN name n ON n.id = r.name_id
     WHERE r.thread_id = ? AND n.pattern = ? AND r.end_ns IS NOT NULL
     ORDER BY r.end_ns - r.start_ns DESC, r.start_ns
     LIMIT 1
"""
_ROWS = """SELECT r.id, n.text AS name, r.start_ns, r.end_ns - r.start_ns AS duration_ns, r.kind, r.shapes, r.payload
  FROM cpu_range r JOIN name n ON n.id = r.name_id
 WHERE r.thread_id = {thread:d} AND n.pattern = '{name}'
 ORDER BY duration_ns DESC"""
