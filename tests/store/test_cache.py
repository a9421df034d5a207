"""The cache among processes: what one has put there stays for those who opened it."""

from __future__ import annotations

from pathlib import Path

from diag.store.cache import Cache
from diag.store.case import Case


def test_who_comes_second_takes_the_case_that_is_there(tmp_path: Path) -> None:
    """A case that was replaced would leave those who use it with the journal of another."""
    cache, place = Cache(tmp_path, 1 << 30), tmp_path / "one.diag"

    def made(name: str) -> Path:
        path = tmp_path / name
        Case.create(path).close()
        return path

    def make_while_another_comes_first() -> Path:
        with cache.kept(place, lambda: made("first")):
            pass
        inodes.append(place.stat().st_ino)
        return made("second")

    inodes: list[int] = []
    with cache.kept(place, make_while_another_comes_first) as path:
        assert (path, [path.stat().st_ino]) == (place, inodes)


def test_a_damaged_case_gives_way_to_a_new_one(tmp_path: Path) -> None:
    cache, place, new = Cache(tmp_path, 1 << 30), tmp_path / "one.diag", tmp_path / "new"
    place.write_bytes(b"no case at all")

    def make() -> Path:
        Case.create(new).close()
        return new

    with cache.kept(place, make) as path, Case.open(path):
        assert not new.exists()
