"""The invented project that a session works on: words to name things, source files, a branch, commits, failing tests.

Nothing here means a real project. Texts are templates: `<verb>` is any verb, `<Verb>` a capitalised one, `<1-900>` a
number below 900, `<hex:9>` nine hexadecimal digits; what a caller gives by name stands for itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from random import Random

from leporello.lazy_regex import lazy_regex

WORDS = {
    "project": "harbour quillet marrow lintel fennel tessera brackish cinder halyard ostrich".split(),
    "domain": (
        "invoice ledger session shipment tenant voucher payout catalog booking message upload webhook profile thread "
        "sensor reading report budget license refund"
    ).split(),
    "thing": (
        "cache queue worker parser router schema index cursor batch limiter retry token window snapshot digest filter "
        "loader mapper policy registry scheduler gateway"
    ).split(),
    "verb": (
        "load merge parse flush resolve apply collect encode expire rotate validate normalise dispatch reserve release "
        "split stitch rank trim probe"
    ).split(),
    "adjective": (
        "stale pending partial nested orphaned shared frozen late empty broken signed remote local cached missing open"
    ).split(),
    "field": (
        "amount currency created_at owner_id status region attempts payload checksum limit offset locale priority "
        "deadline parent_id label ratio weight origin version"
    ).split(),
    "error": (
        "ValueError KeyError TimeoutError AssertionError TypeError IntegrityError ConnectionResetError PermissionError "
        "UnicodeDecodeError RuntimeError"
    ).split(),
    "region": "eu-west-3 us-east-2 ap-south-1 sa-east-1 ca-central-1".split(),
    "person": "Ines Tomasz Mei Arjun Olga Farid Bea Kenji Luca Noor".split(),
    "level": "INFO INFO INFO DEBUG DEBUG WARN ERROR".split(),
}
BASE62 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_SLOT = lazy_regex(r"<(\w+)(?:[:-](\d+))?>")


def fill(rng: Random, template: str, **given: str) -> str:
    """The template with every slot filled, from left to right."""

    def slot(found: re.Match[str]) -> str:
        name, number = found[1], found[2]
        if name in given:
            return given[name]
        if name.isdigit():
            return str(rng.randrange(int(name), int(number)))
        if number:
            return {"digits": digits, "hex": hexes}[name](rng, int(number))
        if name in _PHRASES:
            return fill(rng, _PHRASES[name])
        word = rng.choice(WORDS[name.lower()])
        return word.upper() if name.isupper() else word.title() if name.istitle() else word

    return _SLOT.sub(slot, template)


_PHRASES = {
    "function": "<verb>_<adjective>_<domain>",
    "type": "<Domain><Thing>",
    "release": "<0-9>.<0-40>.<0-20>",
    "error_line": "<error>: <adjective> <domain> <field>=<digits:4> in <thing> <hex:6>",
}
"""`error_line` names what went wrong, distinct enough to be asked for later."""


def digits(rng: Random, count: int) -> str:
    return str(rng.randrange(10 ** (count - 1), 10**count))


def hexes(rng: Random, count: int) -> str:
    """Hexadecimal text: commit ids, container ids, checksums. Always holds a letter, as real ones nearly always do."""
    text = "".join(rng.choices("0123456789abcdef", k=count))
    return text if not text.isdigit() else "e" + text[1:]


def letters(rng: Random, count: int) -> str:
    return "".join(rng.choices(BASE62, k=count))


def stamp(rng: Random) -> str:
    return (
        f"2026-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}T"
        f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}.{rng.randrange(1000):03}Z"
    )


_CODE = {
    ".py": '''\
def <own>(<it>: <type>, *, <arg>: int = <limit>) -> list[<type>]:
    """<Verb> every <adjective> <domain> of the <it>."""
    found = []
    for <domain>_row in <it>.<verb>(limit=<arg>):
        if <domain>_row.<field> is None or <it>.<field> > <limit>:
            log.warning("<adjective> <domain> skipped: %s", <arg>)
            continue
        found.append(<verb>_<thing>(<it>, <arg>))
    return sorted(found, key=lambda item: item.<field>)

''',
    ".ts": """\
export async function <verb><About>(<it>: <type>): Promise<void> {
  const <field> = await <it>.<verb>({ limit: <10-500> });
  if (!<it>.<field>) {
    throw new Error(`<adjective> <about>: ${<it>.<field>}`);
  }
  <about>Store.set(<it>.<field>, { ...<it>, <field>: Date.now() });
}
""",
    ".go": """\
func (s *<About>Service) <Verb><It>(ctx context.Context, id string) error {
\trow, err := s.<it>.<Verb>(ctx, id, <1-64>)
\tif err != nil {
\t\treturn fmt.Errorf("<verb> <adjective> <about> %q: %w", id, err)
\t}
\ts.metrics.<Thing>.WithLabelValues(row.<Field>).Inc()
\treturn nil
}
""",
    ".sql": """\
CREATE TABLE IF NOT EXISTS <adjective>_<table> (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    <first> TEXT NOT NULL,
    <second> NUMERIC(12, 4) DEFAULT <0-100>,
    CHECK (<second> >= 0)
);
CREATE INDEX <table>_<first>_idx ON <adjective>_<table> (<first>, <second>);
""",
    ".yaml": """\
<domain>_<thing>:
  image: registry.internal/<domain>:<1-9>.<0-30>
  replicas: <1-12>
  env:
    - { name: <FIELD>, value: '<1-90000>' }
    - { name: <FIELD>, value: <adjective> }""",
}
SUFFIXES = tuple(_CODE)


def _named(rng: Random, suffix: str) -> dict[str, str]:
    """The names that a piece of code uses more than once."""
    if suffix == ".py":
        own = fill(rng, "<function>")
        named = {"own": own, "it": fill(rng, "<thing>"), "arg": fill(rng, "<field>")}
        return {**named, "limit": str(rng.randrange(2, 900))}
    if suffix in (".ts", ".go"):
        thing, domain = rng.choice(WORDS["thing"]), rng.choice(WORDS["domain"])
        return {"it": thing, "It": thing.title(), "about": domain, "About": domain.title(), "void": "<void>"}
    if suffix == ".sql":
        table = rng.choice(WORDS["domain"]) + "s"
        first, second = rng.sample(WORDS["field"], 2)
        return {"table": table, "first": first, "second": second}
    return {}


def source(rng: Random, suffix: str, lines: int) -> list[str]:
    """About `lines` lines of code of the kind that the file suffix names."""
    text: list[str] = []
    while len(text) < lines:
        named = _named(rng, suffix)
        text.extend(fill(rng, _CODE[suffix], **named).split("\n"))
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
        self.project = fill(self.rng, "<project>")
        self.branch = fill(self.rng, "release-<digits:4>")
        while len(self.files) < FILES:
            suffix = self.rng.choice(SUFFIXES)
            path = fill(self.rng, f"src/<domain>/<verb>_<thing>{suffix}")
            self.files.setdefault(path, source(self.rng, suffix, self.rng.randrange(40, 260)))

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self.files)

    def numbered(self, path: str, start: int, count: int) -> str:
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
        suffix = self.rng.choice(SUFFIXES)
        path = fill(self.rng, f"src/<domain>/<function>{suffix}")
        self.files[path] = source(self.rng, suffix, lines)
        return path, "\n".join(self.files[path])

    def break_test(self) -> None:
        self.failing.append((fill(self.rng, "tests/test_<thing>.py::test_<function>"), fill(self.rng, "<error_line>")))

    def commit(self, subject: str) -> str:
        commit = hexes(self.rng, 40)
        self.commits.append((commit, subject))
        return commit
