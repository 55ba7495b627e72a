"""docs/explanation/architecture.md and the glossary follow the source: every name on them exists."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "leporello"
ARCHITECTURE = ROOT / "docs" / "explanation" / "architecture.md"
NAMES = sorted(set(re.findall(r"`([a-z_.]+):([A-Za-z_.]+)`", ARCHITECTURE.read_text(encoding="utf-8"))))
MODULES = sorted(set(re.findall(r"`([a-z_]+\.[a-z_.]+)`", ARCHITECTURE.read_text(encoding="utf-8"))))
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
# Folders whose name any reader of programs for models knows, or whose name is a vendor's or a product's.
PLAIN_FOLDERS = set(
    """agent anthropic chat cli config dashboard models plugins postgres proxy responses sessions sql sqlite store
    testing tokens tools wire""".split()
)
# Folders named after what they hold or do, with the word that the glossary has for it.
WORD_FOR = {
    "dialects": "dialect",
    "engines": "engine",
    "providers": "provider",
    "store_contract": "contract",
    "summaries": "summariser",
}
FILES = sorted(set(re.findall(r"`([a-z_]+/[a-z_./]+)`", ARCHITECTURE.read_text(encoding="utf-8"))))


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_every_function_on_the_ways_exists(module: str, name: str) -> None:
    """A reader who follows a way finds each station under the name that the page gives it."""
    found: object = importlib.import_module(f"leporello.{module}")
    for part in name.split("."):
        found = getattr(found, part)


@pytest.mark.parametrize("module", MODULES)
def test_every_module_that_is_named_exists(module: str) -> None:
    """The same for modules that stand alone."""
    assert importlib.util.find_spec(f"leporello.{module}") is not None


@pytest.mark.parametrize("path", FILES)
def test_every_file_that_is_named_exists(path: str) -> None:
    """The same for files, in the source or in the repository."""
    assert (SOURCE / path).exists() or (ROOT / path).exists()


def test_all_five_ways_are_shown() -> None:
    """Each with a picture and its stations in order."""
    text = ARCHITECTURE.read_text(encoding="utf-8")
    ways = re.split(r"^## (?=\d\. )", text.partition("\n## Where is")[0], flags=re.MULTILINE)[1:]
    assert len(ways) == 5
    for way in ways:
        assert "```text" in way
        stations = [int(number) for number in re.findall(r"^(\d+)\. ", way.partition("\n")[2], re.MULTILINE)]
        assert stations == list(range(1, len(stations) + 1))
        assert len(stations) >= 7


def _words() -> set[str]:
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
    return {word.strip() for row in rows for word in row.split(",")}


def test_the_glossary_has_every_uncommon_folder() -> None:
    """Whoever opens the source can look up the name of each folder."""
    folders = {path.name for path in SOURCE.rglob("*") if path.is_dir() and any(path.glob("*.py"))}
    words = _words()
    assert [name for name in sorted(folders - PLAIN_FOLDERS) if WORD_FOR.get(name, name) not in words] == []


@pytest.mark.parametrize(
    "word",
    "fold compaction handoff ledger view head middle tail unit artifact engine layout dialect fence lease generation "
    "pulse overlay".split(),
)
def test_the_glossary_has_our_own_words(word: str) -> None:
    """The words that no newcomer could know."""
    assert word in _words()
