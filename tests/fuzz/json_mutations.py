"""Changes to a trace in JSON: to its values, which stay JSON, and to its text, which may not.

Mutations of the document return a changed copy; those of the text work on what it is written as. What Python's json
cannot write (a key twice, a number out of range) is put in as a text that is unquoted afterwards.
"""

from __future__ import annotations

import copy
import gzip
import json
import random
import re
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
DocumentMutation = Callable[[Json, random.Random], str]
TextMutation = Callable[[bytes, random.Random], bytes]

_RAW = re.compile(rb'"@raw:([^"]*)@"')


def raw(text: str) -> str:
    """Stands for `text` without the quotation marks around it, and with those in it for its apostrophes."""
    return f"@raw:{text}@"


ODD_VALUES: tuple[object, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, 1.5, -0.0, 1e300,
    float("nan"), float("inf"), raw("1e400"), raw("-1e-400"), raw("00"), raw("1."), raw("9" * 5000), raw("0x10"),
    "", "12", "text", "nan", "\x00", "\x1b[31m", "\ud800", "a\nb", "é漢\U0001f600", "x" * 2_000_000, "(<" * 50_000,
    [], {}, [1], [1, 2, 3], [0, 0, 0], [-1, 2**62, 2**63], {"a": 1}, [[]], "stream 7", "[1, 2]", "{'id': 0}",
)  # fmt: skip


def mutate(document: Json, chance: random.Random) -> tuple[bytes, str]:
    """The text of the document after some mutations of either kind, and what they were."""
    document = copy.deepcopy(document)
    said = [change(document, chance) for change in chance.choices(DOCUMENT_MUTATIONS, k=chance.choice((1, 1, 2, 5)))]
    text = json.dumps(document, ensure_ascii=chance.random() < 0.9).encode("utf-8", "surrogatepass")
    text = _RAW.sub(lambda match: match[1].replace(b"'", b'"'), text)
    if chance.random() < 0.4:
        spoil = chance.choice(TEXT_MUTATIONS)
        text = spoil(text, chance)
        said.append(spoil.__name__)
    return text, "; ".join(said)


# ---- the document --------------------------------------------------------------------------------------------------


def _events(document: Json) -> list[Json]:
    events = document.get("traceEvents")
    return [event for event in events if isinstance(event, dict)] if isinstance(events, list) else []


def _some_event(document: Json, chance: random.Random) -> Json:
    return chance.choice(_events(document) or [{}])


def _some_place(document: Json, chance: random.Random) -> tuple[Json, str]:
    """An event, or its arguments, and one of their keys."""
    event = _some_event(document, chance)
    place = args if isinstance(args := event.get("args"), dict) and args and chance.random() < 0.5 else event
    return place, chance.choice(sorted(place) or ["ts"])


def put_odd_value(document: Json, chance: random.Random) -> str:
    place, key = _some_place(document, chance)
    place[key] = chance.choice(ODD_VALUES)
    return f"{key} of one event is {str(place[key])[:40]!r}"


def put_odd_values(document: Json, chance: random.Random) -> str:
    """The same in all events of a category."""
    event = _some_event(document, chance)
    _, key = _some_place(document, chance)
    value = chance.choice(ODD_VALUES[:-20])
    for other in _events(document):
        if other.get("cat") == event.get("cat"):
            args = other.get("args")
            place = args if isinstance(args, dict) and key in args else other
            place[key] = value
    return f"{key} of all events of category {str(event.get('cat'))[:40]!r} is {str(value)[:40]!r}"


def drop_key(document: Json, chance: random.Random) -> str:
    place, key = _some_place(document, chance)
    place.pop(key, None)
    return f"{key} of one event dropped"


def drop_key_everywhere(document: Json, chance: random.Random) -> str:
    _, key = _some_place(document, chance)
    for event in _events(document):
        event.pop(key, None)
        if isinstance(event.get("args"), dict):
            event["args"].pop(key, None)
    return f"{key} of all events dropped"


def change_metadata(document: Json, chance: random.Random) -> str:
    key = chance.choice(sorted(document))
    document[key] = chance.choice(ODD_VALUES) if key != "traceEvents" or chance.random() < 0.3 else document[key]
    return f"{key} is {str(document[key])[:40]!r}"


def nest_deeply(document: Json, chance: random.Random) -> str:
    depth = chance.choice((10, 500, 5_000, 100_000))
    place, key = _some_place(document, chance) if chance.random() < 0.7 else (document, "deviceProperties")
    opening, closing = chance.choice((("[", "]"), ("{'a':", "}")))
    place[key] = raw(opening * depth + "1" + closing * depth)
    return f"{key} is nested {depth} deep"


