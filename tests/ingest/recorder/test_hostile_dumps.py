"""Dumps made to do harm: each is refused in a sentence, in bounded time and memory, and nothing of it runs."""

from __future__ import annotations

import json
import pickle
import resource
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from diag.errors import InputError
from diag.ingest.recorder.dump import Dump, Refusal
from diag.ingest.recorder.limits import Limits
from diag.ingest.recorder.workers import answers
from tests.builders.recorder_dumps import Job
from tests.ingest.recorder.reading import ENTRY, dump_of, entries, opened, pickled

NARROW = Limits(memory_bytes=400 << 20, cpu_s=4)


def because(path: Path, limits: Limits = NARROW) -> str:
    """Why a dump is refused."""
    (answer,) = answers([path], limits)
    assert isinstance(answer, Refusal)
    return answer.because


def crafted(path: Path, opcodes: bytes, *, after: bytes = b"") -> Path:
    """A pickle of a dump whose entries are what the opcodes leave on the stack."""
    path.write_bytes(b"\x80\x04" + _text("version") + b"0}(" + _text("version") + _text("2.9") + _text("entries")
                     + opcodes + b"u." + after)  # fmt: skip
    return path


def _text(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text.encode()


class Call:
    """Pickled as a call of the function with the arguments."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self.reduced = (function, arguments)

    def __reduce__(self) -> Any:
        return self.reduced


@pytest.mark.parametrize("protocol", range(2, 6))
def test_a_pickle_that_calls_code_does_not_run_it(protocol: int, tmp_path: Path) -> None:
    target = tmp_path / "harmed"
    path = pickled(tmp_path / "_dump_0", dump_of({**ENTRY, "state": Call(Path.touch, target)}), protocol)
    with pytest.raises(InputError, match=r"wants to load [\w.]+, and loading can run code"), opened(path):
        pass
    assert not target.exists()
    pickle.loads(path.read_bytes())
    assert target.exists()


CALLS: Mapping[str, tuple[bytes, str]] = {
    "GLOBAL": (b"cos\nsystem\n(" + _text("true") + b"tR", "wants to load os.system"),
    "STACK_GLOBAL": (_text("os") + _text("system") + b"\x93" + _text("true") + b"\x85R", "wants to load os.system"),
    "INST": (b"(" + _text("true") + b"ios\nsystem\n", "wants to load os.system"),
    "a name that is no text to show": (_text("os\x1b[2J") + _text("a" * 999) + b"\x93", "wants to load os [2J.aaa"),
    "REDUCE of what cannot be called": (_text("os.system") + b"(tR", "is damaged (TypeError)"),
    "OBJ": (b"(" + _text("os.system") + b"o", "is damaged"),
    "NEWOBJ": (_text("os.system") + b")\x81", "is damaged"),
    "BUILD": (b"]" + b"}b", "is damaged (AttributeError)"),
    "BUILD with attributes": (b"](}" + _text("append") + _text("x") + b"stb", "is damaged"),
    "EXT": (b"\x82\x01", "is damaged"),
    "PERSID": (b"Pfile\n", "refers to an object outside"),
    "BINPERSID": (_text("file") + b"Q", "refers to an object outside"),
    "NEXT_BUFFER": (b"\x97", "is damaged"),
}


@pytest.mark.parametrize("case", CALLS)
def test_opcodes_that_lead_out_of_plain_values(case: str, tmp_path: Path) -> None:
    opcodes, said = CALLS[case]
    found = because(crafted(tmp_path / "_dump_0", opcodes))
    assert any(part in found for part in said.split("|")), found
    assert found.isprintable()


def memo_bomb() -> bytes:
    return b"]r" + struct.pack("<I", (1 << 32) - 1)


def shared(levels: int) -> Any:
    """A list that holds the one below twice, which unfolds to 2 ** levels."""
    inside: list[Any] = []
    for _ in range(levels):
        inside = [inside, inside]
    return inside


BOMBS: Mapping[str, tuple[bytes, str]] = {
    "a place far behind in the memo": (memo_bomb(), "takes more memory"),
    "bytes of a terabyte": (b"\x8e" + struct.pack("<Q", 1 << 40), "ends too early|takes more memory"),
    "more bytes than a number can count": (b"\x8e" + struct.pack("<Q", (1 << 64) - 1), "is damaged|more memory"),
    "a text of a terabyte": (b"\x8d" + struct.pack("<Q", 1 << 40), "ends too early|takes more memory"),
    "an array of a terabyte": (b"\x96" + struct.pack("<Q", 1 << 40), "ends too early|takes more memory"),
    "a frame of a terabyte": (b"\x95" + struct.pack("<Q", 1 << 40), "ends too early|takes more memory"),
    "an integer of two gigabytes": (b"\x8b" + struct.pack("<i", (1 << 31) - 1), "ends too early|takes more memory"),
    "an integer of less than nothing": (b"\x8b" + struct.pack("<i", -1), "is damaged"),
    "sets without end": (b"(" + b"\x8f" * 4_000_000 + b"l", "takes more memory"),
    "lists in lists": (b"]" * 2_000_000 + b"a" * 1_999_999, "is not as PyTorch writes it"),
    "digits without end": (b"L" + b"9" * 5_000 + b"L\n", "is damaged"),
    "a list that holds itself": (b"]\x94h\x00a", "is not as PyTorch writes it"),
}


@pytest.mark.parametrize("case", BOMBS)
def test_bombs(case: str, tmp_path: Path) -> None:
    opcodes, said = BOMBS[case]
    started = time.monotonic()
    found = because(crafted(tmp_path / "_dump_0", opcodes))
    assert any(part in found for part in said.split("|")), found
    assert time.monotonic() - started < 20
    assert _largest_bytes(resource.RUSAGE_SELF) < 2 << 30


def _largest_bytes(who: int) -> int:
    return resource.getrusage(who).ru_maxrss << 10


def nested(levels: int) -> Any:
    inside: list[Any] = []
    for _ in range(levels):
        inside = [inside]
    return inside


VALUES: Mapping[str, tuple[dict[Any, Any], str]] = {
    "a sequence number of 2 ** 63": ({"collective_seq_id": 2**63}, "Expected `int` <= 9223372036854775807"),
    "one of a million bits": ({"collective_seq_id": 1 << 1_000_000}, "Expected `int` <= 9223372036854775807"),
    "one below all": ({"record_id": -(2**63) - 1}, "Expected `int` >= -9223372036854775808"),
    "a number of 2 ** 63 in a text": ({"pg_id": str(2**63)}, "Expected `int`"),
    "a fraction": ({"record_id": 1.5}, "Expected `int | null`, got `float`"),
    "a number that is none": ({"record_id": float("nan")}, "Expected `int | null`"),
    "a list of numbers": ({"record_id": [1]}, "Expected `int | null`, got `array`"),
    "a name of bytes": ({"profiling_name": b"nccl:all_reduce"}, "Expected `str`"),
    "no name": ({"profiling_name": None}, "Expected `str`, got `null`"),
    "bytes for a key": ({b"record_id": 1}, "Expected `str`"),
    "sizes of sizes": ({"input_sizes": [[[1]]]}, "Expected `int`, got `array`"),
    "sizes that unfold without end": ({"input_sizes": shared(60)}, "Expected `int`, got `array`"),
    "a group of three": ({"process_group": ("a", "b", "c")}, "Expected `array` of length 2, got 3"),
    "a group of a number": ({"process_group": 5}, "got `int`"),
    "frames that are none": ({"frames": 5}, "Expected `array` of frames"),
    "frames of frames": ({"frames": shared(60)}, "Expected `object`, got `array`"),
    "a frame without text": ({"frames": [{"name": 5}]}, "Expected `str`, got `int`"),
    "half of a surrogate pair": ({"thread_name": "\ud800"}, "no Unicode"),
    "half of one in a name": ({"profiling_name": "\udfff"}, "not as PyTorch writes it"),
}


@pytest.mark.parametrize("case", VALUES)
def test_values_that_no_dump_has(case: str, tmp_path: Path) -> None:
    changes, said = VALUES[case]
    found = because(pickled(tmp_path / "_dump_0", dump_of(ENTRY, {**ENTRY, **changes}), protocol=4))
    assert said in found
    assert "\n" not in found


PARTS: Mapping[str, tuple[Any, str]] = {
    "entries that are no list": ({"version": "2.9", "entries": {}}, "Expected `array | null`, got `object`"),
    "an entry that is none": ({"version": "2.9", "entries": [[]]}, "Expected `object`, got `array`"),
    "ranks without end": (dump_of(pg_config={"0": {"ranks": "[" + "1," * 100 + "]"}}), "ranks that are no list"),
    "a rank below all": (dump_of(pg_config={0: [-1]}), "Expected `int` >= 0"),
    "a rank above all": (dump_of(pg_config={0: [2**31]}), "Expected `int` <= 2147483647"),
    "a group whose number is none": (dump_of(pg_status={"x": {}}), "has a number that is none"),
    "a group of far too large a number": (dump_of(pg_status={"9" * 4_000: {}}), "has a number that is none"),
    "nothing": ({"version": "2.9", "nccl_version": "2"}, "neither entries nor process groups"),
    "a list": ([dump_of(ENTRY)], "Expected `object`, got `array`"),
    "a version in a number": ({**dump_of(ENTRY), "version": 2.9}, "Expected `str | null`"),
}


@pytest.mark.parametrize("case", PARTS)
def test_parts_that_no_dump_has(case: str, tmp_path: Path) -> None:
    dump, said = PARTS[case]
    assert said in because(pickled(tmp_path / "_dump_0", dump))


def test_entries_that_are_one_another_take_their_memory_and_no_more(tmp_path: Path) -> None:
    """A few bytes for each of ten million entries, all of them the same."""
    entry = pickle.dumps(ENTRY, protocol=2)[2:-1] + b"r\x00\x00\x01\x00"
    path = crafted(tmp_path / "_dump_0", b"(" + entry + b"j\x00\x00\x01\x00" * 3_000_000 + b"l")
    assert "takes more memory" in because(path)


def test_sizes_that_are_one_another(tmp_path: Path) -> None:
    """Fifty thousand tensors of fifty thousand dimensions, in a megabyte."""
    path = pickled(tmp_path / "_dump_0", dump_of({**ENTRY, "input_sizes": [[1] * 50_000] * 50_000}))
    assert path.stat().st_size < 1 << 20
    assert "takes more memory" in because(path)


def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    """Two hundred million opcodes that do nothing, within the memory that a dump may take."""
    path = crafted(tmp_path / "_dump_0", b"N" + b"N0" * 100_000_000)
    assert "takes more than 1 s of a processor" in because(path, Limits(cpu_s=1, memory_bytes=1 << 30))


def test_a_file_larger_than_any_dump(tmp_path: Path) -> None:
    path = pickled(tmp_path / "_dump_0", dump_of(ENTRY))
    with path.open("r+b") as file:
        file.truncate(Limits().file_bytes + 1)
    assert "larger than a dump can be" in because(path, Limits())


def test_cut_anywhere(tmp_path: Path) -> None:
    whole = pickle.dumps(dump_of(ENTRY, pg_config={"0": {"ranks": "[0]"}}), protocol=2)
    paths = []
    for length in range(2, len(whole), 7):
        paths.append(tmp_path / f"_dump_{length}")
        paths[-1].write_bytes(whole[:length])
    for answer in answers(paths, NARROW):
        assert isinstance(answer, Refusal)
        assert "too early" in answer.because or "damaged" in answer.because


def test_what_follows_the_end_is_told(tmp_path: Path) -> None:
    path = crafted(tmp_path / "_dump_0", b"]", after=b"cos\nsystem\n.")
    assert because(path) == "12 bytes follow its end"


JSONS: Mapping[str, tuple[bytes, str]] = {
    "cut": (json.dumps(dump_of(ENTRY)).encode()[:-40], "not as PyTorch writes it"),
    "no Unicode": (b'{"version": "\xff", "pg_config": {}, "entries": []}', "not as PyTorch writes it"),
    "half a pair": (b'{"version": "\\ud800", "pg_config": {}, "entries": []}', "not as PyTorch writes it"),
    "deep": (b'{"pg_config": {}, "x": ' + b"[" * 1_000_000, "nested too deeply|not as PyTorch"),
    "a number of 2 ** 63": (json.dumps(dump_of({**ENTRY, "record_id": 2**63})).encode(), "Expected `int`"),
    "a number without end": (b'{"pg_status": {"0": {"last_started_collective": 1e999}}}', "not as PyTorch writes it"),
}


@pytest.mark.parametrize("case", JSONS)
def test_json_that_no_dump_is(case: str, tmp_path: Path) -> None:
    data, said = JSONS[case]
    path = tmp_path / "rank_0.json"
    path.write_bytes(data)
    assert any(part in because(path) for part in said.split("|"))


def test_one_that_cannot_be_read_leaves_the_others(tmp_path: Path) -> None:
    """The worker that ends over a dump has another one follow it, which goes on with the next."""
    paths = Job(n_ranks=8, n_entries=5).write(tmp_path)
    crafted(paths[1], memo_bomb())
    paths[2].write_bytes(paths[2].read_bytes()[:-50])
    crafted(paths[3], memo_bomb())
    pickled(paths[5], {"version": "2.9", "entries": [Call(print, "harm")]})
    with opened(*paths) as case:
        read = {source.rank: source for source in case.sources}
        assert set(read) == set(range(8))
        unread = {rank for rank, source in read.items() if source.is_unread}
        assert unread == {1, 2, 3, 5}
        assert {(read[rank].rank_origin, read[rank].has_timeline) for rank in unread} == {("file name", False)}
        assert not any(read[rank].captured("recorder_entry") for rank in unread)
        notes = " ".join(note for rank in unread for note in case.notes(read[rank].id))
        for part in ("takes more memory", "ends too early", "wants to load __builtin__.print"):
            assert part in notes
        assert len(entries(case)) == 4 * 5


def test_dumps_that_say_the_same_are_of_different_ranks(tmp_path: Path) -> None:
    """As all do when the job never came to its first collective."""
    nothing = {"version": "2.10", "pg_config": {}, "pg_status": {}, "entries": []}
    for rank in range(3):
        pickled(tmp_path / f"_dump_{rank}", nothing)
    with opened(tmp_path) as case:
        assert [source.rank for source in case.sources] == [0, 1, 2]


def test_none_that_can_be_read_is_an_error_that_counts_them(tmp_path: Path) -> None:
    paths = [crafted(tmp_path / f"_dump_{rank}", b"Q") for rank in range(3)]
    for path in paths:
        path.write_bytes(path.read_bytes() + bytes([int(path.name[-1])]))
    with pytest.raises(InputError, match=r"_dump_0 cannot be read as .* The 2 other files cannot be read either\."):
        opened(*paths).__enter__()


def test_workers_are_gone_when_nobody_listens_any_more(tmp_path: Path) -> None:
    heard = answers(Job(n_ranks=8, n_entries=5).write(tmp_path), NARROW)
    assert isinstance(next(heard), Dump)
    heard.close()
    children = Path("/proc/self/task") / str(_main_thread()) / "children"
    assert b"recorder.worker" not in b"".join(
        Path(f"/proc/{child}/cmdline").read_bytes() for child in children.read_text().split()
    )


def _main_thread() -> int:
    return int(Path("/proc/thread-self").resolve().name)
