"""Mutants: a file with one operator, comparison, constant or choice changed into its neighbour."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.And: ast.Or,
    ast.Or: ast.And,
}

NAMES = {
    "min": "max",
    "minimum": "maximum",
    "any": "all",
    "left": "right",
    "floor": "ceil",
    "start_ns": "end_ns",
    "starts_ns": "ends_ns",
}
NAMES |= {other: name for name, other in NAMES.items()}


@dataclass(frozen=True)
class Mutant:
    path: Path  # of the file, from the root
    site: int  # of all nodes of the file, in the order of `ast.walk`
    line: int
    lines: range  # of the innermost statement; empty outside of functions, where a line runs when it is imported
    says: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} #{self.site} {self.says}"


def mutants_of(root: Path, path: Path) -> Iterator[Mutant]:
    tree = ast.parse((root / path).read_text(encoding="utf-8"))
    skipped, lines = _without_effect(tree), dict(_statement_lines(tree))
    for site, node in enumerate(ast.walk(tree)):
        line = getattr(node, "lineno", 0)
        if id(node) not in skipped and (says := _change(node)):
            yield Mutant(path, site, line, lines.get(id(node), range(0)), says)


def _statement_lines(tree: ast.Module) -> Iterator[tuple[int, range]]:
    """By the identity of nodes inside functions; inner statements come later than what they are part of."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for statement in (node for part in function.body for node in ast.walk(part) if isinstance(node, ast.stmt)):
            lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
            yield from ((id(node), lines) for node in ast.walk(statement))


def mutated(root: Path, mutant: Mutant) -> ast.Module:
    """The changed file. Lines are those of the file, so that a traceback reads as usual."""
    tree = ast.parse((root / mutant.path).read_text(encoding="utf-8"))
    for site, node in enumerate(ast.walk(tree)):
        if site == mutant.site:
            _change(node)
    return tree


def _without_effect(tree: ast.Module) -> set[int]:
    """What the program does not compute with: types, and what dataclasses are told about themselves."""
    found: list[ast.AST] = []
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(decorator_list=decorators, returns=returns):
                found += [*decorators, *filter(None, [returns])]
            case ast.ClassDef(decorator_list=decorators):
                found += decorators
            case ast.AnnAssign(annotation=annotation):
                found.append(annotation)
            case ast.arg(annotation=ast.AST() as annotation):
                found.append(annotation)
            case ast.Assign(value=ast.BinOp(op=ast.BitOr(), left=ast.Name() | ast.Subscript())):  # an alias of types
                found.append(node)
            case ast.keyword(arg="strict" | "repr" | "frozen"):
                found.append(node)
            case ast.Call(func=ast.Name(id="isinstance" | "TypeVar" | "cast")):
                found.append(node)
    return {id(inner) for node in found for inner in ast.walk(node)}


def _change(node: ast.AST) -> str | None:
    """Changes the node where it is one that can be, and says how."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in OPERATORS:
            node.ops = [OPERATORS[type(op)]()]  # type: ignore[list-item]
            return _turned(op, node.ops[0])
        case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op) if type(op) in OPERATORS:
            if isinstance(node, ast.BinOp) and any(_is_text(side) for side in (node.left, node.right)):
                return None
            node.op = OPERATORS[type(op)]()  # type: ignore[assignment]
            return _turned(op, node.op)
        case ast.UnaryOp(op=ast.USub()):
            node.op = ast.UAdd()
            return "- → +"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            node.operand = ast.UnaryOp(ast.Not(), operand)
            ast.fix_missing_locations(node)
            return "not → not not"
        case ast.IfExp(body=body, orelse=orelse):
            node.body, node.orelse = orelse, body
            return "if ↔ else"
        case ast.Constant(value=bool(value)):
            node.value = not value
            return f"{value} → {node.value}"
        case ast.Constant(value=int(value) | float(value)):
            node.value = value + 1 if abs(value) < 100 else value * 2
            return f"{value} → {node.value}"
        case ast.Constant(value="left" | "right" as value):
            node.value = NAMES[value]
            return f"{value} → {node.value}"
        case ast.Name(id=name) if name in NAMES and isinstance(node.ctx, ast.Load):
            node.id = NAMES[name]
            return f"{name} → {node.id}"
        case ast.Attribute(attr=name) if name in NAMES and isinstance(node.ctx, ast.Load):
            node.attr = NAMES[name]
            return f".{name} → .{node.attr}"
    return None


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _turned(before: ast.AST, after: ast.AST) -> str:
    return f"{type(before).__name__} → {type(after).__name__}"
