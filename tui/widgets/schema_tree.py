"""The tables of the case and their columns, with what they mean."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text, TextType
from textual.message import Message
from textual.widgets import Tree

from diag.store.schema_notes import ColumnNote, TableNote
from diag.tui.text import safe

Node = TableNote | ColumnNote


class SchemaTree(Tree[Node]):
    class Asked(Message):
        """Enter on a table."""

        def __init__(self, table: TableNote) -> None:
            super().__init__()
            self.table = table

    class Named(Message):
        """Enter on a column."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    class Reached(Message):
        """The cursor is on something that has this to be said about it."""

        def __init__(self, note: str) -> None:
            super().__init__()
            self.note = note

    def __init__(self) -> None:
        super().__init__("tables")
        self.show_root = False
        self.auto_expand = False
        self.guide_depth = 2

    def process_label(self, label: TextType) -> Text:
        return Text(safe(str(label), 80))

    def fill(self, tables: Sequence[TableNote]) -> None:
        for table in tables:
            node = self.root.add(f"{table.sql}{' (view)' if table.is_view else ''}", table)
            for column in table.columns:
                node.add_leaf(f"{column.name} {column.kind}".rstrip(), column)

    def on_tree_node_selected(self, event: Tree.NodeSelected[Node]) -> None:
        event.stop()
        match event.node.data:
            case TableNote() as table:
                self.post_message(self.Asked(table))
            case ColumnNote(name=name):
                self.post_message(self.Named(name))

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[Node]) -> None:
        event.stop()
        match event.node.data:
            case TableNote(note=note) | ColumnNote(note=note):
                self.post_message(self.Reached(note))
