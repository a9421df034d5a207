"""Names as the case stores them: what a name is grouped by, and how a kernel's name is shortened."""

from __future__ import annotations

import re

# Also used on whole columns by Arrow's RE2, hence no look-around. The line in `train.py(37): step` is no counter but
# tells functions apart, so a number after "y(" stays.
LOST_NAME = "(lost name "
"""What names begin with that stand for those which a damaged file has lost."""

NUMBER = r"#[0-9]+|(^\(?|[^0-9A-Za-z(]|[^y]\()(?:0x[0-9a-fA-F]+|[0-9]+)(\b|_)"
NUMBER_REPLACEMENT = r"\1#\2"
_NUMBER = re.compile(NUMBER)


def pattern_of(text: str) -> str:
    """`text` with each free-standing number or address replaced by '#'; digits inside words and line numbers stay.

    >>> pattern_of("aten::view, op_id = 314290")
    'aten::view, op_id = #'
    >>> pattern_of("ProfilerStep#12 of layer_3")
    'ProfilerStep# of layer_#'
    >>> pattern_of("train.py(37): step"), pattern_of("layer (3)")
    ('train.py(37): step', 'layer (#)')
    >>> pattern_of("3D_backbone"), pattern_of("block_3_head_7")
    ('3D_backbone', 'block_#_head_#')
    >>> pattern_of("sm80_gemm_f32 at 0x7f00")
    'sm80_gemm_f32 at #'
    """
    return _NUMBER.sub(NUMBER_REPLACEMENT, text)


def short_kernel_name(demangled: str) -> str:
    """The function's own name: no return type, namespaces, template or call arguments.

    >>> short_kernel_name("void at::native::vectorized_elementwise_kernel<4, F<c10::Half>, X<char*, 1> >(int, F)")
    'vectorized_elementwise_kernel'
    """
    text = _without_brackets(demangled.replace("(anonymous namespace)", "")).strip()
    return text.split(" ")[-1].split("::")[-1] or demangled


def _without_brackets(text: str) -> str:
    kept: list[str] = []
    depth = 0
    for character in text:
        if character in "<(" and not (character == "<" and text.startswith("operator<", max(0, len(kept) - 8))):
            depth += 1
        elif character in ">)" and depth:
            depth -= 1
        elif not depth:
            kept.append(character)
    return "".join(kept)
