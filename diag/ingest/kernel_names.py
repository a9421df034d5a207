"""The function behind a demangled kernel name, as NVIDIA's tools shorten it."""

from __future__ import annotations

import re

_BRACKET = re.compile(r"->|[(<\[{)>\]}]")
_OPENING = frozenset("(<[{")


def function_of(name: str) -> str:
    """Without return type, namespaces, template arguments and parameters; a name that is no C++ signature stays.

    >>> function_of("void at::native::(anonymous namespace)::copy<(int)4, at::Op<float>>(int, at::Op<float>)")
    'copy'
    >>> function_of("ampere_sgemm_128x64_nn")
    'ampere_sgemm_128x64_nn'
    """
    words = _outside_brackets(name).rpartition("::")[2].split()
    return words[-1] if words else name


def _outside_brackets(name: str) -> str:
    kept: list[str] = []
    depth = at = 0
    for match in _BRACKET.finditer(name):
        if depth == 0:
            kept.append(name[at : match.start()])
        if match[0] in _OPENING:
            depth += 1
        elif match[0] != "->":
            depth = max(0, depth - 1)
        at = match.end()
    if depth == 0:
        kept.append(name[at:])
    return "".join(kept)
