"""Formulas over metrics: read from text, spelt out again, evaluated.

Numbers, names of metrics, + - * / and parentheses, with the precedence of arithmetic.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any


@dataclass(frozen=True)
class Number:
    value: float


@dataclass(frozen=True)
class Name:
    name: str


@dataclass(frozen=True)
class Operation:
    sign: str  # + - * /
    left: Tree
    right: Tree


Tree = Number | Name | Operation

_TOKEN = re.compile(r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)|(?P<name>@?[A-Za-z_][\w.:]*)|(?P<sign>[-+*/()]))")


def parsed(text: str) -> Tree:
    """A formula of numbers, names, + - * / and parentheses. Raises ValueError, which a test of the data files finds.

    >>> parsed("a.sum / 2")
    Operation(sign='/', left=Name(name='a.sum'), right=Number(value=2.0))
    """
    tokens = _tokens(text)
    tree, rest = _sum(tokens)
    if rest:
        raise ValueError(f"{text!r} goes on after its end: {rest[0]!r}")
    return tree


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    text = text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"{text!r} cannot be read from {text[at:]!r} on")
        tokens.append(match.group().strip())
        at = match.end()
    return tokens


_Parser = Callable[[list[str]], tuple[Tree, list[str]]]
"""Takes tokens, returns the tree that they begin with and the tokens behind it."""


def _sum(tokens: list[str]) -> tuple[Tree, list[str]]:
    return _chain(tokens, "+-", _product)


def _product(tokens: list[str]) -> tuple[Tree, list[str]]:
    return _chain(tokens, "*/", _atom)


def _chain(tokens: list[str], signs: str, operand: _Parser) -> tuple[Tree, list[str]]:
    """Operands with one of the signs between them: the first two are taken together first."""
    left, rest = operand(tokens)
    while rest and rest[0] in signs:
        sign = rest[0]
        right, rest = operand(rest[1:])
        left = Operation(sign, left, right)
    return left, rest


def _atom(tokens: list[str]) -> tuple[Tree, list[str]]:
    if not tokens:
        raise ValueError("a formula ends too early")
    first, rest = tokens[0], tokens[1:]
    if first == "(":
        inner, rest = _sum(rest)
        if rest[:1] != [")"]:
            raise ValueError("a parenthesis is not closed")
        return inner, rest[1:]
    if first[0].isdigit():
        return Number(float(first)), rest
    if first in "+-*/)":
        raise ValueError(f"{first!r} stands where a value should")
    return Name(first), rest


def spelt(tree: Tree) -> str:
    """The formula as text, with no more parentheses than it needs.

    >>> spelt(parsed("(1 - (2 - a)) * (3 / (b / c))"))
    '(1 - (2 - a)) * 3 / (b / c)'
    """
    match tree:
        case Number(value):
            return f"{value:g}"
        case Name(name):
            return name
        case Operation(sign, left, right):
            before, after = spelt(left), spelt(right)
            if _binds(left) < _BINDS[sign]:
                before = f"({before})"
            if _binds(right) < _BINDS[sign] or (sign in "-/" and _binds(right) == _BINDS[sign]):
                after = f"({after})"
            return f"{before} {sign} {after}"


_BINDS = {"+": 1, "-": 1, "*": 2, "/": 2}


def _binds(tree: Tree) -> int:
    return _BINDS[tree.sign] if isinstance(tree, Operation) else 3


# ---- values -------------------------------------------------------------------------------------------------------


@lru_cache(1 << 12)
def names_in(tree: Tree) -> tuple[str, ...]:
    """Metrics and quantities that a formula reads, each once."""
    match tree:
        case Name(name):
            return (name,)
        case Operation(_, left, right):
            return tuple(dict.fromkeys(names_in(left) + names_in(right)))
    return ()


class DividedByZero(Exception):
    def __init__(self, denominator: str) -> None:
        self.denominator = denominator


def value_of(tree: Tree, values: Mapping[str, Any]) -> float:
    match tree:
        case Number(value):
            return value
        case Name(name):
            return float(values[name])
        case Operation(sign, left, right):
            a, b = value_of(left, values), value_of(right, values)
            if sign == "/" and b == 0:
                raise DividedByZero(spelt(right))
            return _OPERATORS[sign](a, b)


_OPERATORS: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
