"""Figures as people state them in running work: a number with a unit of their own, alone or before and after."""

from __future__ import annotations

import math
import re

LONGEST_UNIT = 24

_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d{1,3})?"
_UNIT = r"[^\s\d.+\-][^\n]*?"
_FIGURE = re.compile(rf"\s*({_NUMBER})\s*({_UNIT})\s*")
_BEFORE_AFTER = re.compile(rf"\s*({_NUMBER})\s*({_UNIT})?\s*(?:->|→)\s*({_NUMBER})\s*({_UNIT})\s*")


def figure(text: str) -> tuple[float, str]:
    """A number and its unit. Raises ValueError for what is none.

    >>> figure("9.2 ms"), figure("3 launches"), figure("-5%")
    ((9.2, 'ms'), (3.0, 'launches'), (-5.0, '%'))
    """
    found = _FIGURE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no number with a unit. Write for example '9.2 ms'.")
    return _value(found[1]), _unit(found[2])


def before_and_after(text: str) -> tuple[float, float, str]:
    """Two numbers of one unit. Raises ValueError for what is none.

    >>> before_and_after("12.4 -> 9.3 ms"), before_and_after("0 GB → 1.5 GB")
    ((12.4, 9.3, 'ms'), (0.0, 1.5, 'GB'))
    """
    found = _BEFORE_AFTER.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} does not tell before, after and unit. Write for example '12.4 -> 9.3 ms'.")
    if found[2] is not None and found[2] != found[4]:
        raise ValueError(f"{text!r} has two units. Write both numbers in one, for example '12.4 -> 9.3 ms'.")
    return _value(found[1]), _value(found[3]), _unit(found[4])


def _value(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large a number.")
    return value


def _unit(text: str) -> str:
    if len(text) > LONGEST_UNIT:
        raise ValueError(f"{text!r} is longer than a unit: at most {LONGEST_UNIT} characters.")
    return text
