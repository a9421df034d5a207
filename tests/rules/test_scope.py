"""Windows as they are written, in ns; and what is no window."""

from __future__ import annotations

import pytest

from diag.errors import UsageError
from diag.rules.scope import LATEST_NS, parse_window


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("100ms:2.5s", (100_000_000, 2_500_000_000)),
        (":1s", (0, 1_000_000_000)),
        ("3s:", (3_000_000_000, LATEST_NS)),
        (":", (0, LATEST_NS)),
        ("1ns:2ns", (1, 2)),
        (" 1 us : 1µs ", None),
        ("1us:1001ns", (1_000, 1_001)),
        ("2s:1s", None),
        ("0s:0s", None),
        ("1:2", None),
        ("1s", None),
        ("1s:2s:3s", None),
        ("1s:soon", None),
        ("-1s:2s", None),
        ("2305843009213693951ns:", (LATEST_NS - 1, LATEST_NS)),
        ("2305843009213693952ns:", None),
        (":2305843009213693952ns", (0, LATEST_NS)),
        (":2305843009213693953ns", None),
    ],
)
def test_windows(text: str, window: tuple[int, int] | None) -> None:
    if window is None:
        with pytest.raises(UsageError, match="START:END"):
            parse_window(text)
    else:
        assert parse_window(text) == window


@pytest.mark.parametrize(("text", "how"), [("1s:1000ms", "ends where it starts"), ("2s:1s", "ends before it starts")])
def test_a_window_of_no_time_says_so(text: str, how: str) -> None:
    with pytest.raises(UsageError, match=how):
        parse_window(text)
