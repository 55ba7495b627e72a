"""The ways in which one line of a module can be wrong: small changes of its source, each of which a test should notice.

A mutant is a piece of text and what stands there instead, so that it can be read, written into a list and found again
after the lines around it moved. Left alone is what no promise is about: annotations, decorators, documentation,
what goes to a log, the words of messages, and `TYPE_CHECKING`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
CALLS = {"max": "min", "min": "max", "any": "all", "all": "any", "reversed": "list", "sorted": "list"}
SQL = (
    (" < ", " <= "),
    (" <= ", " < "),
    (" > ", " >= "),
    (" >= ", " > "),
    (" AND ", " OR "),
    (" DESC", " ASC"),
    ("MAX(", "MIN("),
    ("MIN(", "MAX("),
    (" + 1", " + 2"),
    (" IS NULL", " IS NOT NULL"),
    (" IS NOT NULL", " IS NULL"),
    (" NOT IN ", " IN "),
)
LONGEST = 90
"""Characters of a piece of source in the name of a mutant."""
SQL_WORDS = re.compile(r"\b(SELECT|UPDATE|INSERT|DELETE|WHERE|SET|ORDER BY)\b")
EMPTY = {"bool": ("True", "False"), "int": ("0",), "str": ('""',), "list": ("[]",), "tuple": ("()",), "dict": ("{}",)}
"""What a function of a type returns instead."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one module."""

    path: str
    where: str
    """The function or class it stands in."""
    line: int
    start: int
    stop: int
    old: str
    new: str
    nth: int = 0
    """Which of several equal pieces of the same function."""

    @property
    def name(self) -> str:
        """The same after other lines were changed."""
        nth = f" ({self.nth + 1})" if self.nth else ""
        return f"{self.path} {self.where}: {_short(self.old)} -> {_short(self.new)}{nth}"

    def applied(self, source: bytes) -> bytes:
        """The module with the change in it."""
        return source[: self.start] + self.new.encode() + source[self.stop :]


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 20]} … {text[-17:]}"


def mutants(path: str, source: bytes) -> list[Mutant]:
    """All mutants of a module. A few are no Python any more (`is_python`)."""
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return finder.found


def is_python(source: bytes) -> bool:
    """Whether a module can be read."""
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


