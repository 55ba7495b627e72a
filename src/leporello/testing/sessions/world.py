"""The invented project that a session works on: source files, a branch, commits, failing tests; words to name them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from leporello.testing.sessions import output
from leporello.testing.sessions.vocabulary import (
    ADJECTIVES,
    DOMAINS,
    FIELDS,
    PROJECTS,
    THINGS,
    VERBS,
    digits,
    hexes,
    name,
    type_name,
)


def _python(rng: Random) -> list[str]:
    function, thing, field = name(rng), rng.choice(THINGS), rng.choice(FIELDS)
    limit = rng.randrange(2, 900)
    return [
        f"def {function}({thing}: {type_name(rng)}, *, {field}: int = {limit}) -> list[{type_name(rng)}]:",
        f'    """{rng.choice(VERBS).title()} every {rng.choice(ADJECTIVES)} {rng.choice(DOMAINS)} of the {thing}."""',
        "    found = []",
        f"    for {rng.choice(DOMAINS)}_row in {thing}.{rng.choice(VERBS)}(limit={field}):",
        f"        if {rng.choice(DOMAINS)}_row.{rng.choice(FIELDS)} is None or {thing}.{rng.choice(FIELDS)} > {limit}:",
        f'            log.warning("{rng.choice(ADJECTIVES)} {rng.choice(DOMAINS)} skipped: %s", {field})',
        "            continue",
        f"        found.append({rng.choice(VERBS)}_{rng.choice(THINGS)}({thing}, {field}))",
        f"    return sorted(found, key=lambda item: item.{rng.choice(FIELDS)})",
        "",
        "",
    ]


def _typescript(rng: Random) -> list[str]:
    thing, domain = rng.choice(THINGS), rng.choice(DOMAINS)
    return [
        f"export async function {rng.choice(VERBS)}{domain.title()}({thing}: {type_name(rng)}): Promise<void> {{",
        f"  const {rng.choice(FIELDS)} = await {thing}.{rng.choice(VERBS)}({{ limit: {rng.randrange(10, 500)} }});",
        f"  if (!{thing}.{rng.choice(FIELDS)}) {{",
        f"    throw new Error(`{rng.choice(ADJECTIVES)} {domain}: ${{{thing}.{rng.choice(FIELDS)}}}`);",
        "  }",
        f"  {domain}Store.set({thing}.{rng.choice(FIELDS)}, {{ ...{thing}, {rng.choice(FIELDS)}: Date.now() }});",
        "}",
        "",
    ]


def _go(rng: Random) -> list[str]:
    thing, domain = rng.choice(THINGS), rng.choice(DOMAINS)
    return [
        f"func (s *{domain.title()}Service) {rng.choice(VERBS).title()}{thing.title()}(ctx context.Context, id string)"
        " error {",
        f"\trow, err := s.{thing}.{rng.choice(VERBS).title()}(ctx, id, {rng.randrange(1, 64)})",
        "\tif err != nil {",
        f'\t\treturn fmt.Errorf("{rng.choice(VERBS)} {rng.choice(ADJECTIVES)} {domain} %q: %w", id, err)',
        "\t}",
        f"\ts.metrics.{rng.choice(THINGS).title()}.WithLabelValues(row.{rng.choice(FIELDS).title()}).Inc()",
        "\treturn nil",
        "}",
        "",
    ]


def _sql(rng: Random) -> list[str]:
    table = rng.choice(DOMAINS) + "s"
    first, second = rng.sample(FIELDS, 2)
    return [
        f"CREATE TABLE IF NOT EXISTS {rng.choice(ADJECTIVES)}_{table} (",
        "    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,",
        f"    {first} TEXT NOT NULL,",
        f"    {second} NUMERIC(12, 4) DEFAULT {rng.randrange(0, 100)},",
        f"    CHECK ({second} >= 0)",
        ");",
        f"CREATE INDEX {table}_{first}_idx ON {rng.choice(ADJECTIVES)}_{table} ({first}, {second});",
        "",
    ]


def _yaml(rng: Random) -> list[str]:
    return [
        f"{rng.choice(DOMAINS)}_{rng.choice(THINGS)}:",
        f"  image: registry.internal/{rng.choice(DOMAINS)}:{rng.randrange(1, 9)}.{rng.randrange(30)}",
        f"  replicas: {rng.randrange(1, 12)}",
        "  env:",
        f"    - {{ name: {rng.choice(FIELDS).upper()}, value: '{rng.randrange(1, 90_000)}' }}",
        f"    - {{ name: {rng.choice(FIELDS).upper()}, value: {rng.choice(ADJECTIVES)} }}",
    ]


_BLOCKS: dict[str, Callable[[Random], list[str]]] = {
    ".py": _python,
    ".ts": _typescript,
    ".go": _go,
    ".sql": _sql,
    ".yaml": _yaml,
}
SUFFIXES = tuple(_BLOCKS)


def source(rng: Random, suffix: str, lines: int) -> list[str]:
    """About `lines` lines of code of the kind that the file suffix names."""
    text: list[str] = []
    while len(text) < lines:
        text.extend(_BLOCKS[suffix](rng))
    return text


FILES = 40


@dataclass(slots=True)
class World:
    """State of the project; every method draws from the one random source."""

    rng: Random
    project: str = ""
    branch: str = ""
    files: dict[str, list[str]] = field(default_factory=dict)
    commits: list[tuple[str, str]] = field(default_factory=list)
    failing: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.project = self.rng.choice(PROJECTS)
        self.branch = f"release-{digits(self.rng, 4)}"
        while len(self.files) < FILES:
            suffix = self.rng.choice(SUFFIXES)
            path = f"src/{self.rng.choice(DOMAINS)}/{self.rng.choice(VERBS)}_{self.rng.choice(THINGS)}{suffix}"
            self.files.setdefault(path, source(self.rng, suffix, self.rng.randrange(40, 260)))

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self.files)

    def numbered(self, path: str, start: int, count: int) -> str:
        """Lines of a file as a reading tool shows them."""
        lines = self.files[path][start : start + count]
        return "\n".join(f"{start + offset + 1:6}|{line}" for offset, line in enumerate(lines))

    def edit(self, path: str) -> tuple[str, str]:
        """Change a few lines of a file; the old and the new text."""
        lines = self.files[path]
        start = self.rng.randrange(max(1, len(lines) - 6))
        count = self.rng.randrange(2, 6)
        suffix = "." + path.rsplit(".", 1)[1]
        fresh = source(self.rng, suffix, count)[: count + self.rng.randrange(4)]
        old = lines[start : start + count]
        lines[start : start + count] = fresh
        return "\n".join(old), "\n".join(fresh)

    def create(self, lines: int) -> tuple[str, str]:
        """Write a new file; its path and text."""
        suffix = self.rng.choice(SUFFIXES)
        path = f"src/{self.rng.choice(DOMAINS)}/{name(self.rng)}{suffix}"
        self.files[path] = source(self.rng, suffix, lines)
        return path, "\n".join(self.files[path])

    def break_test(self) -> tuple[str, str]:
        """A test starts to fail: its name and its error line."""
        failure = (f"tests/test_{self.rng.choice(THINGS)}.py::test_{name(self.rng)}", output.error_line(self.rng))
        self.failing.append(failure)
        return failure

    def commit(self, subject: str) -> str:
        """Commit; the full hash."""
        commit = hexes(self.rng, 40)
        self.commits.append((commit, subject))
        return commit
