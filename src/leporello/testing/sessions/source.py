"""Source files of an invented project: Python, TypeScript, Go, SQL and YAML that looks like somebody's work."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from leporello.testing.sessions.vocabulary import ADJECTIVES, DOMAINS, FIELDS, THINGS, VERBS, name, type_name


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