class _Finder(ast.NodeVisitor):
    def __init__(self, path: str, source: bytes) -> None:
        self.found: list[Mutant] = []
        self._path = path
        self._source = source
        self._lines = [0, *(match.end() for match in re.finditer(b"\n", source))]
        self._where: list[str] = []
        self._returns: list[str] = []
        self._seen: dict[tuple[str, str, str], int] = {}

    # -- where things stand

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def _stop(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.expr | ast.stmt) -> str:
        return self._source[self._start(node) : self._stop(node)].decode()

    def _note(self, start: int, stop: int, new: str) -> None:
        old, where = self._source[start:stop].decode(), ".".join(self._where) or "module"
        if old == new:
            return
        key = (where, _short(old), _short(new))
        nth = self._seen.get(key, 0)
        self._seen[key] = nth + 1
        line = self._source.count(b"\n", 0, start) + 1
        self.found.append(Mutant(self._path, where, line, start, stop, old, new, nth))

    def _replace(self, node: ast.expr | ast.stmt, *replacements: str) -> None:
        for new in replacements:
            self._note(self._start(node), self._stop(node), new)

    def _joint(self, left: ast.expr, right: ast.expr, signs: tuple[str, str]) -> None:
        """An operator between two operands: the mutant shows all three."""
        old, new = signs
        between = self._source[self._stop(left) : self._start(right)].decode()
        pattern = r"\s+".join(map(re.escape, old.split()))
        changed = re.sub(pattern, new, between, count=1)
        if changed != between:
            whole = self._text(left) + changed + self._text(right)
            self._note(self._start(left), self._stop(right), whole)

    # -- what is left alone

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """The places of what stands inside are not known before Python 3.12."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assigned(node.target, node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._assigned(node.targets[0], node.value)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        """A constant of a module or a field of a class is a place of its own."""
        if isinstance(target, ast.Name) and not any(self._returns):
            self._inside(target.id, "", [value])
        else:
            self.visit(value)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside(node.name, "", node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        defaults = [default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None]
        returns = ast.unparse(node.returns).partition("[")[0] if node.returns else ""
        self._inside(node.name, returns or "None", [*defaults, *node.body])

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - the name is ast's

    def _inside(self, name: str, returns: str, nodes: Sequence[ast.AST]) -> None:
        self._where.append(name)
        self._returns.append(returns)
        for node in nodes:
            self.visit(node)
        self._where.pop()
        self._returns.pop()

    # -- statements

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) or self._text(node).startswith(("_log.", "log.", "logging.")):
            return
        self._replace(node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._replace(node, "pass")
        if type(node.op) in ARITHMETIC:
            old, new = ARITHMETIC[type(node.op)]
            whole = self._text(node)
            self._replace(node, whole.replace(f"{old}=", f"{new}=", 1))
        self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        # Not into it: the words of an error are nobody's promise.
        self._replace(node, "pass")

    def visit_Delete(self, node: ast.Delete) -> None:
        self._replace(node, "pass")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, "break")

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(node, "pass")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is None:
            self._replace(node, "pass")
            return
        if not isinstance(node.value, ast.Constant):
            self._replace(node.value, *EMPTY.get(self._returns[-1], ("None",)))
        self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) == "TYPE_CHECKING":
            return
        self._condition(node.test)
        self.generic_visit(node)

    # -- expressions

    def _condition(self, test: ast.expr) -> None:
        if not any(isinstance(part, ast.NamedExpr) for part in ast.walk(test)):
            self._replace(test, "True", "False")

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            if not any(isinstance(part, ast.NamedExpr) for part in ast.walk(test)):
                self._replace(test, "True")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for (left, right), sign in zip(pairwise([node.left, *node.comparators]), node.ops, strict=True):
            self._joint(left, right, COMPARISONS[type(sign)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        signs = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in pairwise(node.values):
            self._joint(left, right, signs)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._replace(node, f"({self._text(node.operand)})")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = (ast.JoinedStr, ast.List, ast.Tuple)
        words = any(
            isinstance(side, texts) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
            for side in (node.left, node.right)
        )
        if type(node.op) in ARITHMETIC and not words:
            self._joint(node.left, node.right, ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._replace(node, str(not value))
        elif isinstance(value, int):
            self._replace(node, *(str(other) for other in (value + 1, value - 1) if other >= 0))
        elif isinstance(value, float):
            self._replace(node, str(value / 10), str(value * 2))
        elif isinstance(value, str) and SQL_WORDS.search(value):
            self._sql(node)

    def _sql(self, node: ast.Constant) -> None:
        start, text = self._start(node), self._source[self._start(node) : self._stop(node)]
        for old, new in SQL:
            for match in re.finditer(re.escape(old.encode()), text):
                # With a word on each side, so that the list of mutants can be read.
                before = re.search(rb"[\w.()?%]*$", text[: match.start()])
                behind = re.match(rb"[\w.()?%]*", text[match.end() :])
                assert before is not None
                assert behind is not None
                new_text = (before[0] + new.encode() + behind[0]).decode()
                self._note(start + before.start(), start + match.end() + behind.end(), new_text)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in CALLS:
            self._replace(node.func, CALLS[node.func.id])
        starred = any(isinstance(argument, ast.Starred) for argument in node.args[:2])
        if len(node.args) > 1 and not starred and self._text(node.func) not in ("max", "min"):
            first, second = node.args[:2]
            between = self._source[self._stop(first) : self._start(second)].decode()
            swapped = self._text(second) + between + self._text(first)
            self._note(self._start(first), self._stop(second), swapped)
        self._keywords(node)
        self.generic_visit(node)

    def _keywords(self, node: ast.Call) -> None:
        """Each named argument left out; the default counts then."""
        for keyword in node.keywords:
            if keyword.arg is not None and len(node.args) + len(node.keywords) > 1:
                start = self._lines[keyword.lineno - 1] + keyword.col_offset
                stop = self._stop(keyword.value)
                behind = re.match(rb"\s*,\s*", self._source[stop:])
                if behind is not None:
                    self._note(start, stop + behind.end(), "")
