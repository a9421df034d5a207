"""Processes and threads of a Kineto trace, whose events name them by numbers, by digits in a string, or by titles."""

from __future__ import annotations

from diag.ingest import kineto_statements as sql
from diag.store.case import Case

Key = int | str
"""A process or thread as an event names it: a number, digits, or a title."""

# Far from every number that an operating system gives; some tids are negative.
_FIRST_TITLE = -(1 << 40)


class Threads(dict[tuple[Key, Key], int]):
    """Row ids of threads by the (pid, tid) of events; a thread, or its process, gets its row when first asked for.

    One process row exists from the start, so that operations can name it before any process is known.
    """

    def __init__(self, case: Case, source_id: int) -> None:
        super().__init__()
        self.case = case
        self.processes: dict[int, int] = {}
        self._source_id = source_id
        self._titles: dict[str, int] = {}
        self.first_process = self._insert(sql.INSERT_PROCESS, source_id, 0)

    def __missing__(self, key: tuple[Key, Key]) -> int:
        pid, tid = self.number(key[0]), self.number(key[1])
        if (pid, tid) not in self:
            title = key[1] if key[1] in self._titles else None
            super().__setitem__((pid, tid), self._insert(sql.INSERT_THREAD, self.process(key[0]), tid, title))
        self[key] = self[pid, tid]
        return self[key]

    def process(self, pid: Key) -> int:
        number = self.number(pid)
        if number not in self.processes:
            if self.processes:
                self.processes[number] = self._insert(sql.INSERT_PROCESS, self._source_id, number)
            else:
                self.processes[number] = self.first_process
                self.case.db.execute(sql.SET_PID, (number, self.first_process))
            if pid in self._titles:
                self.case.db.execute(sql.NAME_PROCESS, {"name": pid, "source": self._source_id, "pid": number})
        return self.processes[number]

    def number(self, key: Key) -> int:
        """The number that `key` is or spells; a title gets a negative one of its own."""
        if isinstance(key, int):
            return key
        if key.isascii() and key.isdigit() and len(key) <= 18:
            return int(key)
        return self._titles.setdefault(key, _FIRST_TITLE - len(self._titles))

    def adopt_unplaced(self, *, by_main_thread: bool) -> None:
        """Events of pid 0, tid 0 belong to the process, if there is but one: to its main thread or one of their own."""
        if (0, 0) in self or len(self.processes) != 1:
            return
        (pid,) = self.processes
        first = next(key for key in self if key[0] == pid)
        self[0, 0] = self.get((pid, pid), self[first]) if by_main_thread else self[pid, 0]

    def _insert(self, statement: str, *values: object) -> int:
        return int(self.case.db.execute(statement, values).fetchone()[0])