def repeat_events(document: Json, chance: random.Random) -> str:
    event, times = _some_event(document, chance), chance.choice((1, 10, 3_000))
    if isinstance(document.get("traceEvents"), list):
        document["traceEvents"] += [event] * times
    return f"one event {times} times more"


def shuffle_events(document: Json, chance: random.Random) -> str:
    if isinstance(document.get("traceEvents"), list):
        chance.shuffle(document["traceEvents"])
    return "events shuffled"


def delete_events(document: Json, chance: random.Random) -> str:
    kept = chance.choice((0, 1, 5))
    if isinstance(document.get("traceEvents"), list):
        document["traceEvents"] = document["traceEvents"][: kept * 10 : kept or 1]
    return f"{kept * 10} events kept"


def put_what_is_no_event(document: Json, chance: random.Random) -> str:
    if isinstance(document.get("traceEvents"), list):
        at = chance.randrange(len(document["traceEvents"]) + 1)
        document["traceEvents"][at:at] = [chance.choice(ODD_VALUES)] * chance.choice((1, 5))
    return "what is no event among the events"


def change_phase(document: Json, chance: random.Random) -> str:
    phase = chance.choice("BEXMsfiC?")
    for _ in range(chance.choice((1, 30))):
        _some_event(document, chance)["ph"] = phase
    return f"some events are of phase {phase}"


def move_times(document: Json, chance: random.Random) -> str:
    shift = chance.choice((-1e15, 1e15, 4e15, -(2**53), 0.001))
    for _ in range(chance.choice((1, 30))):
        event = _some_event(document, chance)
        if isinstance(event.get("ts"), int | float):
            event["ts"] += shift
    return f"some events moved by {shift} us"


DOCUMENT_MUTATIONS: tuple[DocumentMutation, ...] = (
    put_odd_value,
    put_odd_value,
    put_odd_values,
    put_odd_values,
    drop_key,
    drop_key_everywhere,
    change_metadata,
    nest_deeply,
    repeat_events,
    shuffle_events,
    delete_events,
    put_what_is_no_event,
    change_phase,
    move_times,
)


# ---- the text ------------------------------------------------------------------------------------------------------


def write_keys_twice(text: bytes, chance: random.Random) -> bytes:
    key = chance.choice((b'"ts":', b'"args":', b'"traceEvents":', b'"name":'))
    first = chance.choice((b"1", b'"x"', b"null", b"[]", b"{}"))
    return text.replace(key, key + b" " + first + b", " + key, chance.choice((1, -1)))


def encode_otherwise(text: bytes, chance: random.Random) -> bytes:
    encoding = chance.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1"))
    return text.decode("utf-8", "replace").encode(encoding, "replace")


def spoil_utf8(text: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(text))
    return text[:at] + b"\xff\xc3\x28\xed\xa0\x80" + text[at:]


def add_space(text: bytes, chance: random.Random) -> bytes:
    space = chance.choice((b"\n", b" " * 100_000, b"\t", b"\x00", b"\x0b", b"\xa0"))
    return text.replace(b", ", b"," + space, chance.choice((1, 50)))


def drop_punctuation(text: bytes, chance: random.Random) -> bytes:
    return text.replace(chance.choice((b",", b":", b"{", b"}", b"]", b'"')), b"", 1)


def unwrap_list(text: bytes, _: random.Random) -> bytes:
    start, end = text.find(b"["), text.rfind(b"]")
    return text[start : end + 1] or text


def write_python(text: bytes, _: random.Random) -> bytes:
    return text.replace(b'"', b"'").replace(b"null", b"None")


def add_after_end(text: bytes, chance: random.Random) -> bytes:
    return text + chance.choice((b"]", b"}", b"\x00" * 100, text, b',{"ph":"X"}', b"\n\n"))


def end_early(text: bytes, chance: random.Random) -> bytes:
    return text[: chance.randrange(1, len(text))]


TEXT_MUTATIONS: tuple[TextMutation, ...] = (
    write_keys_twice,
    encode_otherwise,
    spoil_utf8,
    add_space,
    drop_punctuation,
    unwrap_list,
    write_python,
    add_after_end,
    end_early,
)


# ---- around it -----------------------------------------------------------------------------------------------------


def packed(text: bytes, chance: random.Random) -> bytes:
    """As gzip, in one member or several, sometimes with what gzip files end with when they were padded or cut."""
    at = chance.randrange(len(text) + 1)
    members = chance.choice(([text], [text[:at], text[at:]], [b"", text, b""]))
    content = b"".join(gzip.compress(member, 1, mtime=0) for member in members)
    return content + chance.choice((b"", b"", b"\0" * 512, b"\x1f", b"\x1f\x8b\x08", b"trailing"))
