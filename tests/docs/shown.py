"""The commands that the documentation shows: in code blocks, with what they print, and in the text.

In a code block of a shell (```sh), every line is a command. In any other block, a line is one that begins with `$ ` or
with the name of a program that pages use. What follows a command with `$ ` up to the next one is what it prints; a line
that is only `…` stands for any number of lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("README*.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "examples/**/README.md")
PAGES = sorted({path.relative_to(ROOT).as_posix() for pattern in SOURCES for path in ROOT.glob(pattern)})

PROGRAMS = """
    apt apt-get awk bash cat cd chmod cp curl cuobjdump dask diag dmesg docker echo env export gdb git grep gunzip gzip
    head helm jq jupyter kill kubectl ls make mkdir mkdocs mpirun mv ncclras ncu nohup nsys nvidia-smi pip pipx podman
    py-spy pytest python python3 rm rsync sbatch scp sed sh sleep sqlite3 squeue srun ssh sudo tail tar timeout torchrun
    touch uv vllm watch wget zcat zgrep
""".split()  # noqa: SIM905 - as a list it would be a page long

SHELL = ("sh", "bash", "shell", "console")
_FENCE = re.compile(r"(?P<indent> *)(?:```|~~~)(?P<language>[\w+-]*).*")
_COMMAND = re.compile(rf"(?:\w+=\S* )*(?:[\w./~-]*/)?(?:{'|'.join(PROGRAMS)})(?: |$)|\w+=\S*(?: \w+=\S*)*$")
_INLINE = re.compile(r"(?<!`)`(diag [^`]+)`(?!`)")
_COMMENT = re.compile(r"(?:^|\s)#(?:\s|$).*")


@dataclass(frozen=True)
class Block:
    language: str | None  # None: indented
    line: int  # of its first line, from 1
    lines: Sequence[str]


@dataclass(frozen=True)
class Shown:
    """A command, and what the page says that it prints, if it says that."""

    page: str
    line: int
    text: str
    printed: str | None = None

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"

    @property
    def is_grammar(self) -> bool:
        """It shows what may be given, not what to type: `diag report INPUT…`, `diag watch [PID]`."""
        return bool(re.search(r"…|\[[A-Z:]+\]|(?<=\w)\|(?=\w)| \| --|\S {3,}\S", self.text)) and not re.search(
            "['\"]", self.text
        )


def blocks(text: str) -> Iterator[Block]:
    """Code blocks, fenced and indented. Within a list, the block's own indentation is what counts."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence:
            body = list(takewhile(lambda line: not _FENCE.fullmatch(line), lines[at + 1 :]))
            yield Block(fence["language"], at + 2, _dedented(body))
            at += len(body) + 2
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip() or lines[at - 1].startswith("#")):
            body = list(takewhile(lambda line: not line.strip() or line.startswith("    "), lines[at:]))
            yield Block(None, at + 1, _dedented(body))
            at += len(body)
        else:
            at += 1


def commands(page: str) -> list[Shown]:
    """Of all code blocks of a page, in its order."""
    found = []
    for block in blocks((ROOT / page).read_text("utf-8")):
        found += list(_of_block(page, block))
    return found


def inline(page: str) -> list[Shown]:
    """`diag …` in the text."""
    text = (ROOT / page).read_text("utf-8")
    hidden = list(text.splitlines())
    for block in blocks(text):
        hidden[block.line - 1 : block.line - 1 + len(block.lines)] = [""] * len(block.lines)
    outside = "\n".join(hidden)
    return [
        Shown(page, outside.count("\n", 0, match.start()) + 1, " ".join(match[1].split()))
        for match in _INLINE.finditer(outside)
    ]


def _of_block(page: str, block: Block) -> Iterator[Shown]:
    at = 0
    while at < len(block.lines):
        line = block.lines[at]
        start = at
        at += 1
        if not _is_command(line, block.language):
            continue
        text = line.removeprefix("$ ")
        while at < len(block.lines) and _goes_on(text):
            text = (
                f"{text[:-1].rstrip()} {block.lines[at].strip()}"
                if text.endswith("\\")
                else f"{text}\n{block.lines[at]}"
            )
            at += 1
        printed = None
        if line.startswith("$ "):
            output = list(takewhile(lambda each: not each.startswith("$ "), block.lines[at:]))
            at += len(output)
            printed = "\n".join(output).rstrip() or None
        yield Shown(page, block.line + start, _COMMENT.sub("", text).rstrip(), printed)


def _is_command(line: str, language: str | None) -> bool:
    if line.startswith("$ "):
        return True
    if language in SHELL:
        return bool(_COMMENT.sub("", line).strip())
    return not language and _COMMAND.match(line) is not None


def _goes_on(text: str) -> bool:
    """Within quotes, or behind a backslash."""
    said = _COMMENT.sub("", text)
    return said.endswith("\\") or said.count('"') % 2 == 1 or said.count("'") % 2 == 1


def _dedented(lines: Sequence[str]) -> list[str]:
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[indent:].rstrip() for line in lines]
