"""Rewrites the generated parts of the documentation; `--check` only says whether they are up to date.

A generated part stands between `<!-- generated: NAME -->` and `<!-- end generated -->`; GENERATORS says who writes it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import click

from leporello.cli import COMMANDS, GROUPS, program
from leporello.config import SETTINGS
from leporello.testing.store_page import queries_part, schema_part

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
# The four kinds of documentation (https://diataxis.fr): each answers another need of the reader.
KINDS = {
    "tutorial": "Tutorial: learn it by doing",
    "guides": "Guides: get something done",
    "reference": "Reference: look something up",
    "explanation": "Explanation: understand how it works, and how well",
}
PART = re.compile(r"(<!-- generated: ([\w-]+) -->\n)(.*?)(<!-- end generated -->)", re.DOTALL)


def settings_table() -> str:
    """Every setting with its default, what is allowed, and its help."""
    rows = ["| setting | default | allowed | meaning |", "|---|---|---|---|"]
    for setting in SETTINGS:
        default = _plain(setting.default)
        rows.append(f"| `{setting.name}` | {default} | {setting.kind.allowed} | {setting.help} |")
    return "\n".join(rows) + "\n"


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if value is None:
        return "`null`"
    if value == () or value == {}:
        return "empty"
    return f"`{value}`"


def commands_help() -> str:
    """The help page of every command, as the program prints it."""
    pages = []
    for group in GROUPS:
        for name in sorted(name for name, (its_group, _) in COMMANDS.items() if its_group == group):
            context = click.Context(program, info_name="leporello", terminal_width=100, **program.context_settings)
            command = program.get_command(context, name)
            assert command is not None
            inner = click.Context(command, info_name=name, parent=context, terminal_width=100)
            pages.append(f"## leporello {name}\n\n```text\n{command.get_help(inner)}\n```\n")
            for part, subcommand in sorted(command.commands.items()) if isinstance(command, click.Group) else ():
                page = subcommand.get_help(click.Context(subcommand, info_name=part, parent=inner, terminal_width=100))
                pages.append(f"### leporello {name} {part}\n\n```text\n{page}\n```\n")
    return "\n".join(pages)


def page_list() -> str:
    """Every page with the first sentence of it, by kind, and the decisions."""
    parts = []
    for folder, heading in KINDS.items():
        rows = [f"## {heading}", "", "| page | what |", "|---|---|"]
        for page in sorted((DOCS / folder).glob("*.md")):
            title, sentence = _opening(page)
            rows.append(f"| [{title}]({folder}/{page.name}) | {sentence} |")
        parts.append("\n".join(rows))
    template, *decisions = sorted((DOCS / "decisions").glob("*.md"))
    rows = ["## Decisions: what was chosen, and why", ""]
    rows += [f"- [{_opening(page)[0]}](decisions/{page.name})" for page in decisions]
    rows += ["", f"A new one follows the [template](decisions/{template.name})."]
    return "\n\n".join([*parts, "\n".join(rows)]) + "\n"


def _opening(page: Path) -> tuple[str, str]:
    title, _, rest = page.read_text(encoding="utf-8").removeprefix("# ").partition("\n")
    paragraph = " ".join(rest.strip().split("\n\n")[0].split())
    # A link leads on from the page that it stands on, not from the index.
    paragraph = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", paragraph)
    return title.strip(), re.split(r"(?<=[.:])\s", paragraph)[0].rstrip(":").rstrip(".") + "."


GENERATORS: dict[str, Callable[[], str]] = {
    "pages": page_list,
    "settings": settings_table,
    "commands": commands_help,
    "store-queries": queries_part,
    "store-schema": schema_part,
}


def regenerated(text: str) -> str:
    """The page with its generated parts written anew."""

    def write(match: re.Match[str]) -> str:
        return f"{match[1]}{GENERATORS[match[2]]()}{match[4]}"

    return PART.sub(write, text)


def stale_pages(root: Path = ROOT) -> list[Path]:
    """Pages whose generated parts are not what the code says now."""
    return [page for page in sorted((root / "docs").rglob("*.md")) if regenerated(page.read_text()) != page.read_text()]


def main() -> int:
    """Rewrite, or check with `--check`."""
    stale = stale_pages()
    for page in stale:
        if "--check" in sys.argv:
            print(f"{page.relative_to(ROOT)} is out of date: run `make docs`")
        else:
            page.write_text(regenerated(page.read_text()))
            print(f"{page.relative_to(ROOT)} rewritten")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
