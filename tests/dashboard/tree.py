"""A page as a tree that a test can ask, without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset(("meta", "link", "input", "br", "hr", "img", "option"))


@dataclass(slots=True)
class Node:
    """One element; texts are nodes without a name."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)
    words: str = ""

    @property
    def text(self) -> str:
        """Everything written inside."""
        return self.words + "".join(child.text for child in self.children)

    @property
    def line(self) -> str:
        """The same with single spaces."""
        return " ".join(self.text.split())

    def __getitem__(self, name: str) -> str:
        return self.attributes[name]

    def all(self, name: str = "", **attributes: str) -> list[Node]:
        """Elements inside by name and attributes (`cls` is one of the classes; `_` stands for `-`)."""
        return [node for node in self._walk() if _fits(node, name, attributes)]

    def one(self, name: str = "", **attributes: str) -> Node:
        """The first of them."""
        return self.all(name, **attributes)[0]

    def _walk(self) -> Iterator[Node]:
        for child in self.children:
            yield child
            yield from child._walk()


def _fits(node: Node, name: str, attributes: dict[str, str]) -> bool:
    if not node.name or (name and node.name != name):
        return False
    for key, value in attributes.items():
        if key == "cls":
            if value not in node.attributes.get("class", "").split():
                return False
        elif node.attributes.get(key.replace("_", "-")) != value:
            return False
    return True


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Node("page")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in _VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if any(node.name == tag for node in self.open[1:]):
            while self.open.pop().name != tag:
                pass

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(Node("", words=data))


def tree(html: str) -> Node:
    """The page."""
    builder = _Builder()
    builder.feed(html)
    builder.close()
    return builder.open[0]
