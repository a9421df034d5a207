"""What MkDocs cannot do by itself: pages that lie outside docs/, links to files that are no pages, and the verbs.

A page reads well on a code host because it links to files of the repository. On the site, a link to a page leads to
that page; any other file is named instead, or linked where `repo_url` of mkdocs.yml tells where the repository is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from diag.cli.verbs import app

ROOT = Path(__file__).parents[1]
OUTSIDE = ("README.zh.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "THIRD-PARTY.md", "examples/**/README.md")
"""Pages that stay where a code host expects them."""

HOME = {"README.md": "docs/README.md"}
"""The front page of the repository is not one of the site, which has its own."""

NOT_SEARCHED = ("rule-cases.md",)
"""Says in one table what the pages of the rules say one by one."""

LINK = re.compile(r"\[(?P<text>[^\[\]]+)\]\((?P<target>(?![a-z]+:|#)[^()\s#]+)(?P<anchor>#[^()\s]*)?\)")
HELP_COLUMNS = 80


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for page, source in outside().items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text("utf-8")))
    files.append(File.generated(config, "verbs.md", content=verbs_page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    pages = {source_of(file.src_uri): file.src_uri for file in files}
    here = source_of(page.file.src_uri)
    page.meta["search"] = {"exclude": page.file.src_uri in NOT_SEARCHED}

    def on_site(link: re.Match[str]) -> str:
        target = os.path.normpath(PurePosixPath(here).parent / link["target"])
        for candidate in (target, HOME.get(target, ""), f"{target}/README.md"):
            if candidate in pages:
                path = os.path.relpath(pages[candidate], PurePosixPath(page.file.src_uri).parent)
                anchor = "" if target in HOME else link["anchor"] or ""
                return f"[{link['text']}]({path}{anchor})"
        if not (ROOT / target).exists():
            return link[0]  # MkDocs says that it leads nowhere
        if config.repo_url:
            return f"[{link['text']}]({config.repo_url.rstrip('/')}/{config.edit_uri or 'tree/main/'}{target})"
        named = PurePosixPath(target).name in link["text"]
        return link["text"] if named else f"{link['text']} (`{target}`)"

    return LINK.sub(on_site, markdown)


@cache
def outside() -> Mapping[str, str]:
    """Pages of the site that lie elsewhere, and where the repository has them."""
    sources = (path.relative_to(ROOT) for pattern in OUTSIDE for path in sorted(ROOT.glob(pattern)))
    return {_page_of(source): source.as_posix() for source in sources}


def _page_of(source: Path) -> str:
    """
    >>> _page_of(Path("CHANGELOG.md")), _page_of(Path("examples/kubernetes/README.md"))
    ('CHANGELOG.md', 'examples/kubernetes.md')
    """
    return (source.parent.with_suffix(".md") if source.name == "README.md" else source).as_posix()


def source_of(page: str) -> str:
    return outside().get(page, f"docs/{page}")


def verbs_page() -> str:
    """The help of every verb, as the terminal shows it."""
    sections = [f"## {path}\n\n{_indented(said)}" for path, said in helps()]
    return "# The verbs\n\nWhat `diag VERB --help` prints.\n\n" + "\n\n".join(sections) + "\n"


def helps() -> Iterator[tuple[str, str]]:
    """Each verb, and what its --help prints."""
    yield from _helps(typer.main.get_command(app), "diag", None)


def _helps(command: Any, name: str, parent: Any) -> Iterator[tuple[str, str]]:
    context = command.make_context(name, [], parent=parent, resilient_parsing=True, max_content_width=HELP_COLUMNS)
    context.terminal_width = HELP_COLUMNS
    yield context.command_path, context.get_help()
    for each in getattr(command, "commands", {}).values():
        yield from _helps(each, each.name or "", context)


def _indented(said: str) -> str:
    return "".join(f"    {line}".rstrip() + "\n" for line in said.splitlines())
