"""Rewrites the generated parts of the documentation; `--check` only says whether they are up to date.

A generated part stands between `<!-- generated: NAME -->` and `<!-- end generated -->`; GENERATORS says who writes it.
`--freeze` writes the signatures of all public names to tests/repo/public_names.txt, for changes made on purpose.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from store_page import queries_part, schema_part

import leporello
from leporello.cli import COMMANDS, GROUPS, program
from leporello.config import SETTINGS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
# The four kinds of documentation (https://diataxis.fr): each answers another need of the reader.
KINDS = {
    "tutorial": "Tutorial: learn it by doing",
    "guides": "Guides: get something done",
    "reference": "Reference: look something up",
    "explanation": "Explanation: understand how it works, and how well",
}
FROZEN = ROOT / "tests" / "repo" / "public_names.txt"
# Every public name stands under one heading of the library's page, in this order.
LIBRARY = {
    "Functions": "compress validate load_settings open_store",
    "A conversation": "Conversation Request ModelReply View ViewLine Pinboard Pin UsageTotals PromptSize Metadata",
    "Searching it": "RecallTools RecallQuery RecallMode Window",
    "Compactions": "Compressed CompactionReport CompactionEvent Outcome Span Verification",
    "Engines and summarisers": (
        "ContextEngine ContextCompressor Summariser SummaryTask Summary Handoff Section HandoffLine LineOrigin"
    ),
    "Messages, tokens and limits": "Message Messages Violation ViolationKind CanonicalUsage TokenCounter Limits",
    "Settings, stores and plugins": "Settings Home Store StoreOptions PluginHost PluginExtras CancelToken",
    "Exceptions": (
        "LeporelloError ConfigError NoModel InputError FixedPartTooLarge EngineError SummaryError "
        "Cancelled ProviderError ToolError PluginError StoreError NotFound StoreBusy StoreConflict LeaseLost "
        "StoreUnavailable StoreCorrupt SchemaTooNew"
    ),
}
# Values to pass on as a whole: what is inside is no part of the promise, or another page describes it.
OPAQUE = {
    "ContextCompressor": "its methods are those of `ContextEngine`",
    "PluginExtras": "see [Plugins](../guides/plugins.md)",
    "PluginHost": "see [Plugins](../guides/plugins.md)",
    "Settings": "see [Settings](config.md)",
    "Store": "made by `open_store`; see [The store](store.md)",
    "TokenCounter": "made by `TokenCounter.for_model(name)`",
}
# Classes that only the library makes, so that their constructor is no part of the promise.
MADE_FOR_YOU = ("Conversation", "Limits", "Pinboard", "RecallTools")
# Public for other parts of Leporello only.
INTERNAL_MEMBERS = ("Conversation.fold_as_ordered",)
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


def library_names() -> str:
    """Every public name with its signature and the first sentence of its description."""
    parts = []
    for heading, names in LIBRARY.items():
        parts.append(f"## {heading}\n")
        for name in names.split():
            value = getattr(leporello, name)
            where = f" ({OPAQUE[name]})" if name in OPAQUE else ""
            parts.append(f"### {name}\n\n{_sentence(value, name)}{where}\n")
            if inspect.isfunction(value):
                declared = "\n".join(textwrap.wrap(headline(name), 100, subsequent_indent="    "))
                parts.append(f"```text\n{declared}\n```\n")
            members = [f"- `{line}`{_about(thing)}" for line, thing in public_members(name)]
            parts += ["\n".join([*members, ""])] if members else []
    return "\n".join(parts)


def _sentence(value: Any, name: str) -> str:
    if name in ("Message", "Messages"):
        return "A message in OpenAI format." if name == "Message" else "A sequence of them."
    lines = (inspect.getdoc(value) or "").split("\n\n")[0]
    return re.split(r"(?<=[.])\s", " ".join(lines.split()))[0]


def _about(thing: Any) -> str:
    text = _sentence(thing, "") if callable(thing) or isinstance(thing, property) else ""
    return f": {text}" if text else ""


def signatures() -> str:
    """All public names and members with their signatures, one a line: the text that `--freeze` keeps."""
    lines = []
    for name in sorted(leporello.__all__):
        lines.append(headline(name))
        lines += [f"    {line}" for line, _ in public_members(name)]
    return "\n".join(lines) + "\n"


def headline(name: str) -> str:
    """A public name as its first line declares it."""
    value = getattr(leporello, name)
    if inspect.isfunction(value):
        return f"{name}{_signature(value)}"
    if not isinstance(value, type):
        return f"{name} = {str(value).replace('typing.', '')}"
    bases = [base.__name__ for base in value.__bases__ if base.__name__ in (*leporello.__all__, "Protocol", "list")]
    return f"class {name}({', '.join(bases)})" if bases else f"class {name}"


def public_members(name: str) -> Iterator[tuple[str, Any]]:
    """The members of a public class that are part of the promise, each with its declaration."""
    value = getattr(leporello, name)
    if not isinstance(value, type) or name in OPAQUE:
        return
    if issubclass(value, enum.Enum):
        yield from ((f"{item.name} = {item.value!r}", None) for item in value)
        return
    if "__init__" in vars(value) and name not in MADE_FOR_YOU and not getattr(value, "_is_protocol", False):
        yield f"{name}{_signature(value.__init__).removesuffix(' -> None')}", None
    fields = {field.name for field in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set()
    for member, raw in sorted(_declared(value).items()):
        if member.startswith("_") or member in fields or f"{name}.{member}" in INTERNAL_MEMBERS:
            continue
        if isinstance(raw, property):
            yield f"{member}: {raw.fget.__annotations__['return']}", raw
        elif isinstance(raw, classmethod | staticmethod):
            yield f"{type(raw).__name__} {member}{_signature(raw.__func__)}", raw.__func__
        elif inspect.isfunction(raw):
            yield f"{member}{_signature(raw)}", raw
        elif member in value.__annotations__:
            yield f"{member}: {value.__annotations__[member]} = {raw!r}", None


def _declared(value: type) -> dict[str, Any]:
    """What a class and its internal bases declare; what it inherits from a public one is listed there."""
    found: dict[str, Any] = {}
    for base in reversed(value.__mro__):
        if base is value or (base.__module__.startswith("leporello.") and base.__name__ not in leporello.__all__):
            found |= vars(base)
    return found


def _signature(function: Callable[..., Any]) -> str:
    """The signature as the source has it: annotations are strings and stay as they are, without quotes."""
    signature = inspect.signature(function)
    kept = [parameter for name, parameter in signature.parameters.items() if name not in ("self", "cls")]
    text = str(signature.replace(parameters=kept))
    annotations = sorted(set(map(repr, function.__annotations__.values())), key=len, reverse=True)
    for annotation in annotations:
        text = text.replace(annotation, annotation[1:-1]) if annotation[0] in "'\"" else text
    return text


GENERATORS: dict[str, Callable[[], str]] = {
    "pages": page_list,
    "settings": settings_table,
    "commands": commands_help,
    "library": library_names,
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
    """Rewrite, check with `--check`, or keep the public signatures with `--freeze`."""
    if "--freeze" in sys.argv:
        FROZEN.write_text(signatures(), encoding="utf-8")
        print(f"{FROZEN.relative_to(ROOT)} rewritten")
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
