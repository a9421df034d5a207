"""The tree of folders, with those files in it that diag reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from rich.text import Text, TextType
from textual import work
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from diag.errors import DiagError
from diag.ingest.detect import detect
from diag.tui.text import safe

MOST_LOOKED_INTO = 1_000
"""Of more files in one folder only the names are looked at."""

MOST_SHOWN = 5_000

_ENDINGS = (".nsys-rep", ".qdrep", ".qdstrm", ".sqlite", ".ncu-rep", ".csv", ".txt", ".log", ".json", ".gz", ".diag")


def might_read(path: Path) -> bool:
    """Whether it is a folder, or a file that diag has a reader for."""
    if path.name.startswith("."):
        return False
    try:
        return path.is_dir() or bool(detect(path))
    except (DiagError, OSError):
        return False


def readable_in(folder: Path) -> list[Path]:
    """Folders first, each by name. Raises OSError when the folder cannot be read."""
    every = [path for path in folder.iterdir() if not path.name.startswith(".")]
    if len(every) > MOST_LOOKED_INTO:
        kept = [path for path in every if path.name.endswith(_ENDINGS) or path.is_dir()]
    else:
        kept = list(filter(might_read, every))
    return sorted(kept, key=lambda path: (not path.is_dir(), path.name))[:MOST_SHOWN]


class Files(Tree[Path]):
    """Names of files are shown as text, never as mark-up. A folder is read when it is opened."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark", "Mark"),
        Binding("backspace", "up", "Folder above"),
    ]

    class Opened(Message):
        """Enter on a file."""

        def __init__(self, path: Path) -> None:
            super().__init__()
            self.path = path

    class Marked(Message):
        """Space on a file or folder."""

        def __init__(self, path: Path) -> None:
            super().__init__()
            self.path = path

    def __init__(self, folder: Path) -> None:
        super().__init__(_shown(folder), folder, id="files")
        self.auto_expand = False

    def on_mount(self) -> None:
        self.look_again()

    def look_again(self) -> None:
        """From the folder at the top anew: files may have come."""
        self.root.collapse()
        self.root.expand()

    def process_label(self, label: TextType) -> Text:
        return Text(safe(str(label), 200))

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Path]) -> None:
        event.stop()
        self._read(event.node)

    def on_tree_node_selected(self, event: Tree.NodeSelected[Path]) -> None:
        event.stop()
        if event.node.allow_expand:
            event.node.toggle()
        elif event.node.data:
            self.post_message(self.Opened(event.node.data))

    def action_mark(self) -> None:
        if self.cursor_node and self.cursor_node.data:
            self.post_message(self.Marked(self.cursor_node.data))

    def action_up(self) -> None:
        """The tree begins one folder higher."""
        if self.root.data and self.root.data != self.root.data.parent:
            above = self.root.data.parent
            self.reset(_shown(above), above)
            self.look_again()

    @work(thread=True)
    def _read(self, node: TreeNode[Path]) -> None:
        assert node.data is not None
        try:
            found: Sequence[Path] | None = readable_in(node.data)
        except OSError as error:
            self.app.call_from_thread(self._fill, node, (), f"cannot be read: {error.strerror}")
            return
        self.app.call_from_thread(self._fill, node, found, "" if found else "nothing here that diag reads")

    def _fill(self, node: TreeNode[Path], found: Sequence[Path], otherwise: str) -> None:
        node.remove_children()
        for path in found:
            if path.is_dir():
                node.add(f"{path.name}/", path)
            else:
                node.add_leaf(path.name, path)
        if otherwise:
            node.add_leaf(f"({otherwise})")


def _shown(folder: Path) -> str:
    return f"{folder.name}/"
